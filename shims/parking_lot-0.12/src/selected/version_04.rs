//! Raw locks of `lock_api` 0.5, whose guards contain nothing, as those of version 0.4.

use lock_api::{
    RawMutex, RawMutexFair, RawMutexTimed, RawRwLock, RawRwLockDowngrade, RawRwLockFair, RawRwLockRecursive,
    RawRwLockRecursiveTimed, RawRwLockTimed, RawRwLockUpgrade, RawRwLockUpgradeDowngrade,
    RawRwLockUpgradeFair, RawRwLockUpgradeTimed,
};
use nearlock::lock_api as v05;
use nearlock::near::RawReadRecursive;

/// A raw lock of version 0.5 as one of version 0.4.
#[derive(Default)]
#[repr(transparent)]
pub struct Version04<R>(pub(super) R);

/// A guard's state that contains nothing, and so says nothing of the acquisition.
pub trait Empty: Sized {
    /// The same in version 0.4.
    type Marker;

    fn new() -> Self;
}

impl Empty for v05::GuardSend {
    type Marker = lock_api::GuardSend;

    fn new() -> Self {
        Self::new()
    }
}

impl Empty for v05::GuardNoSend {
    type Marker = lock_api::GuardNoSend;

    fn new() -> Self {
        Self::new()
    }
}

/// Ends the process where an operation unwinds. In version 0.4, no state could say what is locked
/// then.
struct NoUnwinding;

impl Drop for NoUnwinding {
    fn drop(&mut self) {
        std::process::abort();
    }
}

fn without_unwinding<T>(f: impl FnOnce() -> T) -> T {
    let bomb = NoUnwinding;
    let result = f();
    std::mem::forget(bomb);
    result
}

/// Acquisitions that wait until they succeed, and those that may fail.
macro_rules! acquire {
    ($(fn $name:ident();)*) => {
        $(#[inline]
        fn $name(&self) {
            // The state contains nothing.
            _ = without_unwinding(|| self.0.$name());
        })*
    };
    ($(try fn $name:ident($($argument:ident: $type:ty)?);)*) => {
        $(#[inline]
        fn $name(&self, $($argument: $type)?) -> bool {
            without_unwinding(|| self.0.$name($($argument)?)).is_some()
        })*
    };
}

/// Methods that say what the lock is.
macro_rules! ask {
    ($(fn $name:ident();)*) => {
        $(#[inline]
        fn $name(&self) -> bool {
            self.0.$name()
        })*
    };
}

/// Methods of a holder. `bump`: the state stays with the holder.
macro_rules! hold {
    ($(fn $name:ident();)*) => {
        $(#[inline]
        unsafe fn $name(&self) {
            // SAFETY: upheld by the caller.
            _ = without_unwinding(|| unsafe { self.0.$name(Empty::new()) });
        })*
    };
    ($(bump fn $name:ident();)*) => {
        $(#[inline]
        unsafe fn $name(&self) {
            // SAFETY: upheld by the caller.
            without_unwinding(|| unsafe { self.0.$name(&mut Empty::new()) });
        })*
    };
    ($(try fn $name:ident($($argument:ident: $type:ty)?);)*) => {
        $(#[inline]
        unsafe fn $name(&self, $($argument: $type)?) -> bool {
            // SAFETY: upheld by the caller.
            without_unwinding(|| unsafe { self.0.$name(Empty::new(), $($argument)?) }).is_ok()
        })*
    };
}

// SAFETY: the inner lock does everything. Its guards contain nothing, so any state of an
// acquisition is like another. The same holds below.
unsafe impl<R: v05::RawMutex<Guard: Empty>> RawMutex for Version04<R> {
    #[allow(clippy::declare_interior_mutable_const)] // the trait's own form
    const INIT: Self = Self(R::INIT);
    type GuardMarker = <R::Guard as Empty>::Marker;

    acquire! { fn lock(); }
    acquire! { try fn try_lock(); }
    ask! { fn is_locked(); }
    hold! { fn unlock(); }
}

// SAFETY: as above.
unsafe impl<R: v05::RawMutexFair<Guard: Empty>> RawMutexFair for Version04<R> {
    hold! { fn unlock_fair(); }
    hold! { bump fn bump(); }
}

// SAFETY: as above.
unsafe impl<R: v05::RawMutexTimed<Guard: Empty>> RawMutexTimed for Version04<R> {
    type Duration = R::Duration;
    type Instant = R::Instant;

    acquire! { try fn try_lock_for(timeout: R::Duration); try fn try_lock_until(timeout: R::Instant); }
}

/// A reader-writer lock of version 0.5 with one type of states, which contain nothing.
pub trait Readers: v05::RawRwLock<SharedGuard = Self::State, ExclusiveGuard = Self::State> {
    type State: Empty;
}

impl<G: Empty, R: v05::RawRwLock<SharedGuard = G, ExclusiveGuard = G>> Readers for R {
    type State = G;
}

// SAFETY: as above.
unsafe impl<R: Readers> RawRwLock for Version04<R> {
    #[allow(clippy::declare_interior_mutable_const)] // the trait's own form
    const INIT: Self = Self(R::INIT);
    type GuardMarker = <R::State as Empty>::Marker;

    acquire! { fn lock_shared(); fn lock_exclusive(); }
    acquire! { try fn try_lock_shared(); try fn try_lock_exclusive(); }
    ask! { fn is_locked(); fn is_locked_exclusive(); }
    hold! { fn unlock_shared(); fn unlock_exclusive(); }
}

// SAFETY: as above.
unsafe impl<R: Readers + v05::RawRwLockFair> RawRwLockFair for Version04<R> {
    hold! { fn unlock_shared_fair(); fn unlock_exclusive_fair(); }
    hold! { bump fn bump_shared(); bump fn bump_exclusive(); }
}

// SAFETY: as above.
unsafe impl<R: Readers + v05::RawRwLockDowngrade> RawRwLockDowngrade for Version04<R> {
    hold! { fn downgrade(); }
}

// SAFETY: as above.
unsafe impl<R: Readers + v05::RawRwLockTimed> RawRwLockTimed for Version04<R> {
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
unsafe impl<R: Readers + RawReadRecursive> RawRwLockRecursive for Version04<R> {
    acquire! { fn lock_shared_recursive(); }
    acquire! { try fn try_lock_shared_recursive(); }
}

// SAFETY: as above.
unsafe impl<R: Readers + RawReadRecursive> RawRwLockRecursiveTimed for Version04<R> {
    acquire! {
        try fn try_lock_shared_recursive_for(timeout: R::Duration);
        try fn try_lock_shared_recursive_until(timeout: R::Instant);
    }
}

// SAFETY: as above.
unsafe impl<R: Readers + v05::RawRwLockUpgrade<UpgradableGuard: Empty>> RawRwLockUpgrade for Version04<R> {
    acquire! { fn lock_upgradable(); }
    acquire! { try fn try_lock_upgradable(); }
    hold! { fn unlock_upgradable(); fn upgrade(); }
    hold! { try fn try_upgrade(); }
}

// SAFETY: as above.
unsafe impl<R: Readers + v05::RawRwLockUpgradeFair<UpgradableGuard: Empty>> RawRwLockUpgradeFair
    for Version04<R>
{
    hold! { fn unlock_upgradable_fair(); }
    hold! { bump fn bump_upgradable(); }
}

// SAFETY: as above.
unsafe impl<R: Readers + v05::RawRwLockUpgradeDowngrade<UpgradableGuard: Empty>> RawRwLockUpgradeDowngrade
    for Version04<R>
{
    hold! { fn downgrade_upgradable(); fn downgrade_to_upgradable(); }
}

// SAFETY: as above.
unsafe impl<R: Readers + v05::RawRwLockUpgradeTimed<UpgradableGuard: Empty>> RawRwLockUpgradeTimed
    for Version04<R>
{
    acquire! {
        try fn try_lock_upgradable_for(timeout: R::Duration);
        try fn try_lock_upgradable_until(timeout: R::Instant);
    }
    hold! {
        try fn try_upgrade_for(timeout: R::Duration);
        try fn try_upgrade_until(timeout: R::Instant);
    }
}
