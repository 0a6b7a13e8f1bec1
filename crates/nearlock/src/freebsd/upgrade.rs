//! From reading to writing.

use std::mem;

use nearlock_collection::freebsd::rwsx::{Kind, RwSx};
use nearlock_collection::freebsd::tuning::Tuning;
use nearlock_os::Os;

use crate::lock_api::{GuardNoSend, RwLockReadGuard, RwLockWriteGuard};
use crate::raw::Nodeless;

/// Going on to write what one reads: `rw_try_upgrade`, `sx_try_upgrade`.
///
/// ```
/// use nearlock::freebsd::{Rw, TryUpgrade};
///
/// let cache = Rw::new(None);
/// let mine = cache.read();
/// let others = cache.read();
/// // Somebody else reads: then one reads on.
/// let mine = mine.try_upgrade().expect_err("two read");
/// drop(others);
/// *mine.try_upgrade().expect("nobody else reads") = Some("figures");
/// assert_eq!(cache.into_inner(), Some("figures"));
/// ```
pub trait TryUpgrade: Sized {
    /// What gives access to the data exclusively.
    type WriteGuard;

    /// Makes the guard one that writes, with nobody in between, if nobody else reads, the caller by
    /// another guard included. Goes past writers that wait. Never waits.
    ///
    /// # Errors
    ///
    /// The guard as it was, if somebody else reads.
    fn try_upgrade(self) -> Result<Self::WriteGuard, Self>;
}

impl<'a, K: Tuning, S: Kind, T: ?Sized> TryUpgrade for RwLockReadGuard<'a, Nodeless<RwSx<Os, K, S>>, T> {
    type WriteGuard = RwLockWriteGuard<'a, Nodeless<RwSx<Os, K, S>>, T>;

    fn try_upgrade(self) -> Result<Self::WriteGuard, Self> {
        let lock = Self::rwlock(&self);
        // SAFETY: the guard holds it shared; if nobody else does, that is once. If it was upgraded, the
        // guard is forgotten.
        if !unsafe { lock.raw().0.try_upgrade() } {
            return Err(self);
        }
        mem::forget(self);
        // SAFETY: held exclusively since then.
        Ok(unsafe { lock.make_write_guard_unchecked(GuardNoSend::new()) })
    }
}
