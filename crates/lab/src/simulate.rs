//! One simulated cell: a workload over a lock, by some threads, on a machine.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use hdrhistogram::Histogram;
use nearlock_core::platform::Clock;
use nearlock_core::raw::{RawLock, RawTryLock};
use nearlock_core::settings::{NumaLocality, NumaMode, Setting};
use nearlock_core::subjects::{Fairness, LockVisitor, Subject};
use nearlock_sim::checker::{Checker, Violation};
pub use nearlock_sim::placement::Placement;
use nearlock_sim::spec::{Access, MachineSpec};
use nearlock_sim::{Counters, Machine, Pause, Sim};
use nearlock_workload::Observer;
use nearlock_workload::locktorture::{LongHolds, OwnLine, Params, Shared, ShortHolds, Stats, Writer};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

/// Name of the workload.
pub const WORKLOAD: &str = "locktorture";

/// A scheduler tick of the simulated kernels, in ns: 1000 Hz, the default x86-64 configuration.
const TICK_NS: u64 = 1_000_000;

/// Of the histogram of waits: values are exact to 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Longer waits count as this long: 100 s, of virtual time.
const WAIT_NS_MAX: u64 = 100_000_000_000;

/// The parameters of locktorture that a simulation may vary.
#[derive(Clone, Debug)]
pub struct Locktorture {
    /// Era of the short holds.
    pub short_holds: ShortHolds,
    /// Instructions inside a section, in ns.
    pub section_ns: u64,
    /// Instructions outside, in ns.
    pub think_ns: u64,
    /// Of 100 acquisitions, how many are urgent.
    pub priority_percent: u64,
}

impl Default for Locktorture {
    fn default() -> Self {
        Self { short_holds: ShortHolds::V5_10, section_ns: 75, think_ns: 15, priority_percent: 0 }
    }
}

/// For how long a cell is simulated, and what is held against it.
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
    /// The workload's parameters.
    pub workload: Locktorture,
    /// The lock.
    pub lock: &'static Subject,
    /// How the threads are spread over the machine.
    pub placement: Placement,
    /// Number of threads, each on a CPU of its own; 1 up to the machine's CPUs.
    pub threads: usize,
    /// Draws placement, jitter and the workload's random numbers.
    pub seed: u64,
    /// Values of the lock's settings, indexed by [`Setting`].
    pub settings: [u64; Setting::COUNT],
    /// Lengths and bounds.
    pub limits: Limits,
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
/// If there are no threads, or more than the machine has CPUs.
pub fn simulate(simulation: &Simulation) -> Result<Simulated, Failure> {
    simulation.lock.visit::<Sim, _>(Run(simulation))
}

/// Moments between two looks of the checkers at threads that only wait, in ns of virtual time.
const LOOK_NS: u64 = 1_000_000;

struct Run<'a>(&'a Simulation);

impl LockVisitor<Sim> for Run<'_> {
    type Output = Result<Simulated, Failure>;

    fn visit<L: RawTryLock>(self) -> Self::Output {
        let simulation = self.0;
        let mut seeds = Xoshiro256PlusPlus::seed_from_u64(simulation.seed);
        let machine = Machine::new(&simulation.machine, seeds.next_u64());
        machine.set_settings(simulation.settings);
        let journal = Rc::new(Journal::new(simulation));
        spawn_writers::<L>(&machine, simulation, &journal, &mut seeds);
        self.drive(&machine, &journal)?;
        Ok(journal.report(simulation, machine.counters()))
    }
}

impl Run<'_> {
    /// Lets the machine run to its end, under the eyes of the checkers.
    fn drive(&self, machine: &Machine, journal: &Journal) -> Result<(), Failure> {
        let limits = self.0.limits;
        let end_ns = limits.warm_up_ns + limits.window_ns;
        let mut until_ns = 0;
        loop {
            let next_ns = until_ns + LOOK_NS;
            until_ns = if until_ns < end_ns { next_ns.min(end_ns) } else { next_ns };
            let pause = machine.run_until(until_ns);
            let at_ns = machine.now_ns();
            if let Some((at_ns, violation)) = journal.checker.violation() {
                return Err(self.failure(at_ns, violation.into()));
            }
            match pause {
                Pause::Finished => return Ok(()),
                Pause::Deadlock(waiting) => return Err(self.failure(at_ns, Fault::Deadlock { waiting })),
                Pause::Time => {}
            }
            let idle_ns = until_ns.saturating_sub(journal.checker.last_acquired_ns());
            if idle_ns > limits.livelock_ns {
                return Err(self.failure(until_ns, Fault::Livelock { idle_ns }));
            }
            if until_ns == end_ns {
                journal.note_open_waits(until_ns);
            }
            journal.checker.check_waits(until_ns);
        }
    }

    fn failure(&self, at_ns: u64, fault: Fault) -> Failure {
        let Simulation { lock, threads, seed, .. } = *self.0;
        Failure { lock: lock.name, threads, seed, at_ns, fault }
    }
}

/// The wait after which a thread counts as starved, in ns: what was set, or several times what the lock's
/// promise comes to. Generous, since it has to tell a bound from none, not one bound from another.
fn starvation_ns(simulation: &Simulation) -> u64 {
    let Simulation { machine, workload, settings, threads, .. } = simulation;
    let limit_ns = simulation.limits.starvation_ns;
    if limit_ns > 0 && simulation.lock.fairness != Fairness::Unbounded {
        return limit_ns;
    }
    let farthest_ns = machine.latency(Access::LoadMemory, machine.distances.len() - 1);
    // A section has a short hold and a score of transfers, at most.
    let section_ns = workload.section_ns + workload.think_ns + 2_000 + 20 * farthest_ns as u64;
    let threads = *threads as u64;
    let queue_ns = 10 * (threads + 1) * section_ns;
    match simulation.lock.fairness {
        Fairness::Unbounded => u64::MAX,
        Fairness::Fifo => queue_ns,
        Fairness::Threshold(threshold) => match settings[threshold as usize] {
            0 => u64::MAX,
            threshold_ns => {
                let in_ticks = simulation.lock.settings.contains(&Setting::CnaV13TickHz);
                let ticks_ns =
                    if in_ticks { 2_000_000_000 / settings[Setting::CnaV13TickHz as usize] } else { 0 };
                10 * numa_nodes(machine, settings) * (threshold_ns + ticks_ns + queue_ns)
            }
        },
        Fairness::PassLimit(limit) => {
            // The NUMA nodes in turn, as often as it takes to get through the queue on one's own.
            let in_turn = settings[limit as usize] + 1 + threads;
            10_u64.saturating_mul(numa_nodes(machine, settings) * in_turn).saturating_mul(section_ns)
        }
    }
}

/// How many NUMA nodes the lock sees.
fn numa_nodes(machine: &MachineSpec, settings: &[u64; Setting::COUNT]) -> u64 {
    if NumaMode::of(settings[Setting::NumaMode as usize]) == NumaMode::Off {
        return 1;
    }
    match NumaLocality::of(settings[Setting::NumaLocality as usize]) {
        NumaLocality::Node => machine.sockets as u64,
        NumaLocality::LastLevelCache => machine.domains() as u64,
        NumaLocality::Synthetic => settings[Setting::NumaSyntheticNodes as usize],
    }
}

/// Puts the workload on the machine, a writer to each CPU that the seed draws.
fn spawn_writers<L: RawLock>(
    machine: &Machine,
    simulation: &Simulation,
    journal: &Rc<Journal>,
    seeds: &mut impl Rng,
) {
    let threads = simulation.threads;
    let spec = &simulation.machine;
    let params = Params {
        writers: threads as u64,
        short_holds: simulation.workload.short_holds,
        long_holds: LongHolds::LeftOut,
        section_ns: simulation.workload.section_ns,
        think_ns: simulation.workload.think_ns,
        tick_ns: TICK_NS,
        priority_percent: simulation.workload.priority_percent,
    };
    let shared = Rc::new(machine.place(0, Shared::<Sim, L>::default()));
    let stats = Rc::new(machine.place_slice(0, threads, Stats::<Sim>::default));
    for (thread, cpu) in simulation.placement.cpus(spec, threads, seeds.next_u64()).into_iter().enumerate() {
        let node = spec.numa_node_of_cpu(cpu);
        let mut queue_node = machine.place(node, OwnLine(L::Node::default()));
        let (shared, stats, params) = (Rc::clone(&shared), Rc::clone(&stats), params.clone());
        let mut scribe = Scribe { journal: Rc::clone(journal), thread, node };
        let writer_seed = seeds.next_u64();
        // Kernel threads are started one after the other.
        let start_ns = 50 * thread as u64;
        machine.spawn(cpu, start_ns, move || {
            let stats = &stats[thread];
            let node = &mut queue_node.0;
            Writer::<Sim, L>::new(&shared, stats, node, &params, writer_seed).run(&mut scribe);
        });
    }
}

/// What is noted of a run, by all its threads.
struct Journal {
    checker: Checker,
    window_ns: Range<u64>,
    noted: RefCell<Noted>,
}

struct Noted {
    acquired: Vec<u64>,
    wait_ns: Histogram<u64>,
    last_node: usize,
    local_handovers: u64,
    at_begin: Option<Counters>,
    at_end: Option<Counters>,
}

impl Journal {
    fn new(simulation: &Simulation) -> Self {
        let limits = simulation.limits;
        let wait_ns = Histogram::new_with_max(WAIT_NS_MAX, SIGNIFICANT_DIGITS).expect("within its limits");
        Self {
            checker: Checker::new(simulation.threads, starvation_ns(simulation)),
            window_ns: limits.warm_up_ns..limits.warm_up_ns + limits.window_ns,
            noted: RefCell::new(Noted {
                acquired: vec![0; simulation.threads],
                wait_ns,
                last_node: usize::MAX,
                local_handovers: 0,
                at_begin: None,
                at_end: None,
            }),
        }
    }

    fn acquired(&self, thread: usize, node: usize) {
        let now_ns = Sim::now_ns();
        let waited_ns = self.checker.acquired(thread, now_ns);
        let noted = &mut *self.noted.borrow_mut();
        let last_node = std::mem::replace(&mut noted.last_node, node);
        if now_ns < self.window_ns.start {
            return;
        }
        noted.at_begin.get_or_insert_with(Machine::current_counters);
        if now_ns >= self.window_ns.end {
            noted.at_end.get_or_insert_with(Machine::current_counters);
            return;
        }
        noted.acquired[thread] += 1;
        noted.wait_ns.saturating_record(waited_ns);
        noted.local_handovers += u64::from(last_node == node);
    }

    /// A wait counts, for as long as it lasts within the window, even if it does not end there.
    fn note_open_waits(&self, now_ns: u64) {
        let noted = &mut *self.noted.borrow_mut();
        for since_ns in self.checker.waiting_since() {
            noted.wait_ns.saturating_record(now_ns - since_ns.max(self.window_ns.start));
        }
    }

    fn report(&self, simulation: &Simulation, after: Counters) -> Simulated {
        let noted = self.noted.borrow();
        // At least one, so that a window in which nobody acquired gives zeros.
        let operations = noted.acquired.iter().sum::<u64>() as f64;
        let ratio = |of: f64| if operations == 0.0 { 0.0 } else { of / operations };
        let window_ns = (self.window_ns.end - self.window_ns.start) as f64;
        let ns_per_op = window_ns / operations + LongHolds::MEAN_NS / simulation.threads as f64;
        let squares = noted.acquired.iter().map(|n| (*n as f64).powi(2)).sum::<f64>();
        let (begin, end) = (noted.at_begin.unwrap_or(after), noted.at_end.unwrap_or(after));
        let per_op = |a: u64, b: u64| ratio((b - a) as f64);
        Simulated {
            machine: simulation.machine.name.clone(),
            workload: WORKLOAD.to_owned(),
            lock: simulation.lock.name.to_owned(),
            threads: simulation.threads,
            seed: simulation.seed,
            ops_per_us: 1000.0 / ns_per_op,
            jain: ratio(operations.powi(3) / (simulation.threads as f64 * squares)),
            wait_ns_p50: noted.wait_ns.value_at_quantile(0.5),
            wait_ns_p99: noted.wait_ns.value_at_quantile(0.99),
            wait_ns_max: noted.wait_ns.max(),
            line_transfers_per_op: per_op(begin.line_transfers, end.line_transfers),
            remote_transfers_per_op: per_op(begin.remote_transfers, end.remote_transfers),
            local_handover_share: ratio(noted.local_handovers as f64),
        }
    }
}

/// Observes one writer.
struct Scribe {
    journal: Rc<Journal>,
    thread: usize,
    node: usize,
}

impl Observer for Scribe {
    fn waiting(&mut self) {
        self.journal.checker.waiting(self.thread, Sim::now_ns());
    }
    fn acquired(&mut self) {
        self.journal.acquired(self.thread, self.node);
    }
    fn releasing(&mut self) {
        self.journal.checker.releasing(self.thread, Sim::now_ns());
    }
    fn goes_on(&mut self) -> bool {
        Sim::now_ns() < self.journal.window_ns.end
    }
}

#[cfg(test)]
mod tests;
