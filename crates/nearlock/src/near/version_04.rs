//! The raw locks of this module as those of `lock_api` 0.4. A panic in an acquisition ends the
//! process, as in [`raw`](crate::raw).

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use lock_api_04::{
    GetThreadId, GuardNoSend, RawMutexFair, RawMutexTimed, RawRwLockFair, RawRwLockRecursive,
    RawRwLockRecursiveTimed, RawRwLockUpgrade, RawRwLockUpgradeDowngrade, RawRwLockUpgradeFair,
    RawRwLockUpgradeTimed,
};
use nearlock_core::near::NearPlatform;
use nearlock_core::near::mutex::NearMutex;
use nearlock_core::parking::Limit;
use nearlock_core::unwinding::without_unwinding;

use super::{RawFairMutex, RawMutex, RawRwLock, RawThreadId};
use crate::raw::Nodeless;
use crate::raw::timed::{until, within};

// SAFETY: as for version 0.5. The same holds for all of this file.
unsafe impl GetThreadId for RawThreadId {
    const INIT: Self = Self;

    #[inline]
    fn nonzero_thread_id(&self) -> NonZeroUsize {
        Self::of_caller()
    }
}

// SAFETY: as for version 0.5.
unsafe impl<P: NearPlatform> RawMutexFair for Nodeless<NearMutex<P>> {
    #[inline]
    unsafe fn unlock_fair(&self) {
        // SAFETY: upheld by the caller. The same holds below.
        unsafe { self.0.unlock_fair() };
    }
}

// SAFETY: as for version 0.5.
unsafe impl lock_api_04::RawMutex for RawFairMutex {
    #[allow(clippy::declare_interior_mutable_const)] // as in the trait
    const INIT: Self = Self(<RawMutex as lock_api_04::RawMutex>::INIT);
    type GuardMarker = GuardNoSend;

    #[inline]
    fn lock(&self) {
        lock_api_04::RawMutex::lock(&self.0);
    }

    #[inline]
    fn try_lock(&self) -> bool {
        lock_api_04::RawMutex::try_lock(&self.0)
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: as above.
        unsafe { RawMutexFair::unlock_fair(&self.0) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        lock_api_04::RawMutex::is_locked(&self.0)
    }
}

// SAFETY: as for version 0.5.
unsafe impl RawMutexFair for RawFairMutex {
    #[inline]
    unsafe fn unlock_fair(&self) {
        // SAFETY: as above.
        unsafe { RawMutexFair::unlock_fair(&self.0) };
    }
}

// SAFETY: as for version 0.5.
unsafe impl RawMutexTimed for RawFairMutex {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_for(&self, timeout: Duration) -> bool {
        RawMutexTimed::try_lock_for(&self.0, timeout)
    }

    fn try_lock_until(&self, timeout: Instant) -> bool {
        RawMutexTimed::try_lock_until(&self.0, timeout)
    }
}

// SAFETY: as for version 0.5.
unsafe impl RawRwLockFair for RawRwLock {
    #[inline]
    unsafe fn unlock_shared_fair(&self) {
        // SAFETY: as above.
        unsafe { self.0.unlock_shared_fair() };
    }

    #[inline]
    unsafe fn unlock_exclusive_fair(&self) {
        // SAFETY: as above.
        unsafe { self.0.unlock_fair() };
    }

    unsafe fn bump_exclusive(&self) {
        // SAFETY: as above.
        without_unwinding(|| unsafe { self.0.bump() });
    }
}

// SAFETY: as for version 0.5.
unsafe impl RawRwLockRecursive for RawRwLock {
    fn lock_shared_recursive(&self) {
        // Without a limit it returns only with the lock.
        without_unwinding(|| self.lock_recursive_within(&Limit::NONE));
    }

    fn try_lock_shared_recursive(&self) -> bool {
        self.try_lock_recursive()
    }
}

// SAFETY: as for version 0.5.
unsafe impl RawRwLockRecursiveTimed for RawRwLock {
    fn try_lock_shared_recursive_for(&self, timeout: Duration) -> bool {
        self.lock_recursive_within(&within(timeout))
    }

    fn try_lock_shared_recursive_until(&self, timeout: Instant) -> bool {
        self.lock_recursive_within(&until(timeout))
    }
}

// SAFETY: as for version 0.5.
unsafe impl RawRwLockUpgrade for RawRwLock {
    #[inline]
    fn lock_upgradable(&self) {
        // Without a limit it returns only with the lock.
        // SAFETY: the guard releases it. The same holds below.
        _ = without_unwinding(|| unsafe { self.0.lock_upgradable_within(&Limit::NONE) });
    }

    #[inline]
    fn try_lock_upgradable(&self) -> bool {
        // SAFETY: as above.
        unsafe { self.0.try_lock_upgradable() }
    }

    #[inline]
    unsafe fn unlock_upgradable(&self) {
        // SAFETY: the caller has an upgradable acquisition. The same holds below.
        unsafe { self.0.unlock_upgradable() };
    }

    #[inline]
    unsafe fn upgrade(&self) {
        // SAFETY: as above.
        _ = without_unwinding(|| unsafe { self.0.upgrade_within(&Limit::NONE) });
    }

    #[inline]
    unsafe fn try_upgrade(&self) -> bool {
        // SAFETY: as above.
        unsafe { self.0.try_upgrade() }
    }
}

// SAFETY: as for version 0.5.
unsafe impl RawRwLockUpgradeFair for RawRwLock {
    #[inline]
    unsafe fn unlock_upgradable_fair(&self) {
        // SAFETY: as above.
        unsafe { self.0.unlock_upgradable_fair() };
    }
}

// SAFETY: as for version 0.5.
unsafe impl RawRwLockUpgradeDowngrade for RawRwLock {
    #[inline]
    unsafe fn downgrade_upgradable(&self) {
        // SAFETY: as above.
        unsafe { self.0.downgrade_upgradable() };
    }

    #[inline]
    unsafe fn downgrade_to_upgradable(&self) {
        // SAFETY: the caller holds the lock exclusively.
        unsafe { self.0.downgrade_to_upgradable() };
    }
}

// SAFETY: as for version 0.5.
unsafe impl RawRwLockUpgradeTimed for RawRwLock {
    fn try_lock_upgradable_for(&self, timeout: Duration) -> bool {
        // SAFETY: as above.
        unsafe { self.0.lock_upgradable_within(&within(timeout)) }.is_ok()
    }

    fn try_lock_upgradable_until(&self, timeout: Instant) -> bool {
        // SAFETY: as above.
        unsafe { self.0.lock_upgradable_within(&until(timeout)) }.is_ok()
    }

    unsafe fn try_upgrade_for(&self, timeout: Duration) -> bool {
        // SAFETY: as above.
        unsafe { self.0.upgrade_within(&within(timeout)) }.is_ok()
    }

    unsafe fn try_upgrade_until(&self, timeout: Instant) -> bool {
        // SAFETY: as above.
        unsafe { self.0.upgrade_within(&until(timeout)) }.is_ok()
    }
}
