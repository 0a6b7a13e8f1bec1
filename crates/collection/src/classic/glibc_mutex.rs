//! The mutex of the C library (glibc): one word, and waiters that sleep without spinning first.
//!
//! ```text
//!  word   0 free   1 held, no thread sleeps   2 held, threads may sleep
//!
//!  0 -> 1       lock, try_lock
//!  * -> 2       lock_slow: from 0 it has acquired the mutex; otherwise it sleeps while the word
//!               is 2
//!  1, 2 -> 0    unlock; from 2 it wakes one thread
//! ```
//! 1. Only the thread that locks the mutex changes the word from 0, and only that thread changes it
//!    back to 0.
//! 2. A thread that sleeps has seen 2 or stored it, and the word was 2 when it fell asleep: the
//!    comparison and falling asleep are one step. A thread that locks the mutex after a sleep
//!    stores 2 as well, since it cannot know whether others still sleep. So the unlock after which
//!    a sleeper could sleep on finds 2, and wakes one thread.
//! 3. The store of 0 is the last access of `unlock` to the word. The wake-up that follows uses the
//!    address only. By then something else may be at this address, and a thread may be woken for no
//!    reason. So every waiter checks its word again.
//!
//! Fairness: none. A newcomer takes a free mutex at once, while the thread that was woken for it is
//! still waking up.
//!
//! Waiters sleep in a [`Futex`]: the platform's, unless the caller passes another one
//! ([`GlibcMutex::lock_in`]), for example one whose queues are in simulated memory.
//!
//! Differences from the C library: only the default kind (`PTHREAD_MUTEX_NORMAL`, private to the
//! process) is here. A process with a single thread locks as any other process does.
//! Source: Drepper, "Futexes Are Tricky", 2011, section 6 (the mutex with three states), which is
//! the C library's `lll_lock`.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::platform::{Atomic, Park, Platform};
use crate::raw::{RawLock, RawTryLock};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and threads may sleep.
const CONTENDED: u32 = 2;

/// Puts threads to sleep on a word, and wakes them.
pub trait Futex<P: Platform> {
    /// Sleeps until a wake-up, if the word is `expected`. May return spuriously.
    fn wait(&self, word: &P::U32, expected: u32);
    /// Wakes up to `n` threads that sleep on the word at this address, which is not dereferenced.
    fn wake(&self, word: *const P::U32, n: u32);
}

/// The platform's futex.
#[derive(Clone, Copy, Debug)]
pub struct PlatformFutex;

impl<P: Park> Futex<P> for PlatformFutex {
    fn wait(&self, word: &P::U32, expected: u32) {
        P::park(word, expected);
    }

    fn wake(&self, word: *const P::U32, n: u32) {
        P::unpark(word, n);
    }
}

/// See the [module](self). 4 bytes natively; all zero: unlocked.
#[repr(transparent)]
pub struct GlibcMutex<P: Platform> {
    word: P::U32,
}

impl<P: Platform> GlibcMutex<P> {
    /// An unlocked mutex, in `const`.
    pub const fn new() -> Self {
        Self { word: Atomic::ZERO }
    }

    #[inline(always)]
    fn take(&self) -> bool {
        // Ordering: Acquire, pairs with the Release in `unlock_in`: the last critical section
        // happens before ours. Relaxed on failure: the mutex is not locked.
        self.word.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
    }

    /// As [`lock`](RawLock::lock). Waiters sleep in this futex.
    ///
    /// # Safety
    ///
    /// As for [`lock`](RawLock::lock). All threads that use the mutex pass the same futex.
    #[inline]
    pub unsafe fn lock_in(&self, futex: &impl Futex<P>) {
        if !self.take() {
            self.lock_slow(futex);
        }
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self, futex: &impl Futex<P>) {
        // Other threads may sleep already. So this thread sleeps as well, and does not write.
        if self.word.load(Relaxed) == CONTENDED {
            futex.wait(&self.word, CONTENDED);
        }
        // Ordering: Acquire, pairs with the Release in `unlock_in`: the last critical section
        // happens before ours.
        while self.word.swap(CONTENDED, Acquire) != FREE {
            futex.wait(&self.word, CONTENDED);
        }
    }

    /// As [`unlock`](RawLock::unlock). Waiters sleep in this futex.
    ///
    /// # Safety
    ///
    /// As for [`unlock`](RawLock::unlock). The futex is that of [`lock_in`](Self::lock_in).
    #[inline]
    pub unsafe fn unlock_in(&self, futex: &impl Futex<P>) {
        let word = &raw const self.word;
        // Ordering: Release, pairs with the Acquires in `take` and `lock_slow`: our critical
        // section happens before the next.
        if self.word.swap(FREE, Release) == CONTENDED {
            futex.wake(word, 1);
        }
    }
}

impl<P: Platform> Default for GlibcMutex<P> {
    fn default() -> Self {
        Self { word: Atomic::new(FREE) }
    }
}

// SAFETY: invariant 1; Release and Acquire on the word order the critical sections.
unsafe impl<P: Park> RawLock for GlibcMutex<P> {
    type Node = ();

    #[inline]
    unsafe fn lock(&self, _node: &()) {
        // SAFETY: upheld by the caller.
        unsafe { self.lock_in(&PlatformFutex) };
    }

    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        // SAFETY: upheld by the caller.
        unsafe { self.unlock_in(&PlatformFutex) };
    }
}

// SAFETY: as above.
unsafe impl<P: Park> RawTryLock for GlibcMutex<P> {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        self.take()
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) != FREE
    }
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;

    use super::*;
    use crate::native::Native;
    use crate::testing::{OneThread, UNPARKED, meanwhile, others_are_done};

    const _: () = assert!(size_of::<GlibcMutex<Native>>() == 4);

    fn word(mutex: &GlibcMutex<OneThread>) -> u32 {
        mutex.word.load(Relaxed)
    }

    #[test]
    fn alone_it_does_not_sleep_and_wakes_no_thread() {
        let mutex = GlibcMutex::<OneThread>::new();
        UNPARKED.take();
        // SAFETY: one thread, and unlock follows lock.
        unsafe {
            mutex.lock(&());
            assert!(word(&mutex) == HELD && mutex.is_locked() && !mutex.try_lock(&()));
            mutex.unlock(&());
            assert!(!mutex.is_locked() && mutex.try_lock(&()));
            mutex.unlock(&());
        }
        assert_eq!((word(&mutex), UNPARKED.get()), (FREE, None));
    }

    #[test]
    fn a_thread_that_has_slept_wakes_another() {
        let mutex: &'static GlibcMutex<OneThread> = Box::leak(Box::default());
        // SAFETY: one thread, which acts for two: unlock follows lock.
        unsafe {
            mutex.lock(&());
            meanwhile(|| {
                assert_eq!(word(mutex), CONTENDED);
                mutex.unlock(&());
                // A newcomer is faster.
                assert!(mutex.try_lock(&()) && word(mutex) == HELD);
            });
            meanwhile(|| {
                assert_eq!(word(mutex), CONTENDED, "it says again that it sleeps");
                mutex.unlock(&());
            });
            mutex.lock(&());
            assert_eq!(word(mutex), CONTENDED, "others may sleep");
            UNPARKED.take();
            mutex.unlock(&());
        }
        assert!(others_are_done());
        assert_eq!((word(mutex), UNPARKED.get()), (FREE, Some((&raw const mutex.word, 1))));
    }

    #[test]
    fn a_thread_that_finds_sleepers_does_not_write() {
        let mutex: &'static GlibcMutex<OneThread> = Box::leak(Box::default());
        mutex.word.store(CONTENDED, Relaxed);
        meanwhile(|| {
            assert_eq!(word(mutex), CONTENDED);
            mutex.word.store(FREE, Relaxed);
        });
        // SAFETY: one thread, and unlock follows lock.
        unsafe {
            mutex.lock(&());
            assert!(others_are_done() && word(mutex) == CONTENDED);
            mutex.unlock(&());
        }
    }
}
