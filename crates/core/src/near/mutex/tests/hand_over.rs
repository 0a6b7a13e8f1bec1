//! Hand-overs to a waiter that sleeps.

use super::*;
use crate::near::mutex::hints::HolderPlace;
use crate::testing::SHORTAGES_SEEN;

#[test]
fn a_sleeper_whose_turn_is_due_is_handed_the_mutex() {
    // Its alarm has gone off before.
    let due_ns = DUE_NS - ALARM_NS;
    for (waited_ns, hand_overs) in [(due_ns - 10_000, 0), (due_ns + 10_000, 1)] {
        let mutex = held();
        let before = events_of(MutexHandOver);
        after(SLEEPS_AT, move || {
            NOW_NS.set(NOW_NS.get() + waited_ns);
            release(mutex);
            assert_eq!(mutex.is_locked(), hand_overs == 1);
        });
        // SAFETY: another thread has released it by then.
        unsafe { mutex.lock(&()) };
        assert_eq!(events_of(MutexHandOver) - before, hand_overs);
        assert!(is_quiet(mutex));
    }
}

/// The holders of this chain, and of many others, often have no processor.
#[test]
fn a_sleeper_is_handed_the_mutex_at_once_while_processors_are_short() {
    for (chains, hand_overs) in [(0, 0), (u32::MAX, 1)] {
        // SAFETY: no thread waits.
        unsafe { forget_chains() };
        // In a period that the chain does not seem to have noted.
        NOW_NS.set(1 << 29);
        let mutex = held();
        let hints = Mutex::hints(mutex);
        for _ in 0..20 {
            NOW_NS.set(NOW_NS.get() + 20_000);
            hints.looked(Some(20), Hints::<OneThread>::now());
            hints.note_holder(HolderPlace::Here);
        }
        SHORTAGES_SEEN.set(chains);
        let before = events_of(MutexHandOver);
        // After the heavy fence.
        after(1, move || {
            NOW_NS.set(NOW_NS.get() + 20_000);
            release(mutex);
            assert_eq!(mutex.is_locked(), hand_overs == 1);
        });
        // SAFETY: another thread has released it by then.
        unsafe { mutex.lock(&()) };
        assert_eq!(events_of(MutexHandOver) - before, hand_overs, "{chains} chains");
        assert!(others_are_done() && is_quiet(mutex));
    }
}

#[test]
fn a_fair_release_hands_over_to_a_sleeper_at_once() {
    let mutex = held();
    after(SLEEPS_AT, || {
        // SAFETY: for the thread that holds it.
        unsafe { mutex.unlock_fair() };
        assert!(mutex.is_locked());
    });
    // SAFETY: another thread has released it by then.
    unsafe { mutex.lock(&()) };
    assert!(is_quiet(mutex));
}

/// Of a release that only wakes a notified waiter, the clock need not be read.
#[test]
fn a_release_is_not_noted_if_the_only_waiter_was_notified_and_leaves() {
    for notified in [1, 2] {
        // SAFETY: no thread waits.
        unsafe { forget_chains() };
        NOW_NS.set(1 << 29);
        let mutex = held();
        let waiters = two_sleepers();
        let mut list = WakeList::EMPTY;
        for waiter in &waiters[..notified] {
            assert!(waiter.falls_asleep());
            // SAFETY: it stays until it is out of the queue; nothing else is changed.
            unsafe { Locked::<OneThread, Near>::of(mutex).push(Queue::Shared, waiter) };
        }
        // SAFETY: as above.
        unsafe { Locked::<OneThread, Near>::of(mutex) }.take_all(Queue::Shared, &mut list);
        // SAFETY: as above.
        unsafe { WaitQueue::of(mutex).adopt(list, Notifier::Holder) };
        release(mutex);
        assert!(waiters[0].is_signalled() && !waiters[1].is_signalled());
        assert_eq!(Mutex::hints(mutex).read().last_ago_ns.is_some(), notified == 2, "{notified}");
        if notified == 2 {
            // SAFETY: free.
            assert!(unsafe { mutex.try_lock(&()) });
            release(mutex);
            assert!(waiters[1].is_signalled());
        }
        assert!(is_quiet(mutex));
    }
}
