//! Tests of locks with readers, and of locks whose waiters give up.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use nearlock_collection::classic::ttas::TtasLock;
use nearlock_core::parking::{GaveUp, Limit, RawTimedLock, RawTimedRwLock, WaitList, Waiter, locked};
use nearlock_core::platform::Platform;
use nearlock_core::raw::{RawLock, RawRwLock, RawTryLock};

use super::super::run::run;
use super::super::ways::{ByWays, TimedRw, Ways};
use super::*;
use crate::watched::OsWatched;

const WRITER: u32 = 1;
const READER: u32 = 2;
const QUEUED: u32 = 1;

/// The simplest lock with all operations. A thread that unlocks it wakes up all waiters.
struct Simple {
    /// Bit 0: a writer; other bits: number of readers. Written only with `wait_lock` held.
    word: AtomicU32,
    wait_lock: TtasLock<OsWatched>,
    waiters: WaitList<OsWatched>,
}

impl Default for Simple {
    fn default() -> Self {
        Self { word: AtomicU32::new(0), wait_lock: TtasLock::default(), waiters: WaitList::default() }
    }
}

impl Simple {
    /// To be called with `wait_lock` held.
    fn enter(&self, how: u32) -> bool {
        let word = self.word.load(Relaxed);
        let excluded = if how == WRITER { word != 0 } else { word & WRITER != 0 };
        if !excluded {
            self.word.store(word + how, Relaxed);
        }
        !excluded
    }

    fn enter_or_queue(&self, how: u32, waiter: &Waiter<OsWatched>) -> bool {
        locked(&self.wait_lock, || {
            let entered = self.enter(how);
            if !entered && waiter.note.swap(QUEUED, Relaxed) != QUEUED {
                // SAFETY: `wait_lock` is held. The waiter is in no queue, and stays in place until
                // it is removed.
                unsafe { self.waiters.push(waiter) };
            }
            entered
        })
    }

    fn wait(&self, how: u32, limit: &Limit<'_, OsWatched>) -> Result<(), GaveUp> {
        <OsWatched>::with_record(|waiter: &Waiter<OsWatched>| {
            limit.watch(waiter, || {
                let mut outcome = Ok(());
                while outcome.is_ok() && !self.enter_or_queue(how, waiter) {
                    outcome = waiter.park_within(limit).map(|_| ());
                }
                locked(&self.wait_lock, || {
                    if waiter.note.load(Relaxed) == QUEUED {
                        // SAFETY: `wait_lock` is held, and the waiter is in the queue.
                        unsafe { self.waiters.remove(waiter) };
                    }
                });
                outcome
            })
        })
    }

    fn leave(&self, change: impl FnOnce(u32) -> u32) {
        locked(&self.wait_lock, || {
            self.word.store(change(self.word.load(Relaxed)), Relaxed);
            while !self.waiters.is_empty() {
                // SAFETY: the waiter is in the queue and `wait_lock` is held, so it is alive.
                let waiter = unsafe { &*self.waiters.first() };
                // SAFETY: as above.
                unsafe { self.waiters.remove(waiter) };
                waiter.note.store(0, Relaxed);
                if let Some(call) = waiter.wake() {
                    call.make();
                }
            }
        });
    }
}

// SAFETY: `enter` admits by the word, and `wait_lock` orders the threads that change it, also
// below.
unsafe impl RawLock for Simple {
    type Node = ();
    unsafe fn lock(&self, _node: &()) {
        self.wait(WRITER, &Limit::NONE).unwrap();
    }
    unsafe fn unlock(&self, _node: &()) {
        self.leave(|word| word - WRITER);
    }
}

// SAFETY: as above.
unsafe impl RawTryLock for Simple {
    unsafe fn try_lock(&self, _node: &()) -> bool {
        locked(&self.wait_lock, || self.enter(WRITER))
    }
}

// SAFETY: as above.
unsafe impl RawRwLock for Simple {
    unsafe fn lock_shared(&self, _node: &()) {
        self.wait(READER, &Limit::NONE).unwrap();
    }
    unsafe fn try_lock_shared(&self, _node: &()) -> bool {
        locked(&self.wait_lock, || self.enter(READER))
    }
    unsafe fn unlock_shared(&self, _node: &()) {
        self.leave(|word| word - READER);
    }
    unsafe fn downgrade(&self, _node: &()) {
        self.leave(|word| word - WRITER + READER);
    }
}

// SAFETY: as above.
unsafe impl RawTimedLock for Simple {
    type Platform = OsWatched;
    unsafe fn lock_within(&self, _node: &(), limit: &Limit<'_, OsWatched>) -> Result<(), GaveUp> {
        self.wait(WRITER, limit)
    }
}

// SAFETY: as above.
unsafe impl RawTimedRwLock for Simple {
    unsafe fn lock_shared_within(&self, _node: &(), limit: &Limit<'_, OsWatched>) -> Result<(), GaveUp> {
        self.wait(READER, limit)
    }
}

/// Claims that waiters can give up, although they cannot.
struct Deaf;

impl Ways<OsWatched, Simple> for Deaf {
    const TIMED: bool = true;
    const SHARED: bool = false;
}

/// A lock of the list that claims to have all operations.
fn able() -> &'static Subject {
    Box::leak(Box::new(Subject { name: "able", ..*locks::lock("rwsem").unwrap() }))
}

fn torture_simple<O: Ways<OsWatched, Simple>>(plan: &Plan) -> Tortured {
    run(able(), plan, &mut |_| (), |lives| lives.by::<Simple, O>()).unwrap()
}

#[test]
fn a_lock_with_all_ways_is_tortured_in_all_of_them() {
    let plan = Plan { writers: Some(3), readers: Some(5), duration: Duration::from_secs(2), ..plan() };
    let tortured = torture_simple::<TimedRw>(&plan);
    assert_eq!(tortured.problems, []);
    let Totals { writes, reads } = tortured.totals;
    assert!(writes.total > 0 && reads.total > 0, "{tortured:?}");
    assert!(tortured.downgraded > 0 && tortured.given_up.refused > 0, "{tortured:?}");
    assert_eq!((tortured.given_up.cancelled, tortured.crew), (0, Crew { writers: 3, readers: 5 }));
}

#[test]
fn a_storm_ends_after_the_given_number_of_cancellations() {
    let storm = Some(Storm { cancellations: Some(200) });
    let plan = Plan { writers: Some(4), readers: Some(4), storm, duration: Duration::ZERO, ..plan() };
    let tortured = torture_simple::<TimedRw>(&plan);
    assert_eq!(tortured.problems, []);
    assert!(tortured.given_up.cancelled >= 200 && tortured.given_up.timed_out > 0, "{tortured:?}");
}

#[test]
fn a_storm_ends_with_its_time_and_obeys_stutter() {
    let (storm, stutter) = (Some(Storm { cancellations: None }), Duration::from_millis(30));
    let plan = Plan { storm, stutter, ..plan() };
    let tortured = torture_simple::<TimedRw>(&plan);
    assert_eq!(tortured.problems, []);
    assert_eq!(tortured.crew, Crew { writers: 4, readers: 4 }, "as many readers as writers");
}

#[test]
fn a_storm_that_cancels_no_waiter_is_a_failure() {
    let storm = Some(Storm { cancellations: Some(1) });
    let plan = Plan { storm, hang: Duration::from_millis(500), ..plan() };
    let tortured = torture_simple::<Deaf>(&plan);
    assert!(
        matches!(tortured.problems[..], [Problem::Calm { cancelled: 0, wanted: 1, .. }]),
        "{:?}",
        tortured.problems
    );
}

#[test]
fn readers_beside_a_writer_are_detected() {
    let plan = Plan { duration: Duration::from_millis(500), ..plan() };
    let tortured = first_found("lock-busted-rw", &plan);
    assert!(matches!(tortured.problems[..], [Problem::Exclusion { .. }]), "{:?}", tortured.problems);
    assert!(tortured.totals.reads.failures > 0);
}

#[test]
fn a_wake_up_lost_with_a_waiter_that_gave_up_is_detected() {
    let storm = Some(Storm { cancellations: Some(1_000_000) });
    let plan = Plan { writers: Some(8), storm, hang: Duration::from_secs(2), ..plan() };
    let tortured = torture(locks::lock("lock-lost-cancel").unwrap(), &plan, &mut |_| ()).unwrap();
    let [Problem::Hang { waiting, threads: 8, .. }] = tortured.problems[..] else {
        panic!("{:?}", tortured.problems)
    };
    assert!(waiting > 0 && tortured.given_up.cancelled > 0);
}

#[test]
fn waits_for_a_condition_lose_nothing() {
    for lock in ["near-condvar", "near-condvar-all"] {
        let storm = Some(Storm { cancellations: Some(2_000) });
        let plan = Plan { storm, duration: Duration::ZERO, ..plan() };
        let tortured = torture(locks::lock(lock).unwrap(), &plan, &mut |_| ()).unwrap();
        assert_eq!(tortured.problems, [], "{lock}");
        let GivenUp { timed_out, cancelled, .. } = tortured.given_up;
        assert!(cancelled >= 2_000 && timed_out > 0, "{lock}: {tortured:?}");
    }
}

/// The result is a hang if only threads remain that sleep although the lock is free. Otherwise
/// other threads repaired the loss, and the counts of notifications differ.
#[test]
fn a_notification_that_is_lost_is_detected() {
    for storm in [None, Some(Storm { cancellations: Some(1_000_000) })] {
        let duration = Duration::from_millis(500);
        let plan = Plan { writers: Some(8), storm, duration, hang: Duration::from_secs(2), ..plan() };
        let tortured = first_found("lock-lost-notification", &plan);
        match tortured.problems[..] {
            [Problem::Hang { waiting, .. }] => assert!(waiting > 0),
            [Problem::LostNotifications { sent, returned }] => assert!(sent > returned && storm.is_none()),
            _ => panic!("{:?}", tortured.problems),
        }
    }
}

#[test]
fn the_default_number_of_threads_is_that_of_the_kernel() {
    let of = |lock, writers, readers| {
        let crew = Plan { writers, readers, ..plan() }.crew(locks::lock(lock).unwrap());
        (crew.writers, crew.readers)
    };
    assert_eq!(of("mcs", Some(5), Some(7)), (5, 0), "it has no readers");
    assert_eq!(of("lock-busted-rw", Some(5), Some(7)), (5, 7));
    assert_eq!(of("lock-busted-rw", Some(5), Some(0)), (5, 0));
    assert_eq!(of("lock-busted-rw", Some(5), None), (5, 5));
    let (writers, _) = of("mcs", None, None);
    assert!(writers >= WRITERS_LEAST);
    assert_eq!(of("lock-busted-rw", None, None), (writers / 2, writers / 2));
    assert_eq!(of("lock-busted-rw", None, Some(7)), (writers, 7));
}
