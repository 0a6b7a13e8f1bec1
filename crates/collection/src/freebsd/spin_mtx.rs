//! Spin mutex, FreeBSD's `mtx` of type `MTX_SPIN`: whoever holds it must not sleep, and waiters
//! never do.
//!
//! ```text
//! word   owner: a thread's id, or 0
//! depth  how often the owner has locked it again. The owner's alone
//!
//!  0 -> t   lock            `take`
//!  t -> t   the owner locks it again: depth counts from 1
//!  t -> 0   unlock, with depth 0
//! ```
//! 1. Whom the word names holds the mutex, and is in a section
//!    ([`Sections`](crate::schedule::Sections)) for each time that it has locked it. In the kernel
//!    a section keeps interrupts off and the thread on its processor. Models and the simulator find
//!    a thread that sleeps in one. In a program that is not checked, as the section may be that of
//!    a forgotten guard.
//! 2. A waiter is in no section of this mutex while it waits, so that it may be interrupted.
//! 3. The word is stored 0 as the last that `unlock` does to the lock: whoever finds it free may
//!    free its memory.
//!
//! **Waits that are too long** are reported once, to a [`LongSpin`], when they have taken
//! `freebsd.spin-limit` pauses. The kernel stops the machine then; a program's holder may just have
//! lost its processor.
//!
//! Fairness: none. After a release any waiter or newcomer may win.
//!
//! Differences from the kernel: natively a waiter gives its processor away after a while, as in all
//! spin locks here. From the limit on the kernel waits in steps of 1 us; here a waiter goes on as
//! before. Source: FreeBSD's `kern_mutex.c` (Baldwin; Guzik), from descriptions in own words.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::FreeBsdPlatform;
use super::exchange::Exchange;
use super::lock_delay::{Backoff, LockDelay};
use super::recursion::Depth;
use super::tuning::{CasValue, Tuning};
use crate::events::LockEvent;
use crate::platform::{Atomic, Platform};
use crate::raw::{RawLock, RawTryLock};
use crate::schedule::ThreadId;
use crate::settings::Setting;
use crate::tuning::Standard;

/// Nobody holds it.
const FREE: u32 = 0;

/// A wait that has taken too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The mutex.
    pub lock: *const (),
    /// Who holds it, if somebody does at the moment.
    pub owner: Option<ThreadId>,
    /// Who waits.
    pub waiter: ThreadId,
    /// For how long it has, in pauses.
    pub pauses: u64,
}

/// Who is told of a wait that has taken too long.
pub trait LongSpin: Send + Sync + 'static {
    /// Called by the waiter, once in an acquisition, outside of the mutex' section. A panic is a
    /// way out: the caller of `lock` does not get the mutex then. With the guards of `lock_api` 0.4
    /// a panic ends the process. The waiter goes on when this returns.
    fn held_too_long(wait: &TooLong);
}

/// Nobody is told: it is counted only, as [`LockEvent::SpinTooLong`].
#[derive(Debug)]
pub struct Counted;

impl LongSpin for Counted {
    fn held_too_long(_wait: &TooLong) {}
}

/// See the [module](self). 8 bytes natively; all zero: unlocked.
///
/// Of the switches it heeds those of the attempts and of the delays.
#[repr(C)]
pub struct SpinMtx<P: Platform, T: Tuning = Standard, D: LongSpin = Counted> {
    word: P::U32,
    depth: Depth<P>,
    switches: PhantomData<(T, D)>,
}

impl<P: Platform, T: Tuning, D: LongSpin> SpinMtx<P, T, D> {
    /// An unlocked mutex, in `const`.
    pub const fn new() -> Self {
        Self { word: Atomic::ZERO, depth: Depth::ZERO, switches: PhantomData }
    }

    /// 0 -> t. What was found if not; with [`CasValue::Found`] that may be 0.
    #[inline(always)]
    fn take(&self, me: ThreadId) -> Result<(), u32> {
        // Ordering: Acquire, pairs with the Release in `make_free`: the last section happens before ours.
        self.word.exchange::<T>(FREE, me.get(), Acquire)
    }

    /// The first attempt of an acquisition.
    #[inline(always)]
    pub(super) fn take_fast(&self, me: ThreadId) -> Result<(), u32> {
        if T::lock_pre_read() {
            let seen = self.word.load(Relaxed);
            if seen != FREE {
                return Err(seen);
            }
        }
        self.take(me)
    }

    /// One attempt of a waiter, who has `seen` the word; what it is then, if that fails.
    fn attempt(&self, me: ThreadId, seen: u32) -> Result<(), u32> {
        let seen = match T::cas_value() {
            CasValue::Found => seen,
            CasValue::Reread if !T::hard_pre_read() => FREE,
            CasValue::Reread | CasValue::Kept => self.word.load(Relaxed),
        };
        if seen == FREE { self.take(me) } else { Err(seen) }
    }

    /// t -> 0
    #[inline(always)]
    pub(super) fn make_free(&self) {
        // Ordering: Release, pairs with the Acquires in `take` and `wait_unlocked`: our section happens
        // before the next.
        self.word.store(FREE, Release);
    }
}

impl<P: Platform, T: Tuning, D: LongSpin> Default for SpinMtx<P, T, D> {
    fn default() -> Self {
        Self { word: Atomic::new(FREE), depth: Depth::default(), switches: PhantomData }
    }
}

/// Looks at the word between two at the limit, where no delays grow. At 1 a look costs twice as
/// much, at a million the limit is met late.
const LOOKS: u32 = 1024;

/// What one acquisition knows of its waiting.
#[derive(Default)]
pub(super) struct Wait {
    delay: LockDelay,
    turns: u32,
    pauses: u64,
    is_reported: bool,
}

impl Wait {
    /// Waits for a while, or until `done` holds of the word. The value seen last.
    fn step<P: FreeBsdPlatform, T: Tuning>(&mut self, word: &P::U32, done: impl Fn(u32) -> bool) -> u32 {
        if T::backoff() != Backoff::None {
            self.delay.wait::<P>(T::backoff());
            self.pauses = self.delay.total();
            return word.load(Relaxed);
        }
        let seen = P::wait_until_bounded(word, Relaxed, LOOKS, &done);
        if !done(seen) {
            self.pauses += u64::from(LOOKS);
            P::cpu_relax(self.turns);
            self.turns = self.turns.saturating_add(1);
        }
        seen
    }

    /// Reports it once, if it has taken too long.
    fn report<P: FreeBsdPlatform, D: LongSpin>(&mut self, lock: *const (), owner: u32, waiter: ThreadId) {
        if self.is_reported || self.pauses < P::setting(Setting::FreebsdSpinLimit) {
            return;
        }
        self.is_reported = true;
        P::count(LockEvent::SpinTooLong);
        D::held_too_long(&TooLong { lock, owner: ThreadId::new(owner), waiter, pauses: self.pauses });
    }
}

impl<P: FreeBsdPlatform, T: Tuning, D: LongSpin> SpinMtx<P, T, D> {
    /// In the section of this acquisition before and after, and not while it waits.
    #[cold]
    #[inline(never)]
    fn lock_slow(&self, me: ThreadId, found: u32) {
        P::count(LockEvent::Slowpath);
        P::in_slow_path(|| {
            let (mut seen, mut wait) = (found, Wait::default());
            while let Err(now) = self.attempt(me, seen) {
                seen = now;
                if seen != FREE {
                    P::leave_section();
                    while self.is_held_after(me, &mut wait) {}
                    seen = FREE;
                    P::enter_section();
                }
            }
        });
    }

    /// Waits for a while, or until nobody holds it; whether somebody does. Reports a wait that is
    /// too long.
    pub(super) fn is_held_after(&self, me: ThreadId, wait: &mut Wait) -> bool {
        let seen = wait.step::<P, T>(&self.word, |seen| seen == FREE);
        if seen != FREE {
            wait.report::<P, D>((&raw const *self).cast(), seen, me);
        }
        seen != FREE
    }

    /// As [`lock`](RawLock::lock); or, if the caller holds the mutex, counts: as many unlocks are
    /// needed.
    ///
    /// # Safety
    ///
    /// As [`RawLock::lock`]. The sections of one thread may lie in each other.
    #[inline]
    pub unsafe fn lock_recursive(&self) {
        let me = P::thread_id();
        P::enter_section();
        match self.take_fast(me) {
            Ok(()) => {}
            Err(found) if found == me.get() => {
                self.depth.deepen();
            }
            Err(found) => self.lock_slow(me, found),
        }
    }

    /// Who holds it. Stale by the time it is known, unless that is the caller.
    pub fn owner(&self) -> Option<ThreadId> {
        ThreadId::new(self.word.load(Relaxed))
    }

    /// How often the caller, who must hold it, has locked it again.
    pub fn depth(&self) -> u32 {
        self.depth.get()
    }

    /// Whether the caller holds it.
    pub fn is_owned(&self) -> bool {
        self.word.load(Relaxed) == P::thread_id().get()
    }

    /// Whether the caller, who must hold it, has locked it more than once.
    pub fn is_recursed(&self) -> bool {
        debug_assert!(self.is_owned(), "asks of a spin mutex that it does not hold");
        self.depth.get() != 0
    }

    /// Waits until no thread holds it, without taking it: what happened in the sections before is
    /// visible then. It spins without a bound, as `lock` does.
    pub fn wait_unlocked(&self) {
        // Ordering: Acquire, pairs with the Release in `make_free`: the last section happens before what
        // follows.
        P::wait_until(&self.word, Acquire, |seen| seen == FREE);
    }
}

// SAFETY: invariant 1, and only its owner makes it free; Release and Acquire on the word order the
// sections.
unsafe impl<P: FreeBsdPlatform, T: Tuning, D: LongSpin> RawLock for SpinMtx<P, T, D> {
    type Node = ();

    #[inline]
    unsafe fn lock(&self, _node: &()) {
        let me = P::thread_id();
        P::enter_section();
        if let Err(found) = self.take_fast(me) {
            debug_assert!(found != me.get(), "locks a spin mutex that it holds");
            self.lock_slow(me, found);
        }
    }

    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        debug_assert!(self.is_owned(), "unlocks a spin mutex that it does not hold");
        if !self.depth.unwind_if_deep() {
            self.make_free();
        }
        P::leave_section();
    }
}

// SAFETY: as above.
unsafe impl<P: FreeBsdPlatform, T: Tuning, D: LongSpin> RawTryLock for SpinMtx<P, T, D> {
    /// Reads the word first, whatever the switches say: as in the kernel. Fails if the caller holds
    /// it.
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        let me = P::thread_id();
        P::enter_section();
        while self.word.load(Relaxed) == FREE {
            match self.take(me) {
                Ok(()) => return true,
                // It has failed for no reason.
                Err(FREE) => {}
                Err(_) => break,
            }
        }
        P::leave_section();
        false
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) != FREE
    }
}

#[cfg(test)]
mod tests;
