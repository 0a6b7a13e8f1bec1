//! Waiting for a mutex, and not locking it.

use nearlock_collection::freebsd::mtx::Mtx;
use nearlock_collection::freebsd::spin_mtx::{LongSpin, SpinMtx};
use nearlock_collection::freebsd::tuning::Tuning;
use nearlock_os::Os;

use super::Ownership;
use crate::lock_api::Mutex;
use crate::raw::Nodeless;

/// Waiting until nobody holds a mutex, without locking it.
///
/// For whoever has seen to it that nobody new comes, and only waits for the last one to leave.
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
    /// Waits until nobody holds it: `mtx_wait_unlocked`, `mtx_spin_wait_unlocked`. What happened in
    /// the sections before is visible then. Its holder would wait for itself: debug assertions
    /// find that. For a spin mutex it spins without a bound, as `lock` does.
    fn wait_unlocked(&self);
}

/// Whoever finds the holder asleep locks the mutex for a moment.
impl<K: Tuning, T: ?Sized> WaitUnlocked for Mutex<Nodeless<Mtx<Os, K>>, T> {
    fn wait_unlocked(&self) {
        debug_assert!(!self.is_owned(), "waits for a mutex that it holds");
        // SAFETY: what it locks it unlocks; so below.
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
