//! locktorture: the kernel's torture test of one lock, its spin lock writers.
//!
//! ```text
//! loop {  1 in 2^20: sleep a tick
//!         lock
//!         write_held set?  count a failure      (a line that all writers write)
//!         write_held = 1
//!         acquired += 1                         (16 bytes a writer, four writers to a line)
//!         1 in W * 2000 * long_hold: busy for long_hold
//!         1 in W * 2 * divisor:      busy for 2 us
//!         1 in W * 20000:            offer the processor
//!         write_held = 0
//!         unlock  }                             (W: number of writers)
//! ```
//! Source: the draws, the order of the accesses and the layout of the statistics follow Linux'
//! `kernel/locking/locktorture.c`, from a description in own words; the constants of two eras differ
//! ([`ShortHolds`]).

use core::sync::atomic::Ordering::Relaxed;

use nearlock_core::platform::{Atomic, AtomicInt, Platform, Priority, Work};
use nearlock_core::raw::RawLock;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::Observer;

/// How often a writer holds the lock for 2 us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShortHolds {
    /// Once in 4 W sections: kernels up to the 5.10 of the published CNA table.
    V5_10,
    /// Once in 400 W sections: kernels of today.
    Today,
}

impl ShortHolds {
    fn divisor(self) -> u64 {
        match self {
            ShortHolds::V5_10 => 4,
            ShortHolds::Today => 400,
        }
    }
}

/// What happens to the rare long holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongHolds {
    /// They are made. The value is their length in milliseconds, 1 or more.
    Made {
        /// Length of one hold.
        ms: u64,
    },
    /// They are left out. Where only their mean counts, [`LongHolds::MEAN_NS`] divided by the number of
    /// writers is to be added to each operation: 100 ms once in 200,000 W sections.
    LeftOut,
}

impl LongHolds {
    /// What long holds take on average from each section, times the number of writers. Independent of
    /// their length, by the way they are drawn.
    pub const MEAN_NS: f64 = 500.0;
}

/// Parameters of a run.
#[derive(Clone, Debug)]
pub struct Params {
    /// Number of writers, W above.
    pub writers: u64,
    /// How often short holds happen.
    pub short_holds: ShortHolds,
    /// Whether long holds happen.
    pub long_holds: LongHolds,
    /// Instructions inside a section beside the accesses above (drawing three random numbers with a
    /// division each, bookkeeping), in ns. Only simulated; varies by 10 % either way.
    pub section_ns: u64,
    /// Instructions outside, in ns. Only simulated; varies by 20 % either way.
    pub think_ns: u64,
    /// A scheduler tick, in ns.
    pub tick_ns: u64,
    /// Of 100 acquisitions, how many are urgent.
    pub priority_percent: u64,
}

/// Length of a short hold, in ns.
pub const SHORT_HOLD_NS: u64 = 2_000;

/// Something on cache lines of its own.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct OwnLine<T>(pub T);

/// What the writers share. All bits zero is its initial state, as `default` makes it.
#[repr(C)]
pub struct Shared<P: Platform, L> {
    lock: OwnLine<L>,
    write_held: OwnLine<P::U32>,
}

impl<P: Platform, L: RawLock> Default for Shared<P, L> {
    fn default() -> Self {
        Self { lock: OwnLine(L::default()), write_held: OwnLine(Atomic::new(0)) }
    }
}

/// A writer's statistics: 16 bytes, so that four writers share a line, as in the original.
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
    /// How often the lock was acquired.
    pub fn acquired(&self) -> u64 {
        self.acquired.load(Relaxed)
    }
    /// How often somebody else was seen to hold the lock at the same time.
    pub fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }
}

/// One writer.
pub struct Writer<'a, P: Platform, L: RawLock> {
    shared: &'a Shared<P, L>,
    stats: &'a Stats<P>,
    node: &'a L::Node,
    params: &'a Params,
    rng: Xoshiro256PlusPlus,
}

impl<'a, P: Work + Priority, L: RawLock> Writer<'a, P, L> {
    /// A writer whose draws follow from `seed`. The node is exclusively its own, the statistics are
    /// written by it alone.
    pub fn new(
        shared: &'a Shared<P, L>,
        stats: &'a Stats<P>,
        node: &'a mut L::Node,
        params: &'a Params,
        seed: u64,
    ) -> Self {
        Self { shared, stats, node, params, rng: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// Acquires, holds and releases until the observer has had enough.
    pub fn run(&mut self, observer: &mut impl Observer) {
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
            observer.waiting();
            // SAFETY: the node was borrowed exclusively, so it is this writer's own and stays in place.
            unsafe { self.shared.lock.0.lock(self.node) };
            observer.acquired();
            self.section();
            observer.releasing();
            // SAFETY: locked above with this node.
            unsafe { self.shared.lock.0.unlock(self.node) };
            if !observer.goes_on() {
                return;
            }
        }
    }

    fn section(&mut self) {
        let write_held = &self.shared.write_held.0;
        if write_held.load(Relaxed) != 0 {
            self.stats.failures.fetch_add(1, Relaxed);
        }
        write_held.store(1, Relaxed);
        let acquired = self.stats.acquired.load(Relaxed);
        self.stats.acquired.store(acquired + 1, Relaxed);
        let section_ns = self.vary(self.params.section_ns, 10);
        P::compute_ns(section_ns);
        self.delay();
        write_held.store(0, Relaxed);
    }

    fn delay(&mut self) {
        let writers = self.params.writers;
        if let LongHolds::Made { ms } = self.params.long_holds
            && self.one_in(writers * 2_000 * ms)
        {
            P::busy_ns(ms * 1_000_000);
        }
        if self.one_in(writers * self.params.short_holds.divisor()) {
            P::busy_ns(SHORT_HOLD_NS);
        }
        if self.one_in(writers * 20_000) {
            P::preempt();
        }
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.rng.next_u64().is_multiple_of(n)
    }

    /// `ns`, up to `percent` more or less.
    fn vary(&mut self, ns: u64, percent: u64) -> u64 {
        let spread = ns * percent / 100;
        ns - spread + self.rng.next_u64() % (2 * spread + 1)
    }
}
