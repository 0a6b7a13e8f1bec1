//! The lock of a queue of waiters: a mutex of one word. Its own waiters spin for a bounded time,
//! and then sleep.
//!
//! ```text
//! word  bit 0 HELD | 1 SLEEPERS: a waiter may sleep | 2 ERRAND: the holder has something to do
//!
//!  0 -> HELD                  lock, try_lock, `take_or_leave_errand`
//!  * -> HELD|SLEEPERS         a waiter that has spun for long enough; from 0 it has the lock,
//!                             otherwise it sleeps
//!  HELD|x -> HELD|x|ERRAND    `take_or_leave_errand` of a lock that is held
//!  HELD|x -> 0                unlock; with SLEEPERS it wakes one waiter, with ERRAND the caller
//!                             does the errand
//! ```
//! 1. The word leaves 0 only by the thread that acquires the lock. Only that thread stores 0.
//! 2. A waiter sleeps only while the word is exactly the value that it has stored, HELD|SLEEPERS,
//!    or the same with ERRAND. Comparing and falling asleep are one step. A waiter that acquires
//!    the lock after it has slept stores SLEEPERS, because others may sleep. So the release that
//!    could leave a sleeper behind finds SLEEPERS, and wakes one.
//! 3. The store of 0 is the last access of a release to the word. The wake-up uses its address
//!    only.
//! 4. An errand is left by a read-modify-write of a word that is not 0. The release that follows
//!    reads it, or reads a later value of the word, which still has the bit.
//!
//! **Bounded waiting.** A thread that spins for a holder which it has preempted waits for ever if
//! its priority is higher, and for a time slice if not. Here it makes at most `ROUNDS` rounds of
//! `LOOKS` looks, with delays of at most `BACKOFF_MAX` pauses between the rounds. Then it sleeps,
//! and the holder can run.
//!
//! Fairness: none. A newcomer may take the lock before a waiter that was woken.
//! Source: Drepper, "Futexes Are Tricky", 2011, section 6 (mutex 2). The back-off: Anderson, "The
//! performance of spin lock alternatives for shared-memory multiprocessors", IEEE TPDS 1(1), 1990.
//! The errand: own.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::wait_lock::WaitLock;
use crate::events::LockEvent;
use crate::platform::{Atomic, AtomicInt, Park, Platform};
use crate::raw::{RawLock, RawTryLock};

const FREE: u32 = 0;
const HELD: u32 = 1;
const SLEEPERS: u32 = 1 << 1;
const ERRAND: u32 = 1 << 2;

/// Looks at the word in one round, with a pause before each look but the first. A round takes 1 us
/// at 9 ns for a pause, 6 us at 45 ns. Critical sections take 50 ns to 1 us. A holder that has not
/// released the lock by then has probably lost its processor. With 0 a waiter sleeps where a look
/// would do. With many it keeps the processor that the holder needs.
const LOOKS: u32 = 128;
/// How many rounds end with the lock seen free, but taken by another thread, before a waiter
/// sleeps. Twelve are enough for the delays to grow to [`BACKOFF_MAX`].
const ROUNDS: u32 = 12;
/// The greatest number of pauses after a lost race: 10 us at 9 ns for a pause, 46 us at 45 ns. In
/// this time, 100 processors take the cache line, one after the other. With less, threads that lose
/// races take the line from the holder. Without any pause, on the simulated skylake-sp-8s, 400
/// tasks that use one chain at once acquire no mutex for 10 ms (`mutex-section`). With more, the
/// lock stays free while they pause.
const BACKOFF_MAX: u32 = 1024;

/// The result of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Released {
    /// Nothing is left to be done.
    Quiet,
    /// An errand was left meanwhile. The caller has to do it.
    WithErrand,
}

/// The result of an attempt that does not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TakenOrLeft {
    /// The caller has the lock.
    Taken,
    /// Another thread has the lock, and the caller has left it an errand.
    ErrandLeft,
}

/// The lock of a queue of waiters: a mutex of one word, whose waiters spin for a bounded time and
/// then sleep.
///
/// 4 bytes natively; all zero: unlocked. Fairness: none. Each critical section happens before the
/// next.
#[repr(transparent)]
pub struct QueueLock<P: Platform> {
    word: P::U32,
}

impl<P: Platform> QueueLock<P> {
    /// An unlocked lock, in `const`.
    pub const fn new() -> Self {
        Self { word: Atomic::ZERO }
    }

    /// 0 -> HELD.
    #[inline(always)]
    fn take(&self) -> bool {
        // Ordering: Acquire, pairs with the Release in `release`: the previous critical section
        // happens before ours. Relaxed on failure: nothing is acquired.
        self.word.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
    }

    /// Takes the lock if it is free, and otherwise leaves its holder an errand. It never waits for
    /// another thread. So a signal handler that has interrupted the holder may call it.
    pub(super) fn take_or_leave_errand(&self) -> TakenOrLeft {
        let mut seen = self.word.load(Relaxed);
        loop {
            let (next, outcome) = match seen {
                FREE => (HELD, TakenOrLeft::Taken),
                held => (held | ERRAND, TakenOrLeft::ErrandLeft),
            };
            // Ordering: AcqRel. Acquire, if the lock is taken: pairs with the Release in `release`,
            // and with the Release here of a thread that has left an errand. Release, if an errand
            // is left: everything before it is visible to the thread that does the errand. Relaxed
            // on failure, where the value is only used to try again.
            match self.word.compare_exchange(seen, next, AcqRel, Relaxed) {
                Ok(_) => return outcome,
                Err(now) => seen = now,
            }
        }
    }
}

impl<P: Park> QueueLock<P> {
    /// Acquires the lock. The caller does not hold it.
    #[inline]
    pub(crate) fn acquire(&self) {
        if !self.take() {
            self.acquire_slow();
        }
    }

    /// Acquires the lock, unless another thread holds it for as long as a waiter spins. Returns
    /// whether it has acquired the lock. The caller does not hold it.
    pub(super) fn acquire_bounded(&self) -> bool {
        self.take() || self.spins()
    }

    #[cold]
    #[inline(never)]
    fn acquire_slow(&self) {
        if self.spins() {
            return;
        }
        loop {
            // * -> HELD|SLEEPERS. An errand is kept: HELD|ERRAND -> HELD|ERRAND|SLEEPERS.
            // Ordering: Acquire, pairs with the Release in `release`.
            let seen = self.word.fetch_or(HELD | SLEEPERS, Acquire);
            if seen & HELD == 0 {
                return;
            }
            P::count(LockEvent::QueueLockSleep);
            P::park(&self.word, seen | SLEEPERS);
        }
    }

    /// Spins for a bounded time. Returns whether it has acquired the lock.
    fn spins(&self) -> bool {
        let mut pauses = 1;
        for _ in 0..ROUNDS {
            if P::wait_until_bounded(&self.word, Relaxed, LOOKS, |word| word & HELD == 0) & HELD != 0 {
                return false;
            }
            if self.take() {
                return true;
            }
            P::pause(pauses, 0);
            pauses = (pauses * 2).min(BACKOFF_MAX);
        }
        false
    }

    /// Releases the lock, and returns whether an errand was left. The caller holds the lock.
    #[inline]
    pub(super) fn release(&self) -> Released {
        let word = &raw const self.word;
        // Ordering: Release, pairs with the Acquires in `take`, `acquire_slow` and
        // `take_or_leave_errand`: our critical section happens before the next. Not Acquire: the
        // thread that does an errand takes the lock again by `take_or_leave_errand`. This swap
        // continues the release sequence of the thread that has left the errand.
        let seen = self.word.swap(FREE, Release);
        if seen != HELD { Self::after_release(word, seen) } else { Released::Quiet }
    }

    /// The rest of a release. Only the address of the word is used.
    #[cold]
    #[inline(never)]
    fn after_release(word: *const P::U32, seen: u32) -> Released {
        if seen & SLEEPERS != 0 {
            P::unpark(word, 1);
        }
        if seen & ERRAND != 0 { Released::WithErrand } else { Released::Quiet }
    }
}

impl<P: Platform> Default for QueueLock<P> {
    fn default() -> Self {
        Self { word: Atomic::new(FREE) }
    }
}

// SAFETY: invariant 1; Release and Acquire on the word order the critical sections.
unsafe impl<P: Park> RawLock for QueueLock<P> {
    type Node = ();

    #[inline]
    unsafe fn lock(&self, _node: &()) {
        self.acquire();
    }

    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        let released = self.release();
        debug_assert_eq!(released, Released::Quiet, "an errand for a holder that does none");
    }
}

// SAFETY: as above.
unsafe impl<P: Park> RawTryLock for QueueLock<P> {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        self.take()
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) != FREE
    }
}

impl<P: Park> WaitLock for QueueLock<P> {
    const FREE: Self = Self::new();
}

#[cfg(test)]
mod tests {
    use core::ptr;
    use std::boxed::Box;

    use super::*;
    use crate::native::Native;
    use crate::testing::{
        OneThread, PAUSES, SLEEPS, UNPARKED, after_look, events_of, meanwhile, others_are_done,
    };

    const _: () = assert!(size_of::<QueueLock<Native>>() == 4);

    type Lock = QueueLock<OneThread>;

    fn leaked() -> &'static Lock {
        Box::leak(Box::default())
    }

    /// How many waiters the last wake-up was for. Checks that it was for this lock.
    fn unparked(lock: &Lock) -> Option<u32> {
        let (word, n) = UNPARKED.take()?;
        assert!(ptr::eq(word, &raw const lock.word));
        Some(n)
    }

    #[test]
    fn a_free_lock_is_taken_and_released_without_a_call() {
        let lock = Lock::new();
        lock.acquire();
        assert!(lock.is_locked() && !lock.take());
        assert_eq!(lock.release(), Released::Quiet);
        assert!(!lock.is_locked() && unparked(&lock).is_none());
    }

    #[test]
    fn an_attempt_takes_a_free_lock_and_fails_at_one_that_is_held() {
        let lock = Lock::new();
        // SAFETY: one thread, and what is taken is released.
        unsafe {
            assert!(lock.try_lock(&()) && lock.is_locked());
            assert!(!lock.try_lock(&()) && lock.is_locked(), "held by the first");
            lock.unlock(&());
            assert!(!lock.is_locked() && lock.try_lock(&()));
        }
    }

    #[test]
    fn a_waiter_sleeps_after_one_round_while_the_holder_has_no_processor() {
        let lock = leaked();
        let sleeps = events_of(LockEvent::QueueLockSleep);
        lock.acquire();
        // The holder runs only when the waiter sleeps.
        meanwhile(|| {
            assert_eq!(SLEEPS.get(), 1);
            assert_eq!((lock.release(), unparked(lock)), (Released::Quiet, Some(1)));
        });
        lock.acquire();
        assert!(others_are_done() && PAUSES.take().is_empty());
        assert_eq!(events_of(LockEvent::QueueLockSleep), sleeps + 1);
        assert_eq!(lock.word.load(Relaxed), HELD | SLEEPERS, "others may sleep");
        assert_eq!((lock.release(), unparked(lock)), (Released::Quiet, Some(1)));
    }

    /// The worst case takes 200 us at 45 ns for a pause.
    const _: () = {
        let (mut total, mut delay, mut round) = (0, 1, 0);
        while round < ROUNDS {
            total += LOOKS + delay;
            delay = if delay * 2 < BACKOFF_MAX { delay * 2 } else { BACKOFF_MAX };
            round += 1;
        }
        assert!(delay == BACKOFF_MAX && total < 4700);
    };

    #[test]
    fn one_round_ends_with_a_lock_that_is_free_or_without_one_that_is_not() {
        let lock = Lock::new();
        assert!(lock.spins() && !lock.spins());
        lock.release();
        assert!(lock.spins());
    }

    #[test]
    fn a_waiter_that_loses_every_race_stops_spinning_after_the_last_round() {
        let lock = leaked();
        // In each round, another thread takes the lock that the waiter has seen free. It releases
        // the lock while the waiter pauses.
        for _ in 0..ROUNDS {
            after_look(|| lock.acquire());
            meanwhile(|| assert_eq!(lock.release(), Released::Quiet));
        }
        lock.acquire_slow();
        assert!(others_are_done());
        assert_eq!(PAUSES.take(), [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, BACKOFF_MAX]);
        assert_eq!(lock.word.load(Relaxed), HELD | SLEEPERS, "not taken by a look");
    }

    #[test]
    fn an_errand_is_left_to_the_holder_and_no_wake_up_is_lost_by_it() {
        let lock = leaked();
        assert_eq!(lock.take_or_leave_errand(), TakenOrLeft::Taken);
        assert_eq!(lock.take_or_leave_errand(), TakenOrLeft::ErrandLeft);
        assert_eq!(lock.take_or_leave_errand(), TakenOrLeft::ErrandLeft);
        // A waiter sleeps when the next errand is left. The errand prevents the sleep of another.
        meanwhile(|| assert_eq!(lock.take_or_leave_errand(), TakenOrLeft::ErrandLeft));
        meanwhile(|| assert_eq!((lock.release(), unparked(lock)), (Released::WithErrand, Some(1))));
        lock.acquire();
        assert!(others_are_done());
        assert_eq!((lock.release(), unparked(lock)), (Released::Quiet, Some(1)));
    }
}
