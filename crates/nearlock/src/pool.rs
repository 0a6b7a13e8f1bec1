//! Queue nodes for locks that take them from their callers.
//!
//! ```text
//!  FREE (of the thread) --> block --next--> block --next--> null
//!                             |  ^
//!                        take |  | give back, by the same thread
//!                             v  |
//!                            block, holding the node of one acquisition
//! ```
//! 1. A block is in the list of one thread, or belongs to one acquisition of that thread.
//! 2. A block never moves, whatever happens to the guard that refers to it. It is freed only from
//!    the list. A forgotten guard leaks its block: the lock stays locked for ever, and its word may
//!    point to the node.
//!
//! So a thread keeps as many blocks as the largest number of such locks that it has held at the
//! same time. They are freed when the thread ends.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use nearlock_core::raw::{RawLock, RawTryLock};

use crate::lock_api::{Mutex, RawMutex};
use crate::raw::Unlocked;

/// Bytes for a node: two cache lines of 64 bytes, because processors fetch cache lines in pairs.
/// With fewer bytes waiters would disturb each other. A lock with larger nodes does not compile.
const BLOCK_BYTES: usize = 128;

/// Memory for a node of any lock.
#[repr(C, align(128))]
union Block {
    /// The next block in the list. Null in the last one.
    next: *mut Block,
    /// Memory for the node.
    node: MaybeUninit<[u8; BLOCK_BYTES]>,
}

const _: () = assert!(size_of::<Block>() == BLOCK_BYTES && align_of::<Block>() == BLOCK_BYTES);

/// The first free block; null if there is none.
struct FreeList(Cell<*mut Block>);

thread_local! {
    static FREE: FreeList = const { FreeList(Cell::new(ptr::null_mut())) };
}

impl FreeList {
    #[inline]
    fn take(&self) -> Option<NonNull<Block>> {
        let block = NonNull::new(self.0.get())?;
        // SAFETY: a block in the list belongs to the list, and contains `next`.
        self.0.set(unsafe { (*block.as_ptr()).next });
        Some(block)
    }

    /// Safety: no other code uses the block.
    #[inline]
    unsafe fn put(&self, block: NonNull<Block>) {
        // SAFETY: the block belongs to the list from here on.
        unsafe { (*block.as_ptr()).next = self.0.get() };
        self.0.set(block.as_ptr());
    }
}

impl Drop for FreeList {
    fn drop(&mut self) {
        while let Some(block) = self.take() {
            // SAFETY: the block is not in the list any more.
            unsafe { free_block(block) };
        }
    }
}

/// The number of blocks. Relaxed: a statistic, which orders nothing.
static BLOCKS: AtomicUsize = AtomicUsize::new(0);

/// Returns how many queue nodes of guards the process has in memory, of 128 bytes each. A thread
/// keeps as many as the largest number of such locks ([`Pooled`]) that it has held at the same
/// time, until it ends. A forgotten guard keeps its node for ever.
pub fn queue_nodes() -> usize {
    BLOCKS.load(Relaxed)
}

#[inline]
fn take_block() -> NonNull<Block> {
    // A thread whose local data is being destroyed has no list any more.
    FREE.try_with(FreeList::take).ok().flatten().unwrap_or_else(new_block)
}

#[cold]
#[inline(never)]
fn new_block() -> NonNull<Block> {
    BLOCKS.fetch_add(1, Relaxed);
    NonNull::from(Box::leak(Box::new(Block { node: MaybeUninit::uninit() })))
}

/// Safety: no other code uses the block, and it is in no list.
#[cold]
unsafe fn free_block(block: NonNull<Block>) {
    BLOCKS.fetch_sub(1, Relaxed);
    // SAFETY: made by `new_block`; the rest is upheld by the caller.
    drop(unsafe { Box::from_raw(block.as_ptr()) });
}

/// Safety: no other code uses the block.
#[inline]
unsafe fn give_back_block(block: NonNull<Block>) {
    // SAFETY: upheld by the caller.
    if FREE.try_with(|free| unsafe { free.put(block) }).is_err() {
        // SAFETY: the block is in no list.
        unsafe { free_block(block) };
    }
}

/// The state of a guard of a [`Pooled`] lock: the queue node of its acquisition.
///
/// Other code can neither create nor use it. Forgetting it leaks the node and leaves the lock
/// locked.
#[must_use = "the acquisition is lost without it"]
pub struct PooledNode<L: RawLock>(NonNull<L::Node>);

// SAFETY: a shared reference to it gives access to nothing.
unsafe impl<L: RawLock> Sync for PooledNode<L> {}

impl<L: RawLock> PooledNode<L> {
    fn take() -> Self {
        const {
            assert!(size_of::<L::Node>() <= BLOCK_BYTES && align_of::<L::Node>() <= BLOCK_BYTES);
        }
        let node = take_block().cast::<L::Node>();
        // SAFETY: the block belongs to this acquisition by invariant 1, and has room for a node.
        unsafe { node.write(L::Node::default()) };
        Self(node)
    }

    fn node(&self) -> &L::Node {
        // SAFETY: written in `take`, and not moved since, by invariant 2.
        unsafe { self.0.as_ref() }
    }

    /// Safety: the node belongs to no acquisition, or to one that has ended.
    unsafe fn give_back(self) {
        // SAFETY: written in `take`, not used any more, and in a block that belongs to us.
        unsafe {
            self.0.drop_in_place();
            give_back_block(self.0.cast());
        }
    }
}

/// Makes a [`lock_api`] mutex, of the same size, from a lock whose acquisitions need a queue node.
///
/// A guard holds a node from a pool of the calling thread. So it may be moved, forgotten and
/// dropped in any order, like any other guard. It costs a few instructions to take a node and to
/// give it back. A thread allocates when it holds more such locks at the same time than ever
/// before. So signal handlers must not use this. [`LockWith`] needs no pool.
#[derive(Default)]
#[repr(transparent)]
pub struct Pooled<L>(L);

// SAFETY: the lock provides exclusion and orderings (`RawLock`). It has each acquisition's node for
// itself and in place until `unlock` returns (invariants 1 and 2). The guard state cannot unlock.
// Forgetting it leaks the node. If a lock is moved or dropped while it is locked, its word may
// still point to that node, and nothing else points anywhere (`Unlocked`). The lock's operations do
// not unwind.
unsafe impl<L: RawTryLock + Unlocked> RawMutex for Pooled<L> {
    const INIT: Self = Self(L::UNLOCKED);
    type Guard = PooledNode<L>;

    #[inline]
    fn lock(&self) -> PooledNode<L> {
        let node = PooledNode::take();
        // SAFETY: the node belongs to this acquisition until `unlock`.
        unsafe { self.0.lock(node.node()) };
        node
    }

    #[inline]
    fn try_lock(&self) -> Option<PooledNode<L>> {
        let node = PooledNode::take();
        // SAFETY: as above.
        if unsafe { self.0.try_lock(node.node()) } {
            Some(node)
        } else {
            // SAFETY: there is no acquisition.
            unsafe { node.give_back() };
            None
        }
    }

    #[inline]
    unsafe fn unlock(&self, node: PooledNode<L>) {
        // SAFETY: the caller's acquisition, made with this node, ends here.
        unsafe {
            self.0.unlock(node.node());
            node.give_back();
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

/// Locks with the queue node on the caller's stack. This needs no pool and no allocation. The
/// critical section is a closure, so that the node can neither move nor be dropped too early.
///
/// ```
/// use nearlock::classic::{LockWith, McsLock};
///
/// static LOG: McsLock<Vec<u32>> = McsLock::new(Vec::new());
///
/// let length = LOG.lock_with(|log| {
///     log.push(7);
///     log.len()
/// });
/// assert_eq!(length, 1);
/// assert_eq!(LOG.try_lock_with(|log| log.pop()), Some(Some(7)));
/// ```
pub trait LockWith<T: ?Sized> {
    /// Runs `section` with the lock held. If it panics, the lock is unlocked.
    ///
    /// Deadlocks if the calling thread holds the lock already.
    fn lock_with<R>(&self, section: impl FnOnce(&mut T) -> R) -> R;

    /// Runs `section` with the lock held, if the lock is free. Never waits for another thread.
    fn try_lock_with<R>(&self, section: impl FnOnce(&mut T) -> R) -> Option<R>;
}

/// Unlocks at the end of a critical section, even if it panics.
struct Held<'a, L: RawLock> {
    lock: &'a L,
    node: &'a L::Node,
}

impl<L: RawLock> Drop for Held<'_, L> {
    fn drop(&mut self) {
        // SAFETY: made for an acquisition with this node.
        unsafe { self.lock.unlock(self.node) };
    }
}

impl<L: RawTryLock + Unlocked, T: ?Sized> LockWith<T> for Mutex<Pooled<L>, T> {
    fn lock_with<R>(&self, section: impl FnOnce(&mut T) -> R) -> R {
        let node = L::Node::default();
        // SAFETY: the raw lock is only locked and then unlocked.
        let lock = unsafe { &self.raw().0 };
        // SAFETY: the node is new. It stays on this stack frame until `_held`, which is declared
        // after it, has unlocked the lock.
        unsafe { lock.lock(&node) };
        let _held = Held { lock, node: &node };
        // SAFETY: the holder of the lock has exclusive access to the data.
        section(unsafe { &mut *self.data_ptr() })
    }

    fn try_lock_with<R>(&self, section: impl FnOnce(&mut T) -> R) -> Option<R> {
        let node = L::Node::default();
        // SAFETY: as in `lock_with`. The same holds below.
        let lock = unsafe { &self.raw().0 };
        // SAFETY: as above.
        if !unsafe { lock.try_lock(&node) } {
            return None;
        }
        let _held = Held { lock, node: &node };
        // SAFETY: as above.
        Some(section(unsafe { &mut *self.data_ptr() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classic::McsLock;

    /// The number of blocks in the list of the thread.
    fn free_blocks() -> usize {
        FREE.with(|free| {
            let mut count = 0;
            let mut block = free.0.get();
            while !block.is_null() {
                count += 1;
                // SAFETY: a block of the list holds `next`.
                block = unsafe { (*block).next };
            }
            count
        })
    }

    #[test]
    fn a_thread_keeps_as_many_blocks_as_it_held_locks() {
        let locks: [McsLock<()>; 3] = Default::default();
        assert_eq!(free_blocks(), 0);
        for _ in 0..2 {
            let mut guards: Vec<_> = locks.iter().map(|lock| lock.lock()).collect();
            assert_eq!(free_blocks(), 0);
            drop(guards.remove(1));
            assert_eq!(free_blocks(), 1);
            drop(guards);
            assert_eq!(free_blocks(), 3);
        }
    }

    #[test]
    fn a_failed_attempt_gives_its_block_back() {
        let lock = McsLock::new(());
        let guard = lock.lock();
        assert!(lock.try_lock().is_none());
        assert_eq!(free_blocks(), 1);
        drop(guard);
        assert_eq!(free_blocks(), 2);
    }

    #[test]
    fn a_section_on_the_stack_takes_no_block() {
        let lock = McsLock::new(1);
        assert_eq!(lock.lock_with(|value| *value + 1), 2);
        assert_eq!(lock.try_lock_with(|value| *value + 2), Some(3));
        assert_eq!(free_blocks(), 0);
    }
}
