//! Recursive reads of [`RwLock`](super::RwLock), and the lock whose reads all are.

use std::time::{Duration, Instant};

use nearlock_core::parking::Limit;
use nearlock_os::Os;

use super::RawRwLock;
use crate::lock_api::{
    self, GuardNoSend, RawRwLockDowngrade, RawRwLockFair, RawRwLockTimed, RawRwLockUpgrade,
    RawRwLockUpgradeDowngrade, RawRwLockUpgradeFair, RawRwLockUpgradeTimed,
};
use crate::raw::timed::{until, within};

impl RawRwLock {
    #[inline]
    pub(crate) fn lock_recursive_within(&self, limit: &Limit<'_, Os>) -> bool {
        // SAFETY: the caller makes a guard of it.
        unsafe { self.0.lock_shared_recursive_within(limit) }.is_ok()
    }

    #[inline]
    pub(crate) fn try_lock_recursive(&self) -> bool {
        // SAFETY: as above.
        unsafe { self.0.try_lock_shared_recursive() }
    }
}

/// Reads a [`RwLock`](super::RwLock) recursively: the read waits for a writer that has the lock,
/// and not for one that waits for readers.
///
/// A thread that reads may read again by [`read`](lock_api::RwLock::read) too, and does not wait
/// then. A recursive read helps if the reads are of different threads: one of them reads, and waits
/// for another one that reads too. A writer that waits in between would stop both.
///
/// Waiting: a writer spins before it waits for readers. A recursive read that comes at that moment
/// may take 0.5 ms longer, and longer if it has waited for writers that had the lock before.
///
/// Fairness: recursive reads that follow each other closely keep writers out for ever.
///
/// `parking_lot` 0.12 has such reads as methods of its lock. Version 0.13 has a lock whose reads
/// are all recursive, [`RecursiveRwLock`](super::RecursiveRwLock).
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

impl<R: RawReadRecursive<Duration = Duration, Instant = Instant>, T: ?Sized> ReadRecursive
    for lock_api::RwLock<R, T>
{
    type Guard<'a>
        = lock_api::RwLockReadGuard<'a, R, T>
    where
        Self: 'a;

    #[inline]
    fn read_recursive(&self) -> Self::Guard<'_> {
        // SAFETY: the raw lock is only locked here, and the guard unlocks it. The same holds below.
        let guard = unsafe { self.raw() }.lock_shared_recursive();
        // SAFETY: locked above.
        unsafe { self.make_read_guard_unchecked(guard) }
    }

    #[inline]
    fn try_read_recursive(&self) -> Option<Self::Guard<'_>> {
        // SAFETY: as above.
        let guard = unsafe { self.raw() }.try_lock_shared_recursive();
        // SAFETY: as above.
        guard.map(|guard| unsafe { self.make_read_guard_unchecked(guard) })
    }

    #[inline]
    fn try_read_recursive_for(&self, timeout: Duration) -> Option<Self::Guard<'_>> {
        // SAFETY: as above.
        let guard = unsafe { self.raw() }.try_lock_shared_recursive_for(timeout);
        // SAFETY: as above.
        guard.map(|guard| unsafe { self.make_read_guard_unchecked(guard) })
    }

    #[inline]
    fn try_read_recursive_until(&self, timeout: Instant) -> Option<Self::Guard<'_>> {
        // SAFETY: as above.
        let guard = unsafe { self.raw() }.try_lock_shared_recursive_until(timeout);
        // SAFETY: as above.
        guard.map(|guard| unsafe { self.make_read_guard_unchecked(guard) })
    }
}

/// A raw reader-writer lock that can be read recursively ([`ReadRecursive`]).
///
/// ```
/// use std::time::{Duration, Instant};
/// use nearlock::lock_api::RwLock;
/// use nearlock::near::{RawReadRecursive, ReadRecursive};
///
/// fn sum<R>(lock: &RwLock<R, u32>) -> u32
/// where
///     R: RawReadRecursive<Duration = Duration, Instant = Instant>,
/// {
///     let (first, second) = (lock.read_recursive(), lock.read_recursive());
///     *first + *second
/// }
/// assert_eq!(sum(&nearlock::RwLock::new(2)), 4);
/// ```
///
/// # Safety
///
/// The methods acquire the lock as those of [`RawRwLock`](lock_api::RawRwLock) and
/// [`RawRwLockTimed`] do.
pub unsafe trait RawReadRecursive: RawRwLockTimed {
    /// Acquires the lock shared, recursively.
    fn lock_shared_recursive(&self) -> Self::SharedGuard;

    /// The same, without waiting.
    fn try_lock_shared_recursive(&self) -> Option<Self::SharedGuard>;

    /// The same. Waits for this time at most.
    fn try_lock_shared_recursive_for(&self, timeout: Self::Duration) -> Option<Self::SharedGuard>;

    /// The same. Waits until this moment at most.
    fn try_lock_shared_recursive_until(&self, timeout: Self::Instant) -> Option<Self::SharedGuard>;
}

// SAFETY: recursive readers exclude writers as others do.
unsafe impl RawReadRecursive for RawRwLock {
    #[inline]
    fn lock_shared_recursive(&self) -> GuardNoSend {
        // Without a limit it returns only with the lock.
        self.lock_recursive_within(&Limit::NONE);
        GuardNoSend::new()
    }

    #[inline]
    fn try_lock_shared_recursive(&self) -> Option<GuardNoSend> {
        self.try_lock_recursive().then(GuardNoSend::new)
    }

    #[inline]
    fn try_lock_shared_recursive_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.lock_recursive_within(&within(timeout)).then(GuardNoSend::new)
    }

    #[inline]
    fn try_lock_shared_recursive_until(&self, timeout: Instant) -> Option<GuardNoSend> {
        self.lock_recursive_within(&until(timeout)).then(GuardNoSend::new)
    }
}

/// A raw reader-writer lock whose shared acquisitions are all recursive. Otherwise it is the lock
/// inside.
///
/// ```
/// use nearlock::lock_api::RwLock;
/// use nearlock::near::Recursive;
///
/// let lock = RwLock::<Recursive<nearlock::RawRwLock>, u32>::new(1);
/// assert_eq!(*lock.read(), 1);
/// ```
#[derive(Default)]
#[repr(transparent)]
pub struct Recursive<R>(pub(crate) R);

/// The raw lock of [`RecursiveRwLock`](super::RecursiveRwLock): a [`RawRwLock`] whose shared
/// acquisitions are all recursive.
pub type RawRwLockRecursive = Recursive<RawRwLock>;

/// Methods that only call those of the lock inside.
macro_rules! forward {
    ($(fn $name:ident($($argument:ident: $type:ty)?) -> $result:ty;)*) => {
        $(#[inline]
        fn $name(&self, $($argument: $type)?) -> $result {
            self.0.$name($($argument)?)
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

// SAFETY: it is the lock inside. The same holds for all traits below.
unsafe impl<R: RawReadRecursive> lock_api::RawRwLock for Recursive<R> {
    #[allow(clippy::declare_interior_mutable_const)] // as in the trait
    const INIT: Self = Self(R::INIT);
    type SharedGuard = R::SharedGuard;
    type ExclusiveGuard = R::ExclusiveGuard;

    #[inline]
    fn lock_shared(&self) -> R::SharedGuard {
        self.0.lock_shared_recursive()
    }

    #[inline]
    fn try_lock_shared(&self) -> Option<R::SharedGuard> {
        self.0.try_lock_shared_recursive()
    }

    forward! {
        fn lock_exclusive() -> R::ExclusiveGuard;
        fn try_lock_exclusive() -> Option<R::ExclusiveGuard>;
        fn is_locked() -> bool;
        fn is_locked_exclusive() -> bool;
    }
    forward! {
        unsafe fn unlock_shared(guard: R::SharedGuard);
        unsafe fn unlock_exclusive(guard: R::ExclusiveGuard);
    }
}

// SAFETY: as above. The default of `bump_shared` acquires the lock recursively again.
unsafe impl<R: RawReadRecursive + RawRwLockFair> RawRwLockFair for Recursive<R> {
    forward! {
        unsafe fn unlock_shared_fair(guard: R::SharedGuard);
        unsafe fn unlock_exclusive_fair(guard: R::ExclusiveGuard);
        unsafe fn bump_exclusive(guard: &mut R::ExclusiveGuard);
    }
}

// SAFETY: as above.
unsafe impl<R: RawReadRecursive + RawRwLockDowngrade> RawRwLockDowngrade for Recursive<R> {
    forward! { unsafe fn downgrade(guard: R::ExclusiveGuard) -> R::SharedGuard; }
}

// SAFETY: as above.
unsafe impl<R: RawReadRecursive> RawRwLockTimed for Recursive<R> {
    type Duration = R::Duration;
    type Instant = R::Instant;

    #[inline]
    fn try_lock_shared_for(&self, timeout: R::Duration) -> Option<R::SharedGuard> {
        self.0.try_lock_shared_recursive_for(timeout)
    }

    #[inline]
    fn try_lock_shared_until(&self, timeout: R::Instant) -> Option<R::SharedGuard> {
        self.0.try_lock_shared_recursive_until(timeout)
    }

    forward! {
        fn try_lock_exclusive_for(timeout: R::Duration) -> Option<R::ExclusiveGuard>;
        fn try_lock_exclusive_until(timeout: R::Instant) -> Option<R::ExclusiveGuard>;
    }
}

// SAFETY: as above.
unsafe impl<R: RawReadRecursive + RawRwLockUpgrade> RawRwLockUpgrade for Recursive<R> {
    type UpgradableGuard = R::UpgradableGuard;

    forward! {
        fn lock_upgradable() -> R::UpgradableGuard;
        fn try_lock_upgradable() -> Option<R::UpgradableGuard>;
    }
    forward! {
        unsafe fn unlock_upgradable(guard: R::UpgradableGuard);
        unsafe fn upgrade(guard: R::UpgradableGuard) -> R::ExclusiveGuard;
        unsafe fn try_upgrade(guard: R::UpgradableGuard) -> Result<R::ExclusiveGuard, R::UpgradableGuard>;
    }
}

// SAFETY: as above.
unsafe impl<R: RawReadRecursive + RawRwLockUpgradeFair> RawRwLockUpgradeFair for Recursive<R> {
    forward! { unsafe fn unlock_upgradable_fair(guard: R::UpgradableGuard); }
}

// SAFETY: as above.
unsafe impl<R: RawReadRecursive + RawRwLockUpgradeDowngrade> RawRwLockUpgradeDowngrade for Recursive<R> {
    forward! {
        unsafe fn downgrade_upgradable(guard: R::UpgradableGuard) -> R::SharedGuard;
        unsafe fn downgrade_to_upgradable(guard: R::ExclusiveGuard) -> R::UpgradableGuard;
    }
}

// SAFETY: as above.
unsafe impl<R: RawReadRecursive + RawRwLockUpgradeTimed> RawRwLockUpgradeTimed for Recursive<R> {
    forward! {
        fn try_lock_upgradable_for(timeout: R::Duration) -> Option<R::UpgradableGuard>;
        fn try_lock_upgradable_until(timeout: R::Instant) -> Option<R::UpgradableGuard>;
    }
    forward! {
        unsafe fn try_upgrade_for(guard: R::UpgradableGuard, timeout: R::Duration) -> Result<R::ExclusiveGuard, R::UpgradableGuard>;
        unsafe fn try_upgrade_until(guard: R::UpgradableGuard, timeout: R::Instant) -> Result<R::ExclusiveGuard, R::UpgradableGuard>;
    }
}
