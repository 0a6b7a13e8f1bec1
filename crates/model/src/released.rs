//! Locks that are released in a way of their own.

use nearlock_core::raw::RawLock;

use crate::loom::Loom;

/// A mutex that can be released for the first in its queue.
pub trait UnlockFair: RawLock<Node = ()> {
    /// Releases it so.
    ///
    /// # Safety
    ///
    /// As [`RawLock::unlock`].
    unsafe fn unlock_fair(&self);
}

/// Always released so.
#[derive(Default)]
pub struct Fair<L>(L);

// SAFETY: is the lock inside.
unsafe impl<L: UnlockFair> RawLock for Fair<L> {
    type Node = ();
    unsafe fn lock(&self, node: &()) {
        // SAFETY: the caller's; so below.
        unsafe { self.0.lock(node) };
    }
    unsafe fn unlock(&self, _node: &()) {
        // SAFETY: as above.
        unsafe { self.0.unlock_fair() };
    }
}

/// Released when the first in the queue has waited for so long that it is handed over.
#[derive(Default)]
pub struct Overdue<L>(L);

/// Longer than any lock waits until then.
const LONG_NS: u64 = 10_000_000;

// SAFETY: is the lock inside.
unsafe impl<L: RawLock<Node = ()>> RawLock for Overdue<L> {
    type Node = ();
    unsafe fn lock(&self, node: &()) {
        // SAFETY: the caller's; so below.
        unsafe { self.0.lock(node) };
    }
    unsafe fn unlock(&self, node: &()) {
        Loom::set_now_ns(LONG_NS);
        // SAFETY: as above.
        unsafe { self.0.unlock(node) };
    }
}
