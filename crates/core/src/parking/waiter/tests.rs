use core::ptr;
use std::boxed::Box;

use super::*;
use crate::parking::{GaveUp, Limit};
use crate::testing::{OneThread, UNPARKED, meanwhile, others_are_done};

type Place = Waiter<OneThread>;

fn leaked<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

#[test]
fn a_signal_that_has_come_ends_the_rest_at_once_and_owes_no_call() {
    let waiter = Place::default();
    assert!(waiter.wake().is_none() && waiter.wake().is_none());
    assert_eq!(waiter.park(), Signal::Woken);
    assert_eq!(waiter.park_within(&Limit::until(5)), Err(GaveUp::TimedOut), "two wakes are one");
}

#[test]
fn a_sleeper_is_called_where_it_sleeps() {
    let waiter = leaked(Place::default());
    meanwhile(|| waiter.wake().expect("it sleeps").make());
    assert_eq!(waiter.park(), Signal::Woken);
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
    assert_eq!(waiter.park(), Signal::Granted);
    assert_eq!(waiter.park(), Signal::Granted);
}

#[test]
fn the_state_of_a_waiter_is_read_without_a_change() {
    let waiter = leaked(Place::default());
    assert_eq!(waiter.state(), (SleepState::Awake, None));
    meanwhile(|| {
        assert_eq!(waiter.state(), (SleepState::Asleep, None));
        let call = waiter.wake();
        assert_eq!(waiter.state(), (SleepState::Asleep, Some(Signal::Woken)));
        call.expect("it sleeps").make();
    });
    assert_eq!(waiter.park(), Signal::Woken);
    meanwhile(|| assert_eq!(waiter.state(), (SleepState::AsleepUntil, None)));
    waiter.park_until(5);
    assert!(others_are_done());
    // SAFETY: alive.
    assert!(unsafe { Place::grant(waiter) }.is_none());
    assert_eq!(waiter.state(), (SleepState::Awake, Some(Signal::Granted)));
}

/// Otherwise a cancelled waiter would sleep.
#[test]
fn a_waiter_that_waits_again_forgets_its_grant_but_not_that_it_was_woken() {
    let waiter = leaked(Place::default());
    // SAFETY: alive.
    assert!(unsafe { Place::grant(waiter) }.is_none());
    assert_eq!(waiter.park(), Signal::Granted);
    assert!(waiter.wake().is_none());
    waiter.forget_grant();
    assert_eq!(waiter.park(), Signal::Woken);
    assert!(!waiter.is_signalled());
}
