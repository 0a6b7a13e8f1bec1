//! Locks of the C library.

use std::cell::UnsafeCell;

use libc::{pthread_cond_t, pthread_mutex_t, pthread_spinlock_t};
use nearlock_core::raw::RawLock;

use super::super::condvar::WithCondvar;
use super::{Lock, of, of_with_condvar};

/// The default kind: it sleeps at once.
pub const NORMAL: Option<Lock> = of_with_condvar::<Mutex<{ libc::PTHREAD_MUTEX_NORMAL }>>();
/// Spins for a while before it sleeps.
pub const ADAPTIVE: Option<Lock> = of_with_condvar::<Mutex<{ libc::PTHREAD_MUTEX_ADAPTIVE_NP }>>();
/// Only spins.
pub const SPIN: Option<Lock> = of::<Spin>();

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
