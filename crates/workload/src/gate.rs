//! Locks as workloads with readers use them: those of plain locks exclude each other, those of
//! reader-writer locks share.

use nearlock_core::raw::RawLock;

/// A lock that readers and writers ask for. Unless implemented, readers are as writers.
///
/// # Safety
///
/// As [`RawRwLock`](nearlock_core::raw::RawRwLock); readers may be excluded from each other too.
pub unsafe trait Gate: RawLock {
    /// Acquires for a reader.
    ///
    /// # Safety
    ///
    /// As [`RawRwLock::lock_shared`](nearlock_core::raw::RawRwLock::lock_shared).
    #[inline(always)]
    unsafe fn lock_shared(&self, node: &Self::Node) {
        // SAFETY: the caller's.
        unsafe { self.lock(node) };
    }

    /// Releases a reader's acquisition.
    ///
    /// # Safety
    ///
    /// As [`RawRwLock::unlock_shared`](nearlock_core::raw::RawRwLock::unlock_shared).
    #[inline(always)]
    unsafe fn unlock_shared(&self, node: &Self::Node) {
        // SAFETY: the caller's: it has acquired by `lock`.
        unsafe { self.unlock(node) };
    }
}

/// A plain lock: readers are as writers.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct Exclusive<L>(L);

// SAFETY: those of the lock.
unsafe impl<L: RawLock> RawLock for Exclusive<L> {
    type Node = L::Node;

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
}

// SAFETY: everybody excludes everybody.
unsafe impl<L: RawLock> Gate for Exclusive<L> {}
