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
/// (The negative controls break this on purpose and say so.)
pub unsafe trait RawLock: Default + Send + Sync + 'static {
    /// What one acquisition keeps from `lock` to `unlock`: a queue node, or `()`.
    type Node: Default + Send + Sync + 'static;

    /// Acquires the lock.
    ///
    /// # Safety
    ///
    /// `node` is not in use by any other acquisition. Neither it nor the lock moves or dies before
    /// the matching [`unlock`](Self::unlock) returns.
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

    /// Whether somebody holds the lock. Stale by the time it is known, and orders nothing.
    ///
    /// Locks that can tell from a look at their word do so; this default takes the lock for a
    /// moment.
    fn is_locked(&self) -> bool {
        let node = Self::Node::default();
        // SAFETY: the node is fresh, and lives until the lock is released.
        unsafe {
            let free = self.try_lock(&node);
            if free {
                self.unlock(&node);
            }
            !free
        }
    }
}

/// A lock that many readers or one writer hold. What [`RawLock`] does is the writer's side.
///
/// # Safety
///
/// While a shared acquisition is under way there is no exclusive one; what happened before the
/// `unlock` of an exclusive one happens before what follows the next shared ones, and what happened
/// before the `unlock_shared` of those happens before what follows the next exclusive one.
pub unsafe trait RawRwLock: RawTryLock {
    /// Acquires the lock together with other readers.
    ///
    /// # Safety
    ///
    /// As [`RawLock::lock`], up to [`unlock_shared`](Self::unlock_shared).
    unsafe fn lock_shared(&self, node: &Self::Node);

    /// Does so if no writer holds the lock, nor anything else that the lock gives precedence to.
    ///
    /// # Safety
    ///
    /// As [`lock_shared`](Self::lock_shared), if it returns true.
    unsafe fn try_lock_shared(&self, node: &Self::Node) -> bool;

    /// Releases one shared acquisition.
    ///
    /// # Safety
    ///
    /// The caller holds the lock, acquired shared with this `node`.
    unsafe fn unlock_shared(&self, node: &Self::Node);

    /// Whether a writer holds the lock. Stale by the time it is known, and orders nothing.
    ///
    /// Locks that can tell from a look at their word do so; this default takes the lock shared for
    /// a moment, so that it may take writers that wait for one that holds.
    fn is_locked_exclusive(&self) -> bool {
        let node = Self::Node::default();
        // SAFETY: the node is fresh, and lives until the lock is released.
        unsafe {
            let without_writer = self.try_lock_shared(&node);
            if without_writer {
                self.unlock_shared(&node);
            }
            !without_writer && self.is_locked()
        }
    }

    /// Makes the caller's exclusive acquisition a shared one, with no other writer in between.
    ///
    /// # Safety
    ///
    /// The caller holds the lock exclusively, with this `node`.
    unsafe fn downgrade(&self, node: &Self::Node);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::near::mutex::NearMutex;
    use crate::testing::OneThread;

    /// Leaves `is_locked` to the trait.
    #[derive(Default)]
    struct Plain(NearMutex<OneThread>);

    // SAFETY: is the lock inside; so below.
    unsafe impl RawLock for Plain {
        type Node = ();
        unsafe fn lock(&self, node: &()) {
            // SAFETY: the caller's; so below.
            unsafe { self.0.lock(node) };
        }
        unsafe fn unlock(&self, node: &()) {
            // SAFETY: as above.
            unsafe { self.0.unlock(node) };
        }
    }

    // SAFETY: as above.
    unsafe impl RawTryLock for Plain {
        unsafe fn try_lock(&self, node: &()) -> bool {
            // SAFETY: as above.
            unsafe { self.0.try_lock(node) }
        }
    }

    #[test]
    fn a_lock_that_cannot_look_at_its_word_tries() {
        let lock = Plain::default();
        assert!(!lock.is_locked());
        // SAFETY: one thread, and unlock follows lock.
        unsafe {
            lock.lock(&());
            assert!(lock.is_locked());
            lock.unlock(&());
        }
        assert!(!lock.is_locked());
    }
}
