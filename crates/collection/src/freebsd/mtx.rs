//! Mutex with an owner, FreeBSD's `mtx` of type `MTX_DEF`: waiters spin while the owner runs, and
//! sleep in a [chain](crate::parking::chain) when it does not.
//!
//! ```text
//! word   bits 3-30 owner: a thread's id, or 0 | 2 DESTROYED | 1 CONTESTED | 0 RECURSED
//! depth  how often the owner has locked it again; only the owner accesses it
//!
//!  0 -> t          lock                                              `take`
//!  t -> 0          unlock                                            `unlock`, `unlock_slow`
//!  t -> t|r        the owner locks it again; depth counts from 1     `recurse`
//!  t|r -> t        the unlock that brings depth back to 0            `unlock_slow`
//!  t -> t|c        a waiter, which holds the chain's lock            `wait`
//!  t|c -> 0        unlock, which holds the chain's lock; wakes all   `release_contested`
//!  0, t -> d       destroy
//! ```
//! CONTESTED is set only beside an owner. RECURSED is set exactly while depth is not 0. DESTROYED
//! is set alone, and for ever.
//!
//! 1. A thread changes the word from 0 to name itself. Only this owner changes it back to 0. The
//!    thread that the word names holds the mutex.
//! 2. CONTESTED is set and cleared under the chain's lock, and stands for a queue that is not
//!    empty. So a step from `t` alone to 0 leaves no thread asleep.
//! 3. RECURSED is set and cleared by read-modify-writes, because a waiter may set CONTESTED at the
//!    same time. If CONTESTED is set already and the chain is locked, no other thread writes the
//!    word, and a store makes it free.
//! 4. With either [`ReleaseOrder`], the unlock accesses only the chain and the waiters after the
//!    step to 0, and nothing in the lock. So a thread that finds the mutex free may free its
//!    memory.
//!
//! Fairness: none. An unlock makes all waiters runnable, and they compete with newcomers. The mutex
//! is never handed over.
//!
//! Recursion is permitted call by call ([`lock_recursive`](Mtx::lock_recursive)), as by
//! `MTX_RECURSE` in the flags of `mtx_lock_flags`. It is a mistake to lock the mutex again without
//! this, or to unlock a mutex that another thread holds. With debug assertions both panic. Without
//! them the former is a deadlock, and the latter unlocks the other thread's lock.
//!
//! Differences from the kernel: a spinner sleeps although the owner may run, if its time budget is
//! spent or its processor is wanted. The reason is that a program's threads may be preempted at any
//! time. Waiters lend no priority. Source: FreeBSD's `kern_mutex.c` (Baldwin; Guzik), written from
//! descriptions in our own words. The pre-reads: Guzik, "microoptimize by trying to avoid locking a
//! locked mutex", freebsd-current, November 2015.

mod holder;

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::exchange::Exchange;
use super::recursion::{Depth, Recursion};
use super::spinning::Spinning;
use super::tuning::{CasValue, ReleaseOrder, Tuning, WaiterCasFail};
use super::{FreeBsdPlatform, lock_chain};
use crate::events::LockEvent;
use crate::parking::WakeList;
use crate::parking::chain::Queue;
use crate::platform::{Atomic, AtomicInt, Platform};
use crate::raw::{RawLock, RawTryLock};
use crate::schedule::{OwnerState, Spin, Stop, ThreadId};
use crate::tuning::Standard;

/// No thread holds the mutex.
const FREE: u32 = 0;
/// The bit of an owner that has locked it more than once.
pub const RECURSED: u32 = 1;
/// The bit of waiters in the chain.
pub const CONTESTED: u32 = 1 << 1;
/// The bit of a mutex that must not be used any more.
pub const DESTROYED: u32 = 1 << 2;
const OWNER_SHIFT: u32 = 3;

const _: () = assert!((RECURSED | CONTESTED | DESTROYED) >> OWNER_SHIFT == 0);
const _: () = assert!(OWNER_SHIFT + ThreadId::BITS <= u32::BITS);

const fn owned_by(thread: ThreadId) -> u32 {
    thread.get() << OWNER_SHIFT
}

/// The owner that the word names.
const fn owner_of(word: u32) -> Option<ThreadId> {
    ThreadId::new(word >> OWNER_SHIFT)
}

/// Why a mutex cannot be destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InUse {
    /// Another thread holds it.
    Held,
    /// The caller holds it more than once.
    Recursed,
    /// Others wait for it.
    Contested,
    /// It has been destroyed already.
    Destroyed,
}

/// The spinning of one acquisition.
#[derive(Default)]
struct SpinState {
    spinning: Spinning,
    /// The thread has spun for long enough, and sleeps whatever the owner does.
    is_tired: bool,
    has_slept: bool,
}

/// See the [module](self). 8 bytes natively; all zero: unlocked.
#[repr(C)]
pub struct Mtx<P: Platform, T: Tuning = Standard> {
    word: P::U32,
    depth: Depth<P>,
    switches: PhantomData<T>,
}

impl<P: Platform, T: Tuning> Mtx<P, T> {
    /// An unlocked mutex, in `const`.
    pub const fn new() -> Self {
        Self { word: Atomic::ZERO, depth: Depth::ZERO, switches: PhantomData }
    }

    /// The word, for tests.
    ///
    /// # Safety
    ///
    /// The caller writes only what threads that use the lock could have written.
    #[doc(hidden)]
    pub unsafe fn word(&self) -> &P::U32 {
        &self.word
    }

    /// 0 -> t. If this fails, returns the word. With [`CasValue::Found`] this may be 0.
    #[inline(always)]
    fn take(&self, me: ThreadId) -> Result<(), u32> {
        // Ordering: Acquire, pairs with the Releases in `release` and `release_contested`: the last
        // critical section happens before ours.
        self.word.exchange::<T>(FREE, owned_by(me), Acquire)
    }

    /// t -> 0. If this fails, returns the word. With [`CasValue::Found`] this may be t.
    #[inline(always)]
    fn release(&self, owned: u32) -> Result<(), u32> {
        // Ordering: Release, pairs with the Acquires in `take` and `wait_unlocked`: our critical
        // section happens before the next.
        self.word.exchange::<T>(owned, FREE, Release)
    }

    /// The first attempt of an acquisition.
    #[inline(always)]
    fn take_fast(&self, me: ThreadId) -> Result<(), u32> {
        if T::lock_pre_read() {
            let seen = self.word.load(Relaxed);
            if seen != FREE {
                return Err(seen);
            }
        }
        self.take(me)
    }

    /// One attempt of a waiter that has `seen` the word. If it fails, returns the value to continue
    /// with: free, if the waiter has lost a race.
    fn attempt(&self, me: ThreadId, seen: u32) -> Result<(), u32> {
        match T::cas_value() {
            CasValue::Found if seen != FREE => Err(seen),
            CasValue::Found => self.take(me),
            CasValue::Kept => {
                let seen = self.word.load(Relaxed);
                if seen == FREE && self.take(me).is_ok() { Ok(()) } else { Err(seen) }
            }
            CasValue::Reread => {
                let tries = !T::hard_pre_read() || self.word.load(Relaxed) == FREE;
                if tries && self.take(me).is_ok() { Ok(()) } else { Err(self.word.load(Relaxed)) }
            }
        }
    }

    /// t -> t|r. The caller has checked that this is permitted.
    fn recurse(&self) {
        if self.depth.deepen() == 1 {
            // Relaxed: invariant 3; nothing is published.
            self.word.fetch_or(RECURSED, Relaxed);
        }
    }
}

impl<P: Platform, T: Tuning> Default for Mtx<P, T> {
    fn default() -> Self {
        Self { word: Atomic::new(FREE), depth: Depth::default(), switches: PhantomData }
    }
}

impl<P: FreeBsdPlatform, T: Tuning> Mtx<P, T> {
    #[cold]
    #[inline(never)]
    fn lock_slow(&self, me: ThreadId, found: u32, recursion: Recursion) {
        P::count(LockEvent::Slowpath);
        P::in_slow_path(|| {
            let mut seen = match T::cas_value() {
                CasValue::Found if found != FREE => found,
                // The attempt failed spuriously, or did not return the word.
                _ => self.word.load(Relaxed),
            };
            debug_assert!(seen & DESTROYED == 0, "locks a mutex that has been destroyed");
            if owner_of(seen) == Some(me) && recursion == Recursion::Permitted {
                return self.recurse();
            }
            debug_assert!(owner_of(seen) != Some(me), "locks a mutex that it holds");
            let mut state = SpinState::default();
            while let Err(now) = self.attempt(me, seen) {
                seen = self.spin_or_wait(now, &mut state);
            }
            P::count(if state.has_slept { LockEvent::MutexAfterSleep } else { LockEvent::MutexOptLock });
        });
    }

    /// Whether the owner may run, and waiters spin in that case.
    fn is_worth_spinning(owner: ThreadId) -> bool {
        T::adaptive() && P::owner_state(owner) != OwnerState::Asleep
    }

    /// Spins or sleeps between two attempts. Returns the word then.
    fn spin_or_wait(&self, seen: u32, state: &mut SpinState) -> u32 {
        let Some(owner) = owner_of(seen) else {
            if seen == DESTROYED {
                // A mistake that no debug assertion has found. The wait has no end, so it leaves
                // the processor to others.
                P::give_way();
            }
            // The thread has lost a race. With `Found` it tries again. With other values it has
            // read the word before the race, or after the winner's unlock. Only the chain tells
            // which.
            return if T::cas_value() == CasValue::Found {
                self.word.load(Relaxed)
            } else {
                self.wait(seen, state)
            };
        };
        if state.is_tired || !Self::is_worth_spinning(owner) {
            return self.wait(seen, state);
        }
        match state.spinning.follow::<P, T, _>(&self.word, owner, owner_of) {
            Ok(seen) => seen,
            Err(why) => {
                state.is_tired = why == Stop::GiveWay;
                self.word.load(Relaxed)
            }
        }
    }

    /// Sleeps in the chain, unless the mutex is free or its owner runs by now. Returns the word
    /// then. `before` is the word that was seen before.
    fn wait(&self, before: u32, state: &mut SpinState) -> u32 {
        let sleeps_anyway = state.is_tired || T::cas_value() == CasValue::Kept && before == FREE;
        let chain = lock_chain::<P, _>(self);
        let mut seen = self.word.load(Relaxed);
        loop {
            if owner_of(seen).is_none_or(|owner| !sleeps_anyway && Self::is_worth_spinning(owner)) {
                chain.cancel();
                return seen;
            }
            if seen & CONTESTED != 0 {
                break;
            }
            // t -> t|c. Relaxed: an unlock that sees the bit locks the chain, which orders the two.
            // An unlock that does not see it makes this exchange fail.
            match self.word.compare_exchange_weak(seen, seen | CONTESTED, Relaxed, Relaxed) {
                Ok(_) => break,
                Err(found) if T::waiter_cas_fail() == WaiterCasFail::RetryLocked => seen = found,
                Err(_) => {
                    chain.restart();
                    return self.word.load(Relaxed);
                }
            }
        }
        chain.sleep(Queue::Exclusive);
        *state = SpinState { has_slept: true, ..SpinState::default() };
        self.word.load(Relaxed)
    }

    #[cold]
    #[inline(never)]
    fn unlock_slow(&self, me: ThreadId, found: u32) {
        P::in_slow_path(|| {
            let mut seen = match T::cas_value() {
                CasValue::Found => found,
                CasValue::Reread | CasValue::Kept => self.word.load(Relaxed),
            };
            debug_assert!(owner_of(seen) == Some(me), "unlocks a mutex that it does not hold");
            if seen & RECURSED != 0 {
                if self.depth.unwind() == 0 {
                    // t|r -> t. Relaxed: as in `recurse`.
                    self.word.fetch_and(!RECURSED, Relaxed);
                }
                return;
            }
            while seen & CONTESTED == 0 {
                match self.release(seen) {
                    Ok(()) => return,
                    Err(found) => seen = found,
                }
            }
            self.release_contested();
        });
    }

    /// t|c -> 0, and wakes all waiters.
    fn release_contested(&self) {
        let chain = lock_chain::<P, _>(self);
        match T::release_order() {
            ReleaseOrder::FreeFirst => {
                // Ordering: Release, pairs with the Acquire in `take`: our critical section happens
                // before the next.
                self.word.store(FREE, Release);
                chain.wake_all(Queue::Exclusive);
            }
            ReleaseOrder::CollectFirst => {
                let mut wake_list = WakeList::EMPTY;
                chain.take_all(Queue::Exclusive, &mut wake_list);
                // Ordering: Release, as above.
                self.word.store(FREE, Release);
                chain.wake(wake_list);
            }
        }
    }

    /// As [`lock`](RawLock::lock), but a caller that holds the mutex locks it again, at most
    /// `2^32 - 1` times. It has to unlock it as often.
    ///
    /// # Safety
    ///
    /// As [`RawLock::lock`]. The critical sections of one thread may be nested.
    #[inline]
    pub unsafe fn lock_recursive(&self) {
        let me = P::thread_id();
        if let Err(found) = self.take_fast(me) {
            self.lock_slow(me, found, Recursion::Permitted);
        }
    }

    /// As [`lock_recursive`](Self::lock_recursive), if the mutex is free or held by the caller.
    ///
    /// # Safety
    ///
    /// As for [`lock_recursive`](Self::lock_recursive), if it returns true.
    #[inline]
    pub unsafe fn try_lock_recursive(&self) -> bool {
        // SAFETY: upheld by the caller.
        if unsafe { self.try_lock(&()) } {
            return true;
        }
        let is_owned = self.is_owned();
        if is_owned {
            self.recurse();
        }
        is_owned
    }

    /// Ends the use of the mutex. Debug assertions detect a later use. It can be destroyed if the
    /// caller holds it exactly once, or no thread holds it.
    ///
    /// # Errors
    ///
    /// Why it cannot be destroyed. Then nothing has changed.
    pub fn destroy(&self) -> Result<(), InUse> {
        let me = P::thread_id();
        let mut seen = self.word.load(Relaxed);
        loop {
            match seen {
                DESTROYED => return Err(InUse::Destroyed),
                _ if seen & RECURSED != 0 && owner_of(seen) == Some(me) => return Err(InUse::Recursed),
                _ if seen & CONTESTED != 0 => return Err(InUse::Contested),
                _ if seen != FREE && owner_of(seen) != Some(me) => return Err(InUse::Held),
                _ => {}
            }
            // 0, t -> d. Relaxed: a thread that frees it knows by other means that it is out of
            // use.
            match self.word.compare_exchange(seen, DESTROYED, Relaxed, Relaxed) {
                Ok(_) => return Ok(()),
                Err(found) => seen = found,
            }
        }
    }

    /// Waits until no thread holds the mutex, without locking it. The effects of the critical
    /// sections before are visible then. A caller that finds the owner asleep, or has spun for long
    /// enough, locks the mutex and unlocks it again.
    pub fn wait_unlocked(&self) {
        let mut spin = Spin::default();
        loop {
            // Ordering: Acquire, pairs with the Releases in `release` and `release_contested`: the
            // last critical section happens before what follows.
            let Some(owner) = owner_of(self.word.load(Acquire)) else { return };
            let changed = |seen| owner_of(seen) != Some(owner);
            if P::spin_on_owner(&mut spin, &self.word, Relaxed, owner, changed).is_err() {
                // SAFETY: unlock follows lock.
                unsafe {
                    self.lock(&());
                    self.unlock(&());
                }
                return;
            }
        }
    }
}

// SAFETY: invariant 1; Release and Acquire on the word order the critical sections.
unsafe impl<P: FreeBsdPlatform, T: Tuning> RawLock for Mtx<P, T> {
    type Node = ();

    #[inline]
    unsafe fn lock(&self, _node: &()) {
        let me = P::thread_id();
        if let Err(found) = self.take_fast(me) {
            self.lock_slow(me, found, Recursion::Forbidden);
        }
    }

    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        let me = P::thread_id();
        if T::unlock_pre_read() {
            let seen = self.word.load(Relaxed);
            if seen != owned_by(me) {
                return self.unlock_slow(me, seen);
            }
        }
        if let Err(found) = self.release(owned_by(me)) {
            self.unlock_slow(me, found);
        }
    }
}

// SAFETY: as above.
unsafe impl<P: FreeBsdPlatform, T: Tuning> RawTryLock for Mtx<P, T> {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        let me = P::thread_id();
        loop {
            match self.take_fast(me) {
                Ok(()) => return true,
                // The exchange failed spuriously.
                Err(FREE) => {}
                Err(_) => return false,
            }
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        owner_of(self.word.load(Relaxed)).is_some()
    }
}

#[cfg(test)]
mod tests;
