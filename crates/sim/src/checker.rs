//! Judges of a run, beside the machine: exclusion and starvation as they happen, livelock and
//! deadlock by whoever drives the run; and the statistics of acquisitions. None of it costs virtual
//! time.

use std::cell::RefCell;

use crate::machine::Machine;

/// What a lock did that it must not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// `intruder` acquired while `holder` held.
    Exclusion {
        /// Who held the lock.
        holder: usize,
        /// Who acquired it meanwhile.
        intruder: usize,
    },
    /// A thread has waited longer than the bound.
    Starvation {
        /// Which.
        thread: usize,
        /// For how long, in ns.
        waited_ns: u64,
    },
}

/// Is told of waits, acquisitions and releases, by the tasks of one machine.
pub struct Checker {
    state: RefCell<CheckerState>,
    /// By thread.
    lock_of: Vec<usize>,
    starvation_ns: u64,
}

struct CheckerState {
    /// By lock.
    holder: Vec<Option<usize>>,
    /// When each thread began to wait, if it does.
    waiting_since_ns: Vec<Option<u64>>,
    last_acquired_ns: u64,
    violation: Option<(u64, Violation)>,
}

impl Checker {
    /// A checker of the locks that threads use: `lock_of` says of each thread which one. None may
    /// wait for `starvation_ns`.
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

    /// Which lock a thread uses.
    pub fn lock_of(&self, thread: usize) -> usize {
        self.lock_of[thread]
    }

    /// A thread begins to wait.
    pub fn waiting(&self, thread: usize, now_ns: u64) {
        self.state.borrow_mut().waiting_since_ns[thread] = Some(now_ns);
    }

    /// A thread has acquired. Returns for how long it waited, in ns; halts the machine at a
    /// violation.
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

    /// A thread is about to release.
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

    /// Notes a violation if somebody waits too long at present.
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

    /// When those who wait at present began to, in ns.
    pub fn waiting_since(&self) -> Vec<u64> {
        self.state.borrow().waiting_since_ns.iter().copied().flatten().collect()
    }

    /// When any of the locks was acquired last, in ns.
    pub fn last_acquired_ns(&self) -> u64 {
        self.state.borrow().last_acquired_ns
    }

    /// The first violation, and when it was found, in ns.
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
