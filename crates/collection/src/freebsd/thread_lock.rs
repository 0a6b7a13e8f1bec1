//! A lock that is reached through a pointer, which may change: FreeBSD's `thread_lock`. A thread of
//! the kernel is protected by the spin mutex of the queue that it is in. When it is moved to
//! another queue, its protection moves along.
//!
//! ```text
//! current   null: the mutex is `home` | MOVING: held, and has no mutex | else: the mutex's address
//! home      the first mutex
//!
//!  m -> n         the holder, which holds n as well, moves it and unlocks m    `move_to`
//!  m -> MOVING    the holder takes it away from m                              `begin_move`
//!  MOVING -> n    the holder brings it to n, which it need not hold            `finish_move`
//! ```
//! 1. Only the holder changes `current`. A thread becomes the holder when it has locked the mutex
//!    that `current` names, and `current` still names it afterwards. It remains the holder when it
//!    sets MOVING.
//! 2. So a waiter that gets a mutex looks at `current` once more. If `current` has changed, the
//!    mutex protects something else. The waiter unlocks it, and starts again. While it waits, it
//!    looks at both `current` and the mutex.
//!
//! Not recursive. Fairness: none, as with [`SpinMtx`].
//!
//! Differences from the kernel: while a lock is being moved, waits are not reported as too long.
//! Natively the waiting policy yields the processor.
//! Source: FreeBSD's `thread_lock_flags_`, `thread_lock_set`, `thread_lock_block` and
//! `thread_lock_unblock` (Roberson; Guzik), written from a description in our own words.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::FreeBsdPlatform;
use super::spin_mtx::{Counted, LongSpin, SpinMtx, Wait};
use super::tuning::Tuning;
use crate::events::LockEvent;
use crate::platform::{Atomic, Platform};
use crate::raw::{RawLock, RawTryLock};
use crate::schedule::ThreadId;
use crate::tuning::Standard;

/// See the [module](self). All zero: unlocked, and at its own mutex.
#[repr(C)]
pub struct ThreadLock<P: Platform, T: Tuning = Standard, D: LongSpin = Counted> {
    current: P::Ptr<SpinMtx<P, T, D>>,
    home: SpinMtx<P, T, D>,
}

impl<P: Platform, T: Tuning, D: LongSpin> ThreadLock<P, T, D> {
    /// An address that no mutex has.
    const MOVING: *mut SpinMtx<P, T, D> = ptr::without_provenance_mut(1);

    /// An unlocked lock, in `const`.
    pub const fn new() -> Self {
        Self { current: Atomic::ZERO, home: SpinMtx::new() }
    }

    /// The mutex that `at` names.
    ///
    /// Safety: `at` has been read from `current`, and is not MOVING.
    #[inline(always)]
    unsafe fn named(&self, at: *mut SpinMtx<P, T, D>) -> &SpinMtx<P, T, D> {
        // SAFETY: mutexes that `current` has named live as long as the lock is in use. Callers that
        // move the lock guarantee this.
        unsafe { at.as_ref() }.unwrap_or(&self.home)
    }
}

impl<P: Platform, T: Tuning, D: LongSpin> Default for ThreadLock<P, T, D> {
    fn default() -> Self {
        Self { current: Atomic::new(ptr::null_mut()), home: SpinMtx::default() }
    }
}

impl<P: FreeBsdPlatform, T: Tuning, D: LongSpin> ThreadLock<P, T, D> {
    /// Reads `current`.
    #[inline(always)]
    fn look(&self) -> *mut SpinMtx<P, T, D> {
        // Ordering: Acquire, pairs with the Releases in `move_to` and `finish_move`: the mutex is
        // initialised. What the holder did before it finished the move happens before our critical
        // section.
        self.current.load(Acquire)
    }

    /// The caller is in the section of this acquisition before and after, and not while it waits.
    #[cold]
    #[inline(never)]
    fn lock_slow(&self, me: ThreadId) {
        P::count(LockEvent::Slowpath);
        P::in_slow_path(|| {
            let mut wait = Wait::default();
            while !self.attempt(me) {
                P::leave_section();
                self.wait(me, &mut wait);
                P::enter_section();
            }
        });
    }

    /// Locks the mutex that protects the lock now, if that is free.
    #[inline]
    fn attempt(&self, me: ThreadId) -> bool {
        let at = self.look();
        if at == Self::MOVING {
            return false;
        }
        // SAFETY: just read, and not MOVING.
        let mutex = unsafe { self.named(at) };
        if mutex.take_fast(me).is_err() {
            return false;
        }
        let is_still_there = self.look() == at;
        if !is_still_there {
            mutex.make_free();
        }
        is_still_there
    }

    /// Waits until another attempt may succeed.
    fn wait(&self, me: ThreadId, wait: &mut Wait) {
        let at = self.look();
        if at == Self::MOVING {
            P::wait_until(&self.current, Relaxed, |at| at != Self::MOVING);
            return;
        }
        // SAFETY: just read, and not MOVING.
        let mutex = unsafe { self.named(at) };
        while mutex.is_held_after(me, wait) {
            if self.current.load(Relaxed) != at {
                return;
            }
        }
    }

    /// Moves the lock to another mutex, and unlocks the old one. The next
    /// [`unlock`](RawLock::unlock) unlocks the new one.
    ///
    /// # Safety
    ///
    /// The caller holds the lock, and has locked `new` as well. `new` lives as long as the lock is
    /// used.
    pub unsafe fn move_to(&self, new: &SpinMtx<P, T, D>) {
        // SAFETY: upheld by the caller.
        let old = unsafe { self.held() };
        // Ordering: Release, pairs with the Acquire in `look`: the mutex is initialised.
        self.current.store(ptr::from_ref(new).cast_mut(), Release);
        // SAFETY: the caller has locked it.
        unsafe { old.unlock(&()) };
    }

    /// Takes the lock away from its mutex. Returns the mutex, still locked, for the caller to
    /// unlock. From now on the lock is held without a mutex, and no thread can lock it until
    /// [`finish_move`](Self::finish_move).
    ///
    /// # Safety
    ///
    /// The caller holds the lock.
    pub unsafe fn begin_move(&self) -> &SpinMtx<P, T, D> {
        // SAFETY: upheld by the caller.
        let old = unsafe { self.held() };
        // Relaxed: a thread that gets the mutex sees this store, as the caller unlocks the mutex
        // later.
        self.current.store(Self::MOVING, Relaxed);
        old
    }

    /// Brings a lock that is being moved to a mutex; `None` is the mutex in the lock. This unlocks
    /// the lock, unless the caller holds the mutex.
    ///
    /// # Safety
    ///
    /// The caller has begun the move. `new` lives as long as the lock is used.
    pub unsafe fn finish_move(&self, new: Option<&SpinMtx<P, T, D>>) {
        debug_assert!(self.current.load(Relaxed) == Self::MOVING, "finishes a move that has not begun");
        let new = new.map_or(ptr::null_mut(), |new| ptr::from_ref(new).cast_mut());
        // Ordering: Release, pairs with the Acquire in `look`: the mutex is initialised, and what
        // the caller did before happens before the next critical section.
        self.current.store(new, Release);
    }

    /// The mutex that protects the lock.
    ///
    /// Safety: the caller holds the lock.
    unsafe fn held(&self) -> &SpinMtx<P, T, D> {
        // Relaxed: only the holder changes it.
        let at = self.current.load(Relaxed);
        debug_assert!(at != Self::MOVING, "a lock that is being moved has no mutex");
        // SAFETY: read from `current`, and not MOVING.
        unsafe { self.named(at) }
    }
}

// SAFETY: invariants 1 and 2; the orderings are those of the mutexes, and of `look`.
unsafe impl<P: FreeBsdPlatform, T: Tuning, D: LongSpin> RawLock for ThreadLock<P, T, D> {
    type Node = ();

    #[inline]
    unsafe fn lock(&self, _node: &()) {
        let me = P::thread_id();
        P::enter_section();
        if !self.attempt(me) {
            self.lock_slow(me);
        }
    }

    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        // SAFETY: the caller holds the lock.
        unsafe { self.held().unlock(&()) };
    }
}

// SAFETY: as above.
unsafe impl<P: FreeBsdPlatform, T: Tuning, D: LongSpin> RawTryLock for ThreadLock<P, T, D> {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        let me = P::thread_id();
        P::enter_section();
        // An attempt on a free lock fails spuriously, or because the lock has been moved.
        while !self.is_locked() {
            if self.attempt(me) {
                return true;
            }
        }
        P::leave_section();
        false
    }

    #[inline]
    fn is_locked(&self) -> bool {
        let at = self.look();
        // SAFETY: just read, and not MOVING.
        at == Self::MOVING || unsafe { self.named(at) }.is_locked()
    }
}

#[cfg(test)]
mod tests;
