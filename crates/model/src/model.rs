//! A model: a small program around a lock, and the bounds within which all its executions are
//! tried.

use std::fmt;
use std::marker::PhantomData;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nearlock_collection::subjects::Subject;
use nearlock_core::events::LockEvent;
use nearlock_core::near::attention::QUIET;
use nearlock_core::platform::SWITCHES_MAX;
use serde::{Deserialize, Serialize};

use crate::engine::{Engine, Thread};
use crate::loom::Loom;
use crate::mutate::forget_failure;

/// A program to be checked by the engine `E`.
pub struct Model<E: Engine = Loom> {
    /// Its name in reports: `lock: situation`.
    pub name: String,
    /// Under loom the scheduler takes the processor at most this many times from a thread that
    /// could continue. `None`: any number of times.
    pub preemptions: Option<usize>,
    /// The events that must have happened in some execution, so that the model shows what it is
    /// meant to show.
    pub reaches: &'static [LockEvent],
    /// The switches of locks whose tuning is
    /// [`Switched`](nearlock_core::tuning::Switched).
    pub switches: [u64; SWITCHES_MAX],
    /// The first value of the attention word: [`QUIET`], or 0 if no release has yet found out that
    /// the light side of the fence is free.
    pub attention: u32,
    /// How many groups of locks seem to lack processors. If it is not 0, all threads seem to run on
    /// the same processor.
    pub shortages: u32,
    /// The program. It calls [`Engine::begin`] first.
    pub(crate) body: Arc<dyn Fn() + Send + Sync>,
    engine: PhantomData<fn() -> E>,
}

impl<E: Engine> Clone for Model<E> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), body: self.body.clone(), ..*self }
    }
}

/// Steps after which an execution is taken to be endless: a deadlock of spinning threads.
const BRANCHES_MAX: usize = 3_000;

/// loom checks whether to stop after this many executions, at least.
const LOOKS: usize = 20_000;

impl<E: Engine> Model<E> {
    /// A model of `body` with nodes for `slots` threads. The caller of `body` is the thread in slot
    /// 0.
    pub fn new(
        name: impl Into<String>,
        slots: u32,
        preemptions: Option<usize>,
        body: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        Self::of(name.into(), slots, preemptions, Box::new(body))
    }

    /// As [`new`](Self::new), compiled once for all bodies.
    fn of(name: String, slots: u32, preemptions: Option<usize>, body: Box<dyn Fn() + Send + Sync>) -> Self {
        let body = Arc::new(move || {
            E::begin(slots);
            E::become_thread(Thread { slot: Some(0), ..Thread::default() });
            body();
        });
        let switches = [0; SWITCHES_MAX];
        let (attention, shortages) = (QUIET, 0);
        Self { name, preemptions, reaches: &[], switches, attention, shortages, body, engine: PhantomData }
    }

    /// The model with a condition: the events that must have happened in some execution.
    pub fn reaching(self, reaches: &'static [LockEvent]) -> Self {
        Self { reaches, ..self }
    }

    /// The model in which no release has yet found out that the light side of the fence is free.
    pub fn with_unknown_light(self) -> Self {
        Self { attention: 0, ..self }
    }
}

impl<E: Engine> Model<E> {
    /// The model with the switches of the lock of this name, for locks whose tuning is
    /// [`Switched`](nearlock_core::tuning::Switched).
    ///
    /// # Panics
    ///
    /// If no lock of the list has that name.
    pub fn of_lock(self, name: &str) -> Self {
        Self { switches: Subject::named(name).expect("is on the list").switches(), ..self }
    }

    /// The same with this switch in another position.
    ///
    /// # Panics
    ///
    /// As [`of_lock`](Self::of_lock), and if the lock has no such switch, or the switch no such
    /// position.
    pub fn of_lock_with(self, name: &str, key: &str, to: &str) -> Self {
        let mut model = self.of_lock(name);
        let switch =
            Subject::named(name).and_then(|lock| lock.algorithm.switch(key)).expect("has this switch");
        let value = switch.values.parse(to).expect("has this position");
        model.switches[switch.index] = switch.stored(value);
        model
    }
}

impl Model {
    /// Tries all executions within the bounds.
    ///
    /// # Panics
    ///
    /// If one of them fails, or does not end.
    pub fn check(&self) {
        self.search(Depth::default());
    }

    /// Tries the executions to this depth. Begins again after an execution that is
    /// [late](crate::on_demand).
    pub(crate) fn search(&self, depth: Depth) -> Search {
        Loom::set_switches(self.switches);
        Loom::set_attention(self.attention);
        Loom::set_shortages(self.shortages);
        Loom::with_instance(|i| i.demand.forget());
        loop {
            match panic::catch_unwind(AssertUnwindSafe(|| self.search_once(depth))) {
                Ok(search) => return search,
                Err(_) if Loom::with_instance(|i| i.demand.is_late()) => forget_failure(),
                Err(payload) => panic::resume_unwind(payload),
            }
        }
    }

    /// Panics if an execution fails, or is late.
    fn search_once(&self, depth: Depth) -> Search {
        let before = Loom::executions();
        let mut builder = ::loom::model::Builder::new();
        builder.preemption_bound = depth.preemptions_of(self);
        builder.max_permutations = depth.executions_max;
        // loom checks whether to stop at each multiple of this number of executions.
        builder.checkpoint_interval = depth.executions_max.unwrap_or(LOOKS).clamp(1, LOOKS);
        builder.max_branches = BRANCHES_MAX;
        let body = self.body.clone();
        builder.check(move || {
            body();
            if Loom::with_instance(|i| i.demand.is_late()) {
                // No message: the search begins again.
                panic::resume_unwind(Box::new("late"));
            }
        });
        let executions = Loom::executions() - before;
        // It stops before the execution of this number.
        Search { executions, is_cut: depth.executions_max.is_some_and(|max| executions + 1 >= max as u64) }
    }

    /// As [`check`](Self::check), to this depth, and returns the effort.
    ///
    /// # Panics
    ///
    /// As [`check`](Self::check), and if an event that the model should reach has not happened,
    /// unless the search was stopped.
    pub fn run(&self, depth: Depth) -> SearchStats {
        let (begin, events) = (Instant::now(), Loom::events());
        let Search { executions, is_cut } = self.search(depth);
        for ((event, before), after) in LockEvent::ALL.iter().zip(events).zip(Loom::events()) {
            let reached = after > before || is_cut;
            assert!(reached || !self.reaches.contains(event), "{}: no {}", self.name, event.name());
        }
        SearchStats {
            model: self.name.clone(),
            preemptions: depth.preemptions_of(self),
            executions,
            is_cut,
            elapsed: begin.elapsed(),
        }
    }
}

/// The result of a search.
pub(crate) struct Search {
    /// How many executions were tried.
    pub(crate) executions: u64,
    /// Whether there would have been more.
    pub(crate) is_cut: bool,
}

/// How much further a search goes than a model's own bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Preemptions beyond the model's bound.
    pub more_preemptions: usize,
    /// Stop after this many executions, which is checked every 20,000.
    pub executions_max: Option<usize>,
    /// A mutant is first tried on the models with up to this many executions, for as many
    /// executions. There the rule that plain stores to one word are ordered
    /// ([`Stores`](crate::mutate::Stores)) is off. Only then is it tried with the rule.
    pub consequences_max: u64,
}

impl Depth {
    fn preemptions_of(self, model: &Model) -> Option<usize> {
        model.preemptions.map(|preemptions| preemptions + self.more_preemptions)
    }
}

/// The effort of the search of a model.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchStats {
    /// Its name.
    pub model: String,
    /// The bound on preemptions; `None`: any number.
    pub preemptions: Option<usize>,
    /// How many executions were tried.
    pub executions: u64,
    /// Whether there would have been more: the search was stopped by [`Depth::executions_max`].
    pub is_cut: bool,
    /// How long it took.
    pub elapsed: Duration,
}

impl fmt::Display for SearchStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = self.preemptions.map_or("any number of".to_owned(), |n| format!("at most {n}"));
        let Self { model, executions, .. } = self;
        let first = if self.is_cut { "the first " } else { "" };
        write!(
            f,
            "{model}: {bound} preemptions, {first}{executions} executions, {} ms",
            self.elapsed.as_millis()
        )
    }
}
