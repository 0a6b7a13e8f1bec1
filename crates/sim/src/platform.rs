//! `Sim`, the platform that locks are instantiated with.

use std::alloc::Layout;
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering;

use nearlock_core::events::LockEvent;
use nearlock_core::near::attention::AttentionTable;
use nearlock_core::near::rwlock::lines::{ReaderLine, ReaderLines, SLOTS};
use nearlock_core::parking::chain::{Chain, Chains, Family};
use nearlock_core::platform::{
    AsymFence, Atomic, Clock, LentNode, LocalNodes, NodeId, Park, ParkTimeout, Platform, Priority, Random,
    Settings, Switches, Topology, Work, ZeroNode,
};
use nearlock_core::schedule::{Mark, OwnerState, Schedule, Sections, Spin, Stop, ThreadId};
use nearlock_core::settings::{NumaLocality, NumaMode, Setting};
use nearlock_core::shared_holds::{SharedHolds, SharedLock};

use crate::access::{Access, Operation};
use crate::account;
use crate::arena::LINE;
use crate::engine::Engine;
use crate::fences;
use crate::machine::{
    CHAIN_LINES, Inner, leave_if, park, perform, spend_ps, unpark, wait_for_change, wait_for_owner, with,
};
use crate::spec::NodeCount;
use crate::words::Word;

/// The simulated machine that runs on the calling thread.
///
/// Words must lie in its memory (see [`Machine::place`](crate::Machine::place)). While no machine
/// runs, they are plain memory.
#[derive(Debug)]
pub struct Sim;

/// Spends the time that a processor needs to continue after it mispredicts the end of a loop.
fn leave_loop() {
    let exit_ps = with(|inner| inner.spin_exit_ps());
    if exit_ps > 0 {
        spend_ps(exit_ps);
    }
}

// SAFETY: the engine performs each access to memory at one moment, in total store order.
unsafe impl Platform for Sim {
    type U32 = Word<u32>;
    type U64 = Word<u64>;
    type Ptr<T> = Word<*mut T>;

    fn wait_until<V: Copy>(word: &impl Atomic<V>, order: Ordering, done: impl Fn(V) -> bool) -> V {
        let mut v = word.load(order);
        if done(v) {
            return v;
        }
        let _spins = account::spin();
        while !done(v) {
            wait_for_change(ptr::from_ref(word).cast(), None);
            v = word.load(order);
        }
        leave_loop();
        v
    }

    fn wait_until_bounded<V: Copy>(
        word: &impl Atomic<V>,
        order: Ordering,
        turns: u32,
        done: impl Fn(V) -> bool,
    ) -> V {
        let end_ps = with(|inner| inner.now_ps() + u64::from(turns) * inner.pause_ps());
        let mut waited = false;
        loop {
            let v = word.load(order);
            let (now_ps, turn_ps) = with(|inner| (inner.now_ps(), inner.pause_ps()));
            if done(v) || now_ps >= end_ps {
                if waited {
                    leave_loop();
                }
                return v;
            }
            waited = true;
            account::turn();
            let left = (end_ps - now_ps).div_ceil(turn_ps.max(1)) as u32;
            wait_for_change(ptr::from_ref(word).cast(), Some(left));
        }
    }

    fn cpu_relax(_turn: u32) {
        account::turn();
        spend_ps(with(|inner| inner.pause_ps()));
    }

    fn pause(pauses: u32, _turn: u32) {
        let _spins = account::spin();
        spend_ps(with(|inner| inner.pause_ps()) * u64::from(pauses));
    }

    fn count(event: LockEvent) {
        with(|inner| inner.engine.borrow_mut().counters.lock_events[event as usize] += 1);
    }

    fn in_slow_path<R>(f: impl FnOnce() -> R) -> R {
        let _inside = account::enter(account::SLOW_PATH);
        f()
    }

    fn fence(order: Ordering) {
        // The other fences order nothing that this machine does not already keep in order.
        if order == Ordering::SeqCst {
            fences::full();
        }
    }

    fn with_record<N: Default, R>(f: impl FnOnce(&N) -> R) -> R {
        let record = with(|inner| inner.borrow_record(Layout::new::<N>()));
        let place = record.address.cast::<N>();
        // SAFETY: the record has the layout, and belongs to the task until it is given back.
        let r = unsafe {
            place.write(N::default());
            let r = f(&*place);
            place.drop_in_place();
            r
        };
        with(|inner| inner.give_back(record));
        r
    }

    fn prefetch_read<T>(target: *const T) {
        let access =
            Access { offset: 0, width: 1, operation: Operation::PrefetchRead, operand: 0, expected: 0 };
        // SAFETY: as in `prefetch_write`.
        unsafe { perform(target.cast_mut().cast(), access) };
    }

    fn prefetch_write<T>(target: *const T) {
        let access = Access { offset: 0, width: 1, operation: Operation::Prefetch, operand: 0, expected: 0 };
        // SAFETY: a prefetch neither reads nor writes a value.
        unsafe { perform(target.cast_mut().cast(), access) };
    }
}

impl Park for Sim {
    fn park(word: &Word<u32>, expected: u32) {
        park(ptr::from_ref(word).cast(), u64::MAX, || word.load(Ordering::Relaxed) == expected);
    }
    fn unpark(word: *const Word<u32>, n: u32) {
        unpark(word.cast(), n);
    }
    fn unpark_one(word: *const Word<u32>) -> bool {
        unpark(word.cast(), 1) > 0
    }
}

impl ParkTimeout for Sim {
    fn park_until(word: &Word<u32>, expected: u32, until_ns: u64) {
        if Self::now_ns() < until_ns {
            let until_ps = until_ns.saturating_mul(1_000);
            park(ptr::from_ref(word).cast(), until_ps, || word.load(Ordering::Relaxed) == expected);
        }
    }
}

/// The answers are exact. A task that is being switched to does not run yet. A CPU is wanted as
/// soon as its `need_resched` is set.
// SAFETY: each task has its own number; a value is returned if it was loaded and `done` holds.
unsafe impl Schedule for Sim {
    fn thread_id() -> ThreadId {
        ThreadId::new(with(|inner| inner.engine.borrow().current) + 1).expect("not 0")
    }
    fn mark() -> Mark {
        with(|inner| inner.task(|task| task.mark))
    }
    fn set_mark(mark: Mark) {
        with(|inner| inner.task(|task| task.mark = mark));
    }
    fn processor() -> Option<u32> {
        Some(with(|inner| inner.task(|task| task.cpu)))
    }
    fn owner_state(thread: ThreadId) -> OwnerState {
        let runs = with(|inner| inner.engine.borrow().is_running(thread.get() - 1));
        if runs { OwnerState::Running } else { OwnerState::Asleep }
    }
    fn processors() -> u32 {
        with(|inner| inner.processors())
    }
    fn pauses_in(ns: u32) -> u32 {
        (u64::from(ns) * 1000 / with(|inner| inner.pause_ps()).max(1)).clamp(1, u32::MAX.into()) as u32
    }
    fn transfer_ns() -> u32 {
        with(|inner| inner.transfer_ns.get())
    }
    fn set_transfer_ns(ns: u32) {
        with(|inner| inner.transfer_ns.set(ns));
    }
    fn give_way() {
        leave_if(Engine::yield_cpu);
    }
    /// The way into the kernel and back takes as long as a futex call.
    fn sched_yield() {
        let _spins = account::spin();
        spend_ps(with(|inner| inner.engine.borrow().parking.call_ps));
        Self::give_way();
    }
    fn should_give_way(_spin: &mut Spin) -> bool {
        with(|inner| inner.engine.borrow().is_wanted())
    }

    /// The waiter is set aside until the line changes, the owner leaves its CPU, or the waiter's
    /// own CPU is wanted.
    fn spin_on_owner<V: Copy>(
        spin: &mut Spin,
        word: &impl Atomic<V>,
        order: Ordering,
        owner: ThreadId,
        done: impl Fn(V) -> bool,
    ) -> Result<V, Stop> {
        let _spins = account::spin();
        let mut waited = false;
        let result = loop {
            let v = word.load(order);
            if done(v) {
                break Ok(v);
            }
            if Self::owner_state(owner) == OwnerState::Asleep {
                break Err(Stop::OwnerSleeps);
            }
            if Self::should_give_way(spin) {
                break Err(Stop::GiveWay);
            }
            waited = true;
            wait_for_owner(ptr::from_ref(word).cast(), owner.get() - 1);
        };
        if waited {
            leave_loop();
        }
        result
    }
}

// SAFETY: before a heavy side continues, each processor's earlier stores are visible.
unsafe impl AsymFence for Sim {
    fn light() {}
    fn is_light_free() -> bool {
        true
    }
    fn heavy() {
        fences::heavy();
    }
}

impl Clock for Sim {
    fn now_ns() -> u64 {
        with(|inner| inner.now_ps() / 1000)
    }
}

/// Determined by the settings `numa.*`. `auto` means `on`, since on a machine with one NUMA node
/// all threads are on it anyway. A socket is a NUMA node. Takes no time.
impl Topology for Sim {
    fn numa_node() -> u32 {
        with(|inner| {
            if NumaMode::of(inner.setting(Setting::NumaMode)) == NumaMode::Off {
                return 0;
            }
            let cpu = inner.task(|task| task.cpu);
            match NumaLocality::of(inner.setting(Setting::NumaLocality)) {
                NumaLocality::Node => inner.socket_of_cpu(cpu),
                NumaLocality::LastLevelCache => inner.domain_of_cpu(cpu),
                NumaLocality::Synthetic => cpu % inner.setting(Setting::NumaSyntheticNodes) as u32,
            }
        })
    }
}

impl Priority for Sim {
    fn is_priority() -> bool {
        with(|inner| inner.task(|task| task.urgent))
    }
    fn set_priority(urgent: bool) {
        with(|inner| inner.task(|task| task.urgent = urgent));
    }
}

impl Random for Sim {
    fn random_u32() -> u32 {
        with(|inner| {
            inner.task(|task| {
                // Source: Marsaglia, "Xorshift RNGs", 2003.
                let mut x = task.random;
                x ^= x << 13;
                x ^= x >> 17;
                x ^= x << 5;
                task.random = x;
                x
            })
        })
    }
}

impl Settings for Sim {
    fn setting(which: Setting) -> u64 {
        with(|inner| inner.setting(which))
    }
}

// SAFETY: only tasks read switches. They are set before the machine has any task
// (`Machine::set_switches`).
unsafe impl Switches for Sim {
    fn switch(index: usize) -> u64 {
        with(|inner| inner.switch(index))
    }
}

impl Work for Sim {
    fn busy_ns(ns: u64) {
        spend_ps(ns * 1000);
    }
    fn compute_ps(ps: u64) {
        let slowdown = with(|inner| inner.task(|task| task.slowdown));
        spend_ps((ps as f64 * slowdown) as u64);
    }
    fn sleep_ns(ns: u64) {
        leave_if(|engine| {
            engine.sleep(ns.saturating_mul(1000));
            true
        });
    }
    fn preempt() {
        leave_if(Engine::yield_cpu);
    }
    fn may_give_way() {
        leave_if(Engine::offer);
    }
}

impl SharedHolds for Sim {
    fn with_shared_holds<R>(of: SharedLock, f: impl FnOnce(&Cell<u32>) -> R) -> R {
        with(|inner| inner.task(|task| f(&task.shared_holds[of as usize])))
    }
}

/// A task in a section keeps its CPU.
impl Sections for Sim {
    fn enter_section() {
        with(|inner| inner.task(|task| task.sections += 1));
    }
    fn leave_section() {
        with(|inner| inner.engine.borrow_mut().leave_section());
    }
    fn section_depth() -> u32 {
        with(|inner| inner.task(|task| task.sections))
    }
}

// SAFETY: each chain has its own lines in simulated memory, which is never reclaimed.
unsafe impl<F: Family> Chains<F> for Sim {
    /// Chosen by the line of the lock, so that neighbouring locks have different chains.
    fn chain(lock: *const ()) -> *const Chain<Self, F> {
        const { assert!(size_of::<Chain<Self, F>>() <= CHAIN_LINES * LINE) };
        with(|inner| inner.chain(F::TABLE, lock.cast())).cast()
    }

    fn place_in_chain(lock: *const ()) -> u32 {
        // Fibonacci hashing spreads neighbouring lines.
        let line = with(|inner| inner.line_of(lock.cast())) as u64;
        (line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
    }
}

// SAFETY: each chain has its own word in simulated memory, which is never reclaimed.
unsafe impl AttentionTable for Sim {
    fn attention(lock: *const ()) -> *const Self::U32 {
        with(|inner| inner.attention(lock.cast())).cast_const().cast()
    }
}

// SAFETY: each task has its own line in simulated memory, which is never reclaimed.
unsafe impl ReaderLines for Sim {
    type Slots = [Self::U64; SLOTS];

    fn slots_of(value: u64) -> Self::Slots {
        std::array::from_fn(|_| Atomic::new(value))
    }

    /// Each task has one. The search takes no time, as that of a thread natively.
    fn line<'a>() -> &'a ReaderLine<Self> {
        let (line, number) = with(Inner::reader_line);
        let line = line.cast::<ReaderLine<Self>>();
        if let Some(number) = number {
            // SAFETY: nothing else knows the line yet. Making one takes no time.
            unsafe { line.write(ReaderLine::numbered(number)) };
        }
        // SAFETY: the line was made at first.
        unsafe { &*line }
    }

    fn register_line() {}

    fn lines<'a>() -> impl Iterator<Item = &'a ReaderLine<Self>> {
        let lines = with(Inner::reader_lines);
        // SAFETY: as above.
        lines.into_iter().map(|line| unsafe { &*line.cast() })
    }

    fn new_id() -> u64 {
        with(Inner::new_id)
    }

    fn waiting_readers<'a>(id: u64) -> &'a Self::U32 {
        // SAFETY: a word of the table, which is never reclaimed. Zero is valid.
        unsafe { &*with(|inner| inner.waiting_readers(id)).cast() }
    }
}

/// Records how many nodes of the CPU are lent. Unless counting is free, the count is the last word
/// in the line of the CPU's first node. It is loaded and stored, as in the kernel ([`NodeCount`]).
fn count_nodes(slot: u32, lent: u32) {
    with(|inner| inner.task(|task| task.depth = lent));
    let (first, is_free) =
        with(|inner| (inner.node(NodeId { slot, level: 0 }), inner.node_count() == NodeCount::Free));
    if is_free {
        return;
    }
    let access = |operation, operand| Access {
        offset: (LINE - size_of::<u32>()) as u32,
        width: size_of::<u32>() as u8,
        operation,
        operand,
        expected: 0,
    };
    // SAFETY: the line belongs to the nodes of this CPU, and no node extends to its last word.
    unsafe {
        perform(first, access(Operation::Load, 0));
        perform(first, access(Operation::Store, lent.into()));
    }
}

// SAFETY: a set of nodes is lent to one task at a time, and `depth` counts the nodes in use.
unsafe impl<N: ZeroNode> LocalNodes<N> for Sim {
    fn with_node<R>(f: impl FnOnce(Option<LentNode<N>>) -> R) -> R {
        let (had, level) = with(|inner| inner.task(|task| (task.nodes, task.depth)));
        if level == NodeId::NESTING {
            return f(None);
        }
        let lent = if level == 0 { with(Inner::lend_nodes) } else { Some(had) };
        let Some(slot) = lent else { return f(None) };
        count_nodes(slot, level + 1);
        let id = NodeId { slot, level };
        let result = f(Some(LentNode { id, node: Self::node(id) }));
        count_nodes(slot, level);
        if level == 0 {
            with(|inner| inner.give_back_nodes(slot));
        }
        result
    }

    /// Each node has a line to itself. The kernel packs the four nodes of a CPU into one or two
    /// lines.
    fn node(id: NodeId) -> *const N {
        const { assert!(size_of::<N>() <= LINE - size_of::<u32>() && align_of::<N>() <= LINE) };
        with(|inner| inner.node(id)).cast()
    }
}
