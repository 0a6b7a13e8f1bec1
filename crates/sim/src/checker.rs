//! Checks of a run, outside the machine: exclusion and starvation, at the moment of a violation,
//! and the statistics of acquisitions. The code that drives the run detects livelock and deadlock.
//! Checks cost no virtual time.

use std::cell::RefCell;

use crate::machine::Machine;

/// A property that a lock has violated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// `intruder` acquired the lock while `holder` held it.
    Exclusion {
        /// The thread that held the lock.
        holder: usize,
        /// The thread that acquired it meanwhile.
        intruder: usize,
    },
    /// A thread has waited longer than the bound.
    Starvation {
        /// The thread that waits.
        thread: usize,
        /// How long it has waited, in ns.
        waited_ns: u64,
    },
}

/// Records waits, acquisitions and releases by the tasks of one machine.
pub struct Checker {
    state: RefCell<CheckerState>,
    /// The lock of each thread.
    lock_of: Vec<usize>,
    starvation_ns: u64,
}

struct CheckerState {
    /// The holder of each lock.
    holder: Vec<Option<usize>>,
    /// When each thread began to wait, if it waits.
    waiting_since_ns: Vec<Option<u64>>,
    last_acquired_ns: u64,
    violation: Option<(u64, Violation)>,
}

impl Checker {
    /// A checker for the locks that the threads use. `lock_of` gives the lock of each thread. A
    /// thread that waits for `starvation_ns` is a violation.
    pub fn new(lock_of: Vec<usize>, starvation_ns: u64) -> Self {
        let locks = lock_of.iter().max().map_or(0, |last| last + 1);
        Self {
            state: RefCell::new(CheckerState {
                holder: vec![None; locks],
                waiting_since_ns: vec![None; lock_of.len()],
                last_acquired_ns: 0,
                violation: None,
            }),
            lock_of,
            starvation_ns,
        }
    }

    /// The lock that a thread uses.
    pub fn lock_of(&self, thread: usize) -> usize {
        self.lock_of[thread]
    }

    /// Records that a thread begins to wait.
    pub fn waiting(&self, thread: usize, now_ns: u64) {
        self.state.borrow_mut().waiting_since_ns[thread] = Some(now_ns);
    }

    /// Records that a thread has acquired its lock. Returns how long it waited, in ns. Halts the
    /// machine if there is a violation.
    pub fn acquired(&self, thread: usize, now_ns: u64) -> u64 {
        let state = &mut *self.state.borrow_mut();
        let since = state.waiting_since_ns[thread].take().unwrap_or(now_ns);
        let waited_ns = now_ns - since;
        if let Some(holder) = state.holder[self.lock_of[thread]].replace(thread) {
            state.find(now_ns, Violation::Exclusion { holder, intruder: thread });
        }
        if waited_ns >= self.starvation_ns {
            state.find(now_ns, Violation::Starvation { thread, waited_ns });
        }
        state.last_acquired_ns = now_ns;
        waited_ns
    }

    /// Records that a thread is about to release its lock.
    pub fn releasing(&self, thread: usize, now_ns: u64) {
        let state = &mut *self.state.borrow_mut();
        match state.holder[self.lock_of[thread]].take() {
            Some(holder) if holder == thread => {}
            other => {
                let holder = other.unwrap_or(thread);
                state.find(now_ns, Violation::Exclusion { holder, intruder: thread });
            }
        }
    }

    /// Records a violation if a thread has been waiting too long.
    pub fn check_waits(&self, now_ns: u64) {
        let state = &mut *self.state.borrow_mut();
        let waits = state.waiting_since_ns.iter().enumerate();
        let longest =
            waits.filter_map(|(thread, since)| Some((now_ns.saturating_sub((*since)?), thread))).max();
        if let Some((waited_ns, thread)) = longest
            && waited_ns >= self.starvation_ns
            && state.violation.is_none()
        {
            state.violation = Some((now_ns, Violation::Starvation { thread, waited_ns }));
        }
    }

    /// When the threads that are waiting now began to wait, in ns.
    pub fn waiting_since(&self) -> Vec<u64> {
        self.state.borrow().waiting_since_ns.iter().copied().flatten().collect()
    }

    /// When any of the locks was last acquired, in ns.
    pub fn last_acquired_ns(&self) -> u64 {
        self.state.borrow().last_acquired_ns
    }

    /// The first violation, and the moment at which it was found, in ns.
    pub fn violation(&self) -> Option<(u64, Violation)> {
        self.state.borrow().violation
    }
}

impl CheckerState {
    fn find(&mut self, now_ns: u64, violation: Violation) {
        if self.violation.is_none() {
            self.violation = Some((now_ns, violation));
            Machine::halt();
        }
    }
}
