//! The holder of a lock, and the destruction of locks.

use nearlock_collection::freebsd::mtx::{InUse, Mtx};
use nearlock_collection::freebsd::rwsx::{Kind, RwSx};
use nearlock_collection::freebsd::spin_mtx::{LongSpin, SpinMtx};
use nearlock_collection::freebsd::tuning::Tuning;
use nearlock_core::raw::{RawRwLock, RawTryLock};
use nearlock_core::schedule::ThreadId;
use nearlock_os::Os;

use super::RawRecursiveLock;
use crate::lock_api::{Mutex, RwLock};
use crate::raw::Nodeless;

/// Names the exclusive holder of a lock. Readers are not known.
///
/// ```
/// use nearlock::freebsd::{Ownership, Sx};
/// use nearlock::process::thread_id;
///
/// let tree = Sx::new(());
/// let writes = tree.write();
/// assert!(tree.is_owned());
/// std::thread::scope(|scope| {
///     let holder = scope.spawn(|| tree.holder()).join().unwrap();
///     assert_eq!(holder, Some(thread_id()));
/// });
/// drop(writes);
/// assert_eq!(tree.holder(), None);
/// ```
pub trait Ownership {
    /// Returns the thread that holds the lock: `sx_xholder`. The result may be out of date at once,
    /// unless it is the caller.
    fn holder(&self) -> Option<ThreadId>;

    /// Returns whether the caller holds the lock: `mtx_owned`, `rw_wowned`, `sx_xlocked`.
    fn is_owned(&self) -> bool {
        self.holder() == Some(crate::process::thread_id())
    }
}

impl<K: Tuning, T: ?Sized> Ownership for Mutex<Nodeless<Mtx<Os, K>>, T> {
    fn holder(&self) -> Option<ThreadId> {
        // SAFETY: the raw lock is only read. The same holds below.
        unsafe { self.raw() }.0.owner()
    }
}

impl<K: Tuning, D: LongSpin, T: ?Sized> Ownership for Mutex<Nodeless<SpinMtx<Os, K, D>>, T> {
    fn holder(&self) -> Option<ThreadId> {
        // SAFETY: as above.
        unsafe { self.raw() }.0.owner()
    }
}

impl<K: Tuning, S: Kind, T: ?Sized> Ownership for RwLock<Nodeless<RwSx<Os, K, S>>, T> {
    fn holder(&self) -> Option<ThreadId> {
        // SAFETY: as above.
        unsafe { self.raw() }.0.writer()
    }
}

/// Destroys a lock: `mtx_destroy`, `rw_destroy`, `sx_destroy`, `lockdestroy`.
///
/// A lock that is borrowed cannot be destroyed. But a lock can be destroyed while it is held by a
/// guard that was forgotten. This is a mistake. Debug assertions detect it, and it is harmless
/// without them.
///
/// ```
/// use nearlock::freebsd::{Destroy, Mtx};
///
/// let total = Mtx::new(5);
/// *total.lock() += 1;
/// assert_eq!(total.destroy(), 6);
/// ```
pub trait Destroy {
    /// The data that the lock protects.
    type Value;

    /// Destroys the lock, and returns the data. It is no mistake if the caller holds a mutex once,
    /// by a guard that it has forgotten.
    fn destroy(self) -> Self::Value;
}

/// Panics with debug assertions if the lock was in use when it was destroyed.
pub(super) fn check(end: Result<(), InUse>) {
    debug_assert!(end.is_ok(), "destroys a lock that is in use: {end:?}");
}

/// The result of a destruction, for a lock whose waiters may give up.
pub(super) fn unless_idle(lock: &impl RawTryLock, end: Result<(), InUse>) -> Result<(), InUse> {
    // Such waiters may have left their bits. No thread waits, since no other thread knows the lock.
    if end == Err(InUse::Contested) && !lock.is_locked() { Ok(()) } else { end }
}

/// Destroys a spin mutex, as a mutex is destroyed. Core has no operation for it.
///
/// It leaves no section. The word may name a holder that has ended, and whose id the caller has
/// now. The caller has not entered the section of that holder. It would leave that of another mutex
/// that it holds.
pub(super) fn end_spin<K: Tuning, D: LongSpin>(lock: &SpinMtx<Os, K, D>) -> Result<(), InUse> {
    if !lock.is_owned() {
        return if lock.is_locked() { Err(InUse::Held) } else { Ok(()) };
    }
    if lock.is_recursed() { Err(InUse::Recursed) } else { Ok(()) }
}

impl<L: RawRecursiveLock, T> Destroy for Mutex<Nodeless<L>, T> {
    type Value = T;

    fn destroy(self) -> T {
        // SAFETY: no other thread can use it any more. The same holds below.
        check(unsafe { self.raw() }.0.destroy());
        self.into_inner()
    }
}

impl<L: RawRecursiveLock + RawRwLock<Node = ()>, T> Destroy for RwLock<Nodeless<L>, T> {
    type Value = T;

    fn destroy(self) -> T {
        // SAFETY: as above.
        check(unsafe { self.raw() }.0.destroy());
        self.into_inner()
    }
}
