//! Upgrades of read guards.

use std::mem;

use nearlock_collection::freebsd::rwsx::{Kind, RwSx};
use nearlock_collection::freebsd::tuning::Tuning;
use nearlock_os::Os;

use crate::lock_api::{GuardNoSend, RwLockReadGuard, RwLockWriteGuard};
use crate::raw::Nodeless;

/// Makes a read guard a write guard: `rw_try_upgrade`, `sx_try_upgrade`.
///
/// ```
/// use nearlock::freebsd::{Rw, TryUpgrade};
///
/// let cache = Rw::new(None);
/// let mine = cache.read();
/// let others = cache.read();
/// // There is another reader, so the upgrade fails and the guard still reads.
/// let mine = mine.try_upgrade().expect_err("two read");
/// drop(others);
/// *mine.try_upgrade().expect("the only reader") = Some("figures");
/// assert_eq!(cache.into_inner(), Some("figures"));
/// ```
pub trait TryUpgrade: Sized {
    /// The guard that gives exclusive access to the data.
    type WriteGuard;

    /// Makes the guard a write guard, if there is no other read guard. Other guards of the caller
    /// count as well. No other thread holds the lock in between. Overtakes waiting writers. Never
    /// waits.
    ///
    /// # Errors
    ///
    /// The guard as it was, if there is another read guard.
    fn try_upgrade(self) -> Result<Self::WriteGuard, Self>;
}

impl<'a, K: Tuning, S: Kind, T: ?Sized> TryUpgrade for RwLockReadGuard<'a, Nodeless<RwSx<Os, K, S>>, T> {
    type WriteGuard = RwLockWriteGuard<'a, Nodeless<RwSx<Os, K, S>>, T>;

    fn try_upgrade(self) -> Result<Self::WriteGuard, Self> {
        let lock = Self::rwlock(&self);
        // SAFETY: the guard holds it shared. If no other guard does, it is held once. After an
        // upgrade the guard is forgotten.
        if !unsafe { lock.raw().0.try_upgrade() } {
            return Err(self);
        }
        mem::forget(self);
        // SAFETY: held exclusively since the upgrade.
        Ok(unsafe { lock.make_write_guard_unchecked(GuardNoSend::new()) })
    }
}
