//! Reader-writer locks whose writer may write again.

mod asked;

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::ops::Deref;

use nearlock_collection::freebsd::rwsx::{Kind, RwSx};
use nearlock_collection::freebsd::tuning::Tuning;
use nearlock_core::raw::RawRwLock;
use nearlock_os::Os;

use super::{Exclusive, RawRecursiveLock};
use crate::freebsd::Destroy;
use crate::freebsd::ownership::check;

/// A reader-writer lock that protects data, and that its writer may lock again, as with
/// `RW_RECURSE` and `SX_RECURSE`. It is unlocked when the last of the writer's guards is dropped.
///
/// A writer gets a [`RefCell`], since it may have several guards. It borrows the data mutably while
/// it changes them, and a second borrow meanwhile panics. Readers get `&T`. A reader may read
/// again, as with the other locks. It is a mistake of a thread to read while it writes.
///
/// See [`RecursiveRw`](super::super::RecursiveRw) and [`RecursiveSx`](super::super::RecursiveSx),
/// which name the raw lock.
///
/// ```
/// use nearlock::freebsd::{RecursiveRw, RecursiveWriteGuard};
///
/// static NAMES: RecursiveRw<Vec<&str>> = RecursiveRw::new(Vec::new());
///
/// fn add(name: &'static str) {
///     NAMES.write().borrow_mut().push(name);
/// }
///
/// let names = NAMES.write();
/// add("rw"); // writes again
/// assert_eq!(*names.borrow(), ["rw"]);
/// let names = RecursiveWriteGuard::downgrade(names).expect("the only guard");
/// assert_eq!(NAMES.read().len(), names.len());
/// ```
///
/// Several threads may read at the same time, so the data must permit this:
///
/// ```compile_fail,E0277
/// use std::cell::Cell;
/// use nearlock::freebsd::RecursiveSx;
///
/// static TOTAL: RecursiveSx<Cell<u32>> = RecursiveSx::new(Cell::new(0));
/// ```
pub struct RecursiveRwLock<L, T: ?Sized> {
    lock: Exclusive<L>,
    /// Borrowed through guards of the writer only. Readers do not borrow it.
    value: RefCell<T>,
}

// SAFETY: one thread at a time uses the cell: the writer. Several threads may see the value: the
// readers.
unsafe impl<L: RawRecursiveLock, T: ?Sized + Send + Sync> Sync for RecursiveRwLock<L, T> {}

impl<L: RawRecursiveLock, T> RecursiveRwLock<L, T> {
    /// Creates an unlocked lock.
    pub const fn new(value: T) -> Self {
        Self { lock: Exclusive::UNLOCKED, value: RefCell::new(value) }
    }

    /// Consumes the lock, and returns the data.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<K: Tuning, S: Kind, T: ?Sized> RecursiveRwLock<RwSx<Os, K, S>, T> {
    fn read_guard(&self) -> RecursiveReadGuard<'_, K, S, T> {
        RecursiveReadGuard { lock: self, own_thread: PhantomData }
    }

    fn write_guard(&self) -> RecursiveWriteGuard<'_, K, S, T> {
        RecursiveWriteGuard { lock: self, own_thread: PhantomData }
    }

    /// Locks for reading. Waits until this is possible.
    pub fn read(&self) -> RecursiveReadGuard<'_, K, S, T> {
        // SAFETY: the node is (), and the guard unlocks. The same holds below.
        unsafe { self.lock.raw.lock_shared(&()) };
        self.read_guard()
    }

    /// Locks for reading if no thread writes.
    pub fn try_read(&self) -> Option<RecursiveReadGuard<'_, K, S, T>> {
        // SAFETY: as above.
        unsafe { self.lock.raw.try_lock_shared(&()) }.then(|| self.read_guard())
    }

    /// Locks for writing. Waits until this is possible. If the caller writes already, locks once
    /// more.
    ///
    /// # Panics
    ///
    /// If the caller has locked it 2^32 times already. Also if a thread has ended without unlocking
    /// it, and the caller has the id of that thread now.
    pub fn write(&self) -> RecursiveWriteGuard<'_, K, S, T> {
        self.lock.enter();
        self.write_guard()
    }

    /// Locks for writing if no thread reads and no other thread writes.
    pub fn try_write(&self) -> Option<RecursiveWriteGuard<'_, K, S, T>> {
        self.lock.try_enter().then(|| self.write_guard())
    }

    /// Returns whether the caller writes: `rw_wowned`, `sx_xlocked`.
    pub fn is_owned(&self) -> bool {
        self.lock.is_mine()
    }

    /// Returns a mutable reference to the data. No guard can exist meanwhile.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<L: RawRecursiveLock, T> Destroy for RecursiveRwLock<L, T> {
    type Value = T;

    fn destroy(self) -> T {
        check(self.lock.raw.destroy());
        self.into_inner()
    }
}

impl<L: RawRecursiveLock, T: Default> Default for RecursiveRwLock<L, T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<K: Tuning, S: Kind, T: ?Sized + fmt::Debug> fmt::Debug for RecursiveRwLock<RwSx<Os, K, S>, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("RecursiveRwLock");
        match self.try_read() {
            Some(guard) => out.field("value", &&*guard).finish(),
            None => out.field("value", &format_args!("<locked>")).finish(),
        }
    }
}

/// A guard that gives shared access to the data of a [`RecursiveRwLock`]. Unlocks when dropped.
#[must_use = "the lock is released at once"]
pub struct RecursiveReadGuard<'a, K: Tuning, S: Kind, T: ?Sized> {
    lock: &'a RecursiveRwLock<RwSx<Os, K, S>, T>,
    /// Not `Send`: the thread counts the locks that it reads.
    own_thread: PhantomData<*const ()>,
}

// SAFETY: other threads get only `&T` from it, and cannot unlock.
unsafe impl<K: Tuning, S: Kind, T: ?Sized + Sync> Sync for RecursiveReadGuard<'_, K, S, T> {}

impl<'a, K: Tuning, S: Kind, T: ?Sized> RecursiveReadGuard<'a, K, S, T> {
    /// Makes the guard a write guard, if there is no other read guard. No other thread holds the
    /// lock in between. Never waits.
    ///
    /// # Errors
    ///
    /// The guard as it was, if there is another read guard.
    pub fn try_upgrade(guard: Self) -> Result<RecursiveWriteGuard<'a, K, S, T>, Self> {
        // SAFETY: the guard holds it shared. If no other guard does, it is held once. After an
        // upgrade the guard is forgotten.
        if !unsafe { guard.lock.lock.raw.try_upgrade() } {
            return Err(guard);
        }
        let lock = guard.lock;
        mem::forget(guard);
        lock.lock.note_holder();
        Ok(lock.write_guard())
    }
}

impl<K: Tuning, S: Kind, T: ?Sized> Deref for RecursiveReadGuard<'_, K, S, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: no thread writes, and a writer's borrows have ended with its guards.
        unsafe { &*self.lock.value.as_ptr() }
    }
}

impl<K: Tuning, S: Kind, T: ?Sized> Drop for RecursiveReadGuard<'_, K, S, T> {
    fn drop(&mut self) {
        // SAFETY: the guard holds the lock shared.
        unsafe { self.lock.lock.raw.unlock_shared(&()) };
    }
}

impl<K: Tuning, S: Kind, T: ?Sized + fmt::Debug> fmt::Debug for RecursiveReadGuard<'_, K, S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A guard that gives a writer access to the data of a [`RecursiveRwLock`]. Unlocks once when
/// dropped.
#[must_use = "the lock is released at once"]
pub struct RecursiveWriteGuard<'a, K: Tuning, S: Kind, T: ?Sized> {
    lock: &'a RecursiveRwLock<RwSx<Os, K, S>, T>,
    /// Not `Send`, since the lock contains the id of its thread. Not `Sync`, since only that thread
    /// may use the cell.
    own_thread: PhantomData<*const ()>,
}

impl<'a, K: Tuning, S: Kind, T: ?Sized> RecursiveWriteGuard<'a, K, S, T> {
    /// Returns whether its thread has locked the lock more than once.
    pub fn is_recursed(guard: &Self) -> bool {
        guard.lock.lock.raw.depth() > 0
    }

    /// Makes the guard a read guard. No other writer holds the lock in between.
    ///
    /// # Errors
    ///
    /// The guard as it was, if its thread has other write guards. In the kernel this is a mistake.
    pub fn downgrade(guard: Self) -> Result<RecursiveReadGuard<'a, K, S, T>, Self> {
        if Self::is_recursed(&guard) {
            return Err(guard);
        }
        let lock = guard.lock;
        mem::forget(guard);
        // SAFETY: the guard held it, and was the only one.
        unsafe { lock.lock.raw.downgrade(&()) };
        Ok(lock.read_guard())
    }
}

impl<K: Tuning, S: Kind, T: ?Sized> Deref for RecursiveWriteGuard<'_, K, S, T> {
    type Target = RefCell<T>;

    fn deref(&self) -> &RefCell<T> {
        &self.lock.value
    }
}

impl<K: Tuning, S: Kind, T: ?Sized> Drop for RecursiveWriteGuard<'_, K, S, T> {
    fn drop(&mut self) {
        // SAFETY: the guard holds the lock.
        unsafe { self.lock.lock.leave() };
    }
}

impl<K: Tuning, S: Kind, T: ?Sized + fmt::Debug> fmt::Debug for RecursiveWriteGuard<'_, K, S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
