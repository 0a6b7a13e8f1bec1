//! One simulated cell: a workload over a lock, by some threads, on a machine.

use nearlock_core::settings::Setting;
use nearlock_core::subjects::Subject;
use nearlock_sim::spec::MachineSpec;
use nearlock_workload::locktorture::ShortHolds;
use serde::Serialize;

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
        Self { short_holds: ShortHolds::V5_10, section_ns: 60, think_ns: 30, priority_percent: 0 }
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
    /// Wait after which a waiter counts as starved, in ns of virtual time.
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

/// A checker's verdict. Each names the seed that repeats it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Failure {
    /// Two threads were inside at once.
    #[error("{lock}, {threads} threads, seed {seed}: exclusion violated at {at_ns} ns: threads {holder} and {intruder} hold it together")]
    Exclusion { lock: String, threads: usize, seed: u64, at_ns: u64, holder: usize, intruder: usize },
    /// Nothing can happen any more, and threads still wait.
    #[error("{lock}, {threads} threads, seed {seed}: deadlock at {at_ns} ns: {waiting} threads wait and nothing can wake them")]
    Deadlock { lock: String, threads: usize, seed: u64, at_ns: u64, waiting: usize },
    /// Things happen, but nobody gets the lock.
    #[error("{lock}, {threads} threads, seed {seed}: livelock: no acquisition for {idle_ns} ns, until {at_ns} ns")]
    Livelock { lock: String, threads: usize, seed: u64, at_ns: u64, idle_ns: u64 },
    /// Somebody waits far too long.
    #[error("{lock}, {threads} threads, seed {seed}: starvation: thread {thread} has waited for {waited_ns} ns at {at_ns} ns")]
    Starvation { lock: String, threads: usize, seed: u64, at_ns: u64, thread: usize, waited_ns: u64 },
}

/// Simulates one cell. Runs on the calling thread; the same input gives the same output.
///
/// # Errors
///
/// The first [`Failure`] that a checker finds.
pub fn simulate(_simulation: &Simulation) -> Result<Simulated, Failure> {
    unimplemented!()
}
