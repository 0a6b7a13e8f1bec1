//! Recursive reads of [`RwLock`](super::RwLock), and the lock whose reads all are.

use std::time::{Duration, Instant};

use nearlock_core::parking::Limit;
use nearlock_os::Os;

use super::{RawRwLock, RwLock, RwLockReadGuard};
use crate::lock_api::{
    self, GuardNoSend, RawRwLockDowngrade, RawRwLockFair, RawRwLockTimed, RawRwLockUpgrade,
    RawRwLockUpgradeDowngrade, RawRwLockUpgradeFair, RawRwLockUpgradeTimed,
};
use crate::raw::timed::{until, within};

impl RawRwLock {
    #[inline]
    pub(super) fn lock_recursive_within(&self, limit: &Limit<'_, Os>) -> bool {
        // SAFETY: the caller, in this module, makes a guard of it.
        unsafe { self.0.lock_shared_recursive_within(limit) }.is_ok()
    }

    #[inline]
    pub(super) fn try_lock_recursive(&self) -> bool {
        // SAFETY: as above.
        unsafe { self.0.try_lock_shared_recursive() }
    }
}

/// Reads a [`RwLock`] recursively: the read waits for a writer that has the lock, and not for one
/// that waits for readers.
///
/// A thread that reads may read again by [`read`](RwLock::read) too, and does not wait then. A
/// recursive read helps if the reads are of different threads: one of them reads, and waits for
/// another one that reads too. A writer that waits in between would stop both.
///
/// Waiting: a writer spins before it waits for readers. A recursive read that comes at that moment
/// may take 0.5 ms longer, and longer if it has waited for writers that had the lock before.
///
/// Fairness: recursive reads that follow each other closely keep writers out for ever.
///
/// `parking_lot` 0.12 has such reads as methods of its lock. Version 0.13 has a lock whose reads are
/// all recursive, [`RecursiveRwLock`](super::RecursiveRwLock).
///
/// ```
/// use nearlock::{ReadRecursive, RwLock};
///
/// let config = RwLock::new(7);
/// let read = config.read();
/// std::thread::scope(|scope| {
///     let writer = scope.spawn(|| *config.write() = 8);
///     let helper = scope.spawn(|| *config.read_recursive());
///     assert_eq!(helper.join().unwrap(), 7, "the writer waits for us");
///     drop(read);
///     writer.join().unwrap();
/// });
/// ```
pub trait ReadRecursive {
    /// The guard that gives shared access to the data.
    type Guard<'a>
    where
        Self: 'a;

    /// Locks for reading, recursively.
    fn read_recursive(&self) -> Self::Guard<'_>;

    /// The same, without waiting. It fails if a writer has the lock. It may fail if a writer has
    /// just begun to wait for readers.
    fn try_read_recursive(&self) -> Option<Self::Guard<'_>>;

    /// Locks for reading, recursively. Waits for this time at most.
    fn try_read_recursive_for(&self, timeout: Duration) -> Option<Self::Guard<'_>>;

    /// Locks for reading, recursively. Waits until this moment at most.
    fn try_read_recursive_until(&self, timeout: Instant) -> Option<Self::Guard<'_>>;
}

impl<T: ?Sized> ReadRecursive for RwLock<T> {
    type Guard<'a>
        = RwLockReadGuard<'a, T>
    where
        Self: 'a;

    #[inline]
    fn read_recursive(&self) -> RwLockReadGuard<'_, T> {
        // SAFETY: the raw lock is only locked here, and the guard unlocks it. The same holds below.
        // Without a limit it returns only with the lock.
        unsafe { self.raw() }.lock_recursive_within(&Limit::NONE);
        // SAFETY: locked above.
        unsafe { self.make_read_guard_unchecked(GuardNoSend::new()) }
    }

    #[inline]
    fn try_read_recursive(&self) -> Option<RwLockReadGuard<'_, T>> {
        // SAFETY: as above.
        let is_locked = unsafe { self.raw() }.try_lock_recursive();
        // SAFETY: as above.
        is_locked.then(|| unsafe { self.make_read_guard_unchecked(GuardNoSend::new()) })
    }

    #[inline]
    fn try_read_recursive_for(&self, timeout: Duration) -> Option<RwLockReadGuard<'_, T>> {
        // SAFETY: as above.
        let is_locked = unsafe { self.raw() }.lock_recursive_within(&within(timeout));
        // SAFETY: as above.
        is_locked.then(|| unsafe { self.make_read_guard_unchecked(GuardNoSend::new()) })
    }

    #[inline]
    fn try_read_recursive_until(&self, timeout: Instant) -> Option<RwLockReadGuard<'_, T>> {
        // SAFETY: as above.
        let is_locked = unsafe { self.raw() }.lock_recursive_within(&until(timeout));
        // SAFETY: as above.
        is_locked.then(|| unsafe { self.make_read_guard_unchecked(GuardNoSend::new()) })
    }
}

/// The raw lock of [`RecursiveRwLock`](super::RecursiveRwLock): a [`RawRwLock`] whose shared
/// acquisitions are all recursive.
#[derive(Default)]
#[repr(transparent)]
pub struct RawRwLockRecursive(pub(crate) RawRwLock);

// SAFETY: it is the lock inside, whose recursive readers exclude writers as others do.
unsafe impl lock_api::RawRwLock for RawRwLockRecursive {
    #[allow(clippy::declare_interior_mutable_const)] // as in the trait
    const INIT: Self = Self(<RawRwLock as lock_api::RawRwLock>::INIT);
    type SharedGuard = GuardNoSend;
    type ExclusiveGuard = GuardNoSend;

    #[inline]
    fn lock_shared(&self) -> GuardNoSend {
        // Without a limit it returns only with the lock.
        self.0.lock_recursive_within(&Limit::NONE);
        GuardNoSend::new()
    }

    #[inline]
    fn try_lock_shared(&self) -> Option<GuardNoSend> {
        self.0.try_lock_recursive().then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock_shared(&self, guard: GuardNoSend) {
        // SAFETY: upheld by the caller. The same holds below.
        unsafe { lock_api::RawRwLock::unlock_shared(&self.0, guard) };
    }

    #[inline]
    fn lock_exclusive(&self) -> GuardNoSend {
        lock_api::RawRwLock::lock_exclusive(&self.0)
    }

    #[inline]
    fn try_lock_exclusive(&self) -> Option<GuardNoSend> {
        lock_api::RawRwLock::try_lock_exclusive(&self.0)
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, guard: GuardNoSend) {
        // SAFETY: as above.
        unsafe { lock_api::RawRwLock::unlock_exclusive(&self.0, guard) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        lock_api::RawRwLock::is_locked(&self.0)
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        lock_api::RawRwLock::is_locked_exclusive(&self.0)
    }
}

// SAFETY: as above.
unsafe impl RawRwLockFair for RawRwLockRecursive {
    #[inline]
    unsafe fn unlock_shared_fair(&self, guard: GuardNoSend) {
        // SAFETY: as above.
        unsafe { self.0.unlock_shared_fair(guard) };
    }

    #[inline]
    unsafe fn unlock_exclusive_fair(&self, guard: GuardNoSend) {
        // SAFETY: as above.
        unsafe { self.0.unlock_exclusive_fair(guard) };
    }

    #[inline]
    unsafe fn bump_exclusive(&self, guard: &mut GuardNoSend) {
        // SAFETY: as above.
        unsafe { self.0.bump_exclusive(guard) };
    }
}

// SAFETY: as above.
unsafe impl RawRwLockDowngrade for RawRwLockRecursive {
    #[inline]
    unsafe fn downgrade(&self, guard: GuardNoSend) -> GuardNoSend {
        // SAFETY: as above.
        unsafe { RawRwLockDowngrade::downgrade(&self.0, guard) }
    }
}

// SAFETY: as above.
unsafe impl RawRwLockTimed for RawRwLockRecursive {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    fn try_lock_shared_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.0.lock_recursive_within(&within(timeout)).then(GuardNoSend::new)
    }

    #[inline]
    fn try_lock_shared_until(&self, timeout: Instant) -> Option<GuardNoSend> {
        self.0.lock_recursive_within(&until(timeout)).then(GuardNoSend::new)
    }

    #[inline]
    fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        RawRwLockTimed::try_lock_exclusive_for(&self.0, timeout)
    }

    #[inline]
    fn try_lock_exclusive_until(&self, timeout: Instant) -> Option<GuardNoSend> {
        RawRwLockTimed::try_lock_exclusive_until(&self.0, timeout)
    }
}

// SAFETY: as above.
unsafe impl RawRwLockUpgrade for RawRwLockRecursive {
    type UpgradableGuard = GuardNoSend;

    #[inline]
    fn lock_upgradable(&self) -> GuardNoSend {
        RawRwLockUpgrade::lock_upgradable(&self.0)
    }

    #[inline]
    fn try_lock_upgradable(&self) -> Option<GuardNoSend> {
        RawRwLockUpgrade::try_lock_upgradable(&self.0)
    }

    #[inline]
    unsafe fn unlock_upgradable(&self, guard: GuardNoSend) {
        // SAFETY: as above.
        unsafe { RawRwLockUpgrade::unlock_upgradable(&self.0, guard) };
    }

    #[inline]
    unsafe fn upgrade(&self, guard: GuardNoSend) -> GuardNoSend {
        // SAFETY: as above.
        unsafe { RawRwLockUpgrade::upgrade(&self.0, guard) }
    }

    #[inline]
    unsafe fn try_upgrade(&self, guard: GuardNoSend) -> Result<GuardNoSend, GuardNoSend> {
        // SAFETY: as above.
        unsafe { RawRwLockUpgrade::try_upgrade(&self.0, guard) }
    }
}

// SAFETY: as above.
unsafe impl RawRwLockUpgradeFair for RawRwLockRecursive {
    #[inline]
    unsafe fn unlock_upgradable_fair(&self, guard: GuardNoSend) {
        // SAFETY: as above.
        unsafe { self.0.unlock_upgradable_fair(guard) };
    }
}

// SAFETY: as above.
unsafe impl RawRwLockUpgradeDowngrade for RawRwLockRecursive {
    #[inline]
    unsafe fn downgrade_upgradable(&self, guard: GuardNoSend) -> GuardNoSend {
        // SAFETY: as above.
        unsafe { RawRwLockUpgradeDowngrade::downgrade_upgradable(&self.0, guard) }
    }

    #[inline]
    unsafe fn downgrade_to_upgradable(&self, guard: GuardNoSend) -> GuardNoSend {
        // SAFETY: as above.
        unsafe { RawRwLockUpgradeDowngrade::downgrade_to_upgradable(&self.0, guard) }
    }
}

// SAFETY: as above.
unsafe impl RawRwLockUpgradeTimed for RawRwLockRecursive {
    #[inline]
    fn try_lock_upgradable_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        RawRwLockUpgradeTimed::try_lock_upgradable_for(&self.0, timeout)
    }

    #[inline]
    fn try_lock_upgradable_until(&self, timeout: Instant) -> Option<GuardNoSend> {
        RawRwLockUpgradeTimed::try_lock_upgradable_until(&self.0, timeout)
    }

    #[inline]
    unsafe fn try_upgrade_for(
        &self,
        guard: GuardNoSend,
        timeout: Duration,
    ) -> Result<GuardNoSend, GuardNoSend> {
        // SAFETY: as above.
        unsafe { RawRwLockUpgradeTimed::try_upgrade_for(&self.0, guard, timeout) }
    }

    #[inline]
    unsafe fn try_upgrade_until(
        &self,
        guard: GuardNoSend,
        timeout: Instant,
    ) -> Result<GuardNoSend, GuardNoSend> {
        // SAFETY: as above.
        unsafe { RawRwLockUpgradeTimed::try_upgrade_until(&self.0, guard, timeout) }
    }
}
