//! A model: a small program around a lock, and the bounds within which every execution of it is tried.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

use nearlock_core::events::LockEvent;

use crate::engine::{Engine, Thread};
use crate::loom::Loom;

/// A program to be checked by the engine `E`.
pub struct Model<E: Engine = Loom> {
    /// What it is called in reports: `lock: situation`.
    pub name: String,
    /// Under loom the scheduler takes the processor at most this many times from a thread that could go on.
    /// `None`: any number of times.
    pub preemptions: Option<usize>,
    /// What must have happened in some execution, so that the model shows what it is meant to show.
    pub reaches: &'static [LockEvent],
    /// The program. Its first act is [`Engine::begin`].
    pub(crate) body: Arc<dyn Fn() + Send + Sync>,
    engine: PhantomData<fn() -> E>,
}

impl<E: Engine> Clone for Model<E> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), body: self.body.clone(), ..*self }
    }
}

/// Name of the environment variable that raises every bound on preemptions by its value.
pub const DEEPER: &str = "NEARLOCK_MODEL_DEEPER";

/// Steps of one execution after which it is taken to be endless: a deadlock of spinning threads.
const BRANCHES_MAX: usize = 3_000;

impl<E: Engine> Model<E> {
    /// A model of `body` with nodes for `slots` threads. The caller of `body` is the thread in slot 0.
    pub fn new(
        name: impl Into<String>,
        slots: u32,
        preemptions: Option<usize>,
        body: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let body = Arc::new(move || {
            E::begin(slots);
            E::become_thread(Thread { slot: Some(0), ..Thread::default() });
            body();
        });
        Self { name: name.into(), preemptions, reaches: &[], body, engine: PhantomData }
    }

    /// The model with a condition: what must have happened in some execution.
    pub fn reaching(self, reaches: &'static [LockEvent]) -> Self {
        Self { reaches, ..self }
    }
}

impl Model {
    /// The bound on preemptions that counts.
    fn bound(&self) -> Option<usize> {
        let deeper = || std::env::var(DEEPER).map_or(0, |text| text.parse().expect("a small number"));
        self.preemptions.map(|preemptions| preemptions + deeper())
    }

    /// Tries all executions within the bounds.
    ///
    /// # Panics
    ///
    /// If one of them fails, or does not end.
    pub fn check(&self) {
        let mut builder = ::loom::model::Builder::new();
        builder.preemption_bound = self.bound();
        builder.max_branches = BRANCHES_MAX;
        let body = self.body.clone();
        builder.check(move || body());
    }

    /// As [`check`](Self::check), and prints what it took and whether the model shows what it is meant to.
    ///
    /// # Panics
    ///
    /// As [`check`](Self::check), and if something that the model should reach has not happened.
    pub fn check_and_report(&self) {
        let (begin, before) = (Instant::now(), Loom::executions());
        let count = || LockEvent::ALL.iter().map(|event| Loom::events_of(*event)).collect::<Vec<_>>();
        let events = count();
        self.check();
        let bound = self.bound().map_or("any number of".to_string(), |n| format!("at most {n}"));
        eprintln!(
            "{}: {bound} preemptions, {} executions, {} ms",
            self.name,
            Loom::executions() - before,
            begin.elapsed().as_millis()
        );
        for ((event, before), after) in LockEvent::ALL.iter().zip(events).zip(count()) {
            let reached = after > before;
            assert!(reached || !self.reaches.contains(event), "{}: no {}", self.name, event.name());
        }
    }
}
