//! Shared acquisitions that any thread may release. The terms are those of the [lock](super).
//!
//! They are counted in the lock, and noted nowhere. So no thread is known to hold the lock. A
//! reader that does waits for a waiting writer, like any other: a nested read may wait for ever,
//! unless it is [recursive](super::recursive).
//!
//! A writer reads the count in each mode of the lock. So a lock may have shared acquisitions of
//! both kinds at a time.

use super::reading::Releaser;
use super::{NearRwLock, RwLockPlatform};
use crate::parking::{GaveUp, Limit};

impl<P: RwLockPlatform> NearRwLock<P> {
    /// Acquires the lock shared, within the limit. Any thread may release it.
    ///
    /// # Errors
    ///
    /// Why it was not acquired.
    ///
    /// # Safety
    ///
    /// As [`RawLock::lock`](crate::raw::RawLock::lock), up to
    /// [`unlock_shared_counted`](Self::unlock_shared_counted).
    #[inline]
    pub unsafe fn lock_shared_counted_within(&self, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        if self.enters_by_count(Self::own_line()) { Ok(()) } else { self.wait_to_enter_counted(limit) }
    }

    /// The same, if it need not wait for a writer.
    ///
    /// # Safety
    ///
    /// As there, if it returns true.
    #[inline]
    pub unsafe fn try_lock_shared_counted(&self) -> bool {
        self.enters_by_count(Self::own_line()) || self.try_enter_counted()
    }

    /// Releases such an acquisition of any thread.
    ///
    /// # Safety
    ///
    /// There is one, and nobody else releases it.
    #[inline]
    pub unsafe fn unlock_shared_counted(&self) {
        Self::discount_reader(self);
    }

    /// Turns an exclusive acquisition into a shared one that any thread may release.
    ///
    /// # Safety
    ///
    /// The caller holds the lock exclusively.
    pub unsafe fn downgrade_counted(&self) {
        self.downgrade_to_shared(Releaser::Anyone);
    }

    /// Turns an upgradable acquisition into a shared one that any thread may release.
    ///
    /// # Safety
    ///
    /// The caller has an upgradable acquisition.
    pub unsafe fn downgrade_upgradable_counted(&self) {
        self.close_for(Releaser::Anyone);
    }

    #[cold]
    #[inline(never)]
    pub(super) fn wait_to_enter_counted(&self, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        P::in_slow_path(|| self.wait_to_enter(Releaser::Anyone, limit))
    }

    /// The holder of the mutex may be a reader that is about to release it.
    #[cold]
    #[inline(never)]
    pub(super) fn try_enter_counted(&self) -> bool {
        let by = Releaser::Anyone;
        P::in_slow_path(|| self.is_free_soon() && self.enters_again(by))
    }
}
