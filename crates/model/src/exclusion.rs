//! Models that every lock can have: threads that lock and count.

use std::sync::Arc;

use nearlock_core::raw::{RawLock, RawTryLock};

use crate::engine::{Counter, Engine, Handle, Others, Thread};
use crate::model::Model;

/// A lock and the data that it protects.
pub struct Guarded<E: Engine, L> {
    /// The lock under test.
    pub lock: L,
    /// The data that it protects.
    pub count: E::Counter,
}

impl<E: Engine, L: Default> Default for Guarded<E, L> {
    fn default() -> Self {
        Self { lock: L::default(), count: E::Counter::default() }
    }
}

impl<E: Engine, L: RawLock> Guarded<E, L> {
    /// Locks, counts and unlocks.
    pub fn section(&self) {
        self.section_with(&L::Node::default());
    }

    /// The same with a node that the calling thread keeps.
    pub fn section_with(&self, node: &L::Node) {
        // SAFETY: the node is ours and outlives the section.
        unsafe { self.lock.lock(node) };
        self.count.add_one();
        // SAFETY: locked above with this node.
        unsafe { self.lock.unlock(node) };
    }
}

impl<E: Engine, L: RawTryLock> Guarded<E, L> {
    /// As [`section`](Self::section) if the lock is free.
    pub fn try_section(&self) -> bool {
        let node = L::Node::default();
        // SAFETY: the node is ours and outlives the section.
        if !unsafe { self.lock.try_lock(&node) } {
            return false;
        }
        self.count.add_one();
        // SAFETY: locked above with this node.
        unsafe { self.lock.unlock(&node) };
        true
    }
}

/// The thread in `slot`, on NUMA node `slot % 2`.
pub(crate) fn in_slot(slot: u32) -> Thread {
    Thread { slot: Some(slot), numa_node: slot % 2, ..Thread::default() }
}

/// `threads` threads that lock `rounds` times each.
pub fn counting<E: Engine, L: RawLock>(
    name: &str,
    threads: u32,
    rounds: u32,
    preemptions: Option<usize>,
) -> Model<E> {
    let title = format!("{name}: {threads} threads, {rounds} sections each");
    Model::new(title, threads, preemptions, move || {
        let shared = Arc::new(Guarded::<E, L>::default());
        let work = move |shared: &Guarded<E, L>| (0..rounds).for_each(|_| shared.section());
        let mut others = Others::<E>::default();
        for slot in 1..threads {
            let shared = shared.clone();
            others.spawn(in_slot(slot), move || work(&shared));
        }
        work(&shared);
        others.join();
        assert_eq!(shared.count.get(), threads * rounds);
    })
}

/// The first thread holds the lock when the others come. It unlocks, and waits for them to end.
pub fn held_at_first<E: Engine, L: RawLock>(
    name: &str,
    threads: u32,
    preemptions: Option<usize>,
) -> Model<E> {
    let title = format!("{name}: held at first, {} waiters", threads - 1);
    Model::new(title, threads, preemptions, move || {
        let shared = Arc::new(Guarded::<E, L>::default());
        let node = L::Node::default();
        // SAFETY: the node is ours and outlives the section.
        unsafe { shared.lock.lock(&node) };
        let mut others = Others::<E>::default();
        for slot in 1..threads {
            let shared = shared.clone();
            others.spawn(in_slot(slot), move || shared.section());
        }
        shared.count.add_one();
        // SAFETY: locked above with this node.
        unsafe { shared.lock.unlock(&node) };
        others.join();
        assert_eq!(shared.count.get(), threads);
    })
}

/// One thread locks while another tries to, twice.
pub fn trying<E: Engine, L: RawTryLock>(name: &str, preemptions: Option<usize>) -> Model<E> {
    Model::new(format!("{name}: lock against try_lock"), 2, preemptions, move || {
        let shared = Arc::new(Guarded::<E, L>::default());
        let other = {
            let shared = shared.clone();
            E::spawn(in_slot(1), move || shared.section())
        };
        let taken = u32::from(shared.try_section()) + u32::from(shared.try_section());
        other.join().unwrap();
        assert_eq!(shared.count.get(), 1 + taken);
        assert!(shared.try_section(), "the lock is free at last");
    })
}

/// Two threads that lock one lock and then another, each with one node. The node belongs to the
/// thread again when `unlock` returns.
pub fn one_node_for_two_locks<E: Engine, L: RawLock>(name: &str, preemptions: Option<usize>) -> Model<E> {
    Model::new(format!("{name}: one node for two locks"), 2, preemptions, move || {
        let shared = Arc::new([Guarded::<E, L>::default(), Guarded::<E, L>::default()]);
        let work = |shared: &[Guarded<E, L>; 2]| {
            let node = L::Node::default();
            shared.iter().for_each(|guarded| guarded.section_with(&node));
        };
        let other = {
            let shared = shared.clone();
            E::spawn(in_slot(1), move || work(&shared))
        };
        work(&shared);
        other.join().unwrap();
        assert!(shared.iter().all(|guarded| guarded.count.get() == 2));
    })
}

/// Threads on these NUMA nodes that lock once each. `set` is called before, to change a setting.
pub fn on_numa_nodes<E: Engine, L: RawLock>(
    name: &str,
    situation: &str,
    numa_nodes: &'static [u32],
    preemptions: usize,
    set: fn(),
) -> Model<E> {
    let threads = numa_nodes.len() as u32;
    let title = format!("{name}: {situation}; NUMA nodes {numa_nodes:?}");
    Model::new(title, threads, Some(preemptions), move || {
        set();
        let shared = Arc::new(Guarded::<E, L>::default());
        let thread = |slot: u32| Thread { numa_node: numa_nodes[slot as usize], ..in_slot(slot) };
        E::become_thread(thread(0));
        let mut others = Others::<E>::default();
        for slot in 1..threads {
            let shared = shared.clone();
            others.spawn(thread(slot), move || shared.section());
        }
        shared.section();
        others.join();
        assert_eq!(shared.count.get(), threads);
    })
}
