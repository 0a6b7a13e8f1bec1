//! The counter mutex.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use nearlock_collection::linux::counter_mutex::{CounterMutex, Exchange, Nobody, Spinners, Turn};
use nearlock_core::parking::{GaveUp, Limit, RawTimedLock};
use nearlock_core::platform::{Atomic, Platform};
use nearlock_core::raw::{RawLock, RawTryLock};
use nearlock_model::engine::{Counter, Engine, Thread};
use nearlock_model::exclusion::Guarded;
use nearlock_model::loom::{Loom, LoomU32};
use nearlock_model::model::Model;
use nearlock_model::timed::{self, Act, First};

use crate::{NO_END, caught};

type Mutex<S> = CounterMutex<Loom, S, Exchange>;

/// The words for count 1 and 0.
const FREE: u32 = 0;
const HELD: u32 = u32::MAX;

fn word_of<S: Spinners<Loom>>(mutex: &Mutex<S>) -> &LoomU32 {
    // SAFETY: the word is the first field (`repr(C)`).
    unsafe { &*ptr::from_ref(mutex).cast() }
}

/// Threads that are patient spin for as long as it takes; others sleep.
#[derive(Default)]
struct Patient;

// SAFETY: returns the result of the last turn.
unsafe impl Spinners<Loom> for Patient {
    const NONE: Self = Self;
    unsafe fn spin(&self, _may_begin: impl FnOnce() -> bool, mut turn: impl FnMut() -> Turn) -> bool {
        while Loom::thread().is_patient {
            match turn() {
                Turn::Taken => return true,
                Turn::Stop => return false,
                Turn::Again => Loom::cpu_relax(0),
            }
        }
        false
    }
}

/// The mutex is held when two threads come, one of which sleeps while the other spins.
fn one_sleeps<L: RawLock>() -> Model {
    Model::new("linux-counter-mutex-exchange: one sleeps, one spins", 3, Some(2), || {
        let shared = Arc::new(Guarded::<Loom, L>::default());
        let node = L::Node::default();
        // SAFETY: unlocked below.
        unsafe { shared.lock.lock(&node) };
        let others = [false, true].map(|is_patient| {
            let thread = Thread { slot: Some(1 + u32::from(is_patient)), is_patient, ..Thread::default() };
            let shared = shared.clone();
            Loom::spawn(thread, move || shared.section())
        });
        shared.count.add_one();
        // SAFETY: locked above.
        unsafe { shared.lock.unlock(&node) };
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(shared.count.get(), 3);
    })
}

#[test]
fn counter_mutex_mark_swapped_away() {
    /// The 0 of a failed fast path stays, even if it has replaced -1.
    #[derive(Default)]
    struct Forgets(Mutex<Patient>);
    // SAFETY: none: the bug may break it; also below.
    unsafe impl RawLock for Forgets {
        type Node = ();
        unsafe fn lock(&self, node: &()) {
            // Ordering: Acquire, pairs with the Release of the unlock.
            if word_of(&self.0).swap(HELD, Acquire) == FREE {
                return;
            }
            // SAFETY: the condition of the caller.
            let locked = unsafe { self.0.lock_slow(&Limit::NONE) };
            assert!(locked.is_ok(), "no limit: {node:?}");
        }
        unsafe fn unlock(&self, node: &()) {
            // SAFETY: the condition of the caller.
            unsafe { self.0.unlock(node) };
        }
    }
    let test = "counter_mutex_mark_swapped_away";
    caught(test, &one_sleeps::<Mutex<Patient>>(), &one_sleeps::<Forgets>(), NO_END);
}

#[test]
fn counter_mutex_freed_and_held_by_no_thread() {
    /// A thread that gives up says that no thread waits.
    #[derive(Default)]
    struct Tidies(Mutex<Nobody>);
    // SAFETY: none, as above.
    unsafe impl RawLock for Tidies {
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
    unsafe impl RawTryLock for Tidies {
        unsafe fn try_lock(&self, node: &()) -> bool {
            // SAFETY: as above.
            unsafe { self.0.try_lock(node) }
        }
    }
    // SAFETY: none, as above.
    unsafe impl RawTimedLock for Tidies {
        type Platform = Loom;
        unsafe fn lock_within(&self, node: &(), limit: &Limit<'_, Loom>) -> Result<(), GaveUp> {
            // SAFETY: as above.
            let outcome = unsafe { self.0.lock_within(node, limit) };
            if outcome.is_err() {
                word_of(&self.0).swap(HELD, Relaxed);
            }
            outcome
        }
    }
    fn model<L: RawTimedLock<Platform = Loom>>() -> Model {
        const ACTS: &[&[Act]] = &[&[], &[Act::AtOnce]];
        timed::held_at_first::<Loom, L>("linux-counter-mutex-exchange", First::Releases, ACTS, Some(2))
    }
    let test = "counter_mutex_freed_and_held_by_no_thread";
    caught(test, &model::<Mutex<Nobody>>(), &model::<Tidies>(), "the lock is free at last");
}
