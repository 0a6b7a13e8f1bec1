//! Exclusive holders.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::options::{Failure, Held, Interlock, Options};
use super::{
    EXCLUSIVE_WAITERS, FREE, Holder, LockMgr, RECURSED, SHARER, WAITERS, holder_of, is_free, owned_by,
};
use crate::events::LockEvent;
use crate::freebsd::exchange::Exchange;
use crate::freebsd::recursion::Recursion;
use crate::freebsd::spinning::Spinning;
use crate::freebsd::tuning::{CasValue, Tuning, WaiterCasFail};
use crate::freebsd::{FreeBsdPlatform, lock_chain};
use crate::parking::Limit;
use crate::parking::chain::Queue;
use crate::platform::{Atomic, AtomicInt, Platform};
use crate::schedule::ThreadId;
use crate::shared_holds::{self as holds, SharedLock};

impl<P: Platform, T: Tuning> LockMgr<P, T> {
    /// The first attempt.
    #[inline(always)]
    pub(super) fn own_fast(&self, me: ThreadId) -> Result<(), u64> {
        if T::cas_value() != CasValue::Found {
            // Until 2017 the loop made this attempt, after a check whether the caller holds the
            // lock.
            let seen = self.word.load(Relaxed);
            if holder_of(seen) == Holder::Thread(me) {
                return Err(seen);
            }
        }
        self.attempt(me, FREE)
    }

    /// One attempt of a thread that has `seen` the word. Returns the word if the attempt fails.
    /// With [`CasValue::Found`] it may be free.
    #[inline(always)]
    pub(super) fn attempt(&self, me: ThreadId, seen: u64) -> Result<(), u64> {
        let seen = match T::cas_value() {
            CasValue::Found => seen,
            CasValue::Reread | CasValue::Kept if T::hard_pre_read() => self.word.load(Relaxed),
            // Whatever the word is.
            CasValue::Reread | CasValue::Kept => FREE,
        };
        if seen != FREE {
            return Err(seen);
        }
        // 0 -> t
        // Ordering: Acquire, pairs with the Releases of earlier holders: their critical sections
        // happen before ours.
        self.word.exchange::<T>(FREE, owned_by(me), Acquire)
    }

    /// t -> t|RECURSED.
    fn recurse(&self) {
        if self.depth.deepen() == 1 {
            // A read-modify-write, since a waiter may set its bit at the same time. Relaxed:
            // nothing is published.
            self.word.fetch_or(RECURSED, Relaxed);
        }
    }
}

impl<P: FreeBsdPlatform, T: Tuning> LockMgr<P, T> {
    #[inline(always)]
    pub(super) fn own<I: Interlock>(
        &self,
        options: &Options<'_, P>,
        interlock: &mut Held<I>,
    ) -> Result<(), Failure> {
        let me = P::thread_id();
        match self.own_fast(me) {
            Ok(()) => Ok(()),
            Err(found) => self.own_slow(me, found, options, interlock),
        }
    }

    /// Called after an attempt that has `found` this; free if there has been none.
    #[cold]
    #[inline(never)]
    pub(super) fn own_slow<I: Interlock>(
        &self,
        me: ThreadId,
        found: u64,
        options: &Options<'_, P>,
        interlock: &mut Held<I>,
    ) -> Result<(), Failure> {
        P::count(LockEvent::Slowpath);
        P::in_slow_path(|| {
            let mut seen = found;
            debug_assert!(holder_of(seen) != Holder::Destroyed, "acquires a lock that has been destroyed");
            if holder_of(seen) == Holder::Thread(me) {
                return self.own_again(options);
            }
            let limit = options.limit(&self.attributes());
            let mut spinning = Spinning::default();
            loop {
                if seen != FREE {
                    if Self::may_spin(options, interlock)
                        && let Some(now) = self.spin(seen, &mut spinning, |seen| seen == FREE)
                    {
                        seen = now;
                    } else if !options.sleeps {
                        return Err(Failure::Busy);
                    } else {
                        interlock.release();
                        match self.sleep_exclusive(me, options, &limit)? {
                            Some(now) => seen = now,
                            None => return Ok(()),
                        }
                        spinning = Spinning::default();
                    }
                }
                match self.attempt(me, seen) {
                    Ok(()) => return Ok(()),
                    Err(now) => seen = now,
                }
            }
        })
    }

    /// The exclusive holder locks again.
    fn own_again(&self, options: &Options<'_, P>) -> Result<(), Failure> {
        if [options.recursion, self.attributes().recursion].contains(&Recursion::Permitted) {
            self.recurse();
            return Ok(());
        }
        if !options.sleeps {
            return Err(Failure::Busy);
        }
        debug_assert!(false, "acquires again a lock that must not be acquired again");
        Err(Failure::Deadlock)
    }

    /// Sleeps in the chain, unless there is reason not to by now. Returns the word then, or `None`
    /// if the caller has locked there.
    fn sleep_exclusive(
        &self,
        me: ThreadId,
        options: &Options<'_, P>,
        limit: &Limit<'_, P>,
    ) -> Result<Option<u64>, Failure> {
        let chain = lock_chain::<P, _>(self);
        let mut seen = self.word.load(Relaxed);
        loop {
            if seen == FREE {
                chain.cancel();
                return Ok(Some(seen));
            }
            let found = if is_free(seen) {
                // 0 -> t; waiter bits stay.
                // Ordering: Acquire, as in `attempt`.
                match self.word.exchange::<T>(seen, owned_by(me) | seen & WAITERS, Acquire) {
                    Ok(()) => return Ok(None),
                    Err(found) => found,
                }
            } else if seen & EXCLUSIVE_WAITERS != 0 {
                break;
            } else {
                // Relaxed: an unlock that sees the bit locks the chain, which orders the two. An
                // unlock that does not see it makes this exchange fail.
                match self.word.exchange::<T>(seen, seen | EXCLUSIVE_WAITERS, Relaxed) {
                    Ok(()) => break,
                    Err(found) => found,
                }
            };
            seen = self.word.after_failure::<T>(found);
            if T::waiter_cas_fail() == WaiterCasFail::Restart {
                chain.restart();
                return Ok(Some(seen));
            }
        }
        self.sleep(chain, Queue::Exclusive, options, limit)?;
        Ok(Some(self.word.load(Relaxed)))
    }

    /// The slow path of an exclusive unlock. The holder has locked more than once, or threads wait,
    /// or the lock is disowned.
    #[cold]
    #[inline(never)]
    pub(super) fn release_exclusive_slow(&self) {
        P::in_slow_path(|| {
            let mut seen = self.word.load(Relaxed);
            debug_assert!(
                [Holder::Thread(P::thread_id()), Holder::Disowned].contains(&holder_of(seen)),
                "releases a lock that it does not hold"
            );
            if seen & RECURSED != 0 {
                if self.depth.unwind() == 0 {
                    // t|RECURSED -> t. Relaxed: as in `recurse`.
                    self.word.fetch_and(!RECURSED, Relaxed);
                }
                return;
            }
            while seen & WAITERS == 0 {
                // Ordering: Release, as in `release`.
                match self.word.exchange::<T>(seen, FREE, Release) {
                    Ok(()) => return,
                    Err(found) => seen = self.word.after_failure::<T>(found),
                }
            }
            self.release_contested();
        });
    }

    /// t -> 0 with waiters.
    fn release_contested(&self) {
        let chain = lock_chain::<P, _>(self);
        // No other thread writes the word: waiter bits change under the chain's lock.
        let wakes = Self::next(self.word.load(Relaxed), &chain, self.sleep_failers.load(Relaxed));
        self.sleep_failers.store(0, Relaxed);
        // Ordering: Release, as in `release`.
        self.word.store(wakes.left, Release);
        Self::wake(&wakes, chain);
    }

    /// t -> 1 sharer; waiter bits stay, and the waiters sleep on.
    pub(super) fn downgrade_exclusive(&self) {
        let me = P::thread_id();
        let mut seen = owned_by(me);
        loop {
            // Ordering: Release, pairs with the Acquires of later sharers: our critical section
            // happens before theirs.
            match self.word.exchange::<T>(seen, SHARER | seen & WAITERS, Release) {
                Ok(()) => return holds::add::<P>(SharedLock::LockMgr),
                Err(found) => seen = self.word.after_failure::<T>(found),
            }
            debug_assert!(holder_of(seen) == Holder::Thread(me), "downgrades a lock that it does not hold");
            debug_assert!(seen & RECURSED == 0, "downgrades a lock that it holds more than once");
        }
    }
}
