use core::sync::atomic::AtomicU32;
use std::boxed::Box;
use std::vec::Vec;

use super::*;
use crate::freebsd::tuning::{Current, Era2014, LinearBackoff2016};
use crate::testing::{OTHER, OneThread, PAUSES, SPINS, THIRD, meanwhile, others_are_done, set_owner_state};

/// A second owner replaces the first while a thread spins, and runs or sleeps. Returns why the
/// thread stops, and its pauses.
fn spun_for_two<T: Tuning>(second: OwnerState) -> (Result<u32, Stop>, Vec<u32>) {
    let word: &'static AtomicU32 = Box::leak(Box::new(AtomicU32::new(OTHER.get())));
    set_owner_state(THIRD, second);
    meanwhile(|| word.store(THIRD.get(), Relaxed));
    PAUSES.take();
    let mut spinning = Spinning::default();
    let seen = spinning.follow::<OneThread, T, u32>(word, OTHER, ThreadId::new);
    assert!(others_are_done());
    let paused = if T::backoff() == Backoff::None { 0 } else { spinning.delay.total() };
    assert_eq!(u64::from(spinning.spin.since_clock), paused, "the pauses that count for the time budget");
    set_owner_state(THIRD, OwnerState::Running);
    (seen, PAUSES.take())
}

#[test]
fn owners_are_followed_as_the_switch_says() {
    let running = OwnerState::Running;
    assert_eq!(spun_for_two::<Era2014>(running), (Ok(THIRD.get()), [].into()));
    assert_eq!(spun_for_two::<LinearBackoff2016>(running), (Ok(THIRD.get()), [40].into()));
    assert_eq!(spun_for_two::<Current>(running), (Err(Stop::GiveWay), [1, 2, 4, 8, 16].into()));
}

#[test]
fn no_thread_spins_for_an_owner_that_sleeps() {
    assert_eq!(spun_for_two::<Current>(OwnerState::Asleep), (Err(Stop::OwnerSleeps), [1].into()));
}

#[test]
fn spinning_ends_when_there_is_no_owner() {
    let word: &'static AtomicU32 = Box::leak(Box::new(AtomicU32::new(OTHER.get())));
    meanwhile(|| word.store(0, Relaxed));
    let seen = Spinning::default().follow::<OneThread, Current, u32>(word, OTHER, ThreadId::new);
    assert_eq!((seen, others_are_done()), (Ok(0), true));
}

#[test]
fn all_pauses_count_for_the_bound_on_spinning() {
    let mut spinning = Spinning::default();
    spinning.pause::<OneThread>(7);
    spinning.delay::<OneThread, Current>();
    assert_eq!((spinning.spin.since_clock, spinning.delay.total()), (8, 8));
    let turns = (0..).take_while(|_| !spinning.is_over::<OneThread>()).count();
    assert_eq!(turns as u32, SPINS);
}
