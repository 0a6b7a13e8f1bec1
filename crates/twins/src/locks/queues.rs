//! The twins that queue.

use std::hint::spin_loop;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32};
use std::thread::yield_now;

use nearlock::raw::{RawLock, RawTryLock};

/// A queue of nodes, each of which points to the next one.
#[derive(Default)]
pub struct Mcs(AtomicPtr<McsNode>);

/// A node of the queue.
#[derive(Default)]
#[repr(C)]
pub struct McsNode {
    next: AtomicPtr<McsNode>,
    granted: AtomicU32,
}

impl McsNode {
    #[cold]
    #[inline(never)]
    fn lock_slow(&self, predecessor: *mut McsNode) {
        // SAFETY: the predecessor does not leave before it has seen this store.
        unsafe { &(*predecessor).next }.store(ptr::from_ref(self).cast_mut(), Release);
        while self.granted.load(Acquire) == 0 {
            yield_now();
        }
    }

    #[inline]
    fn reset(&self) {
        self.next.store(ptr::null_mut(), Relaxed);
        self.granted.store(0, Relaxed);
    }
}

// SAFETY: a thread holds the lock if there was no tail, or after its predecessor has granted it.
unsafe impl RawLock for Mcs {
    type Node = McsNode;
    #[inline]
    unsafe fn lock(&self, node: &McsNode) {
        node.reset();
        let predecessor = self.0.swap(ptr::from_ref(node).cast_mut(), AcqRel);
        if !predecessor.is_null() {
            node.lock_slow(predecessor);
        }
    }
    #[inline]
    unsafe fn unlock(&self, node: &McsNode) {
        let mut next = node.next.load(Acquire);
        if next.is_null() {
            let me = ptr::from_ref(node).cast_mut();
            if self.0.compare_exchange(me, ptr::null_mut(), Release, Relaxed).is_ok() {
                return;
            }
            while next.is_null() {
                spin_loop();
                next = node.next.load(Acquire);
            }
        }
        // SAFETY: the successor waits for this store.
        unsafe { &(*next).granted }.store(1, Release);
    }
}

// SAFETY: as above.
unsafe impl RawTryLock for Mcs {
    #[inline]
    unsafe fn try_lock(&self, node: &McsNode) -> bool {
        if !self.0.load(Relaxed).is_null() {
            return false;
        }
        node.reset();
        let me = ptr::from_ref(node).cast_mut();
        self.0.compare_exchange(ptr::null_mut(), me, AcqRel, Relaxed).is_ok()
    }
}

/// A queue of nodes, each of which is watched by its successor.
#[derive(Default)]
pub struct Clh(AtomicPtr<ClhNode>);

/// A node of the queue.
#[derive(Default)]
pub struct ClhNode(AtomicU32);

impl ClhNode {
    #[cold]
    #[inline(never)]
    fn lock_slow(predecessor: *mut ClhNode) {
        // SAFETY: the predecessor does not leave before it has seen the store below.
        let granted = unsafe { &(*predecessor).0 };
        while granted.load(Acquire) == 0 {
            yield_now();
        }
        granted.store(0, Release);
    }

    #[cold]
    #[inline(never)]
    fn unlock_slow(&self) {
        self.0.store(1, Release);
        while self.0.load(Acquire) != 0 {
            yield_now();
        }
    }
}

// SAFETY: a thread holds the lock if there was no tail, or after its predecessor has granted it.
unsafe impl RawLock for Clh {
    type Node = ClhNode;
    #[inline]
    unsafe fn lock(&self, node: &ClhNode) {
        let predecessor = self.0.swap(ptr::from_ref(node).cast_mut(), AcqRel);
        if !predecessor.is_null() {
            ClhNode::lock_slow(predecessor);
        }
    }
    #[inline]
    unsafe fn unlock(&self, node: &ClhNode) {
        let me = ptr::from_ref(node).cast_mut();
        if self.0.compare_exchange(me, ptr::null_mut(), Release, Relaxed).is_err() {
            node.unlock_slow();
        }
    }
}

// SAFETY: as above.
unsafe impl RawTryLock for Clh {
    #[inline]
    unsafe fn try_lock(&self, node: &ClhNode) -> bool {
        let me = ptr::from_ref(node).cast_mut();
        self.0.load(Relaxed).is_null()
            && self.0.compare_exchange(ptr::null_mut(), me, AcqRel, Relaxed).is_ok()
    }
}
