//! A mutex that is unlocked by a plain store, with a table of numbers of waiters.

use std::hint::black_box;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, compiler_fence, fence};
use std::thread::yield_now;

use nearlock::raw::{RawLock, RawTryLock};
use nearlock_core::schedule::Schedule;
use nearlock_os::Os;

#[repr(align(64))]
struct Table([AtomicU32; 4096]);

static TABLE: Table = Table([const { AtomicU32::new(0) }; 4096]);

/// 2: other threads make this thread fence.
static KIND: AtomicU32 = AtomicU32::new(0);

/// A word that names its holder.
#[derive(Default)]
pub struct PlainRelease(AtomicU32);

impl PlainRelease {
    #[inline(always)]
    fn take(&self) -> bool {
        self.0.compare_exchange(0, <Os>::mark().word(), Acquire, Relaxed).is_ok()
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self) {
        while !self.take() {
            yield_now();
        }
    }

    #[inline(never)]
    fn unlock_slow(&self) {
        self.0.store(0, Release);
    }

    #[cold]
    #[inline(never)]
    fn fences(address: usize) {
        fence(SeqCst);
        Self::answer(address);
    }

    #[inline(never)]
    fn answer(address: usize) {
        black_box(address);
    }
}

// SAFETY: only the exchange that finds 0 locks.
unsafe impl RawLock for PlainRelease {
    type Node = ();
    #[inline]
    unsafe fn lock(&self, _node: &()) {
        if !self.take() {
            self.lock_slow();
        }
    }
    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        let address = ptr::from_ref(self).addr();
        let hash = (address as u32).wrapping_mul(0x9e37_79b9);
        let waiters = &TABLE.0[(hash >> 20) as usize];
        if waiters.load(Relaxed) != 0 {
            return self.unlock_slow();
        }
        self.0.store(0, Release);
        if KIND.load(Relaxed) != 2 {
            return Self::fences(address);
        }
        compiler_fence(SeqCst);
        if waiters.load(Relaxed) != 0 {
            Self::answer(address);
        }
    }
}

// SAFETY: as above.
unsafe impl RawTryLock for PlainRelease {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        self.0.load(Relaxed) == 0 && self.take()
    }
}
