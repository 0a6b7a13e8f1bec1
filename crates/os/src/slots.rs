//! Slots: what the process keeps for each thread that has waited for a lock, found by number.
//!
//! ```text
//!  chunks  [ * | * | null ... ]        free  (count of pushes, slot + 1)
//!            |   |                       |
//!            v   v                       v
//!           slots 0-63, 64-127, ...     slot --next_free--> slot --next_free--> 0
//!
//!  slot    node 0 | node 1 | node 2 | node 3 | depth, next_free, asleep, events ...   (on lines of their own)
//! ```
//! 1. Memory of slots is never freed nor moved: a number once given out names the same lines for ever.
//! 2. A slot is leased to at most one thread, and only that thread writes to it, except that other
//!    threads write to nodes of acquisitions that are under way.
//! 3. A slot is leased again only after its thread has left all its acquisitions. The locks promise that
//!    nobody writes to a node after its acquisition has given it back, and that whoever did so before happens
//!    before that. The free list passes this on to the next lessee. A waiter may still look at a word of 4 bytes
//!    of such a node, and take what it reads for a hint.
//!
//! The free list is a stack without locks, so that registering can be interrupted, and the process forked,
//! at any moment. Each push counts the head up, so a head that has been away and back is not taken for the
//! same (ABA), short of 2^32 pushes during one pop.
//! Source: Treiber, "Systems programming: coping with parallelism", IBM RJ 5118, 1986 (the stack).

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::mem::{MaybeUninit, offset_of};
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, compiler_fence};
use std::alloc::Layout;

use nearlock_core::events::LockEvent;
use nearlock_core::platform::{LentNode, NodeId, ZeroNode};

use crate::sys;

/// Bytes of a cache line, and of a node: a waiter spins on its own line. (x86-64 and the servers of aarch64.)
pub const LINE: usize = 64;

/// Slots per chunk, a few pages. More would waste memory in small programs, fewer make the table longer.
const CHUNK_SLOTS: usize = 64;
const CHUNKS: usize = (NodeId::SLOTS as usize).div_ceil(CHUNK_SLOTS);

/// A node of whatever type the acquisition asks for that uses it at present.
#[repr(C, align(64))]
struct NodeLine(UnsafeCell<[MaybeUninit<u8>; LINE]>);

const _: () = assert!(size_of::<NodeLine>() == LINE && align_of::<NodeLine>() == LINE);

// SAFETY: the bytes are reached only through raw pointers, and whoever follows one argues for itself.
unsafe impl Sync for NodeLine {}

/// What is kept for one thread. Zeroed memory, but for its `id`, is a free slot.
#[repr(C, align(64))]
pub struct Slot {
    nodes: [NodeLine; NodeId::NESTING as usize],
    /// Its number. Fixed before other threads can reach the slot.
    id: u32,
    /// How many nodes are in use.
    depth: AtomicU32,
    /// Number plus one of the slot below in the free list; 0 if there is none.
    next_free: AtomicU32,
    /// 1 while its thread sleeps in a lock.
    asleep: AtomicU32,
    /// Counted since the process began, by whichever threads had the slot.
    events: [AtomicU64; LockEvent::COUNT],
}

const _: () =
    assert!(offset_of!(Slot, nodes) == 0 && offset_of!(Slot, id) == NodeId::NESTING as usize * LINE);

impl Slot {
    /// Its number, below [`NodeId::SLOTS`].
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Does `sleep`, while the thread counts as asleep. To be called by it alone. Relaxed: a hint.
    #[inline]
    pub fn while_asleep<R>(&self, sleep: impl FnOnce() -> R) -> R {
        self.asleep.store(1, Relaxed);
        let r = sleep();
        self.asleep.store(0, Relaxed);
        r
    }

    /// Takes the thread's next node, or none if all are in use.
    ///
    /// # Safety
    ///
    /// The slot is leased to the calling thread.
    #[inline]
    pub unsafe fn enter(&self) -> Option<Level<'_>> {
        let level = self.depth.load(Relaxed);
        if level >= NodeId::NESTING {
            return None;
        }
        self.depth.store(level + 1, Relaxed);
        // Ordering: SeqCst, for the compiler alone. This thread: depth, then the node. A signal handler that
        // interrupts it: depth, then its node. No access to the node may come before the new depth is there.
        compiler_fence(SeqCst);
        Some(Level { slot: self, level, own_thread: PhantomData })
    }

    /// Counts an event. To be called by the thread that has the slot: the count is no read-modify-write.
    /// (If a signal handler counts the same event in between, that one is lost.)
    #[inline]
    pub fn count(&self, event: LockEvent) {
        let counter = &self.events[event as usize];
        counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// What was counted so far.
    pub fn events(&self) -> [u64; LockEvent::COUNT] {
        self.events.each_ref().map(|count| count.load(Relaxed))
    }
}

/// A node in use.
pub struct Level<'a> {
    slot: &'a Slot,
    level: u32,
    /// Neither `Send` nor `Sync`: the slot is the thread's.
    own_thread: PhantomData<*const ()>,
}

impl Level<'_> {
    /// The node, with all bytes zero.
    #[inline]
    pub fn lend<N: ZeroNode>(&mut self) -> LentNode<N> {
        let id = NodeId { slot: self.slot.id, level: self.level };
        let node = node_of::<N>(self.slot, id.level).cast_mut();
        // An earlier acquisition may have left bytes here that are no value of `N`.
        for word in 0..size_of::<N>() / size_of::<AtomicU32>() {
            // Atomic, because a waiter of that acquisition may still look (invariant 3). Relaxed: it reads nothing
            // through what it sees.
            // SAFETY: the line is as long and as aligned as the node (`node_of`), the level is ours, and by
            // invariant 3 nobody else writes to it, nor reads words of another size.
            unsafe { AtomicU32::from_ptr(node.cast::<u32>().add(word)) }.store(0, Relaxed);
        }
        LentNode { id, node }
    }
}

impl Drop for Level<'_> {
    #[inline]
    fn drop(&mut self) {
        // Ordering: SeqCst, for the compiler alone, as in `enter`: nor may an access come after the old
        // depth is back.
        compiler_fence(SeqCst);
        self.slot.depth.store(self.level, Relaxed);
    }
}

/// Where the node of this level is, for any pointer to a slot: nothing is accessed.
#[inline]
fn node_of<N: ZeroNode>(slot: *const Slot, level: u32) -> *const N {
    const { assert!(size_of::<N>() <= LINE && align_of::<N>() <= LINE, "a node must fit into a line") };
    const { assert!(align_of::<N>() >= align_of::<u32>(), "a node consists of words") };
    slot.wrapping_byte_add(level as usize * LINE).cast()
}

/// A table of slots.
pub struct Registry {
    capacity: u32,
    /// Slots that have been leased at least once.
    fresh: AtomicU32,
    /// Upper half: count of pushes. Lower half: number plus one of the first free slot; 0 if there is none.
    free: AtomicU64,
    chunks: [AtomicPtr<Slot>; CHUNKS],
}

impl Registry {
    /// A table that gives out at most `capacity` slots at a time.
    pub const fn new(capacity: u32) -> Self {
        assert!(capacity as usize <= CHUNKS * CHUNK_SLOTS);
        Self {
            capacity,
            fresh: AtomicU32::new(0),
            free: AtomicU64::new(0),
            chunks: [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS],
        }
    }

    /// A slot for the calling thread, until the lease is dropped. `None` if all are taken, or memory has
    /// run out.
    pub fn lease(&self) -> Option<Lease<'_>> {
        let slot = self.pop_free().or_else(|| self.take_fresh())?;
        Some(Lease { registry: self, slot })
    }

    /// The node with this name. Follow the pointer only if the name came from [`Level::lend`] of this table.
    #[inline]
    pub fn node<N: ZeroNode>(&self, id: NodeId) -> *const N {
        node_of(self.locate(id.slot), id.level)
    }

    /// Adds what has been counted in all slots to `sums`.
    pub fn add_events(&self, sums: &mut [u64; LockEvent::COUNT]) {
        // Ordering: Acquire, pairs with the Release in `take_fresh`: the chunks of these slots are there.
        for id in 0..self.fresh.load(Acquire) {
            // SAFETY: its chunk is there, for ever (invariant 1).
            let events = unsafe { &*self.locate(id) }.events();
            sums.iter_mut().zip(events).for_each(|(sum, count)| *sum = sum.wrapping_add(count));
        }
    }

    /// How many slots have ever been leased.
    pub fn made(&self) -> u32 {
        self.fresh.load(Relaxed)
    }

    /// Whether the thread in this slot sleeps in a lock. A hint; false for a number that no thread has had.
    #[inline]
    pub fn is_asleep(&self, id: u32) -> bool {
        let Some(chunk) = self.chunks.get(id as usize / CHUNK_SLOTS) else {
            return false;
        };
        // Ordering: Acquire, pairs with the Release in `ensure_chunk`: the slots are there.
        let chunk = chunk.load(Acquire);
        // SAFETY: a chunk that is there stays (invariant 1), and has so many slots.
        !chunk.is_null() && unsafe { &(*chunk.add(id as usize % CHUNK_SLOTS)).asleep }.load(Relaxed) != 0
    }

    /// Where the slot with this number is, if its chunk is there; otherwise nowhere.
    #[inline]
    fn locate(&self, id: u32) -> *const Slot {
        let Some(chunk) = self.chunks.get(id as usize / CHUNK_SLOTS) else {
            return ptr::null();
        };
        // Ordering: Acquire, pairs with the Release in `ensure_chunk`: the slots' numbers are there.
        chunk.load(Acquire).wrapping_add(id as usize % CHUNK_SLOTS)
    }

    fn take_fresh(&self) -> Option<&'static Slot> {
        let mut id = self.fresh.load(Relaxed);
        loop {
            if id >= self.capacity {
                return None;
            }
            self.ensure_chunk(id as usize / CHUNK_SLOTS)?;
            // Ordering: Release, pairs with the Acquire in `add_events`: the chunk that we have seen there is
            // there. Relaxed on failure, where the value is only tried again.
            match self.fresh.compare_exchange(id, id + 1, Release, Relaxed) {
                // SAFETY: its chunk is there, for ever (invariant 1).
                Ok(_) => return Some(unsafe { &*self.locate(id) }),
                Err(seen) => id = seen,
            }
        }
    }

    /// Makes the chunk if it is not there yet. `None` if there is no memory for it.
    fn ensure_chunk(&self, index: usize) -> Option<()> {
        let entry = &self.chunks[index];
        if !entry.load(Relaxed).is_null() {
            return Some(());
        }
        let layout = Layout::new::<[Slot; CHUNK_SLOTS]>();
        let chunk = sys::zeroed(layout).cast::<Slot>();
        if chunk.is_null() {
            return None;
        }
        for i in 0..CHUNK_SLOTS {
            // SAFETY: within the new chunk, which is ours alone.
            unsafe { (*chunk.add(i)).id = (index * CHUNK_SLOTS + i) as u32 };
        }
        // Ordering: Release, pairs with the Acquire in `locate`: whoever finds the chunk sees the slots'
        // numbers. Relaxed on failure: nothing is read through the value.
        if entry.compare_exchange(ptr::null_mut(), chunk, Release, Relaxed).is_err() {
            // SAFETY: another thread was faster, and nobody knows of our chunk.
            unsafe { sys::give_back(chunk.cast(), layout) };
        }
        Some(())
    }

    fn pop_free(&self) -> Option<&'static Slot> {
        // Ordering: Acquire, pairs with the Release in `push_free`, whose release sequence only
        // read-modify-writes continue: `next_free` is there, and the slot as its last thread left it.
        let mut head = self.free.load(Acquire);
        loop {
            let id = (head as u32).checked_sub(1)?;
            // SAFETY: a slot in the list has been leased before, so its chunk is there, for ever (invariant
            // 1).
            let slot = unsafe { &*self.locate(id) };
            let below = head & !u64::from(u32::MAX) | u64::from(slot.next_free.load(Relaxed));
            // Ordering: Acquire on failure, as above. Relaxed on success: the head, being unique, is the one
            // that was acquired.
            match self.free.compare_exchange(head, below, Relaxed, Acquire) {
                Ok(_) => return Some(slot),
                Err(seen) => head = seen,
            }
        }
    }

    fn push_free(&self, slot: &Slot) {
        let mut head = self.free.load(Relaxed);
        loop {
            slot.next_free.store(head as u32, Relaxed);
            let pushes = (head >> 32).wrapping_add(1) << 32;
            // Ordering: Release, pairs with the Acquires in `pop_free`: the next lessee sees the slot as we
            // leave it. Relaxed on failure: the value is only tried again.
            match self.free.compare_exchange(head, pushes | u64::from(slot.id + 1), Release, Relaxed) {
                Ok(_) => return,
                Err(seen) => head = seen,
            }
        }
    }
}

/// A slot that belongs to a thread until this is dropped.
pub struct Lease<'a> {
    registry: &'a Registry,
    slot: &'static Slot,
}

impl Lease<'_> {
    /// The slot.
    pub fn slot(&self) -> &'static Slot {
        self.slot
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // A thread can end within an acquisition: `exit` in a signal handler runs thread-local destructors.
        // Others may refer to its node, so the slot is then never leased again.
        if self.slot.depth.load(Relaxed) == 0 {
            self.registry.push_free(self.slot);
        }
    }
}

#[cfg(test)]
mod tests;
