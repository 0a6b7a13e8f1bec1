//! Locks that their holder may lock again.
//!
//! Their guards give no `&mut`, since any number of guards of one thread may be there together. A
//! mutex gives `&T`, as [`lock_api::ReentrantMutex`] does, and `T` is often a `Cell` or `RefCell`.
//! That would not do for a lock with readers, who see `T` from several threads: there a writer gets
//! the `RefCell` that the lock has around the data for writers only, and readers get `&T`.

mod rw;

pub use rw::{RecursiveReadGuard, RecursiveRwLock, RecursiveWriteGuard};

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use nearlock_collection::freebsd::mtx::{InUse, Mtx};
use nearlock_collection::freebsd::rwsx::{Kind, RwSx};
use nearlock_collection::freebsd::spin_mtx::{LongSpin, SpinMtx};
use nearlock_collection::freebsd::tuning::Tuning;
use nearlock_core::parking::{GaveUp, Limit, RawTimedLock};
#[cfg(doc)]
use nearlock_core::raw::RawLock;
use nearlock_core::raw::RawTryLock;
use nearlock_os::Os;

use super::Destroy;
use super::ownership::{check, end_spin, unless_idle};
#[cfg(doc)]
use crate::lock_api;
use crate::raw::Unlocked;

/// A raw lock that its holder may lock again.
///
/// # Safety
///
/// While a thread holds it, however often, no other one does: until it has unlocked it as often as
/// it has locked it. Its holder has locked it [`depth`](Self::depth) times more than once.
pub unsafe trait RawRecursiveLock: RawTryLock<Node = ()> + Unlocked {
    /// Locks it, perhaps again. The holder's depth must be below `u32::MAX`.
    ///
    /// # Safety
    ///
    /// As [`RawLock::lock`].
    unsafe fn lock_recursive(&self);

    /// Does so if nobody else holds it, or fails if it does not try that again which it holds.
    ///
    /// # Safety
    ///
    /// As [`RawLock::lock`], if it returns true.
    unsafe fn try_lock_recursive(&self) -> bool;

    /// Whether the caller holds it exclusively.
    fn is_owned(&self) -> bool;

    /// How often the holder has locked it again. Of its holder's interest only.
    fn depth(&self) -> u32;

    /// Ends its use. Nobody but the caller knows it any more.
    ///
    /// # Errors
    ///
    /// Why it cannot be destroyed: a mistake, after which it may be dropped all the same.
    fn destroy(&self) -> Result<(), InUse>;
}

macro_rules! recursive {
    ($([$($parameter:tt)*] $lock:ty, $try_lock:expr, $destroy:expr;)*) => {
        // SAFETY: the lock's own promise.
        $(unsafe impl<$($parameter)*> RawRecursiveLock for $lock {
            unsafe fn lock_recursive(&self) {
                // SAFETY: the caller's; so below.
                unsafe { self.lock_recursive() };
            }

            unsafe fn try_lock_recursive(&self) -> bool {
                let try_lock: unsafe fn(&Self) -> bool = $try_lock;
                // SAFETY: as above.
                unsafe { try_lock(self) }
            }

            fn is_owned(&self) -> bool {
                self.is_owned()
            }

            fn depth(&self) -> u32 {
                self.depth()
            }

            fn destroy(&self) -> Result<(), InUse> {
                let destroy: fn(&Self) -> Result<(), InUse> = $destroy;
                destroy(self)
            }
        })*
    };
}

recursive! {
    [K: Tuning] Mtx<Os, K>, Self::try_lock_recursive, Self::destroy;
    // SAFETY: the caller's.
    [K: Tuning, D: LongSpin] SpinMtx<Os, K, D>, |lock| unsafe { lock.try_lock(&()) }, end_spin;
    [K: Tuning, S: Kind] RwSx<Os, K, S>, Self::try_lock_recursive, |lock| unless_idle(lock, lock.destroy());
}

/// A number of the calling thread that no other one ever has: unlike the name in the lock's word,
/// which the next thread gets.
fn number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(0) };
    }
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(LAST.fetch_add(1, Relaxed) + 1);
        }
        number.get()
    })
}

/// The exclusive side: a lock, and which thread has it.
struct Exclusive<L> {
    raw: L,
    /// Its [`number`], while a thread holds the lock. Only that thread finds its own number here.
    thread: AtomicU64,
}

impl<L: RawRecursiveLock> Exclusive<L> {
    #[allow(clippy::declare_interior_mutable_const)] // a template to copy from, never borrowed
    const UNLOCKED: Self = Self { raw: L::UNLOCKED, thread: AtomicU64::new(0) };

    /// Whether the calling thread holds it. A thread that has ended may have left a guard behind,
    /// and its name to the caller.
    fn is_mine(&self) -> bool {
        self.raw.is_owned() && self.thread.load(Relaxed) == number()
    }

    /// Locks it, perhaps again.
    fn enter(&self) {
        if self.raw.is_owned() {
            assert!(self.is_mine(), "a thread that has ended left the lock locked");
            assert!(self.raw.depth() < u32::MAX, "the lock has been locked too often");
        }
        // SAFETY: the node is (); the guard unlocks; so below.
        unsafe { self.raw.lock_recursive() };
        self.note_holder();
    }

    /// Locks it within a limit, or again.
    fn enter_within(&self, limit: &Limit<'_, Os>) -> Result<(), GaveUp>
    where
        L: RawTimedLock<Platform = Os>,
    {
        if self.raw.is_owned() {
            // Without a wait.
            self.enter();
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { self.raw.lock_within(&(), limit) }?;
        self.note_holder();
        Ok(())
    }

    /// The caller holds it.
    fn note_holder(&self) {
        self.thread.store(number(), Relaxed);
    }

    /// Whether it has.
    fn try_enter(&self) -> bool {
        if self.raw.is_owned() && !(self.is_mine() && self.raw.depth() < u32::MAX) {
            return false;
        }
        // SAFETY: as above.
        let is_locked = unsafe { self.raw.try_lock_recursive() };
        if is_locked {
            self.note_holder();
        }
        is_locked
    }

    /// Safety: the caller holds it.
    unsafe fn leave(&self) {
        // SAFETY: the caller's.
        unsafe { self.raw.unlock(&()) };
    }
}

/// A mutex around data that its holder may lock again: as many guards must end. Its guards give
/// `&T`, so `T` is often a [`Cell`] or [`RefCell`](std::cell::RefCell), as with
/// [`lock_api::ReentrantMutex`].
///
/// See [`RecursiveMtx`](super::RecursiveMtx) and [`RecursiveSpinMtx`](super::RecursiveSpinMtx),
/// which name the lock. Another preset is `RecursiveMutex<Mtx<Os, Preset>, T>` with the lock of
/// `nearlock-core`.
///
/// ```
/// use std::cell::Cell;
/// use nearlock::freebsd::RecursiveMtx;
///
/// static TOTAL: RecursiveMtx<Cell<u32>> = RecursiveMtx::new(Cell::new(0));
///
/// fn add(amount: u32) {
///     let total = TOTAL.lock();
///     total.set(total.get() + amount);
/// }
///
/// let total = TOTAL.lock();
/// add(2); // locks it again
/// add(3);
/// assert_eq!(total.get(), 5);
/// ```
///
/// There is no `&mut` to be had from a guard:
///
/// ```compile_fail,E0594
/// use nearlock::freebsd::RecursiveMtx;
///
/// let total = RecursiveMtx::new(1);
/// *total.lock() += 1;
/// ```
///
/// ```compile_fail,E0277
/// use nearlock::freebsd::RecursiveMtx;
///
/// let total = RecursiveMtx::new(1);
/// let guard = total.lock();
/// std::thread::scope(|scope| {
///     scope.spawn(move || drop(guard));
/// });
/// ```
pub struct RecursiveMutex<L, T: ?Sized> {
    lock: Exclusive<L>,
    value: T,
}

// SAFETY: one thread at a time sees the value, if only by `&T`; so it must be one that may go from
// thread to thread.
unsafe impl<L: RawRecursiveLock, T: ?Sized + Send> Sync for RecursiveMutex<L, T> {}

impl<L: RawRecursiveLock, T> RecursiveMutex<L, T> {
    /// An unlocked mutex, in `const`.
    pub const fn new(value: T) -> Self {
        Self { lock: Exclusive::UNLOCKED, value }
    }

    /// What it protects.
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<L: RawRecursiveLock, T: ?Sized> RecursiveMutex<L, T> {
    /// Locks it, if another thread holds it when that has released it; if the caller does, once
    /// more.
    ///
    /// # Panics
    ///
    /// If the caller has locked it 2^32 times already, and if a thread that has ended has forgotten
    /// to unlock it and the caller has its name now.
    pub fn lock(&self) -> RecursiveGuard<'_, L, T> {
        self.lock.enter();
        RecursiveGuard { mutex: self, own_thread: PhantomData }
    }

    /// Locks it if no other thread holds it. A spin mutex only if nobody does.
    pub fn try_lock(&self) -> Option<RecursiveGuard<'_, L, T>> {
        self.lock.try_enter().then(|| RecursiveGuard { mutex: self, own_thread: PhantomData })
    }

    /// Whether the caller holds it: `mtx_owned`.
    pub fn is_owned(&self) -> bool {
        self.lock.is_mine()
    }

    /// What it protects: nobody can hold it by a guard.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// ```
/// use nearlock::freebsd::{Destroy, RecursiveMtx};
///
/// let total = RecursiveMtx::new(5);
/// assert_eq!(*total.lock(), 5);
/// assert_eq!(total.destroy(), 5);
/// ```
impl<L: RawRecursiveLock, T> Destroy for RecursiveMutex<L, T> {
    type Value = T;

    fn destroy(self) -> T {
        check(self.lock.raw.destroy());
        self.into_inner()
    }
}

impl<L: RawRecursiveLock, T: Default> Default for RecursiveMutex<L, T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<L: RawRecursiveLock, T: ?Sized + fmt::Debug> fmt::Debug for RecursiveMutex<L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("RecursiveMutex");
        match self.try_lock() {
            Some(guard) => out.field("value", &&*guard).finish(),
            None => out.field("value", &format_args!("<locked>")).finish(),
        }
    }
}

/// Access to what a [`RecursiveMutex`] protects. Unlocks once when it is dropped.
#[must_use = "the lock is released at once"]
pub struct RecursiveGuard<'a, L: RawRecursiveLock, T: ?Sized> {
    mutex: &'a RecursiveMutex<L, T>,
    /// Not `Send`: the lock names the thread.
    own_thread: PhantomData<*const ()>,
}

// SAFETY: others get no more than `&T` by it, and cannot unlock.
unsafe impl<L: RawRecursiveLock, T: ?Sized + Sync> Sync for RecursiveGuard<'_, L, T> {}

impl<L: RawRecursiveLock, T: ?Sized> RecursiveGuard<'_, L, T> {
    /// Whether its thread has locked the mutex more than once: `mtx_recursed`.
    pub fn is_recursed(guard: &Self) -> bool {
        guard.mutex.lock.raw.depth() > 0
    }
}

impl<L: RawRecursiveLock, T: ?Sized> Deref for RecursiveGuard<'_, L, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.mutex.value
    }
}

impl<L: RawRecursiveLock, T: ?Sized> Drop for RecursiveGuard<'_, L, T> {
    fn drop(&mut self) {
        // SAFETY: it holds the lock.
        unsafe { self.mutex.lock.leave() };
    }
}

impl<L: RawRecursiveLock, T: ?Sized + fmt::Debug> fmt::Debug for RecursiveGuard<'_, L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
