//! FreeBSD's reader-writer lock.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

use nearlock_collection::freebsd::rw::Rw;
use nearlock_collection::freebsd::rwsx::{READ_WAITERS, SPINNER, WRITE_WAITERS};
use nearlock_collection::freebsd::tuning::{SpinnerBit, Tuning};
use nearlock_core::platform::{Atomic, Platform};
use nearlock_core::raw::{RawLock, RawRwLock, RawTryLock};
use nearlock_core::shared_holds::{SharedHolds, SharedLock};
use nearlock_core::tuning::Standard;
use nearlock_model::engine::{Counter, Engine, Thread};
use nearlock_model::exclusion::Guarded;
use nearlock_model::loom::{Loom, LoomU64};
use nearlock_model::model::Model;
use nearlock_model::readers::Act::{Read, Write};
use nearlock_model::readers::acting;

use crate::{SECTIONS, caught};

/// A reader leaves, and comes again, while a writer spins for it.
fn comes_again<T: Tuning>() -> Model {
    Model::new("freebsd-rw: a writer spins for a reader that comes again", 2, Some(2), || {
        let shared = Arc::new(Guarded::<Loom, Rw<Loom, T>>::default());
        // SAFETY: released below.
        unsafe { shared.lock.lock_shared(&()) };
        let spinning = Thread { slot: Some(1), is_patient: true, ..Thread::default() };
        let writer = {
            let shared = shared.clone();
            Loom::spawn(spinning, move || shared.section())
        };
        // SAFETY: the word is only read.
        let word = unsafe { shared.lock.word() };
        Loom::wait_until(word, Relaxed, |word| word & (SPINNER | WRITE_WAITERS) != 0);
        let spins = word.load_hint() & SPINNER != 0;
        // SAFETY: locked above.
        unsafe { shared.lock.unlock_shared(&()) };
        let is_behind = shared.shared_section() == 1;
        assert!(is_behind || !spins, "a reader comes in ahead of the writer that spins");
        writer.join().unwrap();
        assert_eq!(shared.count.get(), 1);
    })
}

#[test]
fn rw_spinning_writer_is_forgotten() {
    nearlock_core::tuning! {
        /// The last reader clears the writer's mark.
        struct Forgets: Tuning {
            spinner_bit: SpinnerBit = SpinnerBit::Cleared;
        }
    }
    let how = "a reader comes in ahead of the writer that spins";
    caught("rw_spinning_writer_is_forgotten", &comes_again::<Standard>(), &comes_again::<Forgets>(), how);
}

/// The unit of one reader in the word.
const READER: u64 = 1 << 5;
const WAITERS: u64 = READ_WAITERS | WRITE_WAITERS;

/// How a reader that has seen no waiter unlocks. Returns false if it has not unlocked.
trait Leave: Send + Sync + 'static {
    fn leave(word: &LoomU64, seen: u64) -> bool;
}

/// The lock with readers that unlock in this way.
struct Leaving<V>(Rw<Loom>, PhantomData<V>);

impl<V> Default for Leaving<V> {
    fn default() -> Self {
        Self(Rw::default(), PhantomData)
    }
}

// SAFETY: none: the bug may break it; also below.
unsafe impl<V: Leave> RawLock for Leaving<V> {
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

// SAFETY: none, as above.
unsafe impl<V: Leave> RawTryLock for Leaving<V> {
    unsafe fn try_lock(&self, node: &()) -> bool {
        // SAFETY: as above.
        unsafe { self.0.try_lock(node) }
    }
}

// SAFETY: none, as above.
unsafe impl<V: Leave> RawRwLock for Leaving<V> {
    unsafe fn lock_shared(&self, node: &()) {
        // SAFETY: as above.
        unsafe { self.0.lock_shared(node) };
    }
    unsafe fn try_lock_shared(&self, node: &()) -> bool {
        // SAFETY: as above.
        unsafe { self.0.try_lock_shared(node) }
    }
    unsafe fn unlock_shared(&self, node: &()) {
        // SAFETY: none, as above.
        let word = unsafe { self.0.word() };
        let seen = word.load(Relaxed);
        if seen & WAITERS == 0 && V::leave(word, seen) {
            return Loom::with_shared_holds(SharedLock::Rw, |holds| holds.set(holds.get() - 1));
        }
        // SAFETY: as above.
        unsafe { self.0.unlock_shared(node) };
    }
    unsafe fn downgrade(&self, node: &()) {
        // SAFETY: as above.
        unsafe { self.0.downgrade(node) };
    }
}

/// One compare-exchange, and then the unlock of the lock itself.
struct Tries;

impl Leave for Tries {
    fn leave(word: &LoomU64, seen: u64) -> bool {
        // Ordering: Release, as that of the lock.
        word.compare_exchange(seen, seen - READER, Release, Relaxed).is_ok()
    }
}

fn two_readers<V: Leave>() -> Model {
    acting::<Loom, Leaving<V>>("freebsd-rw", &[&[Read, Write], &[Read]], Some(2))
}

#[test]
fn rw_count_from_before() {
    /// An unlock whose exchange has failed tries again with the value that it has found. But it
    /// still stores the result that it computed before.
    struct Stale;
    impl Leave for Stale {
        fn leave(word: &LoomU64, seen: u64) -> bool {
            let left = seen - READER;
            // Ordering: Release, as that of the lock; also below.
            match word.compare_exchange(seen, left, Release, Relaxed) {
                Err(found) if found & WAITERS == 0 => {
                    word.compare_exchange(found, left, Release, Relaxed).is_ok()
                }
                tried => tried.is_ok(),
            }
        }
    }
    caught("rw_count_from_before", &two_readers::<Tries>(), &two_readers::<Stale>(), SECTIONS);
}

#[test]
fn rw_failed_exchange_taken_for_a_waiter() {
    /// An unlock whose exchange has failed assumes that a thread waits, and that no other thread
    /// reads.
    struct Concludes;
    impl Leave for Concludes {
        fn leave(word: &LoomU64, seen: u64) -> bool {
            // Ordering: Release, as that of the lock; also below.
            match word.compare_exchange(seen, seen - READER, Release, Relaxed) {
                Err(found) if found & WAITERS == 0 => {
                    word.swap(0, Release);
                    true
                }
                tried => tried.is_ok(),
            }
        }
    }
    let test = "rw_failed_exchange_taken_for_a_waiter";
    caught(test, &two_readers::<Tries>(), &two_readers::<Concludes>(), SECTIONS);
}
