//! Locks as workloads with readers use them: those of plain locks exclude each other, those of
//! reader-writer locks share.

use nearlock_core::raw::RawLock;

/// A lock that readers and writers ask for.
///
/// # Safety
///
/// As [`RawRwLock`](nearlock_core::raw::RawRwLock); readers may be excluded from each other too.
pub unsafe trait Gate: Default + Send + Sync + 'static {
    /// As [`RawLock::Node`].
    type Node: Default + Send + Sync + 'static;

    /// Whether readers share.
    const SHARES: bool;

    /// Acquires for a writer.
    ///
    /// # Safety
    ///
    /// As [`RawLock::lock`].
    unsafe fn lock(&self, node: &Self::Node);

    /// Releases a writer's acquisition.
    ///
    /// # Safety
    ///
    /// As [`RawLock::unlock`].
    unsafe fn unlock(&self, node: &Self::Node);

    /// Acquires for a reader.
    ///
    /// # Safety
    ///
    /// As [`RawRwLock::lock_shared`](nearlock_core::raw::RawRwLock::lock_shared).
    unsafe fn lock_shared(&self, node: &Self::Node);

    /// Releases a reader's acquisition.
    ///
    /// # Safety
    ///
    /// As [`RawRwLock::unlock_shared`](nearlock_core::raw::RawRwLock::unlock_shared).
    unsafe fn unlock_shared(&self, node: &Self::Node);
}

/// A plain lock: readers are as writers.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct Exclusive<L>(L);

// SAFETY: everybody excludes everybody.
unsafe impl<L: RawLock> Gate for Exclusive<L> {
    type Node = L::Node;
    const SHARES: bool = false;

    #[inline(always)]
    unsafe fn lock(&self, node: &L::Node) {
        // SAFETY: the caller's; so below.
        unsafe { self.0.lock(node) };
    }
    #[inline(always)]
    unsafe fn unlock(&self, node: &L::Node) {
        // SAFETY: as above.
        unsafe { self.0.unlock(node) };
    }
    #[inline(always)]
    unsafe fn lock_shared(&self, node: &L::Node) {
        // SAFETY: as above.
        unsafe { self.0.lock(node) };
    }
    #[inline(always)]
    unsafe fn unlock_shared(&self, node: &L::Node) {
        // SAFETY: as above.
        unsafe { self.0.unlock(node) };
    }
}
