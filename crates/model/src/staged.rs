//! Models that start in the middle of a queue, for situations that would need more threads than
//! loom can follow from the start.
//!
//! The queue is built by hand before the other threads start, in the state in which the lock itself
//! would have left it. The first thread is the holder, which unlocks the lock. It then becomes the
//! head of the queue too, or the head is a separate thread. The waiters in the queue are live
//! threads, each of which waits for its grant; newcomers call `lock`.
//!
//! Threads in even slots run on the head's NUMA node, threads in odd slots on another.

use std::sync::Arc;

use nearlock_collection::linux::cna::{self, Cna, CnaTuning};
use nearlock_collection::linux::cna_v13::{self, CnaV13};
use nearlock_collection::linux::qspinlock::{Fifo, LOCKED, Node, QSpinLock, QSpinTuning, QueuePolicy, Tail};
use nearlock_core::platform::{Atomic, LentNode, LocalNodes, NodeId};
use nearlock_core::raw::RawLock;
use nearlock_core::shared_holds::SharedLock;

use std::sync::atomic::Ordering::Relaxed;

use crate::engine::{Counter, Engine, Others, Thread};
use crate::exclusion::{Guarded, in_slot};
use crate::model::Model;

/// A queue, described by the slots of its threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Queue {
    /// The waiters behind the head, which is in slot 0.
    pub main: &'static [u32],
    /// The waiters of the secondary queue, which began long ago, when the clock was at its minimum.
    pub secondary: &'static [u32],
    /// Threads that come in the meantime.
    pub newcomers: &'static [u32],
    /// Threads that come twice, the second time from another NUMA node.
    pub migrants: &'static [u32],
    /// The urgent ones among all these threads.
    pub urgent: &'static [u32],
}

impl Queue {
    /// Only the head.
    pub const NOBODY: Self = Self { main: &[], secondary: &[], newcomers: &[], migrants: &[], urgent: &[] };

    /// How many slots its threads take.
    pub fn slots(&self) -> u32 {
        let all = self.main.iter().chain(self.secondary).chain(self.newcomers).chain(self.migrants);
        all.max().map_or(1, |slot| slot + 1)
    }

    /// The number of sections: one each for the holder, the head and the others; two for a migrant.
    fn sections(&self) -> usize {
        2 + self.main.len() + self.secondary.len() + self.newcomers.len() + 2 * self.migrants.len()
    }

    fn thread(&self, slot: u32) -> Thread {
        let (urgent, migrates) = (self.urgent.contains(&slot), self.migrants.contains(&slot));
        Thread { urgent, migrates, ..in_slot(slot) }
    }
}

/// A policy whose secondary queue can be built by hand.
pub trait Stage<E: Engine>: QueuePolicy<E> {
    /// Gives `head` a secondary queue that ends with the node called `last`.
    fn give_secondary(head: &Node<E, Self::Part>, last: Tail);
}

impl<E: Engine> Stage<E> for Fifo {
    fn give_secondary(_head: &Node<E, ()>, _last: Tail) {
        panic!("first come, first served: there is no secondary queue");
    }
}

impl<E: Engine, T: CnaTuning> Stage<E> for Cna<T> {
    fn give_secondary(head: &cna::Node<E>, last: Tail) {
        head.granted.store(last.bits(), Relaxed);
        head.part.state.start_ns.store(2, Relaxed);
    }
}

impl<E: Engine, T: CnaTuning> Stage<E> for CnaV13<T> {
    fn give_secondary(head: &cna_v13::Node<E>, last: Tail) {
        head.granted.store(last.bits(), Relaxed);
        head.part.state.start_tick.store(1, Relaxed);
    }
}

fn name_of(slot: u32) -> NodeId {
    NodeId { slot, level: 0 }
}

fn node_of<E, Part>(slot: u32) -> *mut Node<E, Part>
where
    E: Engine + LocalNodes<Node<E, Part>>,
{
    <E as LocalNodes<Node<E, Part>>>::node(name_of(slot)).cast_mut()
}

/// Builds the queue and returns the word that belongs to it, for a lock that is held.
pub fn build<E, Q: Stage<E>>(queue: &Queue) -> u32
where
    E: Engine + LocalNodes<Node<E, Q::Part>>,
{
    let link = |slot, next| {
        // SAFETY: nodes live as long as the execution.
        unsafe { &(*node_of::<E, Q::Part>(slot)).next }.store(next, Relaxed);
    };
    for slot in [0].iter().chain(queue.main).chain(queue.secondary) {
        E::become_thread(queue.thread(*slot));
        // SAFETY: as above.
        Q::prepare(unsafe { &*node_of::<E, Q::Part>(*slot) }, Tail::encode(name_of(*slot)));
    }
    E::become_thread(in_slot(0));
    let mut last = 0;
    for slot in queue.main {
        link(last, node_of(*slot));
        last = *slot;
    }
    if let Some(end) = queue.secondary.last() {
        let mut previous = end;
        for slot in queue.secondary {
            link(*previous, node_of(*slot));
            previous = slot;
        }
        // SAFETY: as above.
        Q::give_secondary(unsafe { &*node_of::<E, Q::Part>(0) }, Tail::encode(name_of(*end)));
    }
    Tail::encode(name_of(last)).bits() | LOCKED
}

impl<E, Q: Stage<E>, T: QSpinTuning> Guarded<E, QSpinLock<E, Q, T>>
where
    E: Engine + LocalNodes<Node<E, Q::Part>>,
{
    fn release(&self) {
        // SAFETY: callers hold the lock.
        unsafe { self.lock.unlock(&()) };
    }

    /// The holder's section.
    fn hold(&self) {
        self.count.add_one();
        self.release();
    }

    /// The head's section.
    fn head(&self) {
        // SAFETY: nodes live as long as the execution.
        unsafe { self.lock.lock_as_head(&*node_of::<E, Q::Part>(0), Tail::encode(name_of(0))) };
        self.count.add_one();
        self.release();
    }

    /// The section of a waiter whose node is in the queue already.
    fn wait_queued(&self, slot: u32, predecessor: u32) {
        let (node, tail) = (node_of(slot), Tail::encode(name_of(slot)));
        // SAFETY: as above.
        unsafe { self.lock.lock_when_granted(&*node, tail, &*node_of::<E, Q::Part>(predecessor)) };
        self.count.add_one();
        self.release();
    }

    /// The section of a thread that has found another waiter pending, and so queues up.
    fn queue(&self) {
        E::with_node(|lent: Option<LentNode<Node<E, Q::Part>>>| {
            // SAFETY: just lent.
            unsafe { self.lock.lock_queued(&lent.expect("each thread has a node")) };
        });
        self.count.add_one();
        self.release();
    }
}

/// A queue whose head is the thread that has just unlocked the lock. `set` is called before the
/// queue is built, for example to move the clock.
pub fn queue_at_work<E, Q: Stage<E>, T: QSpinTuning>(
    name: &str,
    situation: &str,
    queue: Queue,
    preemptions: Option<usize>,
    set: fn(),
) -> Model<E>
where
    E: Engine + LocalNodes<Node<E, Q::Part>>,
{
    Model::new(format!("{name}: {situation}"), queue.slots(), preemptions, move || {
        set();
        let shared = staged::<E, Q, T>(&queue);
        let others = spawn_others(&shared, queue);
        shared.hold();
        shared.head();
        finish(&shared, others, queue.sections());
    })
}

/// The same, while another thread holds the lock.
pub fn queue_of_held_lock<E, Q: Stage<E>, T: QSpinTuning>(
    name: &str,
    situation: &str,
    queue: Queue,
    preemptions: Option<usize>,
    set: fn(),
) -> Model<E>
where
    E: Engine + LocalNodes<Node<E, Q::Part>>,
{
    Model::new(format!("{name}: held; {situation}"), queue.slots(), preemptions, move || {
        set();
        let shared = staged::<E, Q, T>(&queue);
        let mut others = spawn_others(&shared, queue);
        let of_head = shared.clone();
        others.spawn(queue.thread(0), move || of_head.head());
        shared.hold();
        finish(&shared, others, queue.sections());
    })
}

type StagedState<E, Q, T> = Arc<Guarded<E, QSpinLock<E, Q, T>>>;

/// The lock with its queue, held.
fn staged<E, Q: Stage<E>, T: QSpinTuning>(queue: &Queue) -> StagedState<E, Q, T>
where
    E: Engine + LocalNodes<Node<E, Q::Part>>,
{
    // SAFETY: the queue has just been built.
    let lock = unsafe { QSpinLock::<E, Q, T>::with_word(build::<E, Q>(queue)) };
    Arc::new(Guarded { lock, count: Default::default() })
}

/// Starts the waiters and the newcomers.
fn spawn_others<E, Q: Stage<E>, T: QSpinTuning>(shared: &StagedState<E, Q, T>, queue: Queue) -> Others<E>
where
    E: Engine + LocalNodes<Node<E, Q::Part>>,
{
    let mut others = Others::default();
    let mut predecessor = 0;
    for slots in [queue.main, queue.secondary] {
        for &slot in slots {
            let (shared, before) = (shared.clone(), std::mem::replace(&mut predecessor, slot));
            others.spawn(queue.thread(slot), move || shared.wait_queued(slot, before));
        }
    }
    for (slots, sections) in [(queue.newcomers, 1), (queue.migrants, 2)] {
        for &slot in slots {
            let shared = shared.clone();
            others.spawn(queue.thread(slot), move || {
                for _ in 0..sections {
                    shared.section();
                }
            });
        }
    }
    others
}

/// Waits for the others, and checks that all have had their sections.
fn finish<E, Q: Stage<E>, T: QSpinTuning>(shared: &StagedState<E, Q, T>, others: Others<E>, sections: usize)
where
    E: Engine + LocalNodes<Node<E, Q::Part>>,
{
    others.join();
    assert_eq!(shared.count.get() as usize, sections);
    assert!(shared.try_section(), "the lock is free at last");
}

/// The lock is held. A waiter queues up, and is alone in the queue, while another may still become
/// pending.
pub fn queued_against_pending<E, Q: Stage<E>, T: QSpinTuning>(
    name: &str,
    preemptions: Option<usize>,
) -> Model<E>
where
    E: Engine + LocalNodes<Node<E, Q::Part>>,
{
    let name = format!("{name}: a queued waiter and a late pending one");
    held_against::<E, Q, T>(name, preemptions, in_slot(2), |shared, others| {
        others.spawn(in_slot(1), move || shared.queue());
    })
}

/// The same, except that the late thread has no queue node. It marks itself pending over the tail,
/// and never queues up.
pub fn queued_against_nameless<E, Q: Stage<E>, T: QSpinTuning>(
    name: &str,
    preemptions: Option<usize>,
) -> Model<E>
where
    E: Engine + LocalNodes<Node<E, Q::Part>>,
{
    let name = format!("{name}: a queued waiter and a late one without a node");
    held_against::<E, Q, T>(name, preemptions, NAMELESS, |shared, others| {
        others.spawn(in_slot(1), move || shared.queue());
    })
}

/// The lock is held; one of two waiters has no queue node.
pub fn without_node<E, Q: Stage<E>, T: QSpinTuning>(name: &str, preemptions: Option<usize>) -> Model<E>
where
    E: Engine + LocalNodes<Node<E, Q::Part>>,
{
    let name = format!("{name}: a waiter without a node");
    held_against::<E, Q, T>(name, preemptions, in_slot(2), |shared, others| {
        others.spawn(NAMELESS, move || shared.section());
    })
}

/// A thread that has no queue nodes.
const NAMELESS: Thread = Thread {
    slot: None,
    numa_node: 0,
    migrates: false,
    is_patient: false,
    number: 0,
    mark: None,
    shared_holds: [0; SharedLock::COUNT],
    sections: 0,
    urgent: false,
};

/// The lock is held. One thread does what `first` says; another, which is `second`, locks.
fn held_against<E, Q: Stage<E>, T: QSpinTuning>(
    name: String,
    preemptions: Option<usize>,
    second: Thread,
    first: fn(StagedState<E, Q, T>, &mut Others<E>),
) -> Model<E>
where
    E: Engine + LocalNodes<Node<E, Q::Part>>,
{
    Model::new(name, 3, preemptions, move || {
        // SAFETY: the word names no node.
        let lock = unsafe { QSpinLock::<E, Q, T>::with_word(LOCKED) };
        let shared = Arc::new(Guarded { lock, count: Default::default() });
        let of_second = shared.clone();
        let mut others = Others::default();
        first(shared.clone(), &mut others);
        others.spawn(second, move || of_second.section());
        shared.hold();
        finish(&shared, others, 3);
    })
}
