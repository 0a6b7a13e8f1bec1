//! readrandom: threads that look up keys in a database with one mutex, like LevelDB's benchmark
//! with this name.
//!
//! ```text
//! get:  sections {  search, a part of it
//!                   lock            (the database's mutex, from the C library: waiters sleep in
//!                                    the kernel's futex)
//!                   references: read and write a few lines, the first last
//!                   unlock  }
//! ```
//! A get locks the mutex to take references to the data that it will read. It searches, and locks
//! the mutex again to drop the references. The first point of contention is the mutex. The second
//! one is the lock of the futex' bucket ([`futex`](crate::futex)), which all threads that sleep or
//! wake up others acquire. The lock under test is the bucket's lock, not the mutex.
//!
//! The first line is read at the beginning of a section and written at its end, in two steps. So
//! any two sections that overlap lose an update. At the end the line must contain the number of
//! sections. Source: `db_bench` and `DBImpl::Get` of LevelDB.

use nearlock_collection::classic::glibc_mutex::GlibcMutex;
use nearlock_core::platform::{Park, Platform, Work};
use nearlock_core::raw::RawLock;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::futex::{Bucket, Calls};
use crate::lines::Lines;
use crate::locktorture::OwnLine;
use crate::sections::WorkLength;
use crate::{LINES_MAX, Observer};

/// The database's mutex, the data that it protects, and the bucket where its waiters sleep, each on
/// its own cache lines.
#[repr(C)]
pub struct DatabaseState<P: Platform, L> {
    mutex: OwnLine<GlibcMutex<P>>,
    lines: Lines<P>,
    bucket: Bucket<P, L>,
}

impl<P: Platform, L: RawLock> Default for DatabaseState<P, L> {
    fn default() -> Self {
        Self { mutex: OwnLine(GlibcMutex::default()), lines: Lines::default(), bucket: Bucket::default() }
    }
}

impl<P: Platform, L> DatabaseState<P, L> {
    /// Number of sections that incremented the first line. Exact once all threads have ended.
    pub fn sections(&self) -> u64 {
        self.lines.written()
    }
}

/// The parameters of a get.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// Average work outside the sections. The length of each part is drawn from half to one and a
    /// half of the average.
    pub search: WorkLength,
    /// Number of sections.
    pub sections: u64,
    /// Work inside a section, in addition to the lines.
    pub section: WorkLength,
    /// Lines that a section reads and writes: 1 to [`LINES_MAX`].
    pub lines: usize,
    /// Time of a system call, without its work in the bucket and without the costs of sleeping and
    /// waking up.
    pub call: WorkLength,
}

/// A thread that looks up keys.
pub struct Reader<'a, P: Platform, L: RawLock> {
    shared: &'a DatabaseState<P, L>,
    futex: Calls<'a, P, L>,
    params: Params,
    rng: Xoshiro256PlusPlus,
}

impl<'a, P: Park + Work, L: RawLock> Reader<'a, P, L> {
    /// A thread whose random numbers follow from `seed`. The node belongs exclusively to it.
    ///
    /// # Panics
    ///
    /// If there are no lines, or more than [`LINES_MAX`], or no sections.
    pub fn new(shared: &'a DatabaseState<P, L>, node: &'a mut L::Node, params: Params, seed: u64) -> Self {
        assert!((1..=LINES_MAX).contains(&params.lines), "{} lines", params.lines);
        assert!(params.sections > 0, "a get without sections");
        let futex = Calls::new(&shared.bucket, node, params.call);
        Self { shared, futex, params, rng: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// Looks up keys until the observer ends the run. The observer sees each section as an
    /// acquisition, and each get as a job.
    pub fn run(&mut self, observer: &mut impl Observer) {
        loop {
            for _ in 0..self.params.sections {
                let part = self.params.search.divided(self.params.sections);
                part.vary((self.rng.next_u64() >> 32) as u32).pass::<P>();
                self.section(observer);
            }
            observer.progressed(1.0);
            if !observer.goes_on() {
                return;
            }
        }
    }

    fn section(&self, observer: &mut impl Observer) {
        let DatabaseState { mutex, lines, .. } = self.shared;
        observer.waiting();
        // SAFETY: all threads use the same bucket.
        unsafe { mutex.0.lock_in(&self.futex) };
        observer.acquired();
        lines.write(self.params.lines, || self.params.section.pass::<P>());
        observer.releasing();
        // SAFETY: locked above.
        unsafe { mutex.0.unlock_in(&self.futex) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearlock_collection::classic::mcs::McsLock;
    use nearlock_os::Os;

    /// Continues for this many gets, and counts sections.
    struct Times {
        gets: u64,
        sections: u64,
    }

    impl Observer for Times {
        fn acquired(&mut self) {
            self.sections += 1;
        }
        fn progressed(&mut self, jobs: f64) {
            self.gets -= jobs as u64;
        }
        fn goes_on(&mut self) -> bool {
            self.gets > 0
        }
    }

    const SHORT: Params = Params {
        search: WorkLength { ns: 0, turns: 20 },
        sections: 2,
        section: WorkLength { ns: 0, turns: 10 },
        lines: 3,
        call: WorkLength { ns: 0, turns: 0 },
    };

    #[test]
    fn every_section_leaves_its_mark() {
        const GETS: u64 = if cfg!(miri) { 10 } else { 5_000 };
        let shared = DatabaseState::<Os, McsLock<Os>>::default();
        let run = |seed| {
            let mut node = <McsLock<Os> as RawLock>::Node::default();
            let mut times = Times { gets: GETS, sections: 0 };
            Reader::new(&shared, &mut node, SHORT, seed).run(&mut times);
            times.sections
        };
        let run = &run;
        let sections: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|seed| scope.spawn(move || run(seed))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!((sections, shared.sections()), (4 * GETS * SHORT.sections, sections));
    }

    #[test]
    #[should_panic(expected = "17 lines")]
    fn more_lines_than_there_are_is_refused() {
        let shared = DatabaseState::<Os, McsLock<Os>>::default();
        let mut node = <McsLock<Os> as RawLock>::Node::default();
        Reader::new(&shared, &mut node, Params { lines: 17, ..SHORT }, 1);
    }
}
