//! Condition variable of the [mutex](super::mutex): a broadcast moves its waiters to the mutex's
//! queue.
//!
//! A broadcast that wakes all waiters has them compete for one mutex. Here it wakes one thread. The
//! others are moved to the mutex's queue, and wake up one by one as they have their turns.
//!
//! ```text
//! word    null  no thread waits
//!         m     the address of the mutex that the waiters have released, and will lock again
//!         The word is the whole condition variable.
//! queue   the waiters, in the order of arrival: in the chain of the condition variable's address;
//!         records on the stacks of the waiters
//!
//!  null -> m   `wait`: the first waiter
//!  m -> m      `wait`: the others, which must have the same mutex
//!  m -> null   a notification that takes the last waiter out, or a last waiter that gives up
//!
//! a waiter    waits --- notified with others -------> in the mutex's queue ---> holds the mutex
//!               |                                                              ^
//!               +------ alone, or gave up -------------> locks the mutex ------+
//!
//!            By the holder of the mutex, a waiter is notified alone only if threads wait for the
//!            mutex already. Otherwise it is put into the mutex's queue.
//! ```
//! Word and queue change together, under the lock of the condition variable's [`chain`].
//!
//! 1. The word is null if and only if the queue is empty. There is one exception. In a child made
//!    by `fork`, the word may still name the mutex of the parent's waiters, which the child does
//!    not have. The first wait or notification in the child corrects that.
//! 2. A waiter is in the queue until a notification takes it out, or it takes itself out. Its mark
//!    says whether it is in the queue. The first of the two decides. A waiter that was taken out
//!    does not give up any more, and a waiter that has given up is not taken out.
//! 3. A waiter that was taken out stays where it is until its thread is granted the notification,
//!    and then locks the mutex. Or it stays until it has the mutex, into whose queue it is put.
//!
//! **No notification is lost.**
//!
//! 1. *A thread notifies after a waiter has queued.* The waiter queues while it holds the mutex. A
//!    thread that locks the mutex later, changes the condition, and notifies, finds it in the
//!    queue. By invariant 2, the waiter gets the notification, or it has given up, and the next
//!    waiter gets the notification.
//! 2. *A thread waits after the notification.* It was not in the queue, and gets nothing. A
//!    notification leaves no count behind that a newcomer could use up.
//!
//! **No wake-up is lost in the mutex's queue.**
//!
//! 1. *A waiter that is put there becomes first.* It is woken, and looks at the mutex. The mutex
//!    may be free, so that no release comes. But if the notifier holds the mutex, it raises a wake
//!    request for the waiter, and sees it in its own release.
//! 2. *A waiter that is put there is behind others.* These leave the queue some time. Each makes
//!    the next waiter first, as for any other waiter (invariant 2 of the mutex).
//!
//! **Notified by the holder.** A waiter that wakes up while the notifier holds the mutex finds the
//! mutex held. If it has the notifier's processor, it even delays the release. So it is put into
//! the queue of the mutex if that is empty, and is woken by the release. The notifier knows from
//! the mutex's word whether it holds the mutex ([`Mark`](crate::schedule::Mark)). This relies on
//! the rule that the thread which has locked a mutex also unlocks it: its guards are not `Send`.
//!
//! A waiter that is notified *alone* wakes up at once, and locks the mutex as any other thread.
//! This is so for `notify_one` by a thread that does not hold the mutex. It is so for `notify_one`
//! and the first waiter of a broadcast if threads wait for the mutex already. In the queue, it
//! would begin to wake up only when it has its turn. Where the mutex is free most of the time,
//! threads that wait for each other would then wake up one after the other. In a short queue of
//! messages, for example, the threads that have been woken before it may all find that their
//! condition does not hold.
//!
//! **Chains are locked one at a time.** A waiter that has been taken out of one chain belongs to
//! the notification until it is in the other chain. Its thread may wake up meanwhile, by a limit or
//! for no reason. It reads the mark, and parks again.
//!
//! **A notification does not access the condition variable after it has taken the last waiter
//! out.** Once it has unlocked the chain, it uses only the waiters' records, which are on their
//! stacks, and the address of the mutex. Notified waiters do not access the condition variable
//! either. So the last thread that returns from a wait may free the condition variable, although
//! the call of `notify_all` that has notified it has not returned.
//!
//! Everything that a thread did before it notifies happens before the return of the waiters that it
//! has notified, even without the mutex.
//!
//! **Waiting.** A waiter parks at once, unless waits in its chain have been short lately
//! (`condvar/patience.rs`). Then it reads its record for a few microseconds before.
//!
//! Fairness: waiters are notified first come, first served. A notified waiter locks the mutex as if
//! it had arrived at the moment of the notification. A waiter that is notified alone, and does not
//! get the mutex as a newcomer, joins the queue behind the other waiters of its broadcast.
//! Source: own. Moving waiters to the mutex is *wait morphing* (Butenhof, "Programming with POSIX
//! threads", 1997). For broadcasts alone, Linux' `FUTEX_CMP_REQUEUE` does so (Jelinek, 2004). In
//! parking_lot, too, the word names the mutex.

pub mod monitor;
pub(super) mod patience;

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use super::mutex::{NearMutex, Notifier};
use super::{Near, NearPlatform};
use crate::events::LockEvent;
use crate::parking::chain::{self, Queue, TAKEN_OUT};
use crate::parking::{GaveUp, Limit, Waiter, WakeList};
use crate::platform::{Atomic, Platform};
use crate::raw::RawLock;

type Locked<'a, P> = chain::Locked<'a, P, Near>;

/// Why a wait ended without a notification. The caller holds the mutex, as before the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unnotified {
    /// The limit of the wait was reached.
    GaveUp(GaveUp),
    /// The wait did not begin, because other threads wait with another mutex.
    OtherMutex,
}

/// See the [module](self). As large as a pointer; all zero: no thread waits.
#[repr(transparent)]
pub struct NearCondvar<P: Platform> {
    mutex: P::Ptr<NearMutex<P>>,
}

impl<P: Platform> NearCondvar<P> {
    /// A condition variable without waiters, in `const`.
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
    /// Notifies the thread that has waited longest. Returns whether there was one. The caller need
    /// not hold the mutex, but must have changed the condition while it held the mutex.
    #[inline]
    pub fn notify_one(&self) -> bool {
        self.has_waiters() && self.wake_one()
    }

    /// Notifies all threads that wait. Returns their number.
    #[inline]
    pub fn notify_all(&self) -> usize {
        if self.has_waiters() { self.move_all() } else { 0 }
    }

    /// Relaxed: a waiter writes the word while it holds the mutex. Since then the notifier, or a
    /// thread before it, has locked the mutex.
    #[inline(always)]
    fn has_waiters(&self) -> bool {
        !self.mutex.load(Relaxed).is_null()
    }

    /// Locks the chain of the condition variable.
    fn lock_queue(&self) -> Locked<'_, P> {
        // SAFETY: this is the condition variable's own algorithm.
        unsafe { Locked::of(self) }
    }

    /// Takes up to `most` waiters out of the queue. Returns their number, their mutex, and whether
    /// the caller holds it. Without waiters there may be no mutex.
    fn take_out(&self, most: usize, waiters: &mut WakeList<P>) -> (usize, *const NearMutex<P>, Notifier) {
        if P::mark().is_anonymous() {
            NearMutex::<P>::renew_mark();
        }
        let queue = self.lock_queue();
        let mutex = self.mutex.load(Relaxed);
        // SAFETY: a waiter in the queue has borrowed the mutex until it has locked it again, and it
        // does not leave the queue while that is locked.
        let is_holder = queue.first(Queue::Shared).is_some() && unsafe { &*mutex }.is_held_by_caller();
        let count = queue.take(Queue::Shared, most, waiters);
        if count != 0 {
            queue.beside().patience.notified_by(P::mark());
        }
        self.update(&queue);
        (count, mutex, if is_holder { Notifier::Holder } else { Notifier::Other })
    }

    #[cold]
    #[inline(never)]
    fn wake_one(&self) -> bool {
        P::in_slow_path(|| {
            let mut waiters = WakeList::EMPTY;
            match self.take_out(1, &mut waiters) {
                (0, ..) => return false,
                // SAFETY: as in `move_all`.
                (_, mutex, Notifier::Holder) => unsafe {
                    NearMutex::requeue(mutex, waiters, Notifier::Holder);
                },
                (_, _, Notifier::Other) => {
                    P::count(LockEvent::CondvarWake);
                    waiters.grant();
                }
            }
            true
        })
    }

    #[cold]
    #[inline(never)]
    fn move_all(&self) -> usize {
        P::in_slow_path(|| {
            let mut waiters = WakeList::EMPTY;
            let (count, mutex, notifier) = self.take_out(usize::MAX, &mut waiters);
            // The last waiter may have given up meanwhile. Then there is no mutex.
            if count != 0 {
                // SAFETY: the waiters are in no queue. They read in their marks that they were
                // taken out, and call `lock_when_requeued`.
                unsafe { NearMutex::requeue(mutex, waiters, notifier) };
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
    /// however long that takes. There are no spurious wake-ups.
    ///
    /// # Errors
    ///
    /// Why there was no notification. A thread that gives up does not consume a notification.
    ///
    /// # Safety
    ///
    /// The caller holds the mutex.
    ///
    /// # Panics
    ///
    /// With debug assertions, in the critical section of a spin lock, if the platform knows that
    /// for sure. It panics before it releases the mutex.
    pub unsafe fn wait(&self, mutex: &NearMutex<P>, limit: &Limit<'_, P>) -> Result<(), Unnotified> {
        P::assert_may_sleep();
        P::with_record(|waiter: &Waiter<P>| {
            limit.watch(waiter, || {
                // SAFETY: the waiter is fresh, and stays until its thread has the mutex again.
                unsafe { self.join(waiter, mutex) }?;
                // SAFETY: the caller's.
                unsafe { mutex.unlock(&()) };
                P::in_slow_path(|| self.relock(waiter, mutex, limit))
            })
        })
    }

    /// Puts the waiter into the queue.
    ///
    /// Safety: the caller holds the mutex. The waiter is fresh, and stays until it has left the
    /// queue and has been signalled.
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

    /// Reads the waiter's signal for a while, if that has paid off lately.
    fn look_for_signal(&self, waiter: &Waiter<P>) {
        let chain = <P as chain::Chains<Near>>::chain(ptr::from_ref(self).cast());
        // SAFETY: valid as long as the platform instance, which outlives its threads.
        let beside = unsafe { &*chain }.beside();
        beside.patience.look(waiter, || self.has_taken_out(waiter));
    }

    /// Waits, after the caller has released the mutex, and locks the mutex again.
    fn relock(
        &self,
        waiter: &Waiter<P>,
        mutex: &NearMutex<P>,
        limit: &Limit<'_, P>,
    ) -> Result<(), Unnotified> {
        let mut signal = None;
        self.look_for_signal(waiter);
        while !self.has_taken_out(waiter) {
            match waiter.sleep_within(limit) {
                Ok(seen) => signal = Some(seen),
                Err(why) if self.gives_up(waiter) => {
                    P::count(LockEvent::CondvarGiveUp);
                    // SAFETY: the node is (), and the caller of `wait` unlocks the mutex.
                    unsafe { mutex.lock(&()) };
                    return Err(Unnotified::GaveUp(why));
                }
                Err(_) => P::count(LockEvent::CondvarLate),
            }
        }
        mutex.lock_when_requeued(waiter, signal);
        // A waiter that was put into the mutex's queue has the mutex's mark, and the mutex. Any
        // other waiter was notified alone.
        if waiter.mark.load(Relaxed) == TAKEN_OUT {
            // SAFETY: as above.
            unsafe { mutex.lock(&()) };
        }
        Ok(())
    }

    /// Whether a notification has taken the waiter out, as far as is known. Relaxed: once a waiter
    /// has been signalled for this reason, it sees the mark.
    fn has_taken_out(&self, waiter: &Waiter<P>) -> bool {
        waiter.mark.load(Relaxed) != ptr::from_ref(self).addr() as u64
    }

    /// Takes the waiter out of the queue if it is still there. Returns whether it was.
    fn gives_up(&self, waiter: &Waiter<P>) -> bool {
        let queue = self.lock_queue();
        let is_queued = queue.has(waiter);
        if is_queued {
            // SAFETY: the waiter is in the queue.
            unsafe { queue.remove(Queue::Shared, waiter) };
            self.update(&queue);
        }
        is_queued
    }
}

#[cfg(test)]
mod tests;
