//! The simulation of one cell: a workload with a lock, a number of threads, and a machine.

mod cell;
mod facts;
mod journal;
mod report;
mod seating;
mod starvation;
mod workload;
mod workloads;

use std::rc::Rc;

use nearlock_erased::CurrentLock;
use nearlock_sim::checker::Violation;
pub use nearlock_sim::placement::Placement;
use nearlock_sim::{Machine, Pause};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub use cell::{Limits, Simulation};
pub use facts::Facts;
use journal::{Journal, Recording};
pub use report::Simulated;
use seating::Seating;
pub use seating::Start;
pub use workload::AnyWorkload;
pub use workloads::{
    Context1, Jobs, Locktorture, MutexSection, Partners, ReadRandom, RwSection, Sections, Statistics,
    WORKLOADS, WillItScale, workloads,
};

/// A failed check of a run. The seed repeats the run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{lock}, {threads} threads, seed {seed}: {fault}, at {at_ns} ns")]
pub struct Failure {
    /// The lock.
    pub lock: &'static str,
    /// Number of threads.
    pub threads: usize,
    /// The seed.
    pub seed: u64,
    /// When the fault was found, in ns of virtual time.
    pub at_ns: u64,
    /// The fault that was found.
    pub fault: Fault,
}

/// A fault that a checker can find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Two threads held the lock at the same time.
    #[error("exclusion violated: threads {holder} and {intruder} hold the lock together")]
    Exclusion {
        /// The thread that held the lock.
        holder: usize,
        /// The thread that acquired it meanwhile.
        intruder: usize,
    },
    /// No event is left, but threads still wait.
    #[error("deadlock: {waiting} threads wait and nothing can wake them")]
    Deadlock {
        /// The number of threads that wait.
        waiting: usize,
    },
    /// Events happen, but no thread acquires the lock.
    #[error("livelock: no thread has acquired the lock for {idle_ns} ns")]
    Livelock {
        /// The time without an acquisition, in ns.
        idle_ns: u64,
    },
    /// A reader saw a write by a writer.
    #[error("exclusion violated: a writer wrote while a reader held the lock")]
    TornRead,
    /// A thread waits far too long, although the lock promises a bound.
    #[error("starvation: thread {thread} has waited for {waited_ns} ns")]
    Starvation {
        /// The thread.
        thread: usize,
        /// The time for which it has waited, in ns.
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

/// Simulates one cell on the calling thread. The same input gives the same output.
///
/// # Errors
///
/// The first [`Failure`] that a checker finds.
///
/// # Panics
///
/// If there are no threads, or more than the workload supports.
pub fn simulate(simulation: &Simulation) -> Result<Simulated, Failure> {
    Driver(simulation).run()
}

/// The interval at which the checkers look at threads that only wait, in ns of virtual time.
const LOOK_NS: u64 = 1_000_000;

struct Driver<'a>(&'a Simulation);

impl Driver<'_> {
    fn run(&self) -> Result<Simulated, Failure> {
        let simulation = self.0;
        let facts = simulation.facts();
        let mut seeds = Xoshiro256PlusPlus::seed_from_u64(simulation.seed);
        let mut spec = simulation.machine.clone();
        spec.model.preemption = facts.preemption;
        // SAFETY: one simulation runs on this thread, and its locks and nodes end with its machine.
        let _current = unsafe { CurrentLock::new(simulation.lock) };
        let machine = Machine::new(&spec, seeds.next_u64());
        machine.set_settings(simulation.lock.settings_over(simulation.settings));
        machine.set_switches(simulation.lock.switches());
        let journal = Rc::new(Journal::new(self.recording(&facts)));
        simulation.workload.start_erased(&mut Seating {
            machine: &machine,
            spec: &spec,
            facts,
            threads: simulation.threads,
            placement: simulation.placement,
            start: simulation.start,
            seeds: &mut seeds,
            journal: &journal,
        });
        self.drive(&machine, &journal)?;
        Ok(report::report(simulation, &journal, (machine.counters(), machine.times())))
    }

    fn recording<'b>(&self, facts: &'b Facts) -> Recording<'b> {
        let Simulation { limits, threads, lockstat, .. } = *self.0;
        let window_ns =
            if facts.ends() { 0..u64::MAX } else { limits.warm_up_ns..limits.warm_up_ns + limits.window_ns };
        Recording { facts, threads, window_ns, starvation_ns: starvation::bound_ns(self.0), lockstat }
    }

    /// Runs the machine to its end, with the checkers.
    fn drive(&self, machine: &Machine, journal: &Journal) -> Result<(), Failure> {
        let limits = self.0.limits;
        let end_ns = journal.window_ns().end;
        let away_ns_max = self.0.facts().away_ns_max;
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
            if idle_ns > limits.livelock_ns + away_ns_max {
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
