//! A mutex that is released by a plain store, with a table of summons.

use std::hint::black_box;
use std::ptr;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicPtr, AtomicU32, compiler_fence, fence};

use nearlock::raw::{RawLock, RawTryLock};

use super::Tas;

/// A line of the table.
#[repr(C, align(64))]
struct Line {
    /// Where the table has a lock.
    lock: AtomicU32,
    summons: AtomicU32,
    releases: AtomicU32,
    /// Where the table has other hints, and another lock.
    others: [AtomicU32; 3],
    first: AtomicPtr<()>,
}

static TABLE: [Line; 256] = [const {
    Line {
        lock: AtomicU32::new(0),
        summons: AtomicU32::new(0),
        releases: AtomicU32::new(0),
        others: [const { AtomicU32::new(0) }; 3],
        first: AtomicPtr::new(ptr::null_mut()),
    }
}; 256];

impl Line {
    #[inline(always)]
    fn is_time_to_look(&self) -> bool {
        let releases = self.releases.load(Relaxed);
        let is_time = releases & 0xffff == 0;
        if !is_time {
            self.releases.store(releases - 1, Relaxed);
        }
        is_time
    }
}

/// 2: others make us fence.
static KIND: AtomicU32 = AtomicU32::new(0);

/// A word that is swapped, and another in the table.
#[derive(Default)]
pub struct PlainRelease(Tas);

#[cold]
#[inline(never)]
fn fences() {
    fence(SeqCst);
}

impl PlainRelease {
    #[inline]
    fn line(address: usize) -> &'static Line {
        let index = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
        &TABLE[index as usize]
    }

    #[cold]
    #[inline(never)]
    fn unlock_slow(&self) {
        self.0.0.store(0, Release);
    }

    #[cold]
    #[inline(never)]
    fn answer(address: usize) {
        black_box(address);
    }
}

// SAFETY: only the swap that finds 0 acquires.
unsafe impl RawLock for PlainRelease {
    type Node = ();
    #[inline]
    unsafe fn lock(&self, node: &()) {
        // SAFETY: the caller's.
        unsafe { self.0.lock(node) };
    }
    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        let address = ptr::from_ref(self).addr();
        let line = Self::line(address);
        if line.summons.load(Relaxed) != 0 || !line.first.load(Relaxed).is_null() && line.is_time_to_look() {
            return self.unlock_slow();
        }
        self.0.0.store(0, Release);
        if KIND.load(Relaxed) == 2 {
            compiler_fence(SeqCst);
        } else {
            fences();
        }
        if line.summons.load(Relaxed) != 0 {
            Self::answer(address);
        }
    }
}

// SAFETY: as above.
unsafe impl RawTryLock for PlainRelease {
    #[inline]
    unsafe fn try_lock(&self, node: &()) -> bool {
        // SAFETY: the caller's.
        self.0.0.load(Relaxed) == 0 && unsafe { self.0.try_lock(node) }
    }
}
