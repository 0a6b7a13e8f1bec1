//! Guards of a lockmgr.

use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::ops::{Deref, DerefMut};

use nearlock_collection::freebsd::lockmgr::{Interlock, NoInterlock, Operation, Options};

use super::{LockMgr, LockMgrOptions};
use crate::freebsd::LockError;

/// A guard that gives shared access to the data of a [`LockMgr`]. Unlocks when dropped.
#[must_use = "the lock is released at once"]
pub struct LockMgrSharedGuard<'a, T: ?Sized> {
    lock: &'a LockMgr<T>,
    /// Not `Send`: the thread counts its shares.
    own_thread: PhantomData<*const ()>,
}

/// A guard that gives exclusive access to the data of a [`LockMgr`]. Unlocks when dropped.
#[must_use = "the lock is released at once"]
pub struct LockMgrExclusiveGuard<'a, T: ?Sized> {
    lock: &'a LockMgr<T>,
    /// Not `Send`: the lock contains the id of the thread.
    own_thread: PhantomData<*const ()>,
}

/// Exclusive access to the data of a [`LockMgr`] that can be sent to another thread. Unlocks when
/// dropped.
#[must_use = "the lock is released at once"]
pub struct LockMgrDisowned<'a, T: ?Sized> {
    lock: &'a LockMgr<T>,
    /// As a `&mut`.
    access: PhantomData<&'a mut T>,
}

// SAFETY: other threads get only `&T` from it, and cannot unlock. The same holds below.
unsafe impl<T: ?Sized + Sync> Sync for LockMgrSharedGuard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync> Sync for LockMgrExclusiveGuard<'_, T> {}
// SAFETY: the lock names no thread, so any thread may unlock it. The owner of this has `&mut T`.
unsafe impl<T: ?Sized + Send> Send for LockMgrDisowned<'_, T> {}
// SAFETY: as for the other guards.
unsafe impl<T: ?Sized + Sync> Sync for LockMgrDisowned<'_, T> {}

/// Converts or unlocks the hold of a guard of the caller.
fn perform<T: ?Sized>(
    lock: &LockMgr<T>,
    operation: Operation,
    options: &LockMgrOptions<'_>,
    interlock: impl Interlock,
) -> Result<(), LockError> {
    // SAFETY: a guard holds it, which ends with this call.
    Ok(unsafe { lock.raw.perform(operation, &options.begin(), interlock) }?)
}

fn release<T: ?Sized>(lock: &LockMgr<T>) {
    // SAFETY: as above.
    let released = unsafe { lock.raw.perform(Operation::Unlock, &Options::new(), NoInterlock) };
    debug_assert!(released.is_ok(), "a release does not fail");
}

impl<'a, T: ?Sized> LockMgrSharedGuard<'a, T> {
    pub(super) fn new(lock: &'a LockMgr<T>) -> Self {
        Self { lock, own_thread: PhantomData }
    }

    /// Forgets the guard. Returns the lock, which is still held.
    fn into_lock(self) -> &'a LockMgr<T> {
        let lock = self.lock;
        mem::forget(self);
        lock
    }

    /// Makes the guard exclusive. If no other guard shares the lock, this happens at once, and
    /// overtakes all waiters. Otherwise the share is unlocked, and the call waits as the options
    /// say. **Other threads may write in between.** Other guards of the caller count as well. With
    /// an error the caller has no guard any more.
    ///
    /// # Errors
    ///
    /// As the options say, if other guards share the lock.
    pub fn upgrade(self, options: &LockMgrOptions<'_>) -> Result<LockMgrExclusiveGuard<'a, T>, LockError> {
        let lock = self.into_lock();
        perform(lock, Operation::Upgrade, options, NoInterlock)?;
        Ok(LockMgrExclusiveGuard::new(lock))
    }

    /// As [`upgrade`](Self::upgrade), and drops `held`, the guard of another lock. It drops `held`
    /// before it sleeps, and at the latest when it returns, with any result. It does not spin then.
    ///
    /// ```
    /// use nearlock::freebsd::{LockMgr, LockMgrOptions, Mtx};
    ///
    /// let (index, file) = (Mtx::new(vec!["file"]), LockMgr::new(0));
    /// let (names, reads) = (index.lock(), file.read());
    /// assert_eq!((names.len(), *reads), (1, 0));
    /// // Another reader of the file may need the index to finish.
    /// *reads.upgrade_releasing(&LockMgrOptions::new(), names)? += 1;
    /// assert!(index.try_lock().is_some());
    /// # Ok::<(), nearlock::freebsd::LockError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`upgrade`](Self::upgrade).
    pub fn upgrade_releasing<G>(
        self,
        options: &LockMgrOptions<'_>,
        held: G,
    ) -> Result<LockMgrExclusiveGuard<'a, T>, LockError> {
        let lock = self.into_lock();
        perform(lock, Operation::Upgrade, options, || drop(held))?;
        Ok(LockMgrExclusiveGuard::new(lock))
    }

    /// Makes the guard exclusive, if no other guard shares the lock. No other thread holds the lock
    /// in between. Never waits.
    ///
    /// # Errors
    ///
    /// The guard as it was, if other guards share the lock (`EBUSY`).
    pub fn try_upgrade(self) -> Result<LockMgrExclusiveGuard<'a, T>, Self> {
        let lock = self.into_lock();
        match perform(lock, Operation::TryUpgrade, &LockMgrOptions::new(), NoInterlock) {
            Ok(()) => Ok(LockMgrExclusiveGuard::new(lock)),
            Err(_) => Err(Self::new(lock)),
        }
    }
}

impl<'a, T: ?Sized> LockMgrExclusiveGuard<'a, T> {
    pub(super) fn new(lock: &'a LockMgr<T>) -> Self {
        Self { lock, own_thread: PhantomData }
    }

    fn into_lock(self) -> &'a LockMgr<T> {
        let lock = self.lock;
        mem::forget(self);
        lock
    }

    /// Makes the guard shared. No other thread holds the lock exclusively in between. Threads that
    /// sleep for a share sleep on until an unlock.
    pub fn downgrade(self) -> LockMgrSharedGuard<'a, T> {
        let lock = self.into_lock();
        let downgraded = perform(lock, Operation::Downgrade, &LockMgrOptions::new(), NoInterlock);
        debug_assert!(downgraded.is_ok(), "a downgrade does not fail");
        LockMgrSharedGuard::new(lock)
    }

    /// Detaches the guard from its thread. The result may be sent to another thread, and unlocks
    /// the lock there.
    ///
    /// ```
    /// use nearlock::freebsd::LockMgr;
    ///
    /// let buffer = LockMgr::new(String::new());
    /// let mut request = buffer.write().disown();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || request.push_str("read from disk"));
    /// });
    /// assert_eq!(*buffer.read(), "read from disk");
    /// ```
    pub fn disown(self) -> LockMgrDisowned<'a, T> {
        let lock = self.into_lock();
        // SAFETY: the guard holds it, and ends with this call.
        unsafe { lock.raw.disown() };
        LockMgrDisowned { lock, access: PhantomData }
    }
}

macro_rules! guards {
    ($($guard:ident)*) => {
        $(impl<T: ?Sized> Deref for $guard<'_, T> {
            type Target = T;

            fn deref(&self) -> &T {
                // SAFETY: the lock is held, and a writer has exclusive access.
                unsafe { &*self.lock.value.get() }
            }
        }

        impl<T: ?Sized> Drop for $guard<'_, T> {
            fn drop(&mut self) {
                release(self.lock);
            }
        }

        impl<T: ?Sized + fmt::Debug> fmt::Debug for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        })*
    };
}

guards!(LockMgrSharedGuard LockMgrExclusiveGuard LockMgrDisowned);

impl<T: ?Sized> DerefMut for LockMgrExclusiveGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard holds the lock exclusively.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized> DerefMut for LockMgrDisowned<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.lock.value.get() }
    }
}
