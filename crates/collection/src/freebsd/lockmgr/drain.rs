//! Drains: exclusive acquisitions that succeed when all other threads are done with the lock.

use core::sync::atomic::Ordering::Relaxed;

use super::options::{Failure, Held, Interlock, Options};
use super::{EXCLUSIVE_WAITERS, FREE, Holder, LockMgr, holder_of, is_free};
use crate::events::LockEvent;
use crate::freebsd::exchange::Exchange;
use crate::freebsd::spinning::Spinning;
use crate::freebsd::tuning::{CasValue, Tuning, WaiterCasFail};
use crate::freebsd::{FreeBsdPlatform, Locked, lock_chain};
use crate::parking::chain::Queue;
use crate::platform::Atomic;

impl<P: FreeBsdPlatform, T: Tuning> LockMgr<P, T> {
    /// Locks exclusively when no thread holds the lock and no thread waits.
    pub(super) fn drain<I: Interlock>(
        &self,
        options: &Options<'_, P>,
        interlock: &mut Held<I>,
    ) -> Result<(), Failure> {
        let me = P::thread_id();
        P::in_slow_path(|| {
            if holder_of(self.word.load(Relaxed)) == Holder::Thread(me) {
                debug_assert!(false, "drains a lock that it holds");
                return Err(Failure::Deadlock);
            }
            let mut spinning = Spinning::default();
            loop {
                // With other values `attempt` does not use it.
                let seen = if T::cas_value() == CasValue::Found { self.word.load(Relaxed) } else { FREE };
                match self.attempt(me, seen) {
                    Ok(()) => return Ok(()),
                    // The exchange failed spuriously.
                    Err(FREE) => continue,
                    Err(_) => P::count(LockEvent::Slowpath),
                }
                if !options.sleeps {
                    return Err(Failure::Busy);
                }
                interlock.release();
                self.sleep_to_drain(&mut spinning);
            }
        })
    }

    /// Sleeps in the chain. Wakes the waiters instead if the lock is free. Does neither if there is
    /// reason to look again.
    fn sleep_to_drain(&self, spinning: &mut Spinning) {
        let chain = lock_chain::<P, _>(self);
        let mut seen = self.word.load(Relaxed);
        loop {
            if seen == FREE {
                return chain.cancel();
            }
            if is_free(seen) {
                return self.let_in(seen, chain, spinning);
            }
            if seen & EXCLUSIVE_WAITERS != 0 {
                break;
            }
            // Relaxed: an unlock that sees the bit locks the chain, which orders the two. An unlock
            // that does not see it makes this exchange fail.
            match self.word.exchange::<T>(seen, seen | EXCLUSIVE_WAITERS, Relaxed) {
                Ok(()) => break,
                Err(found) => seen = self.word.after_failure::<T>(found),
            }
            if T::waiter_cas_fail() == WaiterCasFail::Restart {
                return chain.restart();
            }
        }
        chain.sleep(Queue::Exclusive);
        *spinning = Spinning::default();
    }

    /// 0 with waiters -> 0: wakes them, and gives them some time to lock.
    fn let_in(&self, seen: u64, chain: Locked<'_, P>, spinning: &mut Spinning) {
        let wakes = Self::next(seen, &chain, self.sleep_failers.load(Relaxed));
        // Relaxed: the thread that locks next synchronises with the last holder's Release, since
        // this exchange continues its release sequence.
        if self.word.exchange::<T>(seen, wakes.left, Relaxed).is_err() {
            return;
        }
        self.sleep_failers.store(0, Relaxed);
        Self::wake(&wakes, chain);
        // Each look brings the cache line here. So the looks become less and less frequent.
        while self.word.load(Relaxed) == FREE && !spinning.is_over::<P>() {
            spinning.delay::<P, T>();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::freebsd::lockmgr::{SHARED_WAITERS, SHARER};
    use crate::freebsd::sleepers::{is_awake, sleeper_at};
    use crate::testing::OneThread;

    /// The word that the drain has seen is stale: a sharer has locked since.
    #[test]
    fn a_drain_wakes_no_thread_if_a_newcomer_takes_the_free_lock() {
        let lock = LockMgr::<OneThread>::default();
        let sleeper = sleeper_at(&lock, Queue::Shared);
        lock.sleep_failers.store(1, Relaxed);
        lock.word.store(SHARER | SHARED_WAITERS, Relaxed);
        lock.let_in(SHARED_WAITERS, lock_chain(&lock), &mut Spinning::default());
        assert_eq!(lock.word.load(Relaxed), SHARER | SHARED_WAITERS);
        assert_eq!(lock.sleep_failers.load(Relaxed), 1);
        assert!(!is_awake(sleeper));
        // The drain has unlocked the chain.
        lock_chain::<OneThread, _>(&lock).wake_all(Queue::Shared);
        assert!(is_awake(sleeper));
    }
}
