//! How many locks of a kind the calling thread holds shared.
//!
//! A lock's word does not name its readers. So a lock cannot know whether a thread that wants it
//! shared already holds it, and would wait for a writer that waits for this thread. The locks of
//! this family use an approximation: a thread that holds any lock of the kind shared does not wait
//! for waiting writers. The count belongs to the thread, and costs two accesses to its own memory.
//!
//! A read guard that is forgotten stays counted: from then on its thread passes the waiting writers
//! of all locks of that kind. This changes the order of acquisitions, but not exclusion.

use core::cell::Cell;

use crate::platform::Platform;

/// A kind of locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedLock {
    /// FreeBSD's `rwlock`.
    Rw,
    /// FreeBSD's `sx`.
    Sx,
    /// FreeBSD's `lockmgr`.
    LockMgr,
}

impl SharedLock {
    /// The number of kinds.
    pub const COUNT: usize = 3;
}

/// The counts of the calling thread.
pub trait SharedHolds: Platform {
    /// Calls `f` with the count of one kind. The count is 0 at first.
    fn with_shared_holds<R>(of: SharedLock, f: impl FnOnce(&Cell<u32>) -> R) -> R;
}

/// Notes that the caller holds one more.
#[inline(always)]
pub fn add<P: SharedHolds>(of: SharedLock) {
    P::with_shared_holds(of, |holds| holds.set(holds.get() + 1));
}

/// Notes that the caller holds one less.
#[inline(always)]
pub fn remove<P: SharedHolds>(of: SharedLock) {
    P::with_shared_holds(of, |holds| {
        debug_assert!(holds.get() > 0, "releases a share that it does not hold");
        holds.set(holds.get().saturating_sub(1));
    });
}

/// Whether the caller holds any.
#[inline]
pub fn any<P: SharedHolds>(of: SharedLock) -> bool {
    P::with_shared_holds(of, |holds| holds.get() > 0)
}
