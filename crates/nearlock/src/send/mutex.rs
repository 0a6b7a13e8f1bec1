//! The raw mutex.

use std::time::{Duration, Instant};

use nearlock_core::near::mutex::NearMutex;
use nearlock_core::raw::{RawLock as _, RawTryLock as _};
use nearlock_os::Os;

use crate::lock_api::{self, GuardSend};
use crate::near;
use crate::raw::timed::{until, within};

/// The raw lock of [`Mutex`](super::Mutex), for code that is generic over `lock_api`'s `RawMutex`,
/// `RawMutexFair` or `RawMutexTimed`.
///
/// ```
/// use nearlock::lock_api::Mutex;
/// use nearlock::send::RawMutex;
///
/// let mutex = Mutex::<RawMutex, u32>::new(1);
/// assert_eq!(*mutex.lock(), 1);
/// ```
#[derive(Default)]
#[repr(transparent)]
pub struct RawMutex(pub(super) near::RawMutex);

impl RawMutex {
    fn raw(&self) -> &NearMutex<Os> {
        &self.0.0
    }

    /// A guard if the caller has locked the mutex.
    #[inline]
    fn guard(&self, is_locked: bool) -> Option<GuardSend> {
        is_locked.then(|| {
            // SAFETY: it has.
            unsafe { self.let_anyone_release() };
            GuardSend::new()
        })
    }

    /// Safety: the caller has locked the mutex.
    #[inline]
    pub(super) unsafe fn let_anyone_release(&self) {
        // SAFETY: the caller's.
        unsafe { self.raw().let_anyone_release() };
    }
}

// SAFETY: it is the mutex inside. Its release depends on the thread only through the word, which
// names the holder for notifications of condition variables. Here it names none. What else a
// release knows of threads are hints, which cost time only (`near/mutex/hints.rs` in core).
unsafe impl lock_api::RawMutex for RawMutex {
    #[allow(clippy::declare_interior_mutable_const)] // as in the trait
    const INIT: Self = Self(<near::RawMutex as lock_api::RawMutex>::INIT);
    type Guard = GuardSend;

    #[inline]
    fn lock(&self) -> GuardSend {
        // SAFETY: the node is (), which any number of acquisitions may share. The same holds below.
        unsafe { self.raw().lock(&()) };
        // SAFETY: locked above.
        unsafe { self.let_anyone_release() };
        GuardSend::new()
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardSend> {
        // SAFETY: as above.
        self.guard(unsafe { self.raw().try_lock(&()) })
    }

    #[inline]
    unsafe fn unlock(&self, _guard: GuardSend) {
        // SAFETY: upheld by the caller. The same holds below.
        unsafe { self.raw().unlock(&()) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.raw().is_locked()
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawMutexTimed for RawMutex {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_for(&self, timeout: Duration) -> Option<GuardSend> {
        self.guard(self.0.lock_within(&within(timeout)))
    }

    fn try_lock_until(&self, timeout: Instant) -> Option<GuardSend> {
        self.guard(self.0.lock_within(&until(timeout)))
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawMutexFair for RawMutex {
    #[inline]
    unsafe fn unlock_fair(&self, _guard: GuardSend) {
        // SAFETY: as above.
        unsafe { self.raw().unlock_fair() };
    }
}
