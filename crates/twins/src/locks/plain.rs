//! A mutex that is unlocked by a plain store, with a table of counts.

use std::hint::black_box;
use std::ptr;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, compiler_fence, fence};

use nearlock::raw::{RawLock, RawTryLock};

use super::Tas;

/// Two cache lines of the table.
#[repr(C, align(64))]
struct Chain {
    /// The table of the real lock has a lock and lists here.
    waiters: [AtomicU32; 16],
    releases: AtomicU32,
    /// The table of the real lock has other hints here.
    others: [AtomicU32; 4],
    counts: [AtomicU32; 11],
}

static TABLE: [Chain; 256] = [const {
    Chain {
        waiters: [const { AtomicU32::new(0) }; 16],
        releases: AtomicU32::new(0),
        others: [const { AtomicU32::new(0) }; 4],
        counts: [const { AtomicU32::new(0) }; 11],
    }
}; 256];

/// The wake requests in a count.
const REQUESTS: u32 = (1 << 22) - 1;

impl Chain {
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

/// 2: other threads make this thread fence.
static KIND: AtomicU32 = AtomicU32::new(0);

/// A word that is swapped, and a count in the table.
#[derive(Default)]
pub struct PlainRelease(Tas);

#[cold]
#[inline(never)]
fn fences() {
    fence(SeqCst);
}

impl PlainRelease {
    #[inline]
    fn chain(address: usize) -> (&'static Chain, &'static AtomicU32) {
        let hash = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let chain = &TABLE[(hash >> 56) as usize];
        (chain, &chain.counts[((((hash ^ (hash << 16)) >> 32) * 11) >> 32) as usize])
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

// SAFETY: only the swap that finds 0 locks.
unsafe impl RawLock for PlainRelease {
    type Node = ();
    #[inline]
    unsafe fn lock(&self, node: &()) {
        // SAFETY: upheld by the caller.
        unsafe { self.0.lock(node) };
    }
    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        let address = ptr::from_ref(self).addr();
        let (chain, count) = Self::chain(address);
        let counted = count.load(Relaxed);
        if counted & REQUESTS != 0 || counted > REQUESTS && chain.is_time_to_look() {
            return self.unlock_slow();
        }
        self.0.0.store(0, Release);
        if KIND.load(Relaxed) == 2 {
            compiler_fence(SeqCst);
        } else {
            fences();
        }
        if count.load(Relaxed) & REQUESTS != 0 {
            Self::answer(address);
        }
    }
}

// SAFETY: as above.
unsafe impl RawTryLock for PlainRelease {
    #[inline]
    unsafe fn try_lock(&self, node: &()) -> bool {
        // SAFETY: upheld by the caller.
        self.0.0.load(Relaxed) == 0 && unsafe { self.0.try_lock(node) }
    }
}
