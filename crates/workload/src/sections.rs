//! Sections: threads that repeatedly lock one lock, work, unlock it, and work again.
//!
//! ```text
//! loop {  think
//!         lock
//!         n = counter          (a line that the holder writes)
//!         work of the section
//!         counter = n + 1
//!         unlock  }
//! ```
//! The counter is read at the beginning of a section and written at its end, in two steps. So any
//! two sections that overlap lose an update. At the end the counter must be the number of sections.
//! A section that only reads holds the lock shared. It reads the counter at its beginning and at
//! its end. The counter must not have changed.

use core::hint::black_box;
use core::sync::atomic::Ordering::Relaxed;

use nearlock_core::platform::{Atomic, Platform, Work};
use nearlock_core::raw::{RawLock, RawRwLock};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::Observer;
use crate::locktorture::OwnLine;

/// Work that uses the CPU, but no shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkLength {
    /// Time of the work in the simulator, where instructions take no time, in ns.
    pub ns: u64,
    /// Number of executed [turns].
    pub turns: u64,
}

impl WorkLength {
    /// Work that takes time only in the simulator.
    pub const fn of_ns(ns: u64) -> Self {
        Self { ns, turns: 0 }
    }

    /// Does the work.
    #[inline]
    pub fn pass<P: Work>(self) {
        self.pass_on::<P>(0);
    }

    /// Does the work, and returns `value`. The work needs `value`, and the returned value needs the
    /// work. So out-of-order execution cannot begin the work before `value` is known, nor go on
    /// without its result.
    #[inline]
    fn pass_on<P: Work>(self, value: u64) -> u64 {
        P::compute_ns(self.ns);
        if self.turns == 0 {
            return value;
        }
        let worked = turns(self.turns, value);
        value.wrapping_add(worked).wrapping_sub(black_box(worked))
    }

    /// The work multiplied by a number of an exponential distribution with mean 1, which follows
    /// from the uniformly distributed `random`.
    pub(crate) fn exponential(self, random: u64) -> Self {
        let times = exponential(random);
        let part = |mean: u64| (mean as f64 * times) as u64;
        Self { ns: part(self.ns), turns: part(self.turns) }
    }

    /// One of `parts` equal parts.
    pub(crate) fn divided(self, parts: u64) -> Self {
        Self { ns: self.ns / parts, turns: self.turns / parts }
    }

    /// Half to one and a half of the work, as `random` determines.
    pub fn vary(self, random: u32) -> Self {
        let part = |whole: u64| whole / 2 + ((u128::from(whole) * u128::from(random)) >> 32) as u64;
        Self { ns: part(self.ns), turns: part(self.turns) }
    }
}

/// A number of an exponential distribution with mean 1, from a uniformly distributed number.
fn exponential(random: u64) -> f64 {
    const STEPS: f64 = (1_u64 << 53) as f64;
    // Uniform in the interval from 0 (exclusive) to 1 (inclusive).
    let uniform = ((random >> 11) + 1) as f64 / STEPS;
    -uniform.ln()
}

/// Executes `n` turns of a chain of a multiplication and an addition, each of which needs the
/// previous one. The chain begins with `x`. Returns its result. Never inlined, so that all locks
/// have the same work.
#[inline(never)]
pub fn turns(n: u64, mut x: u64) -> u64 {
    for _ in 0..n {
        x = x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
    }
    black_box(x)
}

/// State that the threads share, each part on its own cache lines.
#[repr(C)]
pub struct SectionsState<P: Platform, L> {
    lock: OwnLine<L>,
    counter: OwnLine<P::U64>,
}

impl<P: Platform, L: RawLock> Default for SectionsState<P, L> {
    fn default() -> Self {
        Self { lock: OwnLine(L::default()), counter: OwnLine(Atomic::new(0)) }
    }
}

impl<P: Platform, L> SectionsState<P, L> {
    /// Number of sections that incremented the counter. Exact once all threads have ended.
    pub fn counter(&self) -> u64 {
        self.counter.0.load(Relaxed)
    }
}

/// A thread's lengths of work.
#[derive(Clone, Copy, Debug, Default)]
pub struct Params {
    /// Work inside a section.
    pub section: WorkLength,
    /// Average work between two sections. Each length is drawn from half to one and a half of this,
    /// so that the threads do not synchronize.
    pub think: WorkLength,
    /// Time in addition to this work.
    pub overhead: Overhead,
}

/// Time of the loop's own instructions in ps, in the simulator, where instructions take no time. It
/// has no effect natively, where the instructions are executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overhead {
    /// Time inside a section.
    pub section_ps: u64,
    /// Time between two sections.
    pub think_ps: u64,
}

/// One thread.
pub struct Worker<'a, P: Platform, L: RawLock> {
    shared: &'a SectionsState<P, L>,
    node: &'a L::Node,
    params: Params,
    rng: Xoshiro256PlusPlus,
}

impl<'a, P: Work, L: RawLock> Worker<'a, P, L> {
    /// A thread whose random numbers follow from `seed`. The node belongs exclusively to it.
    pub fn new(shared: &'a SectionsState<P, L>, node: &'a mut L::Node, params: Params, seed: u64) -> Self {
        Self { shared, node, params, rng: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// Locks, works and unlocks until the observer ends the run.
    #[inline]
    pub fn run(&mut self, observer: &mut impl Observer) {
        loop {
            self.think();
            self.write(observer);
            if !observer.goes_on() {
                return;
            }
        }
    }

    #[inline(always)]
    fn think(&mut self) {
        P::compute_ps(self.params.overhead.think_ps);
        if self.params.think != WorkLength::default() {
            self.params.think.vary(self.draw()).pass::<P>();
        }
    }

    #[inline(always)]
    fn draw(&mut self) -> u32 {
        (self.rng.next_u64() >> 32) as u32
    }

    #[inline(always)]
    fn write(&mut self, observer: &mut impl Observer) {
        let SectionsState { lock, counter } = self.shared;
        observer.waiting();
        // SAFETY: the node was borrowed exclusively, so it is this thread's own and stays in place.
        unsafe { lock.0.lock(self.node) };
        observer.acquired();
        // Relaxed: the lock orders its holders.
        let n = counter.0.load(Relaxed);
        P::compute_ps(self.params.overhead.section_ps);
        let n = self.params.section.pass_on::<P>(n);
        counter.0.store(n + 1, Relaxed);
        observer.releasing();
        // SAFETY: locked above with this node.
        unsafe { lock.0.unlock(self.node) };
    }
}

/// Counts of a thread that also reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mixed {
    /// Number of sections that wrote.
    pub writes: u64,
    /// Number of sections that read and saw the counter change, so that a writer was admitted at
    /// the same time.
    pub torn: u64,
}

impl<P: Work, L: RawRwLock> Worker<'_, P, L> {
    /// As [`run`](Self::run), but about `read_percent` of 100 sections only read.
    #[inline]
    pub fn run_mixed(&mut self, read_percent: u64, observer: &mut impl Observer) -> Mixed {
        let mut done = Mixed::default();
        loop {
            self.think();
            if (u64::from(self.draw()) * 100) >> 32 < read_percent {
                done.torn += u64::from(self.read(observer));
            } else {
                self.write(observer);
                done.writes += 1;
            }
            if !observer.goes_on() {
                return done;
            }
        }
    }

    /// A section that reads. Returns whether the counter changed meanwhile.
    #[inline(always)]
    fn read(&mut self, observer: &mut impl Observer) -> bool {
        let SectionsState { lock, counter } = self.shared;
        observer.waiting();
        // SAFETY: as in `write`.
        unsafe { lock.0.lock_shared(self.node) };
        observer.acquired();
        // Relaxed: the lock orders the writers before and after the section.
        let n = counter.0.load(Relaxed);
        P::compute_ps(self.params.overhead.section_ps);
        let has_changed = self.params.section.pass_on::<P>(n) != counter.0.load(Relaxed);
        observer.releasing();
        // SAFETY: locked above with this node.
        unsafe { lock.0.unlock_shared(self.node) };
        has_changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearlock_collection::classic::mcs::McsLock;
    use nearlock_collection::controls::{Busted, BustedRw};
    use nearlock_collection::linux::rwsem::Rwsem;
    use nearlock_os::Os;
    use std::sync::Barrier;

    /// Continues for this many sections, and counts the calls.
    struct Times {
        left: u64,
        calls: [u64; 3],
    }
    impl Observer for Times {
        fn waiting(&mut self) {
            self.calls[0] += 1;
        }
        fn acquired(&mut self) {
            self.calls[1] += 1;
        }
        fn releasing(&mut self) {
            self.calls[2] += 1;
        }
        fn goes_on(&mut self) -> bool {
            self.left -= 1;
            self.left > 0
        }
    }

    fn sections<L: RawLock>(threads: u64, each: u64, params: Params) -> u64 {
        let shared = SectionsState::<Os, L>::default();
        let together = Barrier::new(threads as usize);
        std::thread::scope(|scope| {
            for seed in 0..threads {
                let (shared, together) = (&shared, &together);
                scope.spawn(move || {
                    let (mut node, mut times) = (L::Node::default(), Times { left: each, calls: [0; 3] });
                    together.wait();
                    Worker::new(shared, &mut node, params, seed).run(&mut times);
                    assert_eq!(times.calls, [each; 3]);
                });
            }
        });
        shared.counter()
    }

    #[test]
    fn every_section_leaves_its_mark() {
        let work_length = WorkLength { ns: 10, turns: 10 };
        for params in
            [Params::default(), Params { section: work_length, think: work_length, ..Params::default() }]
        {
            assert_eq!(sections::<McsLock<Os>>(3, 1000, params), 3000);
        }
    }

    #[test]
    fn sections_that_overlap_lose_updates() {
        // Sections are so long that even on one CPU a thread is preempted in a section.
        let params = Params { section: WorkLength { ns: 0, turns: 200_000 }, ..Params::default() };
        let lost = (0..100).any(|_| sections::<Busted<Os>>(3, 20, params) < 60);
        assert!(lost);
    }

    /// The counts of threads that read in `read_percent` of their sections.
    fn mixed<L: RawRwLock>(each: u64, read_percent: u64, params: Params) -> (Mixed, u64) {
        let (shared, together) = (SectionsState::<Os, L>::default(), Barrier::new(3));
        let one = |seed| {
            let (mut node, mut times) = (L::Node::default(), Times { left: each, calls: [0; 3] });
            together.wait();
            let done = Worker::new(&shared, &mut node, params, seed).run_mixed(read_percent, &mut times);
            assert_eq!(times.calls, [each; 3]);
            done
        };
        let all = std::thread::scope(|scope| {
            let threads = [0, 1, 2].map(|seed| scope.spawn(move || one(seed)));
            threads.map(|thread| thread.join().expect("it does not panic"))
        });
        let sum = |of: fn(&Mixed) -> u64| all.iter().map(of).sum();
        (Mixed { writes: sum(|done| done.writes), torn: sum(|done| done.torn) }, shared.counter())
    }

    #[test]
    fn readers_leave_no_mark_and_see_no_change() {
        for (read_percent, few, many) in [(0, 3000, 3000), (90, 200, 400), (100, 0, 0)] {
            let (done, counter) = mixed::<Rwsem<Os>>(1000, read_percent, Params::default());
            assert_eq!((done.writes, done.torn), (counter, 0));
            assert!((few..=many).contains(&done.writes), "{read_percent} %: {done:?}");
        }
    }

    #[test]
    fn readers_beside_a_writer_see_changes() {
        let params = Params { section: WorkLength { ns: 0, turns: 200_000 }, ..Params::default() };
        let torn = (0..100).any(|_| mixed::<BustedRw<Os>>(20, 50, params).0.torn > 0);
        assert!(torn);
    }

    #[test]
    fn lengths_vary_about_their_mean() {
        let whole = WorkLength { ns: 1000, turns: u64::MAX / 2 };
        let (shortest, longest) = (whole.vary(0), whole.vary(u32::MAX));
        assert_eq!((shortest.ns, longest.ns), (500, 1499));
        assert_eq!(shortest.turns, u64::MAX / 4);
        assert!(longest.turns > u64::MAX / 4 * 2);
        assert_eq!(WorkLength::default().vary(u32::MAX), WorkLength::default());
    }

    #[test]
    fn work_passes_its_value_on() {
        for turns in [0, 1, 1000] {
            assert_eq!(WorkLength { ns: 1, turns }.pass_on::<Os>(u64::MAX), u64::MAX);
        }
    }

    #[test]
    fn thinking_is_exponential() {
        const DRAWS: u32 = 100_000;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let drawn: Vec<f64> = (0..DRAWS).map(|_| exponential(rng.next_u64())).collect();
        let mean = drawn.iter().sum::<f64>() / f64::from(DRAWS);
        let share_above_two = drawn.iter().filter(|&&times| times > 2.0).count() as f64 / f64::from(DRAWS);
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
        assert!((share_above_two - (-2.0_f64).exp()).abs() < 0.01, "{share_above_two}");
        assert!(exponential(0).is_finite() && exponential(u64::MAX) == 0.0);
    }

    #[test]
    fn turns_end() {
        assert_eq!(turns(0, 7), 7);
        assert_eq!(turns(1, 0), 0x1405_7b7e_f767_814f);
        assert_ne!(turns(1000, 1), turns(1000, 2));
    }
}
