//! Locks that are unlocked in a special way.

use nearlock_core::raw::RawLock;

use crate::loom::Loom;

/// A mutex that can be handed over to the first in its queue.
pub trait UnlockFair: RawLock<Node = ()> {
    /// Unlocks with a hand-over to the first in the queue.
    ///
    /// # Safety
    ///
    /// As [`RawLock::unlock`].
    unsafe fn unlock_fair(&self);
}

/// A lock that is always unlocked with [`UnlockFair::unlock_fair`].
#[derive(Default)]
pub struct Fair<L>(L);

// SAFETY: forwards to the lock inside.
unsafe impl<L: UnlockFair> RawLock for Fair<L> {
    type Node = ();
    unsafe fn lock(&self, node: &()) {
        // SAFETY: the condition of the caller; also below.
        unsafe { self.0.lock(node) };
    }
    unsafe fn unlock(&self, _node: &()) {
        // SAFETY: as above.
        unsafe { self.0.unlock_fair() };
    }
}

/// A lock whose first waiter has waited for so long at each unlock that the lock is handed over.
#[derive(Default)]
pub struct Overdue<L>(L);

/// Longer than any lock waits before that.
const LONG_NS: u64 = 10_000_000;

// SAFETY: forwards to the lock inside.
unsafe impl<L: RawLock<Node = ()>> RawLock for Overdue<L> {
    type Node = ();
    unsafe fn lock(&self, node: &()) {
        // SAFETY: the condition of the caller; also below.
        unsafe { self.0.lock(node) };
    }
    unsafe fn unlock(&self, node: &()) {
        Loom::set_now_ns(LONG_NS);
        // SAFETY: as above.
        unsafe { self.0.unlock(node) };
    }
}
