//! Queues that are made by hand, for the unit tests of all versions.

pub mod sequences;

use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;
use std::vec::Vec;

use super::queues::Node;
use crate::linux::qspinlock::Tail;
use crate::platform::{LocalNodes, NodeId, ZeroNode};
use crate::settings::Setting;
use crate::testing::{NUMA_NODE, OneThread};

/// A head and its waiters, by the slots of their threads.
pub struct Queues<S>(PhantomData<S>);

pub fn tail(slot: u32) -> Tail {
    Tail::encode(NodeId { slot, level: 0 })
}

impl<S: ZeroNode + Default + 'static> Queues<S> {
    /// Waiters in slots from 1 up, on these NUMA nodes. The head, in slot 0, is on NUMA node 0.
    pub fn new(numa_nodes: &[u32]) -> Self {
        let queues = Self(PhantomData);
        let slots: Vec<_> = (0..=numa_nodes.len() as u32).collect();
        queues.waiter(0, 0);
        slots[1..].iter().zip(numa_nodes).for_each(|(slot, numa_node)| queues.waiter(*slot, *numa_node));
        queues.link(&slots);
        queues
    }

    /// Gives the head these waiters, all on NUMA node 1, as its secondary queue.
    pub fn set_aside(&self, slots: &[u32]) {
        slots.iter().for_each(|slot| self.waiter(*slot, 1));
        self.link(slots);
        let (first, last) = (slots[0], slots[slots.len() - 1]);
        self.node(last).next.store(self.pointer(first), Relaxed);
        self.node(0).granted.store(tail(last).bits(), Relaxed);
    }

    pub fn pointer(&self, slot: u32) -> *mut Node<OneThread, S> {
        let node: *const Node<OneThread, S> = OneThread::node(NodeId { slot, level: 0 });
        node.cast_mut()
    }

    pub fn node(&self, slot: u32) -> &'static Node<OneThread, S> {
        // SAFETY: nodes live as long as their thread, which runs the test.
        unsafe { &*self.pointer(slot) }
    }

    pub fn waiter(&self, slot: u32, numa_node: u32) {
        NUMA_NODE.set(numa_node);
        self.node(slot).next.store(ptr::null_mut(), Relaxed);
        self.node(slot).granted.store(0, Relaxed);
        self.node(slot).part.prepare(tail(slot), Setting::CnaPriorityWaiters);
    }

    fn link(&self, slots: &[u32]) {
        for pair in slots.windows(2) {
            self.node(pair[0]).next.store(self.pointer(pair[1]), Relaxed);
        }
    }

    pub fn next_of(&self, slot: u32) -> Option<u32> {
        let next = self.node(slot).next.load(Relaxed);
        if next.is_null() { None } else { (0..10).find(|slot| self.pointer(*slot) == next) }
    }

    pub fn granted(&self, slot: u32) -> u32 {
        self.node(slot).granted.load(Relaxed)
    }

    pub fn numa_node(&self, slot: u32) -> u32 {
        self.node(slot).part.numa_node.load(Relaxed)
    }
}
