//! No lock at all: the baseline of sections that only read.

use crate::platform::{Atomic, Platform};
use crate::raw::{RawLock, RawRwLock, RawTryLock};

/// Excludes no thread, and costs nothing: no operation accesses memory. Sections that only read
/// need no lock as long as no thread writes. So their throughput with this control is what a lock
/// for readers can reach.
///
/// It has the size of a small lock, so that the data after it has the same place.
pub struct NoLock<P: Platform>(P::U32);

impl<P: Platform> Default for NoLock<P> {
    fn default() -> Self {
        Self(Atomic::new(0))
    }
}

// SAFETY: none: this is a control that the checkers of exclusion must catch.
unsafe impl<P: Platform> RawLock for NoLock<P> {
    type Node = ();
    #[inline(always)]
    unsafe fn lock(&self, _node: &()) {}
    #[inline(always)]
    unsafe fn unlock(&self, _node: &()) {}
}

// SAFETY: none, as above.
unsafe impl<P: Platform> RawTryLock for NoLock<P> {
    #[inline(always)]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        true
    }
    fn is_locked(&self) -> bool {
        false
    }
}

// SAFETY: none, as above. Readers that exclude no writer are no fault as long as no thread writes.
unsafe impl<P: Platform> RawRwLock for NoLock<P> {
    #[inline(always)]
    unsafe fn lock_shared(&self, _node: &()) {}
    #[inline(always)]
    unsafe fn try_lock_shared(&self, _node: &()) -> bool {
        true
    }
    #[inline(always)]
    unsafe fn unlock_shared(&self, _node: &()) {}
    fn is_locked_exclusive(&self) -> bool {
        false
    }
    #[inline(always)]
    unsafe fn downgrade(&self, _node: &()) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Native;

    #[test]
    fn it_lets_all_in_at_once() {
        let lock = NoLock::<Native>::default();
        // SAFETY: none for exclusion, and nothing is accessed.
        unsafe {
            lock.lock(&());
            assert!(lock.try_lock(&()) && lock.try_lock_shared(&()));
            lock.lock_shared(&());
            assert!(!lock.is_locked() && !lock.is_locked_exclusive());
            lock.unlock_shared(&());
            lock.downgrade(&());
            lock.unlock_shared(&());
            lock.unlock(&());
        }
    }
}
