//! The notes of a run: acquisitions, waits and progress.

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

/// Of the histogram of waits: values are exact to 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Longer waits count as this long: 100 s, of virtual time.
const WAIT_NS_MAX: u64 = 100_000_000_000;

/// What is noted of a run, by all its threads.
pub(super) struct Journal {
    /// Of each of the locks that a thread takes one after the other; workloads whose threads have
    /// one lock each have one for all.
    checkers: Vec<Checker>,
    window_ns: Range<u64>,
    noted: RefCell<Noted>,
    /// By lock and mode; empty if nothing is recorded.
    lockstat: RefCell<Vec<[Record; 2]>>,
}

/// What has been noted.
pub(super) struct Noted {
    /// Acquisitions within the window, by thread.
    pub acquired: Vec<u64>,
    /// Of jobs.
    pub progress: f64,
    pub last_progress_ns: u64,
    torn: u64,
    pub wait_ns: Histogram<u64>,
    /// NUMA node of the thread that acquired last, by lock.
    last_node: Vec<usize>,
    pub local_handovers: u64,
    pub at_begin: Option<(Counters, Times)>,
    pub at_end: Option<(Counters, Times)>,
}

/// The notes to take, and the limits for them.
pub(super) struct Recording<'a> {
    pub facts: &'a Facts,
    pub threads: usize,
    /// In which acquisitions count.
    pub window_ns: Range<u64>,
    /// The wait after which a thread counts as starved.
    pub starvation_ns: u64,
    /// Whether to record how long locks are waited for and held.
    pub lockstat: bool,
}

/// What the machine has counted so far.
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

    /// When is counted, unless all threads have ended before its end.
    pub fn window_ns(&self) -> &Range<u64> {
        &self.window_ns
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

    /// What was recorded, by lock and mode; nothing if that was not to be.
    pub fn records(&self) -> Ref<'_, Vec<[Record; 2]>> {
        self.lockstat.borrow()
    }

    /// What has been noted so far.
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

    /// Readers have seen this number of writers.
    fn note_torn(&self, times: u64) {
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

    /// Notes this number of sections of readers within which a writer wrote.
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
    // As if it left at once: it must find no writer; others may come. What a writer does meanwhile
    // it sees itself.
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
