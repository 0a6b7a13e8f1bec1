//! Situations: what threads do with a lock, and the number of threads.

use std::fmt;
use std::time::Duration;

use nearlock_workload::will_it_scale::Calls;

use super::condvar::{CondvarCase, Kind, Place};
use super::long::LongCase;
use super::machine::TestBed;
use super::many::ManyCase;
use super::uncontended::StoresCase;
use super::wake::WakeCase;
use super::{away, beside, start, wake, writer};

/// The operation that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One thread that locks and unlocks without contention.
    Uncontended,
    /// As [`Mode::Uncontended`], with sections that write to cache lines, in one of
    /// [`STORES_CASES`](super::STORES_CASES). The time of the writes is included.
    Stores(&'static StoresCase),
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
    /// Threads that wait for each other with a condition variable, in one of
    /// [`CONDVAR_CASES`](super::CONDVAR_CASES). Measures the same figures as for sections, for each
    /// message.
    Condvar(&'static CondvarCase),
    /// Threads whose sections wait, in one of [`LONG_CASES`](super::LONG_CASES). Measures the same
    /// figures as for other sections.
    Long(&'static LongCase),
    /// Threads that lock one of many locks at random, in one of [`MANY_CASES`](super::MANY_CASES).
    /// Measures the same figures as for other sections.
    Many(&'static ManyCase),
    /// A holder that sleeps in its section, while other threads want the lock. Measures the CPU
    /// time of such a round, and waits.
    Away,
    /// The time from an unlock to the return of a waiter that sleeps, in one of
    /// [`WAKE_CASES`](super::WAKE_CASES).
    Wake(&'static WakeCase),
    /// The first lock and unlock of a process with other threads.
    Start,
    /// Threads in sections of some cache lines, beside a process that computes. Measures the same
    /// figures as for other sections.
    Beside,
    /// One thread that only writes among threads that only read, wherever the scheduler puts them.
    /// Only the writer thinks. Measures the same figures as for sections, of the writer. For locks
    /// with readers.
    Writer,
}

impl Mode {
    /// Its name, in one word.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Uncontended | Mode::Stores(_) => "uncontended",
            Mode::Parallel => "parallel",
            Mode::Free => "free",
            Mode::Oversubscribed => "oversubscribed",
            Mode::Handover => "handover",
            Mode::Calls(calls) => calls.name(),
            Mode::Condvar(_) => "condvar",
            Mode::Long(_) => "long",
            Mode::Many(_) => "many",
            Mode::Away => "away",
            Mode::Wake(_) => "wake",
            Mode::Start => "start",
            Mode::Beside => "beside",
            Mode::Writer => "writer",
        }
    }

    /// The name of the case, in a mode that has several.
    pub fn case(self) -> Option<&'static str> {
        match self {
            Mode::Stores(case) => Some(case.name),
            Mode::Condvar(case) => Some(case.name),
            Mode::Long(case) => Some(case.name),
            Mode::Many(case) => Some(case.name),
            Mode::Wake(case) => Some(case.name),
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
            Mode::Parallel => (1, machine.cores.len()),
            Mode::Oversubscribed => (machine.cpus + 1, THREADS_MAX),
            Mode::Writer => (writer::THREADS_LEAST, THREADS_MAX),
            _ => self.threads_alone().map_or((1, THREADS_MAX), |threads| (threads, threads)),
        }
    }

    /// The only number of threads of the mode, or of its case, if there is only one.
    fn threads_alone(self) -> Option<usize> {
        match self {
            Mode::Uncontended | Mode::Stores(_) => Some(1),
            Mode::Handover => Some(HANDOVER_THREADS),
            Mode::Condvar(case) => Some(case.threads),
            Mode::Long(case) => Some(case.threads),
            Mode::Many(case) => Some(case.threads),
            Mode::Away => Some(away::THREADS),
            Mode::Wake(_) => Some(wake::THREADS),
            Mode::Start => Some(1 + start::THREADS),
            Mode::Parallel
            | Mode::Free
            | Mode::Oversubscribed
            | Mode::Calls(_)
            | Mode::Beside
            | Mode::Writer => None,
        }
    }

    /// The only situation of the mode or of its case, if there is only one.
    pub fn point(self) -> Option<Point> {
        match self {
            Mode::Handover => None,
            _ => self.threads_alone().map(|threads| Point { threads, ..Point::ALONE }),
        }
    }

    /// Whether the figure is a number of operations per time, and not the time of one.
    pub fn is_rate(self) -> bool {
        !matches!(self, Mode::Handover | Mode::Wake(_) | Mode::Start)
    }

    /// Whether threads usually outnumber the CPUs, so that waiters that only spin take long.
    pub fn is_crowded(self) -> bool {
        matches!(
            self,
            Mode::Oversubscribed
                | Mode::Condvar(_)
                | Mode::Long(_)
                | Mode::Away
                | Mode::Beside
                | Mode::Writer
        )
    }

    /// The least suitable window, and the greatest number of rounds of windows of this length.
    pub fn least(self) -> Option<(Duration, usize)> {
        /// Enough for quartiles.
        const ROUNDS: usize = 7;
        let window = match self {
            Mode::Long(case) => case.window_least,
            Mode::Away => away::WINDOW_LEAST,
            Mode::Beside => beside::WINDOW_LEAST,
            Mode::Writer => writer::WINDOW_LEAST,
            _ => Duration::ZERO,
        };
        (!window.is_zero()).then_some((window, ROUNDS))
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

/// The situations in which the [gates](super::Gate) compare reader-writer locks: all combinations
/// of these values in [`Mode::Free`] and [`Mode::Oversubscribed`], and fewer where all sections
/// read.
pub struct RwGrid;

impl RwGrid {
    /// Numbers of threads.
    pub const THREADS: [usize; 6] = [2, 4, 8, 16, 32, 64];
    /// Work in a section, in ns.
    pub const SECTION_NS: [u64; 3] = [0, 100, 1000];
    /// Work between sections, in ns.
    pub const THINK_NS: [u64; 2] = [0, 500];
    /// Numbers of sections in 100 that only read, if some sections write.
    pub const MIXED: [u64; 3] = [99, 90, 50];
    /// Where all sections read, the number of threads, each on its own core.
    pub const READERS: [usize; 1] = [2];
    /// Where all sections read, the work in a section, in ns.
    pub const READERS_SECTION_NS: [u64; 2] = [0, 100];
    /// Where all sections read, the work between sections, in ns.
    pub const READERS_THINK_NS: [u64; 1] = [0];
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
    /// `None` in [`Mode::Handover`], [`Mode::Calls`] and [`Mode::Writer`].
    pub read_percent: Option<u64>,
}

impl Point {
    /// The only situation of [`Mode::Uncontended`].
    pub const ALONE: Point = Point { threads: 1, section_ns: 0, think_ns: 0, read_percent: None };

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
