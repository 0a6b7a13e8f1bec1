//! Waits for a mutex without locking it.

use nearlock_collection::freebsd::mtx::Mtx;
use nearlock_collection::freebsd::spin_mtx::{LongSpin, SpinMtx};
use nearlock_collection::freebsd::tuning::Tuning;
use nearlock_os::Os;

use super::Ownership;
use crate::lock_api::Mutex;
use crate::raw::Nodeless;

/// Waits until no thread holds a mutex, without locking it.
///
/// For a thread that has made sure that no further thread locks the mutex, and only waits for the
/// last holder.
///
/// ```
/// use std::sync::Barrier;
/// use nearlock::freebsd::{Mtx, WaitUnlocked};
///
/// let (log, begun) = (Mtx::new(String::new()), Barrier::new(2));
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         let mut last = log.lock();
///         begun.wait();
///         last.push_str("ended");
///     });
///     begun.wait();
///     log.wait_unlocked();
///     assert_eq!(*log.try_lock().unwrap(), "ended");
/// });
/// ```
pub trait WaitUnlocked {
    /// Waits until no thread holds the mutex: `mtx_wait_unlocked`, `mtx_spin_wait_unlocked`. The
    /// effects of the critical sections before are visible then. If the caller holds the mutex,
    /// this deadlocks. Debug assertions detect that. For a spin mutex it spins without a bound, as
    /// `lock` does.
    fn wait_unlocked(&self);
}

/// Locks the mutex for a moment if the holder sleeps, or if the caller has spun for long enough.
impl<K: Tuning, T: ?Sized> WaitUnlocked for Mutex<Nodeless<Mtx<Os, K>>, T> {
    fn wait_unlocked(&self) {
        debug_assert!(!self.is_owned(), "waits for a mutex that it holds");
        // SAFETY: it unlocks what it locks. The same holds below.
        unsafe { self.raw() }.0.wait_unlocked();
    }
}

impl<K: Tuning, D: LongSpin, T: ?Sized> WaitUnlocked for Mutex<Nodeless<SpinMtx<Os, K, D>>, T> {
    fn wait_unlocked(&self) {
        debug_assert!(!self.is_owned(), "waits for a mutex that it holds");
        // SAFETY: as above.
        unsafe { self.raw() }.0.wait_unlocked();
    }
}
