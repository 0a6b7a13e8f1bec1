use core::cell::Cell;
use core::ptr;
use std::boxed::Box;

use super::*;
use crate::native::Native;
use crate::parking::Cancellation;
use crate::testing::{NOW_NS, OneThread, events_of, forget_chains, meanwhile, others_are_done};

/// A family without data beside the queues. No test uses the other family with its table.
struct Bare;

// SAFETY: there is nothing beside the queues.
unsafe impl Family for Bare {
    type Beside<P: Platform> = ();
    const TABLE: usize = 1;
}

const _: () = assert!(size_of::<Chain<Native, Bare>>() == 64);

type Chained = Locked<'static, OneThread, Bare>;

/// Addresses of locks, which all have the same chain.
const LOCKS: [*const u64; 2] = [ptr::without_provenance(0x1000), ptr::without_provenance(0x2000)];

fn locked(lock: usize) -> Chained {
    // SAFETY: no lock is at this address.
    unsafe { Locked::of(LOCKS[lock]) }
}

fn leaked<T: Default>() -> &'static T {
    Box::leak(Box::default())
}

/// Puts a waiter of another thread into the queue.
fn sleeper(lock: usize, queue: Queue) -> &'static Waiter<OneThread> {
    let waiter = leaked();
    // SAFETY: it stays for ever.
    unsafe { locked(lock).enqueue(queue, waiter) };
    waiter
}

/// Whether a release has taken the waiter out, and woken it.
fn is_awake(waiter: &Waiter<OneThread>) -> bool {
    waiter.park_within(&Limit::until(0)) == Ok(Signal::Granted)
}

#[test]
fn a_release_wakes_all_of_one_queue_of_one_lock() {
    let first = sleeper(0, Queue::Exclusive);
    let others = [sleeper(1, Queue::Exclusive), sleeper(0, Queue::Shared)];
    let last = sleeper(0, Queue::Exclusive);
    let counts = |lock| [Queue::Exclusive, Queue::Shared].map(|queue| locked(lock).count(queue));
    assert_eq!((counts(0), counts(1)), ([2, 1], [1, 0]));
    locked(0).wake_all(Queue::Exclusive);
    assert!(is_awake(first) && is_awake(last));
    assert!(!others.into_iter().any(is_awake));
    assert_eq!((counts(0), counts(1)), ([0, 1], [1, 0]));
}

#[test]
fn a_waiter_that_was_taken_out_sleeps_until_the_chain_is_unlocked() {
    let waiter = sleeper(0, Queue::Shared);
    let chain = locked(0);
    let mut wake_list = WakeList::EMPTY;
    chain.take_all(Queue::Shared, &mut wake_list);
    assert_eq!(chain.count(Queue::Shared), 0);
    assert!(!is_awake(waiter));
    chain.wake(wake_list);
    assert!(is_awake(waiter));
}

#[test]
fn a_sleeper_sleeps_until_a_release_of_its_lock() {
    meanwhile(|| locked(1).wake_all(Queue::Exclusive));
    meanwhile(|| locked(0).wake_all(Queue::Shared));
    meanwhile(|| locked(0).wake_all(Queue::Exclusive));
    let before = [LockEvent::ChainSleep, LockEvent::ChainWake].map(events_of);
    locked(0).sleep(Queue::Exclusive);
    assert!(others_are_done());
    assert_eq!([LockEvent::ChainSleep, LockEvent::ChainWake].map(events_of), [before[0] + 1, before[1] + 3]);
}

#[test]
fn a_sleeper_whose_time_is_over_leaves_the_queue_and_has_the_chain() {
    let other = sleeper(0, Queue::Shared);
    NOW_NS.set(10);
    let Err(abandoned) = locked(0).sleep_within(Queue::Shared, &Limit::until(20)) else { panic!("woken") };
    assert_eq!((abandoned.why, abandoned.chain.count(Queue::Shared)), (GaveUp::TimedOut, 1));
    abandoned.chain.wake_all(Queue::Shared);
    assert!(is_awake(other));
}

#[test]
fn a_cancelled_sleeper_leaves_and_one_that_was_taken_out_does_not() {
    let cancellation = leaked::<Cancellation<OneThread>>();
    let limit = Limit { until_ns: None, cancellation: Some(cancellation) };
    let wake_list: &'static Cell<Option<WakeList<OneThread>>> = leaked();
    // Taken out, cancelled, and then woken.
    meanwhile(move || {
        let mut taken = WakeList::EMPTY;
        locked(0).take_all(Queue::Exclusive, &mut taken);
        wake_list.set(Some(taken));
        cancellation.cancel();
    });
    meanwhile(|| locked(0).wake(wake_list.take().expect("taken out")));
    assert!(locked(0).sleep_within(Queue::Exclusive, &limit).is_ok());
    assert!(others_are_done());
    // Cancelled before it sleeps.
    let why = locked(0).sleep_within(Queue::Exclusive, &limit).map_err(|abandoned| abandoned.why);
    assert_eq!(why, Err(GaveUp::Cancelled));
    assert_eq!(locked(0).count(Queue::Exclusive), 0);
}

#[test]
fn waiters_that_a_fork_leaves_behind_are_forgotten() {
    let gone = [sleeper(0, Queue::Exclusive), sleeper(1, Queue::Shared)];
    core::mem::forget(locked(0));
    // SAFETY: the waiters in the chain are not used any more.
    unsafe { forget_chains() };
    let count = |lock, queue| locked(lock).count(queue);
    assert_eq!([count(0, Queue::Exclusive), count(1, Queue::Shared)], [0, 0]);
    let new = sleeper(0, Queue::Exclusive);
    locked(0).wake_all(Queue::Exclusive);
    assert!(is_awake(new) && !gone.into_iter().any(is_awake));
}
