//! Locks with readers whose writer may write again.

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

/// A reader-writer lock around data that its writer may lock again, as by `RW_RECURSE` and
/// `SX_RECURSE`: as many guards must end.
///
/// A writer gets a [`RefCell`], since it may have several guards: what it changes it borrows for as
/// long, and to borrow it twice panics. Readers get `&T`. They may read again, as at the other
/// locks; to read what one writes is a mistake.
///
/// See [`RecursiveRw`](super::super::RecursiveRw) and [`RecursiveSx`](super::super::RecursiveSx),
/// which name the lock.
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
/// Several threads may read, so that the data must be such as they may see together:
///
/// ```compile_fail,E0277
/// use std::cell::Cell;
/// use nearlock::freebsd::RecursiveSx;
///
/// static TOTAL: RecursiveSx<Cell<u32>> = RecursiveSx::new(Cell::new(0));
/// ```
pub struct RecursiveRwLock<L, T: ?Sized> {
    lock: Exclusive<L>,
    /// Borrowed through guards of the writer only; readers look past it.
    value: RefCell<T>,
}

// SAFETY: the cell is used by one thread at a time, which writes; the value is seen by several,
// which read.
unsafe impl<L: RawRecursiveLock, T: ?Sized + Send + Sync> Sync for RecursiveRwLock<L, T> {}

impl<L: RawRecursiveLock, T> RecursiveRwLock<L, T> {
    /// An unlocked lock, in `const`.
    pub const fn new(value: T) -> Self {
        Self { lock: Exclusive::UNLOCKED, value: RefCell::new(value) }
    }

    /// What it protects.
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

    /// Waits until it may read.
    pub fn read(&self) -> RecursiveReadGuard<'_, K, S, T> {
        // SAFETY: the node is (); the guard unlocks; so below.
        unsafe { self.lock.raw.lock_shared(&()) };
        self.read_guard()
    }

    /// Reads if nobody writes.
    pub fn try_read(&self) -> Option<RecursiveReadGuard<'_, K, S, T>> {
        // SAFETY: as above.
        unsafe { self.lock.raw.try_lock_shared(&()) }.then(|| self.read_guard())
    }

    /// Waits until it may write; if the caller does already, writes once more.
    ///
    /// # Panics
    ///
    /// If the caller has locked it 2^32 times already, and if a thread that has ended has forgotten
    /// to unlock it and the caller has its name now.
    pub fn write(&self) -> RecursiveWriteGuard<'_, K, S, T> {
        self.lock.enter();
        self.write_guard()
    }

    /// Writes if nobody reads, nor another thread writes.
    pub fn try_write(&self) -> Option<RecursiveWriteGuard<'_, K, S, T>> {
        self.lock.try_enter().then(|| self.write_guard())
    }

    /// Whether the caller writes it: `rw_wowned`, `sx_xlocked`.
    pub fn is_owned(&self) -> bool {
        self.lock.is_mine()
    }

    /// What it protects: nobody can hold it by a guard.
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

/// Shared access to what a [`RecursiveRwLock`] protects. Unlocks when it is dropped.
#[must_use = "the lock is released at once"]
pub struct RecursiveReadGuard<'a, K: Tuning, S: Kind, T: ?Sized> {
    lock: &'a RecursiveRwLock<RwSx<Os, K, S>, T>,
    /// Not `Send`: the lock counts what its thread reads.
    own_thread: PhantomData<*const ()>,
}

// SAFETY: others get no more than `&T` by it, and cannot unlock.
unsafe impl<K: Tuning, S: Kind, T: ?Sized + Sync> Sync for RecursiveReadGuard<'_, K, S, T> {}

impl<'a, K: Tuning, S: Kind, T: ?Sized> RecursiveReadGuard<'a, K, S, T> {
    /// Makes the guard one that writes, with nobody in between, if nobody else reads. Never waits.
    ///
    /// # Errors
    ///
    /// The guard as it was, if somebody else reads.
    pub fn try_upgrade(guard: Self) -> Result<RecursiveWriteGuard<'a, K, S, T>, Self> {
        // SAFETY: the guard holds it shared; if nobody else does, that is once. If it was upgraded, the
        // guard is forgotten.
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
        // SAFETY: nobody writes, and a writer's borrows have ended with its guards.
        unsafe { &*self.lock.value.as_ptr() }
    }
}

impl<K: Tuning, S: Kind, T: ?Sized> Drop for RecursiveReadGuard<'_, K, S, T> {
    fn drop(&mut self) {
        // SAFETY: it holds the lock shared.
        unsafe { self.lock.lock.raw.unlock_shared(&()) };
    }
}

impl<K: Tuning, S: Kind, T: ?Sized + fmt::Debug> fmt::Debug for RecursiveReadGuard<'_, K, S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A writer's access to what a [`RecursiveRwLock`] protects. Unlocks once when it is dropped.
#[must_use = "the lock is released at once"]
pub struct RecursiveWriteGuard<'a, K: Tuning, S: Kind, T: ?Sized> {
    lock: &'a RecursiveRwLock<RwSx<Os, K, S>, T>,
    /// Neither `Send`, as the lock names its thread, nor `Sync`, as the cell is that thread's.
    own_thread: PhantomData<*const ()>,
}

impl<'a, K: Tuning, S: Kind, T: ?Sized> RecursiveWriteGuard<'a, K, S, T> {
    /// Whether its thread has locked it more than once.
    pub fn is_recursed(guard: &Self) -> bool {
        guard.lock.lock.raw.depth() > 0
    }

    /// Makes the guard one that reads, with no other writer in between.
    ///
    /// # Errors
    ///
    /// The guard as it was, if its thread has others that write. In the kernel that is a mistake.
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
        // SAFETY: it holds the lock.
        unsafe { self.lock.lock.leave() };
    }
}

impl<K: Tuning, S: Kind, T: ?Sized + fmt::Debug> fmt::Debug for RecursiveWriteGuard<'_, K, S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
