//! The wait after which a thread counts as starved.

use nearlock_collection::subjects::Fairness;
use nearlock_core::settings::{NumaLocality, NumaMode, Setting};
use nearlock_sim::spec::MachineSpec;

use super::cell::Simulation;
use super::facts::farthest_ns;

/// The wait after which a thread counts as starved, in ns. It is the limit that was set, or several
/// times the bound that follows from the lock's promise. It is generous, since it must distinguish
/// a bound from no bound, not one bound from another.
pub(super) fn bound_ns(simulation: &Simulation) -> u64 {
    let Simulation { machine, settings, threads, .. } = simulation;
    let facts = simulation.facts();
    let limit_ns = simulation.limits.starvation_ns;
    if limit_ns > 0 && facts.observes_tested_locks() && simulation.lock.fairness() != Fairness::Unbounded {
        return limit_ns;
    }
    if !facts.observes_tested_locks() {
        return u64::MAX;
    }
    if *threads > machine.cpus() {
        // A thread without a CPU waits for the CPU too, and no lock promises a bound for that.
        return u64::MAX;
    }
    let section_ns = facts.section_ns_max + 20 * farthest_ns(machine) as u64;
    // Interrupted as often as possible: ticks leave at least half of the time.
    let section_ns = 2 * section_ns + machine.model.tick_ns as u64;
    let threads = *threads as u64;
    let long_ns = 10 * facts.long_section_ns_max;
    let queue_ns = 10 * (threads + 1) * section_ns + long_ns;
    match simulation.lock.fairness() {
        Fairness::Unbounded => u64::MAX,
        Fairness::Fifo => queue_ns,
        Fairness::Threshold(threshold) => match settings[threshold as usize] {
            0 => u64::MAX,
            threshold_ns => {
                let in_ticks = simulation.lock.settings().contains(&Setting::CnaV13TickHz);
                let ticks_ns =
                    if in_ticks { 2_000_000_000 / settings[Setting::CnaV13TickHz as usize] } else { 0 };
                10 * numa_nodes(machine, settings) * (threshold_ns + ticks_ns + queue_ns)
            }
        },
        Fairness::PassLimit(limit) => {
            // The NUMA nodes one after the other, as often as the queue of the thread's own node
            // requires.
            let in_turn = settings[limit as usize] + 1 + threads;
            let in_turn = numa_nodes(machine, settings) * in_turn;
            10_u64.saturating_mul(in_turn).saturating_mul(section_ns).saturating_add(long_ns)
        }
    }
}

/// The number of NUMA nodes that the lock distinguishes.
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
