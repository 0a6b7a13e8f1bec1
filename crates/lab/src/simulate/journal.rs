//! What is noted of a run, and what a report makes of it.

use std::array;
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use hdrhistogram::Histogram;
use nearlock_core::lockstat::Waited;
use nearlock_core::platform::Clock;
use nearlock_sim::account::{self, SLOW_PATH, Times};
use nearlock_sim::checker::{Checker, Violation};
use nearlock_sim::{Counters, Machine, Sim};
use nearlock_workload::Observer;

use super::{Simulated, Simulation, starvation};
use crate::lockstat::{LockStatistics, Mode, Record};

/// Of the histogram of waits: values are exact to 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;

const MINUTE_NS: f64 = 60e9;

/// Longer waits count as this long: 100 s, of virtual time.
const WAIT_NS_MAX: u64 = 100_000_000_000;

/// What is noted of a run, by all its threads.
pub(super) struct Journal {
    /// Of each of the locks that a thread takes one after the other; workloads whose threads have one lock each have
    /// one for all.
    checkers: Vec<Checker>,
    window_ns: Range<u64>,
    noted: RefCell<Noted>,
    /// By lock and mode; empty if nothing is recorded.
    lockstat: RefCell<Vec<[Record; 2]>>,
}

struct Noted {
    acquired: Vec<u64>,
    /// Of jobs.
    progress: f64,
    last_progress_ns: u64,
    torn: u64,
    wait_ns: Histogram<u64>,
    /// Of whoever acquired last, by lock.
    last_node: Vec<usize>,
    local_handovers: u64,
    at_begin: Option<(Counters, Times)>,
    at_end: Option<(Counters, Times)>,
}

/// What the machine has counted so far.
fn so_far() -> (Counters, Times) {
    (Machine::current_counters(), Machine::current_times())
}

impl Journal {
    pub fn new(simulation: &Simulation) -> Self {
        let limits = simulation.limits;
        let lock_of: Vec<usize> =
            (0..simulation.threads).map(|thread| simulation.workload.lock_of(thread)).collect();
        let of_each = simulation.workload.locks_of_each();
        let locks = lock_of.iter().max().map_or(0, |last| last + 1) + of_each - 1;
        let bound_ns = starvation::bound_ns(simulation);
        let wait_ns = Histogram::new_with_max(WAIT_NS_MAX, SIGNIFICANT_DIGITS).expect("within its limits");
        Self {
            checkers: (0..of_each).map(|_| Checker::new(lock_of.clone(), bound_ns)).collect(),
            window_ns: if simulation.workload.ends() {
                0..u64::MAX
            } else {
                limits.warm_up_ns..limits.warm_up_ns + limits.window_ns
            },
            noted: RefCell::new(Noted {
                acquired: vec![0; simulation.threads],
                progress: 0.0,
                last_progress_ns: 0,
                torn: 0,
                wait_ns,
                last_node: vec![usize::MAX; locks],
                local_handovers: 0,
                at_begin: None,
                at_end: None,
            }),
            lockstat: RefCell::new(vec![Default::default(); if simulation.lockstat { locks } else { 0 }]),
        }
    }

    /// When counting ends, unless all threads have ended before.
    pub fn end_ns(&self) -> u64 {
        self.window_ns.end
    }

    /// Records something of a lock, if that is to be done, and within the window.
    fn record(&self, lock: usize, mode: Mode, note: impl FnOnce(&mut Record)) {
        let records = &mut *self.lockstat.borrow_mut();
        if self.window_ns.contains(&Sim::now_ns())
            && let Some(records) = records.get_mut(lock)
        {
            note(&mut records[mode as usize]);
        }
    }

    /// What was recorded.
    fn statistics(&self, simulation: &Simulation) -> Vec<LockStatistics> {
        let locks = self.lockstat.borrow();
        let rows = locks.iter().enumerate().flat_map(|(index, records)| {
            let (name, class) = simulation.workload.lock_at(index, locks.len(), simulation.lock);
            Mode::ALL.map(|mode| records[mode as usize].statistics(name.clone(), class, mode))
        });
        rows.flatten().collect()
    }

    fn acquired(&self, thread: usize, node: usize, lock: usize) {
        let now_ns = Sim::now_ns();
        let checker = &self.checkers[lock];
        let waited_ns = checker.acquired(thread, now_ns);
        let noted = &mut *self.noted.borrow_mut();
        let last_node = std::mem::replace(&mut noted.last_node[lock + checker.lock_of(thread)], node);
        if now_ns < self.window_ns.start {
            return;
        }
        noted.at_begin.get_or_insert_with(so_far);
        if now_ns >= self.window_ns.end {
            noted.at_end.get_or_insert_with(so_far);
            return;
        }
        noted.acquired[thread] += 1;
        noted.wait_ns.saturating_record(waited_ns);
        noted.local_handovers += u64::from(last_node == node);
    }

    fn progressed(&self, jobs: f64) {
        let now_ns = Sim::now_ns();
        let noted = &mut *self.noted.borrow_mut();
        noted.last_progress_ns = now_ns;
        if self.window_ns.contains(&now_ns) {
            noted.progress += jobs;
        }
    }

    /// Readers have seen so many writers.
    pub fn note_torn(&self, times: u64) {
        self.noted.borrow_mut().torn += times;
    }

    /// Whether any reader has seen a writer.
    pub fn is_torn(&self) -> bool {
        self.noted.borrow().torn > 0
    }

    /// What a lock did first that it must not do, and when.
    pub fn violation(&self) -> Option<(u64, Violation)> {
        self.checkers.iter().find_map(Checker::violation)
    }

    /// When something happened last that shows that the threads get on, in ns.
    pub fn last_alive_ns(&self) -> u64 {
        let acquired_ns = self.checkers.iter().map(Checker::last_acquired_ns).max().unwrap_or(0);
        acquired_ns.max(self.noted.borrow().last_progress_ns)
    }

    /// Looks at those that wait at present.
    pub fn check_waits(&self, now_ns: u64) {
        for checker in &self.checkers {
            checker.check_waits(now_ns);
        }
    }

    /// A wait counts, for as long as it lasts within the window, even if it does not end there.
    pub fn note_open_waits(&self, now_ns: u64) {
        let noted = &mut *self.noted.borrow_mut();
        for since_ns in self.checkers.iter().flat_map(Checker::waiting_since) {
            noted.wait_ns.saturating_record(now_ns - since_ns.max(self.window_ns.start));
        }
    }

    pub fn report(&self, simulation: &Simulation, after: (Counters, Times)) -> Simulated {
        let noted = self.noted.borrow();
        // At least one, so that a window in which nobody acquired gives zeros.
        let operations = noted.acquired.iter().sum::<u64>() as f64;
        let ratio = |of: f64| if operations == 0.0 { 0.0 } else { of / operations };
        // What ends by itself has made its last progress when the last of its threads ended.
        let end_ns = if simulation.workload.ends() { noted.last_progress_ns } else { self.window_ns.end };
        let window_ns = (end_ns - self.window_ns.start) as f64;
        let ns_per_op = window_ns / operations + simulation.workload.left_out_ns(simulation.threads);
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
            jobs_per_minute: simulation.workload.has_jobs().then_some(noted.progress / window_ns * MINUTE_NS),
            events: array::from_fn(|event| end.lock_events[event] - begin.lock_events[event]),
            lockstat: simulation.lockstat.then(|| self.statistics(simulation)),
            window_s: window_ns / 1e9,
        }
    }
}

/// Observes one thread.
pub(super) struct Scribe {
    journal: Rc<Journal>,
    thread: usize,
    node: usize,
    /// Which of its locks the thread is at.
    lock: usize,
    /// When it asked for that or had it, and how it had waited before it asked.
    since_ns: u64,
    before: Waited,
}

impl Scribe {
    /// Of this thread, which runs on this NUMA node.
    pub fn new(journal: &Rc<Journal>, thread: usize, node: usize) -> Self {
        Self { journal: Rc::clone(journal), thread, node, lock: 0, since_ns: 0, before: Waited::default() }
    }

    fn checker(&self) -> &Checker {
        &self.journal.checkers[self.lock]
    }

    fn record(&self, mode: Mode, note: impl FnOnce(&mut Record)) {
        self.journal.record(self.lock + self.checker().lock_of(self.thread), mode, note);
    }

    fn record_acquired(&mut self, mode: Mode) {
        let now_ns = Sim::now_ns();
        let (wait_ns, waited) = (now_ns - self.since_ns, account::waited().since(self.before));
        self.record(mode, |record| record.acquired(wait_ns, waited));
        self.since_ns = now_ns;
    }

    fn record_released(&self, mode: Mode) {
        self.record(mode, |record| record.released(Sim::now_ns() - self.since_ns));
    }
}

impl Observer for Scribe {
    fn turns_to(&mut self, lock: usize) {
        self.lock = lock;
    }
    fn waiting(&mut self) {
        (self.since_ns, self.before) = (Sim::now_ns(), account::waited());
        self.checker().waiting(self.thread, Sim::now_ns());
    }
    fn acquired(&mut self) {
        self.record_acquired(Mode::Writer);
        self.journal.acquired(self.thread, self.node, self.lock);
    }
    // As if it left at once: it must find no writer; others may come. What a writer does meanwhile it sees itself.
    fn acquired_shared(&mut self) {
        self.record_acquired(Mode::Reader);
        self.journal.acquired(self.thread, self.node, self.lock);
        self.checker().releasing(self.thread, Sim::now_ns());
    }
    fn releasing_shared(&mut self) {
        self.record_released(Mode::Reader);
    }
    fn releasing(&mut self) {
        self.record_released(Mode::Writer);
        self.checker().releasing(self.thread, Sim::now_ns());
    }
    fn progressed(&mut self, jobs: f64) {
        self.journal.progressed(jobs);
    }
    fn goes_on(&mut self) -> bool {
        Sim::now_ns() < self.journal.window_ns.end
    }
}
