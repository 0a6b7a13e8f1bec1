//! Chains: where those sleep who wait for a lock of this family.
//!
//! ```text
//! chain   lock | gate | exclusive queue | shared queue | fair from   a line of 64 bytes
//!         pace | filter                                             another one
//! queue   first | last
//! ```
//! The platform has a table of chains, and finds a lock's by its address. Locks with the same chain share it: a waiter says
//! for which lock it waits (`Waiter::mark`). Everything here is done under the chain's lock, and the waiter bits of a lock's word
//! are set and cleared under it:
//!
//! 1. Whoever wants to sleep takes the chain's lock, and looks at the word again. If the lock can be had, it starts anew.
//! 2. If not, it sees to it that the word has the waiter bit: by a compare-exchange, so that the lock is held in that very
//!    step. Then it queues, and drops the chain's lock.
//! 3. Whoever releases a lock with a waiter bit takes the chain's lock before it clears the bit, and takes **all** of a queue
//!    out. It makes the lock free, and then wakes them. Nobody is granted anything: they compete with newcomers.
//!
//! So without the bit, a compare-exchange that makes the lock free leaves nobody asleep. With it, a release that has read the
//! bit comes to the chain after the waiter that has set it, and finds it there.
//!
//! **Why a table, and not a queue in the lock**, as the locks of Linux have it here: a release must be over for the lock's own
//! memory as soon as the lock is free, for whoever takes it next may be the last to use it, and free it. What is left to do
//! then is in the chain, which nobody frees, and in the waiters, who wait for it. And the word is the whole lock, as in
//! FreeBSD: that two locks share a line, or do not, is part of what is compared. The price is that a chain's lock serves
//! several locks, and that a release looks at the waiters of them all.
//!
//! The table belongs to the platform instance ([`Chains`]), as queue nodes do: the process, the simulated machine, or the
//! execution of a model. So that the source is the same everywhere.
//!
//! **The chain's lock is a [`QueueLock`]**: a thread that finds it held looks for a bounded time,
//! and then sleeps. So a thread of high priority does not spin for a holder that it has preempted.
//! FreeBSD disables preemption there.
//!
//! The second line is not FreeBSD's. It is for a mutex whose word does not tell a release that
//! others wait ([`near`](crate::near)): a counting filter (`near::mutex::filter`) of such
//! mutexes that have waiters, and hints. A release reads it without the chain's lock. Other locks
//! leave it alone. `fair from` and the gate are those of
//! a [mutex with buckets](crate::classic::parking_lot_mutex), whose threads pass the gate before they take the chain's lock.
//!
//! FreeBSD's turnstiles also lend a waiter's priority to the holder, and its sleep queues do not. Here nobody lends: threads
//! of a program have no priorities that this library knows. That is why one chain serves for both.
//! Source: FreeBSD's `subr_turnstile.c` and `subr_sleepqueue.c` (Baldwin), from a description in own words.

use core::iter;
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use super::limit::{GaveUp, Limit};
use super::queue_lock::QueueLock;
use super::wait_list::{Chosen, WaitList};
use super::waiter::{Signal, Waiter};
use crate::classic::parking_lot_mutex::{OfBucket, ParkingLotMutex};
use crate::events::LockEvent;
use crate::near::mutex::filter::{Count, Filter};
use crate::near::mutex::pace::Pace;
use crate::platform::{Atomic, Park, ParkTimeout, Platform};
use crate::raw::RawLock;
use crate::schedule::Sections;

/// Which of the two queues of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Of those who want it for themselves.
    Exclusive,
    /// Of those who would share it; of a condition variable, of those who wait for a notification.
    Shared,
}

/// See the [module](self). Zero bytes: nobody waits.
#[repr(C, align(64))]
pub struct Chain<P: Platform> {
    lock: QueueLock<P>,
    gate: ParkingLotMutex<P, OfBucket>,
    exclusive: WaitList<P>,
    shared: WaitList<P>,
    fair_from_ns: P::U64,
    beside: Beside<P>,
}

/// What releases read and write that do not lock the chain.
#[repr(C, align(64))]
struct Beside<P: Platform> {
    pace: Pace<P>,
    filter: Filter<P>,
}

impl<P: Platform> Chain<P> {
    /// Nobody waits, in `const`.
    pub const fn new() -> Self {
        Self {
            lock: QueueLock::new(),
            exclusive: WaitList::new(),
            shared: WaitList::new(),
            fair_from_ns: Atomic::ZERO,
            gate: ParkingLotMutex::new(),
            beside: Beside { pace: Pace::new(), filter: Filter::new() },
        }
    }

    /// Empties and unlocks the chain. One that is empty and unlocked is not written to.
    ///
    /// # Safety
    ///
    /// No thread waits in it, or has it or its gate locked, or will access it at the same time:
    /// those that did are gone, as in a child made by `fork`.
    pub unsafe fn forget(&self) {
        if self.lock.is_free()
            && self.beside.filter.is_empty()
            && self.gate.is_free()
            && self.exclusive.is_empty()
            && self.shared.is_empty()
        {
            return;
        }
        self.lock.forget();
        self.beside.filter.forget();
        self.gate.forget();
        self.exclusive.forget();
        self.shared.forget();
    }

    /// What may be locked before the chain is, by threads that rather sleep than spin for it.
    #[inline(always)]
    pub fn gate(&self) -> &ParkingLotMutex<P, OfBucket> {
        &self.gate
    }

    /// Which mutexes have waiters, and want a release to come here. Written under the chain's lock,
    /// and read without.
    #[inline(always)]
    pub(crate) fn filter(&self) -> &Filter<P> {
        &self.beside.filter
    }

    /// Hints for locks whose releases do not always come here.
    #[inline(always)]
    pub fn pace(&self) -> &Pace<P> {
        &self.beside.pace
    }
}

impl<P: Platform> Default for Chain<P> {
    fn default() -> Self {
        Self {
            lock: QueueLock::default(),
            exclusive: WaitList::default(),
            shared: WaitList::default(),
            fair_from_ns: Atomic::new(0),
            gate: ParkingLotMutex::default(),
            beside: Beside { pace: Pace::default(), filter: Filter::default() },
        }
    }
}

/// The table of chains.
///
/// # Safety
///
/// The chain of an address is always the same, and valid as long as the platform instance. So is
/// its place in the chain's filter always the same.
pub unsafe trait Chains: Park {
    /// The chain of the lock at this address, which is not followed.
    fn chain(lock: *const ()) -> *const Chain<Self>;

    /// Where the lock at this address is in its chain's filter (`near::mutex::filter`): any
    /// number, which should differ between locks of one chain, and be spread evenly over all `u32`.
    fn place_in_filter(lock: *const ()) -> u32;
}

/// The chain of a lock, locked by the caller. Dropping it unlocks the chain.
#[must_use = "the chain is locked only as long as this lives"]
pub struct Locked<'a, P: Park> {
    chain: &'a Chain<P>,
    channel: u64,
}

/// A wait in a chain that was given up. The chain is locked again, and the waiter in no queue, so that the lock can
/// bring its word up to date: the waiter may have been the last.
pub struct Abandoned<'a, P: Park> {
    /// Why.
    pub why: GaveUp,
    /// The chain.
    pub chain: Locked<'a, P>,
}

/// The mark of a waiter that has been taken out of its queue: that of no lock.
pub const TAKEN_OUT: u64 = 0;

impl<P: Chains> Locked<'_, P> {
    /// Locks the chain of the lock at this address: the caller's own lock. The caller does not hold
    /// another chain.
    ///
    /// Not public: what is done here by others than the lock itself could hand it over to two at a
    /// time.
    pub(crate) fn of<L>(lock: *const L) -> Self {
        let lock = lock.cast::<()>();
        // SAFETY: valid as long as the platform instance, which outlives those who use it.
        Self::lock(unsafe { &*P::chain(lock) }, lock.addr() as u64)
    }

    /// The lock's count in the chain's filter.
    pub(crate) fn count_of_lock(&self) -> &Count<P> {
        let lock = ptr::without_provenance(self.channel as usize);
        self.chain.filter().at(P::place_in_filter(lock))
    }
}

impl<P: Chains> Locked<'_, P> {
    /// The same of any lock.
    ///
    /// # Safety
    ///
    /// The caller looks at the lock's waiters, and changes nothing.
    #[doc(hidden)] // public for the simulator, where a test watches whose turn it is
    pub unsafe fn of_another<L>(lock: *const L) -> Self {
        Self::of(lock)
    }
}

impl<'a, P: Park> Locked<'a, P> {
    fn lock(chain: &'a Chain<P>, channel: u64) -> Self {
        chain.lock.acquire();
        Self { chain, channel }
    }

    fn list(&self, queue: Queue) -> &WaitList<P> {
        match queue {
            Queue::Exclusive => &self.chain.exclusive,
            Queue::Shared => &self.chain.shared,
        }
    }

    /// From when on a release hands its lock over, in ns of the platform's clock.
    pub fn fair_from_ns(&self) -> &P::U64 {
        &self.chain.fair_from_ns
    }

    /// Its [`Chain::pace`].
    pub fn pace(&self) -> &Pace<P> {
        self.chain.pace()
    }

    /// The lock's waiters in this queue, in the order of their coming, or that in which they were [moved](Self::move_after). Each may be taken out once
    /// it has come.
    pub fn waiters(&self, queue: Queue) -> impl Iterator<Item = &Waiter<P>> {
        let list = self.list(queue);
        let mut at = list.first();
        let all = iter::from_fn(move || {
            // SAFETY: in the list, whose lock we hold; so alive as long as that lasts.
            let (waiter, next) = unsafe { (at.as_ref()?, list.after(at)) };
            at = next;
            Some(waiter)
        });
        all.filter(|waiter| waiter.mark.load(Relaxed) == self.channel)
    }

    /// Whoever of the lock's waiters is first in this queue.
    pub fn first(&self, queue: Queue) -> Option<&Waiter<P>> {
        self.waiters(queue).next()
    }

    /// Puts a waiter at the end of a queue, as the lock's.
    ///
    /// # Safety
    ///
    /// The waiter is in no list, and stays where it is until it is in none again.
    pub unsafe fn push(&self, queue: Queue, waiter: &Waiter<P>) {
        waiter.mark.store(self.channel, Relaxed);
        // SAFETY: we hold the lock; the rest is the caller's.
        unsafe { self.list(queue).push(waiter) };
    }

    /// Moves a waiter to behind another of the same queue, or else to its beginning.
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

    /// How many wait in this queue for the lock.
    pub fn count(&self, queue: Queue) -> usize {
        self.waiters(queue).count()
    }

    /// Whether the waiter, which has been in a queue for the lock, is so still. For locks that take waiters out by [`take`](Self::take)
    /// only.
    pub fn has(&self, waiter: &Waiter<P>) -> bool {
        waiter.mark.load(Relaxed) == self.channel
    }

    /// Takes up to so many of those that wait in this queue for the lock out of it, and says how many. They stay until
    /// they have been told what became of them, after the chain has been unlocked.
    pub fn take(&self, queue: Queue, most: usize, chosen: &mut Chosen<P>) -> usize {
        let take = |waiter: &Waiter<P>| {
            waiter.mark.store(TAKEN_OUT, Relaxed);
            // SAFETY: in the list, whose lock we hold; it stays, since nobody leaves who was taken out.
            unsafe {
                self.list(queue).remove(waiter);
                chosen.push(ptr::from_ref(waiter).cast_mut());
            }
        };
        self.waiters(queue).take(most).map(take).count()
    }

    /// Takes all that wait in this queue for the lock out of it. They sleep until `chosen` is granted.
    pub fn take_all(&self, queue: Queue, chosen: &mut Chosen<P>) {
        self.take(queue, usize::MAX, chosen);
    }
}

impl<P: Park> Locked<'_, P> {
    /// Unlocks the chain: there is reason not to sleep.
    pub fn cancel(self) {
        P::count(LockEvent::ChainCancel);
        drop(self);
    }

    /// The same after a lost race, which takes a pause: whoever holds the word may want to write it again.
    pub fn restart(self) {
        self.cancel();
        P::cpu_relax(0);
    }
}

impl<P: Park + Sections> Locked<'_, P> {
    /// Unlocks the chain, and wakes those that were taken out.
    pub fn wake(self, chosen: Chosen<P>) {
        P::count(LockEvent::ChainWake);
        drop(self);
        chosen.grant();
    }

    /// Unlocks the chain, and wakes all that wait in this queue for the lock.
    pub fn wake_all(self, queue: Queue) {
        let mut chosen = Chosen::NOBODY;
        self.take_all(queue, &mut chosen);
        self.wake(chosen);
    }

    /// Queues the waiter, a fresh record.
    ///
    /// Safety: the waiter stays where it is until it is in no queue any more.
    unsafe fn enqueue(&self, queue: Queue, waiter: &Waiter<P>) {
        P::assert_may_sleep();
        P::count(LockEvent::ChainSleep);
        // SAFETY: the record is fresh, so in no list; the rest is the caller's.
        unsafe { self.push(queue, waiter) };
    }

    /// Queues the caller, unlocks the chain, and sleeps until a release takes it out.
    pub fn sleep(self, queue: Queue) {
        P::with_record(|waiter: &Waiter<P>| {
            // SAFETY: it stays until the grant, after which it is in no queue.
            unsafe { self.enqueue(queue, waiter) };
            drop(self);
            while waiter.rest() != Signal::Granted {}
        });
    }
}

impl<'a, P: ParkTimeout + Sections> Locked<'a, P> {
    /// As [`sleep`](Self::sleep), within a limit.
    ///
    /// # Errors
    ///
    /// Why the wait ended before anybody woke the caller.
    pub fn sleep_within(self, queue: Queue, limit: &Limit<'_, P>) -> Result<(), Abandoned<'a, P>> {
        P::with_record(|waiter: &Waiter<P>| {
            limit.watch(waiter, || {
                let (chain, channel) = (self.chain, self.channel);
                // SAFETY: it stays until the grant, or until it is removed below.
                unsafe { self.enqueue(queue, waiter) };
                drop(self);
                loop {
                    match waiter.rest_within(limit) {
                        Ok(Signal::Granted) => return Ok(()),
                        Ok(Signal::Woken) => {}
                        Err(why) => return Self::lock(chain, channel).leave(queue, waiter, why),
                    }
                }
            })
        })
    }

    /// Takes the waiter out of the queue, unless a release has done so.
    fn leave(self, queue: Queue, waiter: &Waiter<P>, why: GaveUp) -> Result<(), Abandoned<'a, P>> {
        if !self.has(waiter) {
            drop(self);
            // The grant is on its way, and the last that is done to the waiter.
            while waiter.rest() != Signal::Granted {}
            return Ok(());
        }
        // SAFETY: in the queue, whose lock we hold.
        unsafe { self.list(queue).remove(waiter) };
        Err(Abandoned { why, chain: self })
    }
}

impl<P: Park> Drop for Locked<'_, P> {
    fn drop(&mut self) {
        // SAFETY: locked by whoever made this.
        unsafe { self.chain.lock.unlock(&()) };
    }
}

#[cfg(test)]
pub(crate) mod tests;
