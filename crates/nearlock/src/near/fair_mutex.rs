//! The raw lock of [`FairMutex`](super::FairMutex).

use std::time::{Duration, Instant};

use super::RawMutex;
use crate::lock_api::{self, GuardNoSend, RawMutexFair, RawMutexTimed};

/// The raw lock of [`FairMutex`](super::FairMutex): a [`RawMutex`] whose unlocks all hand it over.
#[derive(Default)]
#[repr(transparent)]
pub struct RawFairMutex(pub(crate) RawMutex);

// SAFETY: it is the mutex inside, with another kind of unlock.
unsafe impl lock_api::RawMutex for RawFairMutex {
    #[allow(clippy::declare_interior_mutable_const)] // as in the trait
    const INIT: Self = Self(<RawMutex as lock_api::RawMutex>::INIT);
    type Guard = GuardNoSend;

    #[inline]
    fn lock(&self) -> GuardNoSend {
        lock_api::RawMutex::lock(&self.0)
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardNoSend> {
        lock_api::RawMutex::try_lock(&self.0)
    }

    #[inline]
    unsafe fn unlock(&self, guard: GuardNoSend) {
        // SAFETY: upheld by the caller. The same holds below.
        unsafe { self.0.unlock_fair(guard) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        lock_api::RawMutex::is_locked(&self.0)
    }
}

// SAFETY: as above.
unsafe impl RawMutexFair for RawFairMutex {
    #[inline]
    unsafe fn unlock_fair(&self, guard: GuardNoSend) {
        // SAFETY: as above.
        unsafe { self.0.unlock_fair(guard) };
    }
}

// SAFETY: as above.
unsafe impl RawMutexTimed for RawFairMutex {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    fn try_lock_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        RawMutexTimed::try_lock_for(&self.0, timeout)
    }

    #[inline]
    fn try_lock_until(&self, timeout: Instant) -> Option<GuardNoSend> {
        RawMutexTimed::try_lock_until(&self.0, timeout)
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
