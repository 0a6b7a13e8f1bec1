//! locktorture: the kernel's torture test of one lock.
//!
//! ```text
//! loop {  1 in 2^20: sleep a tick
//!         lock
//!         write_held set?  count a failure      (a line that all writers write)
//!         write_held = 1
//!         acquired += 1                         (16 bytes a writer, four writers to a line)
//!         1 in W * 2000 * long_hold: busy for long_hold
//!         1 in W * divisor:          busy for 2 us
//!         1 in W * 20000:            offer the processor
//!         write_held = 0
//!         unlock  }                             (W: number of writers)
//! ```
//! These are the writers of a spin lock. The writers of a sleeping lock hold it for [longer](Kind),
//! and never for 2 us. A lock with readers also has R readers:
//!
//! ```text
//! loop {  1 in 2^20: sleep a tick
//!         lock shared
//!         read_held += 1                        (a writer counts a failure unless it is 0)
//!         write_held set?  count a failure
//!         acquired += 1
//!         1 in R * 2000 * long_hold:     busy for twice long_hold
//!         or 1 in R * 1000 * long_hold:  busy for half of long_hold
//!         1 in R * 20000:                offer the processor
//!         read_held -= 1
//!         unlock shared  }
//! ```
//! The kernel's readers hold an rwsem for half of `long_hold` whenever they do not hold it for
//! longer. With the kernel's 100 ms, a lock would change hands only a few times a second. Here such
//! holds are rarer in proportion to their length.
//!
//! Source: the random numbers, the order of the accesses and the layout of the statistics follow
//! Linux' `kernel/locking/locktorture.c`, from a description in own words. The constants of two
//! eras differ ([`ShortHolds`]).

use core::sync::atomic::Ordering::Relaxed;

use nearlock_core::platform::{Atomic, AtomicInt, Platform, Priority, Work};
use nearlock_core::raw::RawLock;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::Observer;

/// How often a writer holds the lock for 2 us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShortHolds {
    /// Never: writers of sleeping locks.
    Never,
    /// Once in 4 W sections: kernels up to the 5.10 of the published CNA table.
    V5_10,
    /// Once in 400 W sections: kernels of today.
    Today,
}

impl ShortHolds {
    fn divisor(self) -> Option<u64> {
        match self {
            ShortHolds::Never => None,
            ShortHolds::V5_10 => Some(4),
            ShortHolds::Today => Some(400),
        }
    }
}

/// Treatment of the rare long holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongHolds {
    /// Long holds happen.
    Made {
        /// Length of the user's long hold in ms, 1 or more. It determines how rare they are.
        ms: u64,
        /// Length of a hold as a multiple of `ms`.
        times: u64,
    },
    /// Long holds are left out. If only their mean matters, [`LongHolds::MEAN_NS`] divided by the
    /// number of writers must be added to each operation: 100 ms once in 200,000 W sections.
    LeftOut,
}

impl LongHolds {
    /// Average time of long holds per section, multiplied by the number of writers. The way they
    /// are drawn makes it independent of their length.
    pub const MEAN_NS: f64 = 500.0;
}

/// The kind of lock in the kernel's test. The kinds differ in their hold times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A spin lock: short holds, and sometimes a long one.
    Spin,
    /// A mutex: long holds are five times as long.
    Mutex,
    /// A sleeping lock with readers: long holds of writers are ten times as long, and those of
    /// readers twice.
    RwSem,
}

impl Kind {
    /// The short holds of its writers, in today's kernels.
    pub fn short_holds(self) -> ShortHolds {
        match self {
            Kind::Spin => ShortHolds::Today,
            Kind::Mutex | Kind::RwSem => ShortHolds::Never,
        }
    }

    /// Length of its writers' long holds as a multiple of `long_hold`.
    pub fn long_write_times(self) -> u64 {
        match self {
            Kind::Spin => 1,
            Kind::Mutex => 5,
            Kind::RwSem => 10,
        }
    }
}

/// Length of readers' long holds as a multiple of `long_hold`.
pub const LONG_READ_TIMES: u64 = 2;

/// Parameters of a run.
#[derive(Clone, Debug)]
pub struct Params {
    /// Number of threads of the same kind: W above for writers, R for readers.
    pub writers: u64,
    /// Frequency of short holds.
    pub short_holds: ShortHolds,
    /// Treatment of long holds.
    pub long_holds: LongHolds,
    /// Time in ns of instructions inside a section, without the accesses above (three random
    /// numbers with a division each, bookkeeping). Only for the simulator; varies by up to 10 % in
    /// both directions.
    pub section_ns: u64,
    /// Time in ns of instructions outside a section. Only for the simulator; varies by up to 20 %
    /// in both directions.
    pub think_ns: u64,
    /// A scheduler tick, in ns.
    pub tick_ns: u64,
    /// Number of urgent acquisitions in 100.
    pub priority_percent: u64,
}

/// Length of a short hold, in ns.
pub const SHORT_HOLD_NS: u64 = 2_000;

/// A value on its own cache lines.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct OwnLine<T>(pub T);

/// State that the writers share. All bits zero is its initial state, as `default` makes it.
#[repr(C)]
pub struct TortureState<P: Platform, L> {
    lock: OwnLine<L>,
    write_held: OwnLine<P::U32>,
}

impl<P: Platform, L: RawLock> Default for TortureState<P, L> {
    fn default() -> Self {
        Self { lock: OwnLine(L::default()), write_held: OwnLine(Atomic::new(0)) }
    }
}

/// A writer's statistics: 16 bytes, so that four writers share a cache line, as in the original.
#[repr(C)]
pub struct Stats<P: Platform> {
    failures: P::U64,
    acquired: P::U64,
}

impl<P: Platform> Default for Stats<P> {
    fn default() -> Self {
        Self { failures: Atomic::new(0), acquired: Atomic::new(0) }
    }
}

impl<P: Platform> Stats<P> {
    /// Number of acquisitions.
    pub fn acquired(&self) -> u64 {
        self.acquired.load(Relaxed)
    }
    /// Number of times that another holder was seen at the same time.
    pub fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }
}

/// Number of readers that hold the lock. Zero bytes: no reader.
#[repr(C)]
pub struct ReadHeld<P: Platform>(OwnLine<P::U32>);

impl<P: Platform> Default for ReadHeld<P> {
    fn default() -> Self {
        Self(OwnLine(Atomic::new(0)))
    }
}

impl<P: Platform, L> TortureState<P, L> {
    /// The lock.
    pub fn lock(&self) -> &L {
        &self.lock.0
    }

    /// Runs `section` as a reader. Returns whether no writer was seen at the same time.
    pub fn read(&self, read_held: &ReadHeld<P>, section: impl FnOnce()) -> bool {
        let ReadHeld(OwnLine(count)) = read_held;
        count.fetch_add(1, Relaxed);
        let without_writer = self.write_held.0.load(Relaxed) == 0;
        section();
        count.fetch_sub(1, Relaxed);
        without_writer
    }
}

/// A thread's access to the lock: the operations by which it locks and unlocks. It also
/// observes.
pub trait Hand<L: RawLock>: Observer {
    /// Locks the lock, shared if the thread is a reader. Returns false if the thread gave up.
    /// The section is then skipped.
    ///
    /// # Safety
    ///
    /// See [`RawLock::lock`], if it returns true.
    unsafe fn acquire(&mut self, lock: &L, node: &L::Node) -> bool;

    /// Unlocks the lock.
    ///
    /// # Safety
    ///
    /// The thread has locked the lock by [`acquire`](Self::acquire) with this node.
    unsafe fn release(&mut self, lock: &L, node: &L::Node);
}

/// Locks and unlocks.
struct Plain<'a, O>(&'a mut O);

impl<O: Observer> Observer for Plain<'_, O> {
    #[inline(always)]
    fn waiting(&mut self) {
        self.0.waiting();
    }
    #[inline(always)]
    fn acquired(&mut self) {
        self.0.acquired();
    }
    #[inline(always)]
    fn releasing(&mut self) {
        self.0.releasing();
    }
    #[inline(always)]
    fn goes_on(&mut self) -> bool {
        self.0.goes_on()
    }
}

impl<L: RawLock, O: Observer> Hand<L> for Plain<'_, O> {
    #[inline(always)]
    unsafe fn acquire(&mut self, lock: &L, node: &L::Node) -> bool {
        // SAFETY: by the caller's promise, also below.
        unsafe { lock.lock(node) };
        true
    }
    #[inline(always)]
    unsafe fn release(&mut self, lock: &L, node: &L::Node) {
        // SAFETY: as above.
        unsafe { lock.unlock(node) };
    }
}

/// One thread, a writer or a reader.
struct Torturer<'a, P: Platform, L: RawLock> {
    shared: &'a TortureState<P, L>,
    read_held: Option<&'a ReadHeld<P>>,
    stats: &'a Stats<P>,
    node: &'a L::Node,
    params: &'a Params,
    rng: Xoshiro256PlusPlus,
}

/// One writer.
pub struct Writer<'a, P: Platform, L: RawLock>(Torturer<'a, P, L>);

impl<'a, P: Work + Priority, L: RawLock> Writer<'a, P, L> {
    /// A writer whose random numbers follow from `seed`. The node belongs exclusively to it. No
    /// other thread writes the statistics.
    pub fn new(
        shared: &'a TortureState<P, L>,
        stats: &'a Stats<P>,
        node: &'a mut L::Node,
        params: &'a Params,
        seed: u64,
    ) -> Self {
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self(Torturer { shared, read_held: None, stats, node, params, rng })
    }

    /// The same for a lock that also has readers.
    pub fn with_readers(mut self, read_held: &'a ReadHeld<P>) -> Self {
        self.0.read_held = Some(read_held);
        self
    }

    /// Locks, holds and unlocks until the observer ends the run.
    pub fn run(&mut self, observer: &mut impl Observer) {
        self.run_by(&mut Plain(observer));
    }

    /// The same with other operations than `lock` and `unlock`.
    pub fn run_by(&mut self, hand: &mut impl Hand<L>) {
        self.0.run(hand, Torturer::write);
    }
}

/// One reader.
pub struct Reader<'a, P: Platform, L: RawLock> {
    torturer: Torturer<'a, P, L>,
    read_held: &'a ReadHeld<P>,
}

impl<'a, P: Work + Priority, L: RawLock> Reader<'a, P, L> {
    /// A reader whose random numbers follow from `seed`. The node belongs exclusively to it. No
    /// other thread writes the statistics. The parameters contain the number of readers.
    pub fn new(
        shared: &'a TortureState<P, L>,
        read_held: &'a ReadHeld<P>,
        stats: &'a Stats<P>,
        node: &'a mut L::Node,
        params: &'a Params,
        seed: u64,
    ) -> Self {
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let torturer = Torturer { shared, read_held: Some(read_held), stats, node, params, rng };
        Self { torturer, read_held }
    }

    /// Locks, holds and unlocks until the hand ends the run.
    pub fn run_by(&mut self, hand: &mut impl Hand<L>) {
        let read_held = self.read_held;
        self.torturer.run(hand, |torturer| torturer.read(read_held));
    }
}

impl<P: Work + Priority, L: RawLock> Torturer<'_, P, L> {
    #[inline(always)]
    fn run(&mut self, hand: &mut impl Hand<L>, section: impl Fn(&mut Self)) {
        loop {
            if self.one_in(1 << 20) {
                P::sleep_ns(self.params.tick_ns);
            }
            let think_ns = self.vary(self.params.think_ns, 20);
            P::compute_ns(think_ns);
            if self.params.priority_percent > 0 {
                let urgent = self.rng.next_u64() % 100 < self.params.priority_percent;
                P::set_priority(urgent);
            }
            hand.waiting();
            // SAFETY: the node was borrowed exclusively, so it is this thread's own and stays in
            // place.
            if unsafe { hand.acquire(&self.shared.lock.0, self.node) } {
                hand.acquired();
                section(self);
                hand.releasing();
                // SAFETY: locked above with this node.
                unsafe { hand.release(&self.shared.lock.0, self.node) };
            }
            if !hand.goes_on() {
                return;
            }
        }
    }

    fn write(&mut self) {
        let write_held = &self.shared.write_held.0;
        let others_write = write_held.load(Relaxed) != 0;
        if others_write || self.read_held.is_some_and(|held| held.0.0.load(Relaxed) != 0) {
            self.stats.failures.fetch_add(1, Relaxed);
        }
        write_held.store(1, Relaxed);
        self.count();
        self.delay();
        write_held.store(0, Relaxed);
    }

    fn read(&mut self, read_held: &ReadHeld<P>) {
        let (shared, stats) = (self.shared, self.stats);
        let without_writer = shared.read(read_held, || {
            self.count();
            self.read_delay();
        });
        if !without_writer {
            stats.failures.fetch_add(1, Relaxed);
        }
    }

    fn count(&mut self) {
        let acquired = self.stats.acquired.load(Relaxed);
        self.stats.acquired.store(acquired + 1, Relaxed);
        let section_ns = self.vary(self.params.section_ns, 10);
        P::compute_ns(section_ns);
    }

    fn delay(&mut self) {
        let writers = self.params.writers;
        if let LongHolds::Made { ms, times } = self.params.long_holds
            && self.one_in(writers * 2_000 * ms)
        {
            P::busy_ns(ms * times * 1_000_000);
        }
        if let Some(divisor) = self.params.short_holds.divisor()
            && self.one_in(writers * divisor)
        {
            P::busy_ns(SHORT_HOLD_NS);
        }
        if self.one_in(writers * 20_000) {
            P::preempt();
        }
    }

    fn read_delay(&mut self) {
        let readers = self.params.writers;
        if let LongHolds::Made { ms, times } = self.params.long_holds {
            if self.one_in(readers * 2_000 * ms) {
                P::busy_ns(ms * times * 1_000_000);
            } else if self.one_in(readers * 1_000 * ms) {
                P::busy_ns(ms * 500_000);
            }
        }
        if self.one_in(readers * 20_000) {
            P::preempt();
        }
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.rng.next_u64().is_multiple_of(n)
    }

    /// `ns`, changed at random by up to `percent` in both directions.
    fn vary(&mut self, ns: u64, percent: u64) -> u64 {
        let spread = ns * percent / 100;
        ns - spread + self.rng.next_u64() % (2 * spread + 1)
    }
}
