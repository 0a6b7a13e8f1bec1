//! A simulation: its machine, workload and lock, with all their parameters.

use nearlock_collection::subjects::Subject;
use nearlock_core::settings::Setting;
use nearlock_sim::placement::Placement;
use nearlock_sim::spec::MachineSpec;

use super::facts::Facts;
use super::seating::Start;
use super::workload::AnyWorkload;

/// The simulated time of a cell, and the limits of its checks. If the threads of a workload end by
/// themselves, the run is counted from beginning to end.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Virtual time before counting begins, in ns.
    pub warm_up_ns: u64,
    /// Virtual time that is counted, in ns.
    pub window_ns: u64,
    /// Virtual time without any acquisition after which the run is a livelock, in ns.
    pub livelock_ns: u64,
    /// The wait after which a waiter counts as starved, in ns of virtual time. 0 means a bound that
    /// follows from the promise of the lock. Locks without a promise are not checked.
    pub starvation_ns: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { warm_up_ns: 12_000_000, window_ns: 60_000_000, livelock_ns: 10_000_000, starvation_ns: 0 }
    }
}

/// A cell to simulate.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// The machine.
    pub machine: MachineSpec,
    /// The workload of the threads.
    pub workload: Box<dyn AnyWorkload>,
    /// The lock.
    pub lock: &'static Subject,
    /// How the threads are spread over the machine.
    pub placement: Placement,
    /// The order in which the threads begin.
    pub start: Start,
    /// Number of threads: a multiple of the workload's [group](Facts::group), at most its
    /// [`threads_max`](Facts::threads_max). Each thread has a CPU of its own if there are enough
    /// CPUs.
    pub threads: usize,
    /// Determines placement, jitter and the workload's random numbers.
    pub seed: u64,
    /// Values of the lock's settings, indexed by [`Setting`].
    pub settings: [u64; Setting::COUNT],
    /// Simulated time and limits.
    pub limits: Limits,
    /// Whether to record waits for locks and holds.
    pub lockstat: bool,
}

impl Simulation {
    /// The facts about the workload on this machine.
    pub fn facts(&self) -> Facts {
        self.workload.facts(&self.machine)
    }
}
