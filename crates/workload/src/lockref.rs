//! Lockref: a count of references with a lock, which is taken only where the count cannot be
//! changed without.
//!
//! ```text
//!  word   31..1  unused     0  held     63..32  references
//!
//!  0, n -> 0, n+1    get    0, n -> 0, n-1    put        by compare-exchange, while the lock is not held
//!  0, n -> 1, n      whoever has the lock: nobody changes the count by compare-exchange from here on
//!  1, n -> 0, n+1    get    1, n -> 0, n-1    put        one store, before the lock is released
//! ```
//! 1. `held` is set only by whoever has the lock, and only then is the word written by a plain
//!    store.
//!
//! The kernel's lock is one half of the word, so that taking it is what keeps compare-exchanges
//! away. Accesses to parts of a word are not for any lock here, so the lock lies beside the word,
//! on the same line: to take it costs one more atomic on a line that is there.
//!
//! A count orders nothing: the counts of these workloads never come to 0, where something would be
//! freed.
//!
//! Source: Corbet, "Introducing lockrefs", LWN, September 2013.

use core::sync::atomic::Ordering::Relaxed;

use nearlock_core::platform::{Atomic, AtomicInt, Platform};
use nearlock_core::raw::RawLock;

const HELD: u64 = 1;
const ONE: u64 = 1 << 32;

/// Compare-exchanges before the lock is taken. Linux makes 100 since 2019, as recalled, for
/// machines on which hardly any succeeds among many. So it is where requests for a line are served
/// in turn, as in the simulator: one in as many succeeds as there are threads, and 16 that have met
/// here stay for long. With fewer they go by the lock, and part.
const TRIES: u32 = 8;

/// See the [module](self). All bits zero is no reference.
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
    /// How many references there are. Stale by the time it is known.
    pub fn count(&self) -> u32 {
        (self.word.load(Relaxed) >> 32) as u32
    }

    /// Takes a reference.
    ///
    /// # Safety
    ///
    /// As [`RawLock::lock`]; the node is free again afterwards.
    pub unsafe fn get(&self, node: &L::Node) {
        // SAFETY: the caller's.
        unsafe { self.add(node, ONE) };
    }

    /// Gives one back.
    ///
    /// # Safety
    ///
    /// As [`get`](Self::get).
    pub unsafe fn put(&self, node: &L::Node) {
        // SAFETY: the caller's.
        unsafe { self.add(node, ONE.wrapping_neg()) };
    }

    /// Safety: as [`get`](Self::get).
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
        // SAFETY: the caller's; so below.
        unsafe { self.lock.lock(node) };
        let word = self.word.fetch_or(HELD, Relaxed);
        // Ours alone (invariant 1), and without the mark.
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

    /// A lock that counts how often it was taken.
    #[derive(Default)]
    struct Counting(McsLock<Os>, AtomicU32);

    // SAFETY: is the lock inside.
    unsafe impl RawLock for Counting {
        type Node = <McsLock<Os> as RawLock>::Node;
        unsafe fn lock(&self, node: &Self::Node) {
            self.1.fetch_add(1, Relaxed);
            // SAFETY: the caller's; so below.
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
        // SAFETY: one thread, which uses the node for one thing after the other.
        unsafe {
            lockref.get(&node);
            lockref.get(&node);
            assert_eq!(lockref.count(), 2);
            lockref.put(&node);
        }
        assert_eq!((lockref.count(), taken(&lockref)), (1, 0));
    }

    #[test]
    fn while_the_lock_is_held_they_are_counted_under_it() {
        let (lockref, node, is_done) = (Counted::default(), Default::default(), AtomicBool::new(false));
        // SAFETY: our own node; unlocked below.
        unsafe { lockref.lock.lock(&node) };
        lockref.word.fetch_or(HELD, Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let node = Default::default();
                // SAFETY: the thread's own node.
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
                        // SAFETY: the thread's own node, for one thing after the other.
                        unsafe {
                            lockref.get(&node);
                            if thread == 0 && turn % 10 == 0 {
                                // As somebody who needs the lock for something else.
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
