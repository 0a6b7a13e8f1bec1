//! Locks whose throughput does not collapse on machines with many processors.
//!
//! Two things ruin it there, and each has a cure. Threads hammer the lock's word with writes that cannot
//! succeed: let them read first, and queue. The lock travels between NUMA nodes at every hand-over: hand it
//! to a waiter near by, without starving the others.
//!
//! Here are the locks as types of this operating system. They hold no data, and whoever uses them keeps
//! the promises of [`RawLock`] and [`RawTryLock`].
//!
//! | lock | bytes | waiters | fairness |
//! |---|---|---|---|
//! | [`RawQSpinLock`](linux::RawQSpinLock) | 4 | queue, in nodes of their threads | first come, first served |
//! | [`RawCnaV13Lock`](linux::RawCnaV13Lock) | 4 | queue, those near by first | the others are overtaken for a threshold (10 ms) at a time |
//! | [`RawMcsLock`](classic::RawMcsLock) | a pointer | queue, in nodes that the caller brings | first come, first served |
//! | [`RawTtasLock`](classic::RawTtasLock) | 4 | all at the word | none |
//!
//! All of them spin for a while and then offer the processor to other threads
//! ([`SpinThenYield`](nearlock_os::SpinThenYield)); a waiter never sleeps. They are for short critical
//! sections. A lock may be a static: all bits zero is "unlocked".
//!
//! ```
//! use nearlock::linux::RawQSpinLock;
//! use nearlock::{RawLock, RawTryLock};
//! use std::cell::UnsafeCell;
//!
//! struct Counter {
//!     lock: RawQSpinLock,
//!     value: UnsafeCell<u64>,
//! }
//!
//! // SAFETY: `value` is accessed by the holder of `lock` only.
//! unsafe impl Sync for Counter {}
//!
//! static COUNTER: Counter = Counter { lock: RawQSpinLock::new(), value: UnsafeCell::new(0) };
//!
//! std::thread::scope(|scope| {
//!     for _ in 0..4 {
//!         scope.spawn(|| {
//!             for _ in 0..1000 {
//!                 // SAFETY: this lock needs no node of ours, and unlock follows lock on the same thread.
//!                 unsafe {
//!                     COUNTER.lock.lock(&());
//!                     *COUNTER.value.get() += 1;
//!                     COUNTER.lock.unlock(&());
//!                 }
//!             }
//!         });
//!     }
//! });
//!
//! // SAFETY: as above, if the lock was free, as it is now.
//! unsafe {
//!     assert!(COUNTER.lock.try_lock(&()));
//!     assert_eq!(*COUNTER.value.get(), 4000);
//!     COUNTER.lock.unlock(&());
//! }
//! ```

pub use nearlock_core::raw::{RawLock, RawTryLock};

/// Spin locks from the literature.
pub mod classic {
    use nearlock_core::classic::{mcs, ttas};
    use nearlock_os::Os;

    /// Queue lock whose nodes the callers bring, and keep in place until they have unlocked. Without that
    /// burden, and half as big: [`RawQSpinLock`](crate::linux::RawQSpinLock).
    pub type RawMcsLock = mcs::McsLock<Os>;

    /// The node that an acquisition of [`RawMcsLock`] brings.
    pub type RawMcsNode = mcs::Node<Os>;

    /// One word that everybody spins on. For locks that are hardly ever contended; unfair.
    pub type RawTtasLock = ttas::TtasLock<Os>;
}

/// The locks of the Linux kernel.
///
/// Their queue nodes belong to the threads. In a process with more than 16383 threads that have waited for
/// such a lock, further ones wait without a place in the queue, and can starve.
pub mod linux {
    use nearlock_core::linux::{cna_v13, qspinlock};
    use nearlock_os::Os;

    /// Linux' queued spinlock.
    pub type RawQSpinLock = qspinlock::QSpinLock<Os>;

    /// The same, but the lock stays within a NUMA node for as long as its threshold allows. For locks
    /// contended by threads of several NUMA nodes; with one node it only costs.
    pub type RawCnaV13Lock = cna_v13::CnaV13Lock<Os>;
}

const _: () = assert!(size_of::<linux::RawQSpinLock>() == 4);
const _: () = assert!(size_of::<linux::RawCnaV13Lock>() == 4);
const _: () = assert!(size_of::<classic::RawTtasLock>() == 4);
const _: () = assert!(size_of::<classic::RawMcsLock>() == size_of::<usize>());

#[cfg(test)]
mod tests {
    use super::*;

    /// Locks, fails to lock again, and unlocks.
    fn cycle<L: RawTryLock>(lock: &L) {
        let (node, other) = (L::Node::default(), L::Node::default());
        // SAFETY: the nodes outlive the acquisitions, and unlock follows lock.
        unsafe {
            lock.lock(&node);
            assert!(!lock.try_lock(&other));
            lock.unlock(&node);
            assert!(lock.try_lock(&node));
            lock.unlock(&node);
        }
    }

    #[test]
    fn every_lock_can_be_a_static() {
        static TTAS: classic::RawTtasLock = classic::RawTtasLock::new();
        static MCS: classic::RawMcsLock = classic::RawMcsLock::new();
        static QSPIN: linux::RawQSpinLock = linux::RawQSpinLock::new();
        static CNA: linux::RawCnaV13Lock = linux::RawCnaV13Lock::new();
        cycle(&TTAS);
        cycle(&MCS);
        cycle(&QSPIN);
        cycle(&CNA);
    }
}

/// The examples of the README are compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ReadmeExamples;
