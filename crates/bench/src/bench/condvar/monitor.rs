//! Data, the lock that protects them, and condition variables.

use std::cell::UnsafeCell;

use super::WithCondvar;
use super::case::Notify;

struct State<T> {
    data: T,
    /// Whether the run is over.
    is_over: bool,
}

/// Data behind a lock, with condition variables for their conditions. As in a program, the data
/// follow the lock in memory.
#[repr(C, align(64))]
pub struct Monitor<L: WithCondvar, T, const CONDVARS: usize> {
    lock: L,
    state: UnsafeCell<State<T>>,
    condvars: [L::Condvar; CONDVARS],
}

// SAFETY: the data are accessed by the thread that holds the lock.
unsafe impl<L: WithCondvar, T: Send, const CONDVARS: usize> Sync for Monitor<L, T, CONDVARS> {}

impl<L: WithCondvar, T, const CONDVARS: usize> Monitor<L, T, CONDVARS> {
    pub fn new(data: T) -> Self {
        Self {
            lock: L::default(),
            state: UnsafeCell::new(State { data, is_over: false }),
            condvars: std::array::from_fn(|_| L::Condvar::default()),
        }
    }

    /// Runs `inside` with the lock held.
    #[inline(always)]
    pub fn section<R>(
        &self,
        node: &mut L::Node,
        inside: impl FnOnce(&mut Held<'_, L, T, CONDVARS>) -> R,
    ) -> R {
        let mut held = Held { monitor: self, node };
        // SAFETY: the node was borrowed exclusively, and both stay in place until the unlock.
        unsafe { self.lock.lock(held.node) };
        let result = inside(&mut held);
        // SAFETY: locked above. A wait holds the lock again when it returns.
        unsafe { self.lock.unlock(held.node) };
        result
    }

    /// Notifies threads that wait for this condition variable.
    #[inline(always)]
    pub fn notify(&self, condvar: usize, notify: Notify) {
        match notify {
            Notify::One => L::notify_one(&self.condvars[condvar]),
            Notify::All => L::notify_all(&self.condvars[condvar]),
        }
    }

    /// Ends all waits, those that are still to come included.
    pub fn finish(&self, node: &mut L::Node) {
        // SAFETY: the section holds the lock.
        self.section(node, |held| unsafe { (*held.monitor.state.get()).is_over = true });
        self.condvars.iter().for_each(L::notify_all);
    }
}

/// A thread that holds the lock.
pub struct Held<'a, L: WithCondvar, T, const CONDVARS: usize> {
    monitor: &'a Monitor<L, T, CONDVARS>,
    node: &'a L::Node,
}

impl<L: WithCondvar, T, const CONDVARS: usize> Held<'_, L, T, CONDVARS> {
    /// The data.
    #[inline(always)]
    pub fn data(&mut self) -> &mut T {
        // SAFETY: this thread holds the lock, and the reference ends before a wait releases it.
        unsafe { &mut (*self.monitor.state.get()).data }
    }

    /// Waits for the condition. Returns false if the run ended first.
    #[inline(always)]
    pub fn wait_until(&mut self, condvar: usize, condition: impl Fn(&T) -> bool) -> bool {
        loop {
            if condition(self.data()) {
                return true;
            }
            // SAFETY: this thread holds the lock.
            if unsafe { (*self.monitor.state.get()).is_over } {
                return false;
            }
            // SAFETY: this thread holds the lock with this node. The condition variable belongs to
            // the monitor, as the lock does.
            unsafe { self.monitor.lock.wait(self.node, &self.monitor.condvars[condvar]) };
        }
    }

    /// Notifies with the lock held.
    #[inline(always)]
    pub fn notify(&mut self, condvar: usize, notify: Notify) {
        self.monitor.notify(condvar, notify);
    }
}
