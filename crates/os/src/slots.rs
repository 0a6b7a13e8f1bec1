//! Slots: the data that the process keeps for each thread that has waited for a lock, found by
//! number.
//!
//! ```text
//!  chunks  [ * | * | null ... ]        free  (count of pushes, slot + 1)
//!            |   |                       |
//!            v   v                       v
//!           slots 0-63, 64-127, ...     slot --next_free--> slot --next_free--> 0
//!
//!  slot    node 0 | node 1 | node 2 | node 3 | depth, next_free, lessee, events ...
//!          (each on its own cache line)
//!
//!  lessee  bits 0-30 the kernel's id of the thread that has it, 0: free | bit 31 UNWATCHED
//!          bits 32-63 how often it has been leased
//!
//!  (n, 0) -> (n + 1, t)         `lease`
//!  (n, t) -> (n, t|UNWATCHED)   no destructor is sure to give it back at the end of the thread
//!  (n, t|x) -> (n, 0)           `give_back`: by that thread, or by a thread that has found that
//!                               t has ended
//! ```
//! 1. The memory of slots is never freed and never moved. A number that was given out once names
//!    the same cache lines forever.
//! 2. A slot is leased to at most one thread, and only that thread writes to it. There is one
//!    exception: other threads write to nodes of acquisitions that are in progress.
//! 3. A slot is leased again only after its thread has left all its acquisitions. The locks promise
//!    that no thread writes to a node after its acquisition has given the node back. They promise
//!    too that earlier writes of other threads happen before that. The free list passes this on to
//!    the next lessee. A waiter may still read a word of 4 bytes of such a node, and takes the
//!    value for a hint.
//!
//! 4. A thread gives its slot back at its end. If it cannot be notified of its end, the slot is
//!    UNWATCHED, and counted. If a thread needs a slot and none is free, it checks whether the
//!    threads of the UNWATCHED slots have ended, with a system call for each. The kernel's answer
//!    counts only for the lease that was asked about, and the count of leases identifies that
//!    lease. Without the count the answer could be out of date: the kernel may give the id of an
//!    ended thread to a new one, which may lease the same slot.
//!
//! The free list is a lock-free stack. So a registration can be interrupted, and another thread can
//! fork the process, at any moment. Each push increments a count in the head. A head that has been
//! removed and pushed again is therefore not mistaken for the old one (ABA), unless 2^32 pushes
//! happen during one pop. Source: Treiber, "Systems programming: coping with parallelism", IBM RJ
//! 5118, 1986 (the stack).

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::mem::{MaybeUninit, offset_of};
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, compiler_fence};
use std::alloc::Layout;

use nearlock_core::events::LockEvent;
use nearlock_core::near::rwlock::lines::ReaderLine;
use nearlock_core::platform::{LentNode, NodeId, ZeroNode};

use crate::{Os, sys};

/// Bytes of a cache line, and of a node: each waiter spins on its own cache line. (x86-64 and the
/// servers of aarch64.)
pub const LINE: usize = 64;

/// Slots per chunk, which takes a few pages. A larger number would waste memory in small programs;
/// a smaller one makes the table longer.
const CHUNK_SLOTS: usize = 64;
const CHUNKS: usize = (NodeId::SLOTS as usize).div_ceil(CHUNK_SLOTS);

/// A flag of a lessee: no destructor is sure to give the slot back.
const UNWATCHED: u64 = 1 << 31;

/// The low half of a lessee: its thread, and UNWATCHED.
const THREAD: u64 = u32::MAX as u64;

/// The memory of a node. The acquisition that uses it at present determines the type.
#[repr(C, align(64))]
struct NodeLine(UnsafeCell<[MaybeUninit<u8>; LINE]>);

const _: () = assert!(size_of::<NodeLine>() == LINE && align_of::<NodeLine>() == LINE);

// SAFETY: the bytes are reached only through raw pointers, and each access through one has its own
// safety argument.
unsafe impl Sync for NodeLine {}

/// The data kept for one thread. Memory that is zero except for `id` is a free slot.
#[repr(C, align(64))]
pub struct Slot {
    nodes: [NodeLine; NodeId::NESTING as usize],
    /// The locks that the thread holds shared. (The other platforms of this crate have the same
    /// words.)
    readers: ReaderLine<Os>,
    /// The number of the slot. Fixed before other threads can reach the slot.
    id: u32,
    /// How many nodes are in use.
    depth: AtomicU32,
    /// Number plus one of the slot below in the free list; 0 if there is none.
    next_free: AtomicU32,
    /// The thread that has leased the slot, and the count of leases.
    lessee: AtomicU64,
    /// Counts since the process began, by all threads that have had the slot.
    events: [AtomicU64; LockEvent::COUNT],
}

const _: () = assert!(offset_of!(Slot, nodes) == 0);

impl Slot {
    /// Its number, below [`NodeId::SLOTS`].
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The line of readers.
    #[inline]
    pub fn readers(&self) -> &ReaderLine<Os> {
        &self.readers
    }

    /// Takes the next node of the thread. Returns `None` if all are in use.
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
        // Ordering: SeqCst, for the compiler alone. This thread accesses the depth, then the node.
        // A signal handler that interrupts it accesses the depth, then its own node. No access to
        // the node may come before the store of the new depth.
        compiler_fence(SeqCst);
        Some(Level { slot: self, level, own_thread: PhantomData })
    }

    /// Counts an event. To be called by the thread that has the slot, because the increment is not
    /// an atomic read-modify-write. (If a signal handler counts the same event in between, that one
    /// is lost.)
    #[inline]
    pub fn count(&self, event: LockEvent) {
        let counter = &self.events[event as usize];
        counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// The events counted so far.
    pub fn events(&self) -> [u64; LockEvent::COUNT] {
        let mut counts = [0; _];
        add(&mut counts, &self.events);
        counts
    }
}

/// Adds counts of events to sums of them.
pub fn add(sums: &mut [u64; LockEvent::COUNT], counts: &[AtomicU64; LockEvent::COUNT]) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum = sum.wrapping_add(count.load(Relaxed));
    }
}

/// A node in use.
pub struct Level<'a> {
    slot: &'a Slot,
    level: u32,
    /// Neither `Send` nor `Sync`: the slot belongs to one thread.
    own_thread: PhantomData<*const ()>,
}

impl Level<'_> {
    /// The node, with all bytes zero.
    #[inline]
    pub fn lend<N: ZeroNode>(&mut self) -> LentNode<N> {
        let id = NodeId { slot: self.slot.id, level: self.level };
        let node = node_of::<N>(self.slot, id.level).cast_mut();
        // An earlier acquisition may have left bytes here that are not a valid `N`.
        for word in 0..size_of::<N>() / size_of::<AtomicU32>() {
            // Atomic, because a waiter of that acquisition may still read the node (invariant 3).
            // Relaxed: the waiter reads nothing through the value.
            // SAFETY: the line has the size and alignment for the node (`node_of`), and the level
            // is ours. By invariant 3 no other thread writes to it, or reads words of another size.
            unsafe { AtomicU32::from_ptr(node.cast::<u32>().add(word)) }.store(0, Relaxed);
        }
        LentNode { id, node }
    }
}

impl Drop for Level<'_> {
    #[inline]
    fn drop(&mut self) {
        // Ordering: SeqCst, for the compiler alone, as in `enter`: no access may come after the
        // store of the old depth.
        compiler_fence(SeqCst);
        self.slot.depth.store(self.level, Relaxed);
    }
}

/// The address of the node of this level, for any pointer to a slot: nothing is accessed.
#[inline]
fn node_of<N: ZeroNode>(slot: *const Slot, level: u32) -> *const N {
    const { assert!(size_of::<N>() <= LINE && align_of::<N>() <= LINE, "a node must fit into a line") };
    const { assert!(align_of::<N>() >= align_of::<u32>(), "a node consists of words") };
    slot.wrapping_byte_add(level as usize * LINE).cast()
}

/// A table of slots.
pub struct Registry {
    capacity: u32,
    /// How many slots are UNWATCHED.
    unwatched: AtomicU32,
    /// The number of slots that have been leased at least once.
    fresh: AtomicU32,
    /// Upper half: count of pushes. Lower half: number plus one of the first free slot; 0 if there
    /// is none.
    free: AtomicU64,
    chunks: [AtomicPtr<Slot>; CHUNKS],
}

impl Registry {
    /// A table that gives out at most `capacity` slots at a time.
    pub const fn new(capacity: u32) -> Self {
        assert!(capacity as usize <= CHUNKS * CHUNK_SLOTS);
        Self {
            capacity,
            unwatched: AtomicU32::new(0),
            fresh: AtomicU32::new(0),
            free: AtomicU64::new(0),
            chunks: [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS],
        }
    }

    /// Leases a slot to the thread with this kernel id, until it is [given back](Self::give_back).
    /// Returns `None` if all slots are taken, or memory has run out. Calls `has_ended` to find out
    /// whether a thread has ended.
    pub fn lease(&self, thread: u32, has_ended: impl Fn(u32) -> bool) -> Option<&'static Slot> {
        let slot = self.pop_free().or_else(|| self.reclaim(has_ended)).or_else(|| self.take_fresh())?;
        debug_assert!(thread != 0 && u64::from(thread) & UNWATCHED == 0, "an id of the kernel's");
        let leases = (slot.lessee.load(Relaxed) >> 32).wrapping_add(1);
        slot.lessee.store(leases << 32 | u64::from(thread), Relaxed);
        Some(slot)
    }

    /// Marks the slot UNWATCHED: no destructor is sure to give it back. To be called by its thread.
    pub fn is_not_watched(&self, slot: &Slot) {
        if slot.lessee.fetch_or(UNWATCHED, Relaxed) & UNWATCHED == 0 {
            self.unwatched.fetch_add(1, Relaxed);
        }
    }

    /// Gives a slot back.
    ///
    /// # Safety
    ///
    /// The slot is leased to the caller, and the caller uses it no more.
    pub unsafe fn give_back(&self, slot: &'static Slot) {
        let lessee = slot.lessee.load(Relaxed);
        // SAFETY: the condition of this function.
        unsafe { self.give_back_of(slot, lessee) };
    }

    /// Gives back the slot of this lessee, unless another thread does so first.
    ///
    /// Safety: no thread uses the slot.
    unsafe fn give_back_of(&self, slot: &'static Slot, lessee: u64) {
        // Relaxed: the caller is the lessee, or the kernel has ended the lessee, so the accesses of
        // the lessee come before. All accesses to a slot are atomic.
        let free = lessee & !THREAD;
        if lessee == free || slot.lessee.compare_exchange(lessee, free, Relaxed, Relaxed).is_err() {
            return;
        }
        if lessee & UNWATCHED != 0 {
            self.unwatched.fetch_sub(1, Relaxed);
        }
        // A thread can end within an acquisition, because `exit` in a signal handler runs
        // destructors. Other threads may refer to its node, so the slot is then never leased again.
        if slot.depth.load(Relaxed) == 0 {
            self.push_free(slot);
        }
    }

    /// Gives back the slots of threads that have ended without giving them back, and takes one of
    /// them.
    #[cold]
    fn reclaim(&self, has_ended: impl Fn(u32) -> bool) -> Option<&'static Slot> {
        if self.unwatched.load(Relaxed) == 0 {
            return None;
        }
        for slot in self.made_slots() {
            let lessee = slot.lessee.load(Relaxed);
            if lessee & UNWATCHED != 0 && has_ended((lessee & THREAD & !UNWATCHED) as u32) {
                // SAFETY: the thread of the slot has ended, if the count of leases is unchanged.
                // Another thread may find the same, and only one of the two succeeds.
                unsafe { self.give_back_of(slot, lessee) };
            }
        }
        self.pop_free()
    }

    /// All slots that have been leased at least once.
    pub fn made_slots(&self) -> impl Iterator<Item = &'static Slot> {
        // Ordering: Acquire, pairs with the Release in `take_fresh`: the chunks of these slots are
        // visible.
        // SAFETY: the chunk exists, and is never freed (invariant 1).
        (0..self.fresh.load(Acquire)).map(|id| unsafe { &*self.locate(id) })
    }

    /// Frees the slots of the parent's other threads, in a child made by `fork`. `own` is the
    /// caller's slot, and the caller's id now. A slot whose nodes are in use stays taken forever,
    /// because locks refer to the nodes.
    ///
    /// # Safety
    ///
    /// The process has one thread, the caller.
    pub unsafe fn after_fork(&self, own: Option<(&'static Slot, u32)>) {
        self.free.store(0, Relaxed);
        self.unwatched.store(0, Relaxed);
        for slot in self.made_slots() {
            match own {
                Some((own, thread)) if ptr::eq(own, slot) => {
                    let kept = slot.lessee.load(Relaxed) & (UNWATCHED | !THREAD);
                    slot.lessee.store(kept | u64::from(thread), Relaxed);
                    self.unwatched.fetch_add(u32::from(kept & UNWATCHED != 0), Relaxed);
                    slot.readers.forget_others();
                }
                _ => {
                    slot.lessee.fetch_and(!THREAD, Relaxed);
                    slot.readers.forget();
                    if slot.depth.load(Relaxed) == 0 {
                        self.push_free(slot);
                    }
                }
            }
        }
    }

    /// The node with this name. Follow the pointer only if the name came from [`Level::lend`] of
    /// this table.
    #[inline]
    pub fn node<N: ZeroNode>(&self, id: NodeId) -> *const N {
        node_of(self.locate(id.slot), id.level)
    }

    /// Adds the counts of all slots to `sums`.
    pub fn add_events(&self, sums: &mut [u64; LockEvent::COUNT]) {
        for slot in self.made_slots() {
            add(sums, &slot.events);
        }
    }

    /// How many slots have ever been leased.
    pub fn made(&self) -> u32 {
        self.fresh.load(Relaxed)
    }

    /// The address of the slot with this number. The pointer is valid only if the slot's chunk
    /// exists.
    #[inline]
    fn locate(&self, id: u32) -> *const Slot {
        let Some(chunk) = self.chunks.get(id as usize / CHUNK_SLOTS) else {
            return ptr::null();
        };
        // Ordering: Acquire, pairs with the Release in `ensure_chunk`: the numbers of the slots are
        // visible.
        chunk.load(Acquire).wrapping_add(id as usize % CHUNK_SLOTS)
    }

    fn take_fresh(&self) -> Option<&'static Slot> {
        let mut id = self.fresh.load(Relaxed);
        loop {
            if id >= self.capacity {
                return None;
            }
            self.ensure_chunk(id as usize / CHUNK_SLOTS)?;
            // Ordering: Release, pairs with the Acquire in `made_slots`: the chunk that we have
            // seen is visible there. Relaxed on failure: the value is only tried again.
            match self.fresh.compare_exchange(id, id + 1, Release, Relaxed) {
                // SAFETY: the chunk exists, and is never freed (invariant 1).
                Ok(_) => return Some(unsafe { &*self.locate(id) }),
                Err(seen) => id = seen,
            }
        }
    }

    /// Makes the chunk if it does not exist yet. Returns `None` if there is no memory for it.
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
            // SAFETY: within the new chunk, which no other thread knows.
            let slot = unsafe { &mut *chunk.add(i) };
            slot.id = (index * CHUNK_SLOTS + i) as u32;
            slot.readers = ReaderLine::numbered(slot.id + 1);
        }
        // Ordering: Release, pairs with the Acquire in `locate`: a thread that finds the chunk sees
        // the numbers of the slots. Relaxed on failure: nothing is read through the value.
        if entry.compare_exchange(ptr::null_mut(), chunk, Release, Relaxed).is_err() {
            // SAFETY: another thread was faster, and no other thread knows our chunk.
            unsafe { sys::give_back(chunk.cast(), layout) };
        }
        Some(())
    }

    fn pop_free(&self) -> Option<&'static Slot> {
        // Ordering: Acquire, pairs with the Release in `push_free`, whose release sequence is
        // continued by read-modify-writes only. So `next_free` is visible, and the slot as its last
        // thread left it.
        let mut head = self.free.load(Acquire);
        loop {
            let id = (head as u32).checked_sub(1)?;
            // SAFETY: a slot in the list has been leased before, so its chunk exists, and is never
            // freed (invariant 1).
            let slot = unsafe { &*self.locate(id) };
            let below = head & !u64::from(u32::MAX) | u64::from(slot.next_free.load(Relaxed));
            // Ordering: Acquire on failure, as above. Relaxed on success: a head is unique, so this
            // head is the one that was loaded with Acquire.
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
            // Ordering: Release, pairs with the Acquires in `pop_free`: the next lessee sees the
            // slot as this thread leaves it. Relaxed on failure: the value is only tried again.
            match self.free.compare_exchange(head, pushes | u64::from(slot.id + 1), Release, Relaxed) {
                Ok(_) => return,
                Err(seen) => head = seen,
            }
        }
    }
}

#[cfg(test)]
mod tests;
