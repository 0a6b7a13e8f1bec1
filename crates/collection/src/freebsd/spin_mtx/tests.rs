use core::cell::Cell;
use std::boxed::Box;
use std::thread_local;

use super::*;
use crate::freebsd::tuning::{Current, Era2014};
use crate::native::Native;
use crate::schedule::{Schedule, Sections};
use crate::testing::{
    OTHER, OneThread, acting, before_exchange, events_of, exchange_fails, exchanges_are_over, left_by_others,
    meanwhile, mistake, others_are_done, set,
};

const _: () = assert!(size_of::<SpinMtx<Native>>() == 8);

type Mutex<T = Standard, D = Counted> = SpinMtx<OneThread, T, D>;

fn leaked<T: Tuning, D: LongSpin>() -> &'static Mutex<T, D> {
    Box::leak(Box::default())
}

impl<T: Tuning, D: LongSpin> Mutex<T, D> {
    /// Makes another thread the holder.
    fn held_by_other(&self) {
        self.word.store(OTHER.get(), Relaxed);
    }

    fn now(&self) -> (u32, u32, u32) {
        (self.word.load(Relaxed), self.depth.get(), OneThread::section_depth())
    }
}

fn locks_and_unlocks<T: Tuning>() {
    let mutex = Mutex::<T>::new();
    let me = OneThread::thread_id().get();
    // SAFETY: one thread, and as many unlocks as locks.
    unsafe {
        mutex.lock(&());
        assert!(mutex.is_locked() && mutex.is_owned() && !mutex.is_recursed());
        assert_eq!(mutex.now(), (me, 0, 1));
        assert_eq!((mutex.depth(), acting(OTHER, || mutex.owner())), (0, ThreadId::new(me)));
        assert!(!mutex.try_lock(&()), "never recursive");
        mutex.lock_recursive();
        assert!(mutex.is_recursed());
        assert_eq!((mutex.depth(), mutex.owner()), (1, ThreadId::new(me)));
        assert_eq!(mutex.now(), (me, 1, 2), "the word does not say it");
        mutex.unlock(&());
        assert_eq!(mutex.now(), (me, 0, 1));
        mutex.unlock(&());
        assert_eq!((mutex.now(), mutex.owner()), ((FREE, 0, 0), None));
        mutex.wait_unlocked();
        assert!(mutex.try_lock(&()));
        mutex.unlock(&());
        mutex.lock_recursive();
        mutex.unlock(&());
    }
    assert_eq!(mutex.now(), (FREE, 0, 0));
}

/// A thread waits for another one, in no section.
fn waits<T: Tuning>() {
    // SAFETY: one thread, and unlock follows lock; so below.
    waits_in::<T>(|mutex| unsafe { mutex.lock(&()) });
    // SAFETY: as above.
    waits_in::<T>(|mutex| unsafe { mutex.lock_recursive() });
}

fn waits_in<T: Tuning>(lock: fn(&Mutex<T>)) {
    let mutex = leaked::<T, Counted>();
    mutex.held_by_other();
    // SAFETY: one thread; nothing is acquired.
    assert!(!unsafe { mutex.try_lock(&()) } && !mutex.is_owned());
    let see = || assert_eq!(mutex.now(), (OTHER.get(), 0, 0), "it waits outside of the section");
    (0..3).for_each(|_| meanwhile(see));
    meanwhile(|| mutex.word.store(FREE, Relaxed));
    lock(mutex);
    assert!(others_are_done());
    assert_eq!(mutex.now(), (OneThread::thread_id().get(), 0, 1));
    // SAFETY: just locked.
    unsafe { mutex.unlock(&()) };
}

in_all_forms!(locks_and_unlocks waits);

thread_local! {
    static REPORT: Cell<Option<TooLong>> = const { Cell::new(None) };
}

struct Told;

impl LongSpin for Told {
    fn held_too_long(wait: &TooLong) {
        assert_eq!(REPORT.replace(Some(*wait)), None, "once");
    }
}

/// Locks a mutex for which it waits too long.
fn waits_too_long<T: Tuning, D: LongSpin>() -> &'static Mutex<T, D> {
    let (mutex, before) = (leaked::<T, D>(), events_of(LockEvent::SpinTooLong));
    mutex.held_by_other();
    (0..6).for_each(|_| meanwhile(|| ()));
    meanwhile(|| mutex.word.store(FREE, Relaxed));
    // SAFETY: one thread, and unlock follows lock.
    unsafe {
        mutex.lock(&());
        mutex.unlock(&());
    }
    assert_eq!(events_of(LockEvent::SpinTooLong), before + 1);
    mutex
}

fn pauses_when_reported<T: Tuning>() -> u64 {
    let (mutex, me) = (waits_too_long::<T, Told>(), OneThread::thread_id());
    let report = REPORT.take().expect("told");
    let lock = (&raw const *mutex).cast();
    assert_eq!(report, TooLong { lock, owner: Some(OTHER), waiter: me, pauses: report.pauses });
    report.pauses
}

#[test]
fn a_wait_is_reported_once_when_it_is_over_the_limit() {
    set(Setting::FreebsdSpinLimit, 10);
    assert_eq!(pauses_when_reported::<Current>(), 1 + 2 + 4 + 8);
    set(Setting::FreebsdSpinLimit, 3 * u64::from(LOOKS));
    assert_eq!(pauses_when_reported::<Era2014>(), 3 * u64::from(LOOKS));
}

#[test]
fn a_wait_that_is_not_reported_is_counted_and_goes_on() {
    set(Setting::FreebsdSpinLimit, 10);
    assert_eq!(waits_too_long::<Current, Counted>().now(), (FREE, 0, 0));
    assert_eq!(REPORT.take(), None);
}

#[test]
fn an_exchange_that_fails_for_no_reason_is_tried_again_without_a_wait() {
    let mutex = leaked::<Current, Counted>();
    meanwhile(|| ());
    (0..2).for_each(|_| exchange_fails());
    // SAFETY: one thread, and unlock follows lock.
    unsafe { mutex.lock(&()) };
    assert_eq!((mutex.now(), exchanges_are_over()), ((OneThread::thread_id().get(), 0, 1), true));
    // SAFETY: as above.
    unsafe { mutex.unlock(&()) };
    exchange_fails();
    // SAFETY: as above.
    unsafe {
        assert!(mutex.try_lock(&()) && exchanges_are_over());
        mutex.unlock(&());
    }
    assert_eq!(left_by_others(), 1, "they act when it waits");
}

#[test]
fn an_attempt_that_another_thread_comes_before_fails() {
    let mutex = leaked::<Current, Counted>();
    before_exchange(|| mutex.held_by_other());
    // SAFETY: one thread; nothing is acquired.
    assert!(!unsafe { mutex.try_lock(&()) });
    assert_eq!(mutex.now(), (OTHER.get(), 0, 0));
}

#[test]
fn a_wait_for_an_unlock_does_not_take_the_spin_mutex() {
    let mutex = leaked::<Current, Counted>();
    mutex.held_by_other();
    meanwhile(|| mutex.word.store(FREE, Relaxed));
    mutex.wait_unlocked();
    assert!(others_are_done());
    assert_eq!(mutex.now(), (FREE, 0, 0));
}

#[test]
fn mistakes_are_found() {
    mistake("locks a spin mutex that it holds", || {
        let mutex = Mutex::<Current>::new();
        // SAFETY: one thread; the second is the mistake.
        unsafe {
            mutex.lock(&());
            mutex.lock(&());
        }
    });
    mistake("unlocks a spin mutex that it does not hold", || {
        let mutex = Mutex::<Current>::new();
        mutex.held_by_other();
        // SAFETY: one thread; this is the mistake.
        unsafe { mutex.unlock(&()) };
    });
}
