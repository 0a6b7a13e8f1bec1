//! A mutex that one thread takes again and again.

use std::boxed::Box;

use super::*;
use crate::near::mutex::hints::DOUBTS;
use crate::near::mutex::spinning::{PROBE_RELEASES, PROBE_RELEASES_MAX};
use crate::testing::{UNPARKS, before_exchange, exchanges_are_over};

fn monopolised() -> &'static Mutex {
    let mutex = held();
    Mutex::hints(mutex).note_retaken();
    mutex
}

#[test]
fn the_first_in_line_leaves_a_mutex_alone_that_is_free_only_between_two_sections() {
    let taken_again = |mutex: &'static Mutex, _: *const Waiter<OneThread>| {
        release(mutex);
        // SAFETY: free.
        meanwhile(|| assert!(unsafe { mutex.try_lock(&()) }));
    };
    assert_eq!(seen_by_the_first(Holders::One, taken_again), SpinEnd::Over);
}

/// A thread holds the mutex, releases it each microsecond, and takes it again at once. It does so
/// at its next `looks` + 1 chances to act. At the last one it also does `then`.
fn is_taken_again(mutex: &'static Mutex, looks: u32, then: impl FnOnce() + 'static) {
    meanwhile(move || {
        NOW_NS.set(NOW_NS.get() + 1000);
        release(mutex);
        // SAFETY: free.
        assert!(unsafe { mutex.try_lock(&()) });
        match looks {
            0 => then(),
            _ => is_taken_again(mutex, looks - 1, then),
        }
    });
}

/// Waits as the first in the queue until it would make a wake request. Returns how it stopped
/// spinning, and how long it waited, in ns.
fn waits_as_first(mutex: &'static Mutex) -> (SpinEnd, u64) {
    let (waiter, begin_ns) = (Waiter::<OneThread>::default(), NOW_NS.get());
    SPINS_MAX.set(1000);
    PAUSES.take();
    // SAFETY: it stays until it is out of the queue.
    assert_eq!(unsafe { WaitQueue::of(mutex).join(&waiter, 0) }, Place::First);
    let end = mutex.look_before_request(&waiter, &mut Spin::default(), &Limit::NONE);
    // SAFETY: in the queue.
    assert_eq!(unsafe { WaitQueue::of(mutex).give_up(&waiter) }, Ok(()));
    (end, NOW_NS.get() - begin_ns)
}

/// A waiter that is woken as the first may have the holder's processor.
#[test]
fn the_first_in_line_looks_at_a_monopolised_mutex_for_a_moment_and_parks_until_its_turn() {
    let mutex = monopolised();
    is_taken_again(mutex, 12, || ());
    let (end, waited_ns) = waits_as_first(mutex);
    assert_eq!(end, SpinEnd::Over);
    let pauses = PAUSES.take();
    assert!(pauses.len() < 12 && pauses.iter().all(|pauses| *pauses <= 16), "{pauses:?}");
    assert!((198_000..204_000).contains(&waited_ns), "{waited_ns} ns");
}

/// The sections are longer than the short spin. So the waiter does not see whether the mutex is
/// taken again.
#[test]
fn the_first_in_line_looks_longer_at_a_monopolised_mutex_that_is_not_released() {
    let mutex = monopolised();
    for _ in 0..100 {
        meanwhile(|| NOW_NS.set(NOW_NS.get() + 1000));
    }
    let (end, waited_ns) = waits_as_first(mutex);
    assert_eq!(end, SpinEnd::Over);
    assert!((20_000..50_000).contains(&waited_ns), "{waited_ns} ns");
}

/// A thread with think time between its sections must not be mistaken for a thread that monopolises
/// the mutex because the reads have missed the gaps.
#[test]
fn the_first_in_line_looks_closely_before_a_mutex_counts_as_monopolised() {
    let mutex = held();
    let hints = Mutex::hints(mutex);
    for _ in 0..3 {
        hints.looked(Some(100), Hints::<OneThread>::now());
    }
    assert!(hints.has_one_looker() && hints.holders() == Holders::Several);
    is_taken_again(mutex, 23, || release(mutex));
    let (end, _) = waits_as_first(mutex);
    assert!(others_are_done());
    assert_eq!((end, hints.holders()), (SpinEnd::Took, Holders::Several));
    let pauses = PAUSES.take();
    let closely = pauses.iter().rposition(|pauses| *pauses > 16).unwrap();
    assert!(pauses[..closely].contains(&128) && pauses[closely + 1..].len() > 6, "{pauses:?}");
}

/// Otherwise it would be in the queue behind a waiter that waits for a processor, while the mutex
/// is free most of the time.
#[test]
fn a_newcomer_takes_a_monopolised_mutex_that_stays_free() {
    let (mutex, before) = (monopolised(), events_of(MutexOptLock));
    for taken in 1..=DOUBTS {
        assert_eq!(Mutex::hints(mutex).holders(), Holders::One);
        SPINS_MAX.set(100);
        after(1, || release(mutex));
        // SAFETY: another thread has released it by then.
        unsafe { mutex.lock(&()) };
        assert!(others_are_done() && is_quiet(mutex));
        assert_eq!(events_of(MutexOptLock) - before, u64::from(taken));
    }
    assert_eq!(Mutex::hints(mutex).holders(), Holders::Several);
}

#[test]
fn a_newcomer_leaves_a_monopolised_mutex_alone_that_is_taken_again_and_waits_for_no_processor() {
    let mutex = monopolised();
    SPINS_MAX.set(100);
    PAUSES.take();
    after(1, || {
        release(mutex);
        // SAFETY: free.
        meanwhile(|| assert!(unsafe { mutex.try_lock(&()) }));
        after(6, || {
            assert!(WaitQueue::of(mutex).first().is_some(), "it stands in the queue after its last look");
            release(mutex);
        });
    });
    // SAFETY: another thread has released it by then.
    unsafe { mutex.lock(&()) };
    assert!(others_are_done() && is_quiet(mutex));
    assert_eq!(
        PAUSES.take()[..10],
        [1, 2, 1, 4, 8, 8, 8, 8, 8, 1],
        "eight looks, one of them twice; and the first in the queue's"
    );
}

#[test]
fn a_sleeper_of_a_monopolised_mutex_is_woken_in_line_and_has_its_turn_when_it_is_due() {
    let mutex = held();
    let waiters = two_sleepers();
    let [first, second] = &waiters;
    Mutex::hints(mutex).note_retaken();
    fall_asleep(mutex, &waiters);
    release(mutex);
    assert!(!mutex.is_locked() && first.is_signalled());
    assert_eq!(WaitQueue::of(mutex).place_of(first), Place::First);
    assert!(!Mutex::count(mutex).read().is_requested(), "it is awake");
    NOW_NS.set(NOW_NS.get() + MONOPOLISED_DUE_NS + 2048);
    // Without requests, a release visits the chain from time to time.
    for releases in 0.. {
        assert!(releases < 10, "no release looks");
        // SAFETY: free.
        assert!(unsafe { mutex.try_lock(&()) });
        release(mutex);
        if mutex.is_locked() {
            break;
        }
    }
    assert_eq!((first.park(), second.park()), (Signal::Granted, Signal::Woken));
    assert_eq!(WaitQueue::of(mutex).place_of(second), Place::First);
    assert!(!Mutex::count(mutex).read().is_requested(), "it is awake");
    // SAFETY: in the queue.
    assert_eq!(unsafe { WaitQueue::of(mutex).give_up(second) }, Ok(()));
    assert!(is_quiet(mutex));
}

/// The thread that holds the mutex cannot release it before this one parks.
#[test]
fn the_first_in_line_rests_at_once_if_the_holder_has_its_processor() {
    PROCESSOR.set(Some(1));
    Mutex::renew_mark();
    let mutex = monopolised();
    let (end, waited_ns) = waits_as_first(mutex);
    assert_eq!(end, SpinEnd::Over);
    assert!((198_000..204_000).contains(&waited_ns), "{waited_ns} ns");
    assert!(PAUSES.take().is_empty());
    // A cancelled waiter gives up at once.
    let cancellation = Cancellation::default();
    cancellation.cancel();
    let limit = Limit { cancellation: Some(&cancellation), ..Limit::NONE };
    let (waiter, begin_ns) = (Waiter::<OneThread>::default(), NOW_NS.get());
    let end = mutex.look_before_request(&waiter, &mut Spin::default(), &limit);
    assert_eq!((end, NOW_NS.get()), (SpinEnd::Over, begin_ns));
}

/// There are many releases between two visits from now on.
fn visits_seldom(hints: &Hints<OneThread>) {
    for _ in 0..10 {
        hints.looked(Some(0), Hints::<OneThread>::now());
    }
}

/// Locks the mutex as a newcomer that probes. Meanwhile the holder releases the mutex so many
/// times, and takes it again. Returns which threads release the mutex, as far as is known then.
fn found_by_probe(releases: u32) -> Holders {
    let mutex = held();
    let hints = Mutex::hints(mutex);
    NOW_NS.set(NOW_NS.get() + 1_000_000);
    visits_seldom(hints);
    meanwhile(move || {
        for _ in 0..releases {
            release(mutex);
            // SAFETY: free.
            assert!(unsafe { mutex.try_lock(&()) });
        }
        meanwhile(|| release(mutex));
    });
    RANDOM.set(1);
    // SAFETY: another thread has released it by then.
    unsafe { mutex.lock(&()) };
    RANDOM.set(0);
    assert!(others_are_done() && is_quiet(mutex));
    hints.holders()
}

/// It would lock the mutex later than otherwise, and learn nothing.
#[test]
fn a_newcomer_does_not_probe_if_threads_wait() {
    let probes = |mutex: &'static Mutex| {
        RANDOM.set(1);
        meanwhile(|| assert!(WaitQueue::of(mutex).waiters().count() < 2, "it spins first"));
        meanwhile(|| release(mutex));
        // SAFETY: another thread has released it by then.
        unsafe { mutex.lock(&()) };
        RANDOM.set(0);
        assert!(others_are_done());
    };
    let (mutex, waiter) = (held(), Waiter::<OneThread>::default());
    // SAFETY: it stays until it is out of the queue.
    assert_eq!(unsafe { WaitQueue::of(mutex).join(&waiter, 0) }, Place::First);
    probes(mutex);
    // SAFETY: in the queue.
    assert_eq!(unsafe { WaitQueue::of(mutex).give_up(&waiter) }, Ok(()));
    assert!(is_quiet(mutex));
}

#[test]
fn a_newcomer_that_probes_finds_out_how_frequent_releases_are() {
    assert_eq!(found_by_probe(0), Holders::Several);
    assert_eq!(found_by_probe(PROBE_RELEASES - 1), Holders::Several);
    assert_eq!(found_by_probe(PROBE_RELEASES), Holders::One);
    assert_eq!(found_by_probe(PROBE_RELEASES_MAX - 1), Holders::One);
    assert_eq!(found_by_probe(PROBE_RELEASES_MAX), Holders::Several, "it has lost its processor");
}

/// The number of releases tells the rest. So short gaps are used.
#[test]
fn fewer_looks_suffice_while_releases_are_counted() {
    let looks = |mutex: &Mutex| {
        SPINS_MAX.set(1000);
        PAUSES.take();
        assert!(mutex.stays_free(&mut Spin::default()));
        PAUSES.take().len()
    };
    let (mutex, waiter) = (held(), Waiter::<OneThread>::default());
    release(mutex);
    let uncounted = looks(mutex);
    // SAFETY: it stays until it is out of the queue.
    assert_eq!(unsafe { WaitQueue::of(mutex).join(&waiter, 0) }, Place::First);
    assert_eq!((uncounted, looks(mutex)), (6, 3));
    WaitQueue::of(mutex).rest(&waiter);
    assert_eq!(looks(mutex), 6, "no release is counted while it rests");
    // SAFETY: in the queue.
    assert_eq!(unsafe { WaitQueue::of(mutex).give_up(&waiter) }, Ok(()));
}

/// The first waiter is handed the mutex, and the second is parked. At the last step, the second has
/// been woken. If its thread `runs`, it has noticed that. Returns the mutex and the second.
fn second_is_woken(runs: bool) -> (&'static Mutex, &'static Waiter<OneThread>) {
    let mutex = monopolised();
    let waiters: &'static _ = Box::leak(Box::new(two_sleepers()));
    let [first, second] = waiters;
    join_both(mutex, waiters);
    WaitQueue::of(mutex).request(first);
    assert!(second.falls_asleep());
    before_exchange(|| ());
    before_exchange(move || {
        assert!(!Mutex::attention(mutex).read().is_watched(), "it is being woken");
        assert_eq!(UNPARKS.take(), 1);
        if runs {
            assert_eq!(second.park(), Signal::Woken);
        }
    });
    UNPARKS.set(0);
    // SAFETY: held.
    unsafe { mutex.unlock_fair() };
    assert!(exchanges_are_over() && mutex.is_locked() && first.park() == Signal::Granted);
    (mutex, second)
}

/// Releases look after it only while it spins. It may have no processor: then they do so at once.
#[test]
fn a_waiter_that_becomes_first_by_a_hand_over_rests_until_it_runs() {
    let is_watched = |mutex| Mutex::attention(mutex).read().is_watched();
    for runs in [true, false] {
        let (mutex, second) = second_is_woken(runs);
        assert_eq!(is_watched(mutex), !runs);
        if runs {
            SPINS_MAX.set(1000);
            meanwhile(move || assert!(is_watched(mutex)));
            is_taken_again(mutex, 12, || ());
            let end = mutex.look_before_request(second, &mut Spin::default(), &Limit::NONE);
            assert!(end == SpinEnd::Over && !is_watched(mutex) && others_are_done());
        }
        // SAFETY: in the queue.
        assert_eq!(unsafe { WaitQueue::of(mutex).give_up(second) }, Ok(()));
        assert!(is_quiet(mutex));
    }
}

/// A thread that has to be woken may take the processor of the thread that wakes it. The next
/// waiter would be woken late then, and nothing would look after it.
#[test]
fn no_waiter_rests_behind_a_parked_one_that_is_handed_the_mutex() {
    let (mutex, waiters) = (monopolised(), two_sleepers());
    let [first, second] = &waiters;
    fall_asleep(mutex, &waiters);
    let is_watched = move || assert!(Mutex::attention(mutex).read().is_watched());
    // SAFETY: held.
    unsafe { mutex.unlock_fair() };
    is_watched();
    assert_eq!((first.park(), second.park()), (Signal::Granted, Signal::Woken));
    // SAFETY: in the queue.
    assert_eq!(unsafe { WaitQueue::of(mutex).give_up(second) }, Ok(()));
    assert!(is_quiet(mutex));
}
