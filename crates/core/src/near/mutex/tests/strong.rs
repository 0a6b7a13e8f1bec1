//! Strong chains, and waiters that rest.

use super::*;
use crate::near::attention::Strength;

/// A held mutex whose releases have been rare.
pub(super) fn rarely_released() -> &'static Mutex {
    let mutex = held();
    let hints = Mutex::hints(mutex);
    for _ in 0..20 {
        NOW_NS.set(NOW_NS.get() + 1_000_000);
        hints.looked(Some(1000), Hints::<OneThread>::now());
    }
    assert!(hints.is_spinning_futile());
    mutex
}

/// Makes the chain of the mutex strong.
fn strengthen(mutex: &'static Mutex) {
    assert!(WaitQueue::of(mutex).begin_strong());
    WaitQueue::of(mutex).become_strong();
}

fn strength(mutex: &'static Mutex) -> Strength {
    Mutex::attention(mutex).read().strength()
}

/// At whatever moment the mutex is released, the waiter gets it.
#[test]
fn a_waiter_in_a_strong_chain_parks_without_an_alarm_and_without_a_heavy_fence() {
    for step in 0..=SPINS {
        // SAFETY: no thread waits.
        unsafe { forget_chains() };
        let (mutex, heavies, before) = (held(), HEAVIES.get(), events_of(MutexAfterSleep));
        strengthen(mutex);
        after(step, || release(mutex));
        // SAFETY: another thread has released it by then.
        unsafe { mutex.lock(&()) };
        assert!(others_are_done() && is_quiet(mutex), "step {step}");
        assert_eq!(HEAVIES.get(), heavies);
        assert_eq!(events_of(MutexAfterSleep) - before, u64::from(step == SPINS));
    }
}

#[test]
fn a_chain_that_is_visited_often_stays_strong_until_no_thread_has_waited_for_many_releases() {
    let mutex = rarely_released();
    strengthen(mutex);
    let releases = (0..10_000).take_while(|_| {
        release(mutex);
        // SAFETY: free.
        assert!(unsafe { mutex.try_lock(&()) });
        strength(mutex) == Strength::Strong
    });
    assert!((100..1000).contains(&releases.count()));
    assert!(!Mutex::attention(mutex).read().is_raised());
}

#[test]
fn a_chain_whose_sections_become_short_becomes_weak_although_threads_wait() {
    let mutex = rarely_released();
    strengthen(mutex);
    let [requested, waiter] = [(); 2].map(|()| Waiter::<OneThread>::default());
    // SAFETY: they stay until they are out of the queue.
    unsafe {
        let place = WaitQueue::of(mutex).join(&requested, 0);
        assert_eq!(place, Place::Requested(Strength::Strong));
        assert_eq!(WaitQueue::of(mutex).join(&waiter, 0), Place::Behind);
        assert_eq!(WaitQueue::of(mutex).give_up(&requested), Ok(()));
    }
    let releases = (0..1000).take_while(|_| {
        release(mutex);
        // SAFETY: free.
        assert!(unsafe { mutex.try_lock(&()) });
        strength(mutex) == Strength::Strong
    });
    assert!((1..100).contains(&releases.count()));
    assert!(Mutex::attention(mutex).read().is_watched());
    // SAFETY: in the queue.
    assert_eq!(unsafe { WaitQueue::of(mutex).give_up(&waiter) }, Ok(()));
    assert!(is_quiet(mutex));
}

/// Neither does its release count, or visit the chain.
#[test]
fn a_release_while_the_first_rests_reads_no_more_than_without_waiters() {
    let mutex = held();
    let waiters = two_sleepers();
    let [first, second] = &waiters;
    join_both(mutex, &waiters);
    WaitQueue::of(mutex).rest(first);
    assert!(!Mutex::attention(mutex).read().is_raised());
    NOW_NS.set(NOW_NS.get() + 100 * DUE_NS);
    let releases = Mutex::hints(mutex).releases();
    for _ in 0..100 {
        release(mutex);
        // SAFETY: free.
        assert!(unsafe { mutex.try_lock(&()) });
    }
    assert_eq!(Mutex::hints(mutex).releases(), releases);
    WaitQueue::of(mutex).request(first);
    release(mutex);
    assert!(mutex.is_locked() && first.park() == Signal::Granted);
    assert_eq!(WaitQueue::of(mutex).place_of(second), Place::First);
    assert!(Mutex::attention(mutex).read().is_watched());
    WaitQueue::of(mutex).rest(second);
    // SAFETY: in the queue.
    assert_eq!(unsafe { WaitQueue::of(mutex).give_up(second) }, Ok(()));
    assert!(is_quiet(mutex));
}

/// A fair release hands the mutex over to it, and releases look after the next waiter.
#[test]
fn a_first_that_rests_may_be_handed_the_mutex() {
    let mutex = held();
    let waiters = two_sleepers();
    let [first, second] = &waiters;
    join_both(mutex, &waiters);
    WaitQueue::of(mutex).rest(first);
    // SAFETY: held.
    unsafe { mutex.unlock_fair() };
    assert!(mutex.is_locked() && first.park() == Signal::Granted);
    assert!(Mutex::attention(mutex).read().is_watched());
    WaitQueue::of(mutex).rest(first);
    assert!(Mutex::attention(mutex).read().is_watched(), "it is not in the queue any more");
    // SAFETY: in the queue.
    assert_eq!(unsafe { WaitQueue::of(mutex).give_up(second) }, Ok(()));
    assert!(is_quiet(mutex));
}
