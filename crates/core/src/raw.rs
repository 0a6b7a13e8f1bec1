//! The interface of the algorithms: locks that hold no data.
//!
//! Guards, `Send`, `Sync` and access to the data are made elsewhere, once for all locks.

/// Mutual exclusion.
///
/// # Safety
///
/// An acquisition lasts from the return of [`lock`](Self::lock), or of a successful
/// [`try_lock`](RawTryLock::try_lock), to the call of [`unlock`](Self::unlock). There is at most
/// one acquisition at a time. Everything before an `unlock` happens before everything after the
/// next acquisition. (The negative controls break this on purpose and say so.)
pub unsafe trait RawLock: Default + Send + Sync + 'static {
    /// The data of an acquisition from `lock` to `unlock`: a queue node, or `()`.
    type Node: Default + Send + Sync + 'static;

    /// Acquires the lock.
    ///
    /// # Safety
    ///
    /// No other acquisition uses `node`. Neither the node nor the lock moves or is dropped before
    /// the matching [`unlock`](Self::unlock) returns.
    unsafe fn lock(&self, node: &Self::Node);

    /// Releases the lock.
    ///
    /// # Safety
    ///
    /// The caller holds the lock, acquired with this `node`.
    unsafe fn unlock(&self, node: &Self::Node);
}

/// A lock that can be acquired without waiting if it is free.
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

    /// Whether a thread holds the lock. The answer may be out of date, and orders nothing.
    ///
    /// Locks whose word tells it read the word. This default takes the lock for a moment.
    fn is_locked(&self) -> bool {
        let node = Self::Node::default();
        // SAFETY: the node is fresh, and lives until the lock has been released.
        unsafe {
            let free = self.try_lock(&node);
            if free {
                self.unlock(&node);
            }
            !free
        }
    }
}

/// A lock that many readers or one writer hold. The functions of [`RawLock`] are the writer's side.
///
/// # Safety
///
/// While there is a shared acquisition, there is no exclusive one. Everything before the `unlock`
/// of an exclusive acquisition happens before everything after the next shared ones. Everything
/// before the `unlock_shared` of those happens before everything after the next exclusive one.
pub unsafe trait RawRwLock: RawTryLock {
    /// Acquires the lock together with other readers.
    ///
    /// # Safety
    ///
    /// As [`RawLock::lock`], up to [`unlock_shared`](Self::unlock_shared).
    unsafe fn lock_shared(&self, node: &Self::Node);

    /// Acquires the lock together with other readers, if no writer holds it. Fails also if the lock
    /// gives precedence to another thread.
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

    /// Whether a writer holds the lock. The answer may be out of date, and orders nothing.
    ///
    /// Locks whose word tells it read the word. This default takes the lock shared for a moment. It
    /// may mistake waiting writers for a writer that holds the lock.
    fn is_locked_exclusive(&self) -> bool {
        let node = Self::Node::default();
        // SAFETY: the node is fresh, and lives until the lock has been released.
        unsafe {
            let without_writer = self.try_lock_shared(&node);
            if without_writer {
                self.unlock_shared(&node);
            }
            !without_writer && self.is_locked()
        }
    }

    /// Turns the caller's exclusive acquisition into a shared one, with no other writer in between.
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

    /// Uses the default `is_locked` of the trait.
    #[derive(Default)]
    struct Plain(NearMutex<OneThread>);

    // SAFETY: the lock inside is a `RawLock`; so below.
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
