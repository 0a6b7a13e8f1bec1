//! What a model asks of whatever tries its executions, besides what locks ask of a platform.
//!
//! Models are written once, generic over the engine; [`Loom`](crate::loom::Loom) and
//! Shuttle run them.

use std::cell::Cell;
use std::hint::black_box;

use nearlock_collection::subjects::EveryCapability;
use nearlock_core::events::LockEvent;
use nearlock_core::platform::{AsymFence, SWITCHES_MAX};
use nearlock_core::settings::Setting;
use nearlock_core::shared_holds::SharedLock;

use crate::instance::Instance;

/// A platform on which models run. What belongs to an execution is kept per thread of the machine:
/// an engine runs all threads of a model as coroutines on the thread that called it, and several
/// models can run at the same time.
pub trait Engine: EveryCapability + AsymFence {
    /// What the sections of a lock write to.
    type Counter: Counter;
    /// A thread that has been started.
    type Handle: Handle;

    /// How many queue nodes each slot has.
    const LEVELS: u32;

    /// Does something with what is kept of the execution.
    fn with_instance<R>(f: impl FnOnce(&Instance<Self>) -> R) -> R;
    /// Does something with the number of queue nodes that the calling thread uses.
    fn with_nodes_in_use<R>(f: impl FnOnce(&Cell<u32>) -> R) -> R;
    /// What the calling thread is.
    fn thread() -> Thread;

    /// Whether a thread that has spun for so many turns for another gives up.
    fn has_spun(turns: u32) -> bool;

    /// Begins an execution: fresh nodes for threads in slots below `slots`, everything else at its
    /// default. To be called by the model's first thread before it makes others.
    fn begin(slots: u32);
    /// Says what the calling thread is.
    fn become_thread(thread: Thread);
    /// Starts another thread of the model.
    fn spawn(thread: Thread, f: impl FnOnce() + Send + 'static) -> Self::Handle {
        // An engine's own function is long: in a box it is compiled once, and not for each model of each lock.
        Self::start(thread, Box::new(f))
    }
    /// As [`spawn`](Self::spawn).
    fn start(thread: Thread, f: Box<dyn FnOnce() + Send>) -> Self::Handle;
    /// Changes a setting for the rest of the execution.
    fn set(which: Setting, value: u64) {
        Self::with_instance(|i| i.set(which, value));
    }
    /// Has locks that are made on this thread of the machine from now on switched so. Outside of
    /// executions.
    fn set_switches(stored: [u64; SWITCHES_MAX]) {
        Self::with_instance(|i| i.set_switches(stored));
    }
    /// How often each event has been counted on this thread of the machine, by all models so far,
    /// in the order of [`LockEvent::ALL`].
    fn events() -> [u64; LockEvent::COUNT] {
        Self::with_instance(Instance::events)
    }
    /// How many executions have begun on this thread of the machine, of all models so far.
    fn executions() -> u64 {
        Self::with_instance(Instance::executions)
    }
}

/// No object lies below.
const FIRST_PAGE: usize = 4096;

/// A broken lock may follow a null pointer to a word: best effort to say so instead of ending the
/// process.
pub(crate) fn assert_no_null<T>(word: &T) {
    let address = black_box(std::ptr::from_ref(word).addr());
    assert!(address >= FIRST_PAGE, "an access through a null pointer");
}

/// Data that a lock is meant to protect, which reports two accesses at the same time.
pub trait Counter: Default + Send + Sync + 'static {
    /// What the threads do in their sections.
    fn add_one(&self);
    /// What readers do in theirs: how many of the other sections there have been. Reports one that
    /// goes on.
    fn look(&self) -> u32;
    /// How many sections there have been. For the first thread, after it has joined the others.
    fn get(&self) -> u32;
}

/// A thread that can be waited for.
pub trait Handle {
    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// What it panicked with. (An engine may end the execution before.)
    fn join(self) -> std::thread::Result<()>;
}

/// The threads of a model but the first.
pub struct Others<E: Engine>(Vec<E::Handle>);

impl<E: Engine> Default for Others<E> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<E: Engine> Others<E> {
    /// Starts one more.
    pub fn spawn(&mut self, thread: Thread, f: impl FnOnce() + Send + 'static) {
        self.0.push(E::spawn(thread, f));
    }

    /// Waits for their ends, in the order in which they were started.
    ///
    /// # Panics
    ///
    /// If one of them has.
    pub fn join(self) {
        for other in self.0 {
            other.join().unwrap();
        }
    }
}

/// What a thread of a model is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Thread {
    /// Whose queue nodes it has; `None`: there are none for it.
    pub slot: Option<u32>,
    /// The NUMA node that it runs on at first.
    pub numa_node: u32,
    /// Whether it moves to another NUMA node between one question where it is and the next: to the
    /// neighbour under loom (node 0 and 1, 2 and 3, ...), to any under Shuttle.
    pub migrates: bool,
    /// Whether it spins on for as long as it takes.
    pub is_patient: bool,
    /// What locks call it; 0: they have not asked yet.
    pub number: u32,
    /// How many locks it holds shared, at first: by [`SharedLock`].
    pub shared_holds: [u32; SharedLock::COUNT],
    /// How many sections it is in, at first.
    pub sections: u32,
    /// Whether it is urgent at first;
    /// [`Priority::set_priority`](nearlock_core::platform::Priority::set_priority) changes it.
    pub urgent: bool,
}
