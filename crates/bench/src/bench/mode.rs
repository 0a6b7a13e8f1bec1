//! Situations: what threads do with a lock, and the number of threads.

use std::fmt;

use nearlock_workload::will_it_scale::Calls;

use super::condvar::{CondvarCase, Kind, Place};
use super::machine::TestBed;

/// The operation that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One thread that locks and unlocks without contention.
    Uncontended,
    /// Threads in sections, each pinned to its own core. Measures sections per time, shares, waits
    /// and CPU time.
    Parallel,
    /// Threads in sections, wherever the scheduler puts them.
    Free,
    /// As [`Mode::Free`], with more threads than CPUs.
    Oversubscribed,
    /// Two threads on two CPUs: from the unlock to the waiter's acquisition.
    Handover,
    /// Many threads in loops of system calls. Measures the same figures as for sections.
    Calls(Calls),
    /// Threads that wait for each other with a condition variable, in one of [`CONDVAR_CASES`].
    /// Measures the same figures as for sections, for each message.
    Condvar(&'static CondvarCase),
}

impl Mode {
    /// Its name, in one word.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Uncontended => "uncontended",
            Mode::Parallel => "parallel",
            Mode::Free => "free",
            Mode::Oversubscribed => "oversubscribed",
            Mode::Handover => "handover",
            Mode::Calls(calls) => calls.name(),
            Mode::Condvar(_) => "condvar",
        }
    }

    /// The name of the case, in a mode that has several.
    pub fn case(self) -> Option<&'static str> {
        match self {
            Mode::Condvar(case) => Some(case.name),
            _ => None,
        }
    }

    /// Whether two threads need a CPU each.
    pub fn needs_two_cpus(self) -> bool {
        match self {
            Mode::Handover => true,
            Mode::Condvar(case) => matches!(case.kind, Kind::PingPong(_, Place::TwoCpus)),
            _ => false,
        }
    }

    /// Whether threads think, lock, work and unlock.
    pub fn has_sections(self) -> bool {
        matches!(self, Mode::Parallel | Mode::Free | Mode::Oversubscribed)
    }

    /// The least and the largest number of threads that make sense on this machine.
    pub fn threads(self, machine: &TestBed) -> (usize, usize) {
        match self {
            Mode::Uncontended => (1, 1),
            Mode::Handover => (HANDOVER_THREADS, HANDOVER_THREADS),
            Mode::Parallel => (1, machine.cores.len()),
            Mode::Oversubscribed => (machine.cpus + 1, THREADS_MAX),
            Mode::Free | Mode::Calls(_) => (1, THREADS_MAX),
            Mode::Condvar(case) => (case.threads, case.threads),
        }
    }
}

/// The standard situations with many threads: all combinations of these values.
pub struct Grid;

impl Grid {
    /// Numbers of threads.
    pub const THREADS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
    /// Work in a section, in ns.
    pub const SECTION_NS: [u64; 3] = [0, 100, 1000];
    /// Work between sections, in ns.
    pub const THINK_NS: [u64; 3] = [0, 500, 5000];
}

/// Largest number of threads. The limit of the torture test applies for the same reason.
pub const THREADS_MAX: usize = crate::torture::THREADS_MAX;

/// Threads of a hand-over: a holder and a waiter.
pub(super) const HANDOVER_THREADS: usize = 2;

/// Default time, in ns, for which the holder works once the other thread waits. It is longer than a
/// waiter needs to enter the queue, and shorter than a waiter spins before it yields.
pub const HANDOVER_SECTION_NS: u64 = 500;

/// One situation in which all locks are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Number of threads, 1 to [`THREADS_MAX`], within the limits of the mode.
    pub threads: usize,
    /// Work in a section, in ns.
    pub section_ns: u64,
    /// Work between sections, or of a call outside of its sections, in ns.
    pub think_ns: u64,
    /// Number of sections in 100 that only read; `None` for situations without readers. Locks
    /// without readers have no such sections. The value is 0 or 100 in [`Mode::Uncontended`], and
    /// `None` in [`Mode::Handover`] and [`Mode::Calls`].
    pub read_percent: Option<u64>,
}

impl Point {
    /// The only situation of [`Mode::Uncontended`].
    pub const ALONE: Point = Point { threads: 1, section_ns: 0, think_ns: 0, read_percent: None };

    /// The situation of a case with this many threads.
    pub const fn of_case(threads: usize) -> Self {
        Point { threads, ..Self::ALONE }
    }

    /// A situation of [`Mode::Handover`].
    pub const fn handover(section_ns: u64) -> Self {
        Point { threads: HANDOVER_THREADS, section_ns, think_ns: 0, read_percent: None }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = if self.threads == 1 { "thread" } else { "threads" };
        write!(f, "{} {threads}, section {} ns, think {} ns", self.threads, self.section_ns, self.think_ns)?;
        self.read_percent.map_or(Ok(()), |percent| write!(f, ", {percent} % of the sections read"))
    }
}
