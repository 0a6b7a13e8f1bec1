//! Ending waits from outside.
//!
//! ```text
//! first --> Watch of a waiter --> Watch of another --> null    (each also links to the one before)
//! ```
//! A watch lies in the stack frame of a waiting thread, and is in the list exactly while the thread
//! waits. Everything here is read and written under `lock`, except for `cancelled`.
//!
//! 1. `cancel` never waits for another thread, nor for the code that it interrupts in a signal
//!    handler. If the list is locked, it leaves the holder an errand: to wake all waiters when it
//!    unlocks the list.
//! 2. No waiter is missed. `cancelled` is set before the lock is taken or the errand is left. A
//!    waiter that enters the list before that is woken by the walk that follows. A waiter that
//!    enters later acquires what `cancel` has released, by its access to the lock's word. So it
//!    sees `cancelled` before it sleeps.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::queue_lock::{QueueLock, Released, TakenOrLeft};
use super::waiter::{Call, Waiter};
use crate::platform::{Atomic, Park, Platform};

/// Ends waits from another thread, as a signal does in a kernel. Any number of threads may wait
/// with it.
///
/// Once cancelled, it stays cancelled. Every wait with it ends with
/// [`GaveUp::Cancelled`](super::limit::GaveUp::Cancelled): before the thread would sleep, or when
/// its sleep is ended. Zero bytes: not cancelled.
pub struct Cancellation<P: Platform> {
    lock: QueueLock<P>,
    cancelled: P::U32,
    first: P::Ptr<Watch<P>>,
}

/// The record of one waiting thread in the list.
struct Watch<P: Platform> {
    waiter: P::Ptr<Waiter<P>>,
    next: P::Ptr<Watch<P>>,
    previous: P::Ptr<Watch<P>>,
}

impl<P: Platform> Default for Watch<P> {
    fn default() -> Self {
        Self {
            waiter: Atomic::new(ptr::null_mut()),
            next: Atomic::new(ptr::null_mut()),
            previous: Atomic::new(ptr::null_mut()),
        }
    }
}

impl<P: Platform> Default for Cancellation<P> {
    fn default() -> Self {
        Self { lock: QueueLock::default(), cancelled: Atomic::new(0), first: Atomic::new(ptr::null_mut()) }
    }
}

impl<P: Platform> Cancellation<P> {
    /// Not cancelled, in `const`.
    pub const fn new() -> Self {
        Self { lock: QueueLock::new(), cancelled: Atomic::ZERO, first: Atomic::ZERO }
    }

    /// Whether it has been cancelled.
    pub fn is_cancelled(&self) -> bool {
        // Ordering: Acquire, pairs with the Release in `cancel`: everything that the canceller did
        // before is visible to a thread that gives up for this reason.
        self.cancelled.load(Acquire) != 0
    }

    /// Safety: under `lock`; the watch is in no list, and stays until it has been taken out of this
    /// one.
    unsafe fn enter(&self, watch: &Watch<P>) {
        let next = self.first.load(Relaxed);
        let this = ptr::from_ref(watch).cast_mut();
        watch.next.store(next, Relaxed);
        watch.previous.store(ptr::null_mut(), Relaxed);
        if !next.is_null() {
            // SAFETY: the watch is in the list, and so it is alive.
            unsafe { &*next }.previous.store(this, Relaxed);
        }
        self.first.store(this, Relaxed);
    }

    /// Safety: under `lock`, and the watch is in this list.
    unsafe fn leave(&self, watch: &Watch<P>) {
        let (previous, next) = (watch.previous.load(Relaxed), watch.next.load(Relaxed));
        // SAFETY: the neighbours are in the list, and so they are alive.
        unsafe {
            match previous.is_null() {
                true => self.first.store(next, Relaxed),
                false => (*previous).next.store(next, Relaxed),
            }
            if !next.is_null() {
                (*next).previous.store(previous, Relaxed);
            }
        }
    }
}

/// Takes the watch out of the list when it is dropped. Locks do not panic. But no pointer to the
/// watch may stay in any case.
struct Watched<'a, P: Park> {
    cancellation: &'a Cancellation<P>,
    watch: &'a Watch<P>,
}

impl<P: Park> Drop for Watched<'_, P> {
    fn drop(&mut self) {
        // SAFETY: the thread that made this has entered the watch.
        self.cancellation.locked(|| unsafe { self.cancellation.leave(self.watch) });
    }
}

impl<P: Park> Cancellation<P> {
    /// Calls `f` with the list locked, and does the errand if a canceller has left one meanwhile.
    fn locked(&self, f: impl FnOnce()) {
        self.lock.acquire();
        f();
        self.unlock();
    }

    /// Unlocks the list, and wakes all waiters if a canceller has asked for that meanwhile.
    fn unlock(&self) {
        if self.lock.release() == Released::WithErrand {
            self.wake_all();
        }
    }

    /// Wakes all waiters of the list. If another thread has locked the list, that thread does it.
    fn wake_all(&self) {
        while self.lock.take_or_leave_errand() == TakenOrLeft::Taken {
            let call = self.walk();
            let released = self.lock.release();
            if let Some(call) = call {
                call.make();
            }
            if released == Released::Quiet {
                break;
            }
        }
    }

    /// Wakes all waiters of the list, which the caller has locked. Returns the last call, which is
    /// still to be made.
    fn walk(&self) -> Option<Call<P>> {
        let mut owed: Option<Call<P>> = None;
        let mut at = self.first.load(Relaxed);
        while !at.is_null() {
            // SAFETY: a waiting thread keeps its watch and its waiter until it has taken the watch
            // out, under the lock.
            let (watch, waiter) = unsafe { (&*at, &*(*at).waiter.load(Relaxed)) };
            if let Some(call) = waiter.wake()
                && let Some(before) = owed.replace(call)
            {
                before.make();
            }
            at = watch.next.load(Relaxed);
        }
        owed
    }

    /// Ends all present waits with it, and every later one.
    ///
    /// It never waits for another thread. A signal handler may call it, whatever code it has
    /// interrupted, even this function. If another thread is just about to begin or to end a wait,
    /// that thread wakes the waiters a moment later.
    pub fn cancel(&self) {
        // Ordering: Release, pairs with the Acquire in `is_cancelled`.
        self.cancelled.store(1, Release);
        self.wake_all();
    }

    /// Calls `f`. Meanwhile a cancellation wakes `waiter`.
    pub(super) fn watch<R>(&self, waiter: &Waiter<P>, f: impl FnOnce() -> R) -> R {
        P::with_record(|watch: &Watch<P>| {
            watch.waiter.store(ptr::from_ref(waiter).cast_mut(), Relaxed);
            // SAFETY: the record is fresh, and stays where it is until `_watched` has taken it out.
            self.locked(|| unsafe { self.enter(watch) });
            let _watched = Watched { cancellation: self, watch };
            f()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;

    use super::*;
    use crate::parking::{GaveUp, Limit, Signal};
    use crate::testing::{OneThread, SLEEPS, UNPARKS, meanwhile, others_are_done};

    type Place = Waiter<OneThread>;

    fn leaked<T>(value: T) -> &'static T {
        Box::leak(Box::new(value))
    }

    /// Lets these waiters wait with it. Each of them leaves when `f` says so.
    fn enter(cancellation: &Cancellation<OneThread>, waiters: &[Place; 3], f: impl FnOnce(&dyn Fn(usize))) {
        let watches: [Watch<OneThread>; 3] = Default::default();
        for (watch, waiter) in watches.iter().zip(waiters) {
            watch.waiter.store(ptr::from_ref(waiter).cast_mut(), Relaxed);
            // SAFETY: one thread; the watches stay where they are, and all leave before the end.
            unsafe { cancellation.enter(watch) };
        }
        // SAFETY: as above.
        f(&|index| unsafe { cancellation.leave(&watches[index]) });
    }

    #[test]
    fn a_cancellation_wakes_a_waiter_and_stays() {
        let (waiter, cancellation) = (leaked(Place::default()), leaked(Cancellation::<OneThread>::default()));
        let limit = Limit { until_ns: None, cancellation: Some(cancellation) };
        assert_eq!(limit.is_reached(), None);
        meanwhile(|| cancellation.cancel());
        assert_eq!(limit.watch(waiter, || waiter.park_within(&limit)), Ok(Signal::Woken));
        assert_eq!(limit.watch(waiter, || waiter.park_within(&limit)), Err(GaveUp::Cancelled));
        // No thread waits with it any more.
        cancellation.cancel();
        assert_eq!(waiter.park_within(&Limit::until(0)), Err(GaveUp::TimedOut), "not woken");
    }

    #[test]
    fn a_cancellation_wakes_all_its_waiters_and_no_others() {
        static CANCELLATION: Cancellation<OneThread> = Cancellation::new();
        let limit = Limit { until_ns: None, cancellation: Some(&CANCELLATION) };
        let [first, second, third]: &[Place; 3] = leaked(Default::default());
        let woken = |waiter: &Place| waiter.park_within(&Limit::until(0)).is_ok();
        limit.watch(first, || {
            limit.watch(second, || {
                limit.watch(third, || CANCELLATION.cancel());
                assert_eq!([first, second, third].map(woken), [true; 3]);
                CANCELLATION.cancel();
            });
            assert_eq!([first, second, third].map(woken), [true, true, false]);
        });
        CANCELLATION.cancel();
        assert_eq!([first, second, third].map(woken), [false; 3]);
    }

    #[test]
    fn waiters_may_leave_a_cancellation_in_any_order() {
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let cancellation = Cancellation::<OneThread>::default();
            let limit = Limit { until_ns: None, cancellation: Some(&cancellation) };
            let waiters: [Place; 3] = Default::default();
            let woken = |waiter: &Place| waiter.park_within(&Limit::until(0)).is_ok();
            // The test enters them, as threads would that leave at different times.
            enter(&cancellation, &waiters, |leave| {
                for (gone, &index) in order.iter().enumerate() {
                    leave(index);
                    cancellation.cancel();
                    let expected = [0, 1, 2].map(|waiter| !order[..=gone].contains(&waiter));
                    assert_eq!([0, 1, 2].map(|waiter| woken(&waiters[waiter])), expected, "{order:?}");
                }
            });
            assert!(limit.is_reached().is_some());
        }
    }

    #[test]
    fn a_cancellation_that_finds_the_list_locked_is_done_by_the_thread_that_has_locked_it() {
        let cancellation = Cancellation::<OneThread>::default();
        let waiters: [Place; 3] = Default::default();
        let woken = |waiter: &Place| waiter.park_within(&Limit::until(0)).is_ok();
        enter(&cancellation, &waiters, |leave| {
            cancellation.locked(|| {
                cancellation.cancel();
                assert!(cancellation.is_cancelled() && !waiters.iter().any(woken));
            });
            assert!(waiters.iter().all(woken));
            [0, 1, 2].into_iter().for_each(leave);
        });
    }

    #[test]
    fn a_cancellation_calls_all_sleepers() {
        let cancellation = leaked(Cancellation::<OneThread>::new());
        let [first, second]: &[Place; 2] = leaked(Default::default());
        let sleep = |waiter: &Place| {
            let limit = Limit { until_ns: None, cancellation: Some(cancellation) };
            limit.watch(waiter, || waiter.park_within(&limit))
        };
        assert!(!cancellation.is_cancelled());
        meanwhile(move || assert_eq!(sleep(second), Ok(Signal::Woken)));
        meanwhile(|| {
            assert_eq!((SLEEPS.get(), UNPARKS.get()), (2, 0));
            cancellation.cancel();
            assert!(cancellation.is_cancelled());
            assert_eq!(UNPARKS.get(), 2);
        });
        assert_eq!(sleep(first), Ok(Signal::Woken));
        assert!(others_are_done());
    }
}
