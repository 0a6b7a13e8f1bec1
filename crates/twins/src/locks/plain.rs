//! A mutex that is released by a plain store, with a table of summons.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{compiler_fence, fence};
use std::thread::yield_now;

use nearlock::raw::{RawLock, RawTryLock};

/// A line of the table; its first word is for others.
#[repr(align(64))]
struct Line(#[expect(dead_code, reason = "where the table has a lock")] AtomicU32, AtomicU32);

static TABLE: [Line; 256] = [const { Line(AtomicU32::new(0), AtomicU32::new(0)) }; 256];

/// 2: others make us fence.
static KIND: AtomicU32 = AtomicU32::new(0);

/// A word, and another in the table.
#[derive(Default)]
pub struct PlainRelease(AtomicU32);

#[cold]
#[inline(never)]
fn fences() {
    fence(SeqCst);
}

impl PlainRelease {
    #[inline]
    fn is_summoned(address: usize) -> bool {
        let index = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
        TABLE[index as usize].1.load(Relaxed) != 0
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self) {
        while self.0.swap(1, Acquire) != 0 {
            yield_now();
        }
    }

    #[cold]
    #[inline(never)]
    fn unlock_slow(&self) {
        self.0.store(0, Release);
    }

    #[cold]
    #[inline(never)]
    fn answer(_address: usize) {
        yield_now();
    }
}

// SAFETY: only the swap that finds 0 acquires.
unsafe impl RawLock for PlainRelease {
    type Node = ();
    #[inline]
    unsafe fn lock(&self, _node: &()) {
        if self.0.swap(1, Acquire) != 0 {
            self.lock_slow();
        }
    }
    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        let address = std::ptr::from_ref(self).addr();
        if Self::is_summoned(address) {
            return self.unlock_slow();
        }
        self.0.store(0, Release);
        if KIND.load(Relaxed) == 2 {
            compiler_fence(SeqCst);
        } else {
            fences();
        }
        if Self::is_summoned(address) {
            Self::answer(address);
        }
    }
}

// SAFETY: as above.
unsafe impl RawTryLock for PlainRelease {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        self.0.load(Relaxed) == 0 && self.0.swap(1, Acquire) == 0
    }
}
