//! Waiters on several NUMA nodes.

use std::vec::Vec;

use super::*;
use crate::near::mutex::queue::{PREFERRED, PREFERRED_AMONG};

/// Waiters on these NUMA nodes, in the queue in this order. They make no requests.
fn queued(mutex: &Mutex, nodes: &[u32]) -> Vec<Waiter<OneThread>> {
    let waiters: Vec<Waiter<OneThread>> = nodes.iter().map(|_| Waiter::default()).collect();
    for (waiter, node) in waiters.iter().zip(nodes) {
        // SAFETY: they stay until they are out of the queue.
        unsafe { WaitQueue::of(mutex).join(waiter, *node) };
    }
    waiters
}

/// The order in which they are handed the mutex, with this time between two hand-overs.
fn served(mutex: &Mutex, waiters: &[Waiter<OneThread>], each_ns: u64) -> Vec<usize> {
    let hand_over = |_| {
        let first = WaitQueue::of(mutex).first().map(ptr::from_ref).expect("a queue");
        NOW_NS.set(NOW_NS.get() + each_ns);
        // SAFETY: for the thread that holds it.
        unsafe { mutex.unlock_fair() };
        waiters.iter().position(|waiter| ptr::eq(waiter, first)).unwrap()
    };
    let order = (0..waiters.len()).map(hand_over).collect();
    assert!(mutex.is_locked() && is_quiet(mutex));
    release(mutex);
    order
}

/// The order in which waiters on these NUMA nodes are handed the mutex.
fn order_of(nodes: &[u32], each_ns: u64) -> Vec<usize> {
    let mutex = held();
    let waiters = queued(mutex, nodes);
    served(mutex, &waiters, each_ns)
}

#[test]
fn waiters_of_the_node_that_has_the_mutex_go_first_in_the_order_of_their_coming() {
    assert_eq!(order_of(&[3; 5], 1000), [0, 1, 2, 3, 4]);
    assert_eq!(order_of(&[0, 1, 0, 2, 1, 0, 2], 1000), [0, 2, 5, 1, 4, 3, 6]);
}

/// The waiters may arrive at different times.
#[test]
fn a_later_waiter_on_the_node_that_has_the_mutex_is_preferred_too() {
    let mutex = held();
    let waiters = queued(mutex, &[0, 1, 0]);
    // SAFETY: for the thread that holds it.
    unsafe { mutex.unlock_fair() };
    let late = queued(mutex, &[0]);
    // SAFETY: as above.
    unsafe { mutex.unlock_fair() };
    assert!(WaitQueue::of(mutex).first().is_some_and(|first| ptr::eq(first, &late[0])));
    for left in (0..2).rev() {
        // SAFETY: as above.
        unsafe { mutex.unlock_fair() };
        assert_eq!(WaitQueue::of(mutex).first().is_some(), left > 0);
    }
    assert!(waiters[1].is_signalled() && is_quiet(mutex));
}

/// At any time: times wrap around, and one of them is 0. The waiter is due when the waiters that
/// were preferred together have left.
#[test]
fn the_next_in_line_is_passed_over_for_a_turn_and_the_waiters_preferred_by_then() {
    let nodes: Vec<u32> = (0..200).map(|n| u32::from(n == 1)).collect();
    for begin_ns in [0, (1 << 30) - 10_000, (1 << 30) - 500_000] {
        NOW_NS.set(begin_ns);
        let place = |each_ns| order_of(&nodes, each_ns).iter().position(|n| *n == 1);
        assert_eq!(place(NODE_TURN_NS / 100), Some(1 + 4 * PREFERRED), "from {begin_ns}");
        assert_eq!(place(2 * NODE_TURN_NS), Some(1 + PREFERRED), "from {begin_ns}");
    }
}

/// All locks of the test are in one chain.
#[test]
fn waiters_of_another_lock_are_left_where_they_are() {
    let (mutex, other) = (held(), held());
    let waiters: [Waiter<OneThread>; 6] = std::array::from_fn(|_| Waiter::default());
    for (n, node) in [0, 0, 1, 1, 0, 0].into_iter().enumerate() {
        let queue = WaitQueue::of([mutex, other][n % 2]);
        // SAFETY: they stay until they are out of the queue.
        unsafe { queue.join(&waiters[n], node) };
    }
    let order = |mutex: &Mutex| {
        let of_mutex = |_| {
            let first = WaitQueue::of(mutex).first().map(ptr::from_ref).expect("a queue");
            // SAFETY: for the thread that holds it.
            unsafe { mutex.unlock_fair() };
            waiters.iter().position(|waiter| ptr::eq(waiter, first)).unwrap()
        };
        [0, 1, 2].map(of_mutex)
    };
    assert_eq!(order(mutex), [0, 4, 2]);
    assert_eq!(order(other), [1, 5, 3]);
}

/// The first is dequeued. The next release must wake the waiter that was preferred.
#[test]
fn a_sleeper_that_is_preferred_is_woken_next() {
    let mutex = held();
    let waiters = queued(mutex, &[0, 1, 0]);
    assert!(waiters.iter().all(Waiter::falls_asleep));
    WaitQueue::of(mutex).request(&waiters[0]);
    release(mutex);
    assert!(!mutex.is_locked() && waiters[0].is_signalled());
    assert!(WaitQueue::of(mutex).first().is_some_and(|first| ptr::eq(first, &waiters[2])));
    for next in [2, 1] {
        assert!(Mutex::count(mutex).read().is_requested() && !waiters[next].is_signalled());
        // SAFETY: free.
        assert!(unsafe { mutex.try_lock(&()) });
        release(mutex);
        assert!(waiters[next].is_signalled());
    }
    assert!(is_quiet(mutex));
}

/// A waiter that takes the mutex leaves the queue as others do.
#[test]
fn a_waiter_that_leaves_with_the_mutex_prefers_its_node() {
    let mutex = held();
    let waiters = queued(mutex, &[2, 1, 2]);
    // SAFETY: it is first, and the mutex is held for it.
    unsafe { WaitQueue::of(mutex).leave_with_mutex(&waiters[0]) };
    assert!(WaitQueue::of(mutex).first().is_some_and(|first| ptr::eq(first, &waiters[2])));
    assert_eq!(served(mutex, &waiters[1..], 1000), [1, 0]);
}

#[test]
fn turns_of_a_monopolised_mutex_are_in_the_order_of_coming() {
    let mutex = held();
    let waiters = queued(mutex, &[0, 1, 0, 1]);
    Mutex::hints(mutex).note_retaken();
    assert_eq!(served(mutex, &waiters, 1000), [0, 1, 2, 3]);
}

#[test]
fn waiters_far_behind_are_not_searched_for() {
    let mut nodes = [1; PREFERRED_AMONG + 2];
    nodes[0] = 0;
    nodes[PREFERRED_AMONG + 1] = 0;
    assert_eq!(order_of(&nodes, 0)[1], 1);
    nodes[PREFERRED_AMONG] = 0;
    assert_eq!(order_of(&nodes, 0)[1], PREFERRED_AMONG);
}

#[test]
fn a_queue_that_adopts_no_waiter_wakes_none() {
    let mutex = Mutex::new();
    // SAFETY: there is no waiter.
    unsafe { WaitQueue::of(&mutex).adopt(WakeList::EMPTY, Notifier::Other) };
    assert!(WaitQueue::of(&mutex).first().is_none());
}
