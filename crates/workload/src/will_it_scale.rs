//! will-it-scale: threads of one process, each in a loop of system calls that share data in the
//! kernel.
//!
//! A call here consists of its own work, which is a stated time, and of the shared words, lines and
//! locks. Its accesses under a lock fail visibly if another thread is admitted at the same time.
//! Such *faults* are counted.
//!
//! | test case | calls of a turn | operations that the suite counts |
//! |---|---|---|
//! | [`open1`] | open, close | 1 |
//! | [`lock2`] | lock and unlock a record | 2 |
//!
//! Source: Blanchard, will-it-scale, from a description in own words. Dice and Kogan, "Compact
//! NUMA-aware locks", EuroSys 2019 (arXiv 1810.05600), Table 1, name the points of contention in
//! the kernel.

pub mod lock2;
pub mod open1;

use core::sync::atomic::Ordering::Relaxed;

use nearlock_core::platform::{Atomic, Work};
use nearlock_core::raw::RawLock;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::lines::Lines;
use crate::sections::WorkLength;
use crate::{LINES_MAX, Observer};

/// A test case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// Opening and closing separate files.
    Open1,
    /// Locking and unlocking a record of one file.
    Lock2,
}

/// The constants of a test case, on the machine of the published tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallConstants {
    /// Average work of a call outside its sections, in ns.
    pub call_ns: u64,
    /// Work inside a section, in ns.
    pub section_ns: u64,
    /// Additional shared lines that a section reads and writes.
    pub lines: u64,
}

impl Calls {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open1 => "open1",
            Self::Lock2 => "lock2",
        }
    }

    /// Its constants. All are fitted to three cells of its table: stock at 1, 8 and 142 threads.
    pub const fn constants(self) -> CallConstants {
        match self {
            Self::Open1 => CallConstants { call_ns: 905, section_ns: 40, lines: 0 },
            Self::Lock2 => CallConstants { call_ns: 577, section_ns: 30, lines: 0 },
        }
    }
}

/// The parameters of a call, apart from its test case.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// Average work of a call outside its sections. Each length is drawn from half to one and a
    /// half of this.
    pub call: WorkLength,
    /// Work inside a section.
    pub section: WorkLength,
    /// Number of additional shared lines that a section reads and writes, up to [`LINES_MAX`].
    pub lines: usize,
}

/// State that threads of a process share in a test case. All bits zero is its initial state.
pub trait Testcase<P: Work, L: RawLock>: Default + Send + Sync + 'static {
    /// Shared state for each thread.
    type Each: Default + Send + Sync + 'static;

    /// One turn of a thread's loop. `each` has an item for each thread. Returns whether the
    /// observer continues the run.
    fn turn(&self, each: &[Self::Each], caller: &mut Caller<'_, L>, observer: &mut impl Observer) -> bool;
}

/// One thread.
pub struct Caller<'a, L: RawLock> {
    number: usize,
    node: &'a L::Node,
    params: Params,
    rng: Xoshiro256PlusPlus,
    faults: u64,
}

impl<'a, L: RawLock> Caller<'a, L> {
    /// The thread with this number, from 0, whose random numbers follow from `seed`. The node
    /// belongs exclusively to it.
    ///
    /// # Panics
    ///
    /// If there are more than [`LINES_MAX`] lines.
    pub fn new(number: usize, node: &'a mut L::Node, params: Params, seed: u64) -> Self {
        assert!(params.lines <= LINES_MAX, "{} lines", params.lines);
        Self { number, node, params, rng: Xoshiro256PlusPlus::seed_from_u64(seed), faults: 0 }
    }

    /// Makes calls until the observer ends the run. Returns the faults that this thread has seen.
    pub fn run<P: Work, T: Testcase<P, L>>(
        mut self,
        test: &T,
        each: &[T::Each],
        observer: &mut impl Observer,
    ) -> u64 {
        while test.turn(each, &mut self, observer) {}
        self.faults
    }

    /// A call's own work.
    fn work<P: Work>(&mut self) {
        self.params.call.vary((self.rng.next_u64() >> 32) as u32).pass::<P>();
    }

    /// Runs `inside` with the lock held.
    #[inline(always)]
    fn section<R>(
        &mut self,
        lock: &L,
        observer: &mut impl Observer,
        inside: impl FnOnce(&mut Self) -> R,
    ) -> R {
        observer.waiting();
        // SAFETY: the node was borrowed exclusively, so it is this thread's own and stays in place.
        // It is used for one lock at a time.
        unsafe { lock.lock(self.node) };
        observer.acquired();
        let result = inside(self);
        observer.releasing();
        // SAFETY: locked above with this node.
        unsafe { lock.unlock(self.node) };
        result
    }

    /// The part of a section that does not depend on the test case. A thread that is wrongly
    /// admitted at the same time may change this word.
    fn work_inside<P: Work>(&mut self, lines: &Lines<P>, word: &P::U64) {
        // Relaxed: the lock orders its holders.
        let before = word.load(Relaxed);
        lines.touch(self.params.lines);
        self.params.section.pass::<P>();
        self.expect(|| word.load(Relaxed) == before);
    }

    /// Counts a fault unless `is_right`.
    fn expect(&mut self, is_right: impl FnOnce() -> bool) {
        self.faults += u64::from(!is_right());
    }
}

#[cfg(test)]
mod tests;
