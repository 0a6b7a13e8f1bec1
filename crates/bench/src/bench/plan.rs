//! What is to be measured.

use std::fmt;
use std::time::Duration;

use nearlock_core::settings::Setting;
use nearlock_workload::will_it_scale::Calls;

use super::{BenchError, Candidate, Machine, handover, two_cpus};
use crate::torture::Waiting;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One thread that has the lock for itself: lock and unlock.
    Uncontended,
    /// Threads in sections, each kept on a core of its own: sections per time, shares, waits, CPU time.
    Parallel,
    /// Threads in sections, wherever the scheduler puts them.
    Free,
    /// The same, more than there are CPUs.
    Oversubscribed,
    /// Two threads on two CPUs: from the release to the waiter's acquisition.
    Handover,
    /// Many threads in loops of system calls: as sections.
    Calls(Calls),
}

impl Mode {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Uncontended => "uncontended",
            Mode::Parallel => "parallel",
            Mode::Free => "free",
            Mode::Oversubscribed => "oversubscribed",
            Mode::Handover => "handover",
            Mode::Calls(calls) => calls.name(),
        }
    }

    /// Whether threads think, lock, work and unlock.
    pub fn has_sections(self) -> bool {
        matches!(self, Mode::Parallel | Mode::Free | Mode::Oversubscribed)
    }

    /// Which numbers of threads make sense on this machine, from the first to the second.
    pub fn threads(self, machine: &Machine) -> (usize, usize) {
        match self {
            Mode::Uncontended => (1, 1),
            Mode::Handover => (handover::THREADS, handover::THREADS),
            Mode::Parallel => (1, machine.cores.len()),
            Mode::Oversubscribed => (machine.cpus + 1, THREADS_MAX),
            Mode::Free | Mode::Calls(_) => (1, THREADS_MAX),
        }
    }
}

/// The situations of many threads in which locks are held against each other: all combinations of these.
pub struct Grid;

impl Grid {
    /// Numbers of threads.
    pub const THREADS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
    /// Work in a section, in ns.
    pub const SECTION_NS: [u64; 3] = [0, 100, 1000];
    /// Work between sections, in ns.
    pub const THINK_NS: [u64; 3] = [0, 500, 5000];
}

/// Most threads; as many as the torture test's writers, for the same reason.
pub const THREADS_MAX: usize = crate::torture::THREADS_MAX;

/// How long the holder works once the other waits, unless something else is asked for, in ns. Longer than a
/// waiter needs to be in the queue, and shorter than it pauses before it yields.
pub const HANDOVER_SECTION_NS: u64 = 500;

/// One situation in which all locks are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Number of threads, 1 to [`THREADS_MAX`], within those of the mode.
    pub threads: usize,
    /// Work in a section, in ns.
    pub section_ns: u64,
    /// Work between sections, or of a call outside of its sections, in ns.
    pub think_ns: u64,
    /// Of 100 sections, how many only read; `None` if there is no talk of readers. Locks without readers have none.
    /// In [`Mode::Uncontended`] 0 or 100, in [`Mode::Handover`] and [`Mode::Calls`] `None`.
    pub read_percent: Option<u64>,
}

impl Point {
    /// The one situation of [`Mode::Uncontended`].
    pub const ALONE: Point = Point { threads: 1, section_ns: 0, think_ns: 0, read_percent: None };

    /// A situation of [`Mode::Handover`].
    pub const fn handover(section_ns: u64) -> Self {
        Point { threads: handover::THREADS, section_ns, think_ns: 0, read_percent: None }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = if self.threads == 1 { "thread" } else { "threads" };
        write!(f, "{} {threads}, section {} ns, think {} ns", self.threads, self.section_ns, self.think_ns)?;
        self.read_percent.map_or(Ok(()), |percent| write!(f, ", {percent} % of the sections read"))
    }
}

/// A situation, and the locks that are measured in it.
#[derive(Clone, Debug)]
pub struct Cell {
    /// What is measured.
    pub mode: Mode,
    /// In which situation.
    pub point: Point,
    /// Of which locks; peers among them have been [obtained](super::Peer::obtain).
    pub locks: Vec<Candidate>,
}

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The situations, one after the other.
    pub cells: Vec<Cell>,
    /// Locks that all are compared with, with one after the other, in the situations in which they are measured.
    pub baselines: Vec<Candidate>,
    /// How often, 1 or more.
    pub rounds: usize,
    /// For how long a run counts. It takes about 1.6 times as long where there are many threads.
    pub window: Duration,
    /// How waiting threads pass the time.
    pub waiting: Waiting,
    /// Values of the locks' settings, indexed by [`Setting`].
    pub settings: [u64; Setting::COUNT],
}

impl Plan {
    /// How many runs of a lock it takes.
    pub fn runs(&self) -> usize {
        self.rounds * self.cells.iter().map(|cell| cell.locks.len()).sum::<usize>()
    }

    /// How long it takes, about, if no lock takes long to end a run.
    pub fn takes(&self) -> Duration {
        let of_cell = |cell: &Cell| self.run_of(cell) * cell.locks.len() as u32;
        self.cells.iter().map(of_cell).sum::<Duration>() * self.rounds as u32
    }

    fn run_of(&self, cell: &Cell) -> Duration {
        /// To begin a run and to end it, with all of its threads: seen with two CPUs.
        const RUN: Duration = Duration::from_millis(1);
        const THREAD: Duration = Duration::from_micros(150);
        match cell.mode {
            Mode::Uncontended | Mode::Handover => self.window + RUN,
            _ => super::throughput::takes(self.window) + RUN + THREAD * cell.point.threads as u32,
        }
    }

    /// The same with a window such that it takes no longer than this, about: the longest of those from `least` to
    /// `most`, in whole ms; the least if none is short enough.
    pub fn within(mut self, limit: Duration, least: Duration, most: Duration) -> Self {
        self.window = most;
        while self.takes() > limit && self.window > least {
            self.window -= Duration::from_millis(1);
        }
        self
    }

    /// Whether this machine can do it at all.
    ///
    /// # Errors
    ///
    /// If it has too few CPUs for a mode.
    pub fn suits(&self, machine: &Machine) -> Result<(), BenchError> {
        let hands_over = self.cells.iter().any(|cell| cell.mode == Mode::Handover);
        if hands_over { two_cpus(machine).map(drop) } else { Ok(()) }
    }
}
