//! The interface of parking_lot's deadlock detection. It finds no deadlock.
//!
//! nearlock does not record which thread holds which lock.

use std::backtrace::Backtrace;
use std::thread::ThreadId;

/// A thread in a deadlock. There is none.
#[derive(Debug)]
pub enum DeadlockedThread {}

impl DeadlockedThread {
    /// The thread.
    pub fn thread_id(&self) -> ThreadId {
        match *self {}
    }

    /// Where the thread waits.
    pub fn backtrace(&self) -> &Backtrace {
        match *self {}
    }
}

/// Returns an empty list, whatever threads wait for.
pub fn check_deadlock() -> Vec<Vec<DeadlockedThread>> {
    Vec::new()
}
