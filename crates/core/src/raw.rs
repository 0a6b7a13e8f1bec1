//! The interface of the algorithms: locks that hold no data.
//!
//! Guards, `Send`, `Sync` and access to the data are somebody else's business, once for all locks.

/// Mutual exclusion.
///
/// # Safety
///
/// At most one acquisition is between the return of [`lock`](Self::lock) (or of a successful
/// [`try_lock`](RawTryLock::try_lock)) and the call of [`unlock`](Self::unlock), and what happened
/// before one `unlock` happens before what follows the next acquisition.
/// (The [negative controls](crate::controls) break this on purpose and say so.)
pub unsafe trait RawLock: Default + Send + Sync + 'static {
    /// What one acquisition keeps from `lock` to `unlock`: a queue node, or `()`.
    type Node: Default + Send + Sync + 'static;

    /// Acquires the lock.
    ///
    /// # Safety
    ///
    /// `node` is not in use by any other acquisition, and neither moves nor dies before the matching
    /// [`unlock`](Self::unlock) returns.
    unsafe fn lock(&self, node: &Self::Node);

    /// Releases the lock.
    ///
    /// # Safety
    ///
    /// The caller holds the lock, acquired with this `node`.
    unsafe fn unlock(&self, node: &Self::Node);
}

/// A lock that can be acquired if it happens to be free.
///
/// # Safety
///
/// As [`RawLock`].
pub unsafe trait RawTryLock: RawLock {
    /// Acquires the lock if it is free; never waits for another thread.
    ///
    /// # Safety
    ///
    /// As [`RawLock::lock`], if it returns true.
    unsafe fn try_lock(&self, node: &Self::Node) -> bool;
}
