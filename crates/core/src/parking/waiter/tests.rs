use std::boxed::Box;
use std::vec::Vec;

use super::*;
use crate::schedule::{OwnerState, Schedule, Spin, Stop, ThreadId};
use crate::testing::{
    NOW_NS, OneThread, SLEEPS, UNPARKED, UNPARKS, meanwhile, others_are_done, set_owner_state,
};

type Place = Waiter<OneThread>;

fn leaked<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

#[test]
fn a_signal_that_has_come_ends_the_rest_at_once_and_owes_no_call() {
    let waiter = Place::default();
    assert!(waiter.wake().is_none() && waiter.wake().is_none());
    assert_eq!(waiter.rest(), Signal::Woken);
    assert_eq!(waiter.rest_within(&Limit::until(5)), Err(GaveUp::TimedOut), "two wakes are one");
}

#[test]
fn a_sleeper_is_called_where_it_sleeps() {
    let waiter = leaked(Place::default());
    meanwhile(|| waiter.wake().expect("it sleeps").make());
    assert_eq!(waiter.rest(), Signal::Woken);
    assert_eq!(
        UNPARKED.get().map(|(word, n)| (word.addr(), n)),
        Some((ptr::from_ref(&waiter.signal).addr(), 1))
    );
    assert!(others_are_done());
}

#[test]
fn a_grant_stays_and_goes_before_a_wake() {
    let waiter = Place::default();
    // SAFETY: alive.
    assert!(unsafe { Place::grant(&raw const waiter) }.is_none());
    assert!(waiter.wake().is_none());
    assert_eq!(waiter.rest(), Signal::Granted);
    assert_eq!(waiter.rest(), Signal::Granted);
}

#[test]
fn a_rest_ends_when_its_time_has_passed() {
    let waiter = Place::default();
    NOW_NS.set(10);
    assert_eq!(waiter.rest_within(&Limit::until(30)), Err(GaveUp::TimedOut));
    assert_eq!(NOW_NS.get(), 30);
}

#[test]
fn a_cancellation_wakes_whoever_waits_by_it_and_stays() {
    let (waiter, cancellation) = (leaked(Place::default()), leaked(Cancellation::<OneThread>::default()));
    let limit = Limit { until_ns: None, cancellation: Some(cancellation) };
    assert_eq!(limit.is_reached(), None);
    meanwhile(|| cancellation.cancel());
    assert_eq!(limit.watch(waiter, || waiter.rest_within(&limit)), Ok(Signal::Woken));
    assert_eq!(limit.watch(waiter, || waiter.rest_within(&limit)), Err(GaveUp::Cancelled));
    // Nobody waits by it any more.
    cancellation.cancel();
    assert_eq!(waiter.rest_within(&Limit::until(0)), Err(GaveUp::TimedOut), "not woken");
}

#[test]
fn a_cancellation_wakes_all_who_wait_by_it_and_nobody_else() {
    static CANCELLATION: Cancellation<OneThread> = Cancellation::new();
    let limit = Limit { until_ns: None, cancellation: Some(&CANCELLATION) };
    let [first, second, third]: &[Place; 3] = leaked(Default::default());
    let woken = |waiter: &Place| waiter.rest_within(&Limit::until(0)).is_ok();
    limit.watch(first, || {
        limit.watch(second, || {
            limit.watch(third, || CANCELLATION.cancel());
            assert_eq!([first, second, third].map(woken), [true; 3]);
            CANCELLATION.cancel();
        });
        assert_eq!([first, second, third].map(woken), [true, true, false]);
    });
    CANCELLATION.cancel();
    assert_eq!([first, second, third].map(woken), [false; 3]);
}

#[test]
fn a_cancellation_that_finds_the_list_locked_is_done_by_the_thread_that_has_locked_it() {
    let cancellation = Cancellation::<OneThread>::default();
    let waiters = [Place::default(), Place::default()];
    let woken = |waiter: &Place| waiter.rest_within(&Limit::until(0)).is_ok();
    cancellation.enter_for_test(&waiters, |leave| {
        cancellation.locked(|| {
            cancellation.cancel();
            assert!(cancellation.is_cancelled() && !waiters.iter().any(woken));
        });
        assert!(waiters.iter().all(woken));
        [0, 1].into_iter().for_each(leave);
    });
}

#[test]
fn a_cancellation_calls_all_who_sleep() {
    let cancellation = leaked(Cancellation::<OneThread>::new());
    let [first, second]: &[Place; 2] = leaked(Default::default());
    let sleep = |waiter: &Place| {
        let limit = Limit { until_ns: None, cancellation: Some(cancellation) };
        limit.watch(waiter, || waiter.rest_within(&limit))
    };
    assert!(!cancellation.is_cancelled());
    meanwhile(move || assert_eq!(sleep(second), Ok(Signal::Woken)));
    meanwhile(|| {
        assert_eq!((SLEEPS.get(), UNPARKS.get()), (2, 0));
        cancellation.cancel();
        assert!(cancellation.is_cancelled());
        assert_eq!(UNPARKS.get(), 2);
    });
    assert_eq!(sleep(first), Ok(Signal::Woken));
    assert!(others_are_done());
}

#[test]
fn who_waits_by_a_cancellation_may_leave_in_any_order() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let cancellation = Cancellation::<OneThread>::default();
        let limit = Limit { until_ns: None, cancellation: Some(&cancellation) };
        let waiters: [Place; 3] = Default::default();
        let woken = |waiter: &Place| waiter.rest_within(&Limit::until(0)).is_ok();
        // As threads would, each in its own time: by hand.
        cancellation.enter_for_test(&waiters, |leave| {
            for (gone, &who) in order.iter().enumerate() {
                leave(who);
                cancellation.cancel();
                let expected = [0, 1, 2].map(|waiter| !order[..=gone].contains(&waiter));
                assert_eq!([0, 1, 2].map(|waiter| woken(&waiters[waiter])), expected, "{order:?}");
            }
        });
        assert!(limit.is_reached().is_some());
    }
}

#[test]
fn a_list_is_a_queue_from_which_anybody_may_go() {
    let waiters: Vec<Place> = (0..4).map(|_| Place::default()).collect();
    let names = |list: &WaitList<OneThread>| {
        let mut names = Vec::new();
        let mut at = list.first();
        while !at.is_null() {
            names.push(waiters.iter().position(|waiter| ptr::eq(waiter, at)).unwrap());
            // SAFETY: in the list.
            at = unsafe { list.after(at) };
        }
        names
    };
    for out in 0..4 {
        let list = WaitList::<OneThread>::default();
        // SAFETY: one thread; the waiters stay where they are.
        unsafe {
            waiters.iter().for_each(|waiter| list.push(waiter));
            assert_eq!(names(&list), [0, 1, 2, 3]);
            list.remove(&raw const waiters[out]);
            let mut left: Vec<_> = (0..4).filter(|&name| name != out).collect();
            assert_eq!(names(&list), left);
            list.push(&waiters[out]);
            left.push(out);
            assert_eq!(names(&list), left);
            for behind in 0..4 {
                let waiter = left.remove(3 - behind);
                list.remove(&raw const waiters[waiter]);
                let previous = behind.checked_sub(1).map(|place| &waiters[left[place]]);
                list.push_after(previous, &waiters[waiter]);
                left.insert(behind, waiter);
                assert_eq!(names(&list), left);
            }
            left.iter().for_each(|&name| list.remove(&raw const waiters[name]));
        }
        assert!(list.is_empty() && list.last.load(Relaxed).is_null());
    }
}

#[test]
fn the_chosen_are_granted_in_their_order_and_may_be_gone_at_once() {
    Chosen::<OneThread>::NOBODY.grant();
    let waiters: Vec<Place> = (0..3).map(|_| Place::default()).collect();
    let mut chosen = Chosen::NOBODY;
    // SAFETY: they are in no queue, and stay.
    [2, 0, 1].into_iter().for_each(|name| unsafe { chosen.push((&raw const waiters[name]).cast_mut()) });
    let order: Vec<_> = core::iter::successors(Some(chosen.first), |waiter| {
        // SAFETY: they stay.
        Some(unsafe { &**waiter }.next.load(Relaxed)).filter(|next| !next.is_null())
    })
    .collect();
    assert!(order.iter().zip([2, 0, 1]).all(|(at, name)| ptr::eq(*at, &raw const waiters[name])));
    chosen.grant();
    assert!(waiters.iter().all(|waiter| waiter.rest() == Signal::Granted));
}

#[test]
fn spinning_on_an_owner_ends_for_each_of_its_reasons() {
    let word: <OneThread as Platform>::U32 = Atomic::new(1);
    let owner = ThreadId::new(7).unwrap();
    let spin =
        |done: fn(u32) -> bool| OneThread::spin_on_owner(&mut Spin::default(), &word, Relaxed, owner, done);
    assert_eq!(spin(|v| v == 1), Ok(1));
    assert_eq!(spin(|v| v == 2), Err(Stop::GiveWay));
    set_owner_state(owner, OwnerState::Asleep);
    assert_eq!(spin(|v| v == 2), Err(Stop::OwnerSleeps));
    assert_eq!(spin(|v| v == 1), Ok(1), "what is there is seen first");
}
