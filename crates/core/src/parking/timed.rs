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
    /// Whose clock and cancellations its limits are of.
    type Platform: Platform;

    /// Acquires the lock within the limit. A free lock is acquired whatever the limit.
    ///
    /// # Errors
    ///
    /// Why it was not acquired: the time has passed, or the wait was cancelled. Neither is lost if
    /// the lock becomes free at the same time: the caller has it, or the next waiter is woken.
    ///
    /// # Safety
    ///
    /// As [`RawLock::lock`](crate::raw::RawLock::lock), if it succeeds.
    unsafe fn lock_within(&self, node: &Self::Node, limit: &Limit<'_, Self::Platform>) -> Result<(), GaveUp>;
}

/// Both, for readers too.
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
