//! The mutex that its holder can lock again.

use std::num::NonZeroUsize;

use nearlock_core::schedule::Schedule;
use nearlock_os::Os;

use super::RawMutex;
use crate::lock_api::{self, GetThreadId};

/// Names the calling thread, for [`ReentrantMutex`] and other locks that know their holder.
///
/// The name is the kernel's id of the thread, which the thread asks for once. It is not 0, and no
/// other thread of the process that is alive has it. A thread keeps it until its end, in the
/// destructors of thread-local data too. In a child made by `fork`, the thread that has forked
/// keeps its name, so it still has the locks that it held. A new thread of the child does not have
/// the name of a thread that held a lock at the fork, as long as that thread is alive.
///
/// ```
/// use nearlock::RawThreadId;
/// use nearlock::lock_api::GetThreadId;
///
/// let name = RawThreadId.nonzero_thread_id();
/// assert_eq!(RawThreadId.nonzero_thread_id(), name);
/// let other = std::thread::spawn(|| RawThreadId.nonzero_thread_id()).join().unwrap();
/// assert_ne!(other, name);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct RawThreadId;

impl RawThreadId {
    #[inline]
    pub(super) fn of_caller() -> NonZeroUsize {
        let id = <Os>::thread_id().get();
        // An id is not 0.
        NonZeroUsize::new(id as usize).unwrap_or(NonZeroUsize::MIN)
    }
}

// SAFETY: a thread's number is its own as long as it lives, and does not change (`Schedule`).
unsafe impl GetThreadId for RawThreadId {
    const INIT: Self = Self;

    #[inline]
    fn nonzero_thread_id(&self) -> NonZeroUsize {
        Self::of_caller()
    }
}

/// A mutex that its holder can lock again. It is unlocked when its last guard is dropped.
///
/// Several guards of the thread may exist, so they give shared access only. Put the data into a
/// [`RefCell`](std::cell::RefCell) or a [`Cell`](std::cell::Cell) to change them.
///
/// Space: 24 bytes and the data, on a 64-bit system.
///
/// Waiting, fairness, ordering, panics: as for a [`Mutex`](super::Mutex).
///
/// Errors: a thread that locks it more than `usize::MAX` times panics.
///
/// ```
/// use std::cell::RefCell;
/// use nearlock::ReentrantMutex;
///
/// static TREE: ReentrantMutex<RefCell<Vec<u32>>> = ReentrantMutex::new(RefCell::new(Vec::new()));
///
/// fn insert(key: u32) {
///     let tree = TREE.lock();
///     if key > 0 {
///         insert(key - 1); // locks it again
///     }
///     tree.borrow_mut().push(key);
/// }
///
/// insert(2);
/// assert_eq!(*TREE.lock().borrow(), [0, 1, 2]);
/// ```
///
/// A guard cannot be sent to another thread:
///
/// ```compile_fail,E0277
/// use nearlock::ReentrantMutex;
///
/// let mutex = ReentrantMutex::new(1);
/// let guard = mutex.lock();
/// std::thread::scope(|scope| {
///     scope.spawn(move || drop(guard));
/// });
/// ```
pub type ReentrantMutex<T> = lock_api::ReentrantMutex<RawMutex, RawThreadId, T>;

/// Shared access to what a [`ReentrantMutex`] protects. Unlocks it once when it is dropped.
///
/// ```
/// use nearlock::{ReentrantMutex, ReentrantMutexGuard};
///
/// let mutex = ReentrantMutex::new(1);
/// let (first, second) = (mutex.lock(), mutex.lock());
/// ReentrantMutexGuard::unlock_fair(first);
/// assert_eq!(*second, 1);
/// assert!(mutex.is_locked());
/// ```
pub type ReentrantMutexGuard<'a, T> = lock_api::ReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;

/// Shared access to a part of what a [`ReentrantMutex`] protects. Unlocks it once when it is
/// dropped.
///
/// ```
/// use nearlock::{ReentrantMutex, ReentrantMutexGuard};
///
/// let pair = ReentrantMutex::new((1, 2));
/// let second = ReentrantMutexGuard::map(pair.lock(), |pair| &pair.1);
/// assert_eq!(*second, 2);
/// ```
pub type MappedReentrantMutexGuard<'a, T> = lock_api::MappedReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;

/// Creates a [`ReentrantMutex`], by the function's name in `parking_lot` 0.12. The same as
/// `ReentrantMutex::new`.
///
/// ```
/// static DEPTH: nearlock::ReentrantMutex<u32> = nearlock::const_reentrant_mutex(1);
///
/// assert_eq!(*DEPTH.lock(), 1);
/// ```
pub const fn const_reentrant_mutex<T>(val: T) -> ReentrantMutex<T> {
    ReentrantMutex::new(val)
}
