//! Thread-biased mutex: a lock that one thread takes again and again costs it no read-modify-write.
//!
//! ```text
//! mutex   near-mutex                                   whoever is not the lock's owner by bias has it while it holds the lock
//! bias    whose lock it is, or how close to being so   see `bias`; written by whoever has the mutex
//! line    of each thread: which locks it holds by bias, and whether somebody sleeps until it leaves one   see `owner`
//!
//!  unbiased --K acquisitions in a row by t--> biased to t --another has the mutex--> revoked --t has left it--> unbiased, K doubled
//!
//!  held by bias      the line of the thread that bias names, says so
//!  held otherwise    the mutex is held, and its holder does not wait for the owner
//! ```
//! **The owner** writes into its own line that it holds the lock, does the light side of the asymmetric fence, and looks whether the
//! lock is still biased to it: no read-modify-write. Its release writes into its line that it has left, does a light fence, and
//! looks there whether anybody sleeps for that.
//!
//! **Others** take the mutex. If the lock is biased then, they revoke that, do the heavy side of the fence, and wait until the owner's line does not
//! say held: they look for a while, and then sleep. The lock is theirs then, and the owner is a thread like any other. One that
//! gives up leaves the lock revoked, and the next that has the mutex waits on.
//!
//! 1. The bias is written only by whoever has the mutex.
//! 2. Who holds the lock by bias is the thread that the bias names, biased or revoked; and its line says held.
//! 3. Who has the mutex, and has found the lock unbiased, or biased to itself and its line without a hold, holds the lock. In the latter
//!    case it goes over to its line, and releases the mutex, unless another lock is held at the same place of its line.
//!
//! **Why it excludes.** The owner writes held, passes a light fence, and reads biased. A revoker writes revoked, passes the heavy fence,
//! and reads the owner's line. By the fence's contract either the owner reads revoked, so that it does not have the lock, or the
//! revoker reads held, and waits. Later revokers have the mutex after that one, and read no older line. The owner's next section
//! comes after all others: it becomes the owner with the mutex in its hands, after which only revokers have sections.
//!
//! **Why no wake-up is lost.** A revoker that sleeps has written `wanted`, passed a heavy fence, and read held. The release writes
//! that it has left, passes a light one, and reads `wanted`. One of the two sees the other.
//!
//! **Nothing of the lock is read once it is free**, by bias or otherwise: a release by bias looks at its own line, which is never freed. So
//! whoever finds it free may free its memory. The same thread releases as has locked, since its line says that it holds. (Also at the end of the
//! thread, when it has lost its line: then the bias tells which one it was.)
//!
//! **What it costs.** By bias, two stores and some loads of lines that are the thread's own. Otherwise `near-mutex`, a count, and a
//! look at the thread's line. A revocation costs the heavy fence, some microseconds where other processors run the program; and the
//! owner one acquisition through the mutex. It happens once in `STREAK` acquisitions at most, and in twice as many after each,
//! up to `STREAK << DOUBLINGS`: by [`Standard`], 7 times, and then once in 16384, so that of a lock that is handed around it takes some
//! percent, however it is.
//! Where the platform's light fence is no cheaper than its heavy one, nothing is ever biased.
//!
//! Fairness: as [`near-mutex`](super::mutex). A revoker has the lock as soon as the owner leaves it, since the owner cannot take it
//! by bias again.
//!
//! Source: Kawachiya, Koseki, Onodera, "Lock reservation", OOPSLA 2002; Dice, Moir, Scherer, "Quickly reacquirable locks", Sun
//! Labs, 2003 (the fence: Dice, Huang, Yang, "Asymmetric Dekker synchronization", 2001); a table of those who hold in place of a word in the lock: Dice, Kogan,
//! "BRAVO", USENIX ATC 2019. That K doubles: own.

mod bias;
mod owner;

use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use self::bias::Bias;
use super::Host;
use super::mutex::NearMutex;
use crate::events::LockEvent;
use crate::platform::{Atomic, Platform};
use crate::raw::{RawLock, RawTimedLock, RawTryLock};
use crate::tuning::Standard;
use crate::waiter::{GaveUp, Limit};

pub use owner::{Owner, OwnerLine, OwnerLines, PLACES, place_by_address};

/// When a lock is biased.
pub trait BiasTuning: Send + Sync + 'static {
    /// After how many acquisitions in a row by one thread, at first. A revocation costs about as much as 100 to 600 pairs of lock
    /// and unlock save. With less, locks are biased that are not taken by one thread alone; with more, short runs of one that is save nothing.
    const STREAK: u32 = 128;
    /// How often a revocation doubles that. At 0 a lock may be revoked once in [`STREAK`](Self::STREAK) acquisitions for ever; each
    /// further one halves what revocations take at worst, and doubles what it takes until a lock that is one thread's again is biased.
    const DOUBLINGS: u32 = 7;
}

impl BiasTuning for Standard {}

/// Biased at each acquisition, to whoever has come: for tests, since it is revoked whenever another comes.
#[derive(Debug)]
pub struct Eager;

impl BiasTuning for Eager {
    const STREAK: u32 = 1;
    const DOUBLINGS: u32 = 0;
}

/// What a host of biased locks has besides.
pub trait BiasHost: Host + OwnerLines {}

impl<P: Host + OwnerLines> BiasHost for P {}

/// See the [module](self). 8 bytes natively; all zero: unlocked.
#[repr(C)]
pub struct NearBiasedMutex<P: Platform, T = Standard> {
    mutex: NearMutex<P>,
    bias: P::U32,
    tuning: PhantomData<T>,
}

impl<P: Platform, T> NearBiasedMutex<P, T> {
    /// An unlocked mutex, in `const`.
    pub const fn new() -> Self {
        Self { mutex: NearMutex::new(), bias: Atomic::ZERO, tuning: PhantomData }
    }

    /// What stands for it in lines.
    #[inline(always)]
    fn address(&self) -> *mut () {
        ptr::from_ref(self).cast_mut().cast()
    }

    /// Relaxed: whoever has the mutex has got the last value with it; others look again after a fence, or want a hint.
    #[inline(always)]
    fn bias(&self) -> Bias {
        Bias(self.bias.load(Relaxed))
    }

    /// By whoever has the mutex. Relaxed: others that read it have a fence, or get the mutex.
    fn set_bias(&self, bias: Bias) {
        self.bias.store(bias.0, Relaxed);
    }
}

impl<P: Platform, T> Default for NearBiasedMutex<P, T> {
    fn default() -> Self {
        Self { mutex: NearMutex::default(), bias: Atomic::new(0), tuning: PhantomData }
    }
}

/// The line of a thread.
///
/// Safety: the pointer comes from [`OwnerLines`].
#[inline(always)]
unsafe fn at<'a, P: Platform>(line: *const OwnerLine<P>) -> &'a OwnerLine<P> {
    // SAFETY: valid as long as the platform instance, which outlives those who use it.
    unsafe { &*line }
}

impl<P: BiasHost, T: BiasTuning> NearBiasedMutex<P, T> {
    /// Locks it, if it is the caller's by bias.
    #[inline(always)]
    fn take_by_bias(&self) -> bool {
        let Some(owner) = P::owner() else { return false };
        // SAFETY: from `OwnerLines`.
        let line = unsafe { at(owner.line) };
        if !line.knows(self.address()) {
            return false;
        }
        line.hold(self.address());
        // Dekker's pattern, with `revoke`: the line before it, the look at the bias after it.
        P::light();
        let still = self.bias().is_to(owner.number);
        if !still {
            self.renounce(line);
        }
        still
    }

    /// It is not the caller's any more.
    #[cold]
    #[inline(never)]
    fn renounce(&self, line: &OwnerLine<P>) {
        line.forget(self.address());
    }

    #[inline(never)]
    fn lock_by_mutex(&self, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        // SAFETY: the node is (); released by `settle`, or by the caller.
        unsafe { self.mutex.lock_within(&(), limit)? };
        self.settle(limit)
    }

    /// After the mutex has been taken: waits for an owner, or counts. If it gives up, it releases the mutex.
    fn settle(&self, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        let (owner, bias) = (P::owner().or_else(P::register), self.bias());
        // SAFETY: from `OwnerLines`.
        let line = owner.as_ref().map(|owner| unsafe { at(owner.line) });
        let number = owner.map_or(0, |owner| owner.number);
        let mut settled = bias;
        if bias.may_be_held() {
            let has_forgotten = bias.is_to(number) && line.is_some_and(|line| !line.holds(self.address()));
            if !has_forgotten {
                if let Err(why) = self.revoke(bias, limit) {
                    // SAFETY: taken by the caller.
                    unsafe { self.mutex.unlock(&()) };
                    return Err(why);
                }
                settled = bias.taken_over::<T>(number);
            }
        } else {
            settled = self.counted(bias, number);
        }
        if settled != bias {
            self.set_bias(settled);
        }
        if let Some(line) = line {
            self.hold_by_line(settled, line);
        }
        Ok(())
    }

    /// The bias after one more acquisition through the mutex, by the thread of this number.
    fn counted(&self, bias: Bias, number: u32) -> Bias {
        let counted = bias.counted::<T>(number);
        if counted.is_long_enough::<T>() && P::is_asymmetric() {
            P::count(LockEvent::BiasGrant);
            return counted.biased();
        }
        counted
    }

    /// The caller has the lock by its mutex: from now on by bias, if it is its own so. Its line says how it is.
    fn hold_by_line(&self, bias: Bias, line: &OwnerLine<P>) {
        if line.holds(self.address()) {
            // Another lock was here, and its guard was forgotten.
            line.forget(self.address());
        }
        if bias.is_biased() && line.hold_if_free(self.address()) {
            // SAFETY: held until now; whoever has it next waits for the line.
            unsafe { self.mutex.unlock(&()) };
        }
    }

    /// Waits until the lock is not held by bias any more, and will not be. The caller has the mutex.
    #[cold]
    #[inline(never)]
    fn revoke(&self, bias: Bias, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        P::in_slow_path(|| {
            if bias.is_biased() {
                P::count(LockEvent::BiasRevoke);
                self.set_bias(bias.revoked());
                // Dekker's pattern, with `take_by_bias`: the bias before it, the look at the owner's line after it.
                P::heavy();
            }
            // SAFETY: from `OwnerLines`, for a number that a thread has had.
            unsafe { at(P::line(bias.thread())) }.wait_until_left(self.address(), limit)
        })
    }

    /// Whose line says that it holds the lock by bias, if one does.
    fn held_by_bias(&self) -> Option<&OwnerLine<P>> {
        let bias = self.bias();
        if !bias.may_be_held() {
            return None;
        }
        // SAFETY: from `OwnerLines`, for a number that a thread has had.
        Some(unsafe { at(P::line(bias.thread())) }).filter(|line| line.holds(self.address()))
    }

    /// That of the caller, if it holds the lock by bias.
    #[inline(always)]
    fn own_hold(&self) -> Option<&OwnerLine<P>> {
        let Some(owner) = P::owner() else { return self.held_by_bias() };
        // SAFETY: from `OwnerLines`.
        Some(unsafe { at(owner.line) }).filter(|line| line.holds(self.address()))
    }

    /// Releases the mutex; if others wait in line, it is the first one's then.
    ///
    /// # Safety
    ///
    /// As [`RawLock::unlock`].
    #[inline]
    pub unsafe fn unlock_fair(&self) {
        match self.own_hold() {
            // Whoever is the first to wait for it has the mutex already.
            Some(line) => line.leave(self.address()),
            // SAFETY: the caller's, and it is not held by bias.
            None => unsafe { self.mutex.unlock_fair() },
        }
    }
}

// SAFETY: invariants 2 and 3; the orderings of the mutex order its sections, and those of lines the others.
unsafe impl<P: BiasHost, T: BiasTuning> RawLock for NearBiasedMutex<P, T> {
    type Node = ();

    #[inline]
    unsafe fn lock(&self, _node: &()) {
        if !self.take_by_bias() {
            // It does not end without the lock.
            _ = self.lock_by_mutex(&Limit::NONE);
        }
    }

    /// By the thread that has locked it.
    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        match self.own_hold() {
            Some(line) => line.leave(self.address()),
            None => {
                debug_assert!(self.held_by_bias().is_none(), "released by another thread than has locked it");
                // SAFETY: the caller's.
                unsafe { self.mutex.unlock(&()) };
            }
        }
    }
}

// SAFETY: as above.
unsafe impl<P: BiasHost, T: BiasTuning> RawTryLock for NearBiasedMutex<P, T> {
    /// Revokes the bias of another, unless that one is seen to hold the lock.
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        if self.take_by_bias() {
            return true;
        }
        // SAFETY: the node is (); `settle` releases the mutex if it gives up.
        self.held_by_bias().is_none()
            && unsafe { self.mutex.try_lock(&()) }
            && self.settle(&Limit::until(0)).is_ok()
    }

    fn is_locked(&self) -> bool {
        self.mutex.is_locked() || self.held_by_bias().is_some()
    }
}

// SAFETY: who gives up has released the mutex.
unsafe impl<P: BiasHost, T: BiasTuning> RawTimedLock for NearBiasedMutex<P, T> {
    type Platform = P;

    #[inline]
    unsafe fn lock_within(&self, _node: &(), limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        if self.take_by_bias() { Ok(()) } else { self.lock_by_mutex(limit) }
    }
}

#[cfg(test)]
mod tests;
