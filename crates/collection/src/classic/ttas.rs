//! Test-and-test-and-set lock: one word, on which all waiters spin.
//!
//! ```text
//!  word   0 unlocked   1 locked
//!
//!  0 -> 1   lock, try_lock
//!  1 -> 0   unlock
//!  1 -> 1   an attempt that failed; with the pre-read, only by a lost race
//! ```
//! Fairness: none. After an unlock any waiter or newcomer may win, and the loser's wait has no
//! bound. Source: Rudolph and Segall, "Dynamic decentralized cache schemes for MIMD parallel
//! processors", ISCA 1984 (test-and-test-and-set).

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::parking::WaitLock;
use crate::platform::{Atomic, Platform};
use crate::raw::{RawLock, RawTryLock};
use crate::tuning::Standard;

switches! {
    /// The switches of [`TtasLock`].
    pub trait TtasTuning;
    SWITCHES from 0;

    /// Read the word before trying to write it, so that an attempt that cannot succeed takes the
    /// cache line shared rather than exclusive.
    fn pre_read("preread") -> bool as flag = true;
}

crate::tuning! {
    /// Tries to write at once: the baseline that the pre-read is measured against. (Waiters still
    /// read between attempts.)
    pub struct NoPreRead: TtasTuning {
        pre_read: bool = false;
    }
}

/// See the [module](self).
#[repr(transparent)]
pub struct TtasLock<P: Platform, T: TtasTuning = Standard> {
    word: P::U32,
    tuning: PhantomData<T>,
}

impl<P: Platform, T: TtasTuning> TtasLock<P, T> {
    /// An unlocked lock, in `const`.
    pub const fn new() -> Self {
        Self { word: Atomic::ZERO, tuning: PhantomData }
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self) {
        loop {
            P::wait_until(&self.word, Relaxed, |w| w == 0);
            if self.attempt() {
                return;
            }
        }
    }

    #[inline(always)]
    fn attempt(&self) -> bool {
        if T::pre_read() && self.word.load(Relaxed) != 0 {
            return false;
        }
        // Ordering: Acquire, pairs with the Release in `unlock`: the previous critical section
        // happens before ours.
        self.word.swap(1, Acquire) == 0
    }
}

impl<P: Platform, T: TtasTuning> Default for TtasLock<P, T> {
    fn default() -> Self {
        Self { word: Atomic::new(0), tuning: PhantomData }
    }
}

// SAFETY: only the swap that finds 0 locks, and only the holder's `unlock` ends this. Release and
// Acquire on the word order the critical sections.
unsafe impl<P: Platform, T: TtasTuning> RawLock for TtasLock<P, T> {
    type Node = ();

    #[inline]
    unsafe fn lock(&self, _node: &()) {
        if !self.attempt() {
            self.lock_slow();
        }
    }

    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        // Ordering: Release, pairs with the Acquire in `attempt`: our critical section happens
        // before the next.
        self.word.store(0, Release);
    }
}

// SAFETY: as above.
unsafe impl<P: Platform, T: TtasTuning> RawTryLock for TtasLock<P, T> {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        self.attempt()
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) != 0
    }
}

impl<P: Platform> WaitLock for TtasLock<P> {
    const FREE: Self = Self::new();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Native;

    fn excludes<T: TtasTuning>() {
        static_assertions::<T>();
        let lock = TtasLock::<Native, T>::new();
        // SAFETY: one thread, and unlock follows lock.
        unsafe {
            lock.lock(&());
            assert!(!lock.try_lock(&()) && lock.is_locked());
            lock.unlock(&());
            assert!(!lock.is_locked() && lock.try_lock(&()));
            lock.unlock(&());
        }
        assert_eq!(lock.word.load(Relaxed), 0);
    }

    fn static_assertions<T: TtasTuning>() {
        const { assert!(size_of::<TtasLock<Native, T>>() == 4) }
    }

    #[test]
    fn excludes_with_and_without_the_pre_read() {
        excludes::<Standard>();
        excludes::<NoPreRead>();
    }
}
