//! Locks whose acquisitions are counted (`count.rs`). Everything else is the inner lock's.

use lock_api::{
    RawMutex, RawMutexFair, RawMutexTimed, RawRwLock, RawRwLockDowngrade, RawRwLockFair, RawRwLockRecursive,
    RawRwLockRecursiveTimed, RawRwLockTimed, RawRwLockUpgrade, RawRwLockUpgradeDowngrade,
    RawRwLockUpgradeFair, RawRwLockUpgradeTimed,
};

use crate::count::count;

/// A raw lock that counts its acquisitions.
#[repr(transparent)]
pub struct Counted<R>(pub(crate) R);

/// Methods that only call the inner lock's.
macro_rules! forward {
    ($(fn $name:ident() -> $result:ty;)*) => {
        $(#[inline]
        fn $name(&self) -> $result {
            self.0.$name()
        })*
    };
    ($(unsafe fn $name:ident($($argument:ident: $type:ty)?) $(-> $result:ty)?;)*) => {
        $(#[inline]
        unsafe fn $name(&self, $($argument: $type)?) $(-> $result)? {
            // SAFETY: upheld by the caller.
            unsafe { self.0.$name($($argument)?) }
        })*
    };
}

/// Methods that acquire the inner lock, or may.
macro_rules! acquire {
    ($(fn $name:ident();)*) => {
        $(#[inline]
        fn $name(&self) {
            count();
            self.0.$name();
        })*
    };
    ($(try fn $name:ident($($argument:ident: $type:ty)?);)*) => {
        $(#[inline]
        fn $name(&self, $($argument: $type)?) -> bool {
            let acquired = self.0.$name($($argument)?);
            if acquired {
                count();
            }
            acquired
        })*
    };
}

// SAFETY: the inner lock does everything. The same holds below.
unsafe impl<R: RawMutex> RawMutex for Counted<R> {
    #[allow(clippy::declare_interior_mutable_const)] // the trait's own form
    const INIT: Self = Self(R::INIT);
    type GuardMarker = R::GuardMarker;

    acquire! { fn lock(); }
    acquire! { try fn try_lock(); }
    forward! { fn is_locked() -> bool; }
    forward! { unsafe fn unlock(); }
}

// SAFETY: as above.
unsafe impl<R: RawMutexFair> RawMutexFair for Counted<R> {
    forward! { unsafe fn unlock_fair(); unsafe fn bump(); }
}

// SAFETY: as above.
unsafe impl<R: RawMutexTimed> RawMutexTimed for Counted<R> {
    type Duration = R::Duration;
    type Instant = R::Instant;

    acquire! { try fn try_lock_for(timeout: R::Duration); try fn try_lock_until(timeout: R::Instant); }
}

// SAFETY: as above.
unsafe impl<R: RawRwLock> RawRwLock for Counted<R> {
    #[allow(clippy::declare_interior_mutable_const)] // the trait's own form
    const INIT: Self = Self(R::INIT);
    type GuardMarker = R::GuardMarker;

    acquire! { fn lock_shared(); fn lock_exclusive(); }
    acquire! { try fn try_lock_shared(); try fn try_lock_exclusive(); }
    forward! { fn is_locked() -> bool; fn is_locked_exclusive() -> bool; }
    forward! { unsafe fn unlock_shared(); unsafe fn unlock_exclusive(); }
}

// SAFETY: as above.
unsafe impl<R: RawRwLockFair> RawRwLockFair for Counted<R> {
    forward! {
        unsafe fn unlock_shared_fair();
        unsafe fn unlock_exclusive_fair();
        unsafe fn bump_shared();
        unsafe fn bump_exclusive();
    }
}

// SAFETY: as above.
unsafe impl<R: RawRwLockDowngrade> RawRwLockDowngrade for Counted<R> {
    forward! { unsafe fn downgrade(); }
}

// SAFETY: as above.
unsafe impl<R: RawRwLockTimed> RawRwLockTimed for Counted<R> {
    type Duration = R::Duration;
    type Instant = R::Instant;

    acquire! {
        try fn try_lock_shared_for(timeout: R::Duration);
        try fn try_lock_shared_until(timeout: R::Instant);
        try fn try_lock_exclusive_for(timeout: R::Duration);
        try fn try_lock_exclusive_until(timeout: R::Instant);
    }
}

// SAFETY: as above.
unsafe impl<R: RawRwLockRecursive> RawRwLockRecursive for Counted<R> {
    acquire! { fn lock_shared_recursive(); }
    acquire! { try fn try_lock_shared_recursive(); }
}

// SAFETY: as above.
unsafe impl<R: RawRwLockRecursiveTimed> RawRwLockRecursiveTimed for Counted<R> {
    acquire! {
        try fn try_lock_shared_recursive_for(timeout: R::Duration);
        try fn try_lock_shared_recursive_until(timeout: R::Instant);
    }
}

// SAFETY: as above.
unsafe impl<R: RawRwLockUpgrade> RawRwLockUpgrade for Counted<R> {
    acquire! { fn lock_upgradable(); }
    acquire! { try fn try_lock_upgradable(); }
    forward! { unsafe fn unlock_upgradable(); unsafe fn upgrade(); unsafe fn try_upgrade() -> bool; }
}

// SAFETY: as above.
unsafe impl<R: RawRwLockUpgradeFair> RawRwLockUpgradeFair for Counted<R> {
    forward! { unsafe fn unlock_upgradable_fair(); unsafe fn bump_upgradable(); }
}

// SAFETY: as above.
unsafe impl<R: RawRwLockUpgradeDowngrade> RawRwLockUpgradeDowngrade for Counted<R> {
    forward! { unsafe fn downgrade_upgradable(); unsafe fn downgrade_to_upgradable(); }
}

// SAFETY: as above.
unsafe impl<R: RawRwLockUpgradeTimed> RawRwLockUpgradeTimed for Counted<R> {
    acquire! {
        try fn try_lock_upgradable_for(timeout: R::Duration);
        try fn try_lock_upgradable_until(timeout: R::Instant);
    }
    forward! {
        unsafe fn try_upgrade_for(timeout: R::Duration) -> bool;
        unsafe fn try_upgrade_until(timeout: R::Instant) -> bool;
    }
}
