//! The raw reader-writer lock.

use std::time::{Duration, Instant};

use nearlock_core::near::rwlock::NearRwLock;
use nearlock_core::raw::RawRwLock as _;
use nearlock_os::Os;

use super::Detected;
use super::known::Known;
use super::waits::{Awaited, Kind, wait};
use crate::lock_api::{self, GuardNoSend};
use crate::near::{self, RawReadRecursive};
use crate::raw::timed::{until, within};

/// The raw lock of [`RwLock`](super::RwLock).
pub type RawRwLock = Detected<NearRwLock<Os>>;

impl RawRwLock {
    fn awaited(&self) -> Awaited<'_> {
        Awaited { known: &self.known, closable: Some(&self.lock.0) }
    }

    fn noted_read(&self, is_locked: bool) -> Option<GuardNoSend> {
        is_locked.then(|| {
            self.known.note_read();
            GuardNoSend::new()
        })
    }

    fn noted_upgradable(&self, guard: Option<GuardNoSend>) -> Option<GuardNoSend> {
        guard.inspect(|_| self.known.note_upgradable())
    }

    fn noted_upgrade(&self, result: Result<GuardNoSend, GuardNoSend>) -> Result<GuardNoSend, GuardNoSend> {
        result.inspect(|_| self.known.note_exclusive())
    }

    #[inline]
    fn try_shared(&self) -> bool {
        // SAFETY: the node is (), which any number of acquisitions may share.
        unsafe { self.lock.0.try_lock_shared(&()) }
    }

    #[cold]
    #[inline(never)]
    fn lock_exclusive_slow(&self) {
        wait(self.awaited(), Kind::Exclusive, |limit| self.lock.lock_within(limit));
    }

    #[cold]
    #[inline(never)]
    fn lock_shared_recursive_slow(&self) {
        wait(self.awaited(), Kind::SharedRecursive, |limit| self.lock.lock_recursive_within(limit));
    }

    #[cold]
    #[inline(never)]
    fn lock_shared_slow(&self) {
        wait(self.awaited(), Kind::Shared, |limit| self.lock.lock_shared_within(limit));
    }
}

// SAFETY: it is the lock inside. The notes do not decide whether the lock is held. As there,
// nothing points into the lock unless a thread waits for it. The same holds for all traits below.
unsafe impl lock_api::RawRwLock for RawRwLock {
    #[allow(clippy::declare_interior_mutable_const)] // as in the trait
    const INIT: Self = Self { lock: <near::RawRwLock as lock_api::RawRwLock>::INIT, known: Known::new() };
    type SharedGuard = GuardNoSend;
    type ExclusiveGuard = GuardNoSend;

    #[inline]
    fn lock_shared(&self) -> GuardNoSend {
        if !self.try_shared() {
            self.lock_shared_slow();
        }
        self.known.note_read();
        GuardNoSend::new()
    }

    #[inline]
    fn try_lock_shared(&self) -> Option<GuardNoSend> {
        self.noted_read(self.try_shared())
    }

    #[inline]
    unsafe fn unlock_shared(&self, guard: GuardNoSend) {
        self.known.note_end_of_read();
        // SAFETY: upheld by the caller. The same holds below.
        unsafe { lock_api::RawRwLock::unlock_shared(&self.lock, guard) };
    }

    #[inline]
    fn lock_exclusive(&self) -> GuardNoSend {
        if !self.try_exclusive() {
            self.lock_exclusive_slow();
        }
        self.known.note_exclusive();
        GuardNoSend::new()
    }

    #[inline]
    fn try_lock_exclusive(&self) -> Option<GuardNoSend> {
        self.noted(self.try_exclusive())
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, guard: GuardNoSend) {
        self.known.note_release();
        // SAFETY: as above.
        unsafe { lock_api::RawRwLock::unlock_exclusive(&self.lock, guard) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        lock_api::RawRwLock::is_locked(&self.lock)
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        lock_api::RawRwLock::is_locked_exclusive(&self.lock)
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockDowngrade for RawRwLock {
    unsafe fn downgrade(&self, guard: GuardNoSend) -> GuardNoSend {
        self.known.note_release();
        self.known.note_read();
        // SAFETY: as above.
        unsafe { lock_api::RawRwLockDowngrade::downgrade(&self.lock, guard) }
    }
}

// SAFETY: as above. A wait with a limit ends by itself, so it is not in the list.
unsafe impl lock_api::RawRwLockTimed for RawRwLock {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_shared_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.noted_read(self.lock.lock_shared_within(&within(timeout)))
    }

    fn try_lock_shared_until(&self, timeout: Instant) -> Option<GuardNoSend> {
        self.noted_read(self.lock.lock_shared_within(&until(timeout)))
    }

    fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.noted(self.lock.lock_within(&within(timeout)))
    }

    fn try_lock_exclusive_until(&self, timeout: Instant) -> Option<GuardNoSend> {
        self.noted(self.lock.lock_within(&until(timeout)))
    }
}

// SAFETY: as above.
unsafe impl RawReadRecursive for RawRwLock {
    #[inline]
    fn lock_shared_recursive(&self) -> GuardNoSend {
        if !self.lock.try_lock_recursive() {
            self.lock_shared_recursive_slow();
        }
        self.known.note_read();
        GuardNoSend::new()
    }

    #[inline]
    fn try_lock_shared_recursive(&self) -> Option<GuardNoSend> {
        self.noted_read(self.lock.try_lock_recursive())
    }

    fn try_lock_shared_recursive_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.noted_read(self.lock.lock_recursive_within(&within(timeout)))
    }

    fn try_lock_shared_recursive_until(&self, timeout: Instant) -> Option<GuardNoSend> {
        self.noted_read(self.lock.lock_recursive_within(&until(timeout)))
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockFair for RawRwLock {
    unsafe fn unlock_shared_fair(&self, guard: GuardNoSend) {
        self.known.note_end_of_read();
        // SAFETY: as above.
        unsafe { lock_api::RawRwLockFair::unlock_shared_fair(&self.lock, guard) };
    }

    unsafe fn unlock_exclusive_fair(&self, guard: GuardNoSend) {
        self.known.note_release();
        // SAFETY: as above.
        unsafe { lock_api::RawRwLockFair::unlock_exclusive_fair(&self.lock, guard) };
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockUpgrade for RawRwLock {
    type UpgradableGuard = GuardNoSend;

    fn lock_upgradable(&self) -> GuardNoSend {
        if let Some(guard) = self.try_lock_upgradable() {
            return guard;
        }
        wait(self.awaited(), Kind::Upgradable, |limit| {
            // SAFETY: the guard releases it.
            unsafe { self.lock.0.lock_upgradable_within(limit) }.is_ok()
        });
        self.known.note_upgradable();
        GuardNoSend::new()
    }

    fn try_lock_upgradable(&self) -> Option<GuardNoSend> {
        self.noted_upgradable(self.lock.try_lock_upgradable())
    }

    unsafe fn unlock_upgradable(&self, guard: GuardNoSend) {
        self.known.note_release();
        // SAFETY: as above.
        unsafe { self.lock.unlock_upgradable(guard) };
    }

    unsafe fn upgrade(&self, guard: GuardNoSend) -> GuardNoSend {
        // SAFETY: as above.
        let guard = match unsafe { self.try_upgrade(guard) } {
            Ok(guard) => return guard,
            Err(guard) => guard,
        };
        // SAFETY: as above.
        wait(self.awaited(), Kind::Upgrade, |limit| unsafe { self.lock.0.upgrade_within(limit) }.is_ok());
        self.known.note_exclusive();
        guard
    }

    unsafe fn try_upgrade(&self, guard: GuardNoSend) -> Result<GuardNoSend, GuardNoSend> {
        // SAFETY: as above.
        self.noted_upgrade(unsafe { self.lock.try_upgrade(guard) })
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockUpgradeFair for RawRwLock {
    unsafe fn unlock_upgradable_fair(&self, guard: GuardNoSend) {
        self.known.note_release();
        // SAFETY: as above.
        unsafe { lock_api::RawRwLockUpgradeFair::unlock_upgradable_fair(&self.lock, guard) };
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockUpgradeDowngrade for RawRwLock {
    unsafe fn downgrade_upgradable(&self, guard: GuardNoSend) -> GuardNoSend {
        self.known.note_release();
        self.known.note_read();
        // SAFETY: as above.
        unsafe { lock_api::RawRwLockUpgradeDowngrade::downgrade_upgradable(&self.lock, guard) }
    }

    unsafe fn downgrade_to_upgradable(&self, guard: GuardNoSend) -> GuardNoSend {
        self.known.note_upgradable();
        // SAFETY: as above.
        unsafe { lock_api::RawRwLockUpgradeDowngrade::downgrade_to_upgradable(&self.lock, guard) }
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockUpgradeTimed for RawRwLock {
    fn try_lock_upgradable_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.noted_upgradable(self.lock.try_lock_upgradable_for(timeout))
    }

    fn try_lock_upgradable_until(&self, timeout: Instant) -> Option<GuardNoSend> {
        self.noted_upgradable(self.lock.try_lock_upgradable_until(timeout))
    }

    unsafe fn try_upgrade_for(
        &self,
        guard: GuardNoSend,
        timeout: Duration,
    ) -> Result<GuardNoSend, GuardNoSend> {
        // SAFETY: as above.
        self.noted_upgrade(unsafe { self.lock.try_upgrade_for(guard, timeout) })
    }

    unsafe fn try_upgrade_until(
        &self,
        guard: GuardNoSend,
        timeout: Instant,
    ) -> Result<GuardNoSend, GuardNoSend> {
        // SAFETY: as above.
        self.noted_upgrade(unsafe { self.lock.try_upgrade_until(guard, timeout) })
    }
}
