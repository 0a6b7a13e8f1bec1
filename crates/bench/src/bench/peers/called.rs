//! One of our locks behind function calls, as locks of shared libraries are. It is a control that
//! shows the cost of these calls.

use std::hint::black_box;

use nearlock_core::near::mutex::NearMutex;
use nearlock_core::raw::RawLock;
use nearlock_os::Os;

use super::{Lock, of};

pub const NEAR_MUTEX: Option<Lock> = of::<Called<NearMutex<Os>>>();

#[derive(Default)]
struct Called<L>(L);

// SAFETY: it is the lock that it contains.
unsafe impl<L: RawLock> RawLock for Called<L> {
    type Node = L::Node;

    #[inline(always)]
    unsafe fn lock(&self, node: &L::Node) {
        let lock: unsafe fn(&L, &L::Node) = black_box(L::lock);
        // SAFETY: by the caller's promise.
        unsafe { lock(&self.0, node) };
    }

    #[inline(always)]
    unsafe fn unlock(&self, node: &L::Node) {
        let unlock: unsafe fn(&L, &L::Node) = black_box(L::unlock);
        // SAFETY: by the caller's promise.
        unsafe { unlock(&self.0, node) };
    }
}
