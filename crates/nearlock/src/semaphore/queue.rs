//! The queue of a semaphore.

use std::cell::Cell;
use std::ptr;

use nearlock_core::parking::{GaveUp, Limit};
use nearlock_os::Os;

use super::State;
use crate::near::{Condvar, MutexGuard};

/// A thread that waits for permits. It is on the stack of that thread. Its cells are only accessed
/// under the mutex of the semaphore.
pub struct Waiter {
    permits: usize,
    is_granted: Cell<bool>,
    previous: Cell<*const Waiter>,
    next: Cell<*const Waiter>,
    granted: Condvar,
}

/// Waiters in the order in which they have arrived. The pointers are null at the ends, and point to
/// waiters that are in the queue otherwise. These exist: see [`push`](Self::push).
pub struct Queue {
    first: *const Waiter,
    last: *const Waiter,
}

// SAFETY: the queue belongs to a mutex. All accesses to the waiters' cells have a reference to the
// queue, so they are under that mutex. The other fields do not change, or can be shared.
unsafe impl Send for Queue {}

impl Waiter {
    #[inline]
    pub const fn new(permits: usize) -> Self {
        Self {
            permits,
            is_granted: Cell::new(false),
            previous: Cell::new(ptr::null()),
            next: Cell::new(ptr::null()),
            granted: Condvar::new(),
        }
    }

    /// Whether it has its permits. Then it is in no queue.
    #[inline]
    pub fn is_granted(&self, _queue: &Queue) -> bool {
        self.is_granted.get()
    }

    /// Waits until it is granted its permits, within the limit. Does not unwind.
    #[inline]
    pub fn wait_within(
        &self,
        state: &mut MutexGuard<'_, State>,
        limit: &Limit<'_, Os>,
    ) -> Result<(), GaveUp> {
        // It panics if another thread waits with another mutex. No other thread waits.
        self.granted.raw().wait_with(state, limit)
    }
}

impl Queue {
    #[inline]
    pub const fn new() -> Self {
        Self { first: ptr::null(), last: ptr::null() }
    }

    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// How many permits the first waiter needs.
    #[inline]
    pub fn first_request(&self) -> Option<usize> {
        // SAFETY: it is in the queue.
        unsafe { self.first.as_ref() }.map(|first| first.permits)
    }

    /// Puts a waiter at the end.
    ///
    /// # Safety
    ///
    /// The waiter is in no queue, and stays where it is until it has been granted its permits or
    /// has been removed.
    #[inline]
    pub unsafe fn push(&mut self, waiter: &Waiter) {
        waiter.previous.set(self.last);
        // SAFETY: it is in the queue.
        match unsafe { self.last.as_ref() } {
            Some(last) => last.next.set(waiter),
            None => self.first = waiter,
        }
        self.last = waiter;
    }

    /// Takes a waiter out.
    ///
    /// # Safety
    ///
    /// It is in this queue.
    #[inline]
    pub unsafe fn remove(&mut self, waiter: &Waiter) {
        let (previous, next) = (waiter.previous.get(), waiter.next.get());
        // SAFETY: they are in the queue; also below.
        match unsafe { previous.as_ref() } {
            Some(previous) => previous.next.set(next),
            None => self.first = next,
        }
        // SAFETY: as above.
        match unsafe { next.as_ref() } {
            Some(next) => next.previous.set(previous),
            None => self.last = previous,
        }
    }

    /// Takes the first waiter out, and tells it that it has its permits.
    #[inline]
    pub fn grant_first(&mut self) {
        // SAFETY: it is in the queue.
        let Some(first) = (unsafe { self.first.as_ref() }) else { return };
        // SAFETY: as above.
        unsafe { self.remove(first) };
        first.is_granted.set(true);
        // It returns only when it has the mutex, which the caller holds.
        first.granted.notify_one();
    }
}

#[cfg(test)]
mod tests;
