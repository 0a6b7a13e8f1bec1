//! Locks for workloads with readers. Readers of a plain lock exclude each other. Readers of a
//! reader-writer lock share it.

use nearlock_core::raw::RawLock;

/// A lock for readers and writers. By default, readers lock it like writers.
///
/// # Safety
///
/// See [`RawRwLock`](nearlock_core::raw::RawRwLock). Readers may also exclude each other.
pub unsafe trait Gate: RawLock {
    /// Locks for a reader.
    ///
    /// # Safety
    ///
    /// See [`RawRwLock::lock_shared`](nearlock_core::raw::RawRwLock::lock_shared).
    #[inline(always)]
    unsafe fn lock_shared(&self, node: &Self::Node) {
        // SAFETY: by the caller's promise.
        unsafe { self.lock(node) };
    }

    /// Unlocks for a reader.
    ///
    /// # Safety
    ///
    /// See [`RawRwLock::unlock_shared`](nearlock_core::raw::RawRwLock::unlock_shared).
    #[inline(always)]
    unsafe fn unlock_shared(&self, node: &Self::Node) {
        // SAFETY: by the caller's promise. The caller has locked it by `lock`.
        unsafe { self.unlock(node) };
    }
}

/// A plain lock: readers lock it like writers.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct Exclusive<L>(L);

// SAFETY: the guarantees are those of the lock inside.
unsafe impl<L: RawLock> RawLock for Exclusive<L> {
    type Node = L::Node;

    #[inline(always)]
    unsafe fn lock(&self, node: &L::Node) {
        // SAFETY: by the caller's promise, also below.
        unsafe { self.0.lock(node) };
    }
    #[inline(always)]
    unsafe fn unlock(&self, node: &L::Node) {
        // SAFETY: as above.
        unsafe { self.0.unlock(node) };
    }
}

// SAFETY: each acquisition excludes all others.
unsafe impl<L: RawLock> Gate for Exclusive<L> {}
