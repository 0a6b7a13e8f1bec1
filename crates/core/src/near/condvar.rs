//! Condition variable of the [mutex](super::mutex): a broadcast takes waiters out of its queue and puts them into the mutex's line.
//!
//! ```text
//! word    null  nobody waits
//!         m     the mutex that those who wait have released, and will have again           the whole condition variable
//! queue   who waits, in the order of their coming      in the chain of its address; records on the stacks of the waiters
//!
//!  null -> m   `wait`: the first to wait
//!  m -> m      `wait`: the others, who must have the same mutex
//!  m -> null   a notification that takes the last out, or a last one that gives up
//!
//! a waiter    waits --- notified with all others ---> in the mutex's line ---> has the mutex ---> returns
//!               |                                                              ^
//!               +------ notified alone, or gave up ---> locks the mutex -------+
//! ```
//! Word and queue change together, under the lock of the condition variable's [chain](crate::parking::chain).
//!
//! 1. The word is null if and only if the queue is empty. Only in a child made by `fork` it may
//!    name the mutex of the parent's waiters, which the child does not have; the first wait or
//!    notification there puts that right.
//! 2. A waiter is in the queue, and its mark says so, until a notification takes it out or it takes itself out. Whichever is first
//!    decides: who was taken out does not give up any more, and who has given up is not taken out.
//! 3. Who was taken out stays where it is until it is granted its notification, and locks the mutex then; or until it has the mutex,
//!    into whose line it is put.
//!
//! **No notification is lost.** A waiter queues while it holds the mutex. So whoever locks the mutex later, changes what is waited for, and
//! notifies, finds it in the queue: by 2 it gets the notification or has given up, and then the next one gets it. Nobody who comes
//! later is in the queue by then. And nothing of a notification is kept for anybody: there is no count that a newcomer could use up.
//!
//! **No wake-up is lost in the line.** If a waiter becomes first in the mutex's line by being put there, then it is woken, and
//! looks for itself: nobody may hold the mutex, and so nobody may come to release it. If it stands behind others, then these
//! leave the line some day, and see to the next one, as they do for any (invariant 2 of the mutex). So a broadcast wakes one
//! thread at most, however many it takes out, and none if there is a line; the others wake one by one as they are given their turns.
//! A single one that is notified wakes at once, and comes to the mutex as anybody else: in line, it would begin to wake up when it has its
//! turn, and where the mutex is free for most of the time, those who wait for each other would wake one after the other.
//!
//! **Chains are locked one at a time**: who has been taken out of the one belongs to the notification until it is in the other. Waiters
//! may wake meanwhile, by a limit or for no reason. They see by their mark what they are, and sleep on.
//!
//! **Nothing of the condition variable is read or written by a notification once it has let the last waiter go**: of what is done after
//! the chain has been unlocked, the waiters are on their own stacks, and of the mutex the address is used. Notified waiters
//! do not come back to it either. So whoever is the last to return from a wait may free it, although the call of
//! `notify_all` that has let it go has not returned.
//!
//! What a notifier did before it notifies happens before the return of those it has notified, also without the mutex.
//!
//! Fairness: first come, first served, among those that wait. Who has been notified comes to the mutex as if it had come then.
//! Source: own. The idea that waiters go over to the mutex: *wait morphing* (Butenhof, "Programming with POSIX threads", 1997), and for broadcasts
//! alone Linux' `FUTEX_CMP_REQUEUE` (Jelinek, 2004); that the word names the mutex: parking_lot.

pub mod monitor;

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use super::mutex::NearMutex;
use super::{Host, Near};
use crate::events::LockEvent;
use crate::parking::chain::{self, Queue, TAKEN_OUT};
use crate::parking::{Chosen, GaveUp, Limit, Signal, Waiter};
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

/// See the [module](self). As large as a pointer; all zero: nobody waits.
#[repr(transparent)]
pub struct NearCondvar<P: Platform> {
    mutex: P::Ptr<NearMutex<P>>,
}

impl<P: Platform> NearCondvar<P> {
    /// Nobody waits, in `const`.
    pub const fn new() -> Self {
        Self { mutex: Atomic::ZERO }
    }
}

impl<P: Platform> Default for NearCondvar<P> {
    fn default() -> Self {
        Self { mutex: Atomic::new(ptr::null_mut()) }
    }
}

impl<P: Host> NearCondvar<P> {
    /// Notifies whoever has waited longest, if anybody waits; whether somebody did. It needs not hold the mutex: but what is waited for
    /// must have changed under it.
    #[inline]
    pub fn notify_one(&self) -> bool {
        self.has_waiters() && self.wake_one()
    }

    /// Notifies all that wait; how many they were.
    #[inline]
    pub fn notify_all(&self) -> usize {
        if self.has_waiters() { self.move_all() } else { 0 }
    }

    /// Relaxed: whoever waits has written the word while it held the mutex, which the notifier has locked since, or somebody before
    /// it.
    #[inline(always)]
    fn has_waiters(&self) -> bool {
        !self.mutex.load(Relaxed).is_null()
    }

    /// Locks its chain.
    fn lock_queue(&self) -> Locked<'_, P> {
        // SAFETY: this is the condition variable's own algorithm.
        unsafe { Locked::of(self) }
    }

    /// Takes up to so many out of the queue. How many they were, and their mutex.
    fn take_out(&self, most: usize, waiters: &mut Chosen<P>) -> (usize, *const NearMutex<P>) {
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
            let mut waiters = Chosen::NOBODY;
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
            let mut waiters = Chosen::NOBODY;
            let (count, mutex) = self.take_out(usize::MAX, &mut waiters);
            // SAFETY: they see that they were taken out, and go where they are put.
            unsafe { NearMutex::put_in_line(mutex, waiters) };
            count
        })
    }

    /// m -> null, if nobody is left.
    fn update(&self, queue: &Locked<'_, P>) {
        if queue.first(Queue::Shared).is_none() {
            self.mutex.store(ptr::null_mut(), Relaxed);
        }
    }

    /// Releases the mutex, waits for a notification within the limit, and locks the mutex again, however long that takes. Never ends for
    /// no reason.
    ///
    /// # Errors
    ///
    /// Why there was no notification. Whoever gives up has used up none.
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
                P::in_slow_path(|| self.rest(waiter, mutex, limit))
            })
        })
    }

    /// Safety: the caller holds the mutex; the waiter is fresh, and stays until it has left the queue, and has been told what became
    /// of it.
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
    fn rest(&self, waiter: &Waiter<P>, mutex: &NearMutex<P>, limit: &Limit<'_, P>) -> Result<(), Unnotified> {
        let mut signal = Signal::Woken;
        while !self.has_taken_out(waiter) {
            match waiter.rest_within(limit) {
                Ok(seen) => signal = seen,
                Err(why) if self.gives_up(waiter) => {
                    P::count(LockEvent::CondvarGiveUp);
                    // SAFETY: the node is (); whoever called `wait` unlocks.
                    unsafe { mutex.lock(&()) };
                    return Err(Unnotified::GaveUp(why));
                }
                Err(_) => P::count(LockEvent::CondvarLate),
            }
        }
        if signal != Signal::Granted {
            mutex.lock_when_put_in_line(waiter);
        }
        // In the mutex's line it would have the mark of that.
        if waiter.mark.load(Relaxed) == TAKEN_OUT {
            // SAFETY: as above.
            unsafe { mutex.lock(&()) };
        }
        Ok(())
    }

    /// Whether a notification has taken it out, as far as it is known. Relaxed: who has been signalled for that knows it.
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
