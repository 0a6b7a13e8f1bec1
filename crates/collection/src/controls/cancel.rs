//! A waiter that is woken for the lock, gives up, and does not wake the next one.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::classic::ttas::TtasLock;
use crate::parking::{GaveUp, Limit, RawTimedLock, WaitList, Waiter, locked};
use crate::platform::{Atomic, ParkTimeout, Platform};
use crate::raw::{RawLock, RawTryLock};

/// Loses a wake-up. An unlock takes the first waiter out of the queue and wakes it. If the time of
/// this waiter is over, it gives up without a look at the lock. The waiters behind it sleep on
/// although the lock is free.
///
/// ```text
/// word   0 unlocked   1 locked
/// ```
/// A newcomer repairs this: its unlock wakes a waiter again. So the fault shows only if no newcomer
/// arrives.
pub struct LostCancel<P: Platform> {
    word: P::U32,
    wait_lock: TtasLock<P>,
    waiters: WaitList<P>,
}

/// The note of a waiter in the queue.
const QUEUED: u32 = 1;

impl<P: Platform> Default for LostCancel<P> {
    fn default() -> Self {
        Self { word: Atomic::new(0), wait_lock: TtasLock::default(), waiters: WaitList::default() }
    }
}

impl<P: ParkTimeout> LostCancel<P> {
    /// Tries to lock. Returns true if it succeeded, with the waiter in no queue. If not, the waiter
    /// is in the queue.
    fn try_or_queue(&self, waiter: &Waiter<P>) -> bool {
        locked(&self.wait_lock, || {
            // SAFETY: the node is (), and the caller of `lock_within` upholds the conditions.
            let free = unsafe { self.try_lock(&()) };
            let queued = waiter.note.load(Relaxed) == QUEUED;
            if !free && !queued {
                waiter.note.store(QUEUED, Relaxed);
                // SAFETY: under `wait_lock`. The waiter is in no queue, and stays until it has been
                // dequeued.
                unsafe { self.waiters.push(waiter) };
            }
            if free && queued {
                // SAFETY: under `wait_lock`, and the note says that it is in the queue.
                unsafe { self.waiters.remove(waiter) };
            }
            free
        })
    }

    /// Takes the waiter out of the queue, unless an unlock has done so.
    fn leave(&self, waiter: &Waiter<P>) {
        locked(&self.wait_lock, || {
            if waiter.note.load(Relaxed) == QUEUED {
                // SAFETY: under `wait_lock`, and the note says that it is in the queue.
                unsafe { self.waiters.remove(waiter) };
            }
            // Otherwise the waiter has been woken, and should wake the next one. The control omits
            // this.
        });
    }
}

// SAFETY: excludes as a test-and-set lock does; only progress is missing.
unsafe impl<P: ParkTimeout> RawLock for LostCancel<P> {
    type Node = ();

    unsafe fn lock(&self, node: &()) {
        // SAFETY: upheld by the caller.
        let locked = unsafe { self.lock_within(node, &Limit::NONE) };
        debug_assert!(locked.is_ok(), "gave up without a limit");
    }

    unsafe fn unlock(&self, _node: &()) {
        let call = locked(&self.wait_lock, || {
            // Ordering: Release, pairs with the Acquire in `try_lock`.
            self.word.store(0, Release);
            let first = self.waiters.first();
            if first.is_null() {
                return None;
            }
            // SAFETY: the waiter is in the queue, and we hold `wait_lock`. So it is alive until we
            // unlock that.
            let waiter = unsafe {
                self.waiters.remove(first);
                &*first
            };
            waiter.note.store(0, Relaxed);
            waiter.wake()
        });
        if let Some(call) = call {
            call.make();
        }
    }
}

// SAFETY: as above.
unsafe impl<P: ParkTimeout> RawTryLock for LostCancel<P> {
    unsafe fn try_lock(&self, _node: &()) -> bool {
        // Ordering: Acquire, pairs with the Release in `unlock`. Relaxed on failure, where nothing
        // is read.
        self.word.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }

    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) != 0
    }
}

// SAFETY: as above.
unsafe impl<P: ParkTimeout> RawTimedLock for LostCancel<P> {
    type Platform = P;

    unsafe fn lock_within(&self, node: &(), limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        // SAFETY: upheld by the caller.
        if unsafe { self.try_lock(node) } {
            return Ok(());
        }
        P::with_record(|waiter: &Waiter<P>| {
            limit.watch(waiter, || {
                while !self.try_or_queue(waiter) {
                    // A waiter checks the limit before the lock, even if it was woken because the
                    // lock is free.
                    let rested = waiter.park_within(limit);
                    if let Some(gave_up) = rested.err().or_else(|| limit.is_reached()) {
                        self.leave(waiter);
                        return Err(gave_up);
                    }
                }
                Ok(())
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parking::Cancellation;
    use crate::testing::{NOW_NS, OneThread, meanwhile, others_are_done};
    use std::boxed::Box;

    fn locked() -> &'static LostCancel<OneThread> {
        let lock: &LostCancel<OneThread> = Box::leak(Box::default());
        // SAFETY: free, and unlocked by the test.
        unsafe { lock.lock(&()) };
        lock
    }

    #[test]
    fn a_waiter_that_is_woken_comes_in() {
        let lock = locked();
        // SAFETY: it is locked; so below.
        meanwhile(|| unsafe { lock.unlock(&()) });
        // SAFETY: unlocked below.
        unsafe {
            lock.lock(&());
            assert!(others_are_done() && lock.waiters.is_empty());
            lock.unlock(&());
        }
    }

    #[test]
    fn a_waiter_gives_up_and_leaves_the_queue() {
        let lock = locked();
        let cancellation: &Cancellation<OneThread> = Box::leak(Box::default());
        NOW_NS.set(10);
        // SAFETY: not acquired.
        let timed_out = unsafe { lock.lock_within(&(), &Limit::until(30)) };
        assert_eq!((timed_out, NOW_NS.get()), (Err(GaveUp::TimedOut), 30));
        meanwhile(|| cancellation.cancel());
        let limit = Limit { until_ns: None, cancellation: Some(cancellation) };
        // SAFETY: not acquired.
        assert_eq!(unsafe { lock.lock_within(&(), &limit) }, Err(GaveUp::Cancelled));
        assert!(lock.waiters.is_empty());
    }

    #[test]
    fn a_waiter_that_finds_the_lock_free_takes_it_and_leaves_the_queue() {
        let lock = locked();
        let [first, second]: &[Waiter<OneThread>; 2] = Box::leak(Box::default());
        assert!(!lock.try_or_queue(first) && !lock.try_or_queue(second));
        // SAFETY: it is locked; so below.
        unsafe { lock.unlock(&()) };
        assert!(lock.try_or_queue(second) && lock.is_locked() && lock.waiters.is_empty());
        assert!(!lock.try_or_queue(first), "held by the second");
        // SAFETY: locked by the second.
        unsafe { lock.unlock(&()) };
        assert!(lock.try_or_queue(first) && lock.waiters.is_empty());
    }

    /// The fault of the control.
    #[test]
    fn a_waiter_that_was_woken_and_gives_up_leaves_the_next_asleep() {
        let lock = locked();
        let [first, second]: &[Waiter<OneThread>; 2] = Box::leak(Box::default());
        assert!(!lock.try_or_queue(first) && !lock.try_or_queue(second));
        // SAFETY: it is locked.
        unsafe { lock.unlock(&()) };
        lock.leave(first);
        assert!(!lock.is_locked() && lock.waiters.first() == core::ptr::from_ref(second).cast_mut());
        assert_eq!(second.park_within(&Limit::until(0)), Err(GaveUp::TimedOut), "no thread wakes it");
    }
}
