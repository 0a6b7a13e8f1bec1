//! One simulated cell: a workload over a lock, by some threads, on a machine.

#[path = "simulate/workloads/context1.rs"]
mod context1;
mod erased;
#[path = "simulate/workloads/jobs.rs"]
mod jobs;
mod journal;
#[path = "simulate/workloads/mutex_section.rs"]
mod mutex_section;
#[path = "simulate/workloads/readrandom.rs"]
mod readrandom;
mod starvation;
#[path = "simulate/workloads/will_it_scale.rs"]
mod will_it_scale;
mod workload;

use std::rc::Rc;

use nearlock_collection::subjects::{LockVisitor, Subject};
use nearlock_core::events::LockEvent;
use nearlock_core::raw::{RawRwLock, RawTryLock};
use nearlock_core::settings::Setting;
use nearlock_sim::checker::Violation;
pub use nearlock_sim::placement::Placement;
use nearlock_sim::spec::MachineSpec;
use nearlock_sim::{Machine, Pause, Sim};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

use crate::lockstat::LockStatistics;
use erased::{Chosen, Erased, InRoom, Operations, in_room};
use journal::Journal;
pub use mutex_section::MutexSection;
pub use readrandom::ReadRandom;
pub use workload::{Context1, Locktorture, Partners, Sections, Start, Statistics, Workload};

/// For how long a cell is simulated, and what is held against it. A workload whose threads end by themselves is counted
/// from its beginning to its end.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Virtual time before counting begins, in ns.
    pub warm_up_ns: u64,
    /// Virtual time that is counted, in ns.
    pub window_ns: u64,
    /// Virtual time without any acquisition after which the run is a livelock, in ns.
    pub livelock_ns: u64,
    /// Wait after which a waiter counts as starved, in ns of virtual time; 0: a bound that follows from
    /// what the lock promises. Not held against locks that promise none.
    pub starvation_ns: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { warm_up_ns: 12_000_000, window_ns: 60_000_000, livelock_ns: 10_000_000, starvation_ns: 0 }
    }
}

/// What is to be simulated.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// The machine.
    pub machine: MachineSpec,
    /// What the threads do.
    pub workload: Workload,
    /// The lock.
    pub lock: &'static Subject,
    /// How the threads are spread over the machine.
    pub placement: Placement,
    /// In which order the threads begin.
    pub start: Start,
    /// Number of threads: a multiple of the workload's [group](Workload::group), at most its
    /// [`threads_max`](Workload::threads_max). Each has a CPU of its own if there are enough.
    pub threads: usize,
    /// Draws placement, jitter and the workload's random numbers.
    pub seed: u64,
    /// Values of the lock's settings, indexed by [`Setting`].
    pub settings: [u64; Setting::COUNT],
    /// Lengths and bounds.
    pub limits: Limits,
    /// Whether to record how long the locks are waited for and held.
    pub lockstat: bool,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Simulated {
    /// Name of the machine.
    pub machine: String,
    /// Name of the workload.
    pub workload: String,
    /// Name of the lock.
    pub lock: String,
    /// Number of threads.
    pub threads: usize,
    /// The seed.
    pub seed: u64,
    /// Acquisitions per microsecond of virtual time, by all threads. The rare long holds, which are not
    /// simulated, are in it at their mean.
    pub ops_per_us: f64,
    /// Jain's index of the threads' acquisitions: 1 is equal shares, 1/threads is one thread alone.
    pub jain: f64,
    /// Median wait of an acquisition, in ns.
    pub wait_ns_p50: u64,
    /// 99th percentile of the wait, in ns.
    pub wait_ns_p99: u64,
    /// Longest wait, in ns. Waits that do not end within the window are in all three figures, for as long
    /// as they last within it.
    pub wait_ns_max: u64,
    /// Transfers of a line between caches or from memory, per acquisition.
    pub line_transfers_per_op: f64,
    /// Those that crossed sockets.
    pub remote_transfers_per_op: f64,
    /// Share of acquisitions whose predecessor ran on the same NUMA node.
    pub local_handover_share: f64,
    /// Share of the threads' CPU time that they spent in slow paths of locks, spinning for an owner or for a spin lock not
    /// included, as a profiler would show it: 0.1 is 10 %. Of locks that mark theirs.
    pub slow_path_share: f64,
    /// Jobs that all users together do in a minute of virtual time; `None` where there are none.
    pub jobs_per_minute: Option<f64>,
    /// What the lock's slow paths counted within the window, indexed by [`LockEvent`]. (Not a column: see
    /// [`events_seen`](Self::events_seen).)
    #[serde(skip)]
    pub events: [u64; LockEvent::COUNT],
    /// How long each of the workload's locks was waited for and held within the window, if that was to be recorded. (Not a
    /// column.)
    #[serde(skip)]
    pub lockstat: Option<Vec<LockStatistics>>,
    /// The window, in s of virtual time. (Not a column.)
    #[serde(skip)]
    pub window_s: f64,
}

impl Simulated {
    /// The events that happened, and how often.
    pub fn events_seen(&self) -> impl Iterator<Item = (LockEvent, u64)> + '_ {
        let all = LockEvent::ALL.iter().map(|&event| (event, self.events[event as usize]));
        all.filter(|(_, count)| *count > 0)
    }
}

/// A checker's verdict on a run. It names the seed that repeats it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{lock}, {threads} threads, seed {seed}: {fault}, at {at_ns} ns")]
pub struct Failure {
    /// The lock.
    pub lock: &'static str,
    /// Number of threads.
    pub threads: usize,
    /// The seed.
    pub seed: u64,
    /// When it was found, in ns of virtual time.
    pub at_ns: u64,
    /// What was found.
    pub fault: Fault,
}

/// What a checker may find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Two threads were inside at once.
    #[error("exclusion violated: threads {holder} and {intruder} hold it together")]
    Exclusion {
        /// Who held the lock.
        holder: usize,
        /// Who acquired it meanwhile.
        intruder: usize,
    },
    /// Nothing can happen any more, and threads still wait.
    #[error("deadlock: {waiting} threads wait and nothing can wake them")]
    Deadlock {
        /// How many wait.
        waiting: usize,
    },
    /// Things happen, but nobody gets the lock.
    #[error("livelock: nobody has acquired for {idle_ns} ns")]
    Livelock {
        /// For how long, in ns.
        idle_ns: u64,
    },
    /// A reader saw what a writer did.
    #[error("exclusion violated: a writer wrote while a reader held it")]
    TornRead,
    /// Somebody waits far too long, though the lock promises a bound.
    #[error("starvation: thread {thread} has waited for {waited_ns} ns")]
    Starvation {
        /// Who.
        thread: usize,
        /// For how long, in ns.
        waited_ns: u64,
    },
}

impl From<Violation> for Fault {
    fn from(violation: Violation) -> Self {
        match violation {
            Violation::Exclusion { holder, intruder } => Fault::Exclusion { holder, intruder },
            Violation::Starvation { thread, waited_ns } => Fault::Starvation { thread, waited_ns },
        }
    }
}

/// Simulates one cell. Runs on the calling thread; the same input gives the same output.
///
/// # Errors
///
/// The first [`Failure`] that a checker finds.
///
/// # Panics
///
/// If there are no threads, or more than the workload can have.
pub fn simulate(simulation: &Simulation) -> Result<Simulated, Failure> {
    simulation.lock.visit::<Sim, _>(Run(simulation))
}

/// Moments between two looks of the checkers at threads that only wait, in ns of virtual time.
const LOOK_NS: u64 = 1_000_000;

struct Run<'a>(&'a Simulation);

impl LockVisitor<Sim> for Run<'_> {
    type Output = Result<Simulated, Failure>;

    fn visit<L: RawTryLock>(self) -> Self::Output {
        let _chosen = Chosen::new(const { &Operations::of::<L>() });
        in_room::<L, _>(Alone(self.0))
    }

    fn visit_rw<L: RawRwLock>(self) -> Self::Output {
        if !self.0.workload.has_readers() {
            return self.visit::<L>();
        }
        let _chosen = Chosen::new(const { &Operations::with_readers::<L>() });
        in_room::<L, _>(WithReaders(self.0))
    }
}

/// A workload in which the lock's holders are alone.
struct Alone<'a>(&'a Simulation);

impl InRoom for Alone<'_> {
    type Output = Result<Simulated, Failure>;

    fn with<R: 'static>(self) -> Self::Output {
        Run(self.0).run(|simulation, machine, journal, seeds| {
            simulation.workload.spawn::<Erased<R>>(machine, simulation, journal, seeds);
        })
    }
}

/// A workload whose readers share the lock.
struct WithReaders<'a>(&'a Simulation);

impl InRoom for WithReaders<'_> {
    type Output = Result<Simulated, Failure>;

    fn with<R: 'static>(self) -> Self::Output {
        Run(self.0).run(|simulation, machine, journal, seeds| {
            simulation.workload.spawn_shared::<R>(machine, simulation, journal, seeds);
        })
    }
}

impl Run<'_> {
    /// Runs what `spawn` puts on a machine.
    fn run(
        &self,
        spawn: impl FnOnce(&Simulation, &Machine, &Rc<Journal>, &mut Xoshiro256PlusPlus),
    ) -> Result<Simulated, Failure> {
        let simulation = self.0;
        let mut seeds = Xoshiro256PlusPlus::seed_from_u64(simulation.seed);
        let machine = Machine::new(&simulation.workload.machine(&simulation.machine), seeds.next_u64());
        machine.set_settings(simulation.lock.settings_over(simulation.settings));
        machine.set_switches(simulation.lock.switches());
        let journal = Rc::new(Journal::new(simulation));
        spawn(simulation, &machine, &journal, &mut seeds);
        self.drive(&machine, &journal)?;
        Ok(journal.report(simulation, (machine.counters(), machine.times())))
    }

    /// Lets the machine run to its end, under the eyes of the checkers.
    fn drive(&self, machine: &Machine, journal: &Journal) -> Result<(), Failure> {
        let limits = self.0.limits;
        let end_ns = journal.end_ns();
        let mut until_ns = 0;
        loop {
            let next_ns = until_ns + LOOK_NS;
            until_ns = if until_ns < end_ns { next_ns.min(end_ns) } else { next_ns };
            let pause = machine.run_until(until_ns);
            let at_ns = machine.now_ns();
            if let Some((at_ns, violation)) = journal.violation() {
                return Err(self.failure(at_ns, violation.into()));
            }
            match pause {
                Pause::Finished if journal.is_torn() => return Err(self.failure(at_ns, Fault::TornRead)),
                Pause::Finished => return Ok(()),
                Pause::Deadlock(waiting) => return Err(self.failure(at_ns, Fault::Deadlock { waiting })),
                Pause::Time => {}
            }
            let idle_ns = until_ns.saturating_sub(journal.last_alive_ns());
            if idle_ns > limits.livelock_ns + self.0.workload.sleep_ns_max() {
                return Err(self.failure(until_ns, Fault::Livelock { idle_ns }));
            }
            if until_ns == end_ns {
                journal.note_open_waits(until_ns);
            }
            journal.check_waits(until_ns);
        }
    }

    fn failure(&self, at_ns: u64, fault: Fault) -> Failure {
        let Simulation { lock, threads, seed, .. } = *self.0;
        Failure { lock: lock.name, threads, seed, at_ns, fault }
    }
}

#[cfg(test)]
mod tests;
