//! MCS queue lock: each waiter spins on its own node.
//!
//! ```text
//!  tail ----------------------------------------.
//!                                               v
//!  [holder] --next--> [waiter 1] --next--> [waiter 2]
//!  granted=1          granted=0            granted=0
//!
//!  tail == null   unlocked
//!  tail == n      locked; n is the last in the queue, and the holder if nobody waits
//! ```
//! (The first holder of a queue has granted=0: nobody granted it anything.)
//!
//! Fairness: first come, first served, from the swap of `tail` on; a wait is at most the holds of those
//! in front. A waiter that is off the processor holds up all behind it.
//! Source: Mellor-Crummey and Scott, "Algorithms for scalable synchronization on shared-memory
//! multiprocessors", ACM TOCS 9(1), 1991, Figure 5.

use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::platform::{Atomic, Platform};
use crate::raw::{RawLock, RawTryLock};

/// A place in the queue, from `lock` to `unlock`.
#[repr(C)]
pub struct Node<P: Platform> {
    /// The waiter behind this one; null until that waiter has linked itself in.
    next: P::Ptr<Node<P>>,
    /// 0 while the owner must wait, 1 once the predecessor has passed the lock on.
    granted: P::U32,
}

impl<P: Platform> Node<P> {
    /// A node for a static or a pool.
    pub const fn new() -> Self {
        Self { next: Atomic::ZERO, granted: Atomic::ZERO }
    }
}

impl<P: Platform> Default for Node<P> {
    fn default() -> Self {
        Self { next: Atomic::new(ptr::null_mut()), granted: Atomic::new(0) }
    }
}

/// See the [module](self).
#[repr(transparent)]
pub struct McsLock<P: Platform> {
    tail: P::Ptr<Node<P>>,
}

impl<P: Platform> McsLock<P> {
    /// An unlocked lock, in `const`.
    pub const fn new() -> Self {
        Self { tail: Atomic::ZERO }
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(me: &Node<P>, predecessor: *mut Node<P>) {
        // Ordering: Release, pairs with the Acquires of `next` in `unlock` and `unlock_slow`: our node's
        // initialisation happens before the predecessor writes `granted`.
        // SAFETY: the predecessor cannot leave `unlock` before it has seen us in its `next`.
        unsafe { &(*predecessor).next }.store(ptr::from_ref(me).cast_mut(), Release);
        // Ordering: Acquire, pairs with the Release store of `granted` in `grant`: the previous
        // section happens before ours.
        P::wait_until(&me.granted, Acquire, |granted| granted != 0);
    }

    /// Passes the lock on to whoever has swapped itself in behind us, and may not have linked itself in yet.
    #[cold]
    #[inline(never)]
    fn unlock_slow(node: &Node<P>) {
        // Ordering: Acquire, pairs with the Release store of `next` in `lock_slow`: the successor's node is
        // initialised before we write into it.
        let next = P::wait_until(&node.next, Acquire, |next| !next.is_null());
        // SAFETY: linked in behind us.
        unsafe { Self::grant(next) };
    }

    /// Safety: `next` is the successor of the caller, who holds the lock.
    #[inline(always)]
    unsafe fn grant(next: *mut Node<P>) {
        // Ordering: Release, pairs with the Acquire wait in `lock_slow`: our section happens before theirs.
        // SAFETY: the successor waits for `granted`, so its node is alive until this store. We borrow
        // the one field, not the node: the successor may free the node once it sees the 1.
        unsafe { &(*next).granted }.store(1, Release);
    }
}

impl<P: Platform> Default for McsLock<P> {
    fn default() -> Self {
        Self { tail: Atomic::new(ptr::null_mut()) }
    }
}

// SAFETY: a node acquires if it found `tail` null or was granted by the one holder before it; the
// orderings are argued at each access.
unsafe impl<P: Platform> RawLock for McsLock<P> {
    type Node = Node<P>;

    #[inline]
    unsafe fn lock(&self, node: &Node<P>) {
        node.next.store(ptr::null_mut(), Relaxed);
        node.granted.store(0, Relaxed);
        // Ordering: AcqRel. Release publishes the two stores above to the successor that will
        // find us in `tail`; Acquire pairs with the Release in `unlock`'s compare-exchange, and
        // makes the predecessor's initialised node visible before we write into it.
        let predecessor = self.tail.swap(ptr::from_ref(node).cast_mut(), AcqRel);
        if !predecessor.is_null() {
            Self::lock_slow(node, predecessor);
        }
    }

    #[inline]
    unsafe fn unlock(&self, node: &Node<P>) {
        // Ordering: Acquire, pairs with the Release store of `next` in `lock_slow`: the successor's node
        // is initialised before we write into it.
        let next = node.next.load(Acquire);
        if !next.is_null() {
            // SAFETY: linked in behind us.
            return unsafe { Self::grant(next) };
        }
        let me = ptr::from_ref(node).cast_mut();
        // Ordering: Release on success, pairs with the Acquire half of `lock`'s swap: our section happens
        // before that of whoever finds `tail` null. Relaxed on failure: nothing is read through the value.
        if self.tail.compare_exchange(me, ptr::null_mut(), Release, Relaxed).is_err() {
            Self::unlock_slow(node);
        }
    }
}

// SAFETY: as above; the exchange acquires only from null.
unsafe impl<P: Platform> RawTryLock for McsLock<P> {
    #[inline]
    unsafe fn try_lock(&self, node: &Node<P>) -> bool {
        if !self.tail.load(Relaxed).is_null() {
            return false;
        }
        node.next.store(ptr::null_mut(), Relaxed);
        node.granted.store(0, Relaxed);
        let me = ptr::from_ref(node).cast_mut();
        // Ordering: AcqRel as in `lock`; Relaxed on failure, where nothing is read through the value.
        self.tail.compare_exchange(ptr::null_mut(), me, AcqRel, Relaxed).is_ok()
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

    const _: () = assert!(size_of::<McsLock<Native>>() == size_of::<usize>());
    const _: () = assert!(size_of::<Node<Native>>() == 2 * size_of::<usize>());

    #[test]
    fn a_node_that_was_used_before_begins_anew() {
        let lock = McsLock::<Native>::new();
        let (node, other) = (Node::<Native>::new(), Node::<Native>::new());
        let stale = || {
            node.next.store(ptr::from_ref(&other).cast_mut(), Relaxed);
            node.granted.store(1, Relaxed);
        };
        let is_fresh = || node.next.load(Relaxed).is_null() && node.granted.load(Relaxed) == 0;
        // SAFETY: one thread, the node outlives the acquisitions, and unlock follows each.
        unsafe {
            stale();
            lock.lock(&node);
            assert!(is_fresh());
            lock.unlock(&node);
            stale();
            assert!(lock.try_lock(&node) && is_fresh());
            lock.unlock(&node);
        }
    }

    #[test]
    fn tail_names_the_last_node_and_returns_to_null() {
        let lock = McsLock::<Native>::new();
        let (a, b) = (Node::new(), Node::new());
        // SAFETY: the nodes outlive the acquisitions.
        unsafe {
            lock.lock(&a);
            assert_eq!(lock.tail.load(Relaxed).cast_const(), ptr::from_ref(&a));
            assert!(!lock.try_lock(&b) && lock.is_locked());
            lock.unlock(&a);
            assert!(lock.tail.load(Relaxed).is_null() && !lock.is_locked());
            assert!(lock.try_lock(&b));
            lock.unlock(&b);
        }
    }
}
