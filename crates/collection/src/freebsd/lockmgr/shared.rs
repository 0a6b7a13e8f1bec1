//! Sharers: how they lock, unlock and upgrade.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::options::{Bypass, Failure, Held, Interlock, Options};
use super::{
    EXCLUSIVE, EXCLUSIVE_WAITERS, FREE, Holder, LockMgr, SHARED_WAITERS, SHARER, WAITERS, holder_of, owned_by,
};
use crate::events::LockEvent;
use crate::freebsd::exchange::Exchange;
use crate::freebsd::spinning::Spinning;
use crate::freebsd::tuning::{SleepFailers, Tuning, WaiterCasFail};
use crate::freebsd::{FreeBsdPlatform, lock_chain};
use crate::parking::Limit;
use crate::parking::chain::Queue;
use crate::platform::{Atomic, Platform};
use crate::shared_holds::{self as holds, SharedLock};

const HOLDS: SharedLock = SharedLock::LockMgr;

/// Whether a thread may become a sharer. `goes_past`: it may overtake waiters.
const fn admits(seen: u64, goes_past: bool) -> bool {
    let kept_out = if goes_past { EXCLUSIVE } else { EXCLUSIVE | EXCLUSIVE_WAITERS };
    seen & kept_out == 0
}

const fn sharers_of(word: u64) -> u64 {
    match holder_of(word) {
        Holder::Sharers(sharers) => sharers,
        _ => 0,
    }
}

impl<P: Platform, T: Tuning> LockMgr<P, T> {
    /// s -> s+1, as long as sharers are admitted. If they are not, returns the word.
    #[inline(always)]
    fn add_sharer(&self, mut seen: u64, goes_past: bool) -> Result<(), u64> {
        while admits(seen, goes_past) {
            // Ordering: Acquire, pairs with the Releases of exclusive holders, in `release`,
            // `release_exclusive_slow`, `release_contested` and `downgrade_exclusive`: the last
            // holder's critical section happens before ours.
            match self.word.exchange::<T>(seen, seen + SHARER, Acquire) {
                Ok(()) => return Ok(()),
                Err(found) => seen = self.word.after_failure::<T>(found),
            }
        }
        Err(seen)
    }

    /// s -> s-1, unless that would leave waiters at a free lock. In that case returns the word.
    #[inline(always)]
    pub(super) fn drop_sharer(&self, mut seen: u64) -> Result<(), u64> {
        loop {
            debug_assert!(sharers_of(seen) > 0, "releases a lock that no thread holds");
            // No thread holds it exclusively, since the caller shares it.
            if seen < 2 * SHARER && seen & WAITERS != 0 {
                return Err(seen);
            }
            // Ordering: Release, pairs with the Acquires of the next exclusive holder: our critical
            // section happens before the holder's.
            match self.word.exchange::<T>(seen, seen - SHARER, Release) {
                Ok(()) => return Ok(()),
                Err(found) => seen = self.word.after_failure::<T>(found),
            }
        }
    }
}

impl<P: FreeBsdPlatform, T: Tuning> LockMgr<P, T> {
    #[inline(always)]
    pub(super) fn share<I: Interlock>(
        &self,
        options: &Options<'_, P>,
        interlock: &mut Held<I>,
    ) -> Result<(), Failure> {
        if let Err(seen) = self.add_sharer(self.word.load(Relaxed), false) {
            self.share_slow(seen, options, interlock)?;
        }
        holds::add::<P>(HOLDS);
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn share_slow<I: Interlock>(
        &self,
        mut seen: u64,
        options: &Options<'_, P>,
        interlock: &mut Held<I>,
    ) -> Result<(), Failure> {
        P::count(LockEvent::Slowpath);
        P::in_slow_path(|| {
            debug_assert!(holder_of(seen) != Holder::Destroyed, "acquires a lock that has been destroyed");
            if holder_of(seen) == Holder::Thread(P::thread_id()) {
                return Err(Failure::Deadlock);
            }
            let goes_past = match options.bypass {
                Bypass::Holders => holds::any::<P>(HOLDS),
                Bypass::Nobody => false,
                Bypass::Caller => true,
            };
            let limit = options.limit(&self.attributes());
            let mut spinning = Spinning::default();
            loop {
                match self.add_sharer(seen, goes_past) {
                    Ok(()) => return Ok(()),
                    Err(now) => seen = now,
                }
                if Self::may_spin(options, interlock)
                    && let Some(now) = self.spin(seen, &mut spinning, |seen| admits(seen, goes_past))
                {
                    seen = now;
                    continue;
                }
                if !options.sleeps {
                    return Err(Failure::Busy);
                }
                interlock.release();
                seen = self.sleep_shared(goes_past, options, &limit)?;
                spinning = Spinning::default();
            }
        })
    }

    /// Sleeps in the chain, unless there is reason not to by now. Returns the word then.
    fn sleep_shared(
        &self,
        goes_past: bool,
        options: &Options<'_, P>,
        limit: &Limit<'_, P>,
    ) -> Result<u64, Failure> {
        let chain = lock_chain::<P, _>(self);
        let mut seen = self.word.load(Relaxed);
        loop {
            if admits(seen, goes_past) {
                chain.cancel();
                return Ok(seen);
            }
            if seen & SHARED_WAITERS != 0 {
                break;
            }
            // Relaxed: an unlock that sees the bit locks the chain, which orders the two. An unlock
            // that does not see it makes this exchange fail.
            match self.word.exchange::<T>(seen, seen | SHARED_WAITERS, Relaxed) {
                Ok(()) => break,
                Err(found) => seen = self.word.after_failure::<T>(found),
            }
            if T::waiter_cas_fail() == WaiterCasFail::Restart {
                chain.restart();
                return Ok(seen);
            }
        }
        self.sleep(chain, Queue::Shared, options, limit)?;
        Ok(self.word.load(Relaxed))
    }

    /// Unlocks, whether the lock is held shared or exclusively.
    #[inline(always)]
    pub(super) fn release(&self) {
        let seen = self.word.load(Relaxed);
        if seen & EXCLUSIVE == 0 {
            holds::remove::<P>(HOLDS);
            if self.drop_sharer(seen).is_err() {
                self.release_shared_slow();
            }
            return;
        }
        let owned = owned_by(P::thread_id());
        // Ordering: Release, pairs with the Acquires of the next holders: our critical section
        // happens before theirs.
        if seen != owned || self.word.exchange::<T>(owned, FREE, Release).is_err() {
            self.release_exclusive_slow();
        }
    }

    /// The last sharer unlocks, and threads wait.
    #[cold]
    #[inline(never)]
    pub(super) fn release_shared_slow(&self) {
        P::in_slow_path(|| {
            let chain = lock_chain::<P, _>(self);
            let mut seen = self.word.load(Relaxed);
            loop {
                let sleep_failers = self.sleep_failers.load(Relaxed);
                if T::lockmgr_sleep_failers() == SleepFailers::Forgotten {
                    self.sleep_failers.store(0, Relaxed);
                }
                match self.drop_sharer(seen) {
                    Ok(()) => return,
                    Err(now) => seen = now,
                }
                let wakes = Self::next(seen, &chain, sleep_failers);
                self.sleep_failers.store(0, Relaxed);
                // Ordering: Release, as in `drop_sharer`.
                match self.word.exchange::<T>(seen, wakes.left, Release) {
                    Ok(()) => return Self::wake(&wakes, chain),
                    Err(found) => seen = self.word.after_failure::<T>(found),
                }
                if T::lockmgr_sleep_failers() != SleepFailers::Forgotten {
                    self.sleep_failers.store(sleep_failers, Relaxed);
                }
            }
        });
    }

    /// Makes the caller's share an exclusive hold. If that fails, the share is lost.
    pub(super) fn upgrade<I: Interlock>(
        &self,
        options: &Options<'_, P>,
        interlock: &mut Held<I>,
    ) -> Result<(), Failure> {
        let mut seen = self.word.load(Relaxed);
        loop {
            match self.upgrade_sole(seen) {
                Ok(()) => return Ok(()),
                Err(now) => seen = now,
            }
            // s -> s-1, while others share it.
            // Ordering: Release, as in `drop_sharer`.
            match self.word.exchange::<T>(seen, seen - SHARER, Release) {
                Ok(()) => break,
                Err(found) => seen = self.word.after_failure::<T>(found),
            }
        }
        holds::remove::<P>(HOLDS);
        self.own_slow(P::thread_id(), FREE, options, interlock)
    }

    /// The same, if no other thread shares the lock.
    pub(super) fn try_upgrade(&self) -> Result<(), Failure> {
        self.upgrade_sole(self.word.load(Relaxed)).map_err(|_| Failure::Busy)
    }

    /// 1 -> t, past all waiters. Returns the word if others share the lock.
    fn upgrade_sole(&self, mut seen: u64) -> Result<(), u64> {
        debug_assert!(sharers_of(seen) > 0, "upgrades a lock that no thread shares");
        while sharers_of(seen) == 1 {
            // Ordering: Acquire, pairs with the Releases of sharers in `drop_sharer`: their
            // critical sections happen before ours.
            match self.word.exchange::<T>(seen, owned_by(P::thread_id()) | seen & WAITERS, Acquire) {
                Ok(()) => {
                    holds::remove::<P>(HOLDS);
                    return Ok(());
                }
                Err(found) => seen = self.word.after_failure::<T>(found),
            }
        }
        Err(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::freebsd::lockmgr::options::NoInterlock;
    use crate::testing::{OTHER, OneThread, acting, me};

    fn shared() -> LockMgr<OneThread> {
        let lock = LockMgr::default();
        assert_eq!(lock.share(&Options::new(), &mut Held::new(NoInterlock)), Ok(()));
        lock
    }

    /// The word that the upgrade has seen is stale: others have begun to wait since.
    #[test]
    fn an_upgrade_keeps_the_bits_of_threads_that_begin_to_wait() {
        let lock = shared();
        lock.word.fetch_or(WAITERS, Relaxed);
        assert_eq!(lock.upgrade_sole(SHARER), Ok(()));
        assert_eq!(lock.word.load(Relaxed), owned_by(me()) | WAITERS);
        lock.release();
        assert_eq!(lock.word.load(Relaxed), FREE);
    }

    /// The word that the upgrade has seen is stale: another thread shares the lock since.
    #[test]
    fn an_upgrade_does_not_go_past_a_sharer_that_comes_in() {
        let lock = shared();
        acting(OTHER, || lock.share(&Options::new(), &mut Held::new(NoInterlock))).unwrap();
        assert_eq!(lock.upgrade_sole(SHARER), Err(2 * SHARER));
        assert_eq!(lock.word.load(Relaxed), 2 * SHARER);
        acting(OTHER, || lock.release());
        lock.release();
        assert_eq!(lock.word.load(Relaxed), FREE);
    }
}
