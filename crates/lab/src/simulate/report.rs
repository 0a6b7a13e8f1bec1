//! The report of a run.

use std::array;

use nearlock_core::events::LockEvent;
use nearlock_sim::Counters;
use nearlock_sim::account::{SLOW_PATH, Times};
use serde::Serialize;

use super::cell::Simulation;
use super::journal::Journal;
use crate::lockstat::{LockStatistics, Mode};

const MINUTE_NS: f64 = 60e9;

/// The results of a simulation.
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
    /// Acquisitions per microsecond of virtual time, by all threads. Rare long holds, which are not
    /// simulated, are included with their mean.
    pub ops_per_us: f64,
    /// Jain's index of the threads' acquisitions: 1 for equal shares, 1/threads if only one thread
    /// acquires.
    pub jain: f64,
    /// Median wait of an acquisition, in ns.
    pub wait_ns_p50: u64,
    /// 99th percentile of the wait, in ns.
    pub wait_ns_p99: u64,
    /// Longest wait, in ns. In all three figures, waits that do not end within the window count for
    /// as long as they last within it.
    pub wait_ns_max: u64,
    /// CPU time of all threads per acquisition, in ns. It includes spinning, and switches to the
    /// threads. Rare long holds, which are not simulated, are not included.
    pub cpu_ns_per_op: f64,
    /// Transfers of a line between caches or from memory, per acquisition.
    pub line_transfers_per_op: f64,
    /// Line transfers between sockets, per acquisition.
    pub remote_transfers_per_op: f64,
    /// Share of acquisitions whose predecessor ran on the same NUMA node.
    pub local_handover_share: f64,
    /// Share of the threads' CPU time in slow paths of locks, as a profiler would show it. 0.1 is
    /// 10 %. It does not include spinning on an owner or on a spin lock. Only locks that mark their
    /// slow paths have it.
    pub slow_path_share: f64,
    /// Jobs that all users together complete in a minute of virtual time. `None` if there are no
    /// jobs.
    pub jobs_per_minute: Option<f64>,
    /// Counts from the lock's slow paths within the window, indexed by [`LockEvent`]. (Not a
    /// column: see [`events_seen`](Self::events_seen).)
    #[serde(skip)]
    pub events: [u64; LockEvent::COUNT],
    /// Statistics of waits for the workload's locks and of holds within the window, if they were
    /// recorded. (Not a column.)
    #[serde(skip)]
    pub lockstat: Option<Vec<LockStatistics>>,
    /// The length of the window, in s of virtual time. (Not a column.)
    #[serde(skip)]
    pub window_s: f64,
}

impl Simulated {
    /// The events that happened, with their counts.
    pub fn events_seen(&self) -> impl Iterator<Item = (LockEvent, u64)> + '_ {
        let all = LockEvent::ALL.iter().map(|&event| (event, self.events[event as usize]));
        all.filter(|(_, count)| *count > 0)
    }
}

/// The report of a run with this journal. `after` are the counts of the machine after the run.
pub(super) fn report(simulation: &Simulation, journal: &Journal, after: (Counters, Times)) -> Simulated {
    let (facts, noted) = (simulation.facts(), journal.noted());
    // At least one, so that a window without acquisitions gives zeros.
    let operations = noted.acquired.iter().sum::<u64>() as f64;
    let ratio = |of: f64| if operations == 0.0 { 0.0 } else { of / operations };
    // If the threads end by themselves, the last progress is the end of the last thread.
    let end_ns = if facts.ends() { noted.last_progress_ns } else { journal.window_ns().end };
    let window_ns = (end_ns - journal.window_ns().start) as f64;
    let ns_per_op = window_ns / operations + facts.left_out_ns / simulation.threads as f64;
    let squares = noted.acquired.iter().map(|n| (*n as f64).powi(2)).sum::<f64>();
    let ((begin, times_before), (end, times)) =
        (noted.at_begin.unwrap_or(after), noted.at_end.unwrap_or(after));
    let per_op = |a: u64, b: u64| ratio((b - a) as f64);
    let times = times.since(&times_before);
    Simulated {
        machine: simulation.machine.name.clone(),
        workload: simulation.workload.name().to_owned(),
        lock: simulation.lock.name.to_owned(),
        threads: simulation.threads,
        seed: simulation.seed,
        ops_per_us: 1000.0 / ns_per_op,
        jain: ratio(operations.powi(3) / (simulation.threads as f64 * squares)),
        wait_ns_p50: noted.wait_ns.value_at_quantile(0.5),
        wait_ns_p99: noted.wait_ns.value_at_quantile(0.99),
        wait_ns_max: noted.wait_ns.max(),
        cpu_ns_per_op: ratio(times.on_cpu_ns as f64),
        line_transfers_per_op: per_op(begin.line_transfers, end.line_transfers),
        remote_transfers_per_op: per_op(begin.remote_transfers, end.remote_transfers),
        local_handover_share: ratio(noted.local_handovers as f64),
        slow_path_share: times.share_of(SLOW_PATH),
        jobs_per_minute: facts.jobs.map(|_| noted.progress / window_ns * MINUTE_NS),
        events: array::from_fn(|event| end.lock_events[event] - begin.lock_events[event]),
        lockstat: simulation.lockstat.then(|| statistics(simulation, journal)),
        window_s: window_ns / 1e9,
    }
}

/// Statistics of waits and holds of each lock.
fn statistics(simulation: &Simulation, journal: &Journal) -> Vec<LockStatistics> {
    let (facts, locks) = (simulation.facts(), journal.records());
    let rows = locks.iter().enumerate().flat_map(|(index, records)| {
        let (name, class) = facts.lock_at(index, locks.len(), simulation.lock);
        Mode::ALL.map(|mode| records[mode as usize].statistics(name.clone(), class, mode))
    });
    rows.flatten().collect()
}
