//! The platform of Shuttle, which runs many threads on schedules drawn at random.
//!
//! It finds faults that need more threads than [`mod@crate::loom`] can follow. It shows sleepers
//! that no thread wakes up, nested slow paths and starvation. It shows nothing about orderings: an
//! operation is a place where the scheduler may choose another thread, and then one indivisible
//! step. This is as if all operations were `SeqCst`, so fences do nothing.
//!
//! | asked for | here |
//! |---|---|
//! | a weak compare-exchange | now and then fails for no reason |
//! | a wait | looks, and lets the others run between looks |
//! | a bounded wait | gives up after a random 0 to 3 looks; never, if its bound is the maximum |
//! | sleep | blocks; now and then returns for no reason instead |
//! | clock | moves at random: mostly less than 1 us between two questions, at times up to 20 ms |
//! | NUMA node | one of [`NUMA_NODES`]; a thread that migrates is on another at every question |
//! | random bits | drawn by the engine, so that a replay draws them again |
//! | queue nodes | [`NodeId::NESTING`] per slot, as everywhere |
//! | interrupts | a handler of the model may run while a thread waits ([`Shuttle::interrupt`]) |
//!
//! All threads of a model are coroutines on the thread of the machine that runs the model. The
//! state of an execution is kept in thread-locals, and several models can run at the same time.

pub mod adversary;
pub mod check;
pub mod crowd;
mod words;

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ::shuttle::future::batch_semaphore::{BatchSemaphore, Fairness};
use ::shuttle::rand::RngCore;
use ::shuttle::sync::atomic::AtomicBool;
use ::shuttle::thread::JoinHandle;
use nearlock_core::events::LockEvent;
use nearlock_core::platform::{
    AsymFence, Atomic, Clock, NodeId, Park, ParkTimeout, Platform, Random, Topology,
};
use nearlock_core::settings::Setting;

use crate::engine::{Counter, Engine, Handle, Thread};
use crate::instance::{Instance, capabilities, while_asleep};
use adversary::Watch;

pub use words::{ShuttlePtr, ShuttleU32, ShuttleU64};

/// The number of NUMA nodes that threads are on.
pub const NUMA_NODES: u32 = 3;
/// The largest number of failed looks after which a bounded wait gives up.
const BOUNDED_TURNS: u32 = 3;
/// One in this many weak compare-exchanges fails for no reason.
const FAILS_FOR_NO_REASON: u32 = 8;
/// One in this many sleeps ends for no reason.
const WAKES_FOR_NO_REASON: u32 = 8;
/// One in this many turns of a sleep with a limit is its last.
const TIMES_OUT: u32 = 4;
/// One in this many turns of spinning on an owner is the last.
const SPINS: u32 = 3;
/// One in this many questions moves the clock far.
const LONG_PAUSES: u32 = 16;
const LONG_PAUSE_NS: u32 = 20_000_000;
const SHORT_PAUSE_NS: u32 = 1_000;
/// The same while processors are short: sections are long, but not so long that releases are rare.
const PAUSE_IF_SHORT_NS: u32 = 20_000;

/// The platform; see the [module](self).
#[derive(Debug)]
pub struct Shuttle;

/// The interrupts of threads that wait.
#[derive(Clone)]
struct Interrupts {
    /// One in this many turns of a wait is interrupted.
    once_in: u32,
    left: u32,
    handler: Arc<dyn Fn(u32)>,
}

/// The further state of an execution under Shuttle.
#[derive(Default)]
struct Besides {
    /// A load of this is a place where the scheduler chooses.
    point: RefCell<Arc<AtomicBool>>,
    /// Whether the next operation follows a choice of the scheduler already.
    chosen: Cell<bool>,
    /// The sleepers: the address of the word, and the semaphore that wakes the sleeper up.
    sleepers: RefCell<Vec<(usize, Arc<BatchSemaphore>)>>,
    interrupts: RefCell<Option<Interrupts>>,
    watch: Watch,
}

thread_local! {
    static INSTANCE: Instance<Shuttle> = Instance::default();
    static BESIDES: Besides = Besides::default();
}

::shuttle::thread_local! {
    static THREAD: Cell<Thread> = Cell::new(Thread::default());
    /// Queue nodes in use.
    static DEPTH: Cell<u32> = Cell::new(0);
    /// Interrupts that the thread is in.
    static LEVEL: Cell<u32> = Cell::new(0);
}

impl Shuttle {
    /// A random number below `n`, drawn by the engine.
    pub fn below(n: u32) -> u32 {
        Self::random_u32() % n
    }

    /// Returns true once in `n` times.
    fn once_in(n: u32) -> bool {
        Self::below(n) == 0
    }

    /// From now on a thread that waits may be interrupted, once in `once_in` turns, and `times`
    /// times in all. It then calls `handler` with the number of interrupts that it is in, 1 to
    /// [`NodeId::NESTING`] - 1.
    ///
    /// The handler may use locks that are used only at this level. A thread that waits for a lock
    /// of some level then holds none, so the model itself cannot deadlock.
    pub fn interrupt(once_in: u32, times: u32, handler: impl Fn(u32) + 'static) {
        let interrupts = Interrupts { once_in, left: times, handler: Arc::new(handler) };
        BESIDES.with(|b| b.interrupts.replace(Some(interrupts)));
    }
}

/// May run an interrupt.
fn maybe_interrupt() {
    let level = LEVEL.with(Cell::get) + 1;
    let handler = BESIDES.with(|b| {
        let mut interrupts = b.interrupts.borrow_mut();
        let interrupts = interrupts.as_mut().filter(|now| now.left > 0 && level < NodeId::NESTING)?;
        Shuttle::once_in(interrupts.once_in).then(|| {
            interrupts.left -= 1;
            interrupts.handler.clone()
        })
    });
    if let Some(handler) = handler {
        LEVEL.with(|l| l.set(level));
        handler(level);
        LEVEL.with(|l| l.set(level - 1));
    }
}

/// The scheduler chooses the thread that takes the next step.
fn point() {
    if BESIDES.with(|b| b.chosen.take()) {
        return;
    }
    let point = BESIDES.with(|b| b.point.borrow().clone());
    point.load(Ordering::SeqCst);
}

/// Whether a weak compare-exchange fails, whatever the word holds.
fn fails_for_no_reason() -> bool {
    Shuttle::once_in(FAILS_FOR_NO_REASON)
}

/// A turn of a wait: lets other threads run.
fn pause() {
    maybe_interrupt();
    ::shuttle::thread::yield_now();
}

/// As [`pause`], before another look.
fn pause_and_look<V: Copy>(word: &impl Atomic<V>, order: Ordering) -> V {
    pause();
    BESIDES.with(|b| b.chosen.set(true));
    word.load(order)
}

impl Engine for Shuttle {
    type Counter = ShuttleCounter;
    type Handle = JoinHandle<()>;

    const LEVELS: u32 = NodeId::NESTING;

    fn with_instance<R>(f: impl FnOnce(&Instance<Self>) -> R) -> R {
        INSTANCE.with(f)
    }
    fn with_nodes_in_use<R>(f: impl FnOnce(&Cell<u32>) -> R) -> R {
        DEPTH.with(f)
    }
    fn thread() -> Thread {
        THREAD.with(Cell::get)
    }

    fn has_spun(_turns: u32) -> bool {
        Self::once_in(SPINS)
    }

    fn begin(slots: u32) {
        INSTANCE.with(|i| i.begin(slots));
        BESIDES.with(|b| {
            b.point.replace(Arc::new(AtomicBool::new(false)));
            b.chosen.set(false);
            b.sleepers.borrow_mut().clear();
            b.interrupts.replace(None);
            b.watch.reset();
        });
    }

    fn become_thread(thread: Thread) {
        THREAD.with(|t| t.set(thread));
    }

    fn start(thread: Thread, f: Box<dyn FnOnce() + Send>) -> JoinHandle<()> {
        ::shuttle::thread::spawn(move || {
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

/// Panics if two threads access it at the same time.
#[derive(Default)]
pub struct ShuttleCounter {
    busy: Cell<bool>,
    count: Cell<u32>,
}

// SAFETY: the coroutines of one model run on one thread.
unsafe impl Sync for ShuttleCounter {}

impl Counter for ShuttleCounter {
    fn add_one(&self) {
        assert!(!self.busy.replace(true), "two sections at the same time");
        BESIDES.with(|b| b.watch.enter_section());
        let count = self.count.get();
        point();
        self.count.set(count + 1);
        BESIDES.with(|b| b.watch.leave_section());
        self.busy.set(false);
    }

    fn look(&self) -> u32 {
        let count = self.count.get();
        assert!(!self.busy.get(), "a reader's section while another goes on");
        point();
        assert!(!self.busy.get() && self.count.get() == count, "a section during a reader's");
        count
    }

    fn get(&self) -> u32 {
        self.count.get()
    }
}

// SAFETY: each operation of a word is one step of one thread, and no two steps happen at the same
// time (`words.rs`).
unsafe impl Platform for Shuttle {
    type U32 = ShuttleU32;
    type U64 = ShuttleU64;
    type Ptr<T> = ShuttlePtr<T>;

    fn wait_until<V: Copy>(word: &impl Atomic<V>, order: Ordering, done: impl Fn(V) -> bool) -> V {
        let mut v = word.load(order);
        while !done(v) {
            v = pause_and_look(word, order);
        }
        v
    }

    fn wait_until_bounded<V: Copy>(
        word: &impl Atomic<V>,
        order: Ordering,
        turns: u32,
        done: impl Fn(V) -> bool,
    ) -> V {
        if turns == u32::MAX {
            return Self::wait_until(word, order, done);
        }
        let mut v = word.load(order);
        if !done(v) {
            for _ in 0..Self::below(turns.min(BOUNDED_TURNS) + 1) {
                v = pause_and_look(word, order);
                if done(v) {
                    break;
                }
            }
        }
        v
    }

    fn cpu_relax(_turn: u32) {
        pause();
    }

    fn pause(_pauses: u32, _turn: u32) {
        pause();
    }

    fn fence(_order: Ordering) {}

    fn count(event: LockEvent) {
        INSTANCE.with(|i| i.count(event));
    }
}

/// The caller is about to sleep on the word. Returns the semaphore that will wake it up.
fn bell_at(word: &ShuttleU32) -> Arc<BatchSemaphore> {
    let bell = Arc::new(BatchSemaphore::new(0, Fairness::StrictlyFair));
    let address = std::ptr::from_ref(word).addr();
    BESIDES.with(|b| b.sleepers.borrow_mut().push((address, bell.clone())));
    bell
}

/// A sleeper blocks, so a sleeper that no thread wakes up shows as a deadlock.
impl Park for Shuttle {
    fn park(word: &ShuttleU32, expected: u32) {
        if Self::once_in(WAKES_FOR_NO_REASON) {
            return pause();
        }
        point();
        // No other thread runs between this look and the entry in the list.
        if word.peek() != expected {
            return;
        }
        let bell = bell_at(word);
        while_asleep::<Self>(|| bell.acquire_blocking(1).expect("it is never closed"));
    }

    fn unpark(word: *const ShuttleU32, n: u32) {
        point();
        for _ in 0..n {
            if !wake_one(word.addr()) {
                return;
            }
        }
    }

    fn unpark_one(word: *const ShuttleU32) -> bool {
        point();
        wake_one(word.addr())
    }
}

/// Wakes one of the threads that sleep at this address, if there are any.
fn wake_one(at: usize) -> bool {
    let is_here = |(address, _): &(usize, _)| *address == at;
    let count = BESIDES.with(|b| b.sleepers.borrow().iter().filter(|s| is_here(s)).count());
    if count == 0 {
        return false;
    }
    let chosen = Shuttle::below(count as u32) as usize;
    let (_, bell) = BESIDES.with(|b| {
        let mut sleepers = b.sleepers.borrow_mut();
        let mut candidates = sleepers.iter().enumerate().filter(|(_, s)| is_here(s));
        let (index, _) = candidates.nth(chosen).expect("one of those just counted");
        sleepers.remove(index)
    });
    bell.release(1);
    true
}

/// The time may pass at any turn.
impl ParkTimeout for Shuttle {
    fn park_until(word: &ShuttleU32, expected: u32, until_ns: u64) {
        point();
        if word.peek() != expected {
            return;
        }
        let bell = bell_at(word);
        while_asleep::<Self>(|| {
            while bell.try_acquire(1).is_err() {
                if Self::once_in(TIMES_OUT) {
                    BESIDES.with(|b| b.sleepers.borrow_mut().retain(|(_, other)| !Arc::ptr_eq(other, &bell)));
                    INSTANCE.with(|i| i.now_ns.set(i.now_ns.get().max(until_ns)));
                    return;
                }
                pause();
            }
        });
    }
}

/// The fences do nothing: all threads see all steps in one order.
// SAFETY: all other threads see each step of a thread at once.
unsafe impl AsymFence for Shuttle {
    fn light() {}
    fn is_light_free() -> bool {
        true
    }
    fn heavy() {}
}

impl Clock for Shuttle {
    fn now_ns() -> u64 {
        let most = match Self::with_instance(Instance::shortages) {
            0 if Self::once_in(LONG_PAUSES) => LONG_PAUSE_NS,
            0 => SHORT_PAUSE_NS,
            _ => PAUSE_IF_SHORT_NS,
        };
        let passed = u64::from(Self::below(most));
        INSTANCE.with(|i| {
            i.now_ns.set(i.now_ns.get() + passed);
            i.now_ns.get()
        })
    }
}

impl Topology for Shuttle {
    fn numa_node() -> u32 {
        let thread = Self::thread();
        if thread.migrates { Self::below(NUMA_NODES) } else { thread.numa_node }
    }
}

impl Random for Shuttle {
    fn random_u32() -> u32 {
        ::shuttle::rand::thread_rng().next_u32()
    }
}

capabilities!(Shuttle);
