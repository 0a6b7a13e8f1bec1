//! A mutex that one thread takes again and again.

use super::*;
use crate::near::mutex::pace::DOUBTS;

fn hammered() -> &'static Mutex {
    let mutex = held();
    Mutex::chain(mutex).pace().note_retaken();
    mutex
}

#[test]
fn the_first_in_line_leaves_a_mutex_alone_that_is_free_only_between_two_sections() {
    let taken_again = |mutex: &'static Mutex, _: *const Waiter<OneThread>| {
        release(mutex);
        // SAFETY: free.
        meanwhile(|| assert!(unsafe { mutex.try_lock(&()) }));
    };
    assert_eq!(seen_by_the_first(Holders::One, taken_again), Spell::Over);
}

/// It would else stand in line behind one that waits for a processor, while the mutex is free most of the time.
#[test]
fn a_newcomer_takes_a_hammered_mutex_that_stays_free() {
    let (mutex, before) = (hammered(), events_of(MutexOptLock));
    for taken in 1..=DOUBTS {
        assert_eq!(Mutex::chain(mutex).pace().holders(), Holders::One);
        SPINS_MAX.set(100);
        after(1, || release(mutex));
        // SAFETY: another has released it by then.
        unsafe { mutex.lock(&()) };
        assert!(others_are_done() && is_quiet(mutex));
        assert_eq!(events_of(MutexOptLock) - before, u64::from(taken));
    }
    assert_eq!(Mutex::chain(mutex).pace().holders(), Holders::Several);
}

#[test]
fn a_newcomer_leaves_a_hammered_mutex_alone_that_is_taken_again_and_waits_for_no_processor() {
    let mutex = hammered();
    SPINS_MAX.set(100);
    PAUSES.take();
    after(1, || {
        release(mutex);
        // SAFETY: free.
        meanwhile(|| assert!(unsafe { mutex.try_lock(&()) }));
        after(3, || {
            assert!(Line::of(mutex).first().is_some(), "it stands in line after its last look");
            release(mutex);
        });
    });
    // SAFETY: another has released it by then.
    unsafe { mutex.lock(&()) };
    assert!(others_are_done() && is_quiet(mutex));
    assert_eq!(
        PAUSES.take()[..7],
        [1, 2, 1, 4, 8, 8, 1],
        "five looks, one of them twice; and the first in line's"
    );
}

#[test]
fn a_sleeper_of_a_hammered_mutex_is_woken_in_line_and_has_its_turn_when_it_is_due() {
    let mutex = held();
    let waiters = two_sleepers();
    let [first, second] = &waiters;
    Mutex::chain(mutex).pace().note_retaken();
    fall_asleep(mutex, &waiters);
    release(mutex);
    assert!(!mutex.is_locked() && first.is_signalled());
    assert_eq!(Line::of(mutex).place_of(first), Place::First);
    assert!(!Mutex::is_summoned(Mutex::chain(mutex)), "it is awake");
    NOW_NS.set(NOW_NS.get() + HAMMERED_DUE_NS + 2048);
    // A release looks at the chain now and then without summons.
    for releases in 0.. {
        assert!(releases < 10, "nobody looks");
        // SAFETY: free.
        assert!(unsafe { mutex.try_lock(&()) });
        release(mutex);
        if mutex.is_locked() {
            break;
        }
    }
    assert_eq!((first.rest(), second.rest()), (Signal::Granted, Signal::Woken));
    assert_eq!(Line::of(mutex).place_of(second), Place::First);
    assert!(!Mutex::is_summoned(Mutex::chain(mutex)), "it is awake");
    // SAFETY: in the line.
    assert_eq!(unsafe { Line::of(mutex).give_up(second) }, Ok(()));
    assert!(is_quiet(mutex));
}
