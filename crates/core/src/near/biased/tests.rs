use super::bias::Bias;
use super::*;
use crate::events::LockEvent::{BiasGrant, BiasRevoke, BiasSleep};
use crate::testing::{
    NOW_NS, OTHER, OneThread, SPINS, THIRD, THREAD_ID, acting, events_of, me, meanwhile, mistake,
    others_are_done,
};
use crate::waiter::Cancellation;
use crate::waiter::GaveUp::{Cancelled, TimedOut};
use std::boxed::Box;

type Mutex<T = Eager> = NearBiasedMutex<OneThread, T>;

const _: () = assert!(size_of::<NearBiasedMutex<crate::native::Native>>() == 8);
const _: () = assert!(size_of::<OwnerLine<crate::native::Native>>() == 64);

/// Four in a row at first, and eight at last.
struct Four;

impl BiasTuning for Four {
    const STREAK: u32 = 4;
    const DOUBLINGS: u32 = 1;
}

fn mutex<T: BiasTuning>() -> &'static Mutex<T> {
    Box::leak(Box::new(Mutex::new()))
}

fn lock<T: BiasTuning>(mutex: &Mutex<T>) {
    // SAFETY: tests unlock what they lock.
    unsafe { mutex.lock(&()) };
}

fn unlock<T: BiasTuning>(mutex: &Mutex<T>) {
    // SAFETY: callers hold it, or whoever they stand for.
    unsafe { mutex.unlock(&()) };
}

fn try_lock<T: BiasTuning>(mutex: &Mutex<T>) -> bool {
    // SAFETY: as in `lock`.
    unsafe { mutex.try_lock(&()) }
}

fn section<T: BiasTuning>(mutex: &Mutex<T>) {
    lock(mutex);
    assert!(mutex.is_locked() && !try_lock(mutex), "one holder, also for the same thread");
    unlock(mutex);
    assert!(!mutex.is_locked());
}

/// Whether the lock is held, and that by bias.
fn is_held_by_bias<T: BiasTuning>(mutex: &Mutex<T>) -> bool {
    mutex.held_by_bias().is_some() && !mutex.mutex.is_locked()
}

#[test]
fn a_row_of_acquisitions_ends_in_a_bias() {
    let mutex = mutex::<Four>();
    let granted = events_of(BiasGrant);
    for i in 1..=10 {
        lock(mutex);
        assert_eq!(is_held_by_bias(mutex), i >= 4, "acquisition {i}");
        unlock(mutex);
    }
    assert_eq!(events_of(BiasGrant) - granted, 1);
    section(mutex);
}

#[test]
fn a_revocation_doubles_the_streak_up_to_a_bound() {
    let mutex = mutex::<Four>();
    let revoked = events_of(BiasRevoke);
    for (round, streak) in [4, 8, 8].into_iter().enumerate() {
        // Another had it last, and the first of a row counts.
        for i in 1..=streak {
            assert!(!mutex.bias().is_biased(), "round {round}, acquisition {i}");
            section(mutex);
        }
        assert!(mutex.bias().is_to(me().get()));
        acting(OTHER, || section(mutex));
        assert_eq!(mutex.bias(), Bias::default().counted::<Four>(OTHER.get()).at_level(1));
        assert_eq!(events_of(BiasRevoke) - revoked, round as u64 + 1);
    }
}

#[test]
fn a_row_is_of_one_thread() {
    let mutex = mutex::<Four>();
    for _ in 0..3 {
        (0..3).for_each(|_| section(mutex));
        acting(OTHER, || section(mutex));
    }
    assert_eq!(mutex.bias().thread(), OTHER.get());
    // A thread without a number ends a row, too, and has none.
    OneThread::without_nodes(|| (0..9).for_each(|_| section(mutex)));
    assert_eq!((mutex.bias().thread(), mutex.bias().is_biased()), (0, false));
}

#[test]
fn who_ends_a_bias_waits_until_the_owner_has_left() {
    // The owner leaves at the fence of the revocation, while the other looks, at its fence before it sleeps, or while it does.
    for step in 0..=SPINS + 2 {
        let mutex = mutex::<Eager>();
        acting(OTHER, || lock(mutex));
        assert!(is_held_by_bias(mutex));
        let slept = events_of(BiasSleep);
        (0..step).for_each(|_| meanwhile(|| ()));
        meanwhile(move || acting(OTHER, || unlock(mutex)));
        lock(mutex);
        assert!(others_are_done() && mutex.is_locked(), "step {step}");
        assert_eq!(events_of(BiasSleep) - slept, u64::from(step == SPINS + 2), "step {step}");
        unlock(mutex);
        assert!(!mutex.is_locked(), "step {step}");
    }
}

#[test]
fn an_owner_that_comes_too_late_is_like_any_other() {
    let mutex = mutex::<Eager>();
    section(mutex);
    // Another takes the lock between what the owner writes and what it reads; it sees the owner, and waits.
    meanwhile(move || {
        acting(OTHER, || {
            assert!(!try_lock(mutex), "it is said to be held");
            // SAFETY: it is not acquired.
            assert_eq!(unsafe { mutex.lock_within(&(), &Limit::until(0)) }, Err(TimedOut));
        });
    });
    let granted = events_of(BiasGrant);
    section(mutex);
    assert!(others_are_done());
    // It has found the lock revoked, and taken it over from itself: nobody has it by bias.
    assert_eq!((mutex.bias().thread(), mutex.bias().is_biased()), (me().get(), false));
    assert_eq!(events_of(BiasGrant), granted);
}

#[test]
fn who_gives_up_leaves_it_revoked() {
    let mutex = mutex::<Eager>();
    acting(OTHER, || lock(mutex));
    for reason in [TimedOut, Cancelled] {
        let cancellation: &'static Cancellation<OneThread> = Box::leak(Box::default());
        let limit = match reason {
            TimedOut => Limit::until(NOW_NS.get() + 1),
            Cancelled => {
                (0..SPINS + 1).for_each(|_| meanwhile(|| ()));
                meanwhile(|| cancellation.cancel());
                Limit { until_ns: None, cancellation: Some(cancellation) }
            }
        };
        // SAFETY: it is not acquired.
        assert_eq!(unsafe { mutex.lock_within(&(), &limit) }, Err(reason));
        assert!(others_are_done() && !mutex.mutex.is_locked());
        assert!(mutex.is_locked() && !mutex.bias().is_biased() && mutex.bias().may_be_held());
    }
    let revoked = events_of(BiasRevoke);
    assert!(!try_lock(mutex));
    acting(OTHER, || unlock(mutex));
    assert!(!mutex.is_locked());
    section(mutex);
    assert_eq!(events_of(BiasRevoke), revoked, "once is enough");
}

#[test]
fn two_locks_of_one_place_drive_each_other_out() {
    let [one, other] = [mutex::<Eager>(), mutex::<Eager>()];
    for _ in 0..3 {
        for mutex in [one, other] {
            section(mutex);
            assert!(mutex.bias().is_to(me().get()));
        }
    }
    // One in the other: the inner one is held by its mutex, since the place is taken.
    lock(one);
    lock(other);
    assert!(is_held_by_bias(one) && other.mutex.is_locked() && !try_lock(other) && !try_lock(one));
    unlock(one);
    assert!(!one.is_locked() && other.is_locked() && !try_lock(other));
    unlock(other);
    assert!(!other.is_locked());
    // Whoever ends that finds nobody to wait for.
    acting(THIRD, || [one, other].into_iter().for_each(section));
}

#[test]
fn a_forgotten_guard_holds_up_no_lock_that_comes_to_its_place() {
    let mutex: *mut Mutex = Box::into_raw(Box::new(Mutex::new()));
    // SAFETY: alive until it is overwritten; nobody else refers to it.
    unsafe {
        lock(&*mutex);
        assert!(is_held_by_bias(&*mutex));
        mutex.write(Mutex::new());
        section(&*mutex);
        section(&*mutex);
        drop(Box::from_raw(mutex));
    }
}

#[test]
fn a_thread_that_has_lost_its_line_releases_what_it_has_there() {
    let mutex = mutex::<Eager>();
    lock(mutex);
    assert!(is_held_by_bias(mutex));
    OneThread::without_nodes(|| unlock(mutex));
    assert!(!mutex.is_locked());
    OneThread::without_nodes(|| section(mutex));
    section(mutex);
}

#[test]
fn a_fair_release_is_one() {
    let mutex = mutex::<Eager>();
    for (thread, by_bias) in [(me(), true), (OTHER, false)] {
        acting(thread, || {
            lock(mutex);
            assert_eq!(is_held_by_bias(mutex), by_bias);
            // SAFETY: locked above.
            unsafe { mutex.unlock_fair() };
        });
        assert!(!mutex.is_locked());
    }
}

#[test]
fn the_thread_that_has_locked_releases() {
    let (mutex, owner) = (mutex::<Eager>(), me());
    lock(mutex);
    mistake("released by another thread", || {
        THREAD_ID.set(OTHER);
        unlock(mutex);
    });
    THREAD_ID.set(owner);
    unlock(mutex);
    assert!(!mutex.is_locked());
}

#[test]
fn standard_locks_are_biased_after_a_while() {
    let mutex = mutex::<Standard>();
    (1..Standard::STREAK).for_each(|_| section(mutex));
    assert!(!mutex.bias().is_biased());
    section(mutex);
    assert!(mutex.bias().is_biased());
}
