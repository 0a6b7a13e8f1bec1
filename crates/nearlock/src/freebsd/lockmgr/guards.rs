//! Those that hold a lockmgr.

use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::ops::{Deref, DerefMut};

use nearlock_collection::freebsd::lockmgr::{Interlock, NoInterlock, Operation, Options};

use super::{LockMgr, LockMgrOptions};
use crate::freebsd::LockError;

/// Access to what a [`LockMgr`] protects, together with others. Releases it when dropped.
#[must_use = "the lock is released at once"]
pub struct LockMgrSharedGuard<'a, T: ?Sized> {
    lock: &'a LockMgr<T>,
    /// Not `Send`: the thread counts what it shares.
    own_thread: PhantomData<*const ()>,
}

/// Access to what a [`LockMgr`] protects, alone. Releases it when dropped.
#[must_use = "the lock is released at once"]
pub struct LockMgrExclusiveGuard<'a, T: ?Sized> {
    lock: &'a LockMgr<T>,
    /// Not `Send`: the lock names the thread.
    own_thread: PhantomData<*const ()>,
}

/// Access to what a [`LockMgr`] protects, alone, for whichever thread has this. Releases the lock
/// when dropped.
#[must_use = "the lock is released at once"]
pub struct LockMgrDisowned<'a, T: ?Sized> {
    lock: &'a LockMgr<T>,
    /// As a `&mut`.
    access: PhantomData<&'a mut T>,
}

// SAFETY: others get `&T` by it, and cannot release it; so below.
unsafe impl<T: ?Sized + Sync> Sync for LockMgrSharedGuard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync> Sync for LockMgrExclusiveGuard<'_, T> {}
// SAFETY: the lock names no thread, any may release it; who has this has `&mut T`.
unsafe impl<T: ?Sized + Send> Send for LockMgrDisowned<'_, T> {}
// SAFETY: as of the other guards.
unsafe impl<T: ?Sized + Sync> Sync for LockMgrDisowned<'_, T> {}

/// Converts or releases what the caller has a guard of.
fn perform<T: ?Sized>(
    lock: &LockMgr<T>,
    operation: Operation,
    options: &LockMgrOptions<'_>,
    interlock: impl Interlock,
) -> Result<(), LockError> {
    // SAFETY: a guard, which ends with this, holds it.
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

    /// The lock, of which the guard's hold remains.
    fn into_lock(self) -> &'a LockMgr<T> {
        let lock = self.lock;
        mem::forget(self);
        lock
    }

    /// Makes it exclusive: at once and past all that wait, if nobody else shares. If others do, the
    /// guards of the caller included, the share is released, and it waits as the options say;
    /// **others may write in between**. With an error nothing is held any more.
    ///
    /// # Errors
    ///
    /// As the options say, if others share.
    pub fn upgrade(self, options: &LockMgrOptions<'_>) -> Result<LockMgrExclusiveGuard<'a, T>, LockError> {
        let lock = self.into_lock();
        perform(lock, Operation::Upgrade, options, NoInterlock)?;
        Ok(LockMgrExclusiveGuard::new(lock))
    }

    /// As [`upgrade`](Self::upgrade), and drops `held`, the guard of another lock: before it
    /// sleeps, at the latest on return, whatever the outcome. It does not spin then.
    ///
    /// ```
    /// use nearlock::freebsd::{LockMgr, LockMgrOptions, Mtx};
    ///
    /// let (index, file) = (Mtx::new(vec!["file"]), LockMgr::new(0));
    /// let (names, reads) = (index.lock(), file.read());
    /// assert_eq!((names.len(), *reads), (1, 0));
    /// // Who else reads the file may need the index to come to its end.
    /// *reads.upgrade_releasing(&LockMgrOptions::new(), names)? += 1;
    /// assert!(index.try_lock().is_some());
    /// # Ok::<(), nearlock::freebsd::LockError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As there.
    pub fn upgrade_releasing<G>(
        self,
        options: &LockMgrOptions<'_>,
        held: G,
    ) -> Result<LockMgrExclusiveGuard<'a, T>, LockError> {
        let lock = self.into_lock();
        perform(lock, Operation::Upgrade, options, || drop(held))?;
        Ok(LockMgrExclusiveGuard::new(lock))
    }

    /// Makes it exclusive with nobody in between, if nobody else shares. Never waits.
    ///
    /// # Errors
    ///
    /// The guard as it was, if others share (`EBUSY`).
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

    /// Makes it shared, with nobody in between. Those that sleep to share it sleep on until a
    /// release.
    pub fn downgrade(self) -> LockMgrSharedGuard<'a, T> {
        let lock = self.into_lock();
        let downgraded = perform(lock, Operation::Downgrade, &LockMgrOptions::new(), NoInterlock);
        debug_assert!(downgraded.is_ok(), "a downgrade does not fail");
        LockMgrSharedGuard::new(lock)
    }

    /// Makes it nobody's: what remains may go to another thread, and be released there.
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
        // SAFETY: the guard, which ends with this, holds it.
        unsafe { lock.raw.disown() };
        LockMgrDisowned { lock, access: PhantomData }
    }
}

macro_rules! guards {
    ($($guard:ident)*) => {
        $(impl<T: ?Sized> Deref for $guard<'_, T> {
            type Target = T;

            fn deref(&self) -> &T {
                // SAFETY: held, and whoever writes has it alone.
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
        // SAFETY: held alone, by this guard.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized> DerefMut for LockMgrDisowned<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.lock.value.get() }
    }
}
