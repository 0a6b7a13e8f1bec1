//! Negative controls of Shuttle: broken locks are detected, the printed schedule of a failure
//! reproduces it, and faults that cannot be seen here are not reported.

#![cfg(target_pointer_width = "64")]

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use nearlock_collection::controls::{AfterYou, Busted, LostCancel, LostNotification, LostWakeup};
use nearlock_core::near::condvar::monitor::Monitor;
use nearlock_core::parking::RawTimedLock;
use nearlock_core::platform::{AsymFence, Atomic, AtomicInt, Park, Platform, SplitWord};
use nearlock_core::raw::RawLock;
use nearlock_core::tuning::Standard;
use nearlock_model::engine::{Counter, Engine, Thread};
use nearlock_model::exclusion::counting;
use nearlock_model::loom::Loom;
use nearlock_model::model::Model;
use nearlock_model::mutate::failure_of;
use nearlock_model::parts::dekker;
use nearlock_model::shuttle::check::Failure;
use nearlock_model::shuttle::{Shuttle, ShuttleU32};
use nearlock_model::timed;
use shuttle::scheduler::{PctScheduler, RandomScheduler};

const SCHEDULES: usize = 200;

fn random() -> RandomScheduler {
    RandomScheduler::new_from_seed(1, SCHEDULES)
}

fn failure<L: RawLock>(threads: u32, rounds: u32) -> Option<Failure> {
    counting::<Shuttle, L>("broken", threads, rounds, None).failure(random())
}

/// Checks that each kind of scheduler finds the fault. Returns the message of the first.
fn found_out<L: RawLock>(threads: u32, rounds: u32) -> String {
    let model = counting::<Shuttle, L>("broken", threads, rounds, None);
    let pct = PctScheduler::new_from_seed(1, 3, SCHEDULES);
    assert!(model.failure(pct).is_some(), "changes of priority find it too");
    model.failure(random()).expect("a broken lock is found out").message
}

#[test]
fn a_lock_that_excludes_no_thread_is_caught() {
    assert_eq!(found_out::<Busted<Shuttle>>(3, 3), "two sections at the same time");
}

#[test]
fn waiters_that_spin_for_ever_are_reported() {
    let how = found_out::<LostWakeup<Shuttle>>(3, 1);
    assert!(how.contains("exceeded max_steps"), "{how}");
}

/// Checks that a crowd, some of whose threads give up, ends in a deadlock. For the rarer of the two
/// locks, one of 150 schedules finds it.
fn deadlocks<L: RawTimedLock<Platform = Shuttle>>(name: &str) {
    let pct = PctScheduler::new_from_seed(1, 3, 20 * SCHEDULES);
    let failure = timed::crowd::<L>(name, 8, 2).failure(pct).expect("some schedule loses it");
    assert!(failure.message.contains("deadlock"), "{}", failure.message);
}

#[test]
fn a_wake_up_that_is_lost_to_one_that_gives_up_is_a_deadlock() {
    deadlocks::<LostCancel<Shuttle>>("lock-lost-cancel");
}

#[test]
fn a_notification_that_is_lost_to_one_that_gives_up_is_a_deadlock() {
    deadlocks::<Monitor<Shuttle, Standard, LostNotification<Shuttle>>>("lock-lost-notification");
}

#[test]
fn a_livelock_is_reported() {
    let how = found_out::<AfterYou<Shuttle>>(3, 2);
    assert!(how.contains("exceeded max_steps"), "{how}");
}

#[test]
fn a_failure_can_be_seen_again() {
    let model = counting::<Shuttle, Busted<Shuttle>>("broken", 3, 3, None);
    let first = model.failure(random()).expect("a broken lock is found out");
    for _ in 0..2 {
        let again = model.failure_again(&first).expect("the same schedule fails");
        assert_eq!(
            (again.message, again.schedule.steps),
            (first.message.clone(), first.schedule.steps.clone())
        );
    }
}

/// A lock whose waiters sleep. Word: 0 free, 1 held, 2 held, and a thread may sleep.
struct Sleepers<P: Park, B: Blunder>(P::U32, PhantomData<B>);

/// The faults that the lock may have.
trait Blunder: Send + Sync + 'static {
    /// The value with which a waiter that has seen 2 compares when it falls asleep.
    fn expected<P: Park>(_word: &P::U32) -> u32 {
        2
    }
    /// Whether an unlock wakes up a thread.
    const WAKES: bool = true;
    /// Whether a waiter that has been woken up tries again, rather than assuming that it has the
    /// lock.
    const TRIES_AGAIN: bool = true;
}

struct Sound;
impl Blunder for Sound {}

/// A waiter sleeps without comparing with the value that its decision was based on.
struct LooksAgain;
impl Blunder for LooksAgain {
    fn expected<P: Park>(word: &P::U32) -> u32 {
        word.load(Relaxed)
    }
}

struct WakesNoThread;
impl Blunder for WakesNoThread {
    const WAKES: bool = false;
}

/// A waiter that wakes up believes that an unlock has woken it up, which may not be so.
struct TrustsAnyWake;
impl Blunder for TrustsAnyWake {
    const TRIES_AGAIN: bool = false;
}

impl<P: Park, B: Blunder> Default for Sleepers<P, B> {
    fn default() -> Self {
        Self(Atomic::new(0), PhantomData)
    }
}

// SAFETY: excludes as a test-and-set lock does, except for the faults.
unsafe impl<P: Park, B: Blunder> RawLock for Sleepers<P, B> {
    type Node = ();
    unsafe fn lock(&self, _node: &()) {
        if self.0.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
            return;
        }
        while self.0.swap(2, Acquire) != 0 {
            P::park(&self.0, B::expected::<P>(&self.0));
            if !B::TRIES_AGAIN {
                return;
            }
        }
    }
    unsafe fn unlock(&self, _node: &()) {
        if self.0.swap(0, Release) == 2 && B::WAKES {
            P::unpark(&self.0, 1);
        }
    }
}

#[test]
fn a_lock_that_wakes_its_sleepers_holds() {
    assert!(failure::<Sleepers<Shuttle, Sound>>(4, 3).is_none());
}

#[test]
fn a_sleeper_that_no_thread_wakes_is_a_deadlock() {
    let how = found_out::<Sleepers<Shuttle, WakesNoThread>>(3, 3);
    assert!(how.contains("deadlock!"), "{how}");
}

#[test]
fn a_sleeper_that_misses_the_release_is_a_deadlock() {
    let how = found_out::<Sleepers<Shuttle, LooksAgain>>(3, 3);
    assert!(how.contains("deadlock!"), "{how}");
}

#[test]
fn a_lock_that_takes_any_wake_for_a_release_is_caught() {
    let how = found_out::<Sleepers<Shuttle, TrustsAnyWake>>(3, 3);
    assert_eq!(how, "two sections at the same time");
}

#[test]
fn loom_sees_sleepers_that_no_thread_wakes_too() {
    fn how<B: Blunder>() -> Option<String> {
        failure_of(&counting::<Loom, Sleepers<Loom, B>>("sleepers", 2, 1, None), None)
    }
    assert_eq!(how::<Sound>(), None);
    assert_eq!(how::<WakesNoThread>().as_deref(), Some("an execution without end"));
    assert_eq!(how::<LooksAgain>().as_deref(), Some("an execution without end"));
}

/// Whether another thread may run between a note and the end of this step of a thread.
fn lets_others_run(step: fn(&ShuttleU32)) -> bool {
    let seen = Arc::new(AtomicBool::new(false));
    let saw = seen.clone();
    let model = Model::<Shuttle>::new("one step", 2, None, move || {
        let (word, at_it, saw) = (ShuttleU32::new(0), Arc::new(AtomicBool::new(false)), saw.clone());
        let other = {
            let at_it = at_it.clone();
            Shuttle::spawn(Thread::default(), move || _ = saw.fetch_or(at_it.load(Relaxed), Relaxed))
        };
        at_it.store(true, Relaxed);
        step(&word);
        at_it.store(false, Relaxed);
        other.join().unwrap();
    });
    assert!(model.failure(random()).is_none());
    seen.load(Relaxed)
}

/// Without this property Shuttle would show nothing.
#[test]
fn every_operation_is_a_place_where_the_scheduler_chooses() {
    assert!(!lets_others_run(|_| ()));
    let steps: [fn(&ShuttleU32); 19] = [
        |word| _ = word.load(Relaxed),
        |word| word.store(1, Relaxed),
        |word| _ = word.swap(1, Relaxed),
        |word| _ = word.compare_exchange(0, 1, Relaxed, Relaxed),
        |word| _ = word.compare_exchange(1, 0, Relaxed, Relaxed),
        |word| _ = word.fetch_add(1, Relaxed),
        |word| _ = word.fetch_sub(1, Relaxed),
        |word| _ = word.fetch_and(1, Relaxed),
        |word| _ = word.fetch_or(1, Relaxed),
        |word| word.store_low_byte(1, Relaxed),
        |word| word.store_low_half(1, Relaxed),
        |word| _ = word.swap_low_byte(1, Relaxed),
        |word| _ = word.swap_high_half(1, Relaxed),
        |word| _ = Shuttle::wait_until(word, Relaxed, |_| true),
        |word| _ = Shuttle::wait_until_bounded(word, Relaxed, 1, |_| true),
        |_| Shuttle::cpu_relax(0),
        |word| Shuttle::park(word, 1),
        |word| Shuttle::unpark(word, 1),
        |_| <Shuttle as Engine>::Counter::default().add_one(),
    ];
    for (index, step) in steps.into_iter().enumerate() {
        assert!(lets_others_run(step), "step {index}");
    }
}

/// A test-and-set lock whose unlock has no Release.
struct Unordered<P: Platform>(P::U32);

impl<P: Platform> Default for Unordered<P> {
    fn default() -> Self {
        Self(Atomic::new(0))
    }
}

// SAFETY: none: one section's writes may be hidden from the next.
unsafe impl<P: Platform> RawLock for Unordered<P> {
    type Node = ();
    unsafe fn lock(&self, _node: &()) {
        while self.0.swap(1, Acquire) != 0 {
            P::wait_until(&self.0, Relaxed, |v| v == 0);
        }
    }
    unsafe fn unlock(&self, _node: &()) {
        self.0.store(0, Relaxed);
    }
}

#[test]
fn a_missing_ordering_is_seen_by_loom_and_not_by_shuttle() {
    assert!(failure::<Unordered<Shuttle>>(4, 3).is_none());
    let model = counting::<Loom, Unordered<Loom>>("unordered", 2, 1, None);
    assert!(failure_of(&model, None).is_some());
}

#[test]
fn two_light_fences_are_enough_where_all_see_one_order() {
    const LIGHT: fn() = <Shuttle as AsymFence>::light;
    const NONE: fn() = || ();
    assert!(dekker::<Shuttle>("two light", LIGHT, &[LIGHT]).failure(random()).is_none());
    assert!(dekker::<Shuttle>("no fence", NONE, &[NONE]).failure(random()).is_none());
}

#[test]
fn two_writers_of_one_part_of_a_word_are_reported() {
    let model = Model::<Shuttle>::new("bytes", 2, None, || {
        let word: Arc<ShuttleU32> = Arc::new(Atomic::new(0));
        let shared = word.clone();
        let other = Shuttle::spawn(Thread::default(), move || shared.store_low_byte(2, Relaxed));
        word.store_low_byte(1, Relaxed);
        other.join().unwrap();
    });
    let how = model.failure(random()).expect("a broken condition is found out").message;
    assert!(how.contains("a part of a word"), "{how}");
}

#[test]
fn parts_of_a_word_are_written_alone() {
    let model = Model::<Shuttle>::new("parts", 1, None, || {
        let word = ShuttleU32::new(0xa1b2_c3d4);
        word.store_low_byte(0x11, Relaxed);
        assert_eq!(word.load(Relaxed), 0xa1b2_c311);
        word.store_low_half(0x2233, Relaxed);
        assert_eq!(word.load(Relaxed), 0xa1b2_2233);
        assert_eq!(word.swap_high_half(0x4455, Relaxed), 0xa1b2);
        assert_eq!(word.swap_low_byte(0x66, Relaxed), 0x33);
        assert_eq!(Shuttle::wait_until(&word, Relaxed, |_| true), 0x4455_2266);
    });
    assert!(model.failure(RandomScheduler::new_from_seed(1, 1)).is_none());
}
