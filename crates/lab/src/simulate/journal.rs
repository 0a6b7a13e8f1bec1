//! The journal of a run: acquisitions, waits and progress.

use std::cell::{Ref, RefCell};
use std::ops::Range;
use std::rc::Rc;

use hdrhistogram::Histogram;
use nearlock_core::lockstat::Waited;
use nearlock_core::platform::Clock;
use nearlock_sim::account::{self, Times};
use nearlock_sim::checker::{Checker, Violation};
use nearlock_sim::{Counters, Machine, Sim};
use nearlock_workload::Observer;

use super::facts::Facts;
use crate::lockstat::{Mode, Record};

/// Precision of the histogram of waits: values are exact to 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Longer waits count as this long: 100 s of virtual time.
const WAIT_NS_MAX: u64 = 100_000_000_000;

/// The journal of all threads of a run.
pub(super) struct Journal {
    /// A checker for each lock that a thread takes one after the other. If each thread has one
    /// lock, there is one checker for all of them.
    checkers: Vec<Checker>,
    window_ns: Range<u64>,
    noted: RefCell<Noted>,
    /// Records by lock and mode. Empty if nothing is recorded.
    lockstat: RefCell<Vec<[Record; 2]>>,
}

/// The notes of a journal.
pub(super) struct Noted {
    /// Acquisitions within the window, by thread.
    pub acquired: Vec<u64>,
    /// Progress in jobs.
    pub progress: f64,
    pub last_progress_ns: u64,
    torn: u64,
    pub wait_ns: Histogram<u64>,
    /// The NUMA node of the thread that acquired last, by lock.
    last_node: Vec<usize>,
    pub local_handovers: u64,
    pub at_begin: Option<(Counters, Times)>,
    pub at_end: Option<(Counters, Times)>,
}

/// What a journal records, and its limits.
pub(super) struct Recording<'a> {
    pub facts: &'a Facts,
    pub threads: usize,
    /// The time in which acquisitions count.
    pub window_ns: Range<u64>,
    /// The wait after which a thread counts as starved.
    pub starvation_ns: u64,
    /// Whether to record waits for locks and holds.
    pub lockstat: bool,
}

/// The present counts of the machine.
fn so_far() -> (Counters, Times) {
    (Machine::current_counters(), Machine::current_times())
}

impl Journal {
    pub fn new(recording: Recording<'_>) -> Self {
        let Recording { facts, threads, window_ns, starvation_ns, lockstat } = recording;
        let lock_of: Vec<usize> = (0..threads).map(|thread| facts.lock_of(thread)).collect();
        let locks = lock_of.iter().max().map_or(0, |last| last + 1) + facts.locks_of_each - 1;
        let wait_ns = Histogram::new_with_max(WAIT_NS_MAX, SIGNIFICANT_DIGITS).expect("within its limits");
        Self {
            checkers: (0..facts.locks_of_each)
                .map(|_| Checker::new(lock_of.clone(), starvation_ns))
                .collect(),
            window_ns,
            noted: RefCell::new(Noted {
                acquired: vec![0; threads],
                progress: 0.0,
                last_progress_ns: 0,
                torn: 0,
                wait_ns,
                last_node: vec![usize::MAX; locks],
                local_handovers: 0,
                at_begin: None,
                at_end: None,
            }),
            lockstat: RefCell::new(vec![Default::default(); if lockstat { locks } else { 0 }]),
        }
    }

    /// The window that is counted, unless all threads end before its end.
    pub fn window_ns(&self) -> &Range<u64> {
        &self.window_ns
    }

    /// Adds to the record of a lock, if lockstat is on and the present time is within the window.
    fn record(&self, lock: usize, mode: Mode, note: impl FnOnce(&mut Record)) {
        let records = &mut *self.lockstat.borrow_mut();
        if self.window_ns.contains(&Sim::now_ns())
            && let Some(records) = records.get_mut(lock)
        {
            note(&mut records[mode as usize]);
        }
    }

    /// The records by lock and mode. Empty if nothing is recorded.
    pub fn records(&self) -> Ref<'_, Vec<[Record; 2]>> {
        self.lockstat.borrow()
    }

    /// The notes so far.
    pub fn noted(&self) -> Ref<'_, Noted> {
        self.noted.borrow()
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

    /// Records how many times readers have seen a writer.
    fn note_torn(&self, times: u64) {
        self.noted.borrow_mut().torn += times;
    }

    /// Whether any reader has seen a writer.
    pub fn is_torn(&self) -> bool {
        self.noted.borrow().torn > 0
    }

    /// The first violation by a lock, and its time.
    pub fn violation(&self) -> Option<(u64, Violation)> {
        self.checkers.iter().find_map(Checker::violation)
    }

    /// The time of the last sign that the threads make progress, in ns.
    pub fn last_alive_ns(&self) -> u64 {
        let acquired_ns = self.checkers.iter().map(Checker::last_acquired_ns).max().unwrap_or(0);
        acquired_ns.max(self.noted.borrow().last_progress_ns)
    }

    /// Checks the threads that are waiting now.
    pub fn check_waits(&self, now_ns: u64) {
        for checker in &self.checkers {
            checker.check_waits(now_ns);
        }
    }

    /// Records the waits that are not over. They count for as long as they last within the window.
    pub fn note_open_waits(&self, now_ns: u64) {
        let noted = &mut *self.noted.borrow_mut();
        for since_ns in self.checkers.iter().flat_map(Checker::waiting_since) {
            noted.wait_ns.saturating_record(now_ns - since_ns.max(self.window_ns.start));
        }
    }
}

/// The observer of one thread.
pub(super) struct Scribe {
    journal: Rc<Journal>,
    thread: usize,
    node: usize,
    /// The index of the thread's present lock.
    lock: usize,
    /// When the thread began to wait for this lock or acquired it, and its waits before.
    since_ns: u64,
    before: Waited,
}

impl Scribe {
    /// The observer of this thread, which runs on this NUMA node.
    pub fn new(journal: &Rc<Journal>, thread: usize, node: usize) -> Self {
        Self { journal: Rc::clone(journal), thread, node, lock: 0, since_ns: 0, before: Waited::default() }
    }

    /// Records the number of readers' sections within which a writer wrote.
    pub fn note_torn(&self, sections: u64) {
        self.journal.note_torn(sections);
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
    // The checker sees a reader as if it left at once: it must find no writer, and others may
    // enter. The reader itself sees what a writer does meanwhile.
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
