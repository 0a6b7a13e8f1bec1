//! Condition variable of the [mutex](super::mutex): a broadcast moves waiters from its queue to the
//! mutex's queue.
//!
//! ```text
//! word    null  no thread waits
//!         m     the mutex that the waiters have released, and will lock again
//!         the whole condition variable
//! queue   the waiters, in the order of their coming      in the chain of its address; records on
//!         the stacks of the waiters
//!
//!  null -> m   `wait`: the first waiter
//!  m -> m      `wait`: the others, which must have the same mutex
//!  m -> null   a notification that takes the last one out, or a last one that gives up
//!
//! a waiter    waits --- notified with all others ---> in the mutex's queue ---> has the mutex
//!               |                                                              ^
//!               +------ notified alone, or gave up ---> locks the mutex -------+
//! ```
//! Word and queue change together, under the lock of the condition variable's
//! [`chain`].
//!
//! 1. The word is null if and only if the queue is empty. Only in a child made by `fork` it may
//!    name the mutex of the parent's waiters, which the child does not have; the first wait or
//!    notification there corrects that.
//! 2. A waiter is in the queue, and its mark says so, until a notification takes it out or it takes
//!    itself out. The first of the two decides: a waiter that was taken out does not give up any
//!    more, and one that has given up is not taken out.
//! 3. A waiter that was taken out stays where it is until it is granted its notification, and locks
//!    the mutex then; or until it has the mutex, into whose queue it is put.
//!
//! **No notification is lost.** A waiter queues while it holds the mutex. So a thread that locks
//! the mutex later, changes what is waited for, and notifies, finds it in the queue. By 2 that
//! waiter gets the notification, or has given up, and then the next one gets it. A thread that
//! comes later is not in the queue by then. And nothing of a notification is kept: there is no
//! count that a newcomer could use up.
//!
//! **No wake-up is lost in the queue.** If a waiter becomes first in the mutex's queue by being put
//! there, then it is woken, and looks for itself: the mutex may be free, so that no release comes.
//! If it stands behind others, then these leave the queue some day, and see to the next one, as
//! they do for any (invariant 2 of the mutex). So a broadcast wakes one thread at most, however
//! many it takes out, and none if there is a queue; the others wake one by one as they have their
//! turns. A single waiter that is notified wakes at once, and comes to the mutex as any other
//! thread. In queue, it would begin to wake up when it has its turn, and where the mutex is free
//! for most of the time, threads that wait for each other would wake one after the other.
//!
//! **Chains are locked one at a time**: a waiter that has been taken out of the one belongs to the
//! notification until it is in the other. It may wake meanwhile, by a limit or for no reason. It
//! sees by its mark what it is, and parks again.
//!
//! **A notification does not access the condition variable after it has taken the last waiter
//! out.** Of what it does after the chain has been unlocked, the waiters are on their own stacks,
//! and of the mutex it uses the address. Notified waiters do not come back to the condition
//! variable either. So the last thread that returns from a wait may free it, although the call of
//! `notify_all` that has notified it has not returned.
//!
//! What a notifier did before it notifies happens before the return of those it has notified, also
//! without the mutex.
//!
//! Fairness: first come, first served, among waiters. One that has been notified comes to the mutex
//! as if it had come then.
//! Source: own. The idea that waiters go over to the mutex: *wait morphing* (Butenhof, "Programming
//! with POSIX threads", 1997), and for broadcasts alone Linux' `FUTEX_CMP_REQUEUE` (Jelinek, 2004);
//! that the word names the mutex: parking_lot.

pub mod monitor;

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use super::mutex::NearMutex;
use super::{Near, NearPlatform};
use crate::events::LockEvent;
use crate::parking::chain::{self, Queue, TAKEN_OUT};
use crate::parking::{GaveUp, Limit, Signal, Waiter, WakeList};
use crate::platform::{Atomic, Platform};
use crate::raw::RawLock;

type Locked<'a, P> = chain::Locked<'a, P, Near>;

/// Why a wait ended without a notification. The mutex is held as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unnotified {
    /// Its limit was reached.
    GaveUp(GaveUp),
    /// It did not begin: others wait with another mutex.
    OtherMutex,
}

/// See the [module](self). As large as a pointer; all zero: no thread waits.
#[repr(transparent)]
pub struct NearCondvar<P: Platform> {
    mutex: P::Ptr<NearMutex<P>>,
}

impl<P: Platform> NearCondvar<P> {
    /// No thread waits, in `const`.
    pub const fn new() -> Self {
        Self { mutex: Atomic::ZERO }
    }
}

impl<P: Platform> Default for NearCondvar<P> {
    fn default() -> Self {
        Self { mutex: Atomic::new(ptr::null_mut()) }
    }
}

impl<P: NearPlatform> NearCondvar<P> {
    /// Notifies the thread that has waited longest, and says whether there was one. The caller need
    /// not hold the mutex, but what is waited for must have changed under it.
    #[inline]
    pub fn notify_one(&self) -> bool {
        self.has_waiters() && self.wake_one()
    }

    /// Notifies all threads that wait, and says how many they were.
    #[inline]
    pub fn notify_all(&self) -> usize {
        if self.has_waiters() { self.move_all() } else { 0 }
    }

    /// Relaxed: a waiter has written the word while it held the mutex, which the notifier has
    /// locked since, or a thread before it.
    #[inline(always)]
    fn has_waiters(&self) -> bool {
        !self.mutex.load(Relaxed).is_null()
    }

    /// Locks its chain.
    fn lock_queue(&self) -> Locked<'_, P> {
        // SAFETY: this is the condition variable's own algorithm.
        unsafe { Locked::of(self) }
    }

    /// Takes up to so many out of the queue. Says how many they were, and their mutex.
    fn take_out(&self, most: usize, waiters: &mut WakeList<P>) -> (usize, *const NearMutex<P>) {
        let queue = self.lock_queue();
        let mutex = self.mutex.load(Relaxed);
        let count = queue.take(Queue::Shared, most, waiters);
        self.update(&queue);
        (count, mutex)
    }

    #[cold]
    #[inline(never)]
    fn wake_one(&self) -> bool {
        P::in_slow_path(|| {
            let mut waiters = WakeList::EMPTY;
            let (count, _) = self.take_out(1, &mut waiters);
            if count != 0 {
                P::count(LockEvent::CondvarWake);
            }
            waiters.grant();
            count != 0
        })
    }

    #[cold]
    #[inline(never)]
    fn move_all(&self) -> usize {
        P::in_slow_path(|| {
            let mut waiters = WakeList::EMPTY;
            let (count, mutex) = self.take_out(usize::MAX, &mut waiters);
            // The last waiter may have given up just now. Then there is no mutex.
            if count != 0 {
                // SAFETY: they see that they were taken out, and go where they are put.
                unsafe { NearMutex::requeue(mutex, waiters) };
            }
            count
        })
    }

    /// m -> null, if no waiter is left.
    fn update(&self, queue: &Locked<'_, P>) {
        if queue.first(Queue::Shared).is_none() {
            self.mutex.store(ptr::null_mut(), Relaxed);
        }
    }

    /// Releases the mutex, waits for a notification within the limit, and locks the mutex again,
    /// however long that takes. Never ends for no reason.
    ///
    /// # Errors
    ///
    /// Why there was no notification. A thread that gives up has used up none.
    ///
    /// # Safety
    ///
    /// The caller holds the mutex.
    ///
    /// # Panics
    ///
    /// With debug assertions, in the section of a spin lock, where the platform knows that for
    /// sure; before it releases the mutex.
    pub unsafe fn wait(&self, mutex: &NearMutex<P>, limit: &Limit<'_, P>) -> Result<(), Unnotified> {
        P::assert_may_sleep();
        P::with_record(|waiter: &Waiter<P>| {
            limit.watch(waiter, || {
                // SAFETY: fresh; it stays until it has the mutex again.
                unsafe { self.join(waiter, mutex) }?;
                // SAFETY: the caller's.
                unsafe { mutex.unlock(&()) };
                P::in_slow_path(|| self.relock(waiter, mutex, limit))
            })
        })
    }

    /// Safety: the caller holds the mutex; the waiter is fresh, and stays until it has left the
    /// queue, and has been told what became of it.
    unsafe fn join(&self, waiter: &Waiter<P>, mutex: &NearMutex<P>) -> Result<(), Unnotified> {
        let mutex = ptr::from_ref(mutex).cast_mut();
        NearMutex::note_node(waiter);
        let queue = self.lock_queue();
        // The queue decides, and not the word: see invariant 1.
        let has_waiters = queue.first(Queue::Shared).is_some();
        if has_waiters && self.mutex.load(Relaxed) != mutex {
            return Err(Unnotified::OtherMutex);
        }
        self.mutex.store(mutex, Relaxed);
        // SAFETY: the caller's.
        unsafe { queue.push(Queue::Shared, waiter) };
        Ok(())
    }

    /// From having released the mutex to having it again.
    fn relock(
        &self,
        waiter: &Waiter<P>,
        mutex: &NearMutex<P>,
        limit: &Limit<'_, P>,
    ) -> Result<(), Unnotified> {
        let mut signal = Signal::Woken;
        while !self.has_taken_out(waiter) {
            match waiter.park_within(limit) {
                Ok(seen) => signal = seen,
                Err(why) if self.gives_up(waiter) => {
                    P::count(LockEvent::CondvarGiveUp);
                    // SAFETY: the node is (); the caller of `wait` unlocks.
                    unsafe { mutex.lock(&()) };
                    return Err(Unnotified::GaveUp(why));
                }
                Err(_) => P::count(LockEvent::CondvarLate),
            }
        }
        if signal != Signal::Granted {
            mutex.lock_when_requeued(waiter);
        }
        // In the mutex's queue it would have the mark of that.
        if waiter.mark.load(Relaxed) == TAKEN_OUT {
            // SAFETY: as above.
            unsafe { mutex.lock(&()) };
        }
        Ok(())
    }

    /// Whether a notification has taken it out, as far as it is known. Relaxed: a waiter that has
    /// been signalled for that knows it.
    fn has_taken_out(&self, waiter: &Waiter<P>) -> bool {
        waiter.mark.load(Relaxed) != ptr::from_ref(self).addr() as u64
    }

    /// Takes the waiter out of the queue, if it is still there.
    fn gives_up(&self, waiter: &Waiter<P>) -> bool {
        let queue = self.lock_queue();
        let is_queued = queue.has(waiter);
        if is_queued {
            // SAFETY: in the queue.
            unsafe { queue.remove(Queue::Shared, waiter) };
            self.update(&queue);
        }
        is_queued
    }
}

#[cfg(test)]
mod tests;
