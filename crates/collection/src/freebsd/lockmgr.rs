//! Lock of files and buffers, FreeBSD's `lockmgr`: shared or exclusive, for long critical sections.
//! It has an [`Operation`] and an [option](Options) for each wish that file systems have had.
//! Waiters sleep in a [chain](crate::parking::chain). Before that, waiters for a shared or
//! exclusive hold may spin while an exclusive holder runs.
//!
//! ```text
//! word   bits 5-63 sharers; or the exclusive holder: a thread's id, all ones if disowned
//!        | 4 RECURSED | 3 0 | 2 EXCLUSIVE_WAITERS | 1 SHARED_WAITERS | 0 EXCLUSIVE
//!        (In the kernel, EXCLUSIVE has the opposite value, so that the free word is 1. Its bit 3
//!        stands for spinners, and no thread sets it today.)
//! depth  how often the exclusive holder has acquired it again; only this holder accesses it
//! sleep_failers   how many of the exclusive queue fail once they are woken; under the chain's lock
//!
//! (sharers or t, or d: disowned; EXCLUSIVE, EXCLUSIVE_WAITERS, SHARED_WAITERS); * is anything;
//! [c]: the thread holds the chain's lock
//!  s;0,0,*  -> s+1;0,0,*   a sharer                                    `add_sharer`
//!  s;0,*,*  -> s+1;0,*,*   a sharer that overtakes waiters             `add_sharer`
//!  s;0,*,*  -> s-1;0,*,*   release; others stay, or no thread waits    `drop_sharer`
//!  1;0,*,*  -> 0;0,0,0     [c] the last sharer; wakes all waiters      `release_shared_slow`
//!  1;0,1,s  -> 0;0,0,s     [c] the same; wakes the exclusive queue
//!  0;0,0,0  -> t;1,0,0     an exclusive holder                         `attempt`
//!  0;0,*,*  -> t;1,*,*     [c] the same                                `sleep_exclusive`
//!  *;*,0,*  -> *;*,1,*     [c] an exclusive waiter is about to sleep   `sleep_exclusive`
//!                          [c] a drain is about to sleep               `sleep_to_drain`
//!  *;*,*,0  -> *;*,*,1     [c] a sharer is about to sleep              `sleep_shared`
//!  t;1,*,*  -> t|RECURSED  the holder acquires it again                `recurse`
//!                          and back                                    `release_exclusive_slow`
//!  t;1,0,0  -> 0;0,0,0     release                                     `release`,
//!                                                                      `release_exclusive_slow`
//!  t;1,*,*  -> 0;0,0,*     [c] release; wakes as a sharer does         `release_contested`
//!  0;0,*,*  -> 0;0,0,*     [c] drain; wakes as a release does          `let_in`
//!  1;0,*,*  -> t;1,*,*     upgrade                                     `upgrade`
//!  t;1,*,*  -> 1;0,*,*     downgrade                                   `downgrade_exclusive`
//!  t;1,*,*  -> d;1,*,*     disown; released as by t                    `disown`
//!  0;0,0,0  -> 0;1,0,0     destroy: for ever
//! ```
//! RECURSED is set only beside a thread's id, exactly while depth is not 0.
//!
//! 1. EXCLUSIVE is set only in a word without sharers, except the one that upgrades. It is cleared
//!    by the thread that the word names, or by any thread if the lock is disowned. No thread
//!    becomes a sharer while it is set.
//! 2. Waiter bits are set and cleared under the chain's lock. A thread that clears one wakes its
//!    queue. So an unlock that finds no bit leaves no thread asleep.
//! 3. The bit of a queue stays if all its waiters have given up. So an unlock counts the exclusive
//!    queue before it leaves sharers asleep. At least one of the threads that it wakes instead must
//!    be about to take the lock, or to find it taken. Threads that fail after their sleep do
//!    neither: an unlock that finds no others wakes both queues.
//! 4. `sleep_failers` is exact. A thread that joins the queue adds itself. A thread that gives up
//!    subtracts itself. An unlock that takes the whole queue out sets it to 0 ([`SleepFailers`]).
//! 5. After the step that makes the lock free, the unlock accesses only the chain and the waiters,
//!    and nothing in the lock. So a thread that finds the lock free may free its memory.
//! 6. A woken waiter has been granted nothing: it looks at the word as a newcomer does. So an
//!    upgrade may overtake sleeping waiters.
//!
//! Fairness: none. An unlock makes all waiters of one queue runnable, or of both, and they compete
//! with newcomers. Exclusive waiters go before sharers, which can starve. A downgrade wakes no
//! thread.
//!
//! A thread that shares the lock may share it again, since its shares let it overtake waiters
//! ([`Bypass`]). If it locks it exclusively, it waits for itself: a deadlock that is not detected.
//!
//! Debug assertions panic where the kernel panics:
//! - The exclusive holder locks again without permission.
//! - The holder drains the lock.
//! - A thread unlocks or downgrades what it does not hold.
//! - A thread downgrades or disowns what it holds more than once.
//!
//! Without debug assertions the first two are errors.
//!
//! Differences from the kernel:
//! - A time limit is a moment, and counts for the whole wait. In the kernel it begins again with
//!   each sleep.
//! - An interlock is released before the chain is locked. Chains here are those of all locks, so
//!   the release of an interlock may need the same chain.
//! - `sleep_failers` is exact. In the kernel it is an upper bound, and a sharer that turns out not
//!   to be the last forgets it too early: [`SleepFailers::Forgotten`].
//! - A drain that has let waiters in starts again. In the kernel it continues as if it still held
//!   the chain. It also spins there, without a bound, until one of the sharers takes the lock. None
//!   does if all of them fail after a sleep.
//! - An upgrade is an Acquire, since other sharers have unlocked before it. In the kernel it orders
//!   nothing. Disowning orders nothing either, since the thread that unlocks instead must have been
//!   told of it.
//! - Spinners whose time budget is spent sleep, as those of [`mtx`](super::mtx).
//!
//! Switches: [`Tuning::cas_value`] (`Kept` is `Reread`), [`Tuning::hard_pre_read`],
//! [`Tuning::adaptive`] and [`Tuning::lockmgr_adaptive`], [`Tuning::backoff`],
//! [`Tuning::waiter_cas_fail`], [`Tuning::lockmgr_sleep_failers`]. Until 2017 the lock had no fast
//! path. An exclusive acquisition checked whether the caller holds the lock, and went into the loop
//! of the waiters. The patch of November 2015 puts a look before the write in that loop. So of the
//! pre-reads only that of the hard path exists here. Source: FreeBSD's `kern_lock.c` (Rao;
//! Roberson, Guzik), written from a description in our own words.

mod drain;
mod exclusive;
mod light;
mod options;
mod shared;

use core::marker::PhantomData;
use core::mem;
use core::sync::atomic::Ordering::Relaxed;

use super::exchange::Exchange;
use super::freeable::Freeable;
use super::mtx::InUse;
use super::recursion::Depth;
use super::spinning::Spinning;
use super::tuning::{SleepFailers, Tuning};
use super::{Abandoned, FreeBsdPlatform, Locked};
use crate::parking::chain::Queue;
use crate::parking::{Limit, WakeList};
use crate::platform::{Atomic, Platform};
use crate::schedule::{OwnerState, ThreadId};
use crate::tuning::Standard;

use options::Held;
pub use options::{
    Attributes, Bypass, Failure, Interlock, NoInterlock, Operation, Options, Sharing, Timeout,
};

/// No thread holds the lock, and no thread waits.
const FREE: u64 = 0;
/// The bit of an exclusive holder.
pub const EXCLUSIVE: u64 = 1;
/// The bit of waiting sharers in the chain.
pub const SHARED_WAITERS: u64 = 1 << 1;
/// The bit of waiters in the chain that want the lock exclusively.
pub const EXCLUSIVE_WAITERS: u64 = 1 << 2;
/// The bit of a holder that has locked it more than once.
pub const RECURSED: u64 = 1 << 4;
/// One sharer.
const SHARER: u64 = 1 << 5;
const WAITERS: u64 = SHARED_WAITERS | EXCLUSIVE_WAITERS;
/// The kernel's `LK_KERNPROC`: the lock belongs to no thread, and any thread may unlock it. No
/// thread's id.
const DISOWNED: u64 = !(SHARER - 1) | EXCLUSIVE;
/// The lock must not be used any more.
const DESTROYED: u64 = EXCLUSIVE;

const _: () = assert!((EXCLUSIVE | WAITERS | RECURSED) & SHARER == 0 && SHARER.is_power_of_two());
const _: () = assert!(SHARER.trailing_zeros() + ThreadId::BITS < u64::BITS);

const fn owned_by(thread: ThreadId) -> u64 {
    (thread.get() as u64 * SHARER) | EXCLUSIVE
}

/// Whether no thread holds the lock. Others may wait.
const fn is_free(word: u64) -> bool {
    word & !WAITERS == FREE
}

/// The holder of the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    /// So many sharers, or no thread.
    Sharers(u64),
    Thread(ThreadId),
    Disowned,
    Destroyed,
}

const fn holder_of(word: u64) -> Holder {
    let holders = word / SHARER;
    if word & EXCLUSIVE == 0 {
        return Holder::Sharers(holders);
    }
    if holders == DISOWNED / SHARER {
        return Holder::Disowned;
    }
    match ThreadId::new(holders as u32) {
        Some(thread) => Holder::Thread(thread),
        None => Holder::Destroyed,
    }
}

/// The holder of the lock, as its caller sees it: `lockstatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// No thread (0).
    Unlocked,
    /// Threads that share it (`LK_SHARED`).
    Shared,
    /// The caller, or no thread that the lock could name: it is disowned (`LK_EXCLUSIVE`).
    Exclusive,
    /// Another thread (`LK_EXCLOTHER`).
    ExclusiveByOther,
}

/// See the [module](self). 32 bytes natively; all zero: unlocked, with the default attributes.
#[repr(C)]
pub struct LockMgr<P: Platform, T: Tuning = Standard> {
    word: P::U64,
    depth: Depth<P>,
    sleep_failers: P::U32,
    attributes: Freeable<Attributes>,
    switches: PhantomData<T>,
}

impl<P: Platform, T: Tuning> LockMgr<P, T> {
    /// An unlocked lock with the default attributes, in `const`.
    pub const fn new() -> Self {
        Self::with(Attributes::new())
    }

    /// An unlocked lock with these attributes, in `const`: `lockinit`.
    pub const fn with(attributes: Attributes) -> Self {
        Self {
            word: Atomic::ZERO,
            depth: Depth::ZERO,
            sleep_failers: Atomic::ZERO,
            attributes: Freeable::new(attributes),
            switches: PhantomData,
        }
    }

    /// The attributes of the lock, which never change.
    pub const fn attributes(&self) -> Attributes {
        self.attributes.get()
    }

    /// The word, for tests.
    ///
    /// # Safety
    ///
    /// The caller writes only what threads that use the lock could have written.
    #[doc(hidden)]
    pub unsafe fn word(&self) -> &P::U64 {
        &self.word
    }
}

impl<P: Platform, T: Tuning> Default for LockMgr<P, T> {
    fn default() -> Self {
        Self {
            word: Atomic::new(FREE),
            depth: Depth::default(),
            sleep_failers: Atomic::new(0),
            attributes: Freeable::default(),
            switches: PhantomData,
        }
    }
}

impl<P: FreeBsdPlatform, T: Tuning> LockMgr<P, T> {
    /// Performs an operation: `lockmgr`.
    ///
    /// # Errors
    ///
    /// Why the operation failed. The caller holds what it held before, except after
    /// [`Operation::Upgrade`]: then it holds nothing.
    ///
    /// # Panics
    ///
    /// If the release of the interlock does. An acquisition or [`Operation::Upgrade`] has failed
    /// then, as with an error. Any other operation has the same effect as without the panic.
    ///
    /// # Safety
    ///
    /// For an acquisition as [`lock`](crate::raw::RawLock::lock) and
    /// [`lock_shared`](crate::raw::RawRwLock::lock_shared), if it succeeds. The critical sections
    /// of one thread may be nested. For the other operations, the caller holds the lock: shared, to
    /// upgrade it; exclusively, to downgrade it; in any way, to unlock it. A thread may unlock what
    /// another thread has disowned. It must know of this from the other thread, so that the
    /// disowning happens before.
    pub unsafe fn perform(
        &self,
        operation: Operation,
        options: &Options<'_, P>,
        interlock: impl Interlock,
    ) -> Result<(), Failure> {
        let mut interlock = Held::new(interlock);
        let done = self.perform_holding(operation, options, &mut interlock);
        if done.is_ok() && interlock.is_held() {
            self.release_interlock(operation, interlock);
        }
        done
    }

    /// Releases the interlock after the operation. If that panics, the lock is unlocked again,
    /// since the caller does not know that it holds it.
    fn release_interlock<I: Interlock>(&self, operation: Operation, mut interlock: Held<I>) {
        use Operation::{Downgrade, Drain, Exclusive, Shared, TryUpgrade, Unlock, Upgrade};
        let acquired = match operation {
            Shared | Exclusive | Upgrade | Drain => Some(Acquired(self)),
            TryUpgrade | Downgrade | Unlock => None,
        };
        interlock.release();
        mem::forget(acquired);
    }

    /// As [`perform`](Self::perform), except that the interlock may be held when it returns.
    fn perform_holding<I: Interlock>(
        &self,
        operation: Operation,
        options: &Options<'_, P>,
        interlock: &mut Held<I>,
    ) -> Result<(), Failure> {
        let operation = match (self.attributes().sharing, operation) {
            (Sharing::Disabled, Operation::Shared) => Operation::Exclusive,
            (Sharing::Disabled, Operation::Upgrade | Operation::TryUpgrade | Operation::Downgrade) => {
                debug_assert!(self.status() == Status::Exclusive, "converts a lock that it does not hold");
                debug_assert!(!self.is_recursed(), "converts a lock that it holds more than once");
                return Ok(());
            }
            (_, operation) => operation,
        };
        match operation {
            Operation::Shared => self.share(options, interlock),
            Operation::Exclusive => self.own(options, interlock),
            Operation::Upgrade => self.upgrade(options, interlock),
            Operation::TryUpgrade => self.try_upgrade(),
            Operation::Downgrade => {
                debug_assert!(options.is_patient(), "neither waits nor sleeps");
                self.downgrade_exclusive();
                Ok(())
            }
            Operation::Unlock => {
                debug_assert!(options.is_patient(), "neither waits nor sleeps");
                self.release();
                Ok(())
            }
            Operation::Drain => self.drain(options, interlock),
        }
    }

    /// Disowns the lock: any thread may unlock it from now on. `lockmgr_disown`. Does nothing if
    /// the lock is disowned already.
    ///
    /// # Safety
    ///
    /// The caller holds it exclusively, or it is disowned. From now on the caller does not hold it
    /// any more.
    pub unsafe fn disown(&self) {
        let me = P::thread_id();
        let mut seen = self.word.load(Relaxed);
        loop {
            match holder_of(seen) {
                Holder::Disowned => return,
                holder => debug_assert!(holder == Holder::Thread(me), "disowns a lock that it does not hold"),
            }
            debug_assert!(seen & RECURSED == 0, "disowns a lock that it holds more than once");
            // t -> d; waiter bits stay. Relaxed: the thread that unlocks it knows of this from the
            // caller.
            match self.word.exchange::<T>(seen, DISOWNED | seen & WAITERS, Relaxed) {
                Ok(()) => return,
                Err(found) => seen = self.word.after_failure::<T>(found),
            }
        }
    }

    /// The holder. Stale by the time it is known, unless it is the caller. Orders nothing.
    pub fn status(&self) -> Status {
        match holder_of(self.word.load(Relaxed)) {
            Holder::Sharers(0) => Status::Unlocked,
            Holder::Sharers(_) => Status::Shared,
            Holder::Thread(thread) if thread != P::thread_id() => Status::ExclusiveByOther,
            Holder::Thread(_) | Holder::Disowned => Status::Exclusive,
            Holder::Destroyed => Status::ExclusiveByOther,
        }
    }

    /// Whether it is held exclusively, more than once: `lockmgr_recursed`.
    pub fn is_recursed(&self) -> bool {
        self.word.load(Relaxed) & RECURSED != 0
    }

    /// Whether a thread has waited for it since it was free last: `lockmgr_waiters`.
    pub fn has_waiters(&self) -> bool {
        self.word.load(Relaxed) & WAITERS != 0
    }

    /// Ends the use of the lock. Debug assertions detect a later use: `lockdestroy`.
    ///
    /// # Errors
    ///
    /// Why it cannot be destroyed. Its holder cannot do that either. (The kernel panics.)
    pub fn destroy(&self) -> Result<(), InUse> {
        // Relaxed: a thread that frees it knows by other means that it is out of use.
        match self.word.compare_exchange(FREE, DESTROYED, Relaxed, Relaxed) {
            Ok(_) => Ok(()),
            Err(DESTROYED) => Err(InUse::Destroyed),
            Err(found) if found & RECURSED != 0 && holder_of(found) == Holder::Thread(P::thread_id()) => {
                Err(InUse::Recursed)
            }
            Err(found) if is_free(found) || found & WAITERS != 0 => Err(InUse::Contested),
            Err(_) => Err(InUse::Held),
        }
    }

    /// Whether a waiter may spin before it sleeps.
    fn may_spin<I: Interlock>(options: &Options<'_, P>, interlock: &Held<I>) -> bool {
        T::adaptive() && T::lockmgr_adaptive() && options.spins && !interlock.is_held()
    }

    /// Spins as long as a running thread holds the lock exclusively, and no thread waits. Returns
    /// the word when it `may_be_had`, or `None` if there is no reason to spin.
    fn spin(&self, mut seen: u64, spinning: &mut Spinning, may_be_had: impl Fn(u64) -> bool) -> Option<u64> {
        while seen & WAITERS == 0 {
            let Holder::Thread(holder) = holder_of(seen) else { return None };
            if P::owner_state(holder) == OwnerState::Asleep || spinning.is_over::<P>() {
                return None;
            }
            spinning.delay::<P, T>();
            seen = self.word.load(Relaxed);
            if may_be_had(seen) {
                return Some(seen);
            }
        }
        None
    }

    /// Sleeps in the chain until an unlock wakes the caller: `sleeplk`.
    fn sleep(
        &self,
        chain: Locked<'_, P>,
        queue: Queue,
        options: &Options<'_, P>,
        limit: &Limit<'_, P>,
    ) -> Result<(), Failure> {
        let is_counted = options.sleep_fails && queue == Queue::Exclusive;
        if is_counted {
            // Relaxed: accessed under the chain's lock only.
            self.sleep_failers.store(self.sleep_failers.load(Relaxed) + 1, Relaxed);
        }
        match chain.sleep_within(queue, limit) {
            Ok(()) if options.sleep_fails => Err(Failure::SleepFail),
            Ok(()) => Ok(()),
            Err(Abandoned { why, chain }) => {
                if is_counted {
                    self.sleep_failers.store(self.sleep_failers.load(Relaxed) - 1, Relaxed);
                }
                drop(chain);
                Err(why.into())
            }
        }
    }

    /// The threads that an unlock wakes if it leaves the lock free, and the waiter bits that stay:
    /// invariant 3. `sleep_failers` threads of the exclusive queue fail after their sleep.
    fn next(seen: u64, chain: &Locked<'_, P>, sleep_failers: u32) -> Wakes {
        let queued = if seen & EXCLUSIVE_WAITERS != 0 { chain.count(Queue::Exclusive) } else { 0 };
        let fail = match T::lockmgr_sleep_failers() {
            SleepFailers::Ignored => 0,
            SleepFailers::Forgotten | SleepFailers::Counted => sleep_failers as usize,
        };
        let sharers = queued <= fail;
        Wakes { sharers, left: if sharers { FREE } else { seen & SHARED_WAITERS } }
    }

    /// Takes the threads of `wakes` out of the chain, and wakes them.
    fn wake(wakes: &Wakes, chain: Locked<'_, P>) {
        let mut wake_list = WakeList::EMPTY;
        chain.take_all(Queue::Exclusive, &mut wake_list);
        if wakes.sharers {
            chain.take_all(Queue::Shared, &mut wake_list);
        }
        chain.wake(wake_list);
    }
}

/// An acquired lock. Dropping this unlocks it.
struct Acquired<'a, P: FreeBsdPlatform, T: Tuning>(&'a LockMgr<P, T>);

impl<P: FreeBsdPlatform, T: Tuning> Drop for Acquired<'_, P, T> {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// The threads that an unlock wakes: the exclusive queue, and perhaps the other.
struct Wakes {
    sharers: bool,
    /// The waiter bits that stay.
    left: u64,
}

#[cfg(test)]
mod tests;
