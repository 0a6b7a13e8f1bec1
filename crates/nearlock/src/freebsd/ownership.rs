//! Who holds a lock, and its end.

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

/// Who holds a lock exclusively: readers are not known.
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
    /// Who holds it: `sx_xholder`. Stale by the time it is known, unless that is the caller.
    fn holder(&self) -> Option<ThreadId>;

    /// Whether the caller does: `mtx_owned`, `rw_wowned`, `sx_xlocked`.
    fn is_owned(&self) -> bool {
        self.holder() == Some(crate::process::thread_id())
    }
}

impl<K: Tuning, T: ?Sized> Ownership for Mutex<Nodeless<Mtx<Os, K>>, T> {
    fn holder(&self) -> Option<ThreadId> {
        // SAFETY: only to look at it; so below.
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

/// The end of a lock: `mtx_destroy`, `rw_destroy`, `sx_destroy`, `lockdestroy`.
///
/// What is borrowed cannot be destroyed. What is held by a guard that somebody has forgotten can:
/// that is a mistake, which debug assertions find, and which is harmless without them.
///
/// ```
/// use nearlock::freebsd::{Destroy, Mtx};
///
/// let total = Mtx::new(5);
/// *total.lock() += 1;
/// assert_eq!(total.destroy(), 6);
/// ```
pub trait Destroy {
    /// What it protects.
    type Value;

    /// Ends the lock, and gives back what it has protected. The caller may hold a mutex, by a guard
    /// that it has forgotten, once.
    fn destroy(self) -> Self::Value;
}

/// What comes of its end is a mistake, or nothing.
pub(super) fn check(end: Result<(), InUse>) {
    debug_assert!(end.is_ok(), "destroys a lock that is in use: {end:?}");
}

/// The same of a lock whose waiters may give up.
pub(super) fn unless_idle(lock: &impl RawTryLock, end: Result<(), InUse>) -> Result<(), InUse> {
    // They may have left their bits behind; nobody waits, since nobody else knows the lock.
    if end == Err(InUse::Contested) && !lock.is_locked() { Ok(()) } else { end }
}

/// The end of a spin mutex, for which core has none: as that of a mutex.
///
/// It leaves no section. The holder that the word names may be a thread that has ended and had the
/// caller's name. The caller would then leave a section that it has not entered, of another mutex
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
        // SAFETY: nobody can use it any more; so below.
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
