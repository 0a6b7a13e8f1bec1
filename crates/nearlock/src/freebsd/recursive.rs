//! Recursive locks: their holder may lock them again.
//!
//! Guards give no `&mut`, since a thread may have any number of them at the same time. A mutex
//! gives `&T`, as [`lock_api::ReentrantMutex`] does, and `T` is often a `Cell` or `RefCell`. This
//! is not enough for a lock with readers, which see `T` from several threads. Such a lock has a
//! `RefCell` around the data, which is only for writers. A writer gets the `RefCell`, and readers
//! get `&T`.

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
/// While a thread holds the lock, no other thread holds it. A thread holds it until it has unlocked
/// it as often as it has locked it. The holder has locked it [`depth`](Self::depth) times more than
/// once.
pub unsafe trait RawRecursiveLock: RawTryLock<Node = ()> + Unlocked {
    /// Locks it, or locks it again. The holder's depth must be below `u32::MAX`.
    ///
    /// # Safety
    ///
    /// As [`RawLock::lock`].
    unsafe fn lock_recursive(&self);

    /// Locks it if no other thread holds it. If the caller holds it, locks it again, or fails if
    /// the lock does not permit this.
    ///
    /// # Safety
    ///
    /// As [`RawLock::lock`], if it returns true.
    unsafe fn try_lock_recursive(&self) -> bool;

    /// Returns whether the caller holds it exclusively.
    fn is_owned(&self) -> bool;

    /// Returns how often the holder has locked it again. Only the holder may use the result.
    fn depth(&self) -> u32;

    /// Destroys it. Only the caller knows it any more.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be destroyed. This is a mistake, and the lock may still be dropped.
    fn destroy(&self) -> Result<(), InUse>;
}

macro_rules! recursive {
    ($([$($parameter:tt)*] $lock:ty, $try_lock:expr, $destroy:expr;)*) => {
        // SAFETY: the lock's own guarantee.
        $(unsafe impl<$($parameter)*> RawRecursiveLock for $lock {
            unsafe fn lock_recursive(&self) {
                // SAFETY: upheld by the caller. The same holds below.
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
    // SAFETY: upheld by the caller.
    [K: Tuning, D: LongSpin] SpinMtx<Os, K, D>, |lock| unsafe { lock.try_lock(&()) }, end_spin;
    [K: Tuning, S: Kind] RwSx<Os, K, S>, Self::try_lock_recursive, |lock| unless_idle(lock, lock.destroy());
}

/// A number of the calling thread that no other thread ever has. The id in the lock's word is
/// different: a later thread may get it.
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

/// The exclusive side: a lock, and the thread that holds it.
struct Exclusive<L> {
    raw: L,
    /// The [`number`] of the thread that holds the lock. Only that thread finds its own number
    /// here.
    thread: AtomicU64,
}

impl<L: RawRecursiveLock> Exclusive<L> {
    #[allow(clippy::declare_interior_mutable_const)] // a template to copy from, never borrowed
    const UNLOCKED: Self = Self { raw: L::UNLOCKED, thread: AtomicU64::new(0) };

    /// Whether the calling thread holds it. A thread that has ended may have forgotten a guard, and
    /// the caller may have its id now.
    fn is_mine(&self) -> bool {
        self.raw.is_owned() && self.thread.load(Relaxed) == number()
    }

    /// Locks it, or locks it again.
    fn enter(&self) {
        if self.raw.is_owned() {
            assert!(self.is_mine(), "a thread that has ended left the lock locked");
            assert!(self.raw.depth() < u32::MAX, "the lock has been locked too often");
        }
        // SAFETY: the node is (), and the guard unlocks. The same holds below.
        unsafe { self.raw.lock_recursive() };
        self.note_holder();
    }

    /// Locks it within a limit, or locks it again.
    fn enter_within(&self, limit: &Limit<'_, Os>) -> Result<(), GaveUp>
    where
        L: RawTimedLock<Platform = Os>,
    {
        if self.raw.is_owned() {
            // This does not wait.
            self.enter();
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { self.raw.lock_within(&(), limit) }?;
        self.note_holder();
        Ok(())
    }

    /// Notes that the caller holds it.
    fn note_holder(&self) {
        self.thread.store(number(), Relaxed);
    }

    /// Tries to lock it, or to lock it again. Returns whether this succeeded.
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
        // SAFETY: upheld by the caller.
        unsafe { self.raw.unlock(&()) };
    }
}

/// A recursive mutex that protects data: its holder may lock it again. It is unlocked when the last
/// of the holder's guards is dropped. The guards give `&T`, so `T` is often a [`Cell`] or
/// [`RefCell`](std::cell::RefCell), as with [`lock_api::ReentrantMutex`].
///
/// See [`RecursiveMtx`](super::RecursiveMtx) and [`RecursiveSpinMtx`](super::RecursiveSpinMtx),
/// which name the raw lock. With another preset the type is `RecursiveMutex<Mtx<Os, Preset>, T>`,
/// with the lock of `nearlock-collection`.
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
/// A guard gives no `&mut`:
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

// SAFETY: one thread at a time accesses the value, and only by `&T`. So the value must be `Send`.
unsafe impl<L: RawRecursiveLock, T: ?Sized + Send> Sync for RecursiveMutex<L, T> {}

impl<L: RawRecursiveLock, T> RecursiveMutex<L, T> {
    /// Creates an unlocked mutex.
    pub const fn new(value: T) -> Self {
        Self { lock: Exclusive::UNLOCKED, value }
    }

    /// Consumes the mutex, and returns the data.
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<L: RawRecursiveLock, T: ?Sized> RecursiveMutex<L, T> {
    /// Locks the mutex. Waits while another thread holds it. If the caller holds it, locks it once
    /// more.
    ///
    /// # Panics
    ///
    /// If the caller has locked it 2^32 times already. Also if a thread has ended without unlocking
    /// it, and the caller has the id of that thread now.
    pub fn lock(&self) -> RecursiveGuard<'_, L, T> {
        self.lock.enter();
        RecursiveGuard { mutex: self, own_thread: PhantomData }
    }

    /// Locks the mutex if no other thread holds it. A spin mutex must not be held by the caller
    /// either.
    pub fn try_lock(&self) -> Option<RecursiveGuard<'_, L, T>> {
        self.lock.try_enter().then(|| RecursiveGuard { mutex: self, own_thread: PhantomData })
    }

    /// Returns whether the caller holds the mutex: `mtx_owned`.
    pub fn is_owned(&self) -> bool {
        self.lock.is_mine()
    }

    /// Returns a mutable reference to the data. No guard can exist meanwhile.
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

/// A guard that gives access to the data of a [`RecursiveMutex`]. Unlocks it once when dropped.
#[must_use = "the lock is released at once"]
pub struct RecursiveGuard<'a, L: RawRecursiveLock, T: ?Sized> {
    mutex: &'a RecursiveMutex<L, T>,
    /// Not `Send`: the lock contains the id of the thread.
    own_thread: PhantomData<*const ()>,
}

// SAFETY: other threads get only `&T` from it, and cannot unlock.
unsafe impl<L: RawRecursiveLock, T: ?Sized + Sync> Sync for RecursiveGuard<'_, L, T> {}

impl<L: RawRecursiveLock, T: ?Sized> RecursiveGuard<'_, L, T> {
    /// Returns whether its thread has locked the mutex more than once: `mtx_recursed`.
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
        // SAFETY: the guard holds the lock.
        unsafe { self.mutex.lock.leave() };
    }
}

impl<L: RawRecursiveLock, T: ?Sized + fmt::Debug> fmt::Debug for RecursiveGuard<'_, L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
