//! The raw lock of [`RwLock`](super::RwLock).

use std::time::{Duration, Instant};

use nearlock_core::near::rwlock::NearRwLock;
use nearlock_core::parking::Limit;
use nearlock_os::Os;

use crate::lock_api::{self, GuardNoSend};
use crate::raw::Nodeless;
use crate::raw::timed::{until, within};

/// The raw lock of [`RwLock`](super::RwLock), for code that is generic over `lock_api`'s
/// `RawRwLock` and the traits that extend it.
pub type RawRwLock = Nodeless<NearRwLock<Os>>;

// SAFETY: the lock provides exclusion and orderings.
unsafe impl lock_api::RawRwLockFair for RawRwLock {
    #[inline]
    unsafe fn unlock_shared_fair(&self, _guard: GuardNoSend) {
        // SAFETY: upheld by the caller. The same holds below.
        unsafe { self.0.unlock_shared_fair() };
    }

    #[inline]
    unsafe fn unlock_exclusive_fair(&self, _guard: GuardNoSend) {
        // SAFETY: as above.
        unsafe { self.0.unlock_fair() };
    }

    #[inline]
    unsafe fn bump_exclusive(&self, _guard: &mut GuardNoSend) {
        // SAFETY: as above.
        unsafe { self.0.bump() };
    }
}

// SAFETY: there is one upgradable acquisition at a time, and no exclusive one beside it.
unsafe impl lock_api::RawRwLockUpgrade for RawRwLock {
    type UpgradableGuard = GuardNoSend;

    #[inline]
    fn lock_upgradable(&self) -> GuardNoSend {
        // Without a limit it returns only with the lock.
        // SAFETY: the guard releases it. The same holds below.
        _ = unsafe { self.0.lock_upgradable_within(&Limit::NONE) };
        GuardNoSend::new()
    }

    #[inline]
    fn try_lock_upgradable(&self) -> Option<GuardNoSend> {
        // SAFETY: as above.
        unsafe { self.0.try_lock_upgradable() }.then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock_upgradable(&self, _guard: GuardNoSend) {
        // SAFETY: the caller has an upgradable acquisition. The same holds below.
        unsafe { self.0.unlock_upgradable() };
    }

    #[inline]
    unsafe fn upgrade(&self, guard: GuardNoSend) -> GuardNoSend {
        // SAFETY: as above.
        _ = unsafe { self.0.upgrade_within(&Limit::NONE) };
        guard
    }

    #[inline]
    unsafe fn try_upgrade(&self, guard: GuardNoSend) -> Result<GuardNoSend, GuardNoSend> {
        // SAFETY: as above.
        if unsafe { self.0.try_upgrade() } { Ok(guard) } else { Err(guard) }
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockUpgradeFair for RawRwLock {
    #[inline]
    unsafe fn unlock_upgradable_fair(&self, _guard: GuardNoSend) {
        // SAFETY: as above.
        unsafe { self.0.unlock_upgradable_fair() };
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockUpgradeDowngrade for RawRwLock {
    #[inline]
    unsafe fn downgrade_upgradable(&self, guard: GuardNoSend) -> GuardNoSend {
        // SAFETY: as above.
        unsafe { self.0.downgrade_upgradable() };
        guard
    }

    #[inline]
    unsafe fn downgrade_to_upgradable(&self, guard: GuardNoSend) -> GuardNoSend {
        // SAFETY: the caller holds the lock exclusively.
        unsafe { self.0.downgrade_to_upgradable() };
        guard
    }
}

impl RawRwLock {
    #[inline]
    fn upgradable_within(&self, limit: &Limit<'_, Os>) -> Option<GuardNoSend> {
        // SAFETY: the guard releases it.
        unsafe { self.0.lock_upgradable_within(limit) }.is_ok().then(GuardNoSend::new)
    }

    /// Safety: the caller has an upgradable acquisition.
    #[inline]
    unsafe fn upgraded_within(
        &self,
        guard: GuardNoSend,
        limit: &Limit<'_, Os>,
    ) -> Result<GuardNoSend, GuardNoSend> {
        // SAFETY: upheld by the caller.
        if unsafe { self.0.upgrade_within(limit) }.is_ok() { Ok(guard) } else { Err(guard) }
    }
}

// SAFETY: a waiter that gives up has no new acquisition, and keeps the one it had.
unsafe impl lock_api::RawRwLockUpgradeTimed for RawRwLock {
    #[inline]
    fn try_lock_upgradable_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.upgradable_within(&within(timeout))
    }

    #[inline]
    fn try_lock_upgradable_until(&self, timeout: Instant) -> Option<GuardNoSend> {
        self.upgradable_within(&until(timeout))
    }

    #[inline]
    unsafe fn try_upgrade_for(
        &self,
        guard: GuardNoSend,
        timeout: Duration,
    ) -> Result<GuardNoSend, GuardNoSend> {
        // SAFETY: upheld by the caller. The same holds below.
        unsafe { self.upgraded_within(guard, &within(timeout)) }
    }

    #[inline]
    unsafe fn try_upgrade_until(
        &self,
        guard: GuardNoSend,
        timeout: Instant,
    ) -> Result<GuardNoSend, GuardNoSend> {
        // SAFETY: as above.
        unsafe { self.upgraded_within(guard, &until(timeout)) }
    }
}
