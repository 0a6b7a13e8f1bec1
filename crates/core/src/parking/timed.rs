//! The interface of locks whose waiters may give up.

use super::limit::{GaveUp, Limit};
use crate::platform::Platform;
use crate::raw::{RawRwLock, RawTryLock};

/// A lock whose waiters may give up.
///
/// # Safety
///
/// As [`RawLock`](crate::raw::RawLock).
pub unsafe trait RawTimedLock: RawTryLock {
    /// The platform of the clock and the cancellations in its limits.
    type Platform: Platform;

    /// Acquires the lock within the limit. A free lock is acquired whatever the limit is.
    ///
    /// # Errors
    ///
    /// Why it was not acquired: the time has passed, or the wait was cancelled. If the lock becomes
    /// free at the same time, no wake-up is lost: the caller has the lock, or the next waiter is
    /// woken.
    ///
    /// # Safety
    ///
    /// As [`RawLock::lock`](crate::raw::RawLock::lock), if it succeeds.
    unsafe fn lock_within(&self, node: &Self::Node, limit: &Limit<'_, Self::Platform>) -> Result<(), GaveUp>;
}

/// A lock with readers whose waiters may give up.
///
/// # Safety
///
/// As [`RawRwLock`].
pub unsafe trait RawTimedRwLock: RawRwLock + RawTimedLock {
    /// As [`lock_within`](RawTimedLock::lock_within), shared.
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// # Safety
    ///
    /// As [`RawRwLock::lock_shared`], if it succeeds.
    unsafe fn lock_shared_within(
        &self,
        node: &Self::Node,
        limit: &Limit<'_, Self::Platform>,
    ) -> Result<(), GaveUp>;
}
