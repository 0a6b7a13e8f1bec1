//! Waiters in the queue of a lock, and waiters that have been taken out of it.

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use super::waiter::Waiter;
use crate::platform::{Atomic, Park, Platform};

/// Waiters in the order of arrival, unless one is put before others. Everything here is done under
/// the lock's `wait_lock`.
#[repr(C)]
pub struct WaitList<P: Platform> {
    first: P::Ptr<Waiter<P>>,
    last: P::Ptr<Waiter<P>>,
}

impl<P: Platform> Default for WaitList<P> {
    fn default() -> Self {
        Self { first: Atomic::new(ptr::null_mut()), last: Atomic::new(ptr::null_mut()) }
    }
}

impl<P: Platform> WaitList<P> {
    /// Without waiters, in `const`.
    pub const fn new() -> Self {
        Self { first: Atomic::ZERO, last: Atomic::ZERO }
    }

    /// Whether no thread waits.
    pub fn is_empty(&self) -> bool {
        self.first().is_null()
    }

    /// The first waiter; null if there is none.
    pub fn first(&self) -> *mut Waiter<P> {
        self.first.load(Relaxed)
    }

    /// Whether this waiter is first.
    pub fn is_first(&self, waiter: &Waiter<P>) -> bool {
        ptr::eq(self.first(), waiter)
    }

    /// The waiter after this one; null if there is none.
    ///
    /// # Safety
    ///
    /// The waiter is in the list, and the caller holds its lock.
    pub unsafe fn after(&self, waiter: *const Waiter<P>) -> *mut Waiter<P> {
        // SAFETY: waiters in the list are alive (invariant 1 of `waiter`).
        unsafe { &*waiter }.next.load(Relaxed)
    }

    /// Puts a waiter at the end.
    ///
    /// # Safety
    ///
    /// The caller holds the list's lock. The waiter is in no list, and stays where it is until it
    /// is in none again.
    pub unsafe fn push(&self, waiter: &Waiter<P>) {
        let last = self.last.load(Relaxed);
        waiter.previous.store(last, Relaxed);
        waiter.next.store(ptr::null_mut(), Relaxed);
        let waiter = ptr::from_ref(waiter).cast_mut();
        if last.is_null() {
            self.first.store(waiter, Relaxed);
        } else {
            // SAFETY: the last waiter is in the list, and so it is alive.
            unsafe { &*last }.next.store(waiter, Relaxed);
        }
        self.last.store(waiter, Relaxed);
    }

    /// Puts a waiter behind `previous`. If there is none, puts the waiter at the beginning, before
    /// waiters that have waited longer.
    ///
    /// # Safety
    ///
    /// As [`push`](Self::push), and `previous` is in this list.
    pub unsafe fn push_after(&self, previous: Option<&Waiter<P>>, waiter: &Waiter<P>) {
        let link = previous.map_or(&self.first, |previous| &previous.next);
        let next = link.load(Relaxed);
        let previous = previous.map_or(ptr::null_mut(), |previous| ptr::from_ref(previous).cast_mut());
        waiter.previous.store(previous, Relaxed);
        waiter.next.store(next, Relaxed);
        let waiter = ptr::from_ref(waiter).cast_mut();
        link.store(waiter, Relaxed);
        // SAFETY: the next waiter is in the list, and so it is alive.
        let back = unsafe { next.as_ref() }.map_or(&self.last, |next| &next.previous);
        back.store(waiter, Relaxed);
    }

    /// Takes a waiter out.
    ///
    /// # Safety
    ///
    /// The caller holds the list's lock, and the waiter is in this list.
    pub unsafe fn remove(&self, waiter: *const Waiter<P>) {
        // SAFETY: the waiter and its neighbours are in the list, and so they are alive.
        unsafe {
            let (previous, next) = ((*waiter).previous.load(Relaxed), (*waiter).next.load(Relaxed));
            match previous.is_null() {
                true => self.first.store(next, Relaxed),
                false => (*previous).next.store(next, Relaxed),
            }
            match next.is_null() {
                true => self.last.store(previous, Relaxed),
                false => (*next).previous.store(previous, Relaxed),
            }
        }
    }
}

/// Waiters that have been taken out of their queue. They are then granted the lock or put into
/// another queue, in the order of [`push`](Self::push).
///
/// So there are two passes. The first makes the changes of a grant to the lock, for all waiters.
/// The second grants and wakes them. A waiter that runs may release the lock at once.
#[must_use = "they wait for the grant"]
#[derive(Debug)]
pub struct WakeList<P: Platform> {
    first: *mut Waiter<P>,
    last: *mut Waiter<P>,
}

impl<P: Platform> WakeList<P> {
    /// Without waiters.
    pub const EMPTY: Self = Self { first: ptr::null_mut(), last: ptr::null_mut() };

    /// Adds a waiter.
    ///
    /// # Safety
    ///
    /// The caller has taken the waiter out of its queue, under its lock. The waiter stays until it
    /// has been [taken out](Self::pop) and signalled.
    pub unsafe fn push(&mut self, waiter: *mut Waiter<P>) {
        // SAFETY: neither has been granted anything yet, and so both are alive.
        unsafe {
            (*waiter).next.store(ptr::null_mut(), Relaxed);
            match self.last.is_null() {
                true => self.first = waiter,
                false => (*self.last).next.store(waiter, Relaxed),
            }
        }
        self.last = waiter;
    }
}

impl<P: Platform> WakeList<P> {
    /// Takes out the first waiter: of those that are left, the one that was added first.
    pub fn pop(&mut self) -> Option<*mut Waiter<P>> {
        let waiter = self.first;
        // SAFETY: the waiter stays until it is signalled.
        self.first = unsafe { waiter.as_ref()? }.next.load(Relaxed);
        if self.first.is_null() {
            self.last = ptr::null_mut();
        }
        Some(waiter)
    }
}

impl<P: Park> WakeList<P> {
    /// Grants the lock to each waiter, and wakes those that sleep.
    pub fn grant(mut self) {
        while let Some(waiter) = self.pop() {
            // SAFETY: the waiter stays until it is granted the lock, the last access to it.
            if let Some(call) = unsafe { Waiter::grant(waiter) } {
                call.make();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::parking::Signal;
    use crate::testing::OneThread;

    type Place = Waiter<OneThread>;

    #[test]
    fn a_list_is_a_queue_that_any_waiter_may_leave() {
        let waiters: Vec<Place> = (0..4).map(|_| Place::default()).collect();
        let names = |list: &WaitList<OneThread>| {
            let mut names = Vec::new();
            let mut at = list.first();
            while !at.is_null() {
                names.push(waiters.iter().position(|waiter| ptr::eq(waiter, at)).unwrap());
                // SAFETY: in the list.
                at = unsafe { list.after(at) };
            }
            names
        };
        for out in 0..4 {
            let list = WaitList::<OneThread>::default();
            // SAFETY: one thread; the waiters stay where they are.
            unsafe {
                waiters.iter().for_each(|waiter| list.push(waiter));
                assert_eq!(names(&list), [0, 1, 2, 3]);
                list.remove(&raw const waiters[out]);
                let mut left: Vec<_> = (0..4).filter(|&name| name != out).collect();
                assert_eq!(names(&list), left);
                list.push(&waiters[out]);
                left.push(out);
                assert_eq!(names(&list), left);
                for behind in 0..4 {
                    let waiter = left.remove(3 - behind);
                    list.remove(&raw const waiters[waiter]);
                    let previous = behind.checked_sub(1).map(|place| &waiters[left[place]]);
                    list.push_after(previous, &waiters[waiter]);
                    left.insert(behind, waiter);
                    assert_eq!(names(&list), left);
                }
                left.iter().for_each(|&name| list.remove(&raw const waiters[name]));
            }
            assert!(list.is_empty() && list.last.load(Relaxed).is_null());
        }
    }

    #[test]
    fn a_wake_list_is_granted_in_its_order_and_its_waiters_may_be_gone_at_once() {
        WakeList::<OneThread>::EMPTY.grant();
        let waiters: Vec<Place> = (0..3).map(|_| Place::default()).collect();
        let mut wake_list = WakeList::EMPTY;
        // SAFETY: they are in no queue, and stay.
        [2, 0, 1]
            .into_iter()
            .for_each(|name| unsafe { wake_list.push((&raw const waiters[name]).cast_mut()) });
        let order: Vec<_> = core::iter::successors(Some(wake_list.first), |waiter| {
            // SAFETY: they stay.
            Some(unsafe { &**waiter }.next.load(Relaxed)).filter(|next| !next.is_null())
        })
        .collect();
        assert!(order.iter().zip([2, 0, 1]).all(|(at, name)| ptr::eq(*at, &raw const waiters[name])));
        wake_list.grant();
        assert!(waiters.iter().all(|waiter| waiter.park() == Signal::Granted));
    }
}
