//! Reader-writer locks of other libraries.

use std::cell::UnsafeCell;
use std::mem::forget;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use nearlock_core::raw::{RawLock, RawRwLock, RawTryLock};
use parking_lot::lock_api::RawRwLockDowngrade;
use parking_lot_013::lock_api::{GuardNoSend, RawRwLockDowngrade as RawRwLockDowngrade013};

#[derive(Default)]
pub struct Std(RwLock<()>);

/// The guard of one acquisition.
#[derive(Default)]
enum Guard {
    #[default]
    None,
    Write(RwLockWriteGuard<'static, ()>),
    Read(RwLockReadGuard<'static, ()>),
}

/// Keeps the guard, as for the mutex.
#[derive(Default)]
pub struct HeldGuard(UnsafeCell<Guard>);

// SAFETY: lock and unlock run on the same thread, here as in all of the benchmark. The node is
// empty before and after, and no other thread accesses it.
unsafe impl Send for HeldGuard {}
// SAFETY: as above.
unsafe impl Sync for HeldGuard {}

impl HeldGuard {
    /// Stores a guard, and returns the previous one.
    ///
    /// Safety: only the caller's acquisition uses the node.
    #[inline(always)]
    unsafe fn replace(&self, guard: Guard) -> Guard {
        // SAFETY: by this function's own condition.
        unsafe { std::mem::replace(&mut *self.0.get(), guard) }
    }
}

impl Std {
    /// Safety: the lock neither moves nor is dropped before the guards that it makes are gone.
    #[inline(always)]
    unsafe fn lasting(&self) -> &'static RwLock<()> {
        // SAFETY: by this function's own condition.
        unsafe { &*std::ptr::from_ref(&self.0) }
    }
}

// SAFETY: it is a reader-writer lock, and this is its writers' side.
unsafe impl RawLock for Std {
    type Node = HeldGuard;

    #[inline(always)]
    unsafe fn lock(&self, node: &HeldGuard) {
        // SAFETY: by the caller's promise.
        unsafe {
            let guard = self.lasting().write().unwrap_or_else(PoisonError::into_inner);
            node.replace(Guard::Write(guard));
        }
    }

    #[inline(always)]
    unsafe fn unlock(&self, node: &HeldGuard) {
        // SAFETY: by the caller's promise.
        drop(unsafe { node.replace(Guard::None) });
    }
}

// SAFETY: as above.
unsafe impl RawTryLock for Std {
    #[inline(always)]
    unsafe fn try_lock(&self, node: &HeldGuard) -> bool {
        // SAFETY: by the caller's promise.
        unsafe {
            let guard = self.lasting().try_write().ok();
            guard.map(|guard| node.replace(Guard::Write(guard))).is_some()
        }
    }
}

// SAFETY: it is a reader-writer lock.
unsafe impl RawRwLock for Std {
    #[inline(always)]
    unsafe fn lock_shared(&self, node: &HeldGuard) {
        // SAFETY: by the caller's promise.
        unsafe {
            let guard = self.lasting().read().unwrap_or_else(PoisonError::into_inner);
            node.replace(Guard::Read(guard));
        }
    }

    #[inline(always)]
    unsafe fn try_lock_shared(&self, node: &HeldGuard) -> bool {
        // SAFETY: by the caller's promise.
        unsafe {
            let guard = self.lasting().try_read().ok();
            guard.map(|guard| node.replace(Guard::Read(guard))).is_some()
        }
    }

    #[inline(always)]
    unsafe fn unlock_shared(&self, node: &HeldGuard) {
        // SAFETY: by the caller's promise.
        if let Guard::Read(guard) = unsafe { node.replace(Guard::None) } {
            drop(guard);
        }
    }

    #[inline(always)]
    unsafe fn downgrade(&self, node: &HeldGuard) {
        // SAFETY: by the caller's promise.
        unsafe {
            if let Guard::Write(guard) = node.replace(Guard::None) {
                node.replace(Guard::Read(RwLockWriteGuard::downgrade(guard)));
            }
        }
    }
}

/// Locks whose guards can be forgotten: name, type, and the state of a guard, if any.
macro_rules! without_guard {
    ($($name:ident, $lock:ty, $downgrade:path $(, $kept:expr)?;)*) => {$(
        #[derive(Default)]
        pub struct $name($lock);

        // SAFETY: it is a reader-writer lock, and this is its writers' side.
        unsafe impl RawLock for $name {
            type Node = ();

            #[inline(always)]
            unsafe fn lock(&self, _node: &()) {
                forget(self.0.write());
            }

            #[inline(always)]
            unsafe fn unlock(&self, _node: &()) {
                // SAFETY: locked by the caller, and the guard was forgotten.
                unsafe { self.0.force_unlock_write($($kept)?) };
            }
        }

        // SAFETY: as above.
        unsafe impl RawTryLock for $name {
            #[inline(always)]
            unsafe fn try_lock(&self, _node: &()) -> bool {
                self.0.try_write().map(forget).is_some()
            }
        }

        // SAFETY: it is a reader-writer lock.
        unsafe impl RawRwLock for $name {
            #[inline(always)]
            unsafe fn lock_shared(&self, _node: &()) {
                forget(self.0.read());
            }

            #[inline(always)]
            unsafe fn try_lock_shared(&self, _node: &()) -> bool {
                self.0.try_read().map(forget).is_some()
            }

            #[inline(always)]
            unsafe fn unlock_shared(&self, _node: &()) {
                // SAFETY: locked shared by the caller, and the guard was forgotten.
                unsafe { self.0.force_unlock_read($($kept)?) };
            }

            #[inline(always)]
            unsafe fn downgrade(&self, _node: &()) {
                // SAFETY: locked by the caller, and the guard was forgotten.
                unsafe { _ = $downgrade(self.0.raw() $(, $kept)?) };
            }
        }
    )*};
}

/// `usync` has none, and the benchmark does not use it.
fn no_downgrade<L>(_lock: &L) {
    unreachable!("the lock has no downgrade");
}

without_guard! {
    ParkingLot012, parking_lot::RwLock<()>, RawRwLockDowngrade::downgrade;
    ParkingLot013, parking_lot_013::RwLock<()>, RawRwLockDowngrade013::downgrade, GuardNoSend::new();
    Usync, usync::RwLock<()>, no_downgrade;
    Spin, spin::lock_api::RwLock<()>, RawRwLockDowngrade::downgrade;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits_readers_or_a_writer<L: RawRwLock>() {
        let lock = L::default();
        let [first, second] = [L::Node::default(), L::Node::default()];
        // SAFETY: there is one thread. Each node is in use by one acquisition at a time, and all
        // stay in place.
        unsafe {
            lock.lock(&first);
            assert!(!lock.try_lock(&second) && !lock.try_lock_shared(&second));
            lock.unlock(&first);
            lock.lock_shared(&first);
            assert!(!lock.try_lock(&second) && lock.try_lock_shared(&second));
            lock.unlock_shared(&second);
            assert!(!lock.try_lock(&second));
            lock.unlock_shared(&first);
            assert!(lock.try_lock(&second));
            lock.unlock(&second);
        }
    }

    fn downgrades<L: RawRwLock>() {
        let lock = L::default();
        let [first, second] = [L::Node::default(), L::Node::default()];
        // SAFETY: as above.
        unsafe {
            lock.lock(&first);
            lock.downgrade(&first);
            assert!(!lock.try_lock(&second) && lock.try_lock_shared(&second));
            lock.unlock_shared(&first);
            lock.unlock_shared(&second);
        }
    }

    #[test]
    fn readers_share_and_writers_do_not() {
        admits_readers_or_a_writer::<Std>();
        admits_readers_or_a_writer::<ParkingLot012>();
        admits_readers_or_a_writer::<ParkingLot013>();
        admits_readers_or_a_writer::<Usync>();
        admits_readers_or_a_writer::<Spin>();
    }

    #[test]
    fn writers_become_readers() {
        downgrades::<Std>();
        downgrades::<ParkingLot012>();
        downgrades::<ParkingLot013>();
        downgrades::<Spin>();
    }
}
