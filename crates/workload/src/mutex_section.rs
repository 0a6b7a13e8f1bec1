//! One mutex of a program: threads think, lock it, touch the lines that it protects, work, and
//! unlock it.
//!
//! ```text
//! loop {  think                     (for an exponential time)
//!         lock
//!         lines: read and write     (the first at both ends)
//!         work of the section
//!         be away                   (in a long section: sleep or compute)
//!         unlock  }
//! ```
//! Think times are exponentially distributed, so the arrivals of threads reveal nothing about the
//! lock. With `n` threads, a mean think time of `t` and a total time of `s` per section, the lock
//! is saturated from about `n = 1 + t/s` on. There may be more threads than CPUs. A section reads
//! the first line at its beginning, and writes the value plus one at its end. So any two sections
//! that overlap lose an update.

use nearlock_core::platform::{Platform, Work};
use nearlock_core::raw::RawLock;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::lines::LockedLines;
use crate::sections::WorkLength;
use crate::{LINES_MAX, Observer};

/// What the holder does in a long section after its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Away {
    /// It sleeps, so that its CPU is free.
    #[default]
    Sleep,
    /// It keeps its CPU busy.
    Compute,
}

impl Away {
    fn pass<P: Work>(self, ns: u64) {
        match self {
            Self::Sleep => P::sleep_ns(ns),
            Self::Compute => P::busy_ns(ns),
        }
    }
}

/// Sections that are longer than the others, because the holder is away after its work.
#[derive(Clone, Copy, Debug, Default)]
pub struct LongSections {
    /// Share of all sections, 0 to 1000 in a thousand. Each section is long with this probability.
    pub permille: u64,
    /// The time for which the holder is away, in ns.
    pub ns: u64,
    /// What the holder does meanwhile.
    pub away: Away,
}

/// The parameters of the threads.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// Work inside a section.
    pub section: WorkLength,
    /// Number of lines that a section reads and writes, 1 to [`LINES_MAX`].
    pub lines: usize,
    /// The long sections.
    pub long: LongSections,
    /// Average work between two sections.
    pub think: WorkLength,
}

/// One thread.
pub struct Worker<'a, P: Platform, L: RawLock> {
    shared: &'a LockedLines<P, L>,
    node: &'a L::Node,
    params: Params,
    rng: Xoshiro256PlusPlus,
}

impl<'a, P: Work, L: RawLock> Worker<'a, P, L> {
    /// A thread whose random numbers follow from `seed`. The node belongs exclusively to it.
    ///
    /// # Panics
    ///
    /// If there are no lines, or more than [`LINES_MAX`].
    pub fn new(shared: &'a LockedLines<P, L>, node: &'a mut L::Node, params: Params, seed: u64) -> Self {
        assert!((1..=LINES_MAX).contains(&params.lines), "{} lines", params.lines);
        Self { shared, node, params, rng: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// Thinks, locks, works and unlocks until the observer ends the run.
    pub fn run(&mut self, observer: &mut impl Observer) {
        loop {
            self.params.think.exponential(self.rng.next_u64()).pass::<P>();
            self.section(observer);
            if !observer.goes_on() {
                return;
            }
        }
    }

    fn section(&mut self, observer: &mut impl Observer) {
        let Params { section, lines, long, .. } = self.params;
        let is_long = self.is_next_long();
        let work = || {
            section.pass::<P>();
            if is_long {
                long.away.pass::<P>(long.ns);
            }
        };
        // SAFETY: the node was borrowed exclusively, so it is this thread's own and stays in place.
        unsafe { self.shared.section(self.node, lines, observer, work) };
    }

    /// Draws whether the next section is long. Without long sections no number is drawn, so that
    /// the think times are the same as if there were no such parameter.
    fn is_next_long(&mut self) -> bool {
        let permille = self.params.long.permille;
        permille > 0 && self.rng.next_u64() % 1000 < permille
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearlock_collection::classic::mcs::McsLock;
    use nearlock_os::Os;

    /// Continues for this many sections.
    struct Times(u64);

    impl Observer for Times {
        fn goes_on(&mut self) -> bool {
            self.0 -= 1;
            self.0 > 0
        }
    }

    const SHORT: Params = Params {
        section: WorkLength { ns: 0, turns: 10 },
        lines: 2,
        long: LongSections { permille: 0, ns: 0, away: Away::Sleep },
        think: WorkLength { ns: 0, turns: 20 },
    };

    /// The number of sections that four threads make together, with this number each.
    fn sections(params: Params, each: u64) -> u64 {
        let shared = LockedLines::<Os, McsLock<Os>>::default();
        std::thread::scope(|scope| {
            for seed in 0..4 {
                let shared = &shared;
                scope.spawn(move || {
                    let mut node = <McsLock<Os> as RawLock>::Node::default();
                    Worker::new(shared, &mut node, params, seed).run(&mut Times(each));
                });
            }
        });
        shared.sections()
    }

    #[test]
    fn every_section_leaves_its_mark() {
        let each = if cfg!(miri) { 10 } else { 5_000 };
        assert_eq!(sections(SHORT, each), 4 * each);
    }

    #[test]
    fn every_long_section_leaves_its_mark() {
        let each = if cfg!(miri) { 5 } else { 50 };
        for away in [Away::Sleep, Away::Compute] {
            let long = LongSections { permille: 500, ns: 1_000, away };
            assert_eq!(sections(Params { long, ..SHORT }, each), 4 * each, "{away:?}");
        }
    }

    #[test]
    fn the_share_of_long_sections_is_as_required() {
        const SECTIONS: usize = 100_000;
        let shared = LockedLines::<Os, McsLock<Os>>::default();
        let long_of = |permille: u64| {
            let mut node = <McsLock<Os> as RawLock>::Node::default();
            let long = LongSections { permille, ..LongSections::default() };
            let mut worker = Worker::new(&shared, &mut node, Params { long, ..SHORT }, 7);
            (0..SECTIONS).filter(|_| worker.is_next_long()).count()
        };
        assert_eq!((long_of(0), long_of(1000)), (0, SECTIONS));
        assert!((900..1100).contains(&long_of(10)), "{}", long_of(10));
        assert!((9_700..10_300).contains(&long_of(100)), "{}", long_of(100));
    }

    /// The think times of a seed do not depend on the parameter if there are no long sections.
    #[test]
    fn without_long_sections_no_number_is_drawn_for_them() {
        let shared = LockedLines::<Os, McsLock<Os>>::default();
        let number_after = |permille: u64| {
            let mut node = <McsLock<Os> as RawLock>::Node::default();
            let long = LongSections { permille, ..LongSections::default() };
            let mut worker = Worker::new(&shared, &mut node, Params { long, ..SHORT }, 7);
            worker.is_next_long();
            worker.rng.next_u64()
        };
        let first = Xoshiro256PlusPlus::seed_from_u64(7).next_u64();
        assert_eq!(number_after(0), first);
        assert_ne!(number_after(1), first);
    }

    #[test]
    #[should_panic(expected = "17 lines")]
    fn more_lines_than_there_are_is_refused() {
        let shared = LockedLines::<Os, McsLock<Os>>::default();
        let mut node = <McsLock<Os> as RawLock>::Node::default();
        Worker::new(&shared, &mut node, Params { lines: 17, ..SHORT }, 1);
    }
}
