//! What comes of a run.

use std::array;

use nearlock_core::events::LockEvent;
use nearlock_sim::Counters;
use nearlock_sim::account::{SLOW_PATH, Times};
use serde::Serialize;

use super::cell::Simulation;
use super::journal::Journal;
use crate::lockstat::{LockStatistics, Mode};

const MINUTE_NS: f64 = 60e9;

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
    /// Acquisitions per microsecond of virtual time, by all threads. The rare long holds, which are
    /// not simulated, are in it at their mean.
    pub ops_per_us: f64,
    /// Jain's index of the threads' acquisitions: 1 is equal shares, 1/threads is one thread alone.
    pub jain: f64,
    /// Median wait of an acquisition, in ns.
    pub wait_ns_p50: u64,
    /// 99th percentile of the wait, in ns.
    pub wait_ns_p99: u64,
    /// Longest wait, in ns. Waits that do not end within the window are in all three figures, for
    /// as long as they last within it.
    pub wait_ns_max: u64,
    /// Transfers of a line between caches or from memory, per acquisition.
    pub line_transfers_per_op: f64,
    /// Transfers between sockets, per acquisition.
    pub remote_transfers_per_op: f64,
    /// Share of acquisitions whose predecessor ran on the same NUMA node.
    pub local_handover_share: f64,
    /// Share of the threads' CPU time in slow paths of locks, as a profiler would show it: 0.1 is
    /// 10 %. Spinning for an owner or for a spin lock is not in it. Only for locks that mark their
    /// slow paths.
    pub slow_path_share: f64,
    /// Jobs that all users together do in a minute of virtual time; `None` where there are none.
    pub jobs_per_minute: Option<f64>,
    /// What the lock's slow paths counted within the window, indexed by [`LockEvent`]. (Not a
    /// column: see
    /// [`events_seen`](Self::events_seen).)
    #[serde(skip)]
    pub events: [u64; LockEvent::COUNT],
    /// How long each of the workload's locks was waited for and held within the window, if that was
    /// to be recorded. (Not a column.)
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

/// What came of a run of which this was noted, and after which the machine had counted that.
pub(super) fn report(simulation: &Simulation, journal: &Journal, after: (Counters, Times)) -> Simulated {
    let (facts, noted) = (simulation.facts(), journal.noted());
    // At least one, so that a window without acquisitions gives zeros.
    let operations = noted.acquired.iter().sum::<u64>() as f64;
    let ratio = |of: f64| if operations == 0.0 { 0.0 } else { of / operations };
    // What ends by itself has made its last progress when the last of its threads ended.
    let end_ns = if facts.ends() { noted.last_progress_ns } else { journal.window_ns().end };
    let window_ns = (end_ns - journal.window_ns().start) as f64;
    let ns_per_op = window_ns / operations + facts.left_out_ns / simulation.threads as f64;
    let squares = noted.acquired.iter().map(|n| (*n as f64).powi(2)).sum::<f64>();
    let ((begin, times_before), (end, times)) =
        (noted.at_begin.unwrap_or(after), noted.at_end.unwrap_or(after));
    let per_op = |a: u64, b: u64| ratio((b - a) as f64);
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
        line_transfers_per_op: per_op(begin.line_transfers, end.line_transfers),
        remote_transfers_per_op: per_op(begin.remote_transfers, end.remote_transfers),
        local_handover_share: ratio(noted.local_handovers as f64),
        slow_path_share: times.since(&times_before).share_of(SLOW_PATH),
        jobs_per_minute: facts.jobs.map(|_| noted.progress / window_ns * MINUTE_NS),
        events: array::from_fn(|event| end.lock_events[event] - begin.lock_events[event]),
        lockstat: simulation.lockstat.then(|| statistics(simulation, journal)),
        window_s: window_ns / 1e9,
    }
}

/// How long each lock was waited for and held.
fn statistics(simulation: &Simulation, journal: &Journal) -> Vec<LockStatistics> {
    let (facts, locks) = (simulation.facts(), journal.records());
    let rows = locks.iter().enumerate().flat_map(|(index, records)| {
        let (name, class) = facts.lock_at(index, locks.len(), simulation.lock);
        Mode::ALL.map(|mode| records[mode as usize].statistics(name.clone(), class, mode))
    });
    rows.flatten().collect()
}
