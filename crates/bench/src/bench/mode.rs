//! Situations: what threads do with a lock, and how many they are.

use std::fmt;

use nearlock_workload::will_it_scale::Calls;

use super::machine::TestBed;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One thread that has the lock for itself: lock and unlock.
    Uncontended,
    /// Threads in sections, each kept on a core of its own: sections per time, shares, waits, CPU
    /// time.
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
    pub fn threads(self, machine: &TestBed) -> (usize, usize) {
        match self {
            Mode::Uncontended => (1, 1),
            Mode::Handover => (HANDOVER_THREADS, HANDOVER_THREADS),
            Mode::Parallel => (1, machine.cores.len()),
            Mode::Oversubscribed => (machine.cpus + 1, THREADS_MAX),
            Mode::Free | Mode::Calls(_) => (1, THREADS_MAX),
        }
    }
}

/// The situations of many threads in which locks are held against each other: all combinations of
/// these.
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

/// Threads of a hand-over: one that has the lock and one that wants it.
pub(super) const HANDOVER_THREADS: usize = 2;

/// How long the holder works once the other waits, unless something else is asked for, in ns.
/// Longer than a waiter needs to be in the queue, and shorter than it pauses before it yields.
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
    /// Of 100 sections, how many only read; `None` if there is no talk of readers. Locks without
    /// readers have none. In [`Mode::Uncontended`] 0 or 100, in [`Mode::Handover`] and
    /// [`Mode::Calls`] `None`.
    pub read_percent: Option<u64>,
}

impl Point {
    /// The one situation of [`Mode::Uncontended`].
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
