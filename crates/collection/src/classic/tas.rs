//! Test-and-set lock: one word, and every access of a waiter to it is a swap.
//!
//! ```text
//!  word   0 unlocked   1 locked
//!
//!  0 -> 1   lock, try_lock
//!  1 -> 1   an attempt that failed
//!  1 -> 0   unlock
//! ```
//! The baseline that everything else improves on: no pre-read, no back-off. Every attempt of a
//! waiter takes the word's cache line exclusively. So waiters slow each other down. They also slow
//! down the unlock, which competes with them for the cache line. [`ttas`](super::ttas) reads while
//! it waits; [`NoPreRead`](super::ttas::NoPreRead) differs from it in the first attempt only.
//!
//! Fairness: none. After an unlock any waiter or newcomer may win, and the loser's wait has no
//! bound. Source: as old as the instruction; measured by Anderson, "The performance of spin lock
//! alternatives for shared-memory multiprocessors", IEEE TPDS 1(1), 1990 (spin on test-and-set).

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::platform::{Atomic, Platform};
use crate::raw::{RawLock, RawTryLock};

/// See the [module](self).
#[repr(transparent)]
pub struct TasLock<P: Platform> {
    word: P::U32,
}

impl<P: Platform> TasLock<P> {
    /// An unlocked lock, in `const`.
    pub const fn new() -> Self {
        Self { word: Atomic::ZERO }
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self) {
        // Not `wait_until`, which reads.
        let mut turn = 0;
        loop {
            P::cpu_relax(turn);
            if self.attempt() {
                return;
            }
            turn = turn.saturating_add(1);
        }
    }

    #[inline(always)]
    fn attempt(&self) -> bool {
        // Ordering: Acquire, pairs with the Release in `unlock`: the previous critical section
        // happens before ours.
        self.word.swap(1, Acquire) == 0
    }
}

impl<P: Platform> Default for TasLock<P> {
    fn default() -> Self {
        Self { word: Atomic::new(0) }
    }
}

// SAFETY: only the swap that finds 0 locks, and only the holder's `unlock` ends this. Release and
// Acquire on the word order the critical sections.
unsafe impl<P: Platform> RawLock for TasLock<P> {
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
unsafe impl<P: Platform> RawTryLock for TasLock<P> {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        self.attempt()
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Native;

    const _: () = assert!(size_of::<TasLock<Native>>() == 4);

    #[test]
    fn the_word_is_one_while_locked() {
        let lock = TasLock::<Native>::new();
        // SAFETY: one thread, and unlock follows lock.
        unsafe {
            lock.lock(&());
            assert_eq!(lock.word.load(Relaxed), 1);
            assert!(!lock.try_lock(&()) && lock.is_locked());
            assert_eq!(lock.word.load(Relaxed), 1);
            lock.unlock(&());
            assert!(!lock.is_locked());
            assert!(lock.try_lock(&()));
            lock.unlock(&());
        }
        assert_eq!(lock.word.load(Relaxed), 0);
    }
}
