//! The condition variable of this library.

use nearlock_core::native::Wait;
use nearlock_core::near::condvar::NearCondvar;
use nearlock_core::near::mutex::NearMutex;
use nearlock_core::parking::Limit;
use nearlock_os::Os;

use super::WithCondvar;

// SAFETY: a wait holds the mutex again when it returns.
unsafe impl<W: Wait> WithCondvar for NearMutex<Os<W>> {
    type Condvar = NearCondvar<Os<W>>;

    #[inline(always)]
    unsafe fn wait(&self, _node: &(), condvar: &Self::Condvar) {
        // SAFETY: by the caller's promise. All waits are with this mutex, so the wait is possible.
        let waited = unsafe { condvar.wait(self, &Limit::NONE) };
        debug_assert!(waited.is_ok(), "{waited:?}");
    }

    #[inline(always)]
    fn notify_one(condvar: &Self::Condvar) {
        condvar.notify_one();
    }

    #[inline(always)]
    fn notify_all(condvar: &Self::Condvar) {
        condvar.notify_all();
    }
}
