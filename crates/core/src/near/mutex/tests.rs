//! Tests with one thread. What other threads do is done at their next *chance*: when the thread
//! pauses, passes a fence, or parks. In the names of tests, the line is the queue.

mod alarm;
mod hand_over;
mod monopolised;
mod nodes;
mod strong;

use core::ptr;
use std::vec::Vec;

use super::hints::Holders;
use super::spinning::{SpinEnd, Taking};
use super::waiting::ALARM_NS;
use super::*;
use crate::events::LockEvent::{
    MutexAfterSleep, MutexAtOnce, MutexHandOver, MutexOptLock, MutexSleep, MutexWake,
};
use crate::near::condvar::NearCondvar;
use crate::near::mutex::queue::Place;
use crate::parking::GaveUp::{Cancelled, TimedOut};
use crate::parking::chain::{Locked, Queue};
use crate::parking::{Cancellation, Signal, Waiter};
use crate::platform::Clock;
use crate::schedule::Spin;
use crate::testing::{
    HEAVIES, LAST_IN_CHAIN, NOW_NS, OTHER, OneThread, PAUSES, PROCESSOR, RANDOM, SPINS, SPINS_MAX, THREAD_ID,
    acting, events_of, forget_chains, meanwhile, others_are_done,
};

type Mutex = NearMutex<OneThread>;

const _: () = assert!(size_of::<NearMutex<crate::native::Native>>() == 4);

/// The chance when the thread has parked with an alarm. Before it are the chances at the pauses of
/// a newcomer (`SPINS`).
const PARKS_AT: u32 = SPINS;
/// The chance in the heavy fence.
const FENCES_AT: u32 = SPINS + 1;
/// The chance when the thread has parked without an alarm.
const SLEEPS_AT: u32 = SPINS + 2;

/// Other threads let so many chances pass, and do this at the next one. The alarm goes off if it is
/// among the chances that they let pass.
fn after(chances: u32, what: impl FnOnce() + 'static) {
    for chance in 0..chances {
        let passed_ns = if chance == PARKS_AT { ALARM_NS } else { 0 };
        meanwhile(move || NOW_NS.set(NOW_NS.get() + passed_ns));
    }
    meanwhile(what);
}

/// A held mutex that other threads may refer to.
fn held() -> &'static Mutex {
    let mutex = std::boxed::Box::leak(std::boxed::Box::new(Mutex::new()));
    // SAFETY: free.
    assert!(unsafe { mutex.try_lock(&()) });
    mutex
}

fn release(mutex: &Mutex) {
    // SAFETY: callers hold the mutex, or act for its holder.
    unsafe { mutex.unlock(&()) };
}

/// No waiter is in the queue, and there is no wake request. The chain is watched as long as threads
/// wait for any mutex of the chain, if no first rests.
fn is_quiet(mutex: &Mutex) -> bool {
    // SAFETY: nothing is changed.
    let is_empty = unsafe { Locked::<OneThread, Near>::of(mutex) }.is_chain_empty(Queue::Exclusive);
    assert_eq!(Mutex::attention(mutex).read().is_watched(), !is_empty);
    WaitQueue::of(mutex).first().is_none() && !Mutex::count(mutex).read().is_requested()
}

#[test]
fn without_waiters_it_is_a_word() {
    let mutex = Mutex::default();
    // SAFETY: one thread, and unlock follows lock.
    unsafe {
        mutex.lock(&());
        assert!(mutex.is_locked() && !mutex.try_lock(&()));
        mutex.unlock(&());
        assert!(!mutex.is_locked() && mutex.try_lock(&()));
        mutex.unlock_fair();
    }
    assert!(!mutex.is_locked() && is_quiet(&mutex));
}

/// A condition variable must not rely on the release of a thread that another one may do for it.
#[test]
fn a_holder_that_lets_anyone_release_the_mutex_is_not_named() {
    Mutex::renew_mark();
    let mutex = held();
    assert!(mutex.is_held_by_caller() && mutex.is_held_by(THREAD_ID.get()));
    // SAFETY: held.
    unsafe { mutex.let_anyone_release() };
    assert!(!mutex.is_held_by_caller() && !mutex.is_held_by(THREAD_ID.get()));
    assert!(mutex.is_locked());
    release(mutex);
    assert!(!mutex.is_locked() && is_quiet(mutex));
}

/// At whatever moment the mutex is released, the waiter gets it.
#[test]
fn a_release_is_noticed_at_each_step_of_a_wait() {
    for step in 0..=SLEEPS_AT {
        let mutex = held();
        let before = [MutexOptLock, MutexAtOnce, MutexAfterSleep, MutexHandOver, MutexWake].map(events_of);
        after(step, || release(mutex));
        // SAFETY: another thread has released it by then.
        unsafe { mutex.lock(&()) };
        assert!(others_are_done() && mutex.is_locked(), "step {step}");
        let now = [MutexOptLock, MutexAtOnce, MutexAfterSleep, MutexHandOver, MutexWake].map(events_of);
        let counted: std::vec::Vec<_> = now.iter().zip(before).map(|(now, before)| now - before).collect();
        let expected = match step {
            PARKS_AT => [0, 1, 0, 0, 1],
            FENCES_AT => [0, 1, 0, 1, 0],
            SLEEPS_AT => [0, 0, 1, 0, 1],
            _ => [1, 0, 0, 0, 0],
        };
        assert_eq!(counted, expected, "step {step}");
        assert!(is_quiet(mutex), "step {step}");
        release(mutex);
        assert!(!mutex.is_locked());
    }
}

/// How the first in the queue stops spinning, if another thread does this at its second pause.
fn seen_by_the_first(
    holders: Holders,
    what: impl FnOnce(&'static Mutex, *const Waiter<OneThread>) + 'static,
) -> SpinEnd {
    let (mutex, waiter) = (held(), Waiter::default());
    let hints = Mutex::hints(mutex);
    while hints.holders() != holders {
        match holders {
            Holders::One => hints.note_retaken(),
            Holders::Several => hints.note_shared(),
        }
    }
    let it = ptr::from_ref(&waiter);
    after(1, move || what(mutex, it));
    let end = mutex.look(&waiter, Taking::StaysFree, &mut Spin::default(), &Limit::NONE);
    assert!(others_are_done());
    end
}

#[test]
fn the_first_in_line_looks_at_the_word_at_its_signals_and_at_the_clock() {
    PAUSES.take();
    assert_eq!(seen_by_the_first(Holders::Several, |_, _| ()), SpinEnd::Over);
    assert_eq!(PAUSES.take(), [1, 2, 4, 8]);
    assert_eq!(seen_by_the_first(Holders::Several, |mutex, _| release(mutex)), SpinEnd::Took);
    assert_eq!(PAUSES.take(), [1, 2], "it takes what is free");
    assert_eq!(seen_by_the_first(Holders::One, |mutex, _| release(mutex)), SpinEnd::Took);
    // SAFETY: it is alive.
    let signal = |_, waiter: *const Waiter<OneThread>| assert!(unsafe { &*waiter }.wake().is_none());
    assert_eq!(seen_by_the_first(Holders::One, signal), SpinEnd::Signalled);
    assert_eq!(PAUSES.take(), [1, 2, 1, 1, 1, 1, 1, 1, 1, 2], "and six times more at a word that seems free");
    let (mutex, waiter) = (held(), Waiter::default());
    let limit = Limit::until(0);
    assert_eq!(mutex.look(&waiter, Taking::StaysFree, &mut Spin::default(), &limit), SpinEnd::Over);
    assert!(PAUSES.take().is_empty(), "the limit ends it");
}

/// The limit of the newcomer is reached before it yields its processor.
#[test]
fn a_newcomer_gives_its_processor_away_only_within_its_limit() {
    let (mutex, limit) = (held(), Limit::until(OneThread::now_ns() + 1));
    SPINS_MAX.set(100);
    PAUSES.take();
    meanwhile(|| NOW_NS.set(NOW_NS.get() + 1));
    after(6, || ());
    // When it would yield its processor for the first time.
    meanwhile(|| panic!("it goes on"));
    // SAFETY: it is not acquired.
    assert_eq!(unsafe { mutex.lock_within(&(), &limit) }, Err(TimedOut));
    assert_eq!(PAUSES.take().len(), 8);
}

/// It makes no request, does not park, and interrupts no thread by a fence.
#[test]
fn a_waiter_that_is_cancelled_while_it_is_first_gives_up_at_once() {
    let mutex = held();
    let cancellation: &'static Cancellation<OneThread> = std::boxed::Box::leak(std::boxed::Box::default());
    let limit = Limit { until_ns: None, cancellation: Some(cancellation) };
    let before = events_of(MutexSleep);
    after(SPINS - 1, || cancellation.cancel());
    // SAFETY: it is not acquired.
    assert_eq!(unsafe { mutex.lock_within(&(), &limit) }, Err(Cancelled));
    assert!(others_are_done() && is_quiet(mutex));
    assert_eq!(events_of(MutexSleep), before);
}

#[test]
fn a_dequeued_waiter_that_competes_without_success_joins_the_line_again() {
    for step in 0..=SLEEPS_AT {
        // SAFETY: no thread waits. One thread makes all releases, so the mutex would seem
        // monopolised.
        unsafe { forget_chains() };
        let mutex = held();
        let before = events_of(MutexWake);
        after(SLEEPS_AT, || {
            release(mutex);
            // SAFETY: free.
            assert!(unsafe { mutex.try_lock(&()) });
        });
        after(step, || release(mutex));
        // SAFETY: another thread has released it by then.
        unsafe { mutex.lock(&()) };
        assert!(others_are_done() && mutex.is_locked(), "step {step}");
        assert!(events_of(MutexWake) > before && is_quiet(mutex), "step {step}");
    }
}

#[test]
fn a_waiter_that_gives_up_leaves_nothing_behind() {
    let mutex = held();
    let limit = Limit::until(OneThread::now_ns() + 1);
    // SAFETY: it is not acquired.
    assert_eq!(unsafe { mutex.lock_within(&(), &limit) }, Err(TimedOut));
    assert!(is_quiet(mutex));
    release(mutex);
    // SAFETY: it is free.
    assert_eq!(unsafe { mutex.lock_within(&(), &limit) }, Ok(()));
}

/// The test puts its own waiters into the queue, one behind the other.
#[test]
fn the_line_is_first_come_first_served() {
    let mutex = held();
    let [first, second]: [Waiter<OneThread>; 2] = std::array::from_fn(|_| Waiter::default());
    // SAFETY: they stay until they are out of the queue.
    unsafe {
        assert_eq!(WaitQueue::of(mutex).join(&first, 0), Place::First);
        assert_eq!(WaitQueue::of(mutex).join(&second, 0), Place::Behind);
    }
    // The first has made no request: a release frees the mutex, and wakes no waiter.
    release(mutex);
    assert!(!mutex.is_locked() && !first.is_signalled());
    // SAFETY: free.
    assert!(unsafe { mutex.try_lock(&()) });
    WaitQueue::of(mutex).request(&first);
    release(mutex);
    assert!(mutex.is_locked() && first.park() == Signal::Granted);
    // The second is first now, and has been told so.
    assert_eq!(WaitQueue::of(mutex).place_of(&second), Place::First);
    assert_eq!(second.park(), Signal::Woken);
    // SAFETY: in the queue.
    assert_eq!(unsafe { WaitQueue::of(mutex).give_up(&second) }, Ok(()));
    assert!(is_quiet(mutex));
}

/// A mutex that another thread holds, whose first in the queue has made a wake request.
fn requested() -> (&'static Mutex, &'static Waiter<OneThread>) {
    let mutex = held();
    let waiter: &'static Waiter<OneThread> = std::boxed::Box::leak(std::boxed::Box::default());
    // SAFETY: it stays for ever.
    assert_eq!(unsafe { WaitQueue::of(mutex).join(waiter, 0) }, Place::First);
    WaitQueue::of(mutex).request(waiter);
    (mutex, waiter)
}

/// In the child of a `fork` the waiters are threads of the parent.
#[test]
fn requests_that_a_fork_leaves_behind_are_forgotten() {
    let (mutex, _gone) = requested();
    // SAFETY: the waiter is not used any more.
    unsafe { forget_chains() };
    assert!(is_quiet(mutex) && !Mutex::count(mutex).read().has_waiters());
    release(mutex);
    assert!(!mutex.is_locked());
}

/// The request of another mutex's waiter sends a release to the chain, where it finds nothing to
/// do.
#[test]
fn locks_of_one_count_do_not_disturb_each_other() {
    let (mutex, (other, waiter)) = (held(), requested());
    assert!(Mutex::count(mutex).read().is_requested());
    release(mutex);
    assert!(!mutex.is_locked() && !waiter.is_signalled());
    release(other);
    assert!(other.is_locked() && waiter.park() == Signal::Granted);
    assert!(is_quiet(other));
}

/// A release that visits the chain sets how many releases there are until the next visit.
#[test]
fn a_release_does_not_look_at_a_chain_where_none_waits_with_its_count() {
    let (mutex, (other, waiter)) = (held(), requested());
    let releases = || Mutex::hints(mutex).releases();
    LAST_IN_CHAIN.set(ptr::from_ref(mutex).cast());
    let before = releases();
    release(mutex);
    assert_eq!(releases(), before);
    LAST_IN_CHAIN.set(ptr::null());
    // SAFETY: free.
    assert!(unsafe { mutex.try_lock(&()) });
    release(mutex);
    assert_ne!(releases(), before, "with the same count it does");
    release(other);
    assert!(other.is_locked() && waiter.park() == Signal::Granted);
}

/// A thread that finds the lock of a chain held would spin, and then sleep.
#[test]
fn a_fair_release_does_not_lock_a_chain_where_none_waits_with_its_count() {
    let (mutex, (other, waiter)) = (held(), requested());
    let queue = WaitQueue::of(other);
    LAST_IN_CHAIN.set(ptr::from_ref(mutex).cast());
    // SAFETY: held; another thread holds the lock of the chain.
    unsafe { mutex.unlock_fair() };
    LAST_IN_CHAIN.set(ptr::null());
    drop(queue);
    assert!(!mutex.is_locked());
    release(other);
    assert!(other.is_locked() && waiter.park() == Signal::Granted);
}

/// With 1024 waiters the count has wrapped around. It counts requests correctly nevertheless.
#[test]
fn a_fair_release_hands_over_beside_as_many_waiters_as_a_count_holds() {
    let (mutex, first) = requested();
    let waiters: Vec<_> = (1..1024).map(|_| Waiter::<OneThread>::default()).collect();
    for waiter in &waiters {
        // SAFETY: it stays until it is out of the queue.
        assert_eq!(unsafe { WaitQueue::of(mutex).join(waiter, 0) }, Place::Behind);
    }
    assert!(!Mutex::count(mutex).read().has_waiters(), "it has wrapped around");
    // SAFETY: held.
    unsafe { mutex.unlock_fair() };
    assert!(mutex.is_locked() && first.park() == Signal::Granted);
    assert!(Mutex::count(mutex).read().has_waiters(), "1023");
    for waiter in &waiters {
        // SAFETY: in the queue.
        assert_eq!(unsafe { WaitQueue::of(mutex).give_up(waiter) }, Ok(()));
    }
    assert!(is_quiet(mutex) && !Mutex::count(mutex).read().has_waiters());
}

/// A thread that waits for a notification waits for no mutex.
#[test]
fn a_release_does_not_look_at_a_chain_where_only_notifications_are_waited_for() {
    let condvar: &NearCondvar<OneThread> = std::boxed::Box::leak(std::boxed::Box::default());
    let (mutex, waited_with) = (held(), held());
    // It has released the mutex.
    meanwhile(|| ());
    meanwhile(|| {
        let releases = || Mutex::hints(mutex).releases();
        let before = releases();
        release(mutex);
        assert_eq!(releases(), before);
        assert!(condvar.notify_one());
    });
    // SAFETY: held.
    assert_eq!(unsafe { condvar.wait(waited_with, &Limit::NONE) }, Ok(()));
    assert!(others_are_done());
    release(waited_with);
}

/// A thread that has spun for long enough does not read the word. A dequeued waiter takes the free
/// mutex nevertheless.
#[test]
fn a_dequeued_waiter_takes_a_free_mutex_though_it_seems_monopolised() {
    let mutex = held();
    let behind: &'static Waiter<OneThread> = std::boxed::Box::leak(std::boxed::Box::default());
    after(SLEEPS_AT, || {
        // SAFETY: it stays until it is out of the queue.
        assert_eq!(unsafe { WaitQueue::of(mutex).join(behind, 0) }, Place::Behind);
        assert!(behind.falls_asleep());
        release(mutex);
        Mutex::hints(mutex).note_retaken();
        SPINS_MAX.set(0);
    });
    // SAFETY: another thread has released it by then.
    unsafe { mutex.lock(&()) };
    assert!(others_are_done() && mutex.is_locked());
    // SAFETY: in the queue.
    assert_eq!(unsafe { WaitQueue::of(mutex).give_up(behind) }, Ok(()));
    assert!(is_quiet(mutex));
}

fn two_sleepers() -> [Waiter<OneThread>; 2] {
    std::array::from_fn(|_| Waiter::default())
}

/// Puts both waiters into the queue.
fn join_both(mutex: &Mutex, [first, second]: &[Waiter<OneThread>; 2]) {
    // SAFETY: they stay until they are out of the queue.
    unsafe {
        assert_eq!(WaitQueue::of(mutex).join(first, 0), Place::First);
        assert_eq!(WaitQueue::of(mutex).join(second, 0), Place::Behind);
    }
}

/// Puts both waiters into the queue, and parks them. The first has made a wake request.
fn fall_asleep(mutex: &Mutex, waiters @ [first, second]: &[Waiter<OneThread>; 2]) {
    join_both(mutex, waiters);
    WaitQueue::of(mutex).request(first);
    assert!(first.falls_asleep() && second.falls_asleep());
}

#[test]
fn a_release_dequeues_a_sleeper_and_the_next_release_the_next_one() {
    let mutex = held();
    let waiters = two_sleepers();
    let [first, second] = &waiters;
    fall_asleep(mutex, &waiters);
    release(mutex);
    assert!(!mutex.is_locked() && first.is_signalled() && !second.is_signalled());
    assert_eq!(WaitQueue::of(mutex).place_of(first), Place::Dequeued);
    assert_eq!(WaitQueue::of(mutex).place_of(second), Place::First);
    assert!(Mutex::count(mutex).read().is_requested(), "by the second");
    // SAFETY: free.
    assert!(unsafe { mutex.try_lock(&()) });
    release(mutex);
    assert!(!mutex.is_locked() && second.is_signalled() && is_quiet(mutex));
    // A waiter that has been dequeued once is woken in the queue.
    assert_eq!((first.park(), second.park()), (Signal::Granted, Signal::Granted));
    // SAFETY: free; and as above.
    unsafe {
        assert!(mutex.try_lock(&()));
        assert_eq!(WaitQueue::of(mutex).join(second, 0), Place::First);
    }
    WaitQueue::of(mutex).request(second);
    assert!(second.falls_asleep());
    release(mutex);
    assert!(!mutex.is_locked() && second.park() == Signal::Woken);
    assert_eq!(WaitQueue::of(mutex).place_of(second), Place::First);
    // SAFETY: in the queue.
    assert_eq!(unsafe { WaitQueue::of(mutex).give_up(second) }, Ok(()));
    assert!(is_quiet(mutex));
}

#[test]
fn a_dequeued_waiter_that_gives_up_wakes_the_next_one() {
    let mutex = held();
    let waiters = two_sleepers();
    let [first, second] = &waiters;
    fall_asleep(mutex, &waiters);
    release(mutex);
    // SAFETY: it has been dequeued.
    assert_eq!(unsafe { WaitQueue::of(mutex).give_up(first) }, Ok(()));
    assert!(second.is_signalled() && is_quiet(mutex));
}

/// Whether a thread holds the mutex decides where a notification puts its waiters.
#[test]
fn the_word_names_the_holder_and_never_the_holder_before() {
    let mutex = held();
    let waiters = two_sleepers();
    let [first, _] = &waiters;
    assert!(mutex.is_held_by_caller());
    acting(OTHER, || assert!(!mutex.is_held_by_caller()));
    fall_asleep(mutex, &waiters);
    // SAFETY: held.
    unsafe { mutex.unlock_fair() };
    assert_eq!(first.park(), Signal::Granted);
    assert!(mutex.is_locked() && !mutex.is_held_by_caller());
    acting(OTHER, || {
        mutex.note_grant();
        assert!(mutex.is_held_by_caller());
        release(mutex);
    });
    assert!(!mutex.is_held_by_caller());
}

/// It returns without the mutex, so it must not write to the word.
#[test]
fn a_waiter_that_was_granted_its_notification_leaves_the_word_alone() {
    let mutex = held();
    let waiter: &'static Waiter<OneThread> = std::boxed::Box::leak(std::boxed::Box::default());
    waiter.mark.store(TAKEN_OUT, Relaxed);
    // SAFETY: it stays for ever.
    unsafe { Waiter::grant(waiter) };
    acting(OTHER, || mutex.lock_when_requeued(waiter, None));
    assert!(mutex.is_held_by_caller());
}
