//! readrandom: threads that look up keys of a database with one mutex, as LevelDB's benchmark of
//! that name does.
//!
//! ```text
//! get:  sections {  search, a part of it
//!                   lock            (the database's mutex, which is the C library's: waiters sleep in the kernel's futex)
//!                   references: read and write a few lines, the first last
//!                   unlock  }
//! ```
//! A get locks the mutex to take references to what it will read, searches, and locks it again to
//! give them back. What contends is the mutex first, and then the lock of the futex' bucket
//! ([`futex`](crate::futex)), through which go all who sleep and all who wake them: that is the
//! lock under test, and the mutex is not.
//!
//! The first line is read at the beginning of a section and written at its end, in two steps, so
//! that any two sections that overlap lose an update: at the end it must be the number of sections.
//! Source: `db_bench` and `DBImpl::Get` of LevelDB.

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

/// The database's mutex, what it protects, and the bucket where its waiters sleep, each on cache
/// lines of its own.
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
    /// How many sections left their mark. Exact once all threads have ended.
    pub fn sections(&self) -> u64 {
        self.lines.written()
    }
}

/// What a get consists of.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// Work outside of the sections, on average: each part of it is drawn from half to one and a
    /// half of itself.
    pub search: WorkLength,
    /// Sections.
    pub sections: u64,
    /// Work inside a section, beside its lines.
    pub section: WorkLength,
    /// Lines that a section reads and writes: 1 to [`LINES_MAX`].
    pub lines: usize,
    /// What a call of the kernel takes, beside what it does in the bucket and what sleeping and
    /// waking take.
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
    /// A thread whose draws follow from `seed`. The node is exclusively its own.
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

    /// Looks up keys until the observer has had enough. Each section is an acquisition of it, each
    /// get a job.
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
        // SAFETY: all threads name the same bucket.
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

    /// Goes on for so many gets, and counts sections.
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
