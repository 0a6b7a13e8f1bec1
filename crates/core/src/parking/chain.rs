//! Chains: queues of waiters in a table of the platform, found by a lock's address.
//!
//! ```text
//! chain   lock | exclusive queue | shared queue | what the family has beside them
//! queue   first | last
//! ```
//! The locks of a [family](Family) share a table of chains. Locks for which the platform finds the
//! same chain share that chain. The mark of a waiter says for which lock it waits
//! ([`Waiter::mark`]). Queues are read and written under the chain's lock, which a [`Locked`]
//! holds.
//!
//! **Why a table, and not a queue in the lock.** A release must not access a lock that it has made
//! free. The next thread that takes the lock may be the last to use it, and may free its memory.
//! Everything that a release still has to do is in the chain, which is never freed, and in the
//! records of the waiters, which wait for it. Besides, the lock is only its word, as in FreeBSD.
//! Whether two locks share a cache line is part of the comparison. The price is that the lock of a
//! chain serves several locks, and that a release goes through the waiters of all of them.
//!
//! **The tables belong to the platform instance** ([`Chains`]), as queue nodes do: to the process,
//! the simulated machine, or the execution of a model. So the source is the same everywhere.
//!
//! **The chain's lock is a [`QueueLock`].** A thread that finds it held spins for a bounded time,
//! and then sleeps. So a thread of high priority does not spin for a holder that it has preempted.
//! FreeBSD disables preemption there.
//!
//! Source: FreeBSD's `subr_turnstile.c` and `subr_sleepqueue.c` (Baldwin), from a description in
//! own words.

use core::iter;
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use super::limit::{GaveUp, Limit};
use super::queue_lock::QueueLock;
use super::wait_list::{WaitList, WakeList};
use super::waiter::{Signal, Waiter};
use crate::events::LockEvent;
use crate::platform::{Atomic, Park, ParkTimeout, Platform};
use crate::raw::RawLock;
use crate::schedule::Sections;

/// The number of tables of chains of a platform.
///
/// A static cannot be generic. So a platform that keeps its tables in statics has a fixed number of
/// them, of which each family uses one.
pub const TABLES: usize = 3;

/// Locks that share a table of chains.
///
/// # Safety
///
/// - [`Beside`](Self::Beside) consists of words of the platform. With all bytes zero it is valid:
///   no thread waits.
/// - No other family has the same [`TABLE`](Self::TABLE). Table 0 is that of [`near`](crate::near).
///   The others are for the families of one other crate.
pub unsafe trait Family: 'static {
    /// The data of a chain beside its lock and queues.
    type Beside<P: Platform>: Default + Send + Sync;

    /// The index of the table that has the family's chains: less than [`TABLES`].
    const TABLE: usize;
}

/// One of the two queues of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// The queue of waiters that want the lock exclusively.
    Exclusive,
    /// The queue of waiters that want the lock shared. For a condition variable, the queue of
    /// waiters for a notification.
    Shared,
}

/// See the [module](self). All bytes zero: no thread waits.
#[repr(C, align(64))]
pub struct Chain<P: Platform, F: Family> {
    lock: QueueLock<P>,
    exclusive: WaitList<P>,
    shared: WaitList<P>,
    beside: F::Beside<P>,
}

impl<P: Platform, F: Family> Chain<P, F> {
    /// The data of the family beside the queues.
    #[inline(always)]
    pub fn beside(&self) -> &F::Beside<P> {
        &self.beside
    }
}

impl<P: Platform, F: Family> Default for Chain<P, F> {
    fn default() -> Self {
        Self {
            lock: QueueLock::default(),
            exclusive: WaitList::default(),
            shared: WaitList::default(),
            beside: F::Beside::default(),
        }
    }
}

/// The table of chains of a family.
///
/// # Safety
///
/// The chain of an address is always the same, and valid as long as the platform instance. The
/// place of an address in its chain is always the same.
pub unsafe trait Chains<F: Family>: Park {
    /// The chain of the lock at this address. The pointer is not dereferenced.
    fn chain(lock: *const ()) -> *const Chain<Self, F>;

    /// The same for a thread that is about to lock the chain, or something beside its queues.
    ///
    /// A platform whose processes fork notes here that a child must empty the table.
    #[inline]
    fn chain_to_lock(lock: *const ()) -> *const Chain<Self, F> {
        Self::chain(lock)
    }

    /// The place of the lock at this address in its chain: any number. It should differ between
    /// the locks of one chain, and be spread evenly over all `u32`.
    fn place_in_chain(lock: *const ()) -> u32;
}

/// The chain of a lock, locked by the caller. Dropping it unlocks the chain.
#[must_use = "the chain is locked only as long as this lives"]
pub struct Locked<'a, P: Park, F: Family> {
    chain: &'a Chain<P, F>,
    lock: *const (),
}

/// A wait in a chain that was given up. The chain is locked again, and the waiter is in no queue.
/// So the lock can update its word: the waiter may have been the last.
pub struct Abandoned<'a, P: Park, F: Family> {
    /// Why the waiter gave up.
    pub why: GaveUp,
    /// The chain, locked.
    pub chain: Locked<'a, P, F>,
}

/// The mark of a waiter that has been taken out of its queue. No lock has this mark.
pub const TAKEN_OUT: u64 = 0;

impl<P: Chains<F>, F: Family> Locked<'_, P, F> {
    /// Locks the chain of the lock at this address. The pointer is not dereferenced. A caller that
    /// has another chain locked may wait for ever.
    ///
    /// # Safety
    ///
    /// The caller is the lock's own algorithm, or reads the waiters and changes nothing. Changes
    /// to the waiters decide which thread holds the lock.
    pub unsafe fn of<L>(lock: *const L) -> Self {
        let lock = lock.cast();
        // SAFETY: valid as long as the platform instance, which outlives its threads.
        Self::lock(unsafe { &*P::chain_to_lock(lock) }, lock)
    }

    /// As [`of`](Self::of), but without a sleep: returns `None` if another thread has the chain
    /// locked for as long as a waiter would spin.
    ///
    /// # Safety
    ///
    /// As [`of`](Self::of).
    pub unsafe fn try_of<L>(lock: *const L) -> Option<Self> {
        let lock = lock.cast();
        // SAFETY: valid as long as the platform instance, which outlives its threads.
        let chain = unsafe { &*P::chain_to_lock(lock) };
        chain.lock.acquire_bounded().then_some(Self { chain, lock })
    }
}

impl<'a, P: Park, F: Family> Locked<'a, P, F> {
    fn lock(chain: &'a Chain<P, F>, lock: *const ()) -> Self {
        chain.lock.acquire();
        Self { chain, lock }
    }

    /// The address of the lock.
    pub fn address(&self) -> *const () {
        self.lock
    }

    /// The mark of the lock's waiters.
    fn mark(&self) -> u64 {
        self.lock.addr() as u64
    }

    /// The data of the family beside the queues.
    pub fn beside(&self) -> &F::Beside<P> {
        self.chain.beside()
    }

    fn list(&self, queue: Queue) -> &WaitList<P> {
        match queue {
            Queue::Exclusive => &self.chain.exclusive,
            Queue::Shared => &self.chain.shared,
        }
    }

    /// The lock's waiters in this queue, in the order of arrival, except for waiters that were
    /// [moved](Self::move_after). Each may be taken out once the iterator has returned it.
    pub fn waiters(&self, queue: Queue) -> impl Iterator<Item = &Waiter<P>> {
        let list = self.list(queue);
        let mut at = list.first();
        let all = iter::from_fn(move || {
            // SAFETY: the waiter is in the list, whose lock we hold, so it is alive meanwhile.
            let (waiter, next) = unsafe { (at.as_ref()?, list.after(at)) };
            at = next;
            Some(waiter)
        });
        let mark = self.mark();
        all.filter(move |waiter| waiter.mark.load(Relaxed) == mark)
    }

    /// Whether no thread waits in this queue of the chain, for whatever lock.
    pub fn is_chain_empty(&self, queue: Queue) -> bool {
        self.list(queue).first().is_null()
    }

    /// The first of the lock's waiters in this queue.
    pub fn first(&self, queue: Queue) -> Option<&Waiter<P>> {
        self.waiters(queue).next()
    }

    /// Puts a waiter for this lock at the end of a queue.
    ///
    /// # Safety
    ///
    /// The waiter is in no list, and stays where it is until it is in none again.
    pub unsafe fn push(&self, queue: Queue, waiter: &Waiter<P>) {
        waiter.mark.store(self.mark(), Relaxed);
        // SAFETY: we hold the lock; the rest is the caller's.
        unsafe { self.list(queue).push(waiter) };
    }

    /// Moves a waiter behind another waiter of the same queue, or to the beginning of the queue.
    ///
    /// # Safety
    ///
    /// Both are in this queue, and are not the same.
    pub unsafe fn move_after(&self, queue: Queue, previous: Option<&Waiter<P>>, waiter: &Waiter<P>) {
        // SAFETY: we hold the lock; the rest is the caller's.
        unsafe {
            self.list(queue).remove(waiter);
            self.list(queue).push_after(previous, waiter);
        }
    }

    /// Takes a waiter out of a queue.
    ///
    /// # Safety
    ///
    /// The waiter is in this queue.
    pub unsafe fn remove(&self, queue: Queue, waiter: *const Waiter<P>) {
        // SAFETY: we hold the lock; the rest is the caller's.
        unsafe { self.list(queue).remove(waiter) };
    }

    /// The number of waiters in this queue for the lock.
    pub fn count(&self, queue: Queue) -> usize {
        self.waiters(queue).count()
    }

    /// Whether the waiter, which was put into a queue for the lock, is still there. For locks that
    /// take waiters out only by [`take`](Self::take).
    pub fn has(&self, waiter: &Waiter<P>) -> bool {
        waiter.mark.load(Relaxed) == self.mark()
    }

    /// Takes up to `most` waiters for the lock out of this queue, and returns their number. They
    /// stay until they have been signalled, after the chain has been unlocked.
    pub fn take(&self, queue: Queue, most: usize, wake_list: &mut WakeList<P>) -> usize {
        let take = |waiter: &Waiter<P>| {
            waiter.mark.store(TAKEN_OUT, Relaxed);
            // SAFETY: the waiter is in the list, whose lock we hold. A waiter that was taken out
            // stays until it is signalled.
            unsafe {
                self.list(queue).remove(waiter);
                wake_list.push(ptr::from_ref(waiter).cast_mut());
            }
        };
        self.waiters(queue).take(most).map(take).count()
    }

    /// Takes all waiters for the lock out of this queue. They sleep until `wake_list` is granted.
    pub fn take_all(&self, queue: Queue, wake_list: &mut WakeList<P>) {
        self.take(queue, usize::MAX, wake_list);
    }
}

impl<P: Park, F: Family> Locked<'_, P, F> {
    /// Unlocks the chain, because there is reason not to sleep.
    pub fn cancel(self) {
        P::count(LockEvent::ChainCancel);
        drop(self);
    }

    /// The same after a lost race. Also pauses, since the thread that has the word's cache line may
    /// want to write it again.
    pub fn restart(self) {
        self.cancel();
        P::cpu_relax(0);
    }
}

impl<P: Park + Sections, F: Family> Locked<'_, P, F> {
    /// Unlocks the chain, and wakes the waiters that were taken out.
    pub fn wake(self, wake_list: WakeList<P>) {
        P::count(LockEvent::ChainWake);
        drop(self);
        wake_list.grant();
    }

    /// Unlocks the chain, and wakes all waiters for the lock in this queue.
    pub fn wake_all(self, queue: Queue) {
        let mut wake_list = WakeList::EMPTY;
        self.take_all(queue, &mut wake_list);
        self.wake(wake_list);
    }

    /// Queues the waiter, a fresh record.
    ///
    /// Safety: the waiter stays where it is until it is in no queue any more.
    unsafe fn enqueue(&self, queue: Queue, waiter: &Waiter<P>) {
        P::assert_may_sleep();
        P::count(LockEvent::ChainSleep);
        // SAFETY: the record is fresh, and so in no list; the rest is the caller's.
        unsafe { self.push(queue, waiter) };
    }

    /// Queues the caller, unlocks the chain, and sleeps until a release takes it out.
    pub fn sleep(self, queue: Queue) {
        P::with_record(|waiter: &Waiter<P>| {
            // SAFETY: the waiter stays until the grant, after which it is in no queue.
            unsafe { self.enqueue(queue, waiter) };
            drop(self);
            while waiter.park() != Signal::Granted {}
        });
    }
}

impl<'a, P: ParkTimeout + Sections, F: Family> Locked<'a, P, F> {
    /// As [`sleep`](Self::sleep), within a limit.
    ///
    /// # Errors
    ///
    /// Why the wait ended before a release woke the caller.
    pub fn sleep_within(self, queue: Queue, limit: &Limit<'_, P>) -> Result<(), Abandoned<'a, P, F>> {
        P::with_record(|waiter: &Waiter<P>| {
            limit.watch(waiter, || {
                let (chain, lock) = (self.chain, self.lock);
                // SAFETY: the waiter stays until the grant, or until it is removed below.
                unsafe { self.enqueue(queue, waiter) };
                drop(self);
                loop {
                    match waiter.park_within(limit) {
                        Ok(Signal::Granted) => return Ok(()),
                        Ok(Signal::Woken) => {}
                        Err(why) => return Self::lock(chain, lock).leave(queue, waiter, why),
                    }
                }
            })
        })
    }

    /// Takes the waiter out of the queue, unless a release has done so.
    fn leave(self, queue: Queue, waiter: &Waiter<P>, why: GaveUp) -> Result<(), Abandoned<'a, P, F>> {
        if !self.has(waiter) {
            drop(self);
            // The grant is on its way. It is the last access to the waiter by another thread.
            while waiter.park() != Signal::Granted {}
            return Ok(());
        }
        // SAFETY: the waiter is in the queue, whose lock we hold.
        unsafe { self.list(queue).remove(waiter) };
        Err(Abandoned { why, chain: self })
    }
}

impl<P: Park, F: Family> Drop for Locked<'_, P, F> {
    fn drop(&mut self) {
        // SAFETY: locked by the thread that made this.
        unsafe { self.chain.lock.unlock(&()) };
    }
}

#[cfg(test)]
mod tests;
