//! HMCS: an MCS queue per NUMA node, and an MCS lock that the queues compete for.
//!
//! ```text
//!  global   [part 0] --next--> [part 1]            MCS lock; each part has one node in it
//!              |
//!  part 0   [holder] --next--> [waiter] --next--> [waiter] <-- tail     threads of NUMA node 0
//!           status=n           status=0           status=0
//!
//!  part 1   [first] --next--> [waiter] <-- tail                        threads of NUMA node 1
//!           waits for global   status=0
//!
//!  status of a node
//!  0                the owner waits in its part
//!  n                the owner holds the lock, the n-th in a row on its NUMA node
//!  ACQUIRE_GLOBAL   the owner is the first of its part, and takes the global lock
//!
//!  (status of the holder, status of its successor)
//!  n,0 -> n,n+1             unlock, while n is at most the pass limit
//!  n,0 -> n,ACQUIRE_GLOBAL  unlock, after the global lock has been released
//! ```
//! An acquisition stores its part in its node, since the thread may run elsewhere when it unlocks.
//!
//! 1. In each part, only the first thread of the queue uses `global_node`. The Release of `status`,
//!    or of `tail`, passes the node on.
//! 2. The thread that locked the global lock for its part holds the lock. It may hand the lock over
//!    to its successor in the part, which holds it then, and so on.
//! 3. `try_lock` tries the global lock alone, with a separate global node. If it queued in a part,
//!    it would have to leave that queue again, and might have to wait for a successor's link.
//!
//! `unlock` accesses its part after other threads may hold the lock. So a thread that frees the
//! memory of a lock must know that every `unlock` has returned.
//!
//! Fairness: first come, first served within a NUMA node. In one round each of the other NUMA nodes
//! has the lock for at most (pass limit + 1) critical sections. A NUMA node with waiters gets the
//! lock after one round. A thread with w waiters of its own NUMA node before it waits for
//! `1 + w / (limit + 1)` rounds.
//! Source: Chabbi, Fagan and Mellor-Crummey, "High performance locks for multi-level NUMA systems",
//! PPoPP 2015. Here there are two levels. `try_lock` is ours.

use core::array;
use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::mcs::{self, McsLock};
use super::per_node::{NO_PART, OwnLines, PARTS, part_here};
use crate::events::LockEvent;
use crate::platform::{Atomic, Platform, Settings, Topology};
use crate::raw::{RawLock, RawTryLock};
use crate::settings::Setting;

/// Values of [`Node::status`]. The values in between count holders.
const WAIT: u32 = 0;
const FIRST_HOLDER: u32 = 1;
const ACQUIRE_GLOBAL: u32 = u32::MAX;

const _: () = assert!(Setting::HmcsLocalPassLimit.info().max < (ACQUIRE_GLOBAL - FIRST_HOLDER) as u64);

/// A queue node, in use from `lock` to `unlock`.
#[repr(C)]
pub struct Node<P: Platform> {
    /// The successor in the same part; null until the successor has linked itself.
    next: P::Ptr<Node<P>>,
    /// See the [module](self).
    status: P::U32,
    /// Index of the part that the owner queued in, or `NO_PART`.
    part: P::U32,
    /// The node in the global lock, for an acquisition without a part.
    global_node: mcs::Node<P>,
}

impl<P: Platform> Node<P> {
    /// A node for a static or a pool.
    pub const fn new() -> Self {
        Self { next: Atomic::ZERO, status: Atomic::ZERO, part: Atomic::ZERO, global_node: mcs::Node::new() }
    }

    /// The successor that has linked itself, or null.
    #[inline(always)]
    fn successor(&self) -> *mut Self {
        // Ordering: Acquire, pairs with the Release store of `next` in `lock_behind`: the
        // successor's node is initialised before we write into it.
        self.next.load(Acquire)
    }

    /// Ends the wait of a linked waiter.
    #[inline(always)]
    fn grant(waiter: *mut Self, status: u32) {
        // Ordering: Release, pairs with the Acquire wait in `lock_behind`: our critical section,
        // and our use of `global_node`, happen before the waiter's.
        // SAFETY: the waiter waits for its status, so its node is alive until this store. We borrow
        // the one field, not the node.
        unsafe { &(*waiter).status }.store(status, Release);
    }
}

impl<P: Platform> Default for Node<P> {
    fn default() -> Self {
        Self {
            next: Atomic::new(ptr::null_mut()),
            status: Atomic::new(WAIT),
            part: Atomic::new(0),
            global_node: mcs::Node::default(),
        }
    }
}

/// The queue of one NUMA node.
#[repr(C)]
struct Part<P: Platform> {
    tail: P::Ptr<Node<P>>,
    global_node: mcs::Node<P>,
}

impl<P: Platform> Part<P> {
    const fn new() -> Self {
        Self { tail: Atomic::ZERO, global_node: mcs::Node::new() }
    }

    /// Removes `node`, the first of the queue. If it has a successor, this becomes the first, and
    /// will lock the global lock. `next` is the successor if it has linked itself, and otherwise
    /// null.
    fn leave(&self, node: &Node<P>, mut next: *mut Node<P>) {
        if next.is_null() {
            let me = ptr::from_ref(node).cast_mut();
            // Ordering: Release on success, pairs with the Acquire half of `lock`'s swap: our use
            // of `global_node` happens before that of the next thread. Relaxed on failure: nothing
            // is read through the value.
            if self.tail.compare_exchange(me, ptr::null_mut(), Release, Relaxed).is_ok() {
                return;
            }
            // Ordering: Acquire, as in `Node::successor`.
            next = P::wait_until(&node.next, Acquire, |next| !next.is_null());
        }
        Node::grant(next, ACQUIRE_GLOBAL);
    }
}

/// See the [module](self).
#[repr(C)]
pub struct HmcsLock<P: Platform> {
    global: OwnLines<McsLock<P>>,
    parts: [OwnLines<Part<P>>; PARTS],
}

impl<P: Platform> HmcsLock<P> {
    /// An unlocked lock, in `const`.
    pub const fn new() -> Self {
        Self { global: OwnLines(McsLock::new()), parts: [const { OwnLines(Part::new()) }; PARTS] }
    }

    fn part(&self, index: u32) -> &Part<P> {
        &self.parts[index as usize].0
    }

    /// Waits behind `predecessor`. Returns the status that the predecessor left.
    #[cold]
    #[inline(never)]
    fn lock_behind(predecessor: *mut Node<P>, node: &Node<P>) -> u32 {
        // Ordering: Release, pairs with the Acquire loads of `next`: our node's initialisation
        // happens before the predecessor writes `status`.
        // SAFETY: the predecessor cannot leave `unlock` before it has seen us in its `next`.
        unsafe { &(*predecessor).next }.store(ptr::from_ref(node).cast_mut(), Release);
        // Ordering: Acquire, pairs with the Release in `Node::grant`: the previous critical section
        // happens before ours.
        P::wait_until(&node.status, Acquire, |status| status != WAIT)
    }
}

impl<P: Platform> Default for HmcsLock<P> {
    fn default() -> Self {
        let part = || Part { tail: Atomic::new(ptr::null_mut()), global_node: mcs::Node::default() };
        Self { global: OwnLines(McsLock::default()), parts: array::from_fn(|_| OwnLines(part())) }
    }
}

// SAFETY: the first thread of a part holds the lock once it holds the global lock. Any other thread
// needs the one grant of its predecessor, the holder (invariant 2). The orderings are argued at
// each access.
unsafe impl<P: Topology + Settings> RawLock for HmcsLock<P> {
    type Node = Node<P>;

    #[inline]
    unsafe fn lock(&self, node: &Node<P>) {
        let index = part_here::<P>();
        let part = self.part(index);
        node.next.store(ptr::null_mut(), Relaxed);
        node.status.store(WAIT, Relaxed);
        node.part.store(index, Relaxed);
        // Ordering: AcqRel. Release publishes the stores above to the successor that will find us
        // in `tail`. Acquire pairs with the Release of our predecessor's swap, since we write into
        // its node. Or it pairs with the Release of the exchange in `Part::leave`.
        let predecessor = part.tail.swap(ptr::from_ref(node).cast_mut(), AcqRel);
        if !predecessor.is_null() && Self::lock_behind(predecessor, node) != ACQUIRE_GLOBAL {
            return;
        }
        // SAFETY: we are the first of the part, so its global node is ours (invariant 1).
        unsafe { self.global.0.lock(&part.global_node) };
        node.status.store(FIRST_HOLDER, Relaxed);
    }

    #[inline]
    unsafe fn unlock(&self, node: &Node<P>) {
        let index = node.part.load(Relaxed);
        if index == NO_PART {
            // SAFETY: acquired by `try_lock` with this node.
            return unsafe { self.global.0.unlock(&node.global_node) };
        }
        let part = self.part(index);
        let holder = node.status.load(Relaxed);
        let next = node.successor();
        if !next.is_null() {
            if u64::from(holder) <= P::setting(Setting::HmcsLocalPassLimit) {
                P::count(LockEvent::LocalPass);
                return Node::grant(next, holder + 1);
            }
            P::count(LockEvent::PassLimit);
        }
        // SAFETY: locked with the part's node, by us or by an earlier holder of the same part.
        unsafe { self.global.0.unlock(&part.global_node) };
        part.leave(node, next);
    }
}

// SAFETY: as above; the caller holds the global lock.
unsafe impl<P: Topology + Settings> RawTryLock for HmcsLock<P> {
    #[inline]
    unsafe fn try_lock(&self, node: &Node<P>) -> bool {
        // SAFETY: the node is the caller's (invariant 3).
        let taken = unsafe { self.global.0.try_lock(&node.global_node) };
        if taken {
            node.part.store(NO_PART, Relaxed);
        }
        taken
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.global.0.is_locked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{NUMA_NODE, OneThread, meanwhile, others_are_done, set};
    use std::boxed::Box;
    use std::vec::Vec;

    type Lock = HmcsLock<OneThread>;

    const _: () = assert!(size_of::<Lock>() == 128 * (1 + PARTS));
    const _: () = assert!(size_of::<Node<OneThread>>() == 3 * size_of::<usize>() + 8);

    /// The last of a part's queue, and whether the global lock is held.
    fn seen(lock: &Lock, part: u32) -> (*const Node<OneThread>, bool) {
        (lock.part(part).tail.load(Relaxed), lock.is_locked())
    }

    /// Lets `waiter` queue behind `node`, as `lock` would before it waits.
    fn queue(lock: &Lock, node: &Node<OneThread>, waiter: &Node<OneThread>) {
        let part = node.part.load(Relaxed);
        waiter.part.store(part, Relaxed);
        let waiter = ptr::from_ref(waiter).cast_mut();
        lock.part(part).tail.store(waiter, Relaxed);
        node.next.store(waiter, Relaxed);
    }

    #[test]
    fn the_part_is_the_one_that_was_queued_in() {
        let (lock, node) = (Lock::new(), Node::new());
        for (numa_node, part) in [(0, 0), (3, 3), (PARTS as u32 + 1, 1)] {
            NUMA_NODE.set(numa_node);
            // SAFETY: one thread, and unlock follows lock.
            unsafe { lock.lock(&node) };
            assert_eq!(seen(&lock, part), (ptr::from_ref(&node), true));
            NUMA_NODE.set(numa_node + 1);
            // SAFETY: as above.
            unsafe { lock.unlock(&node) };
            assert_eq!(seen(&lock, part), (ptr::null(), false));
        }
    }

    #[test]
    fn the_lock_stays_on_its_numa_node_up_to_the_limit() {
        set(Setting::HmcsLocalPassLimit, 2);
        let (lock, nodes) = (Lock::new(), [const { Node::new() }; 4]);
        // SAFETY: one thread; the waiters are simulated, and each holds the lock when it unlocks.
        unsafe { lock.lock(&nodes[0]) };
        for i in 0..3 {
            queue(&lock, &nodes[i], &nodes[i + 1]);
            assert!(lock.is_locked());
            // SAFETY: as above.
            unsafe { lock.unlock(&nodes[i]) };
        }
        let status: Vec<_> = nodes.iter().map(|node| node.status.load(Relaxed)).collect();
        assert_eq!(status, [1, 2, 3, ACQUIRE_GLOBAL]);
        assert_eq!(seen(&lock, 0), (ptr::from_ref(&nodes[3]), false));
    }

    #[test]
    fn at_limit_zero_each_takes_the_global_lock() {
        set(Setting::HmcsLocalPassLimit, 0);
        let (lock, node, waiter) = (Lock::new(), Node::new(), Node::new());
        // SAFETY: one thread, and the waiter is simulated.
        unsafe { lock.lock(&node) };
        queue(&lock, &node, &waiter);
        // SAFETY: as above.
        unsafe { lock.unlock(&node) };
        assert_eq!(waiter.status.load(Relaxed), ACQUIRE_GLOBAL);
        assert!(!lock.is_locked());
    }

    #[test]
    fn try_lock_goes_past_the_parts() {
        let (lock, node, other) = (Lock::new(), Node::new(), Node::new());
        // SAFETY: one thread, and unlock follows each success.
        unsafe {
            assert!(lock.try_lock(&node));
            assert_eq!(seen(&lock, 0), (ptr::null(), true));
            assert!(!lock.try_lock(&other));
            lock.unlock(&node);
            assert!(!lock.is_locked());
            lock.lock(&node);
            assert!(!lock.try_lock(&other));
            lock.unlock(&node);
            assert!(!lock.is_locked());
        }
    }

    #[test]
    fn a_leaving_thread_waits_for_a_successor_that_has_swapped_and_not_linked() {
        let lock = Lock::new();
        let [node, waiter]: &[Node<OneThread>; 2] = Box::leak(Box::default());
        // SAFETY: one thread, and the waiter is simulated.
        unsafe { lock.lock(node) };
        lock.part(0).tail.store(ptr::from_ref(waiter).cast_mut(), Relaxed);
        meanwhile(|| node.next.store(ptr::from_ref(waiter).cast_mut(), Relaxed));
        // SAFETY: as above.
        unsafe { lock.unlock(node) };
        assert!(others_are_done());
        assert_eq!(waiter.status.load(Relaxed), ACQUIRE_GLOBAL);
    }
}
