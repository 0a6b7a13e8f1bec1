//! The operations of a lock, for all kinds of locks.

use nearlock_collection::subjects::{LockVisitor, Subject};
use nearlock_core::parking::{GaveUp, Limit, RawTimedLock, RawTimedRwLock};
use nearlock_core::platform::Platform;
use nearlock_core::raw::{RawRwLock, RawTryLock};

use crate::watched::OsWatched;

/// The operations of a lock of type `L`. If waiters cannot give up, the operation waits without a
/// limit. If the lock has no readers, readers lock it as writers.
///
/// Safety: each operation has the conditions and the promises of the operation with the same name
/// in `nearlock_core::raw`.
pub trait Ways<P: Platform, L: RawTryLock>: Send + Sync + 'static {
    /// Whether waiters can give up.
    const TIMED: bool;
    /// Whether the lock has readers.
    const SHARED: bool;

    /// See `RawTimedLock`.
    unsafe fn lock_within(lock: &L, node: &L::Node, _limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        // SAFETY: by the caller's promise, also everywhere below.
        unsafe { lock.lock(node) };
        Ok(())
    }
    /// See `RawTimedRwLock`.
    unsafe fn lock_shared_within(lock: &L, node: &L::Node, _limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        // SAFETY: as above.
        unsafe { Self::lock_shared(lock, node) };
        Ok(())
    }
    /// See `RawRwLock`.
    unsafe fn lock_shared(lock: &L, node: &L::Node) {
        // SAFETY: as above.
        unsafe { lock.lock(node) };
    }
    /// See `RawRwLock`.
    unsafe fn try_lock_shared(lock: &L, node: &L::Node) -> bool {
        // SAFETY: as above.
        unsafe { lock.try_lock(node) }
    }
    /// See `RawRwLock`.
    unsafe fn unlock_shared(lock: &L, node: &L::Node) {
        // SAFETY: as above.
        unsafe { lock.unlock(node) };
    }
    /// See `RawRwLock`.
    unsafe fn downgrade(_lock: &L, _node: &L::Node) {}
}

/// Only `lock`, `try_lock` and `unlock`.
pub struct Plain;
/// A lock whose waiters can give up.
pub struct Timed;
/// A lock with readers.
pub struct Rw;
/// A lock with readers, whose waiters can give up.
pub struct TimedRw;

/// The readers' operations of a lock that has readers.
macro_rules! readers {
    () => {
        const SHARED: bool = true;
        unsafe fn lock_shared(lock: &L, node: &L::Node) {
            // SAFETY: by the caller's promise, also below.
            unsafe { lock.lock_shared(node) };
        }
        unsafe fn try_lock_shared(lock: &L, node: &L::Node) -> bool {
            // SAFETY: as above.
            unsafe { lock.try_lock_shared(node) }
        }
        unsafe fn unlock_shared(lock: &L, node: &L::Node) {
            // SAFETY: as above.
            unsafe { lock.unlock_shared(node) };
        }
        unsafe fn downgrade(lock: &L, node: &L::Node) {
            // SAFETY: as above.
            unsafe { lock.downgrade(node) };
        }
    };
}

/// The operation with a limit, of a lock whose waiters can give up.
macro_rules! limits {
    () => {
        const TIMED: bool = true;
        unsafe fn lock_within(lock: &L, node: &L::Node, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
            // SAFETY: by the caller's promise.
            unsafe { lock.lock_within(node, limit) }
        }
    };
}

impl<P: Platform, L: RawTryLock> Ways<P, L> for Plain {
    const TIMED: bool = false;
    const SHARED: bool = false;
}

impl<P: Platform, L: RawTimedLock<Platform = P>> Ways<P, L> for Timed {
    const SHARED: bool = false;
    limits!();
}

impl<P: Platform, L: RawRwLock> Ways<P, L> for Rw {
    const TIMED: bool = false;
    readers!();
}

impl<P: Platform, L: RawTimedRwLock<Platform = P>> Ways<P, L> for TimedRw {
    limits!();
    readers!();
    unsafe fn lock_shared_within(lock: &L, node: &L::Node, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        // SAFETY: by the caller's promise.
        unsafe { lock.lock_shared_within(node, limit) }
    }
}

/// A function of a lock and its operations.
pub trait ByWays {
    /// Its result.
    type Output;
    /// Calls it for lock type `L` with the operations `O`.
    fn by<L: RawTryLock, O: Ways<OsWatched, L>>(self) -> Self::Output;
}

/// Calls it for this lock, whose switches are already set.
pub fn visit<T: ByWays>(lock: &Subject, what: T) -> T::Output {
    lock.visit::<OsWatched, _>(Visitor(what))
}

struct Visitor<T>(T);

impl<T: ByWays> LockVisitor<OsWatched> for Visitor<T> {
    type Output = T::Output;
    fn visit<L: RawTryLock>(self) -> T::Output {
        self.0.by::<L, Plain>()
    }
    fn visit_timed<L: RawTimedLock<Platform = OsWatched>>(self) -> T::Output {
        self.0.by::<L, Timed>()
    }
    fn visit_rw<L: RawRwLock>(self) -> T::Output {
        self.0.by::<L, Rw>()
    }
    fn visit_timed_rw<L: RawTimedRwLock<Platform = OsWatched>>(self) -> T::Output {
        self.0.by::<L, TimedRw>()
    }
}
