//! The platform of the model checker loom, which tries the interleavings of a few threads, and the
//! values that a load may return under the C11 memory model.
//!
//! Differences from the machine:
//! * A plain store is a swap, and plain stores to one word must be ordered by happens-before
//!   (`words.rs`).
//! * A wait explores [`TURNS_EXPLORED`] failed looks. Further ones would only repeat: they leave
//!   the state in which the same thread looks later, and that interleaving is explored too (within
//!   the bound on preemptions). The rest of such an execution is run in one way only, to check that
//!   it ends.
//! * A bounded wait gives up after [`BOUNDED_TURNS`] failed looks, whatever its bound.
//! * A thread explores [`TIMEOUTS_EXPLORED`] sleeps with a limit, and then as after failed looks.
//! * Clock, random bits and settings do not change unless the model changes them.
//! * Each thread has one queue node.
//!
//! loom runs all threads of a model as coroutines on the thread that called it. So the state of a
//! model is kept in thread-locals, and several models can run at the same time.

mod words;

use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ::loom::cell::UnsafeCell;
use ::loom::sync::atomic::AtomicU32;
use ::loom::thread::JoinHandle;
use nearlock_core::events::LockEvent;
use nearlock_core::platform::{AsymFence, Atomic, Clock, Park, ParkTimeout, Platform, Random, Topology};
use nearlock_core::settings::Setting;

use crate::engine::{Counter, Engine, Handle, Thread};
use crate::instance::{Instance, capabilities, while_asleep};
use crate::mutate::{Check, checking, effective, keeps};
use crate::on_demand::OnDemand;

pub use words::{LoomPtr, LoomU32, LoomU64};

/// Failed looks of one wait that are explored in full. Twice as many showed nothing more, and took
/// three times as long.
pub const TURNS_EXPLORED: u32 = 2;
/// Sleeps with a limit that are explored in full, of each thread. A thread that sleeps again and
/// again until its limit would otherwise never let a certain other thread run.
pub const TIMEOUTS_EXPLORED: u32 = 2;
/// Failed looks after which a bounded wait gives up.
pub const BOUNDED_TURNS: u32 = 1;

/// The platform; see the [module](self).
#[derive(Debug)]
pub struct Loom;

/// The further state of an execution under loom.
#[derive(Default)]
struct Besides {
    random: Cell<u32>,
    /// The sleepers: the address of the word, and the number of the sleep.
    sleepers: RefCell<Vec<(usize, u64)>>,
    sleeps: Cell<u64>,
    /// Indexed by slot; see [`AsymFence`].
    fences: OnDemand<[AtomicU32]>,
}

thread_local! {
    static INSTANCE: Instance<Loom> = Instance::default();
    static BESIDES: Besides = Besides::default();
}

::loom::thread_local! {
    static THREAD: Cell<Thread> = Cell::new(Thread::default());
    static DEPTH: Cell<u32> = Cell::new(0);
    /// How often the thread has slept for a time.
    static TIMEOUTS: Cell<u32> = Cell::new(0);
}

impl Loom {
    /// Moves the clock.
    pub fn set_now_ns(now: u64) {
        INSTANCE.with(|i| i.now_ns.set(now));
    }

    /// Sets the value of every random number from now on.
    pub fn set_random(bits: u32) {
        BESIDES.with(|b| b.random.set(bits));
    }
}

impl Engine for Loom {
    type Counter = LoomCounter;
    type Handle = JoinHandle<()>;

    const LEVELS: u32 = 1;

    fn with_instance<R>(f: impl FnOnce(&Instance<Self>) -> R) -> R {
        INSTANCE.with(f)
    }
    fn with_nodes_in_use<R>(f: impl FnOnce(&Cell<u32>) -> R) -> R {
        DEPTH.with(f)
    }
    fn thread() -> Thread {
        THREAD.with(Cell::get)
    }

    fn has_spun(turns: u32) -> bool {
        turns > BOUNDED_TURNS
    }

    fn begin(slots: u32) {
        INSTANCE.with(|i| i.begin(slots));
        BESIDES.with(|b| {
            INSTANCE.with(|i| b.fences.begin(&i.demand, fence_words));
            b.random.set(0);
            b.sleepers.borrow_mut().clear();
        });
    }

    fn become_thread(thread: Thread) {
        THREAD.with(|t| t.set(thread));
    }

    fn start(thread: Thread, f: Box<dyn FnOnce() + Send>) -> JoinHandle<()> {
        ::loom::thread::spawn(move || {
            Self::become_thread(thread);
            f();
        })
    }
}

impl Handle for JoinHandle<()> {
    fn join(self) -> std::thread::Result<()> {
        JoinHandle::join(self)
    }
}

/// A counter of which loom reports two accesses that nothing orders.
pub struct LoomCounter(UnsafeCell<u32>);

// SAFETY: the coroutines of one model run on one thread, and loom reports conflicting accesses.
unsafe impl Sync for LoomCounter {}
// SAFETY: as above.
unsafe impl Send for LoomCounter {}

impl Default for LoomCounter {
    fn default() -> Self {
        Self(UnsafeCell::new(0))
    }
}

impl Counter for LoomCounter {
    fn add_one(&self) {
        // SAFETY: the lock under test must make this access exclusive, which loom checks first.
        checking(Check::Sections, || self.0.with_mut(|count| unsafe { *count += 1 }));
    }

    fn look(&self) -> u32 {
        // SAFETY: as above.
        checking(Check::Sections, || self.0.with(|count| unsafe { *count }))
    }

    fn get(&self) -> u32 {
        // SAFETY: as above.
        self.0.with(|count| unsafe { *count })
    }
}

/// Lets other threads run. After enough turns, stops the exploration of this execution.
fn relax(turn: u32) {
    if turn + 1 >= TURNS_EXPLORED {
        ::loom::skip_branch();
    }
    // Not `park`: loom's `unpark` makes the waker happen before the sleeper, and so would hide a
    // missing Release.
    ::loom::thread::yield_now();
}

// SAFETY: the words are loom's, which models the atomics of `core`.
unsafe impl Platform for Loom {
    type U32 = LoomU32;
    type U64 = LoomU64;
    type Ptr<T> = LoomPtr<T>;

    #[track_caller]
    fn wait_until<V: Copy>(word: &impl Atomic<V>, order: Ordering, done: impl Fn(V) -> bool) -> V {
        let mut turn = 0;
        loop {
            let v = word.load(order);
            if done(v) {
                return v;
            }
            relax(turn);
            turn += 1;
        }
    }

    #[track_caller]
    fn wait_until_bounded<V: Copy>(
        word: &impl Atomic<V>,
        order: Ordering,
        turns: u32,
        done: impl Fn(V) -> bool,
    ) -> V {
        let mut turn = 0;
        loop {
            let v = word.load(order);
            if done(v) || turn == turns.min(BOUNDED_TURNS) {
                return v;
            }
            ::loom::thread::yield_now();
            turn += 1;
        }
    }

    fn cpu_relax(turn: u32) {
        relax(turn);
    }

    /// The first delays of a loop take no time. The next look explores executions in which other
    /// threads run meanwhile, and those in which they do not.
    fn pause(_pauses: u32, turn: u32) {
        if turn >= TURNS_EXPLORED {
            relax(turn);
        }
    }

    #[track_caller]
    fn fence(order: Ordering) {
        match effective(order, "fence", Location::caller()) {
            Ordering::Relaxed => {}
            left => ::loom::sync::atomic::fence(left),
        }
    }

    fn count(event: LockEvent) {
        INSTANCE.with(|i| i.count(event));
    }
}

/// A sleeper lets other threads run until it has been woken up. A sleeper that no thread wakes up
/// shows as an execution without end. It never wakes up for no reason, because that would hide a
/// lost wake-up. Sleeping and waking up order nothing. (loom's own `park` and `unpark` would, and
/// so would hide a missing Release.)
impl Park for Loom {
    #[track_caller]
    fn park(word: &LoomU32, expected: u32) {
        // loom runs no other thread between this look and the entry in the list.
        if word.newest() != expected {
            return;
        }
        let address = std::ptr::from_ref(word).addr();
        let sleep = BESIDES.with(|b| {
            b.sleeps.set(b.sleeps.get() + 1);
            b.sleepers.borrow_mut().push((address, b.sleeps.get()));
            b.sleeps.get()
        });
        while_asleep::<Self>(|| {
            let mut turn = 0;
            while BESIDES.with(|b| b.sleepers.borrow().contains(&(address, sleep))) {
                relax(turn);
                turn += 1;
            }
        });
    }

    fn unpark(word: *const LoomU32, n: u32) {
        for _ in 0..n {
            if !Self::unpark_one(word) {
                return;
            }
        }
    }

    fn unpark_one(word: *const LoomU32) -> bool {
        BESIDES.with(|b| {
            let mut sleepers = b.sleepers.borrow_mut();
            let first = sleepers.iter().position(|(address, _)| *address == word.addr());
            first.map(|first| sleepers.remove(first)).is_some()
        })
    }
}

/// The time passes while the other threads have one turn, unless the sleeper has been woken up by
/// then. The clock then moves for all threads. So a wait with a limit hides a lost wake-up, and
/// models of lost wake-ups have no limits.
impl ParkTimeout for Loom {
    #[track_caller]
    fn park_until(word: &LoomU32, expected: u32, until_ns: u64) {
        if word.newest() != expected {
            return;
        }
        let address = std::ptr::from_ref(word).addr();
        let sleep = BESIDES.with(|b| {
            b.sleeps.set(b.sleeps.get() + 1);
            b.sleepers.borrow_mut().push((address, b.sleeps.get()));
            b.sleeps.get()
        });
        let timeouts = TIMEOUTS.with(|timeouts| timeouts.replace(timeouts.get() + 1));
        if timeouts >= TIMEOUTS_EXPLORED {
            ::loom::skip_branch();
        }
        while_asleep::<Self>(::loom::thread::yield_now);
        BESIDES.with(|b| {
            let mut sleepers = b.sleepers.borrow_mut();
            if let Some(place) = sleepers.iter().position(|sleeper| *sleeper == (address, sleep)) {
                sleepers.remove(place);
                INSTANCE.with(|i| i.now_ns.set(i.now_ns.get().max(until_ns)));
            }
        });
    }
}

/// There is a word for each thread. A light fence, free or not, is a read-modify-write of the
/// thread's own word, a heavy one of the words of all threads. So a heavy fence is ordered against
/// each light one, and light ones are not ordered against each other.
// SAFETY: of a light and a heavy fence, one comes first on the word that both change.
unsafe impl AsymFence for Loom {
    #[track_caller]
    fn light() {
        if !keeps("light fence", Location::caller()) {
            return;
        }
        let slot = Self::thread().slot.expect("a thread that calls fences has a slot") as usize;
        fence_on(&fences()[slot]);
    }
    fn is_light_free() -> bool {
        true
    }
    #[track_caller]
    fn free_light() {
        Self::light();
    }
    #[track_caller]
    fn heavy() {
        if !keeps("heavy fence", Location::caller()) {
            return;
        }
        fences().iter().for_each(fence_on);
    }
}

fn fence_words(slots: u32) -> Arc<[AtomicU32]> {
    (0..slots).map(|_| AtomicU32::new(0)).collect()
}

fn fences() -> Arc<[AtomicU32]> {
    BESIDES.with(|b| INSTANCE.with(|i| b.fences.get(&i.demand, fence_words)))
}

fn fence_on(word: &AtomicU32) {
    // Ordering: AcqRel. Release: what this thread did before is visible to a thread that fences on
    // the word later. Acquire: what a thread that fenced on the word earlier did before is visible
    // to this one.
    word.fetch_add(1, Ordering::AcqRel);
}

impl Clock for Loom {
    fn now_ns() -> u64 {
        INSTANCE.with(|i| i.now_ns.get())
    }
}

impl Topology for Loom {
    fn numa_node() -> u32 {
        THREAD.with(|t| {
            let thread = t.get();
            let numa_node = if thread.migrates { thread.numa_node ^ 1 } else { thread.numa_node };
            t.set(Thread { numa_node, ..thread });
            thread.numa_node
        })
    }
}

impl Random for Loom {
    fn random_u32() -> u32 {
        BESIDES.with(|b| b.random.get())
    }
}

capabilities!(Loom);
