//! What a thread of a run does, by its own account.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

/// Stack of a thread. The locks keep no large data on it.
pub const STACK_BYTES: usize = 256 * 1024;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It neither has nor wants the lock: it thinks, or pauses until it takes part again.
    Thinking,
    /// It has called an operation that locks.
    Waiting {
        /// Since then, in ns of the platform's clock.
        since_ns: u64,
    },
    /// It has the lock.
    InSection {
        /// Since then.
        since_ns: u64,
    },
    /// It has called the operation that unlocks.
    Releasing {
        /// Since when it had the lock.
        since_ns: u64,
    },
}

const THINKING: u64 = 0;
const WAITING: u64 = 1;
const IN_SECTION: u64 = 2;
const RELEASING: u64 = 3;
const KIND_BITS: u32 = 2;
const KIND: u64 = (1 << KIND_BITS) - 1;

/// The account, which only the thread itself writes. So a store needs no read-modify-write.
///
/// ```text
/// word   bits 2-63 since when, in ns | 0-1 the kind of `Doing`
/// ```
#[derive(Default)]
pub struct Account {
    word: AtomicU64,
    /// The kernel's number of the thread; 0: the thread has not begun.
    task: AtomicU32,
    /// An address in the first frame of the thread's stack.
    stack: AtomicUsize,
}

impl Account {
    /// The calling thread has this number. Its stack begins near this variable.
    pub fn begin(&self, task: u32, variable: *const ()) {
        self.stack.store(variable.addr(), Relaxed);
        self.task.store(task, Relaxed);
    }

    /// Notes what the thread does from now on.
    pub fn set(&self, doing: Doing) {
        let (kind, since_ns) = match doing {
            Doing::Thinking => (THINKING, 0),
            Doing::Waiting { since_ns } => (WAITING, since_ns),
            Doing::InSection { since_ns } => (IN_SECTION, since_ns),
            Doing::Releasing { since_ns } => (RELEASING, since_ns),
        };
        self.word.store(since_ns << KIND_BITS | kind, Relaxed);
    }

    /// What the thread does.
    pub fn doing(&self) -> Doing {
        let word = self.word.load(Relaxed);
        let since_ns = word >> KIND_BITS;
        match word & KIND {
            THINKING => Doing::Thinking,
            WAITING => Doing::Waiting { since_ns },
            IN_SECTION => Doing::InSection { since_ns },
            _ => Doing::Releasing { since_ns },
        }
    }

    /// The beginning of the thread's wait, in ns, if it waits.
    pub fn waiting_since_ns(&self) -> Option<u64> {
        match self.doing() {
            Doing::Waiting { since_ns } => Some(since_ns),
            _ => None,
        }
    }

    /// The kernel's number of the thread, if it has begun.
    pub fn task(&self) -> Option<u32> {
        Some(self.task.load(Relaxed)).filter(|task| *task != 0)
    }

    /// Whether this address is on the thread's stack.
    pub fn has_on_stack(&self, address: usize) -> bool {
        /// Frames may lie above that of the variable. They are small.
        const ABOVE: usize = 4096;
        let stack = self.stack.load(Relaxed);
        (stack.saturating_sub(STACK_BYTES)..stack.saturating_add(ABOVE)).contains(&address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_says_what_was_set() {
        let account = Account::default();
        assert_eq!(
            (account.doing(), account.task(), account.waiting_since_ns()),
            (Doing::Thinking, None, None)
        );
        let since_ns = 1 << 61;
        for doing in
            [Doing::Waiting { since_ns }, Doing::InSection { since_ns }, Doing::Releasing { since_ns }]
        {
            account.set(doing);
            assert_eq!(account.doing(), doing);
        }
        account.set(Doing::Waiting { since_ns: 7 });
        assert_eq!(account.waiting_since_ns(), Some(7));
    }

    #[test]
    fn a_stack_has_the_variables_of_its_own_thread() {
        let (outer, account) = (0_u8, Account::default());
        account.begin(1, (&raw const outer).cast());
        let inner = 0_u8;
        assert!(account.has_on_stack((&raw const inner).addr()) && account.task() == Some(1));
        let elsewhere = Box::new(0_u8);
        assert!(!account.has_on_stack((&raw const *elsewhere).addr()), "on the heap");
    }
}
