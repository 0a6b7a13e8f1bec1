//! The protocol of the mutex of Rust's standard library on Linux: one word, and waiters that look
//! for a while before they sleep.
//!
//! ```text
//!  word   0 free   1 held, nobody sleeps   2 held, somebody may sleep
//!
//!  0 -> 1       lock, try_lock, and a waiter that finds it free after its first looks
//!  * -> 2       a waiter that has looked in vain, or slept: from 0 it has acquired the mutex; else it sleeps, as long as the word is 2
//!  1, 2 -> 0    unlock; from 2 it wakes one
//! ```
//! A waiter looks up to 100 times ([`LOOKS`](StdMutexTuning::looks)) with a pause between, as long
//! as the word is 1: whoever sees others asleep goes to sleep as well. It does so again after each
//! sleep.
//!
//! 1. The word leaves 0 by whoever acquires the mutex, and comes back to 0 by that thread only.
//! 2. Whoever sleeps has seen 2 or stored it, and the word has been 2 when it fell asleep:
//!    comparing and falling asleep are one step. Whoever acquires the mutex after a sleep stores 2,
//!    for it cannot know whether others still sleep. So the release after which a sleeper could
//!    sleep on finds 2, and wakes one.
//! 3. Storing 0 is the last that a release does to the word; the call that follows uses its address
//!    only.
//!
//! Fairness: none. A newcomer takes a free mutex at once, and a waiter that looks takes it while
//! one that was woken is on its way.
//!
//! **A model of the protocol**, for the simulator and side by side with other protocols; the
//! library's own code is what `nearlock bench` calls `std`. Differences: the sleep is the
//! platform's, and has no interrupted calls; panics poison nothing. Source: Rust 1.95,
//! `library/std/src/sys/sync/mutex/futex.rs`, in own words; after Drepper, "Futexes Are Tricky",
//! 2011.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::events::LockEvent;
use crate::platform::{Atomic, Park, Platform};
use crate::raw::{RawLock, RawTryLock};
use crate::tuning::Standard;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Somebody may sleep.
const CONTENDED: u32 = 2;

switches! {
    /// The switch of [`StdMutex`].
    pub trait StdMutexTuning;
    SWITCHES from 2;

    /// How often a waiter finds the mutex held, and pauses, before it sleeps: the source's constant, for which it gives no reason. 1.3 us
    /// at 13 ns for a pause, 4.5 us at 45 ns (Skylake). With 0 it is the C library's mutex, but that it looks before it writes.
    fn looks("looks") -> u32 as number(0, 1 << 20) = 100;
}

/// See the [module](self). 4 bytes natively; all zero: unlocked.
#[repr(transparent)]
pub struct StdMutex<P: Platform, T: StdMutexTuning = Standard> {
    word: P::U32,
    tuning: PhantomData<T>,
}

impl<P: Platform, T: StdMutexTuning> StdMutex<P, T> {
    /// An unlocked mutex, in `const`.
    pub const fn new() -> Self {
        Self { word: Atomic::ZERO, tuning: PhantomData }
    }

    /// 0 -> 1.
    ///
    /// # Errors
    ///
    /// What the word was instead.
    #[inline(always)]
    fn take(&self) -> Result<u32, u32> {
        // Ordering: Acquire, pairs with the Release in `unlock`: the last section happens before ours.
        // Relaxed on failure: nothing is acquired.
        self.word.compare_exchange(FREE, HELD, Acquire, Relaxed)
    }

    /// Looks for a while, as long as the mutex is held and nobody sleeps. What the word is then.
    fn look(&self) -> u32 {
        P::wait_until_bounded(&self.word, Relaxed, T::looks(), |word| word != HELD)
    }
}

impl<P: Park, T: StdMutexTuning> StdMutex<P, T> {
    #[cold]
    #[inline(never)]
    fn lock_slow(&self) {
        P::count(LockEvent::Slowpath);
        P::in_slow_path(|| {
            let mut word = self.look();
            if word == FREE {
                match self.take() {
                    Ok(_) => {
                        P::count(LockEvent::MutexOptLock);
                        return;
                    }
                    Err(seen) => word = seen,
                }
            }
            // Ordering: Acquire, pairs with the Release in `unlock`: the last section happens before ours.
            while word == CONTENDED || self.word.swap(CONTENDED, Acquire) != FREE {
                // A look before the call.
                if self.word.load(Relaxed) == CONTENDED {
                    P::count(LockEvent::MutexSleep);
                    P::park(&self.word, CONTENDED);
                }
                word = self.look();
            }
        });
    }
}

impl<P: Platform, T: StdMutexTuning> Default for StdMutex<P, T> {
    fn default() -> Self {
        Self { word: Atomic::new(FREE), tuning: PhantomData }
    }
}

// SAFETY: invariant 1; Release and Acquire on the word order the sections.
unsafe impl<P: Park, T: StdMutexTuning> RawLock for StdMutex<P, T> {
    type Node = ();

    #[inline]
    unsafe fn lock(&self, _node: &()) {
        if self.take().is_err() {
            self.lock_slow();
        }
    }

    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        let word = &raw const self.word;
        // Ordering: Release, pairs with the Acquires in `take` and `lock_slow`: our section happens before
        // the next.
        if self.word.swap(FREE, Release) == CONTENDED {
            P::count(LockEvent::MutexWake);
            P::unpark(word, 1);
        }
    }
}

// SAFETY: as above.
unsafe impl<P: Park, T: StdMutexTuning> RawTryLock for StdMutex<P, T> {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        self.take().is_ok()
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) != FREE
    }
}

#[cfg(test)]
mod tests;
