//! Recursive reads. The terms are those of the [lock](super).
//!
//! A recursive reader waits for a writer that is in, and not for one that waits for readers. So the
//! writer may wait for a hold that is released only after the recursive read, whichever thread has
//! that hold. To the lock, the reader is a thread that may hold it without a note in its line. It
//! enters while the lock is draining.
//!
//! A writer that waits for readers spins first, and then begins to drain. A recursive reader that
//! arrives before that spins too, and then sleeps. It is not woken when the writer begins to drain.
//! It looks again after each sleep. The first sleep takes 0.5 ms, the second one 8 ms, in the queue
//! of the mutex. Each further one takes four times as long as the one before, up to 0.5 s. So a
//! reader may wait for 0.5 ms too long. If it has waited for writers that were in, it may wait too
//! long for 8 ms, or for about four times that time if that is more.

use super::{NearRwLock, RwLockPlatform};
use crate::parking::{GaveUp, Limit};

impl<P: RwLockPlatform> NearRwLock<P> {
    /// Acquires the lock shared, as a recursive reader, within the limit.
    ///
    /// # Errors
    ///
    /// Why it was not acquired.
    ///
    /// # Safety
    ///
    /// As [`lock_shared`](crate::raw::RawRwLock::lock_shared).
    #[inline]
    pub unsafe fn lock_shared_recursive_within(&self, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        if self.attempt() { Ok(()) } else { Self::recursively(|| self.lock_shared_slow(limit)) }
    }

    /// The same, without waiting. It fails if a writer is in, and may fail if a writer has just
    /// begun to wait for readers.
    ///
    /// # Safety
    ///
    /// As [`try_lock_shared`](crate::raw::RawRwLock::try_lock_shared).
    #[inline]
    pub unsafe fn try_lock_shared_recursive(&self) -> bool {
        self.attempt() || Self::recursively(|| self.try_lock_shared_slow())
    }

    /// Acquires the lock shared, as a recursive reader, within the limit. Any thread may release
    /// it.
    ///
    /// # Errors
    ///
    /// Why it was not acquired.
    ///
    /// # Safety
    ///
    /// As [`lock_shared_counted_within`](Self::lock_shared_counted_within).
    #[inline]
    pub unsafe fn lock_shared_recursive_counted_within(&self, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        if self.enters_by_count(Self::own_line()) {
            Ok(())
        } else {
            Self::recursively(|| self.wait_to_enter_counted(limit))
        }
    }

    /// The same, without waiting. It fails when
    /// [`try_lock_shared_recursive`](Self::try_lock_shared_recursive) does.
    ///
    /// # Safety
    ///
    /// As [`try_lock_shared_counted`](Self::try_lock_shared_counted).
    #[inline]
    pub unsafe fn try_lock_shared_recursive_counted(&self) -> bool {
        self.enters_by_count(Self::own_line()) || Self::recursively(|| self.try_enter_counted())
    }

    /// Calls `f`. Meanwhile the caller's line says that the thread may hold other locks.
    #[cold]
    #[inline(never)]
    fn recursively<R>(f: impl FnOnce() -> R) -> R {
        // A full line says so always. A line that the caller got only in `f` would not.
        let line = Self::own_line();
        line.begin_unnoted();
        let result = f();
        line.end_unnoted();
        result
    }
}
