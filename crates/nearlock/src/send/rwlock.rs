//! The raw reader-writer lock.

use std::time::{Duration, Instant};

use nearlock_core::near::rwlock::NearRwLock;
use nearlock_core::parking::{Limit, RawTimedLock as _};
use nearlock_core::raw::{RawLock as _, RawRwLock as _, RawTryLock as _};
use nearlock_os::Os;

use crate::lock_api::{self, GuardSend};
use crate::near::RawReadRecursive;
use crate::raw::timed::{until, within};

/// The raw lock of [`RwLock`](super::RwLock), for code that is generic over `lock_api`'s
/// `RawRwLock` and the traits that extend it.
///
/// ```
/// use nearlock::lock_api::RwLock;
/// use nearlock::send::RawRwLock;
///
/// let lock = RwLock::<RawRwLock, u32>::new(1);
/// assert_eq!(*lock.read(), 1);
/// ```
#[derive(Default)]
#[repr(transparent)]
pub struct RawRwLock(NearRwLock<Os>);

fn guard(is_locked: bool) -> Option<GuardSend> {
    is_locked.then(GuardSend::new)
}

fn upgraded(is_upgraded: bool, guard: GuardSend) -> Result<GuardSend, GuardSend> {
    if is_upgraded { Ok(guard) } else { Err(guard) }
}

impl RawRwLock {
    fn shared_within(&self, limit: &Limit<'_, Os>) -> Option<GuardSend> {
        // SAFETY: the guard releases it. The same holds below.
        guard(unsafe { self.0.lock_shared_counted_within(limit) }.is_ok())
    }

    fn recursively_within(&self, limit: &Limit<'_, Os>) -> Option<GuardSend> {
        // SAFETY: as above.
        guard(unsafe { self.0.lock_shared_recursive_counted_within(limit) }.is_ok())
    }

    fn exclusive_within(&self, limit: &Limit<'_, Os>) -> Option<GuardSend> {
        // SAFETY: as above.
        guard(unsafe { self.0.lock_within(&(), limit) }.is_ok())
    }

    fn upgradable_within(&self, limit: &Limit<'_, Os>) -> Option<GuardSend> {
        // SAFETY: as above.
        guard(unsafe { self.0.lock_upgradable_within(limit) }.is_ok())
    }
}

// SAFETY: the lock provides exclusion and orderings. A release depends on the thread only for
// shared acquisitions that are noted in its line, and here all are counted. Exclusive and
// upgradable ones hold the mutex, which any thread may release: its word names the holder, but no
// condition variable has this mutex. The guard states own nothing. A lock that is held, and for
// which no thread waits, may be moved or dropped (`Unlocked`). The lock's operations do not unwind.
// The same holds for all traits below.
unsafe impl lock_api::RawRwLock for RawRwLock {
    #[allow(clippy::declare_interior_mutable_const)] // as in the trait
    const INIT: Self = Self(NearRwLock::new());
    type SharedGuard = GuardSend;
    type ExclusiveGuard = GuardSend;

    #[inline]
    fn lock_shared(&self) -> GuardSend {
        // Without a limit it returns only with the lock.
        // SAFETY: the guard releases it. The same holds below.
        _ = unsafe { self.0.lock_shared_counted_within(&Limit::NONE) };
        GuardSend::new()
    }

    #[inline]
    fn try_lock_shared(&self) -> Option<GuardSend> {
        // SAFETY: as above.
        guard(unsafe { self.0.try_lock_shared_counted() })
    }

    #[inline]
    unsafe fn unlock_shared(&self, _guard: GuardSend) {
        // SAFETY: the caller has the guard of an acquisition. The same holds below.
        unsafe { self.0.unlock_shared_counted() };
    }

    #[inline]
    fn lock_exclusive(&self) -> GuardSend {
        // SAFETY: as above.
        unsafe { self.0.lock(&()) };
        GuardSend::new()
    }

    #[inline]
    fn try_lock_exclusive(&self) -> Option<GuardSend> {
        // SAFETY: as above.
        guard(unsafe { self.0.try_lock(&()) })
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, _guard: GuardSend) {
        // SAFETY: as above.
        unsafe { self.0.unlock(&()) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.0.is_locked_exclusive()
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockDowngrade for RawRwLock {
    unsafe fn downgrade(&self, guard: GuardSend) -> GuardSend {
        // SAFETY: as above.
        unsafe { self.0.downgrade_counted() };
        guard
    }
}

// SAFETY: as above. A waiter that gives up has no acquisition.
unsafe impl lock_api::RawRwLockTimed for RawRwLock {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_shared_for(&self, timeout: Duration) -> Option<GuardSend> {
        self.shared_within(&within(timeout))
    }

    fn try_lock_shared_until(&self, timeout: Instant) -> Option<GuardSend> {
        self.shared_within(&until(timeout))
    }

    fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<GuardSend> {
        self.exclusive_within(&within(timeout))
    }

    fn try_lock_exclusive_until(&self, timeout: Instant) -> Option<GuardSend> {
        self.exclusive_within(&until(timeout))
    }
}

// SAFETY: as above. Recursive readers exclude writers as others do.
unsafe impl RawReadRecursive for RawRwLock {
    #[inline]
    fn lock_shared_recursive(&self) -> GuardSend {
        // Without a limit it returns only with the lock.
        _ = self.recursively_within(&Limit::NONE);
        GuardSend::new()
    }

    #[inline]
    fn try_lock_shared_recursive(&self) -> Option<GuardSend> {
        // SAFETY: as above.
        guard(unsafe { self.0.try_lock_shared_recursive_counted() })
    }

    fn try_lock_shared_recursive_for(&self, timeout: Duration) -> Option<GuardSend> {
        self.recursively_within(&within(timeout))
    }

    fn try_lock_shared_recursive_until(&self, timeout: Instant) -> Option<GuardSend> {
        self.recursively_within(&until(timeout))
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockFair for RawRwLock {
    unsafe fn unlock_shared_fair(&self, _guard: GuardSend) {
        // A writer that waits is the next to enter.
        // SAFETY: as above.
        unsafe { self.0.unlock_shared_counted() };
    }

    unsafe fn unlock_exclusive_fair(&self, _guard: GuardSend) {
        // SAFETY: as above.
        unsafe { self.0.unlock_fair() };
    }

    unsafe fn bump_exclusive(&self, _guard: &mut GuardSend) {
        // SAFETY: as above.
        unsafe { self.0.bump() };
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockUpgrade for RawRwLock {
    type UpgradableGuard = GuardSend;

    fn lock_upgradable(&self) -> GuardSend {
        // SAFETY: as above.
        _ = unsafe { self.0.lock_upgradable_within(&Limit::NONE) };
        GuardSend::new()
    }

    fn try_lock_upgradable(&self) -> Option<GuardSend> {
        // SAFETY: as above.
        guard(unsafe { self.0.try_lock_upgradable() })
    }

    unsafe fn unlock_upgradable(&self, _guard: GuardSend) {
        // SAFETY: as above.
        unsafe { self.0.unlock_upgradable() };
    }

    unsafe fn upgrade(&self, guard: GuardSend) -> GuardSend {
        // SAFETY: as above.
        _ = unsafe { self.0.upgrade_within(&Limit::NONE) };
        guard
    }

    unsafe fn try_upgrade(&self, guard: GuardSend) -> Result<GuardSend, GuardSend> {
        // SAFETY: as above.
        upgraded(unsafe { self.0.try_upgrade() }, guard)
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockUpgradeFair for RawRwLock {
    unsafe fn unlock_upgradable_fair(&self, _guard: GuardSend) {
        // SAFETY: as above.
        unsafe { self.0.unlock_upgradable_fair() };
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockUpgradeDowngrade for RawRwLock {
    unsafe fn downgrade_upgradable(&self, guard: GuardSend) -> GuardSend {
        // SAFETY: as above.
        unsafe { self.0.downgrade_upgradable_counted() };
        guard
    }

    unsafe fn downgrade_to_upgradable(&self, guard: GuardSend) -> GuardSend {
        // SAFETY: as above.
        unsafe { self.0.downgrade_to_upgradable() };
        guard
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockUpgradeTimed for RawRwLock {
    fn try_lock_upgradable_for(&self, timeout: Duration) -> Option<GuardSend> {
        self.upgradable_within(&within(timeout))
    }

    fn try_lock_upgradable_until(&self, timeout: Instant) -> Option<GuardSend> {
        self.upgradable_within(&until(timeout))
    }

    unsafe fn try_upgrade_for(&self, guard: GuardSend, timeout: Duration) -> Result<GuardSend, GuardSend> {
        // SAFETY: as above.
        upgraded(unsafe { self.0.upgrade_within(&within(timeout)) }.is_ok(), guard)
    }

    unsafe fn try_upgrade_until(&self, guard: GuardSend, timeout: Instant) -> Result<GuardSend, GuardSend> {
        // SAFETY: as above.
        upgraded(unsafe { self.0.upgrade_within(&until(timeout)) }.is_ok(), guard)
    }
}
