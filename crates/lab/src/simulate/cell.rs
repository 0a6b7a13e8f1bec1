//! A simulation: its machine, workload and lock, with all their parameters.

use nearlock_collection::subjects::Subject;
use nearlock_core::settings::Setting;
use nearlock_sim::placement::Placement;
use nearlock_sim::spec::MachineSpec;

use super::facts::Facts;
use super::seating::Start;
use super::workload::AnyWorkload;

/// For how long a cell is simulated, and what is held against it. A workload whose threads end by
/// themselves is counted from its beginning to its end.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Virtual time before counting begins, in ns.
    pub warm_up_ns: u64,
    /// Virtual time that is counted, in ns.
    pub window_ns: u64,
    /// Virtual time without any acquisition after which the run is a livelock, in ns.
    pub livelock_ns: u64,
    /// Wait after which a waiter counts as starved, in ns of virtual time; 0: a bound that follows
    /// from what the lock promises. Not held against locks that promise none.
    pub starvation_ns: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { warm_up_ns: 12_000_000, window_ns: 60_000_000, livelock_ns: 10_000_000, starvation_ns: 0 }
    }
}

/// One cell to simulate.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// The machine.
    pub machine: MachineSpec,
    /// What the threads do.
    pub workload: Box<dyn AnyWorkload>,
    /// The lock.
    pub lock: &'static Subject,
    /// How the threads are spread over the machine.
    pub placement: Placement,
    /// In which order the threads begin.
    pub start: Start,
    /// Number of threads: a multiple of the workload's [group](Facts::group), at most its
    /// [`threads_max`](Facts::threads_max). Each has a CPU of its own if there are enough.
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

impl Simulation {
    /// What there is to know of its workload on its machine.
    pub fn facts(&self) -> Facts {
        self.workload.facts(&self.machine)
    }
}
