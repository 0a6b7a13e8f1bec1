//! Peers: locks that others wrote, to hold ours against. Native only, since their source is not written over a
//! platform; how they wait is their own affair.

mod rwlocks;

use std::cell::UnsafeCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nearlock_core::raw::{RawLock, RawRwLock};
use nearlock_os::SpinThenYield;

use super::candidate::{Outcome, Run};
use rwlocks::{ParkingLotRwLock, StdRwLock};

/// A lock that others wrote.
#[derive(Debug)]
pub struct Peer {
    /// Its name on the command line.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// The lock itself.
    pub(super) size_bytes: usize,
    pub(super) measure: fn(Run<'_>) -> Outcome,
    /// With readers, if it has any.
    pub(super) measure_mixed: Option<fn(Run<'_>) -> Outcome>,
}

/// All of them.
pub const PEERS: &[Peer] = &[
    mutex::<StdMutex>("std-mutex", "std::sync::Mutex of the compiler's standard library"),
    mutex::<ParkingLotMutex>("parking-lot-mutex", "parking_lot::Mutex of the crate parking_lot 0.12"),
    rwlock::<StdRwLock>("std-rwlock", "std::sync::RwLock of the compiler's standard library"),
    rwlock::<ParkingLotRwLock>("parking-lot-rwlock", "parking_lot::RwLock of the crate parking_lot 0.12"),
];

const fn mutex<L: RawLock>(name: &'static str, summary: &'static str) -> Peer {
    Peer {
        name,
        summary,
        size_bytes: size_of::<L>(),
        measure: |run| run.of::<SpinThenYield, L>(),
        measure_mixed: None,
    }
}

const fn rwlock<L: RawRwLock>(name: &'static str, summary: &'static str) -> Peer {
    Peer { measure_mixed: Some(|run| run.of_mixed::<SpinThenYield, L>()), ..mutex::<L>(name, summary) }
}

impl Peer {
    /// The peer of this name.
    pub fn named(name: &str) -> Option<&'static Peer> {
        PEERS.iter().find(|peer| peer.name == name)
    }
}

#[derive(Default)]
struct StdMutex(Mutex<()>);

/// The guard of one acquisition: it cannot be had back from the lock. The compiler keeps what it consists of in
/// registers, so that the loop costs what it does with the guard in a variable.
#[derive(Default)]
struct HeldGuard(UnsafeCell<Option<MutexGuard<'static, ()>>>);

// SAFETY: an acquisition and its release are one thread's, here as in all of the benchmark; the node is empty
// before and after, and nobody else looks into it.
unsafe impl Send for HeldGuard {}
// SAFETY: as above.
unsafe impl Sync for HeldGuard {}

// SAFETY: it is a mutex.
unsafe impl RawLock for StdMutex {
    type Node = HeldGuard;

    #[inline(always)]
    unsafe fn lock(&self, node: &HeldGuard) {
        // SAFETY: neither the lock nor the node moves or dies before the release, by the caller's promise, and the
        // guard is gone by then.
        let mutex: &'static Mutex<()> = unsafe { &*std::ptr::from_ref(&self.0) };
        let guard = mutex.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the node is in use by this acquisition alone.
        unsafe { *node.0.get() = Some(guard) };
    }

    #[inline(always)]
    unsafe fn unlock(&self, node: &HeldGuard) {
        // SAFETY: as in `lock`.
        drop(unsafe { (*node.0.get()).take() });
    }
}

#[derive(Default)]
struct ParkingLotMutex(parking_lot::Mutex<()>);

// SAFETY: it is a mutex.
unsafe impl RawLock for ParkingLotMutex {
    type Node = ();

    #[inline(always)]
    unsafe fn lock(&self, _node: &()) {
        std::mem::forget(self.0.lock());
    }

    #[inline(always)]
    unsafe fn unlock(&self, _node: &()) {
        // SAFETY: locked by the caller, whose guard was forgotten.
        unsafe { self.0.force_unlock() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearlock_core::subjects::SUBJECTS;

    #[test]
    fn no_peer_is_called_like_another_or_like_a_lock() {
        let mut names: Vec<_> = PEERS.iter().map(|peer| peer.name).collect();
        names.extend(SUBJECTS.iter().map(|subject| subject.name));
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    fn holds_and_releases<L: RawLock>(is_free: impl Fn(&L) -> bool) {
        let (lock, node) = (L::default(), L::Node::default());
        for _ in 0..2 {
            assert!(is_free(&lock));
            // SAFETY: the node is fresh or released, and both stay in place.
            unsafe { lock.lock(&node) };
            assert!(!is_free(&lock));
            // SAFETY: locked above.
            unsafe { lock.unlock(&node) };
        }
        assert!(is_free(&lock));
    }

    #[test]
    fn a_peer_is_held_from_lock_to_unlock() {
        holds_and_releases::<StdMutex>(|lock| lock.0.try_lock().is_ok());
        holds_and_releases::<ParkingLotMutex>(|lock| lock.0.try_lock().is_some());
    }
}
