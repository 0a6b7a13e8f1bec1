//! Lockref: a count of references with a lock. The lock is taken only if the count cannot be
//! changed without it.
//!
//! ```text
//!  word   31..1  unused     0  held     63..32  references
//!
//!  0, n -> 0, n+1    get    0, n -> 0, n-1    put    by compare-exchange, without the lock
//!  0, n -> 1, n      the holder of the lock: from now on no compare-exchange changes the count
//!  1, n -> 0, n+1    get    1, n -> 0, n-1    put    one store, before the lock is released
//! ```
//! 1. Only the holder of the lock sets `held`. The word is written by a plain store only while
//!    `held` is set.
//!
//! The kernel's lock is one half of the word, so a thread that takes the lock thereby excludes
//! compare-exchanges. Here the lock is of any type, and cannot be a part of the word. So it is next
//! to the word, on the same cache line. Taking it costs one more atomic on a line that is already
//! there.
//!
//! The count orders no other memory. The counts of these workloads never become 0, so no object is
//! freed.
//!
//! Source: Corbet, "Introducing lockrefs", LWN, September 2013.

use core::sync::atomic::Ordering::Relaxed;

use nearlock_core::platform::{Atomic, AtomicInt, Platform};
use nearlock_core::raw::RawLock;

const HELD: u64 = 1;
const ONE: u64 = 1 << 32;

/// Number of compare-exchanges before the lock is taken. Linux has made 100 since 2019, as
/// recalled, for machines on which hardly any attempt succeeds with many threads. That also applies
/// if requests for a line are served first come, first served, as in the simulator: among n
/// threads, one attempt in n succeeds. With more attempts, 16 threads that have met here contend
/// for long. With fewer attempts, they take the lock and separate.
const TRIES: u32 = 8;

/// See the [module](self). All bits zero means no references.
#[repr(C)]
pub struct Lockref<P: Platform, L> {
    lock: L,
    word: P::U64,
}

impl<P: Platform, L: RawLock> Default for Lockref<P, L> {
    fn default() -> Self {
        Self { lock: L::default(), word: Atomic::new(0) }
    }
}

impl<P: Platform, L: RawLock> Lockref<P, L> {
    /// Number of references. It may be outdated when it is returned.
    pub fn count(&self) -> u32 {
        (self.word.load(Relaxed) >> 32) as u32
    }

    /// Takes a reference.
    ///
    /// # Safety
    ///
    /// See [`RawLock::lock`]. The node is free again afterwards.
    pub unsafe fn get(&self, node: &L::Node) {
        // SAFETY: by the caller's promise.
        unsafe { self.add(node, ONE) };
    }

    /// Drops a reference.
    ///
    /// # Safety
    ///
    /// See [`get`](Self::get).
    pub unsafe fn put(&self, node: &L::Node) {
        // SAFETY: by the caller's promise.
        unsafe { self.add(node, ONE.wrapping_neg()) };
    }

    /// Safety: see [`get`](Self::get).
    unsafe fn add(&self, node: &L::Node, change: u64) {
        let mut word = self.word.load(Relaxed);
        for _ in 0..TRIES {
            if word & HELD != 0 {
                break;
            }
            match self.word.compare_exchange_weak(word, word.wrapping_add(change), Relaxed, Relaxed) {
                Ok(_) => return,
                Err(seen) => word = seen,
            }
        }
        // SAFETY: by the caller's promise, also below.
        unsafe { self.lock.lock(node) };
        let word = self.word.fetch_or(HELD, Relaxed);
        // No other thread changes the word now (invariant 1). The stored value has no `held` mark.
        self.word.store(word.wrapping_add(change), Relaxed);
        // SAFETY: locked above with this node.
        unsafe { self.lock.unlock(node) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearlock_collection::classic::mcs::McsLock;
    use nearlock_os::Os;
    use std::sync::atomic::{AtomicBool, AtomicU32};

    type Counted = Lockref<Os, Counting>;

    /// A lock that counts its acquisitions.
    #[derive(Default)]
    struct Counting(McsLock<Os>, AtomicU32);

    // SAFETY: the guarantees are those of the lock inside.
    unsafe impl RawLock for Counting {
        type Node = <McsLock<Os> as RawLock>::Node;
        unsafe fn lock(&self, node: &Self::Node) {
            self.1.fetch_add(1, Relaxed);
            // SAFETY: by the caller's promise, also below.
            unsafe { self.0.lock(node) };
        }
        unsafe fn unlock(&self, node: &Self::Node) {
            // SAFETY: as above.
            unsafe { self.0.unlock(node) };
        }
    }

    fn taken(lockref: &Counted) -> u32 {
        lockref.lock.1.load(Relaxed)
    }

    #[test]
    fn references_are_counted_without_the_lock() {
        let (lockref, node) = (Counted::default(), Default::default());
        // SAFETY: there is one thread, which uses the node for one acquisition at a time.
        unsafe {
            lockref.get(&node);
            lockref.get(&node);
            assert_eq!(lockref.count(), 2);
            lockref.put(&node);
        }
        assert_eq!((lockref.count(), taken(&lockref)), (1, 0));
    }

    #[test]
    fn references_are_counted_under_the_lock_while_it_is_held() {
        let (lockref, node, is_done) = (Counted::default(), Default::default(), AtomicBool::new(false));
        // SAFETY: the node is this thread's own, and the lock is unlocked below.
        unsafe { lockref.lock.lock(&node) };
        lockref.word.fetch_or(HELD, Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let node = Default::default();
                // SAFETY: the node is the thread's own.
                unsafe { lockref.get(&node) };
                is_done.store(true, Relaxed);
            });
            while taken(&lockref) < 2 {
                std::thread::yield_now();
            }
            assert!(!is_done.load(Relaxed), "it waits");
            lockref.word.store(7 * ONE, Relaxed);
            // SAFETY: locked above.
            unsafe { lockref.lock.unlock(&node) };
        });
        assert_eq!((lockref.word.load(Relaxed), taken(&lockref)), (8 * ONE, 2));
    }

    #[test]
    fn no_reference_is_lost_whichever_way_it_is_taken() {
        let lockref = Counted::default();
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let lockref = &lockref;
                scope.spawn(move || {
                    let node = Default::default();
                    for turn in 0..3000 {
                        // SAFETY: the node is the thread's own, and is used for one acquisition at
                        // a time.
                        unsafe {
                            lockref.get(&node);
                            if thread == 0 && turn % 10 == 0 {
                                // Like a thread that needs the lock for another purpose.
                                lockref.lock.lock(&node);
                                let word = lockref.word.fetch_or(HELD, Relaxed);
                                lockref.word.store(word, Relaxed);
                                lockref.lock.unlock(&node);
                            }
                            if turn % 3 > 0 {
                                lockref.put(&node);
                            }
                        }
                    }
                });
            }
        });
        assert_eq!(lockref.word.load(Relaxed), 3000 * ONE);
    }
}
