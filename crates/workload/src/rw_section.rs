//! One reader-writer lock of a program: threads think, lock it to read or to write, access the
//! lines that it protects, work, and unlock it.
//!
//! ```text
//! loop {  think                                 (for an exponential time)
//!         lock shared | lock                    (a reader or a writer, at random)
//!         lines: read | read and write          (the first at both ends)
//!         work of the section
//!         unlock shared | unlock  }
//! ```
//! A writer reads the first line at the beginning of its section, and writes the value plus one at
//! its end. So two writers that overlap lose an update. A reader reads the first line at both ends,
//! and so notices a writer that has written meanwhile. Think times are those of
//! [`mutex_section`](crate::mutex_section). A lock without readers is locked exclusively by readers
//! too ([`Gate`]).

use nearlock_core::platform::{Platform, Work};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::lines::LockedLines;
use crate::sections::WorkLength;
use crate::{Gate, LINES_MAX, Observer};

/// The parameters of the threads.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// Number of sections in 100 that only read. Each section reads with this probability.
    pub read_percent: u64,
    /// Work inside a section.
    pub section: WorkLength,
    /// Number of lines that a reading section reads, 1 to [`LINES_MAX`].
    pub read_lines: usize,
    /// Number of lines that a writing section reads and writes, 1 to [`LINES_MAX`].
    pub write_lines: usize,
    /// Average work between two sections.
    pub think: WorkLength,
}

/// A thread's counts, in addition to its observer's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of reading sections.
    pub reads: u64,
    /// Number of writing sections.
    pub writes: u64,
    /// Number of reading sections in which a writer wrote.
    pub torn: u64,
}

/// One thread.
pub struct Worker<'a, P: Platform, G: Gate> {
    shared: &'a LockedLines<P, G>,
    node: &'a G::Node,
    params: Params,
    tally: Tally,
    rng: Xoshiro256PlusPlus,
}

impl<'a, P: Work, G: Gate> Worker<'a, P, G> {
    /// A thread whose random numbers follow from `seed`. The node belongs exclusively to it.
    ///
    /// # Panics
    ///
    /// If there are no lines, or more than [`LINES_MAX`].
    pub fn new(shared: &'a LockedLines<P, G>, node: &'a mut G::Node, params: Params, seed: u64) -> Self {
        for lines in [params.read_lines, params.write_lines] {
            assert!((1..=LINES_MAX).contains(&lines), "{lines} lines");
        }
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { shared, node, params, tally: Tally::default(), rng }
    }

    /// Thinks, locks, works and unlocks until the observer ends the run.
    pub fn run(&mut self, observer: &mut impl Observer) -> Tally {
        loop {
            self.params.think.exponential(self.rng.next_u64()).pass::<P>();
            self.section(observer);
            if !observer.goes_on() {
                return self.tally;
            }
        }
    }

    fn section(&mut self, observer: &mut impl Observer) {
        let Params { read_percent, section, read_lines, write_lines, .. } = self.params;
        // Drawn in any case, so that the other random numbers do not depend on the share.
        let reads = self.rng.next_u64() % 100 < read_percent;
        let work = || section.pass::<P>();
        if reads {
            // SAFETY: the node was borrowed exclusively, so it is this thread's own and stays in
            // place.
            let is_whole = unsafe { self.shared.shared_section(self.node, read_lines, observer, work) };
            self.tally.reads += 1;
            self.tally.torn += u64::from(!is_whole);
        } else {
            // SAFETY: as above.
            unsafe { self.shared.section(self.node, write_lines, observer, work) };
            self.tally.writes += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Exclusive;
    use nearlock_collection::classic::mcs::McsLock;
    use nearlock_collection::controls::BustedRw;
    use nearlock_collection::linux::rwsem::Rwsem;
    use nearlock_core::raw::{RawLock, RawRwLock};
    use nearlock_os::Os;

    /// Continues for this many sections.
    struct Times(u64);

    impl Observer for Times {
        fn goes_on(&mut self) -> bool {
            self.0 -= 1;
            self.0 > 0
        }
    }

    /// A lock with readers.
    #[derive(Default)]
    struct Shared<L>(L);

    // SAFETY: the guarantees are those of the lock inside.
    unsafe impl<L: RawRwLock> RawLock for Shared<L> {
        type Node = L::Node;
        unsafe fn lock(&self, node: &L::Node) {
            // SAFETY: by the caller's promise, also below.
            unsafe { self.0.lock(node) };
        }
        unsafe fn unlock(&self, node: &L::Node) {
            // SAFETY: as above.
            unsafe { self.0.unlock(node) };
        }
    }

    // SAFETY: as above.
    unsafe impl<L: RawRwLock> Gate for Shared<L> {
        unsafe fn lock_shared(&self, node: &L::Node) {
            // SAFETY: as above.
            unsafe { self.0.lock_shared(node) };
        }
        unsafe fn unlock_shared(&self, node: &L::Node) {
            // SAFETY: as above.
            unsafe { self.0.unlock_shared(node) };
        }
    }

    const SHORT: Params = Params {
        read_percent: 50,
        section: WorkLength { ns: 0, turns: 10 },
        read_lines: 3,
        write_lines: 2,
        think: WorkLength { ns: 0, turns: 20 },
    };

    /// The tally of four threads with this number of sections each, and the number of writes that
    /// have left their mark.
    fn tally<G: Gate>(params: Params, each: u64) -> (Tally, u64) {
        let shared = LockedLines::<Os, G>::default();
        let tallies = std::thread::scope(|scope| {
            let threads = [0, 1, 2, 3].map(|seed| {
                let shared = &shared;
                scope.spawn(move || {
                    let mut node = G::Node::default();
                    Worker::new(shared, &mut node, params, seed).run(&mut Times(each))
                })
            });
            threads.map(|thread| thread.join().expect("no panic"))
        });
        let sum = tallies.iter().fold(Tally::default(), |sum, tally| Tally {
            reads: sum.reads + tally.reads,
            writes: sum.writes + tally.writes,
            torn: sum.torn + tally.torn,
        });
        (sum, shared.sections())
    }

    #[test]
    fn every_write_leaves_its_mark_and_no_read_is_torn() {
        let each = if cfg!(miri) { 10 } else { 5_000 };
        for (tally, written) in
            [tally::<Shared<Rwsem<Os>>>(SHORT, each), tally::<Exclusive<McsLock<Os>>>(SHORT, each)]
        {
            assert_eq!((tally.reads + tally.writes, tally.writes, tally.torn), (4 * each, written, 0));
            assert!(tally.reads > each && tally.writes > each, "{tally:?}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many sections")]
    fn readers_notice_a_writer() {
        let params = Params { section: WorkLength { ns: 0, turns: 2_000 }, ..SHORT };
        assert!((0..100).any(|_| tally::<Shared<BustedRw<Os>>>(params, 200).0.torn > 0));
    }

    #[test]
    fn the_share_of_reads_is_as_required() {
        let reads = |read_percent| {
            let each = if cfg!(miri) { 25 } else { 5_000 };
            let params = Params { read_percent, ..SHORT };
            tally::<Shared<Rwsem<Os>>>(params, each).0.reads as f64 / (4 * each) as f64
        };
        assert_eq!((reads(0), reads(100)), (0.0, 1.0));
        if !cfg!(miri) {
            assert!((0.88..0.92).contains(&reads(90)), "{}", reads(90));
        }
    }

    #[test]
    #[should_panic(expected = "17 lines")]
    fn more_lines_than_there_are_is_refused() {
        let shared = LockedLines::<Os, Exclusive<McsLock<Os>>>::default();
        let mut node = <Exclusive<McsLock<Os>> as RawLock>::Node::default();
        Worker::new(&shared, &mut node, Params { read_lines: 17, ..SHORT }, 1);
    }
}
