//! The torture test: locktorture on this machine, over any lock.
//!
//! Each writer and reader runs [`locktorture`](nearlock_workload::locktorture) with today's holds
//! for [its kind](kind) of lock. Added to the original are a counter that is not atomic, must not
//! lose an update, and must not change while readers look at it; a watch for standstill; other ways
//! to acquire, where a lock has any (trying, within a short limit, downgrading); a [storm](Storm)
//! of cancellations; and *phases*. A lock has paths that only a full queue reaches and paths that
//! only a queue that runs empty reaches, so how many threads take part, and how long they think
//! between acquisitions, changes several times a second at random. Totals are therefore no
//! benchmark. How many there are unless told otherwise: see [`Plan::crew`].
//!
//! Judged are exclusion and progress. Fairness is not: look at Max/Min and at the longest wait.

mod book;
pub mod churn;
pub mod memory;
mod monitor;
mod pace;
mod run;
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
use serde::Serialize;

use crate::switched::{self, switched};
use crate::watched::Watched;
use nearlock_lab::lockstat::LockStatistics;

/// How waiting threads pass the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// By pausing: for no more writers than processors.
    Spin,
    /// By pausing shortly, then yielding.
    Yield,
}

/// Which NUMA nodes the writers count as running on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumaNodes {
    /// The machine's own, so many.
    Real(u32),
    /// Made up: writer i is on node i modulo this number.
    Synthetic(u32),
    /// Made up by `numa.locality=synthetic`, so many: by the writers' slots.
    Slots(u32),
}

impl NumaNodes {
    /// What the settings `numa.*` make of this machine. If that is its own nodes, and the process
    /// can run on one only: two that are made up.
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

    /// How many there are.
    pub fn count(self) -> u32 {
        let (NumaNodes::Real(nodes) | NumaNodes::Synthetic(nodes) | NumaNodes::Slots(nodes)) = self;
        nodes
    }
}

/// Most writers and readers. A thread takes four mappings (two stacks, each with a guard page),
/// Linux allows a process 65530 of them unless told otherwise (`vm.max_map_count`), and a thread
/// that cannot have its own aborts the process.
pub const THREADS_MAX: usize = 8192;

/// Fewest writers if nobody says how many, so that every path of CNA is taken also on one CPU: one
/// who holds the lock, and for CNA to sort a head, a waiter to be moved, and one behind it.
pub const WRITERS_LEAST: usize = 4;

/// Writers and readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crew {
    /// How many writers.
    pub writers: usize,
    /// How many readers; none if the lock has none.
    pub readers: usize,
}

impl Crew {
    /// All of them.
    pub fn threads(self) -> usize {
        self.writers + self.readers
    }
}

/// What the kernel's test would take the lock for.
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
    /// After how many cancelled waits the run ends; `None`: when its time is over.
    pub cancellations: Option<u64>,
}

/// How long the threads of a run live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// From its beginning to its end, with one lock.
    Stay,
    /// Shortly, with many locks: see [`churn`].
    ComeAndGo,
}

/// The values of lock settings that the torture test begins with: the defaults, but CNA sorts one
/// queue in four instead of one in 128, and cna-v13 too flushes a secondary queue after 1 ms. Every
/// path is taken with the defaults too, some of them a few times a minute only.
pub fn settings() -> [u64; Setting::COUNT] {
    let mut settings = Setting::DEFAULTS;
    settings[Setting::CnaV13ThresholdNs as usize] = 1_000_000;
    settings[Setting::CnaShuffleReduction as usize] = 2;
    settings[Setting::CnaV13ShuffleReduction as usize] = 2;
    settings
}

/// What is to be done to a lock.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Number of writers, 1 or more, if that is said. At most [`THREADS_MAX`] with the readers.
    pub writers: Option<usize>,
    /// Number of readers of a lock that has them, if that is said.
    pub readers: Option<usize>,
    /// Whether waiters that can give up are cancelled all the time, each by a cancellation of its
    /// own. All threads then come in rounds, at the end of which everybody has had the lock or
    /// given up.
    pub storm: Option<Storm>,
    /// How long they live.
    pub threads: Threads,
    /// Where they count as running.
    pub numa_nodes: NumaNodes,
    /// How they wait.
    pub waiting: Waiting,
    /// How long they run.
    pub duration: Duration,
    /// How often to report meanwhile; zero: never.
    pub stat_interval: Duration,
    /// All writers run for so long, then all pause for so long, and so on; zero: they never pause.
    pub stutter: Duration,
    /// Length of the rare long holds, in ms; 0: none.
    pub long_hold_ms: u64,
    /// Of 100 acquisitions, how many are urgent.
    pub priority_percent: u64,
    /// With no acquisition for so long, the lock counts as hung.
    pub hang: Duration,
    /// Whether to record how long the lock is waited for and held.
    pub lockstat: bool,
    /// Values of the lock's settings, indexed by [`Setting`].
    pub settings: [u64; Setting::COUNT],
}

impl Plan {
    /// How many threads there are for this lock. If nobody says: twice as many writers as CPUs, but
    /// at least [`WRITERS_LEAST`]; of a lock with readers as many of both as CPUs, but at least
    /// two, or as many readers as writers if their number is said.
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

/// What was counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Of the writers.
    pub writes: Counts,
    /// Of the readers.
    pub reads: Counts,
}

/// What was counted of the writers, or of the readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Acquisitions of all of them.
    pub total: u64,
    /// Those of the one that has most.
    pub max: u64,
    /// Those of the one that has fewest.
    pub min: u64,
    /// How often one saw that another held the lock who must not.
    pub failures: u64,
}

/// Acquisitions that came to nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GivenUp {
    /// Tried only, and the lock was not free.
    pub refused: u64,
    /// Given up because their time had passed.
    pub timed_out: u64,
    /// Given up because they were cancelled.
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
    /// Whether one has more than twice as many acquisitions as another: locktorture's `???`.
    pub fn is_uneven(&self) -> bool {
        self.max / 2 > self.min
    }
}

/// Something that a working lock does not do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// Two held the lock at the same time, and not both as readers.
    #[error("exclusion violated: {failures} times the lock was seen held by another at the same time")]
    Exclusion {
        /// How often it was seen.
        failures: u64,
    },
    /// A plain counter, incremented under the lock, is too small.
    #[error("{lost} of {total} increments under the lock were lost")]
    LostUpdates {
        /// How many increments.
        lost: u64,
        /// How many there were.
        total: u64,
    },
    /// Nobody gets the lock.
    #[error("hang: no acquisition for {idle:.1?}; {waiting} of {threads} threads wait for the lock")]
    Hang {
        /// For how long.
        idle: Duration,
        /// How many wait.
        waiting: usize,
        /// How many there are.
        threads: usize,
    },
    /// Waits are to be cancelled, and none was.
    #[error("calm: no wait was cancelled for {idle:.1?}; there have been {cancelled} of {wanted}")]
    Calm {
        /// For how long.
        idle: Duration,
        /// How many were cancelled before.
        cancelled: u64,
        /// How many were to be.
        wanted: u64,
    },
    /// Notifications and waits that ended with one are not as many.
    #[error(
        "lost: {sent} notifications were sent to threads that waited for the condition, and {returned} waits have \
         ended with one"
    )]
    LostNotifications {
        /// How many were sent.
        sent: u64,
        /// How many waits say that they had one.
        returned: u64,
    },
    /// Something that must stay as it is has become more.
    #[error("memory: {what} grew from {from} to {to}, though as many threads as before use as many locks")]
    Growth {
        /// What.
        what: &'static str,
        /// How much there was after warming up.
        from: String,
        /// How much there was in the end.
        to: String,
    },
    /// It was not tried.
    #[error(
        "not tortured: threads of a lock before it have not ended, and may use switches that differ from its own; \
         torture it in a run of its own"
    )]
    OthersLeftBehind,
    /// A thread died.
    #[error("{threads} threads panicked")]
    Panicked {
        /// How many.
        threads: usize,
    },
}

/// Whether the lock passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// It did.
    Success,
    /// It did not.
    Failure,
}

impl Verdict {
    /// As locktorture writes it.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Success => "SUCCESS",
            Verdict::Failure => "FAILURE",
        }
    }
}

/// What a lock did.
#[derive(Clone, Debug)]
pub struct Tortured {
    /// The lock.
    pub lock: &'static Subject,
    /// How many threads did it.
    pub crew: Crew,
    /// What was counted.
    pub totals: Totals,
    /// What came to nothing.
    pub given_up: GivenUp,
    /// Exclusive sections that went on as shared ones.
    pub downgraded: u64,
    /// How long it was tortured, in s.
    pub seconds: f64,
    /// The longest wait of an acquisition, in ns; those that never ended included.
    pub wait_ns_max: u64,
    /// What the slow paths counted meanwhile, indexed by [`LockEvent`].
    pub events: [u64; LockEvent::COUNT],
    /// How long it was waited for and held, if that was to be recorded; without threads that are
    /// left behind.
    pub lockstat: Option<Vec<LockStatistics>>,
    /// What came and went, if the threads did.
    pub churn: Option<churn::Churn>,
    /// What went wrong.
    pub problems: Vec<Problem>,
}

impl Tortured {
    /// Of a lock that cannot be switched.
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

    /// For a CNA lock, those of its events that did not happen: paths that the run says nothing
    /// about.
    pub fn paths_not_taken(&self) -> impl Iterator<Item = LockEvent> + '_ {
        let is_of_cna =
            |setting: &Setting| matches!(setting, Setting::CnaThresholdNs | Setting::CnaV13ThresholdNs);
        let is_cna = self.lock.settings().iter().any(is_of_cna);
        let of_cna =
            LockEvent::ALL.iter().copied().filter(move |event| is_cna && event.name().starts_with("cna_"));
        of_cna.filter(|&event| self.events[event as usize] == 0)
    }
}

/// Why a lock could not be tortured.
#[derive(Debug, thiserror::Error)]
pub enum TortureError {
    /// No more threads.
    #[error("cannot start thread {thread} of {threads}: {source}; try fewer with --nwriters and --nreaders")]
    Spawn {
        /// Which could not be started, from 0.
        thread: usize,
        /// How many were asked for.
        threads: usize,
        /// Why.
        source: std::io::Error,
    },
    /// A setting has a value that it cannot have.
    #[error(transparent)]
    Setting(#[from] nearlock_os::OutOfRange),
}

/// Tortures one lock; `interim` is told what was counted so far, as often as the plan says. Sets
/// the process' lock settings. After a hang, threads may be left behind that wait for ever; a lock
/// that is switched in another way than theirs is not tortured after that.
///
/// # Errors
///
/// If the threads cannot be started, or a setting is out of its limits.
pub fn torture(
    lock: &'static Subject,
    plan: &Plan,
    interim: &mut dyn FnMut(&Totals),
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

/// Does it while locks are switched as this one, and threads wait as the plan says.
fn in_its_way<R>(lock: &Subject, plan: &Plan, f: impl FnOnce() -> R) -> R {
    switched(lock, || {
        Watched::choose(plan.waiting);
        f()
    })
}

#[cfg(test)]
mod tests;
