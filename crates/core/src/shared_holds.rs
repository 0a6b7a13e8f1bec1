//! How many locks of a kind the calling thread holds shared.
//!
//! Readers are not named in a lock's word. So a lock cannot know whether a reader that comes holds
//! it already, and would wait for a writer who waits for it. The locks of this family go by the
//! next best: a thread that holds any lock of the kind shared does not wait for waiting writers.
//! The count is the thread's, and costs two accesses to its own memory.
//!
//! A read guard that is forgotten stays counted: from then on its thread passes the waiting writers
//! of all locks of that kind. This changes who comes first, and excludes as ever.

use core::cell::Cell;

use crate::platform::Platform;

/// Of which locks.
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
    /// How many kinds there are.
    pub const COUNT: usize = 3;
}

/// The counts of the calling thread.
pub trait SharedHolds: Platform {
    /// Does something with one of them. 0 at first.
    fn with_shared_holds<R>(of: SharedLock, f: impl FnOnce(&Cell<u32>) -> R) -> R;
}

/// The caller holds one more.
#[inline(always)]
pub fn add<P: SharedHolds>(of: SharedLock) {
    P::with_shared_holds(of, |holds| holds.set(holds.get() + 1));
}

/// The caller holds one less.
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
