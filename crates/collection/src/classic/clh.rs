//! CLH queue lock: each waiter spins on the queue node of its predecessor.
//!
//! ```text
//!  [holder] <--waits on-- [waiter 1] <--waits on-- [waiter 2] <-- tail
//!  granted=0              granted=0                granted=0
//!
//!  tail == null   unlocked
//!  tail == n      locked; n is the last in the queue, and the holder if no thread waits
//!
//!  granted of a node
//!  0 -> 1   unlock, if there is a successor: it gets the lock
//!  1 -> 0   the successor, when it has seen the 1
//! ```
//! There are no links: a waiter keeps the address of its predecessor's node in a local variable.
//!
//! 1. A node whose owner neither holds the lock nor waits has granted=0. So it need not be
//!    initialised.
//! 2. The successor accesses a node from its swap of `tail` until its store of 0.
//!
//! The original begins with a dummy node. A thread that has unlocked leaves its node to its
//! successor, and takes the node of its predecessor instead. Neither is possible here: a lock whose
//! bits are all zero must be unlocked, and the caller takes its node away when `unlock` returns. So
//! null replaces the dummy, and `unlock` waits until the successor has seen the grant. This wait is
//! not part of the hand-over: the successor is in its critical section already. It costs the
//! unlocking thread a line transfer. If the successor has no processor, the unlocking thread has to
//! wait as well.
//!
//! Nodes kept by the platform would avoid this wait. But the platform lends them for the duration
//! of `lock` only, while a CLH node is in use until the successor has been granted the lock. The
//! null costs more. `unlock` has to read the tail to find out whether there is a successor, and the
//! tail's cache line is at the processor of the last waiter. An MCS waiter has the answer in its
//! own node. (It would be faster to grant first and to read the tail later. But then `unlock` would
//! access a lock that the successor may have freed.)
//!
//! Fairness: first come, first served, in the order of the swaps of `tail`. A waiter that has no
//! processor delays all waiters behind it. It also delays its predecessor, until it runs again.
//! Source: Craig, "Building FIFO and priority-queuing spin locks from atomic swap", University of
//! Washington TR 93-02-02, 1993. Magnusson, Landin and Hagersten, "Queue locks on cache coherent
//! multiprocessors", IPPS 1994. The null tail and the wait in `unlock`: Dice and Kogan, "Hemlock:
//! compact and scalable mutual exclusion", SPAA 2021 (arXiv 2102.03863). Hemlock has a node for
//! each thread. Here each acquisition has a node, so `granted` need not name the lock.

use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::platform::{Atomic, Platform};
use crate::raw::{RawLock, RawTryLock};

/// A queue node, in use from `lock` to `unlock`.
#[repr(transparent)]
pub struct Node<P: Platform> {
    /// 1 from the hand-over until the successor has seen it; otherwise 0.
    granted: P::U32,
}

impl<P: Platform> Node<P> {
    /// A node for a static or a pool.
    pub const fn new() -> Self {
        Self { granted: Atomic::ZERO }
    }
}

impl<P: Platform> Default for Node<P> {
    fn default() -> Self {
        Self { granted: Atomic::new(0) }
    }
}

/// See the [module](self).
#[repr(transparent)]
pub struct ClhLock<P: Platform> {
    tail: P::Ptr<Node<P>>,
}

impl<P: Platform> ClhLock<P> {
    /// An unlocked lock, in `const`.
    pub const fn new() -> Self {
        Self { tail: Atomic::ZERO }
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(predecessor: *mut Node<P>) {
        // SAFETY: the predecessor cannot leave `unlock` before it has seen the store below. We
        // borrow the one field, not the node: the predecessor may free the node once it sees the 0.
        let granted = unsafe { &(*predecessor).granted };
        // Ordering: Acquire, pairs with the Release store of 1 in `unlock_slow`: the previous
        // critical section happens before ours.
        P::wait_until(granted, Acquire, |granted| granted != 0);
        // Ordering: Release, pairs with the Acquire wait in `unlock_slow`: our accesses to the node
        // happen before its owner reuses or frees it.
        granted.store(0, Release);
    }

    #[cold]
    #[inline(never)]
    fn unlock_slow(node: &Node<P>) {
        // Ordering: Release, pairs with the Acquire wait in `lock_slow`: our critical section
        // happens before the successor's.
        node.granted.store(1, Release);
        // Ordering: Acquire, pairs with the Release store of 0 in `lock_slow`: from now on the node
        // is the caller's again.
        P::wait_until(&node.granted, Acquire, |granted| granted == 0);
    }
}

impl<P: Platform> Default for ClhLock<P> {
    fn default() -> Self {
        Self { tail: Atomic::new(ptr::null_mut()) }
    }
}

// SAFETY: a thread holds the lock if it found `tail` null, or if its predecessor granted it the
// lock. The predecessor was the only holder, and a thread has one predecessor only. The orderings
// are argued at each access.
unsafe impl<P: Platform> RawLock for ClhLock<P> {
    type Node = Node<P>;

    #[inline]
    unsafe fn lock(&self, node: &Node<P>) {
        // Ordering: AcqRel. Acquire pairs with the Release of `unlock`'s exchange, or of the
        // predecessor's swap: we see its node in the state in which the predecessor saw it. Release
        // is the same half of this swap, for our successor.
        let predecessor = self.tail.swap(ptr::from_ref(node).cast_mut(), AcqRel);
        if !predecessor.is_null() {
            Self::lock_slow(predecessor);
        }
    }

    #[inline]
    unsafe fn unlock(&self, node: &Node<P>) {
        let me = ptr::from_ref(node).cast_mut();
        // Ordering: Release on success, pairs with the Acquire half of `lock`'s swap: our critical
        // section happens before that of the thread that finds `tail` null. Relaxed on failure:
        // nothing is read through the value.
        if self.tail.compare_exchange(me, ptr::null_mut(), Release, Relaxed).is_err() {
            Self::unlock_slow(node);
        }
    }
}

// SAFETY: as above; the exchange locks only from null.
unsafe impl<P: Platform> RawTryLock for ClhLock<P> {
    #[inline]
    unsafe fn try_lock(&self, node: &Node<P>) -> bool {
        let me = ptr::from_ref(node).cast_mut();
        // Ordering: AcqRel as in `lock`. Relaxed on failure, where nothing is read through the
        // value.
        self.tail.load(Relaxed).is_null()
            && self.tail.compare_exchange(ptr::null_mut(), me, AcqRel, Relaxed).is_ok()
    }

    #[inline]
    fn is_locked(&self) -> bool {
        !self.tail.load(Relaxed).is_null()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Native;

    const _: () = assert!(size_of::<ClhLock<Native>>() == size_of::<usize>());
    const _: () = assert!(size_of::<Node<Native>>() == 4);

    #[test]
    fn tail_names_the_last_node_and_returns_to_null() {
        let lock = ClhLock::<Native>::new();
        let (a, b) = (Node::new(), Node::new());
        // SAFETY: the nodes outlive the acquisitions.
        unsafe {
            lock.lock(&a);
            assert_eq!(lock.tail.load(Relaxed).cast_const(), ptr::from_ref(&a));
            assert!(!lock.try_lock(&b) && lock.is_locked());
            lock.unlock(&a);
            assert!(lock.tail.load(Relaxed).is_null() && !lock.is_locked());
            assert!(lock.try_lock(&b));
            assert_eq!(lock.tail.load(Relaxed).cast_const(), ptr::from_ref(&b));
            lock.unlock(&b);
            assert!(lock.tail.load(Relaxed).is_null());
        }
    }

    #[test]
    fn a_node_is_free_and_zero_once_unlock_returns() {
        let lock = ClhLock::<Native>::new();
        let node = Node::new();
        for _ in 0..100 {
            // SAFETY: the node outlives the acquisition.
            unsafe { lock.lock(&node) };
            std::thread::scope(|scope| {
                let successor = scope.spawn(|| {
                    let node = Node::new();
                    // SAFETY: as above, and unlock follows.
                    unsafe {
                        lock.lock(&node);
                        lock.unlock(&node);
                    }
                });
                while lock.tail.load(Relaxed).cast_const() == ptr::from_ref(&node) {
                    std::thread::yield_now();
                }
                assert!(!successor.is_finished(), "it waits for us");
                // SAFETY: locked above with this node.
                unsafe { lock.unlock(&node) };
                assert_eq!(node.granted.load(Relaxed), 0);
            });
            assert!(lock.tail.load(Relaxed).is_null());
        }
    }
}
