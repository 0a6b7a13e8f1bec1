//! One simulated cell: a workload over a lock, by some threads, on a machine.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use hdrhistogram::Histogram;
use nearlock_core::platform::Clock;
use nearlock_core::raw::RawLock;
use nearlock_core::settings::Setting;
use nearlock_core::subjects::{Fairness, LockVisitor, Subject};
use nearlock_sim::checker::{Checker, Violation};
pub use nearlock_sim::placement::Placement;
use nearlock_sim::spec::MachineSpec;
use nearlock_sim::{Counters, Machine, Pause, Sim};
use nearlock_workload::Observer;
use nearlock_workload::locktorture::{LongHolds, OwnLine, Params, Shared, ShortHolds, Stats, Writer};
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
    /// Wait after which a waiter counts as starved, in ns of virtual time. Not held against locks that
    /// promise no bound.
    pub starvation_ns: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            warm_up_ns: 12_000_000,
            window_ns: 60_000_000,
            livelock_ns: 10_000_000,
            starvation_ns: 50_000_000,
        }
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
    /// Longest wait, in ns; those still waiting when the window ends included.
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

    fn visit<L: RawLock>(self) -> Self::Output {
        let simulation = self.0;
        let machine = Machine::new(&simulation.machine, simulation.seed);
        machine.set_settings(simulation.settings);
        let journal = Rc::new(Journal::new(simulation));
        spawn_writers::<L>(&machine, simulation, &journal);
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
            until_ns += LOOK_NS;
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
            if until_ns <= end_ns {
                journal.note_present_waits(until_ns);
            }
        }
    }

    fn failure(&self, at_ns: u64, fault: Fault) -> Failure {
        let Simulation { lock, threads, seed, .. } = *self.0;
        Failure { lock: lock.name, threads, seed, at_ns, fault }
    }
}

/// Puts the workload on the machine, a writer to each CPU that the seed draws.
fn spawn_writers<L: RawLock>(machine: &Machine, simulation: &Simulation, journal: &Rc<Journal>) {
    let Simulation { threads, seed, .. } = *simulation;
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
    for (thread, cpu) in simulation.placement.cpus(spec, threads, seed).into_iter().enumerate() {
        let node = spec.numa_node_of_cpu(cpu);
        let mut queue_node = machine.place(node, OwnLine(L::Node::default()));
        let (shared, stats, params) = (Rc::clone(&shared), Rc::clone(&stats), params.clone());
        let mut scribe = Scribe { journal: Rc::clone(journal), thread, node };
        let writer_seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(thread as u64);
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
    longest_present_ns: u64,
    at_begin: Option<Counters>,
    at_end: Option<Counters>,
}

impl Journal {
    fn new(simulation: &Simulation) -> Self {
        let limits = simulation.limits;
        let starvation_ns = match simulation.lock.fairness {
            Fairness::Unbounded => u64::MAX,
            Fairness::Fifo | Fairness::Threshold => limits.starvation_ns,
        };
        let wait_ns = Histogram::new_with_max(WAIT_NS_MAX, SIGNIFICANT_DIGITS).expect("within its limits");
        Self {
            checker: Checker::new(simulation.threads, starvation_ns),
            window_ns: limits.warm_up_ns..limits.warm_up_ns + limits.window_ns,
            noted: RefCell::new(Noted {
                acquired: vec![0; simulation.threads],
                wait_ns,
                last_node: usize::MAX,
                local_handovers: 0,
                longest_present_ns: 0,
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

    /// A long wait counts even if it does not end within the window.
    fn note_present_waits(&self, now_ns: u64) {
        let longest = self.checker.longest_present_wait(now_ns);
        let noted = &mut *self.noted.borrow_mut();
        noted.longest_present_ns = noted.longest_present_ns.max(longest);
    }

    fn report(&self, simulation: &Simulation, after: Counters) -> Simulated {
        let noted = self.noted.borrow();
        let operations = noted.acquired.iter().sum::<u64>() as f64;
        let window_ns = (self.window_ns.end - self.window_ns.start) as f64;
        let ns_per_op = window_ns / operations + LongHolds::MEAN_NS / simulation.threads as f64;
        let squares = noted.acquired.iter().map(|n| (*n as f64).powi(2)).sum::<f64>();
        let (begin, end) = (noted.at_begin.unwrap_or(after), noted.at_end.unwrap_or(after));
        let per_op = |a: u64, b: u64| (b - a) as f64 / operations;
        Simulated {
            machine: simulation.machine.name.clone(),
            workload: WORKLOAD.to_owned(),
            lock: simulation.lock.name.to_owned(),
            threads: simulation.threads,
            seed: simulation.seed,
            ops_per_us: 1000.0 / ns_per_op,
            jain: operations.powi(2) / (simulation.threads as f64 * squares),
            wait_ns_p50: noted.wait_ns.value_at_quantile(0.5),
            wait_ns_p99: noted.wait_ns.value_at_quantile(0.99),
            wait_ns_max: noted.wait_ns.max().max(noted.longest_present_ns),
            line_transfers_per_op: per_op(begin.line_transfers, end.line_transfers),
            remote_transfers_per_op: per_op(begin.remote_transfers, end.remote_transfers),
            local_handover_share: noted.local_handovers as f64 / operations,
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
mod tests {
    use super::*;

    fn cell(lock: &str, threads: usize) -> Simulation {
        Simulation {
            machine: MachineSpec::builtin("haswell-ex-4s").unwrap(),
            workload: Locktorture::default(),
            lock: Subject::named(lock).unwrap(),
            placement: Placement::default(),
            threads,
            seed: 5,
            settings: Setting::DEFAULTS,
            limits: Limits { warm_up_ns: 200_000, window_ns: 2_000_000, ..Limits::default() },
        }
    }

    #[test]
    fn every_working_lock_passes_the_checkers_and_repeats() {
        for lock in Subject::working() {
            for threads in [1, 2, 9, 40] {
                let cell = cell(lock.name, threads);
                let first = simulate(&cell).unwrap();
                assert_eq!(simulate(&cell).unwrap(), first);
                assert!(first.ops_per_us > 0.1 && first.wait_ns_p50 <= first.wait_ns_p99, "{first:?}");
                assert!(first.wait_ns_p99 <= first.wait_ns_max + first.wait_ns_max / 500, "{first:?}");
            }
        }
    }

    #[test]
    fn each_checker_finds_its_control_and_names_the_seed() {
        let kind = |lock, threads| {
            let failure = simulate(&cell(lock, threads)).unwrap_err();
            assert!(failure.to_string().contains("seed 5"), "{failure}");
            failure.fault
        };
        assert!(matches!(kind("lock-busted", 4), Fault::Exclusion { .. }));
        assert!(matches!(kind("lock-lost-wakeup", 4), Fault::Deadlock { .. }));
        assert!(matches!(kind("lock-after-you", 4), Fault::Livelock { .. }));
        let mut lifo = cell("lock-lifo", 4);
        lifo.limits.starvation_ns = 1_000_000;
        assert!(matches!(simulate(&lifo).unwrap_err().fault, Fault::Starvation { .. }));
        let mut mcs = cell("mcs", 4);
        mcs.limits.starvation_ns = 1_000_000;
        assert!(simulate(&mcs).is_ok());
    }

    #[test]
    fn the_controls_pass_alone() {
        for lock in ["lock-busted", "lock-lost-wakeup", "lock-after-you", "lock-lifo"] {
            assert!(simulate(&cell(lock, 1)).is_ok(), "{lock}");
        }
    }

    #[test]
    fn first_come_first_served_bounds_the_wait_and_cna_shares_within_a_node() {
        let mcs = simulate(&cell("mcs", 40)).unwrap();
        assert!(mcs.jain > 0.99, "{mcs:?}");
        assert!(mcs.wait_ns_max < 3 * mcs.wait_ns_p50, "{mcs:?}");
        let mut cna = cell("cna-v13", 40);
        cna.settings[Setting::CnaV13ThresholdNs as usize] = 200_000;
        cna.settings[Setting::CnaV13TickHz as usize] = 100_000;
        let cna = simulate(&cna).unwrap();
        assert!(cna.local_handover_share > 0.8 && mcs.local_handover_share < 0.5, "{cna:?} {mcs:?}");
        assert!((200_000..1_000_000).contains(&cna.wait_ns_max), "{cna:?}");
    }

    #[test]
    fn many_waiters_on_one_word_fall_behind_a_queue() {
        let [ttas, mcs, cna] = ["ttas", "mcs", "cna-v13"].map(|lock| simulate(&cell(lock, 36)).unwrap());
        assert!(ttas.ops_per_us < mcs.ops_per_us && mcs.ops_per_us < cna.ops_per_us);
        assert!(ttas.line_transfers_per_op > 2.0 * mcs.line_transfers_per_op);
    }

    #[test]
    fn urgent_waiters_overtake_nobodys_threshold() {
        let mut urgent = cell("cna-v13", 20);
        urgent.workload.priority_percent = 100;
        let urgent = simulate(&urgent).unwrap();
        let ordinary = simulate(&cell("cna-v13", 20)).unwrap();
        assert!(urgent.local_handover_share < 0.5 && ordinary.local_handover_share > 0.9);
    }
}
