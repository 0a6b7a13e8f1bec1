//! MCS queue lock: each waiter spins on its own node.
//!
//! ```text
//!  tail ----------------------------------------.
//!                                               v
//!  [holder] --next--> [waiter 1] --next--> [waiter 2]
//!  granted=1          granted=0            granted=0
//!
//!  tail == null   unlocked
//!  tail == n      locked; n is the last in the queue, and the holder if no thread waits
//! ```
//! (The first holder of a queue has granted=0, since no thread granted it the lock. With
//! [`McsTuning::grants_itself`] it stores a grant in its own node.)
//!
//! Fairness: first come, first served, in the order of the swaps of `tail`. A wait is at most as
//! long as the holds of the threads in front. A waiter that has no processor delays all waiters
//! behind it.
//! Source: Mellor-Crummey and Scott, "Algorithms for scalable synchronization on shared-memory
//! multiprocessors", ACM TOCS 9(1), 1991, Figure 5.

use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::cohort::CohortDetecting;
use crate::platform::{Atomic, Platform};
use crate::raw::{RawLock, RawTryLock};
use crate::tuning::Standard;

switches! {
    /// The switches of [`McsLock`].
    pub trait McsTuning;
    SWITCHES from 4;

    /// Whether a thread without a predecessor writes a grant into its own node, where no thread
    /// reads it.
    fn grants_itself("grants-itself") -> bool as flag = false;
}

crate::tuning! {
    /// What Linux' MCS lock did until January 2014 (5faeb8adb956): the baseline for leaving it out.
    pub struct SelfGranted: McsTuning {
        grants_itself: bool = true;
    }
}

/// A queue node, in use from `lock` to `unlock`.
#[repr(C)]
pub struct Node<P: Platform> {
    /// The successor; null until the successor has linked itself.
    next: P::Ptr<Node<P>>,
    /// 0 while the owner must wait. 1 once the predecessor has handed the lock over, and more if it
    /// has left a word ([`CohortDetecting`]).
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
pub struct McsLock<P: Platform, T: McsTuning = Standard> {
    tail: P::Ptr<Node<P>>,
    tuning: PhantomData<T>,
}

impl<P: Platform, T: McsTuning> McsLock<P, T> {
    /// An unlocked lock, in `const`.
    pub const fn new() -> Self {
        Self { tail: Atomic::ZERO, tuning: PhantomData }
    }

    /// Locks. Returns what the predecessor has left in `granted`, or 0 if there was no predecessor.
    #[inline(always)]
    fn lock_granted(&self, node: &Node<P>) -> u32 {
        node.next.store(ptr::null_mut(), Relaxed);
        node.granted.store(0, Relaxed);
        // Ordering: AcqRel. Release publishes the two stores above to the successor that will find
        // us in `tail`. Acquire pairs with the Release in `unlock`'s compare-exchange. It also
        // makes the predecessor's initialised node visible before we write into it.
        let predecessor = self.tail.swap(ptr::from_ref(node).cast_mut(), AcqRel);
        if !predecessor.is_null() {
            return Self::lock_slow(node, predecessor);
        }
        Self::note_first(node);
        0
    }

    /// Called by a thread that has found no predecessor.
    #[inline(always)]
    fn note_first(node: &Node<P>) {
        if T::grants_itself() {
            node.granted.store(1, Relaxed);
        }
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(me: &Node<P>, predecessor: *mut Node<P>) -> u32 {
        // Ordering: Release, pairs with the Acquires of `next` in `unlock`, `unlock_slow` and
        // `unlock_leaving`: our node's initialisation happens before the predecessor writes
        // `granted`.
        // SAFETY: the predecessor cannot leave `unlock` before it has seen us in its `next`.
        unsafe { &(*predecessor).next }.store(ptr::from_ref(me).cast_mut(), Release);
        // Ordering: Acquire, pairs with the Release store of `granted` in `grant`: the previous
        // critical section happens before ours.
        P::wait_until(&me.granted, Acquire, |granted| granted != 0)
    }

    /// Hands the lock over to the successor, which has swapped its node into `tail`, but may not
    /// have linked itself yet.
    #[cold]
    #[inline(never)]
    fn unlock_slow(node: &Node<P>) {
        // Ordering: Acquire, pairs with the Release store of `next` in `lock_slow`: the successor's
        // node is initialised before we write into it.
        let next = P::wait_until(&node.next, Acquire, |next| !next.is_null());
        // SAFETY: `next` is our successor, which has linked itself.
        unsafe { Self::grant(next, 1) };
    }

    /// Safety: the caller holds the lock, and `next` is its successor.
    #[inline(always)]
    unsafe fn grant(next: *mut Node<P>, granted: u32) {
        // Ordering: Release, pairs with the Acquire wait in `lock_slow`: our critical section
        // happens before the successor's.
        // SAFETY: the successor waits for `granted`, so its node is alive until this store. We
        // borrow the one field, not the node: the successor may free the node once it sees the
        // grant.
        unsafe { &(*next).granted }.store(granted, Release);
    }
}

impl<P: Platform, T: McsTuning> Default for McsLock<P, T> {
    fn default() -> Self {
        Self { tail: Atomic::new(ptr::null_mut()), tuning: PhantomData }
    }
}

// SAFETY: a thread holds the lock if it found `tail` null, or if its predecessor, the only holder,
// granted it the lock. The orderings are argued at each access.
unsafe impl<P: Platform, T: McsTuning> RawLock for McsLock<P, T> {
    type Node = Node<P>;

    #[inline]
    unsafe fn lock(&self, node: &Node<P>) {
        self.lock_granted(node);
    }

    #[inline]
    unsafe fn unlock(&self, node: &Node<P>) {
        // Ordering: Acquire, pairs with the Release store of `next` in `lock_slow`: the successor's
        // node is initialised before we write into it.
        let next = node.next.load(Acquire);
        if !next.is_null() {
            // SAFETY: `next` is our successor, which has linked itself.
            return unsafe { Self::grant(next, 1) };
        }
        let me = ptr::from_ref(node).cast_mut();
        // Ordering: Release on success, pairs with the Acquire half of `lock_granted`'s swap: our
        // critical section happens before that of the thread that finds `tail` null. Relaxed on
        // failure: nothing is read through the value.
        if self.tail.compare_exchange(me, ptr::null_mut(), Release, Relaxed).is_err() {
            Self::unlock_slow(node);
        }
    }
}

// SAFETY: as above; the exchange locks only from null.
unsafe impl<P: Platform, T: McsTuning> RawTryLock for McsLock<P, T> {
    #[inline]
    unsafe fn try_lock(&self, node: &Node<P>) -> bool {
        if !self.tail.load(Relaxed).is_null() {
            return false;
        }
        node.next.store(ptr::null_mut(), Relaxed);
        node.granted.store(0, Relaxed);
        let me = ptr::from_ref(node).cast_mut();
        // Ordering: AcqRel as in `lock_granted`. Relaxed on failure, where nothing is read through
        // the value.
        let is_first = self.tail.compare_exchange(ptr::null_mut(), me, AcqRel, Relaxed).is_ok();
        if is_first {
            Self::note_first(node);
        }
        is_first
    }

    #[inline]
    fn is_locked(&self) -> bool {
        !self.tail.load(Relaxed).is_null()
    }
}

// SAFETY: a successor that has linked itself waits for its grant, and cannot leave before. The
// grant is 1 plus the word.
unsafe impl<P: Platform, T: McsTuning> CohortDetecting for McsLock<P, T> {
    #[inline]
    unsafe fn lock_receiving(&self, node: &Node<P>) -> u32 {
        self.lock_granted(node).saturating_sub(1)
    }

    #[inline]
    unsafe fn is_alone(&self, node: &Node<P>) -> bool {
        node.next.load(Relaxed).is_null()
    }

    #[inline]
    unsafe fn unlock_leaving(&self, node: &Node<P>, word: u32) {
        // Ordering: Acquire, as in `unlock`. Not null, since `is_alone` was false.
        let next = node.next.load(Acquire);
        // SAFETY: `next` is our successor, which has linked itself.
        unsafe { Self::grant(next, word + 1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Native;
    use crate::testing::{OneThread, meanwhile, others_are_done};
    use std::boxed::Box;

    const _: () = assert!(size_of::<McsLock<Native>>() == size_of::<usize>());
    const _: () = assert!(size_of::<Node<Native>>() == 2 * size_of::<usize>());

    #[test]
    fn a_node_that_was_used_before_is_initialised_again() {
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
    fn a_successor_finds_the_word_that_was_left() {
        let lock = McsLock::<Native>::new();
        let (a, b) = (Node::new(), Node::new());
        // SAFETY: one thread; `b` is queued behind `a`, as by `lock`.
        unsafe {
            assert_eq!(lock.lock_receiving(&a), 0);
            assert!(lock.is_alone(&a));
            lock.tail.store(ptr::from_ref(&b).cast_mut(), Relaxed);
            a.next.store(ptr::from_ref(&b).cast_mut(), Relaxed);
            assert!(!lock.is_alone(&a));
            lock.unlock_leaving(&a, 7);
            assert_eq!(b.granted.load(Relaxed), 8, "0 is to wait, and 1 an ordinary release");
            lock.unlock(&b);
            assert!(!lock.is_locked());
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

    #[test]
    fn a_first_holder_grants_itself_the_lock_if_it_is_to() {
        fn granted<T: McsTuning>() -> [u32; 2] {
            let lock = McsLock::<Native, T>::new();
            let node = Node::<Native>::new();
            // SAFETY: one thread, the node outlives the acquisitions, and unlock follows each.
            unsafe {
                lock.lock(&node);
                let after_lock = node.granted.load(Relaxed);
                lock.unlock(&node);
                assert!(lock.try_lock(&node));
                let after_try = node.granted.load(Relaxed);
                lock.unlock(&node);
                [after_lock, after_try]
            }
        }
        assert_eq!((granted::<Standard>(), granted::<SelfGranted>()), ([0; 2], [1; 2]));
    }

    #[test]
    fn an_unlock_waits_for_a_successor_that_has_swapped_and_not_linked() {
        let lock = McsLock::<OneThread>::new();
        let [node, next]: &[Node<OneThread>; 2] = Box::leak(Box::default());
        meanwhile(|| node.next.store(ptr::from_ref(next).cast_mut(), Relaxed));
        // SAFETY: one thread; `next` is queued behind `node`.
        unsafe {
            lock.lock(node);
            lock.tail.store(ptr::from_ref(next).cast_mut(), Relaxed);
            lock.unlock(node);
        }
        assert!(others_are_done());
        assert_eq!(next.granted.load(Relaxed), 1);
    }
}
