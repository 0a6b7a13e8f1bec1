//! The capabilities of the platform, each with its implementation.

use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use core::time::Duration;

use nearlock_core::events::LockEvent;
use nearlock_core::lockstat::Hooks;
use nearlock_core::native::{Native, Wait};
use nearlock_core::near::attention::AttentionTable;
use nearlock_core::near::rwlock::lines::{ReaderLine, ReaderLines, SLOTS};
use nearlock_core::parking::chain::{Chain, Chains, Family};
use nearlock_core::platform::{
    AsymFence, Atomic, Clock, LentNode, LocalNodes, NodeId, Park, ParkTimeout, Platform, Priority, Random,
    Settings, Switches, Topology, ZeroNode,
};
use nearlock_core::schedule::{Mark, OwnerState, Schedule, Sections, Spin, ThreadId};
use nearlock_core::settings::Setting;
use nearlock_core::shared_holds::{SharedHolds, SharedLock};
use nearlock_core::unwinding::without_unwinding;

use crate::pause::pause_ns;
use crate::{Os, chains, fences, local, numa, random, readers, settings, shortage, switches, sys, thread};

/// Looks at a word, or pauses, between two readings of the clock, which costs as much as several of
/// them. With a larger number a spinner would overrun its budget by longer.
const LOOKS_PER_CLOCK: u32 = 32;

/// The number that `ask` returned the first time. `known` is 0 before.
fn asked_once(known: &AtomicU32, ask: fn() -> u32) -> u32 {
    let mut number = known.load(Ordering::Relaxed);
    if number == 0 {
        number = ask();
        known.store(number, Ordering::Relaxed);
    }
    number
}

/// Whether only one thread of the process can run at a time. This depends on the quota at the first
/// question, and on the affinity of the caller and of the process' first thread. While the answer
/// is yes, the affinity is asked for again: perhaps only these two threads are bound to the same
/// processor.
fn runs_one_at_a_time() -> bool {
    /// A number above one, or 0.
    static AFFINITY: AtomicU32 = AtomicU32::new(0);
    if quota() == 1 {
        return true;
    }
    if AFFINITY.load(Ordering::Relaxed) > 1 {
        return false;
    }
    let processors = sys::processors_of_process().unwrap_or_else(sys::processors);
    if processors > 1 {
        AFFINITY.store(processors, Ordering::Relaxed);
    }
    processors <= 1
}

/// How many processors the quota of the process allows, as it was at the first question.
fn quota() -> u32 {
    static QUOTA: AtomicU32 = AtomicU32::new(0);
    asked_once(&QUOTA, sys::processors_of_quota)
}

// SAFETY: the words are `core`'s own, and waiting is that of `Native`.
unsafe impl<W: Wait> Platform for Os<W> {
    type U32 = AtomicU32;
    type U64 = AtomicU64;
    type Ptr<T> = AtomicPtr<T>;

    #[inline(always)]
    fn wait_until<V: Copy>(word: &impl Atomic<V>, order: Ordering, done: impl Fn(V) -> bool) -> V {
        Native::<W>::wait_until(word, order, done)
    }

    #[inline(always)]
    fn wait_until_bounded<V: Copy>(
        word: &impl Atomic<V>,
        order: Ordering,
        turns: u32,
        done: impl Fn(V) -> bool,
    ) -> V {
        Native::<W>::wait_until_bounded(word, order, turns, done)
    }

    #[inline(always)]
    fn cpu_relax(turn: u32) {
        Native::<W>::cpu_relax(turn);
    }

    #[inline(always)]
    fn fence(order: Ordering) {
        Native::<W>::fence(order);
    }

    #[inline(always)]
    fn fence_after_rmw(order: Ordering) {
        Native::<W>::fence_after_rmw(order);
    }

    #[inline(always)]
    fn prefetch_read<T>(target: *const T) {
        Native::<W>::prefetch_read(target);
    }

    #[inline(always)]
    fn prefetch_write<T>(target: *const T) {
        Native::<W>::prefetch_write(target);
    }

    #[inline]
    fn count(event: LockEvent) {
        thread::count(event);
    }
}

/// Calls `sleep` without unwinding, because other threads may refer to this thread as a waiter.
#[inline(always)]
fn asleep<W: Wait, R>(sleep: impl FnOnce() -> R) -> R {
    without_unwinding(|| thread::asleep(|| W::Hooks::asleep(sleep)))
}

/// See [`Schedule::transfer_ns`].
static TRANSFER_NS: AtomicU32 = AtomicU32::new(0);

impl<W: Wait> Park for Os<W> {
    #[inline]
    fn park(word: &AtomicU32, expected: u32) {
        without_unwinding(W::before_sleep);
        asleep::<W, _>(|| sys::futex_wait(word, expected, None));
    }
    #[inline]
    fn unpark(word: *const AtomicU32, n: u32) {
        sys::futex_wake(word, n);
    }
    #[inline]
    fn unpark_one(word: *const AtomicU32) -> bool {
        sys::futex_wake(word, 1) > 0
    }
}

impl<W: Wait> ParkTimeout for Os<W> {
    fn park_until(word: &AtomicU32, expected: u32, until_ns: u64) {
        without_unwinding(W::before_sleep);
        let left = Duration::from_nanos(until_ns.saturating_sub(sys::now_ns()));
        asleep::<W, _>(|| sys::futex_wait(word, expected, Some(left)));
    }
}

/// A thread is known to sleep while it is in [`Park::park`]. Of other threads nothing is known, and
/// spinning has a budget: `spin.budget-ns`.
// SAFETY: no two living threads of the process have the same number, and it is less than 2^28
// (`thread`). There is at least 1 processor.
unsafe impl<W: Wait> Schedule for Os<W> {
    #[inline]
    fn thread_id() -> ThreadId {
        thread::id()
    }
    #[inline(always)]
    fn mark() -> Mark {
        local::mark()
    }
    #[inline]
    fn set_mark(mark: Mark) {
        local::set_mark(mark);
    }
    fn note_shortage(period: u32) -> u32 {
        shortage::note(period)
    }
    fn processor() -> Option<u32> {
        sys::processor()
    }
    #[inline]
    fn owner_state(thread: ThreadId) -> OwnerState {
        thread::owner_state(thread)
    }
    fn processors() -> u32 {
        /// 0: not asked yet.
        static PROCESSORS: AtomicU32 = AtomicU32::new(0);
        asked_once(&PROCESSORS, sys::processors)
    }
    /// The least of the quota, as it was at the first question, and of the affinity of the caller
    /// and of the process' first thread.
    fn processors_of_process() -> u32 {
        quota().min(sys::processors_of_process().unwrap_or_else(Self::processors))
    }
    /// The length of a pause is measured by the first caller.
    fn pauses_in(ns: u32) -> u32 {
        ((f64::from(ns) / pause_ns()) as u32).max(1)
    }
    #[inline]
    fn transfer_ns() -> u32 {
        TRANSFER_NS.load(Ordering::Relaxed)
    }
    fn set_transfer_ns(ns: u32) {
        TRANSFER_NS.store(ns, Ordering::Relaxed);
    }

    #[inline]
    fn should_give_way(spin: &mut Spin) -> bool {
        spin.turns = spin.turns.wrapping_add(1);
        spin.since_clock = spin.since_clock.saturating_add(1);
        let is_first = spin.until_ns == 0 && spin.since_clock == 1;
        if is_first && (runs_one_at_a_time() || settings::setting(Setting::SpinBudgetNs) == 0) {
            // The thread that is waited for can hardly run meanwhile, or no thread is to spin.
            return true;
        }
        if spin.since_clock < LOOKS_PER_CLOCK {
            return false;
        }
        spin.since_clock = 0;
        let now_ns = sys::now_ns();
        if spin.until_ns == 0 {
            // The budget begins now, and not with the first look: most spins are over before.
            spin.until_ns = now_ns.saturating_add(settings::setting(Setting::SpinBudgetNs));
        }
        now_ns >= spin.until_ns
    }
}

impl<W: Wait> Sections for Os<W> {
    #[inline]
    fn enter_section() {
        thread::enter_section();
    }
    #[inline]
    fn leave_section() {
        thread::leave_section();
    }
    #[inline]
    fn section_depth() -> u32 {
        thread::section_depth()
    }
    /// Does nothing: a thread that has forgotten a guard is in a section forever, and may sleep in
    /// other locks.
    #[inline(always)]
    fn assert_may_sleep() {}
}

impl<W: Wait> SharedHolds for Os<W> {
    #[inline(always)]
    fn with_shared_holds<R>(of: SharedLock, f: impl FnOnce(&Cell<u32>) -> R) -> R {
        thread::with_shared_holds(of, f)
    }
}

// SAFETY: the tables are statics. A chain consists of words, which are the same for all `W`.
unsafe impl<W: Wait, F: Family> Chains<F> for Os<W> {
    #[inline]
    fn chain(lock: *const ()) -> *const Chain<Self, F> {
        chains::room::<F>(lock).chain()
    }

    #[inline]
    fn chain_to_lock(lock: *const ()) -> *const Chain<Self, F> {
        chains::note_use::<F>();
        Self::chain(lock)
    }

    #[inline]
    fn place_in_chain(lock: *const ()) -> u32 {
        chains::place_in_chain(lock)
    }
}

// SAFETY: the table is a static, with a word for each chain. In a child made by `fork`, it is
// cleared if a chain of the family was ever locked. Otherwise no release has set another bit than
// `light`.
unsafe impl<W: Wait> AttentionTable for Os<W> {
    #[inline]
    fn attention(lock: *const ()) -> *const Self::U32 {
        ptr::from_ref(chains::attention(lock)).cast()
    }
}

// SAFETY: each slot has a line, and is leased to one thread at a time. The lines are never freed.
// All platforms of this crate have the words of `Native`.
unsafe impl<W: Wait> ReaderLines for Os<W> {
    type Slots = [AtomicU64; SLOTS];

    fn slots_of(value: u64) -> Self::Slots {
        core::array::from_fn(|_| AtomicU64::new(value))
    }
    #[inline(always)]
    fn line<'a>() -> &'a ReaderLine<Self> {
        // SAFETY: as above.
        unsafe { &*local::line().cast() }
    }
    fn register_line() {
        thread::register_thread();
    }
    fn lines<'a>() -> impl Iterator<Item = &'a ReaderLine<Self>> {
        // SAFETY: as above.
        thread::lines().map(|line| unsafe { &*line.cast() })
    }
    fn new_id() -> u64 {
        readers::new_id()
    }
    #[inline(always)]
    fn waiting_readers<'a>(id: u64) -> &'a AtomicU32 {
        readers::waiting(id)
    }
}

// SAFETY: see the argument in `fences`.
unsafe impl<W: Wait> AsymFence for Os<W> {
    #[inline(always)]
    fn light() {
        fences::light();
    }
    #[inline]
    fn is_light_free() -> bool {
        fences::is_light_free()
    }
    #[inline(always)]
    fn free_light() {
        fences::free_light();
    }
    #[inline]
    fn heavy() {
        fences::heavy();
    }
}

impl<W: Wait> Clock for Os<W> {
    #[inline]
    fn now_ns() -> u64 {
        sys::now_ns()
    }
}

impl<W: Wait> Topology for Os<W> {
    #[inline]
    fn numa_node() -> u32 {
        numa::numa_node()
    }
}

impl<W: Wait> Priority for Os<W> {
    #[inline]
    fn is_priority() -> bool {
        thread::is_priority()
    }
    #[inline]
    fn set_priority(urgent: bool) {
        thread::set_priority(urgent);
    }
}

impl<W: Wait> Random for Os<W> {
    #[inline]
    fn random_u32() -> u32 {
        random::random_u32()
    }
}

impl<W: Wait> Settings for Os<W> {
    #[inline]
    fn setting(which: Setting) -> u64 {
        settings::setting(which)
    }
}

// SAFETY: by the condition of `switches::set`.
unsafe impl<W: Wait> Switches for Os<W> {
    #[inline]
    fn switch(index: usize) -> u64 {
        switches::switch(index)
    }
}

// SAFETY: a slot belongs to one thread, which counts the nodes that it has lent. Slots are never
// freed.
unsafe impl<W: Wait, N: ZeroNode> LocalNodes<N> for Os<W> {
    #[inline]
    fn with_node<R>(f: impl FnOnce(Option<LentNode<N>>) -> R) -> R {
        thread::with_node(f)
    }

    #[inline]
    fn node(id: NodeId) -> *const N {
        thread::node(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spin;
    use nearlock_collection::subjects::EveryCapability;
    use nearlock_core::schedule;

    fn has_every_capability<P: EveryCapability>() {}

    #[test]
    fn every_waiting_policy_has_every_capability() {
        has_every_capability::<Os>();
        has_every_capability::<Os<Spin>>();
    }

    #[test]
    fn the_clock_does_not_go_back() {
        let before = <Os>::now_ns();
        assert!(<Os>::now_ns() >= before);
    }

    #[test]
    fn there_are_as_many_processors_as_before() {
        assert!(<Os>::processors() > 0);
        assert_eq!(<Os>::processors(), <Os>::processors());
        assert!((1..=<Os>::processors()).contains(&<Os>::processors_of_process()));
    }

    /// A spinner whose budget is spent, but that has not read the clock since.
    fn overdue() -> schedule::Spin {
        schedule::Spin { until_ns: 1, ..schedule::Spin::default() }
    }

    /// Most spins are over before. A reading takes longer than several looks.
    #[test]
    fn the_budget_begins_with_the_first_reading_of_the_clock() {
        let mut spin = schedule::Spin::default();
        let gave_way = (1..LOOKS_PER_CLOCK).any(|_| <Os>::should_give_way(&mut spin));
        assert!(gave_way == runs_one_at_a_time() && spin.until_ns == 0);
        <Os>::should_give_way(&mut spin);
        assert!(spin.until_ns != 0);
    }

    #[test]
    fn a_spent_budget_is_noticed_at_the_next_look_at_the_clock() {
        let mut spin = overdue();
        let turns = (1..).find(|_| <Os>::should_give_way(&mut spin));
        assert_eq!(turns, Some(LOOKS_PER_CLOCK));
    }

    #[test]
    fn pauses_bring_the_next_look_at_the_clock_nearer() {
        let mut spin = overdue();
        spin.paused(LOOKS_PER_CLOCK / 2);
        let turns = (1..).find(|_| <Os>::should_give_way(&mut spin));
        assert_eq!(turns, Some(LOOKS_PER_CLOCK / 2));

        let mut spin = overdue();
        spin.paused(1024);
        assert!(<Os>::should_give_way(&mut spin), "a long delay");
    }

    #[test]
    fn a_delay_is_a_pause_at_least_and_as_many_as_it_lasts() {
        assert_eq!(<Os>::pauses_in(0), 1);
        let pause_ns = pause_ns().ceil() as u32;
        let pauses = [1, 10, 100, 1000].map(|pauses| <Os>::pauses_in(pause_ns.saturating_mul(pauses)));
        assert!(pauses.is_sorted() && pauses[3] > pauses[0], "{pauses:?}");
    }

    #[test]
    fn sections_belong_to_the_thread() {
        <Os>::enter_section();
        <Os>::enter_section();
        std::thread::spawn(|| assert_eq!(<Os>::section_depth(), 0)).join().unwrap();
        assert_eq!(<Os>::section_depth(), 2);
        <Os>::leave_section();
        <Os>::leave_section();
        assert_eq!(<Os>::section_depth(), 0);
    }

    #[test]
    fn priority_belongs_to_the_thread() {
        <Os>::set_priority(true);
        assert!(<Os>::is_priority());
        std::thread::spawn(|| assert!(!<Os>::is_priority())).join().unwrap();
        <Os>::set_priority(false);
        assert!(!<Os>::is_priority());
    }
}
