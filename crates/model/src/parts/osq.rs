//! Models of the optimistic spin queue, whose waiters may leave at any time.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use nearlock_collection::linux::osq::{Node, Osq};
use nearlock_core::events::LockEvent;
use nearlock_core::platform::{LentNode, NodeId};
use nearlock_core::schedule::Spin;

use crate::engine::{Counter, Engine, Others, Thread};
use crate::exclusion::in_slot;
use crate::model::Model;

/// The behaviour of a thread in the queue.
#[derive(Clone, Copy, Debug)]
enum Does {
    /// Has been in the queue from the start, and leaves.
    Leaves,
    /// Has been there from the start, and waits for its turn.
    Stays,
    /// Leaves, comes back with the same node, and waits for its turn.
    Returns,
    /// Comes, and waits for its turn.
    Comes,
    /// Comes, and waits for as long as it chooses.
    Visits,
}
use Does::{Comes, Leaves, Returns, Stays, Visits};

/// A queue, the data that its turns access, and how many turns there have been.
struct OsqState<E: Engine> {
    queue: Osq<E>,
    count: E::Counter,
    turns: AtomicU32,
}

impl<E: Engine> Default for OsqState<E> {
    fn default() -> Self {
        Self { queue: Osq::default(), count: E::Counter::default(), turns: AtomicU32::new(0) }
    }
}

fn place<E: Engine>(slot: u32) -> LentNode<Node<E>> {
    let id = NodeId { slot, level: 0 };
    LentNode { id, node: E::node(id) }
}

fn thread(slot: u32, does: Does) -> Thread {
    Thread { is_patient: !matches!(does, Visits), ..in_slot(slot) }
}

impl<E: Engine> OsqState<E> {
    fn turn(&self) {
        self.count.add_one();
        self.turns.fetch_add(1, Relaxed);
    }

    /// The rest of the turn of the thread in this slot.
    fn end_turn(&self, slot: u32) {
        self.turn();
        // SAFETY: the callers have the turn.
        unsafe { self.queue.release(&place(slot)) };
    }

    /// A turn of a thread from outside the queue. Returns whether there was one.
    fn visit(&self) -> bool {
        // SAFETY: a turn does not unwind, except where the execution fails.
        unsafe { self.queue.with_turn(E::thread_id(), &mut Spin::default(), || false, |_| self.turn()) }
            .is_some()
    }

    fn do_as(&self, slot: u32, does: Does) {
        // SAFETY: `staged` has entered the node.
        let granted = |has_left: bool| unsafe {
            match has_left {
                true => self.queue.leave(&place(slot)),
                false => self.queue.wait(&place(slot), &mut Spin::default(), || false),
            }
        };
        match does {
            Leaves | Returns if granted(true) => self.end_turn(slot),
            Stays => {
                assert!(granted(false), "it is patient");
                self.end_turn(slot);
            }
            Returns | Comes => assert!(self.visit(), "it is patient"),
            Leaves => {}
            Visits => _ = self.visit(),
        }
    }

    /// Checks that all turns were one after the other, and that the queue is empty.
    fn finish(&self) {
        assert_eq!(self.count.get(), self.turns.load(Relaxed));
        assert!(!self.queue.has_spinner(), "the queue is empty at last");
    }
}

/// The first thread has its turn, and these threads are behind it, in slots from 1 on. The first
/// thread ends its turn, and has as many other turns as `rounds` says.
fn staged<E: Engine>(
    situation: &str,
    follow: &'static [Does],
    rounds: u32,
    preemptions: Option<usize>,
) -> Model<E> {
    let slots = follow.len() as u32 + 1;
    Model::new(format!("osq: {situation}"), slots, preemptions, move || {
        let shared = Arc::new(OsqState::<E>::default());
        let has_entered = |does: &Does| matches!(does, Leaves | Stays | Returns);
        let enter = |slot| {
            E::become_thread(thread(slot, Stays));
            // SAFETY: the thread of this slot, which starts later, leaves it.
            unsafe { shared.queue.enter(&place(slot), E::thread_id()) }
        };
        assert!(enter(0));
        for (slot, _) in (1..).zip(follow).filter(|(_, does)| has_entered(does)) {
            assert!(!enter(slot));
        }
        E::become_thread(thread(0, Stays));
        let mut others = Others::<E>::default();
        for (slot, &does) in (1..).zip(follow) {
            let shared = shared.clone();
            others.spawn(thread(slot, does), move || shared.do_as(slot, does));
        }
        shared.end_turn(0);
        for _ in 0..rounds {
            assert!(shared.visit(), "it is patient");
        }
        others.join();
        shared.finish();
    })
}

/// Threads that come this many times each, and wait for as long as they choose.
pub fn crowd<E: Engine>(threads: u32, rounds: u32, preemptions: Option<usize>) -> Model<E> {
    Model::new(format!("osq: {threads} threads, {rounds} visits each"), threads, preemptions, move || {
        let shared = Arc::new(OsqState::<E>::default());
        let work = move |shared: &OsqState<E>| (0..rounds).for_each(|_| _ = shared.visit());
        let mut others = Others::<E>::default();
        for slot in 1..threads {
            let shared = shared.clone();
            others.spawn(thread(slot, Visits), move || work(&shared));
        }
        work(&shared);
        others.join();
        shared.finish();
    })
}

/// The models that a checker that tries everything can handle.
pub fn models<E: Engine>() -> Vec<Model<E>> {
    const LEFT: &[LockEvent] = &[LockEvent::OsqLeave];
    const LATE: &[LockEvent] = &[LockEvent::OsqLeave, LockEvent::OsqGranted];
    vec![
        crowd(2, 1, None).reaching(LEFT),
        crowd(2, 2, Some(3)).reaching(LATE),
        crowd(3, 1, Some(2)).reaching(LATE),
        staged("one leaves, one stays", &[Leaves, Stays], 0, Some(3)).reaching(LATE),
        staged("two leave", &[Leaves, Leaves], 0, Some(2)).reaching(LATE),
        staged("one leaves, the first returns", &[Leaves], 1, None).reaching(LATE),
        staged("two leave, the first returns", &[Leaves, Leaves], 1, Some(2)).reaching(LATE),
        staged("one leaves, one comes", &[Leaves, Comes], 0, Some(3)).reaching(LATE),
        staged("one returns, one stays", &[Returns, Stays], 0, Some(2)).reaching(LATE),
        staged("two leave, one stays", &[Leaves, Leaves, Stays], 0, Some(1)).reaching(LATE),
    ]
}

/// The models of more threads, for random schedules.
pub fn crowds<E: Engine>() -> Vec<Model<E>> {
    vec![
        crowd(4, 5, None),
        crowd(8, 4, None),
        staged("of seven, all but two leave", &[Leaves, Stays, Leaves, Leaves, Stays, Leaves], 2, None),
        staged("some return, some visit", &[Returns, Leaves, Returns, Stays, Visits, Visits, Comes], 2, None),
    ]
}
