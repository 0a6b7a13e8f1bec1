//! Mutexes of the standard library and of crates.

use std::cell::UnsafeCell;
use std::mem::forget;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use nearlock_core::raw::RawLock;
use parking_lot_013::lock_api::GuardNoSend;

use super::super::condvar::WithCondvar;

#[derive(Default)]
pub struct Std(Mutex<()>);

/// The guard of one acquisition, which cannot be obtained from the lock again. The compiler keeps
/// its parts in registers, so the loop costs as much as with the guard in a variable.
#[derive(Default)]
pub struct HeldGuard(UnsafeCell<Option<MutexGuard<'static, ()>>>);

// SAFETY: lock and unlock run on the same thread, here as in all of the benchmark. The node is
// empty before and after, and no other thread accesses it.
unsafe impl Send for HeldGuard {}
// SAFETY: as above.
unsafe impl Sync for HeldGuard {}

// SAFETY: it is a mutex.
unsafe impl RawLock for Std {
    type Node = HeldGuard;

    #[inline(always)]
    unsafe fn lock(&self, node: &HeldGuard) {
        // SAFETY: neither the lock nor the node moves or is dropped before the release, by the
        // caller's promise. The guard is gone by then.
        let mutex: &'static Mutex<()> = unsafe { &*std::ptr::from_ref(&self.0) };
        let guard = mutex.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: only this acquisition uses the node.
        unsafe { *node.0.get() = Some(guard) };
    }

    #[inline(always)]
    unsafe fn unlock(&self, node: &HeldGuard) {
        // SAFETY: as in `lock`.
        drop(unsafe { (*node.0.get()).take() });
    }
}

// SAFETY: a wait returns a guard.
unsafe impl WithCondvar for Std {
    type Condvar = Condvar;

    #[inline(always)]
    unsafe fn wait(&self, node: &HeldGuard, condvar: &Condvar) {
        // SAFETY: only this acquisition uses the node.
        let guard = unsafe { &mut *node.0.get() };
        *guard = guard.take().map(|guard| condvar.wait(guard).unwrap_or_else(PoisonError::into_inner));
    }

    #[inline(always)]
    fn notify_one(condvar: &Condvar) {
        condvar.notify_one();
    }

    #[inline(always)]
    fn notify_all(condvar: &Condvar) {
        condvar.notify_all();
    }
}

/// Mutexes whose guards can be forgotten: name, type, and the argument of `force_unlock`, if any.
macro_rules! without_guard {
    ($($name:ident, $mutex:ty $(, $kept:expr)?;)*) => {$(
        #[derive(Default)]
        pub struct $name($mutex);

        // SAFETY: it is a mutex.
        unsafe impl RawLock for $name {
            type Node = ();

            #[inline(always)]
            unsafe fn lock(&self, _node: &()) {
                forget(self.0.lock());
            }

            #[inline(always)]
            unsafe fn unlock(&self, _node: &()) {
                // SAFETY: locked by the caller, whose guard was forgotten.
                unsafe { self.0.force_unlock($($kept)?) };
            }
        }
    )*};
}

without_guard! {
    ParkingLot012, parking_lot::Mutex<()>;
    ParkingLot013, parking_lot_013::Mutex<()>, GuardNoSend::new();
    Usync, usync::Mutex<()>;
    Spin, spin::Mutex<()>;
}

/// Condition variables of such mutexes: name, type, and the argument of `make_guard_unchecked`, if
/// any.
macro_rules! with_condvar {
    ($($name:ident, $condvar:ty $(, $kept:expr)?;)*) => {$(
        // SAFETY: a wait holds the mutex again when it returns.
        unsafe impl WithCondvar for $name {
            type Condvar = $condvar;

            #[inline(always)]
            unsafe fn wait(&self, _node: &(), condvar: &$condvar) {
                // SAFETY: the caller holds the mutex, and its guard was forgotten.
                let mut guard = unsafe { self.0.make_guard_unchecked($($kept)?) };
                condvar.wait(&mut guard);
                forget(guard);
            }

            #[inline(always)]
            fn notify_one(condvar: &$condvar) {
                condvar.notify_one();
            }

            #[inline(always)]
            fn notify_all(condvar: &$condvar) {
                condvar.notify_all();
            }
        }
    )*};
}

with_condvar! {
    ParkingLot012, parking_lot::Condvar;
    ParkingLot013, parking_lot_013::Condvar, GuardNoSend::new();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::peers::tests::holds_and_releases;

    #[test]
    fn a_mutex_is_held_from_lock_to_unlock() {
        holds_and_releases::<Std>(|lock| lock.0.try_lock().is_ok());
        holds_and_releases::<ParkingLot012>(|lock| lock.0.try_lock().is_some());
        holds_and_releases::<ParkingLot013>(|lock| lock.0.try_lock().is_some());
        holds_and_releases::<Usync>(|lock| lock.0.try_lock().is_some());
        holds_and_releases::<Spin>(|lock| lock.0.try_lock().is_some());
    }
}
