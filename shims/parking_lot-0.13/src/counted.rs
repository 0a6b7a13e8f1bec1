//! Locks whose acquisitions are counted (`count.rs`). Everything else is the inner lock's.

use lock_api::{
    RawMutex, RawMutexFair, RawMutexTimed, RawRwLock, RawRwLockDowngrade, RawRwLockFair, RawRwLockTimed,
    RawRwLockUpgrade, RawRwLockUpgradeDowngrade, RawRwLockUpgradeFair, RawRwLockUpgradeTimed,
};

use crate::count::count;
use crate::selected::bare;

/// A raw lock that counts its acquisitions.
#[repr(transparent)]
pub struct Counted<R>(R);

/// Methods that only call the inner lock's.
macro_rules! forward {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        $(#[inline]
        fn $name(&self, $($argument: $type),*) $(-> $result)? {
            self.0.$name($($argument),*)
        })*
    };
    ($(unsafe fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        $(#[inline]
        unsafe fn $name(&self, $($argument: $type),*) $(-> $result)? {
            // SAFETY: upheld by the caller.
            unsafe { self.0.$name($($argument),*) }
        })*
    };
}

/// Methods that acquire the inner lock, or may.
macro_rules! acquire {
    ($(fn $name:ident() -> $result:ty;)*) => {
        $(#[inline]
        fn $name(&self) -> $result {
            count();
            self.0.$name()
        })*
    };
    ($(try fn $name:ident($($argument:ident: $type:ty)?) -> $result:ty;)*) => {
        $(#[inline]
        fn $name(&self, $($argument: $type)?) -> Option<$result> {
            self.0.$name($($argument)?).inspect(|_| count())
        })*
    };
}

// SAFETY: the inner lock does everything. The same holds below.
unsafe impl<R: RawMutex> RawMutex for Counted<R> {
    #[allow(clippy::declare_interior_mutable_const)] // the trait's own form
    const INIT: Self = Self(R::INIT);
    type Guard = R::Guard;

    acquire! { fn lock() -> R::Guard; }
    acquire! { try fn try_lock() -> R::Guard; }
    forward! { fn is_locked() -> bool; }
    forward! { unsafe fn unlock(guard: R::Guard); }
}

// SAFETY: as above.
unsafe impl<R: RawMutexFair> RawMutexFair for Counted<R> {
    forward! { unsafe fn unlock_fair(guard: R::Guard); unsafe fn bump(guard: &mut R::Guard); }
}

// SAFETY: as above.
unsafe impl<R: RawMutexTimed> RawMutexTimed for Counted<R> {
    type Duration = R::Duration;
    type Instant = R::Instant;

    acquire! {
        try fn try_lock_for(timeout: R::Duration) -> R::Guard;
        try fn try_lock_until(timeout: R::Instant) -> R::Guard;
    }
}

// SAFETY: as above.
unsafe impl<R: RawRwLock> RawRwLock for Counted<R> {
    #[allow(clippy::declare_interior_mutable_const)] // the trait's own form
    const INIT: Self = Self(R::INIT);
    type SharedGuard = R::SharedGuard;
    type ExclusiveGuard = R::ExclusiveGuard;

    acquire! { fn lock_shared() -> R::SharedGuard; fn lock_exclusive() -> R::ExclusiveGuard; }
    acquire! { try fn try_lock_shared() -> R::SharedGuard; try fn try_lock_exclusive() -> R::ExclusiveGuard; }
    forward! { fn is_locked() -> bool; fn is_locked_exclusive() -> bool; }
    forward! {
        unsafe fn unlock_shared(guard: R::SharedGuard);
        unsafe fn unlock_exclusive(guard: R::ExclusiveGuard);
    }
}

// SAFETY: as above.
unsafe impl<R: RawRwLockFair> RawRwLockFair for Counted<R> {
    forward! {
        unsafe fn unlock_shared_fair(guard: R::SharedGuard);
        unsafe fn unlock_exclusive_fair(guard: R::ExclusiveGuard);
        unsafe fn bump_shared(guard: &mut R::SharedGuard);
        unsafe fn bump_exclusive(guard: &mut R::ExclusiveGuard);
    }
}

// SAFETY: as above.
unsafe impl<R: RawRwLockDowngrade> RawRwLockDowngrade for Counted<R> {
    forward! { unsafe fn downgrade(guard: R::ExclusiveGuard) -> R::SharedGuard; }
}

// SAFETY: as above.
unsafe impl<R: RawRwLockTimed> RawRwLockTimed for Counted<R> {
    type Duration = R::Duration;
    type Instant = R::Instant;

    acquire! {
        try fn try_lock_shared_for(timeout: R::Duration) -> R::SharedGuard;
        try fn try_lock_shared_until(timeout: R::Instant) -> R::SharedGuard;
        try fn try_lock_exclusive_for(timeout: R::Duration) -> R::ExclusiveGuard;
        try fn try_lock_exclusive_until(timeout: R::Instant) -> R::ExclusiveGuard;
    }
}

// SAFETY: as above.
unsafe impl<R: RawRwLockUpgrade> RawRwLockUpgrade for Counted<R> {
    type UpgradableGuard = R::UpgradableGuard;

    acquire! { fn lock_upgradable() -> R::UpgradableGuard; }
    acquire! { try fn try_lock_upgradable() -> R::UpgradableGuard; }
    forward! {
        unsafe fn unlock_upgradable(guard: R::UpgradableGuard);
        unsafe fn upgrade(guard: R::UpgradableGuard) -> R::ExclusiveGuard;
        unsafe fn try_upgrade(guard: R::UpgradableGuard) -> Result<R::ExclusiveGuard, R::UpgradableGuard>;
    }
}

// SAFETY: as above.
unsafe impl<R: RawRwLockUpgradeFair> RawRwLockUpgradeFair for Counted<R> {
    forward! {
        unsafe fn unlock_upgradable_fair(guard: R::UpgradableGuard);
        unsafe fn bump_upgradable(guard: &mut R::UpgradableGuard);
    }
}

// SAFETY: as above.
unsafe impl<R: RawRwLockUpgradeDowngrade> RawRwLockUpgradeDowngrade for Counted<R> {
    forward! {
        unsafe fn downgrade_upgradable(guard: R::UpgradableGuard) -> R::SharedGuard;
        unsafe fn downgrade_to_upgradable(guard: R::ExclusiveGuard) -> R::UpgradableGuard;
    }
}

// SAFETY: as above.
unsafe impl<R: RawRwLockUpgradeTimed> RawRwLockUpgradeTimed for Counted<R> {
    acquire! {
        try fn try_lock_upgradable_for(timeout: R::Duration) -> R::UpgradableGuard;
        try fn try_lock_upgradable_until(timeout: R::Instant) -> R::UpgradableGuard;
    }
    forward! {
        unsafe fn try_upgrade_for(guard: R::UpgradableGuard, timeout: R::Duration) -> Result<R::ExclusiveGuard, R::UpgradableGuard>;
        unsafe fn try_upgrade_until(guard: R::UpgradableGuard, timeout: R::Instant) -> Result<R::ExclusiveGuard, R::UpgradableGuard>;
    }
}

/// A raw condition variable for counted mutexes. A wait locks the mutex again, which counts.
#[derive(Default)]
#[repr(transparent)]
pub struct RawCondvar(bare::RawCondvar);

type Mutex = bare::RawMutex;
type Guard = <Mutex as RawMutex>::Guard;

// SAFETY: the inner condition variable does everything, with the mutex inside.
unsafe impl lock_api::RawCondvar for RawCondvar {
    #[allow(clippy::declare_interior_mutable_const)] // the trait's own form
    const INIT: Self = Self(bare::RawCondvar::INIT);
    type RawMutex = Counted<Mutex>;

    #[inline]
    unsafe fn wait(&self, mutex: &Counted<Mutex>, guard: &mut Guard) {
        count();
        // SAFETY: upheld by the caller.
        unsafe { self.0.wait(&mutex.0, guard) };
    }

    forward! { fn notify_one() -> bool; fn notify_all() -> usize; }
}

// SAFETY: as above.
unsafe impl lock_api::RawCondvarTimed for RawCondvar {
    #[inline]
    fn checked_duration_to_instant(
        timeout: &<Mutex as RawMutexTimed>::Duration,
    ) -> Option<<Mutex as RawMutexTimed>::Instant> {
        bare::RawCondvar::checked_duration_to_instant(timeout)
    }

    #[inline]
    unsafe fn wait_until(
        &self,
        mutex: &Counted<Mutex>,
        guard: &mut Guard,
        timeout: &<Mutex as RawMutexTimed>::Instant,
    ) -> bool {
        count();
        // SAFETY: upheld by the caller.
        unsafe { self.0.wait_until(&mutex.0, guard, timeout) }
    }

    #[inline]
    unsafe fn wait_for(
        &self,
        mutex: &Counted<Mutex>,
        guard: &mut Guard,
        timeout: &<Mutex as RawMutexTimed>::Duration,
    ) -> bool {
        count();
        // SAFETY: upheld by the caller.
        unsafe { self.0.wait_for(&mutex.0, guard, timeout) }
    }
}
