//! Negative controls: broken locks and models are detected, and reported as they should be.

#![cfg(target_pointer_width = "64")]

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use nearlock_collection::classic::ttas::TtasLock;
use nearlock_collection::controls::{AfterYou, Busted, Lifo, LostCancel, LostNotification, LostWakeup};
use nearlock_core::events::LockEvent;
use nearlock_core::near::condvar::monitor::Monitor;
use nearlock_core::platform::{Atomic, Platform, SplitWord};
use nearlock_core::raw::RawLock;
use nearlock_core::tuning::Standard;
use nearlock_model::engine::{Engine, Thread};
use nearlock_model::evidence::Evidence;
use nearlock_model::exclusion::counting;
use nearlock_model::loom::{Loom, LoomU32};
use nearlock_model::model::{Depth, Model};
use nearlock_model::mutate::{Half, Mutant, Outcome, Stores, failure_of, outcome_of};
use nearlock_model::timed;

fn mutants(models: &[Model]) -> Vec<Mutant> {
    Evidence::gather(models, Depth::default(), |_| ()).mutants
}

fn failure<L: RawLock>(name: &str) -> String {
    failure_of(&counting::<Loom, L>(name, 2, 1, None), None).expect("a broken lock is found out")
}

#[test]
fn a_lock_that_excludes_no_thread_is_caught() {
    assert!(failure::<Busted<Loom>>("lock-busted").contains("that nothing orders"));
    assert_eq!(failure::<Nothing>("nothing"), "two sections that nothing orders");
}

/// No lock, not even a word.
#[derive(Default)]
struct Nothing;

// SAFETY: none: this is the control for the check of exclusion itself.
unsafe impl RawLock for Nothing {
    type Node = ();
    unsafe fn lock(&self, _node: &()) {}
    unsafe fn unlock(&self, _node: &()) {}
}

#[test]
fn an_unfair_lock_excludes_all_the_same() {
    let models = [
        counting::<Loom, Lifo<Loom>>("lock-lifo", 2, 1, None),
        counting::<Loom, Lifo<Loom>>("lock-lifo", 3, 1, Some(2)),
    ];
    assert!(mutants(&models).iter().all(|mutant| mutant.caught().is_some()));
}

#[test]
fn a_deadlock_is_reported() {
    let how = failure::<LostWakeup<Loom>>("lock-lost-wakeup");
    assert!(how == "an execution without end", "{how}");
}

/// This shows only if a waiter that gives up has just been woken up, and another one sleeps behind
/// it.
#[test]
fn a_wake_up_that_is_lost_to_one_that_gives_up_is_reported() {
    use timed::Act::{InTime, Lock};
    const ACTS: &[&[timed::Act]] = &[&[], &[InTime], &[Lock]];
    let first = timed::First::Releases;
    let model = timed::held_at_first::<Loom, LostCancel<Loom>>("lock-lost-cancel", first, ACTS, Some(2));
    assert_eq!(failure_of(&model, None).as_deref(), Some("an execution without end"));
}

/// The models that every lock with limits has find this.
#[test]
fn a_wake_up_that_is_lost_to_one_that_is_cancelled_is_reported() {
    let models = timed::models::<Loom, LostCancel<Loom>>("lock-lost-cancel");
    let how: Vec<_> = models.iter().filter_map(|model| failure_of(model, None)).collect();
    assert_eq!(how, ["an execution without end"], "one of them loses it");
}

/// A wait that gives up keeps a notification that another thread waits for. This shows only with
/// one preemption more than the models of locks have. It is found so late that a crowd under
/// Shuttle finds it sooner (`shuttle_controls.rs`).
#[test]
#[ignore = "takes as long as half of all other models: .ci/deep orderings"]
fn a_notification_that_is_lost_to_one_that_gives_up_is_reported() {
    use timed::Act::{Lock, UnlessCancelled};
    type Lossy = Monitor<Loom, Standard, LostNotification<Loom>>;
    const ACTS: &[&[timed::Act]] = &[&[], &[UnlessCancelled], &[Lock]];
    let first = timed::First::CancelsAndReleases;
    let model = timed::held_at_first::<Loom, Lossy>("lock-lost-notification", first, ACTS, Some(2));
    assert_eq!(failure_of(&model, None).as_deref(), Some("an execution without end"));
}

#[test]
fn a_livelock_is_reported() {
    let how = failure::<AfterYou<Loom>>("lock-after-you");
    assert!(how == "an execution without end", "{how}");
}

/// A lock with an ordering that nothing needs.
struct TooStrong(TtasLock<Loom>, LoomU32);

impl Default for TooStrong {
    fn default() -> Self {
        Self(TtasLock::default(), Atomic::new(0))
    }
}

// SAFETY: forwards to the lock inside.
unsafe impl RawLock for TooStrong {
    type Node = ();
    unsafe fn lock(&self, node: &()) {
        // SAFETY: the condition of the caller.
        unsafe { self.0.lock(node) };
        // Ordering: Acquire, for nothing.
        self.1.load(Acquire);
    }
    unsafe fn unlock(&self, node: &()) {
        // SAFETY: the condition of the caller.
        unsafe { self.0.unlock(node) };
    }
}

#[test]
fn a_needless_ordering_survives() {
    let mutants = mutants(&[counting::<Loom, TooStrong>("too-strong", 2, 1, None)]);
    let survivors: Vec<_> = mutants.iter().filter(|mutant| mutant.caught().is_none()).collect();
    assert_eq!((mutants.len(), survivors.len()), (3, 1));
    let site = survivors[0].site;
    assert!(site.file.ends_with("tests/controls.rs"), "{site}");
    assert_eq!((site.operation, site.half), ("load", Half::Acquire));
}

/// Two threads that do the same to one word, the first with 1 and the second with 2.
fn both(name: &str, act: fn(&LoomU32, u32)) -> Model {
    Model::<Loom>::new(name, 2, None, move || {
        let word = Arc::new(LoomU32::new(0));
        let shared = word.clone();
        let other = Loom::spawn(Thread::default(), move || act(&shared, 2));
        act(&word, 1);
        other.join().unwrap();
    })
}

#[test]
fn two_stores_that_nothing_orders_are_reported() {
    let how = failure_of(&both("stores", |word, v| word.store(v, Relaxed)), None);
    assert_eq!(how.as_deref(), Some("two stores to one word that nothing orders"));
}

#[test]
fn two_writers_of_one_part_of_a_word_are_reported() {
    let bytes = both("bytes", |word, v| word.store_low_byte(v as u8, Relaxed));
    let how = failure_of(&bytes, None).expect("a broken condition is found out");
    assert!(how.contains("a part of a word"), "{how}");
    let halves = both("halves", |word, v| _ = word.swap_high_half(v as u16, Relaxed));
    assert_eq!(failure_of(&halves, None), None, "a swap has no condition");
}

#[test]
#[should_panic(expected = "no lock_pending")]
fn a_model_must_reach_what_it_is_meant_to() {
    counting::<Loom, TtasLock<Loom>>("ttas", 2, 1, None)
        .reaching(&[LockEvent::Pending])
        .run(Depth::default());
}

#[test]
fn a_search_that_was_stopped_says_so() {
    let model = counting::<Loom, TtasLock<Loom>>("ttas", 2, 2, Some(3));
    let all = model.run(Depth::default());
    assert!(!all.is_cut && all.executions > 11, "{all}");
    let to = |executions_max| Depth { executions_max: Some(executions_max), ..Depth::default() };
    let run = model.run(to(10));
    assert!(run.is_cut && run.executions < 10, "{run}");
    assert!(!model.run(to(1_000_000)).is_cut);
    // The model may not have reached the events that it should; then the evidence includes the
    // model's own bounds.
    model.clone().reaching(&[LockEvent::Pending]).run(to(10));
    let mutants = Evidence::gather(&[model], to(1), |_| ()).mutants;
    assert!(mutants.len() == 2 && mutants.iter().all(|mutant| mutant.caught().is_some()));
}

/// A mutant that no model catches in time has not survived.
#[test]
fn a_search_that_was_stopped_settles_nothing() {
    let model = counting::<Loom, TtasLock<Loom>>("ttas", 2, 2, Some(3));
    let outcome = |dropped, executions_max| outcome_of(&model, dropped, Stores::Ordered, executions_max);
    assert_eq!(outcome(None, Some(10)), Outcome::Unsettled);
    assert_eq!(outcome(None, Some(100_000)), Outcome::Holds);
    for mutant in mutants(std::slice::from_ref(&model)) {
        assert!(matches!(outcome(Some(mutant.site), Some(100_000)), Outcome::Fails(_)), "{mutant}");
    }
}

#[test]
fn parts_of_a_word_are_written_alone() {
    Model::<Loom>::new("parts", 1, None, || {
        let word = LoomU32::new(0xa1b2_c3d4);
        word.store_low_byte(0x11, Relaxed);
        assert_eq!(word.load(Relaxed), 0xa1b2_c311);
        word.store_low_half(0x2233, Relaxed);
        assert_eq!(word.load(Relaxed), 0xa1b2_2233);
        assert_eq!(word.swap_high_half(0x4455, Relaxed), 0xa1b2);
        assert_eq!(word.load(Relaxed), 0x4455_2233);
        word.store_low_byte(0, Relaxed);
        assert_eq!(Loom::wait_until(&word, Relaxed, |_| true), 0x4455_2200);
    })
    .check();
}
