//! What is noted of a run, and what a report makes of it.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use hdrhistogram::Histogram;
use nearlock_core::platform::Clock;
use nearlock_sim::checker::Checker;
use nearlock_sim::{Counters, Machine, Sim};
use nearlock_workload::Observer;

use super::{Simulated, Simulation, starvation};

/// Of the histogram of waits: values are exact to 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Longer waits count as this long: 100 s, of virtual time.
const WAIT_NS_MAX: u64 = 100_000_000_000;

/// What is noted of a run, by all its threads.
pub(super) struct Journal {
    pub checker: Checker,
    window_ns: Range<u64>,
    noted: RefCell<Noted>,
}

struct Noted {
    acquired: Vec<u64>,
    wait_ns: Histogram<u64>,
    /// Of whoever acquired last, by lock.
    last_node: Vec<usize>,
    local_handovers: u64,
    at_begin: Option<Counters>,
    at_end: Option<Counters>,
}

impl Journal {
    pub fn new(simulation: &Simulation) -> Self {
        let limits = simulation.limits;
        let lock_of: Vec<usize> =
            (0..simulation.threads).map(|thread| simulation.workload.lock_of(thread)).collect();
        let locks = lock_of.iter().max().map_or(0, |last| last + 1);
        let wait_ns = Histogram::new_with_max(WAIT_NS_MAX, SIGNIFICANT_DIGITS).expect("within its limits");
        Self {
            checker: Checker::new(lock_of, starvation::bound_ns(simulation)),
            window_ns: limits.warm_up_ns..limits.warm_up_ns + limits.window_ns,
            noted: RefCell::new(Noted {
                acquired: vec![0; simulation.threads],
                wait_ns,
                last_node: vec![usize::MAX; locks],
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
        let last_node = std::mem::replace(&mut noted.last_node[self.checker.lock_of(thread)], node);
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
    pub fn note_open_waits(&self, now_ns: u64) {
        let noted = &mut *self.noted.borrow_mut();
        for since_ns in self.checker.waiting_since() {
            noted.wait_ns.saturating_record(now_ns - since_ns.max(self.window_ns.start));
        }
    }

    pub fn report(&self, simulation: &Simulation, after: Counters) -> Simulated {
        let noted = self.noted.borrow();
        // At least one, so that a window in which nobody acquired gives zeros.
        let operations = noted.acquired.iter().sum::<u64>() as f64;
        let ratio = |of: f64| if operations == 0.0 { 0.0 } else { of / operations };
        let window_ns = (self.window_ns.end - self.window_ns.start) as f64;
        let ns_per_op = window_ns / operations + simulation.workload.left_out_ns(simulation.threads);
        let squares = noted.acquired.iter().map(|n| (*n as f64).powi(2)).sum::<f64>();
        let (begin, end) = (noted.at_begin.unwrap_or(after), noted.at_end.unwrap_or(after));
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
        }
    }
}

/// Observes one thread.
pub(super) struct Scribe {
    journal: Rc<Journal>,
    thread: usize,
    node: usize,
}

impl Scribe {
    /// Of this thread, which runs on this NUMA node.
    pub fn new(journal: &Rc<Journal>, thread: usize, node: usize) -> Self {
        Self { journal: Rc::clone(journal), thread, node }
    }
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
