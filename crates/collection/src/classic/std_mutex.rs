//! The protocol of the mutex of Rust's standard library on Linux: one word, and waiters that spin
//! for a while before they sleep.
//!
//! ```text
//!  word   0 free   1 held, no thread sleeps   2 held, threads may sleep
//!
//!  0 -> 1       lock, try_lock, and a waiter that finds it free after its first looks
//!  * -> 2       a waiter that has looked without success, or has slept: from 0 it has acquired
//!               the mutex; otherwise it sleeps while the word is 2
//!  1, 2 -> 0    unlock; from 2 it wakes one thread
//! ```
//! A waiter looks at the word up to 100 times ([`LOOKS`](StdMutexTuning::looks)), with a pause in
//! between, as long as the word is 1. If it sees that others may sleep, it goes to sleep as well.
//! After each sleep it looks again in the same way.
//!
//! 1. Only the thread that locks the mutex changes the word from 0, and only that thread changes it
//!    back to 0.
//! 2. A thread that sleeps has seen 2 or stored it, and the word was 2 when it fell asleep: the
//!    comparison and falling asleep are one step. A thread that locks the mutex after a sleep
//!    stores 2, since it cannot know whether others still sleep. So the unlock after which a
//!    sleeper could sleep on finds 2, and wakes one thread.
//! 3. The store of 0 is the last access of `unlock` to the word. The wake-up that follows uses the
//!    address only.
//!
//! Fairness: none. A newcomer takes a free mutex at once. A spinning waiter takes it while a woken
//! one is still waking up.
//!
//! **This is a model of the protocol**, for the simulator, and for comparisons with other
//! protocols. `nearlock bench` runs the library's own code under the name `std`. Differences:
//! sleeping is the platform's, and no call is interrupted; panics poison nothing. Source: Rust
//! 1.95, `library/std/src/sys/sync/mutex/futex.rs`, rewritten in our own words; after Drepper,
//! "Futexes Are Tricky", 2011.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::events::LockEvent;
use crate::platform::{Atomic, Park, Platform};
use crate::raw::{RawLock, RawTryLock};
use crate::tuning::Standard;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and threads may sleep.
const CONTENDED: u32 = 2;

switches! {
    /// The switch of [`StdMutex`].
    pub trait StdMutexTuning;
    SWITCHES from 2;

    /// How often a waiter finds the mutex held, and pauses, before it sleeps. The default is the
    /// source's constant, for which the source gives no reason: 1.3 us at 13 ns for a pause, 4.5 us
    /// at 45 ns (Skylake). With 0 it is the C library's mutex, except that it looks before it
    /// writes.
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
    /// The value of the word, if it was not 0.
    #[inline(always)]
    fn take(&self) -> Result<u32, u32> {
        // Ordering: Acquire, pairs with the Release in `unlock`: the last critical section happens
        // before ours. Relaxed on failure: the mutex is not locked.
        self.word.compare_exchange(FREE, HELD, Acquire, Relaxed)
    }

    /// Spins for a while, as long as the mutex is held and no thread sleeps. Returns the word.
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
            // Ordering: Acquire, pairs with the Release in `unlock`: the last critical section
            // happens before ours.
            while word == CONTENDED || self.word.swap(CONTENDED, Acquire) != FREE {
                // Check the word before the system call.
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

// SAFETY: invariant 1; Release and Acquire on the word order the critical sections.
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
        // Ordering: Release, pairs with the Acquires in `take` and `lock_slow`: our critical
        // section happens before the next.
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
