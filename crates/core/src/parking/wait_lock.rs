//! A lock that protects a list of waiters.

use crate::raw::RawTryLock;

/// A lock that protects a list of waiters. Its critical sections are short: they access a few cache
/// lines.
///
/// [`QueueLock`](super::queue_lock::QueueLock) is for programs: its waiters sleep if the holder has
/// lost its processor. The others are from kernels, for threads that have a processor each.
pub trait WaitLock: RawTryLock<Node = ()> {
    /// The lock, free.
    #[allow(clippy::declare_interior_mutable_const)] // a template to copy from, never borrowed
    const FREE: Self;
}

/// Calls `f`, which does not unwind, while the lock is held.
#[inline]
pub fn locked<L: WaitLock, R>(lock: &L, f: impl FnOnce() -> R) -> R {
    // SAFETY: the node is (), and unlock follows lock.
    unsafe {
        lock.lock(&());
        let r = f();
        lock.unlock(&());
        r
    }
}
