//! Locks of the C library.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;

use libc::{pthread_cond_t, pthread_mutex_t, pthread_rwlock_t, pthread_rwlockattr_t, pthread_spinlock_t};
use nearlock_core::raw::{RawLock, RawRwLock, RawTryLock};

use super::super::condvar::WithCondvar;
use super::{Lock, of, of_rw, of_with_condvar};

/// The default kind: it sleeps at once.
pub const NORMAL: Option<Lock> = of_with_condvar::<Mutex<{ libc::PTHREAD_MUTEX_NORMAL }>>();
/// Spins for a while before it sleeps.
pub const ADAPTIVE: Option<Lock> = of_with_condvar::<Mutex<{ libc::PTHREAD_MUTEX_ADAPTIVE_NP }>>();
/// Only spins.
pub const SPIN: Option<Lock> = of::<Spin>();

/// The default kind of reader-writer lock: it prefers readers.
pub const RWLOCK: Option<Lock> = of_rw::<RwLock<PREFERS_READERS>>();
/// The kind that prefers writers.
pub const RWLOCK_WRITERS: Option<Lock> = of_rw::<RwLock<PREFERS_WRITERS>>();

/// `PTHREAD_RWLOCK_PREFER_READER_NP`
const PREFERS_READERS: i32 = 0;
/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`
const PREFERS_WRITERS: i32 = 2;

/// A pthread mutex of this kind.
struct Mutex<const KIND: i32>(UnsafeCell<pthread_mutex_t>);

// SAFETY: a pthread mutex is made for use by several threads.
unsafe impl<const KIND: i32> Send for Mutex<KIND> {}
// SAFETY: as above.
unsafe impl<const KIND: i32> Sync for Mutex<KIND> {}

impl<const KIND: i32> Default for Mutex<KIND> {
    fn default() -> Self {
        let initializer = match KIND {
            libc::PTHREAD_MUTEX_ADAPTIVE_NP => libc::PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP,
            _ => libc::PTHREAD_MUTEX_INITIALIZER,
        };
        Self(UnsafeCell::new(initializer))
    }
}

// SAFETY: it is a mutex.
unsafe impl<const KIND: i32> RawLock for Mutex<KIND> {
    type Node = ();

    #[inline(always)]
    unsafe fn lock(&self, _node: &()) {
        // SAFETY: initialized, and stays in place by the caller's promise.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
    }

    #[inline(always)]
    unsafe fn unlock(&self, _node: &()) {
        // SAFETY: locked by the caller.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

/// A pthread condition variable. It needs no destruction in glibc.
struct Condvar(UnsafeCell<pthread_cond_t>);

// SAFETY: a pthread condition variable is made for use by several threads.
unsafe impl Send for Condvar {}
// SAFETY: as above.
unsafe impl Sync for Condvar {}

impl Default for Condvar {
    fn default() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER))
    }
}

// SAFETY: a wait holds the mutex again when it returns.
unsafe impl<const KIND: i32> WithCondvar for Mutex<KIND> {
    type Condvar = Condvar;

    #[inline(always)]
    unsafe fn wait(&self, _node: &(), condvar: &Condvar) {
        // SAFETY: both are initialized, and stay in place. The caller holds the mutex.
        unsafe { libc::pthread_cond_wait(condvar.0.get(), self.0.get()) };
    }

    #[inline(always)]
    fn notify_one(condvar: &Condvar) {
        // SAFETY: initialized, and in place since the first wait.
        unsafe { libc::pthread_cond_signal(condvar.0.get()) };
    }

    #[inline(always)]
    fn notify_all(condvar: &Condvar) {
        // SAFETY: as in `notify_one`.
        unsafe { libc::pthread_cond_broadcast(condvar.0.get()) };
    }
}

/// A pthread reader-writer lock of this kind.
struct RwLock<const KIND: i32>(UnsafeCell<pthread_rwlock_t>);

// SAFETY: a pthread reader-writer lock is made for use by several threads.
unsafe impl<const KIND: i32> Send for RwLock<KIND> {}
// SAFETY: as above.
unsafe impl<const KIND: i32> Sync for RwLock<KIND> {}

unsafe extern "C" {
    fn pthread_rwlockattr_setkind_np(attributes: *mut pthread_rwlockattr_t, kind: i32) -> i32;
}

impl<const KIND: i32> Default for RwLock<KIND> {
    fn default() -> Self {
        let lock = UnsafeCell::new(libc::PTHREAD_RWLOCK_INITIALIZER);
        let mut attributes = MaybeUninit::uninit();
        let attributes = attributes.as_mut_ptr();
        // SAFETY: the memory is this function's own. The attributes are initialized first.
        unsafe {
            libc::pthread_rwlockattr_init(attributes);
            pthread_rwlockattr_setkind_np(attributes, KIND);
            libc::pthread_rwlock_init(lock.get(), attributes);
            libc::pthread_rwlockattr_destroy(attributes);
        }
        Self(lock)
    }
}

// SAFETY: it is a reader-writer lock, and this is its writers' side.
unsafe impl<const KIND: i32> RawLock for RwLock<KIND> {
    type Node = ();

    #[inline(always)]
    unsafe fn lock(&self, _node: &()) {
        // SAFETY: initialized, and stays in place by the caller's promise. The same holds below.
        unsafe { libc::pthread_rwlock_wrlock(self.0.get()) };
    }

    #[inline(always)]
    unsafe fn unlock(&self, _node: &()) {
        // SAFETY: locked by the caller.
        unsafe { libc::pthread_rwlock_unlock(self.0.get()) };
    }
}

// SAFETY: as above.
unsafe impl<const KIND: i32> RawTryLock for RwLock<KIND> {
    #[inline(always)]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        // SAFETY: as above.
        unsafe { libc::pthread_rwlock_trywrlock(self.0.get()) == 0 }
    }
}

// SAFETY: as above.
unsafe impl<const KIND: i32> RawRwLock for RwLock<KIND> {
    #[inline(always)]
    unsafe fn lock_shared(&self, _node: &()) {
        // SAFETY: as above.
        unsafe { libc::pthread_rwlock_rdlock(self.0.get()) };
    }

    #[inline(always)]
    unsafe fn try_lock_shared(&self, _node: &()) -> bool {
        // SAFETY: as above.
        unsafe { libc::pthread_rwlock_tryrdlock(self.0.get()) == 0 }
    }

    #[inline(always)]
    unsafe fn unlock_shared(&self, _node: &()) {
        // SAFETY: locked shared by the caller.
        unsafe { libc::pthread_rwlock_unlock(self.0.get()) };
    }

    #[inline(always)]
    unsafe fn downgrade(&self, _node: &()) {
        unreachable!("the C library has no downgrade, and the benchmark does not use it");
    }
}

/// `pthread_spin_lock`.
struct Spin(UnsafeCell<pthread_spinlock_t>);

// SAFETY: a pthread spin lock is made for use by several threads.
unsafe impl Send for Spin {}
// SAFETY: as above.
unsafe impl Sync for Spin {}

impl Default for Spin {
    fn default() -> Self {
        let spin = UnsafeCell::new(0);
        // SAFETY: the memory is this function's own.
        unsafe { libc::pthread_spin_init(spin.get(), libc::PTHREAD_PROCESS_PRIVATE) };
        Self(spin)
    }
}

// SAFETY: it is a lock.
unsafe impl RawLock for Spin {
    type Node = ();

    #[inline(always)]
    unsafe fn lock(&self, _node: &()) {
        // SAFETY: initialized, and stays in place by the caller's promise.
        unsafe { libc::pthread_spin_lock(self.0.get()) };
    }

    #[inline(always)]
    unsafe fn unlock(&self, _node: &()) {
        // SAFETY: locked by the caller.
        unsafe { libc::pthread_spin_unlock(self.0.get()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::peers::tests::holds_and_releases;

    fn is_free<const KIND: i32>(mutex: &Mutex<KIND>) -> bool {
        // SAFETY: initialized, in place, and unlocked if it was locked.
        unsafe {
            let free = libc::pthread_mutex_trylock(mutex.0.get()) == 0;
            free && libc::pthread_mutex_unlock(mutex.0.get()) == 0
        }
    }

    #[test]
    fn a_lock_is_held_from_lock_to_unlock() {
        holds_and_releases::<Mutex<{ libc::PTHREAD_MUTEX_NORMAL }>>(is_free);
        holds_and_releases::<Mutex<{ libc::PTHREAD_MUTEX_ADAPTIVE_NP }>>(is_free);
        // SAFETY: initialized, in place, and unlocked if it was locked.
        holds_and_releases::<Spin>(|spin| unsafe {
            libc::pthread_spin_trylock(spin.0.get()) == 0 && libc::pthread_spin_unlock(spin.0.get()) == 0
        });
    }
}
