//! FreeBSD's mutex.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use nearlock_collection::freebsd::mtx::Mtx;
use nearlock_core::platform::Atomic;
use nearlock_core::raw::{RawLock, RawTryLock};
use nearlock_core::schedule::Schedule;
use nearlock_model::exclusion::trying;
use nearlock_model::model::Model;
use nearlock_model::shuttle::Shuttle;

use crate::caught_by_shuttle;

/// The position of the owner in the word.
const OWNER_SHIFT: u32 = 3;

#[test]
fn mtx_weak_exchange_taken_for_a_strong_one() {
    /// An attempt whose exchange fails assumes that a thread has the mutex.
    #[derive(Default)]
    struct Trusts(Mtx<Shuttle>);
    // SAFETY: forwards to the mutex inside; also below.
    unsafe impl RawLock for Trusts {
        type Node = ();
        unsafe fn lock(&self, node: &()) {
            // SAFETY: the condition of the caller; also below.
            unsafe { self.0.lock(node) };
        }
        unsafe fn unlock(&self, node: &()) {
            // SAFETY: as above.
            unsafe { self.0.unlock(node) };
        }
    }
    // SAFETY: as above. An attempt locks the mutex as the mutex itself does.
    unsafe impl RawTryLock for Trusts {
        unsafe fn try_lock(&self, _node: &()) -> bool {
            let me = Shuttle::thread_id().get() << OWNER_SHIFT;
            // SAFETY: as the mutex does.
            let word = unsafe { self.0.word() };
            // Ordering: Acquire, as that of the mutex.
            word.compare_exchange_weak(0, me, Acquire, Relaxed).is_ok()
        }
    }
    fn model<L: RawTryLock>() -> Model<Shuttle> {
        trying::<Shuttle, L>("freebsd-mtx", None)
    }
    let test = "mtx_weak_exchange_taken_for_a_strong_one";
    let how = "the lock is free at last";
    caught_by_shuttle(test, &model::<Mtx<Shuttle>>(), &model::<Trusts>(), how);
}
