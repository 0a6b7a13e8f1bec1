//! Waiters that are parked with an alarm, before they pass the heavy side of the fence.

use super::strong::rarely_released;
use super::*;

/// A waiter parks with an alarm before it passes the heavy fence.
#[test]
fn no_thread_passes_a_heavy_fence_for_a_short_wait_or_sleeps_long_without_one() {
    for (ns, fences) in [(100_000, 0), (ALARM_NS, 0), (ALARM_NS + 1, 1), (5_000_000, 1)] {
        // SAFETY: no thread waits. The chain may have become strong.
        unsafe { forget_chains() };
        let (mutex, before, end_ns) = (held(), HEAVIES.get(), NOW_NS.get() + ns);
        // SAFETY: it is not acquired.
        assert_eq!(unsafe { mutex.lock_within(&(), &Limit::until(end_ns)) }, Err(TimedOut));
        assert_eq!((HEAVIES.get() - before, NOW_NS.get()), (fences, end_ns), "{ns} ns");
        assert!(is_quiet(mutex));
    }
}

/// Releases may have missed the request of a waiter that has not passed the fence. So they may miss
/// that of the next waiter.
#[test]
fn a_waiter_that_is_woken_before_its_alarm_stays_first() {
    let mutex = held();
    let second: &'static Waiter<OneThread> = std::boxed::Box::leak(std::boxed::Box::default());
    after(PARKS_AT, || {
        // SAFETY: it stays until it is out of the queue.
        assert_eq!(unsafe { WaitQueue::of(mutex).join(second, 0) }, Place::Behind);
        assert!(second.falls_asleep());
        release(mutex);
        assert_eq!(WaitQueue::of(mutex).place_of(second), Place::Behind);
        assert!(!second.is_signalled() && !Mutex::count(mutex).read().is_requested(), "the first is awake");
    });
    let before = HEAVIES.get();
    // SAFETY: another thread has released it by then.
    unsafe { mutex.lock(&()) };
    assert!(others_are_done() && mutex.is_locked() && HEAVIES.get() == before);
    assert_eq!(WaitQueue::of(mutex).place_of(second), Place::First);
    assert!(Mutex::count(mutex).read().is_requested(), "the next release wakes it");
    // SAFETY: in the queue.
    assert_eq!(unsafe { WaitQueue::of(mutex).give_up(second) }, Ok(()));
    assert!(is_quiet(mutex));
}

/// A waiter reads the word before it parks with an alarm.
#[test]
fn a_waiter_that_sleeps_by_the_clock_has_found_the_mutex_held() {
    let mutex = held();
    SPINS_MAX.set(0);
    let waiter = Waiter::<OneThread>::default();
    // SAFETY: it stays until it is out of the queue.
    assert_eq!(unsafe { WaitQueue::of(mutex).join(&waiter, 0) }, Place::First);
    mutex.free();
    let begin_ns = NOW_NS.get();
    assert!(mutex.take_as_first(&waiter, &mut Spin::default(), &Limit::NONE));
    assert_eq!(NOW_NS.get(), begin_ns);
    // SAFETY: it holds the mutex.
    unsafe { WaitQueue::of(mutex).leave_with_mutex(&waiter) };
    assert!(is_quiet(mutex));
}

/// A cancellation wakes it. A canceller that wakes it again and again would otherwise keep it
/// there.
#[test]
fn a_waiter_whose_limit_is_reached_does_not_park_again() {
    let mutex = held();
    let cancellation: &'static Cancellation<OneThread> = std::boxed::Box::leak(std::boxed::Box::default());
    let limit = Limit { until_ns: None, cancellation: Some(cancellation) };
    after(PARKS_AT, || cancellation.cancel());
    let begin_ns = NOW_NS.get();
    // SAFETY: it is not acquired.
    assert_eq!(unsafe { mutex.lock_within(&(), &limit) }, Err(Cancelled));
    assert_eq!(NOW_NS.get(), begin_ns, "it does not wait for its alarm");
    assert!(others_are_done() && is_quiet(mutex));
}

/// The holder does not run, or it has moved. It may run once this thread yields or sleeps.
#[test]
fn no_thread_spins_while_the_holder_has_its_processor() {
    RANDOM.set(2);
    for (processor, pauses) in [(Some(1), 0), (Some(2), 1), (None, 1)] {
        PROCESSOR.set(Some(1));
        let mutex = held();
        PROCESSOR.set(processor);
        SPINS_MAX.set(u32::MAX);
        PAUSES.take();
        meanwhile(|| release(mutex));
        // SAFETY: another thread releases it when this thread pauses or yields.
        unsafe { mutex.lock(&()) };
        assert!(others_are_done());
        assert_eq!(PAUSES.take().len(), pauses, "{processor:?}");
    }
}

/// Otherwise it would take a holder on its former processor for one that does not run.
#[test]
fn a_thread_that_is_moved_while_it_is_parked_with_an_alarm_notes_that() {
    let mutex = held();
    PROCESSOR.set(Some(1));
    after(PARKS_AT, || {
        PROCESSOR.set(Some(2));
        NOW_NS.set(NOW_NS.get() + ALARM_NS);
    });
    meanwhile(|| release(mutex));
    // SAFETY: another thread has released it by then.
    unsafe { mutex.lock(&()) };
    assert!(others_are_done());
    let on = |processor| Mark::new(OTHER, Some(processor));
    assert_eq!(
        [1, 2].map(|on_it| mutex.place_of_holder(on(on_it))),
        [HolderPlace::Elsewhere, HolderPlace::Here]
    );
}

/// So the wait costs a sleep. The first one also costs a heavy fence.
#[test]
fn no_thread_spins_or_yields_for_a_mutex_whose_releases_are_rare() {
    let mutex = rarely_released();
    SPINS_MAX.set(u32::MAX);
    PAUSES.take();
    for fences in [1, 0, 0, 0, 0, 0, 0, 0] {
        let (before, heavies) = ([MutexAfterSleep, MutexWake].map(events_of), HEAVIES.get());
        (0..fences).for_each(|_| meanwhile(|| ()));
        meanwhile(|| {
            NOW_NS.set(NOW_NS.get() + 500_000);
            release(mutex);
        });
        // SAFETY: another thread has released it by then.
        unsafe { mutex.lock(&()) };
        assert!(others_are_done() && is_quiet(mutex));
        assert!(PAUSES.take().is_empty());
        assert_eq!(HEAVIES.get() - heavies, fences);
        assert_eq!([MutexAfterSleep, MutexWake].map(events_of), before.map(|count| count + 1));
    }
}

/// So a sleep for each section costs neither a lock of the chain more, nor a reading of the clock.
#[test]
fn a_dequeued_waiter_need_not_lock_the_chain_and_the_next_one_is_stamped_by_the_next_release() {
    let mutex = held();
    let waiters = two_sleepers();
    let [first, second] = &waiters;
    NOW_NS.set(NOW_NS.get() + 1_000_000);
    fall_asleep(mutex, &waiters);
    release(mutex);
    assert_eq!(WaitQueue::note_of(second).since_ns, None);
    let locked = WaitQueue::of(mutex);
    assert!(first.park() == Signal::Granted && WaitQueue::is_dequeued(first));
    NOW_NS.set(NOW_NS.get() + 5 * 1024);
    locked.looked();
    drop(locked);
    assert_eq!(WaitQueue::note_of(second).since_ns, Some(5 * 1024), "since the visit before");
    // SAFETY: in the queue.
    assert_eq!(unsafe { WaitQueue::of(mutex).give_up(second) }, Ok(()));
    assert!(is_quiet(mutex));
}
