//! The torture test: locktorture on this machine, over any lock.
//!
//! Each writer runs [`locktorture`](nearlock_workload::locktorture) with today's short holds. Three things
//! are added to the original: a counter that is not atomic and must not lose an update, a watch for
//! standstill, and *phases*. A lock has paths that only a full queue reaches and paths that only a queue
//! that runs empty reaches, so how many writers take part, and how long they think between
//! acquisitions, changes several times a second at random. Totals are therefore no benchmark.
//! Unless told otherwise there are twice as many writers as CPUs, but at least four: see [`WRITERS_LEAST`].
//!
//! Judged are exclusion and progress. Fairness is not: look at Max/Min and at the longest wait.

mod pace;
mod run;

use std::thread::available_parallelism;
use std::time::Duration;

use nearlock_core::events::LockEvent;
use nearlock_core::native::Spin;
use nearlock_core::settings::{NumaLocality, NumaMode, Setting};
use nearlock_core::subjects::Subject;
use nearlock_os::topology::Machine;
use nearlock_os::{Os, SpinThenYield};
use serde::Serialize;

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
    /// What the settings `numa.*` make of this machine. If that is its own nodes, and the process can run on
    /// one only: two that are made up.
    pub fn by(settings: &[u64; Setting::COUNT]) -> Self {
        if NumaMode::of(settings[Setting::NumaMode as usize]) == NumaMode::Off {
            return NumaNodes::Real(1);
        }
        match NumaLocality::of(settings[Setting::NumaLocality as usize]) {
            NumaLocality::Node => match Machine::of_this_process().allowed_nodes().count() {
                0 | 1 => NumaNodes::Synthetic(2),
                several => NumaNodes::Real(several as u32),
            },
            NumaLocality::LastLevelCache => {
                NumaNodes::Real(Machine::of_this_process().last_level_caches.len() as u32)
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

/// Most writers. A thread takes four mappings (two stacks, each with a guard page), Linux allows a process
/// 65530 of them unless told otherwise (`vm.max_map_count`), and a thread that cannot have its own aborts the
/// process.
pub const WRITERS_MAX: usize = 8192;

/// Fewest writers if nobody says how many, so that every path of CNA is taken also on one CPU: one who holds
/// the lock, and for CNA to sort a head, a waiter to be moved, and one behind it.
pub const WRITERS_LEAST: usize = 4;

/// How many writers there are if nobody says: twice as many as CPUs, but at least [`WRITERS_LEAST`].
pub fn writers_by_default() -> usize {
    WRITERS_LEAST.max(2 * available_parallelism().map_or(1, usize::from)).min(WRITERS_MAX)
}

/// The values of lock settings that the torture test begins with: the defaults, but CNA sorts one queue in
/// four instead of one in 128, and cna-v13 too flushes a secondary queue after 1 ms. Every path is taken
/// with the defaults too, some of them a few times a minute only.
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
    /// Number of writers, 1 to [`WRITERS_MAX`].
    pub writers: usize,
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
    /// Values of the lock's settings, indexed by [`Setting`].
    pub settings: [u64; Setting::COUNT],
}

/// What was counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Acquisitions of all writers.
    pub total: u64,
    /// Those of the writer that has most.
    pub max: u64,
    /// Those of the writer that has fewest.
    pub min: u64,
    /// How often a writer saw another hold the lock.
    pub failures: u64,
}

impl Counts {
    /// Whether one writer has more than twice as many acquisitions as another: locktorture's `???`.
    pub fn is_uneven(&self) -> bool {
        self.max / 2 > self.min
    }
}

/// Something that a working lock does not do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// Two writers held the lock at the same time.
    #[error("exclusion violated: {failures} times a writer saw another hold the lock")]
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
    #[error("hang: no acquisition for {idle:.1?}; {waiting} of {writers} writers wait for the lock")]
    Hang {
        /// For how long.
        idle: Duration,
        /// How many wait.
        waiting: usize,
        /// How many there are.
        writers: usize,
    },
    /// A writer died.
    #[error("{writers} writers panicked")]
    Panicked {
        /// How many.
        writers: usize,
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
    /// What was counted.
    pub counts: Counts,
    /// How long it was tortured, in s.
    pub seconds: f64,
    /// The longest wait of an acquisition, in ns; those that never ended included.
    pub wait_ns_max: u64,
    /// What the slow paths counted meanwhile, indexed by [`LockEvent`].
    pub events: [u64; LockEvent::COUNT],
    /// What went wrong.
    pub problems: Vec<Problem>,
}

impl Tortured {
    /// The verdict.
    pub fn verdict(&self) -> Verdict {
        if self.problems.is_empty() { Verdict::Success } else { Verdict::Failure }
    }

    /// The events that happened.
    pub fn events_seen(&self) -> impl Iterator<Item = (LockEvent, u64)> + '_ {
        let all = LockEvent::ALL.iter().map(|&event| (event, self.events[event as usize]));
        all.filter(|(_, count)| *count > 0)
    }

    /// For a CNA lock, those of its events that did not happen: paths that the run says nothing about.
    pub fn paths_not_taken(&self) -> impl Iterator<Item = LockEvent> + '_ {
        let is_cna = self.lock.name.starts_with("cna");
        let of_cna =
            LockEvent::ALL.iter().copied().filter(move |event| is_cna && event.name().starts_with("cna_"));
        of_cna.filter(|&event| self.events[event as usize] == 0)
    }
}

/// Why a lock could not be tortured.
#[derive(Debug, thiserror::Error)]
pub enum TortureError {
    /// No more threads.
    #[error("cannot start writer {writer} of {writers}: {source}; try fewer with --nwriters")]
    Spawn {
        /// Which could not be started, from 0.
        writer: usize,
        /// How many were asked for.
        writers: usize,
        /// Why.
        source: std::io::Error,
    },
    /// A setting has a value that it cannot have.
    #[error(transparent)]
    Setting(#[from] nearlock_os::OutOfRange),
}

/// Tortures one lock; `interim` is told what was counted so far, as often as the plan says. Sets the
/// process' lock settings. After a hang, writers may be left behind that wait for ever.
///
/// # Errors
///
/// If the writers cannot be started, or a setting is out of its limits.
pub fn torture(
    lock: &'static Subject,
    plan: &Plan,
    interim: &mut dyn FnMut(&Counts),
) -> Result<Tortured, TortureError> {
    for &setting in Setting::ALL {
        nearlock_os::set_setting(setting, plan.settings[setting as usize])?;
    }
    match plan.waiting {
        Waiting::Spin => lock.visit::<Os<Spin>, _>(run::Visitor { lock, plan, interim }),
        Waiting::Yield => lock.visit::<Os<SpinThenYield>, _>(run::Visitor { lock, plan, interim }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;

    fn plan() -> Plan {
        Plan {
            writers: 4,
            numa_nodes: NumaNodes::Synthetic(2),
            waiting: Waiting::Yield,
            duration: Duration::from_millis(200),
            stat_interval: Duration::from_millis(50),
            stutter: Duration::ZERO,
            long_hold_ms: 0,
            priority_percent: 10,
            hang: Duration::from_secs(60),
            settings: settings(),
        }
    }

    #[test]
    fn nodes_are_those_that_the_settings_make() {
        let by = |mode: NumaMode, locality: NumaLocality| {
            let mut settings = Setting::DEFAULTS;
            settings[Setting::NumaMode as usize] = mode as u64;
            settings[Setting::NumaLocality as usize] = locality as u64;
            settings[Setting::NumaSyntheticNodes as usize] = 5;
            NumaNodes::by(&settings)
        };
        assert_eq!(by(NumaMode::Off, NumaLocality::Synthetic), NumaNodes::Real(1));
        assert_eq!(by(NumaMode::Auto, NumaLocality::Synthetic), NumaNodes::Slots(5));
        assert!(by(NumaMode::Auto, NumaLocality::Node).count() >= 2);
        assert!(by(NumaMode::On, NumaLocality::LastLevelCache).count() >= 1);
    }

    #[test]
    fn every_working_lock_passes() {
        for lock in Subject::working() {
            let mut reports = 0;
            let tortured = torture(lock, &plan(), &mut |_| reports += 1).unwrap();
            assert_eq!(tortured.problems, [], "{}", lock.name);
            assert!(tortured.counts.total > 0 && tortured.counts.max >= tortured.counts.min);
            assert!(reports > 0);
            let seen = tortured.events_seen().filter(|(event, _)| event.name().starts_with("cna_")).count();
            let cna_events = if lock.name.starts_with("cna") { 4 } else { 0 };
            assert_eq!(seen + tortured.paths_not_taken().count(), cna_events, "{}", lock.name);
        }
    }

    #[test]
    fn stutter_and_one_writer_pass() {
        let stutter = Duration::from_millis(30);
        let plan = Plan { writers: 1, stutter, waiting: Waiting::Spin, long_hold_ms: 1, ..plan() };
        let tortured = torture(names::lock("qspinlock").unwrap(), &plan, &mut |_| ()).unwrap();
        assert_eq!(tortured.problems, []);
        assert!(!tortured.counts.is_uneven());
    }

    #[test]
    fn a_lock_that_excludes_nobody_is_found_out() {
        let plan = Plan { duration: Duration::from_secs(2), ..plan() };
        let tortured = torture(names::lock("lock-busted").unwrap(), &plan, &mut |_| ()).unwrap();
        assert_eq!(tortured.verdict(), Verdict::Failure);
        assert!(matches!(tortured.problems[0], Problem::Exclusion { .. }), "{:?}", tortured.problems);
    }

    #[test]
    fn a_lock_that_wakes_nobody_is_found_out() {
        // Two writers must have met by then, also on a busy machine.
        let plan = Plan { duration: Duration::from_secs(5), hang: Duration::from_secs(1), ..plan() };
        let tortured = torture(names::lock("lock-lost-wakeup").unwrap(), &plan, &mut |_| ()).unwrap();
        assert!(matches!(tortured.problems[..], [Problem::Hang { .. }]), "{:?}", tortured.problems);
        assert!(tortured.wait_ns_max > 1_000_000);
    }
}
