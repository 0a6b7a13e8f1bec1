//! The torture test: locktorture on this machine, for any lock.
//!
//! Each writer and reader runs [`locktorture`](nearlock_workload::locktorture) with today's hold
//! times for [its kind](kind) of lock. This test adds to the original:
//! - A counter that is not atomic, must not lose an update, and must not change while readers look
//!   at it.
//! - Detection of hangs.
//! - Other ways to lock, if a lock has them: `try_lock`, a short time limit, a downgrade.
//! - A [storm](Storm) of cancellations.
//! - *Phases*.
//!
//! Some paths of a lock are reached only with a full queue, and others only with a queue that runs
//! empty. In phases, the number of participating threads and their think time change several times
//! a second, at random. Totals are therefore not a benchmark. [`Plan::crew`] gives the default
//! number of threads.
//!
//! The verdict depends on exclusion and progress. It does not depend on fairness: see Max/Min and
//! the longest wait for that.

mod account;
mod book;
pub mod churn;
pub mod memory;
mod monitor;
mod pace;
mod problem;
mod run;
pub mod stalls;
mod storm;
mod thread;
mod ways;

use std::thread::available_parallelism;
use std::time::Duration;

use nearlock_collection::subjects::Subject;
use nearlock_core::events::LockEvent;
use nearlock_core::settings::{NumaLocality, NumaMode, Setting};
use nearlock_topology::HostTopology;
use nearlock_workload::locktorture::Kind;

pub use problem::{Problem, Verdict};

use crate::switched::{self, switched};
use crate::watched::Watched;
use nearlock_lab::lockstat::LockStatistics;

/// How threads wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Spin with a pause instruction. Only for no more writers than CPUs.
    Spin,
    /// Spin shortly, then yield.
    Yield,
}

/// The NUMA nodes that the writers are assigned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumaNodes {
    /// The machine's own NUMA nodes, this many.
    Real(u32),
    /// This many synthetic NUMA nodes: writer i is on NUMA node i modulo this number.
    Synthetic(u32),
    /// This many synthetic NUMA nodes of `numa.locality=synthetic`, assigned by the writers' slots.
    Slots(u32),
}

impl NumaNodes {
    /// The NUMA nodes that the `numa.*` settings select on this machine. If they select the
    /// machine's own NUMA nodes and the process may run on only one, the result is two synthetic
    /// ones.
    pub fn by(settings: &[u64; Setting::COUNT]) -> Self {
        if NumaMode::of(settings[Setting::NumaMode as usize]) == NumaMode::Off {
            return NumaNodes::Real(1);
        }
        match NumaLocality::of(settings[Setting::NumaLocality as usize]) {
            NumaLocality::Node => match HostTopology::of_this_process().allowed_nodes().count() {
                0 | 1 => NumaNodes::Synthetic(2),
                several => NumaNodes::Real(several as u32),
            },
            NumaLocality::LastLevelCache => {
                NumaNodes::Real(HostTopology::of_this_process().last_level_caches.len() as u32)
            }
            NumaLocality::Synthetic => {
                NumaNodes::Slots(settings[Setting::NumaSyntheticNodes as usize] as u32)
            }
        }
    }

    /// The number of NUMA nodes.
    pub fn count(self) -> u32 {
        let (NumaNodes::Real(nodes) | NumaNodes::Synthetic(nodes) | NumaNodes::Slots(nodes)) = self;
        nodes
    }
}

/// Largest number of writers and readers. Linux allows a process 65530 mappings by default
/// (`vm.max_map_count`). A thread takes four of them (two stacks, each with a guard page), and a
/// thread that cannot get its mappings aborts the process.
pub const THREADS_MAX: usize = 8192;

/// Smallest default number of writers. With four, every path of CNA is reached even on one CPU: a
/// holder, and three waiters for CNA to sort. These are a queue head, a waiter to be moved, and a
/// waiter behind it.
pub const WRITERS_LEAST: usize = 4;

/// Writers and readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crew {
    /// Number of writers.
    pub writers: usize,
    /// Number of readers; 0 if the lock has no readers.
    pub readers: usize,
}

impl Crew {
    /// Number of writers and readers together.
    pub fn threads(self) -> usize {
        self.writers + self.readers
    }

    /// The name of a thread: first the writers, then the readers.
    fn name(self, thread: usize) -> String {
        match thread.checked_sub(self.writers) {
            None => format!("writer {thread}"),
            Some(reader) => format!("reader {reader}"),
        }
    }
}

/// What a run reports before its end.
#[derive(Debug)]
pub enum News<'a> {
    /// The counts so far.
    Totals(&'a Totals),
    /// A stall, or its end.
    Progress(&'a stalls::Event),
}

/// The kind of lock that the kernel's test would run for `lock`.
pub fn kind(lock: &Subject) -> Kind {
    match (lock.is_rw(), lock.is_timed()) {
        (true, _) => Kind::RwSem,
        (false, true) => Kind::Mutex,
        (false, false) => Kind::Spin,
    }
}

/// A storm of cancellations: see [`Plan::storm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storm {
    /// Number of cancelled waits after which the run ends; `None`: the run ends after its duration.
    pub cancellations: Option<u64>,
}

/// Lifetime of the threads of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// From the beginning of the run to its end, with one lock.
    Stay,
    /// Short, with many locks: see [`churn`].
    ComeAndGo,
}

/// The default lock settings of the torture test. Two of them differ from the library's defaults.
/// CNA sorts one queue in four instead of one in 128, and cna-v13 too flushes a secondary queue
/// after 1 ms. With the library's defaults every path is taken as well, but some only a few times a
/// minute.
pub fn settings() -> [u64; Setting::COUNT] {
    let mut settings = Setting::DEFAULTS;
    settings[Setting::CnaV13ThresholdNs as usize] = 1_000_000;
    settings[Setting::CnaShuffleReduction as usize] = 2;
    settings[Setting::CnaV13ShuffleReduction as usize] = 2;
    settings
}

/// The plan of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Whether the run is to end early, which is asked every 10 ms.
    pub is_interrupted: fn() -> bool,
    /// Number of writers, 1 or more, if given. At most [`THREADS_MAX`] together with the readers.
    pub writers: Option<usize>,
    /// Number of readers, if given. For locks with readers.
    pub readers: Option<usize>,
    /// If set, waiters that can give up are cancelled all the time, each by its own cancellation.
    /// All threads then run in rounds. At the end of a round every thread has had the lock or has
    /// given up.
    pub storm: Option<Storm>,
    /// Lifetime of the threads.
    pub threads: Threads,
    /// The NUMA nodes that the threads are assigned to.
    pub numa_nodes: NumaNodes,
    /// How the threads wait.
    pub waiting: Waiting,
    /// Duration of the run.
    pub duration: Duration,
    /// Interval of interim reports; zero: no interim reports.
    pub stat_interval: Duration,
    /// All threads run for this long, then pause for this long, and so on; zero: they never pause.
    pub stutter: Duration,
    /// Length of the rare long holds, in ms; 0: no long holds.
    pub long_hold_ms: u64,
    /// Number of urgent acquisitions in 100.
    pub priority_percent: u64,
    /// The lock counts as hung after this time without an acquisition.
    pub hang: Duration,
    /// If set, each time is reported in which no thread acquires the lock for so long, although a
    /// thread wants it. A lost wake-up is then found after a moment: see [`stalls`].
    pub watch_progress: Option<Duration>,
    /// Whether to record wait and hold times of the lock.
    pub lockstat: bool,
    /// Values of the lock's settings, indexed by [`Setting`].
    pub settings: [u64; Setting::COUNT],
}

impl Plan {
    /// Number of threads for this lock. By default there are twice as many writers as CPUs, at
    /// least [`WRITERS_LEAST`]. A lock with readers gets as many writers and as many readers as
    /// CPUs, at least two of each. If the plan gives only the number of writers, there are as many
    /// readers.
    pub fn crew(&self, lock: &Subject) -> Crew {
        let cpus = available_parallelism().map_or(1, usize::from);
        let alone = WRITERS_LEAST.max(2 * cpus).min(THREADS_MAX / 2);
        let each = WRITERS_LEAST.max(2 * cpus).min(THREADS_MAX) / 2;
        match (lock.is_rw(), self.writers, self.readers) {
            (false, writers, _) => Crew { writers: writers.unwrap_or(alone), readers: 0 },
            (true, None, None) => Crew { writers: each, readers: each },
            (true, Some(writers), None) => Crew { writers, readers: writers },
            (true, writers, Some(readers)) => Crew { writers: writers.unwrap_or(alone), readers },
        }
    }
}

/// Counts so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Counts of the writers.
    pub writes: Counts,
    /// Counts of the readers.
    pub reads: Counts,
}

/// Counts of the writers, or of the readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Acquisitions of all of them.
    pub total: u64,
    /// Largest number of acquisitions of one thread.
    pub max: u64,
    /// Smallest number of acquisitions of one thread.
    pub min: u64,
    /// Number of times that a holder saw another holder that must not hold the lock at the same
    /// time.
    pub failures: u64,
}

/// Acquisitions without success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GivenUp {
    /// `try_lock` failed, because the lock was not free.
    pub refused: u64,
    /// Given up after the time limit.
    pub timed_out: u64,
    /// Given up after a cancellation.
    pub cancelled: u64,
}

impl std::iter::Sum for GivenUp {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            refused: sum.refused + one.refused,
            timed_out: sum.timed_out + one.timed_out,
            cancelled: sum.cancelled + one.cancelled,
        })
    }
}

impl Counts {
    /// Whether one thread has more than twice as many acquisitions as another: locktorture's `???`.
    pub fn is_uneven(&self) -> bool {
        self.max / 2 > self.min
    }
}

/// The result of one lock.
#[derive(Clone, Debug)]
pub struct Tortured {
    /// The lock.
    pub lock: &'static Subject,
    /// Number of threads.
    pub crew: Crew,
    /// Acquisitions.
    pub totals: Totals,
    /// Acquisitions without success.
    pub given_up: GivenUp,
    /// Number of exclusive sections that were downgraded to shared ones.
    pub downgraded: u64,
    /// Duration, in s.
    pub seconds: f64,
    /// The longest wait of an acquisition, in ns, including waits that never ended.
    pub wait_ns_max: u64,
    /// Events of the slow paths during the run, indexed by [`LockEvent`].
    pub events: [u64; LockEvent::COUNT],
    /// Wait and hold times of the lock, if the plan asks for them. Threads that are left behind are
    /// not included.
    pub lockstat: Option<Vec<LockStatistics>>,
    /// Counts of threads and locks that came and went, for [`Threads::ComeAndGo`].
    pub churn: Option<churn::Churn>,
    /// The times without progress, if the plan asks for them.
    pub stalls: Option<stalls::Stalls>,
    /// The problems that were found.
    pub problems: Vec<Problem>,
}

impl Tortured {
    /// The result of a lock that cannot be switched.
    fn not_tried(lock: &'static Subject, plan: &Plan) -> Self {
        Self {
            lock,
            crew: plan.crew(lock),
            totals: Totals::default(),
            given_up: GivenUp::default(),
            downgraded: 0,
            seconds: 0.0,
            wait_ns_max: 0,
            events: [0; LockEvent::COUNT],
            lockstat: None,
            churn: None,
            stalls: None,
            problems: vec![Problem::OthersLeftBehind],
        }
    }

    /// The verdict.
    pub fn verdict(&self) -> Verdict {
        if self.problems.is_empty() { Verdict::Success } else { Verdict::Failure }
    }

    /// The events that happened.
    pub fn events_seen(&self) -> impl Iterator<Item = (LockEvent, u64)> + '_ {
        let all = LockEvent::ALL.iter().map(|&event| (event, self.events[event as usize]));
        all.filter(|(_, count)| *count > 0)
    }

    /// For a CNA lock, its events that did not happen. The run says nothing about these paths.
    pub fn paths_not_taken(&self) -> impl Iterator<Item = LockEvent> + '_ {
        let is_of_cna =
            |setting: &Setting| matches!(setting, Setting::CnaThresholdNs | Setting::CnaV13ThresholdNs);
        let is_cna = self.lock.settings().iter().any(is_of_cna);
        let of_cna =
            LockEvent::ALL.iter().copied().filter(move |event| is_cna && event.name().starts_with("cna_"));
        of_cna.filter(|&event| self.events[event as usize] == 0)
    }
}

/// Reason why a lock could not be tortured.
#[derive(Debug, thiserror::Error)]
pub enum TortureError {
    /// A thread could not be started.
    #[error("cannot start thread {thread} of {threads}: {source}; try fewer with --nwriters and --nreaders")]
    Spawn {
        /// Number of the thread that could not be started, from 0.
        thread: usize,
        /// Number of requested threads.
        threads: usize,
        /// The system's error.
        source: std::io::Error,
    },
    /// A setting is out of its limits.
    #[error(transparent)]
    Setting(#[from] nearlock_os::OutOfRange),
}

/// Tortures one lock. Passes the counts so far to `interim` at the interval of the plan, and stalls
/// if the plan asks for them. Sets the lock settings of the process. After a hang or a lost
/// wake-up, threads may be left behind that wait for ever. From then on, a lock whose switches
/// differ from theirs is not tortured.
///
/// # Errors
///
/// If the threads cannot be started, or a setting is out of its limits.
pub fn torture(
    lock: &'static Subject,
    plan: &Plan,
    interim: &mut dyn FnMut(News<'_>),
) -> Result<Tortured, TortureError> {
    if !switched::can_switch(lock) {
        return Ok(Tortured::not_tried(lock, plan));
    }
    let settings = lock.settings_over(plan.settings);
    for &setting in Setting::ALL {
        nearlock_os::set_setting(setting, settings[setting as usize])?;
    }
    match plan.threads {
        Threads::ComeAndGo => churn::run(lock, plan, interim, || ()),
        Threads::Stay => in_its_way(lock, plan, || run::run(lock, plan, interim, |lives| lives.with(lock))),
    }
}

/// Calls `f` with the switches of this lock, while threads wait as the plan says.
fn in_its_way<R>(lock: &Subject, plan: &Plan, f: impl FnOnce() -> R) -> R {
    switched(lock, || {
        Watched::choose(plan.waiting);
        f()
    })
}

#[cfg(test)]
mod tests;
