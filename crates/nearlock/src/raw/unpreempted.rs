//! Locks whose holders ask for a longer time slice.

use nearlock_os::{begin_section, end_section};

use crate::lock_api::{RawMutex, RawMutexFair, RawMutexTimed};

/// Makes a mutex whose holder asks the kernel not to preempt it while it holds the mutex, if
/// [`set_time_slices`](crate::process::set_time_slices) has switched this on. Otherwise it is the
/// mutex inside, at the cost of a read of one word.
///
/// It helps if critical sections are shorter than the extension, which is 5 us unless the system
/// says otherwise, and there are more threads than processors. Without it, all waiters of a
/// preempted holder wait until the scheduler runs the holder again. The kernel may refuse an
/// extension, and a system call in the critical section ends it. It requires Linux 7.0 or later,
/// and glibc 2.41 or later.
///
/// ```
/// use nearlock::lock_api::Mutex;
/// use nearlock::process::{TimeSlices, set_time_slices};
/// use nearlock::{RawMutex, raw::Unpreempted};
///
/// if !set_time_slices(TimeSlices::Extended) {
///     eprintln!("this system has no time-slice extensions");
/// }
/// let counter = Mutex::<Unpreempted<RawMutex>, u32>::new(1);
/// *counter.lock() += 1;
/// assert_eq!(counter.into_inner(), 2);
/// ```
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Unpreempted<R>(R);

impl<R> Unpreempted<R> {
    /// Begins the section of the caller, if it has locked the mutex.
    #[inline]
    fn begun<G>(guard: Option<G>) -> Option<G> {
        if guard.is_some() {
            begin_section();
        }
        guard
    }
}

// SAFETY: it is the mutex inside.
unsafe impl<R: RawMutex> RawMutex for Unpreempted<R> {
    #[allow(clippy::declare_interior_mutable_const)] // as in the trait
    const INIT: Self = Self(R::INIT);
    type Guard = R::Guard;

    #[inline]
    fn lock(&self) -> R::Guard {
        let guard = self.0.lock();
        begin_section();
        guard
    }

    #[inline]
    fn try_lock(&self) -> Option<R::Guard> {
        Self::begun(self.0.try_lock())
    }

    #[inline]
    unsafe fn unlock(&self, guard: R::Guard) {
        // SAFETY: upheld by the caller.
        unsafe { self.0.unlock(guard) };
        // This does not access the mutex, which may be freed by now.
        end_section();
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

// SAFETY: as above.
unsafe impl<R: RawMutexFair> RawMutexFair for Unpreempted<R> {
    #[inline]
    unsafe fn unlock_fair(&self, guard: R::Guard) {
        // SAFETY: upheld by the caller.
        unsafe { self.0.unlock_fair(guard) };
        end_section();
    }
}

// SAFETY: as above.
unsafe impl<R: RawMutexTimed> RawMutexTimed for Unpreempted<R> {
    type Duration = R::Duration;
    type Instant = R::Instant;

    #[inline]
    fn try_lock_for(&self, timeout: R::Duration) -> Option<R::Guard> {
        Self::begun(self.0.try_lock_for(timeout))
    }

    #[inline]
    fn try_lock_until(&self, timeout: R::Instant) -> Option<R::Guard> {
        Self::begun(self.0.try_lock_until(timeout))
    }
}
