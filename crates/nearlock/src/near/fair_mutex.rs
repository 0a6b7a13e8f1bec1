//! The raw lock of [`FairMutex`](super::FairMutex).

use super::RawMutex;
use crate::lock_api::{self, RawMutexFair, RawMutexTimed};

/// A raw mutex whose unlocks all hand it over. Otherwise it is the mutex inside.
///
/// ```
/// use nearlock::lock_api::Mutex;
/// use nearlock::near::Fair;
///
/// let turn = Mutex::<Fair<nearlock::RawMutex>, u32>::new(1);
/// assert_eq!(*turn.lock(), 1);
/// ```
#[derive(Default)]
#[repr(transparent)]
pub struct Fair<R>(pub(crate) R);

/// The raw lock of [`FairMutex`](super::FairMutex): a [`RawMutex`] whose unlocks all hand it over.
pub type RawFairMutex = Fair<RawMutex>;

// SAFETY: it is the mutex inside, with another kind of unlock.
unsafe impl<R: RawMutexFair> lock_api::RawMutex for Fair<R> {
    #[allow(clippy::declare_interior_mutable_const)] // as in the trait
    const INIT: Self = Self(R::INIT);
    type Guard = R::Guard;

    #[inline]
    fn lock(&self) -> R::Guard {
        self.0.lock()
    }

    #[inline]
    fn try_lock(&self) -> Option<R::Guard> {
        self.0.try_lock()
    }

    #[inline]
    unsafe fn unlock(&self, guard: R::Guard) {
        // SAFETY: upheld by the caller. The same holds below.
        unsafe { self.0.unlock_fair(guard) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

// SAFETY: as above.
unsafe impl<R: RawMutexFair> RawMutexFair for Fair<R> {
    #[inline]
    unsafe fn unlock_fair(&self, guard: R::Guard) {
        // SAFETY: as above.
        unsafe { self.0.unlock_fair(guard) };
    }
}

// SAFETY: as above.
unsafe impl<R: RawMutexFair + RawMutexTimed> RawMutexTimed for Fair<R> {
    type Duration = R::Duration;
    type Instant = R::Instant;

    #[inline]
    fn try_lock_for(&self, timeout: R::Duration) -> Option<R::Guard> {
        self.0.try_lock_for(timeout)
    }

    #[inline]
    fn try_lock_until(&self, timeout: R::Instant) -> Option<R::Guard> {
        self.0.try_lock_until(timeout)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::super::{FairMutex, FairMutexGuard};

    /// Calls `unlock` while another thread waits in the queue. That thread has the mutex then.
    fn is_handed_over_by(unlock: impl FnOnce(FairMutexGuard<'_, u32>)) {
        let mutex = FairMutex::new(0);
        thread::scope(|scope| {
            let guard = mutex.lock();
            scope.spawn(|| *mutex.lock() = 1);
            // SAFETY: the state is read, and the mutex is neither locked nor unlocked.
            let diagnose = || unsafe { mutex.raw() }.0.0.diagnose();
            while diagnose().queue.is_none_or(|queue| queue.len == 0) {
                thread::yield_now();
            }
            unlock(guard);
            assert!(mutex.try_lock().is_none_or(|value| *value == 1), "it was not handed over");
        });
    }

    #[test]
    fn each_unlock_hands_over() {
        for _ in 0..if cfg!(miri) { 2 } else { 50 } {
            is_handed_over_by(|guard| drop(guard));
            is_handed_over_by(|guard| FairMutexGuard::unlock_fair(guard));
        }
    }
}
