use super::*;
use crate::platform::NodeId;
use crate::schedule::OwnerState;
use crate::testing::{
    NOW_NS, OneThread, SLEEPS, SPINS, events_of, meanwhile, others_are_done, set_owner_state,
};
use std::sync::Arc;
use std::vec::Vec;

type Queue = Osq<OneThread>;
type Place = LentNode<Node<OneThread>>;

const _: () = assert!(size_of::<Osq<Native>>() == 4 && size_of::<Node<Native>>() == 20);

fn place(slot: u32) -> Place {
    let id = NodeId { slot, level: 0 };
    LentNode { id, node: OneThread::node(id) }
}

fn thread(slot: u32) -> ThreadId {
    ThreadId::new(slot + 1).unwrap()
}

fn node(slot: u32) -> &'static Node<OneThread> {
    // SAFETY: nodes live as long as the thread of the test.
    unsafe { &*place(slot).node }
}

/// A queue of the threads in these slots, the first of which has its turn.
fn queue_of(slots: &[u32]) -> Arc<Queue> {
    let queue = Arc::new(Queue::new());
    for (i, slot) in slots.iter().enumerate() {
        // SAFETY: each enters once.
        assert_eq!(unsafe { queue.enter(&place(*slot), thread(*slot)) }, i == 0);
    }
    queue
}

/// The slots of the threads in the queue, from the last to the first, by `previous`. Checked
/// against `next`.
fn order(queue: &Queue, first: u32) -> Vec<u32> {
    let slot_of = |name: u32| Tail::decode(name).unwrap().slot;
    let mut slots = Vec::from([slot_of(queue.tail.load(Relaxed))]);
    assert_eq!(node(slots[0]).next.load(Relaxed), NO_NODE);
    while *slots.last().unwrap() != first {
        let last = *slots.last().unwrap();
        let previous = slot_of(node(last).previous.load(Relaxed));
        assert_eq!(slot_of(node(previous).next.load(Relaxed)), last);
        assert_eq!(node(last).previous_thread.load(Relaxed), previous + 1);
        slots.push(previous);
    }
    slots
}

/// A turn of the thread in slot 0.
fn turn<R>(queue: &Queue, spin: &mut Spin, is_over: bool, f: impl FnOnce(&mut Spin) -> R) -> Option<R> {
    // SAFETY: what the tests do in a turn does not unwind.
    unsafe { queue.with_turn(thread(0), spin, || is_over, f) }
}

#[test]
fn a_clock_at_its_end_stops_no_waiter() {
    NOW_NS.set(u64::MAX);
    let (word, mut turn) = (<OneThread as Platform>::U32::new(0), NEIGHBOUR_TURNS);
    Queue::await_neighbour(&word, &mut turn);
    assert_eq!(turn, NEIGHBOUR_TURNS, "it slept");
}

#[test]
fn alone_it_is_its_turn_at_once() {
    let queue = Queue::default();
    assert_eq!(turn(&queue, &mut Spin::default(), false, |_| queue.has_spinner()), Some(true));
    assert!(!queue.has_spinner());
}

#[test]
fn without_a_node_there_is_no_turn() {
    let queue = Queue::new();
    OneThread::without_nodes(|| {
        assert_eq!(turn(&queue, &mut Spin::default(), false, |_| ()), None);
    });
    assert_eq!(events_of(LockEvent::NoNode), 1);
    assert!(!queue.has_spinner());
}

#[test]
fn turns_come_in_order() {
    let queue = queue_of(&[1, 2, 3]);
    assert_eq!(order(&queue, 1), [3, 2, 1]);
    for slot in [1, 2, 3] {
        assert!(slot == 1 || node(slot).granted.load(Relaxed) == 1);
        assert!(slot == 3 || node(slot + 1).granted.load(Relaxed) == 0);
        // SAFETY: it has its turn.
        unsafe { queue.release(&place(slot)) };
    }
    assert!(!queue.has_spinner());
}

#[test]
fn a_turn_that_comes_in_time_is_taken() {
    let queue = queue_of(&[5]);
    let other = queue.clone();
    // SAFETY: it has its turn.
    meanwhile(move || unsafe { other.release(&place(5)) });
    assert_eq!(turn(&queue, &mut Spin::default(), false, |spin| spin.turns), Some(1));
    assert!(others_are_done() && !queue.has_spinner());
}

#[test]
fn a_waiter_that_has_spun_enough_leaves() {
    let queue = queue_of(&[5, 6]);
    let mut spin = Spin::default();
    assert_eq!(turn(&queue, &mut spin, false, |_| ()), None);
    assert!(spin.turns > SPINS);
    assert_eq!(order(&queue, 5), [6, 5]);
    assert_eq!((events_of(LockEvent::OsqLeave), events_of(LockEvent::OsqGranted)), (1, 0));
}

#[test]
fn a_waiter_that_may_not_wait_any_longer_leaves() {
    let queue = queue_of(&[5, 6]);
    let mut spin = Spin::default();
    assert_eq!(turn(&queue, &mut spin, true, |_| ()), None);
    assert_eq!((spin.turns, order(&queue, 5)), (0, Vec::from([6, 5])));
}

#[test]
fn a_waiter_leaves_from_between_two() {
    let queue = queue_of(&[1, 2, 3, 4]);
    // SAFETY: they wait, here and below.
    unsafe {
        assert!(!queue.leave(&place(2)));
        assert_eq!(order(&queue, 1), [4, 3, 1]);
        assert!(!queue.leave(&place(3)));
        assert_eq!(order(&queue, 1), [4, 1]);
        assert!(!queue.leave(&place(4)));
        assert_eq!(order(&queue, 1), [1]);
        queue.release(&place(1));
    }
    assert!(!queue.has_spinner());
}

#[test]
fn a_waiter_that_is_granted_as_it_leaves_has_its_turn() {
    let queue = queue_of(&[1, 2]);
    // SAFETY: in their turns.
    unsafe {
        queue.release(&place(1));
        assert!(queue.leave(&place(2)));
        assert_eq!(events_of(LockEvent::OsqGranted), 1);
        queue.release(&place(2));
    }
    assert!(!queue.has_spinner());
}

#[test]
fn a_predecessor_that_does_not_run_is_not_waited_for() {
    let queue = queue_of(&[5, 6]);
    set_owner_state(thread(6), OwnerState::Asleep);
    let mut spin = Spin::default();
    assert_eq!(turn(&queue, &mut spin, false, |_| ()), None);
    assert!(spin.turns < SPINS);
}

#[test]
fn a_predecessor_that_has_left_does_not_count() {
    let queue = queue_of(&[5, 6]);
    let other = queue.clone();
    // SAFETY: they wait, or have their turn.
    meanwhile(move || unsafe {
        assert!(!other.leave(&place(6)));
        set_owner_state(thread(6), OwnerState::Asleep);
    });
    let other = queue.clone();
    // SAFETY: as above.
    meanwhile(move || unsafe { other.release(&place(5)) });
    assert_eq!(turn(&queue, &mut Spin::default(), false, |_| ()), Some(()));
    assert!(others_are_done());
}

#[test]
fn a_thread_that_waits_for_a_neighbour_without_a_processor_sleeps_after_so_many_turns() {
    let queue = queue_of(&[0]);
    // A newcomer has swapped the tail, and loses its processor before it links itself in.
    let newcomer = Tail::encode(place(1).id).bits();
    queue.tail.store(newcomer, Relaxed);
    for _ in 0..NEIGHBOUR_TURNS {
        meanwhile(|| assert_eq!(SLEEPS.get(), 0));
    }
    meanwhile(move || {
        assert_eq!(SLEEPS.get(), 1);
        node(0).next.store(newcomer, Relaxed);
    });
    // SAFETY: it has entered.
    unsafe { queue.release(&place(0)) };
    assert!(others_are_done());
    assert_eq!(node(1).granted.load(Relaxed), 1);
}
