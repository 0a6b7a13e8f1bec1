//! Spin mutex, FreeBSD's `mtx` of type `MTX_SPIN`: its holder must not sleep, and waiters never do.
//!
//! ```text
//! word   owner: a thread's id, or 0
//! depth  how often the owner has locked it again; only the owner accesses it
//!
//!  0 -> t   lock            `take`
//!  t -> t   the owner locks it again: depth counts from 1
//!  t -> 0   unlock, with depth 0
//! ```
//! 1. The thread that the word names holds the mutex. For each time that it has locked it, it is in
//!    a section ([`Sections`](crate::schedule::Sections)). In the kernel a section keeps interrupts
//!    off and the thread on its processor. Models and the simulator find a thread that sleeps in
//!    one. In a program this is not checked, as the section may be that of a forgotten guard.
//! 2. A waiter is in no section of this mutex while it waits, so that it may be interrupted.
//! 3. The store of 0 to the word is the last access of `unlock` to the lock. So a thread that finds
//!    it free may free its memory.
//!
//! **Waits that are too long** are reported once, to a [`LongSpin`], when they have taken
//! `freebsd.spin-limit` pauses. The kernel stops the machine then. A program's holder may just have
//! lost its processor.
//!
//! Fairness: none. After an unlock any waiter or newcomer may win.
//!
//! Differences from the kernel: natively a waiter yields its processor after a while, as in all
//! spin locks here. Beyond the limit the kernel waits in steps of 1 us; here a waiter goes on as
//! before. Source: FreeBSD's `kern_mutex.c` (Baldwin; Guzik), written from descriptions in our own
//! words.

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

/// No thread holds the mutex.
const FREE: u32 = 0;

/// A wait that has taken too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The mutex.
    pub lock: *const (),
    /// The owner, if a thread holds it at the moment.
    pub owner: Option<ThreadId>,
    /// The waiting thread.
    pub waiter: ThreadId,
    /// How long it has waited, in pauses.
    pub pauses: u64,
}

/// Receives reports of waits that have taken too long.
pub trait LongSpin: Send + Sync + 'static {
    /// Called by the waiter, once in an acquisition, outside of the mutex' section. A panic is
    /// permitted: the caller of `lock` does not get the mutex then. With the guards of `lock_api`
    /// 0.4 a panic ends the process. The waiter goes on when this returns.
    fn held_too_long(wait: &TooLong);
}

/// Reports nothing: the wait is only counted, as [`LockEvent::SpinTooLong`].
#[derive(Debug)]
pub struct Counted;

impl LongSpin for Counted {
    fn held_too_long(_wait: &TooLong) {}
}

/// See the [module](self). 8 bytes natively; all zero: unlocked.
///
/// It uses only the switches for attempts and for delays.
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

    /// 0 -> t. If this fails, returns the word. With [`CasValue::Found`] this may be 0.
    #[inline(always)]
    fn take(&self, me: ThreadId) -> Result<(), u32> {
        // Ordering: Acquire, pairs with the Release in `make_free`: the last critical section
        // happens before ours.
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

    /// One attempt of a waiter that has `seen` the word. If it fails, returns the word.
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
        // Ordering: Release, pairs with the Acquires in `take` and `wait_unlocked`: our critical
        // section happens before the next.
        self.word.store(FREE, Release);
    }
}

impl<P: Platform, T: Tuning, D: LongSpin> Default for SpinMtx<P, T, D> {
    fn default() -> Self {
        Self { word: Atomic::new(FREE), depth: Depth::default(), switches: PhantomData }
    }
}

/// Looks at the word between two checks of the limit, where no delays grow. At 1 a look costs twice
/// as much, at a million the limit is noticed late.
const LOOKS: u32 = 1024;

/// The wait of one acquisition.
#[derive(Default)]
pub(super) struct Wait {
    delay: LockDelay,
    turns: u32,
    pauses: u64,
    is_reported: bool,
}

impl Wait {
    /// Waits for a while, or until `done` is true for the word. Returns the word seen last.
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

    /// Reports the wait once, if it has taken too long.
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
    /// The caller is in the section of this acquisition before and after, and not while it waits.
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

    /// Waits for a while, or until no thread holds the mutex. Returns whether a thread holds it.
    /// Reports a wait that is too long.
    pub(super) fn is_held_after(&self, me: ThreadId, wait: &mut Wait) -> bool {
        let seen = wait.step::<P, T>(&self.word, |seen| seen == FREE);
        if seen != FREE {
            wait.report::<P, D>((&raw const *self).cast(), seen, me);
        }
        seen != FREE
    }

    /// As [`lock`](RawLock::lock), but a caller that holds the mutex locks it again. It has to
    /// unlock it as often.
    ///
    /// # Safety
    ///
    /// As [`RawLock::lock`]. The critical sections of one thread may be nested.
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

    /// The owner. Stale by the time it is known, unless it is the caller.
    pub fn owner(&self) -> Option<ThreadId> {
        ThreadId::new(self.word.load(Relaxed))
    }

    /// How often the caller, which must hold the mutex, has locked it again.
    pub fn depth(&self) -> u32 {
        self.depth.get()
    }

    /// Whether the caller holds it.
    pub fn is_owned(&self) -> bool {
        self.word.load(Relaxed) == P::thread_id().get()
    }

    /// Whether the caller, which must hold the mutex, has locked it more than once.
    pub fn is_recursed(&self) -> bool {
        debug_assert!(self.is_owned(), "queries a spin mutex that it does not hold");
        self.depth.get() != 0
    }

    /// Waits until no thread holds the mutex, without locking it. The effects of the critical
    /// sections before are visible then. It spins without a bound, as `lock` does.
    pub fn wait_unlocked(&self) {
        // Ordering: Acquire, pairs with the Release in `make_free`: the last critical section
        // happens before what follows.
        P::wait_until(&self.word, Acquire, |seen| seen == FREE);
    }
}

// SAFETY: invariant 1, and only the owner makes the mutex free. Release and Acquire on the word
// order the critical sections.
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
    /// Reads the word first, whatever the switches say, as in the kernel. Fails if the caller holds
    /// the mutex.
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        let me = P::thread_id();
        P::enter_section();
        while self.word.load(Relaxed) == FREE {
            match self.take(me) {
                Ok(()) => return true,
                // The exchange failed spuriously.
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
