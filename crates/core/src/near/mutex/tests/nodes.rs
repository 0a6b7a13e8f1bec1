//! Waiters on several NUMA nodes.

use std::vec::Vec;

use super::*;
use crate::near::mutex::line::{PREFERRED, PREFERRED_AMONG};
use crate::testing::NUMA_NODE;

/// Waiters on these nodes, in line in this order. They ask for nothing.
fn in_line(mutex: &Mutex, nodes: &[u32]) -> Vec<Waiter<OneThread>> {
    let waiters: Vec<Waiter<OneThread>> = nodes.iter().map(|_| Waiter::default()).collect();
    for (waiter, node) in waiters.iter().zip(nodes) {
        NUMA_NODE.set(*node);
        // SAFETY: they stay until they are out of the line.
        unsafe { Line::of(mutex).join(waiter) };
    }
    waiters
}

/// In which order they are handed the mutex, each this long after the one before.
fn served(mutex: &Mutex, waiters: &[Waiter<OneThread>], each_ns: u64) -> Vec<usize> {
    let hand_over = |_| {
        let first = Line::of(mutex).first().map(ptr::from_ref).expect("a line");
        NOW_NS.set(NOW_NS.get() + each_ns);
        // SAFETY: for whoever holds it.
        unsafe { mutex.unlock_fair() };
        waiters.iter().position(|waiter| ptr::eq(waiter, first)).unwrap()
    };
    let order = (0..waiters.len()).map(hand_over).collect();
    assert!(mutex.is_locked() && is_quiet(mutex));
    release(mutex);
    order
}

/// In which order waiters on these nodes are handed the mutex.
fn order_of(nodes: &[u32], each_ns: u64) -> Vec<usize> {
    let mutex = held();
    let waiters = in_line(mutex, nodes);
    served(mutex, &waiters, each_ns)
}

#[test]
fn waiters_of_the_node_that_has_the_mutex_go_first_in_the_order_of_their_coming() {
    assert_eq!(order_of(&[3; 5], 1000), [0, 1, 2, 3, 4]);
    assert_eq!(order_of(&[0, 1, 0, 2, 1, 0, 2], 1000), [0, 2, 5, 1, 4, 3, 6]);
}

/// They need not all have been there from the beginning.
#[test]
fn who_comes_later_on_the_node_that_has_the_mutex_is_preferred_too() {
    let mutex = held();
    let waiters = in_line(mutex, &[0, 1, 0]);
    // SAFETY: for whoever holds it.
    unsafe { mutex.unlock_fair() };
    let late = in_line(mutex, &[0]);
    // SAFETY: as above.
    unsafe { mutex.unlock_fair() };
    assert!(Line::of(mutex).first().is_some_and(|first| ptr::eq(first, &late[0])));
    for left in (0..2).rev() {
        // SAFETY: as above.
        unsafe { mutex.unlock_fair() };
        assert_eq!(Line::of(mutex).first().is_some(), left > 0);
    }
    assert!(waiters[1].is_signalled() && is_quiet(mutex));
}

/// Whenever that is: times go round, and one of them is 0.
#[test]
fn whoever_is_next_is_passed_over_for_a_turn_at_most() {
    let nodes: Vec<u32> = (0..200).map(|n| u32::from(n == 1)).collect();
    for begin_ns in [0, (1 << 30) - 1024, 1 << 30] {
        NOW_NS.set(begin_ns);
        let each_ns = NODE_TURN_NS / 10;
        let before = order_of(&nodes, each_ns).iter().position(|n| *n == 1).unwrap();
        assert!((11..=11 + PREFERRED).contains(&before), "{before} from {begin_ns}");
        // Rarely: it is due when those go who were preferred at once.
        NOW_NS.set(begin_ns);
        assert_eq!(order_of(&nodes, 2 * NODE_TURN_NS).iter().position(|n| *n == 1), Some(1 + PREFERRED));
    }
}

#[test]
fn those_far_behind_are_not_looked_for() {
    let mut nodes = [1; PREFERRED_AMONG + 2];
    nodes[0] = 0;
    nodes[PREFERRED_AMONG + 1] = 0;
    assert_eq!(order_of(&nodes, 0)[1], 1);
    nodes[PREFERRED_AMONG] = 0;
    assert_eq!(order_of(&nodes, 0)[1], PREFERRED_AMONG);
}

/// Some locks have no platform that knows nodes, and some waiters were put into the line by others.
#[test]
fn a_waiter_whose_node_is_not_known_prefers_nobody() {
    let mutex = held();
    let waiters = in_line(mutex, &[0, 1, 0]);
    waiters.iter().for_each(|waiter| waiter.note.store(0, Relaxed));
    assert_eq!(served(mutex, &waiters, 1000), [0, 1, 2]);
}
