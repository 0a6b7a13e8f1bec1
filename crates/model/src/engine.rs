//! What a model needs from an engine that tries its executions, in addition to a lock's platform.
//!
//! Models are written once, generic over the engine; [`Loom`](crate::loom::Loom) and
//! Shuttle run them.

use std::cell::Cell;
use std::hint::black_box;

use nearlock_collection::subjects::EveryCapability;
use nearlock_core::events::LockEvent;
use nearlock_core::platform::{AsymFence, SWITCHES_MAX};
use nearlock_core::schedule::Mark;
use nearlock_core::settings::Setting;
use nearlock_core::shared_holds::SharedLock;

use crate::instance::Instance;

/// A platform on which models run. An engine runs all threads of a model as coroutines on the
/// thread that called it. So the state of an execution is kept per thread of the machine, and
/// several models can run at the same time.
pub trait Engine: EveryCapability + AsymFence {
    /// The data that the sections of a lock write to.
    type Counter: Counter;
    /// A thread that has been started.
    type Handle: Handle;

    /// How many queue nodes each slot has.
    const LEVELS: u32;

    /// Calls `f` with the state of the execution.
    fn with_instance<R>(f: impl FnOnce(&Instance<Self>) -> R) -> R;
    /// Calls `f` with the number of queue nodes that the calling thread uses.
    fn with_nodes_in_use<R>(f: impl FnOnce(&Cell<u32>) -> R) -> R;
    /// The properties of the calling thread.
    fn thread() -> Thread;

    /// Whether a thread that has spun for this many turns for another gives up.
    fn has_spun(turns: u32) -> bool;

    /// Begins an execution. Threads in slots below `slots` have fresh nodes, and everything else
    /// has its default. To be called by the model's first thread before it starts others.
    fn begin(slots: u32);
    /// Sets the properties of the calling thread.
    fn become_thread(thread: Thread);
    /// Starts another thread of the model.
    fn spawn(thread: Thread, f: impl FnOnce() + Send + 'static) -> Self::Handle {
        // An engine's own function is long. In a box it is compiled once, and not for each model of
        // each lock.
        Self::start(thread, Box::new(f))
    }
    /// As [`spawn`](Self::spawn).
    fn start(thread: Thread, f: Box<dyn FnOnce() + Send>) -> Self::Handle;
    /// Changes a setting for the rest of the execution.
    fn set(which: Setting, value: u64) {
        Self::with_instance(|i| i.set(which, value));
    }
    /// Sets the switches of locks that are made on this thread of the machine from now on. To be
    /// called outside of executions.
    fn set_switches(stored: [u64; SWITCHES_MAX]) {
        Self::with_instance(|i| i.set_switches(stored));
    }
    /// Sets the first value of the attention word: 0 or
    /// [`QUIET`](nearlock_core::near::attention::QUIET). To be called outside of executions.
    fn set_attention(first: u32) {
        Self::with_instance(|i| i.set_attention(first));
    }
    /// How many groups of locks seem to lack processors in all executions, until another number is
    /// set.
    fn set_shortages(groups: u32) {
        Self::with_instance(|i| i.set_shortages(groups));
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

/// No object has an address below this.
const FIRST_PAGE: usize = 4096;

/// A broken lock may follow a null pointer to a word. This tries to report that instead of ending
/// the process.
pub(crate) fn assert_no_null<T>(word: &T) {
    let address = black_box(std::ptr::from_ref(word).addr());
    assert!(address >= FIRST_PAGE, "an access through a null pointer");
}

/// Data that a lock is meant to protect, which reports two accesses at the same time.
pub trait Counter: Default + Send + Sync + 'static {
    /// The access of threads in their sections.
    fn add_one(&self);
    /// The access of readers in their sections. Returns how many of the other sections there have
    /// been, and reports one that is in progress.
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
    /// The payload of its panic. (An engine may end the execution before.)
    fn join(self) -> std::thread::Result<()>;
}

/// The threads of a model except the first.
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

    /// Waits until they have ended, in the order in which they were started.
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

/// The properties of a thread of a model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Thread {
    /// The slot whose queue nodes it has; `None` if it has no queue nodes.
    pub slot: Option<u32>,
    /// The NUMA node that it runs on at first.
    pub numa_node: u32,
    /// Whether it moves to another NUMA node between two questions where it is. Under loom it moves
    /// to the neighbour (NUMA node 0 and 1, 2 and 3, ...), under Shuttle to any.
    pub migrates: bool,
    /// Whether it spins for as long as it takes.
    pub is_patient: bool,
    /// The number by which locks know it; 0 if they have not asked yet.
    pub number: u32,
    /// The mark that it has set; `None` if it has set none.
    pub mark: Option<Mark>,
    /// How many locks it holds shared, at first: by [`SharedLock`].
    pub shared_holds: [u32; SharedLock::COUNT],
    /// How many sections it is in, at first.
    pub sections: u32,
    /// Whether it is urgent at first;
    /// [`Priority::set_priority`](nearlock_core::platform::Priority::set_priority) changes it.
    pub urgent: bool,
}
