//! Queued spinlock: a 32-bit word. The first waiter needs only a bit of it. The others wait in an
//! MCS queue, whose nodes the platform keeps.
//!
//! ```text
//! bits 0-7 locked | 8 pending | 9-15 unused | 16-17 tail: level | 18-31 tail: slot + 1
//!
//! (tail, pending, locked)
//!  0,0,0 -> 0,0,1   lock of a free lock without waiters              `lock`, `try_lock`
//!  0,0,* -> 0,1,*   the first waiter marks itself, without a node    `lock_pending`
//!  0,1,0 -> 0,0,1   the first waiter takes the lock                  `lock_pending`
//!  *,*,* -> n,*,*   a further waiter queues as the new tail n        `lock_queued`
//!  n,0,0 -> 0,0,1   the head takes the lock; no thread is behind it  `QueuePolicy::try_clear_tail`
//!  n,0,0 -> s,0,1   the same; CNA's secondary queue takes its place  `QueuePolicy::try_clear_tail`
//!  *,0,0 -> *,0,1   the head takes the lock, and passes its place on `lock_as_head`
//!  *,*,1 -> *,*,0   unlock
//! ```
//! - locked: set by the thread that takes the lock, cleared by its holder alone.
//! - pending: set by at most one waiter. For a moment, another waiter may set it too, and then see
//!   the first one's mark or a tail. If the bit was clear before, that waiter clears it again.
//! - tail: names the last node of the queue; 0 if there is none.
//!
//! With the switches for preempted waiters ([`compete`]) the word has further states.
//!
//! 1. While tail is not 0, only the head of the queue or the pending waiter sets locked. All other
//!    threads take the lock only if the whole word is 0. (Unless newcomers may steal it.)
//! 2. At most one thread is the head of the queue. It has found tail 0 in its swap, or was granted
//!    the place.
//! 3. A node is accessed by its predecessor, from the node's tail swap until the predecessor grants
//!    it the place. It is also accessed by its successor, from the successor's tail swap until the
//!    successor's link store. A head that has granted the place to its successor, or has cleared
//!    the tail, has neither, and its node is free.
//!
//! Fairness: first come, first served, in the order of the tail swaps. One pending waiter goes
//! ahead of the queue. With stealing, see [`compete`].
//! Source: the algorithm of Linux' `kernel/locking/qspinlock.c` (Zijlstra, Long; fetch-or and
//! bounded pending wait by Deacon, 2018), written from a description in our own words.

pub mod compete;
pub mod queue;

use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::events::LockEvent;
use crate::parking::WaitLock;
use crate::platform::{Atomic, AtomicInt, LentNode, LocalNodes, NodeId, Park, Platform, SplitWord};
use crate::raw::{RawLock, RawTryLock};
use crate::tuning::{Standard, WordAccess};

pub use compete::{ParkOnly, Preemptible, StealHybrid, StealOnce, Stealing, WaitLate, WakefulHead};
pub use queue::{Fifo, Node, QueuePolicy, grant};

/// The word of a locked lock without waiters.
pub const LOCKED: u32 = 1;
pub(in crate::linux) const LOCKED_MASK: u32 = 0xff;
/// The bit of the waiter that needs no node.
pub const PENDING: u32 = 1 << 8;
/// The bits that name the last node of the queue.
pub const TAIL_MASK: u32 = 0xffff_0000;
const TAIL_LEVEL_SHIFT: u32 = 16;
const TAIL_SLOT_SHIFT: u32 = 18;

const _: () = assert!(LOCKED_MASK & PENDING == 0 && TAIL_MASK & (LOCKED_MASK | PENDING) == 0);
const _: () = assert!(NodeId::NESTING == 1 << (TAIL_SLOT_SHIFT - TAIL_LEVEL_SHIFT));
const _: () = assert!(NodeId::SLOTS == u32::MAX >> TAIL_SLOT_SHIFT);

/// The name of a node in the tail bits of a word. Never 0, and greater than a `granted` of 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail(u32);

impl Tail {
    /// The bits that name this node.
    pub const fn encode(id: NodeId) -> Self {
        debug_assert!(id.slot < NodeId::SLOTS && id.level < NodeId::NESTING);
        Self((id.slot + 1) << TAIL_SLOT_SHIFT | id.level << TAIL_LEVEL_SHIFT)
    }
    /// The node that the tail bits of a word name, if any.
    pub const fn decode(word: u32) -> Option<NodeId> {
        match word >> TAIL_SLOT_SHIFT {
            0 => None,
            slot => Some(NodeId { slot: slot - 1, level: word >> TAIL_LEVEL_SHIFT & (NodeId::NESTING - 1) }),
        }
    }
    /// The bits themselves.
    pub const fn bits(self) -> u32 {
        self.0
    }
}

/// The number of looks during which a waiter can expect to keep its processor. The waiting policy
/// of `nearlock-os` makes as many pauses before it yields: 1 to 6 us.
const TURNS_WITHOUT_YIELD: u32 = 1 << 7;

switches! {
    /// The switches of [`QSpinLock`]. Every combination of values provides mutual exclusion.
    ///
    /// A consequence of the switches, such as [`competes`], is no switch itself. A type cannot
    /// contradict it:
    ///
    /// ```compile_fail,E0407
    /// use nearlock_collection::linux::qspinlock::{QSpinTuning, Stealing};
    ///
    /// struct Blind;
    ///
    /// unsafe impl QSpinTuning for Blind {
    ///     fn stealing() -> Stealing {
    ///         Stealing::Hybrid
    ///     }
    ///     fn competes() -> bool {
    ///         false
    ///     }
    /// }
    /// ```
    pub trait QSpinTuning;
    SWITCHES from 16;

    /// How parts of the word are written. [`WordAccess::Split`]: the unlock is one byte store.
    fn access("access") -> WordAccess as word = WordAccess::Split;
    /// How many looks a newcomer takes at a word that the pending waiter is about to take, before
    /// the newcomer queues. Must be bounded, since there may be another pending waiter each time. 0
    /// queues at once. Source: 2^9 on x86 (Deacon, 2018).
    fn pending_turns_max("pending-turns") -> u32 as number(0, 1 << 20) = 1 << 9;
    /// Whether newcomers may take the lock ahead of the queue.
    fn stealing("stealing") -> Stealing as word = Stealing::Off;
    /// How many attempts a newcomer makes to steal the lock, with [`Stealing::Hybrid`], before it
    /// queues. Bounded because only the queue is fair. 0 queues at once.
    fn steal_turns_max("steal-turns") -> u32 as number(0, 1 << 20) = TURNS_WITHOUT_YIELD;
    /// How many looks a queued waiter takes before it sleeps. `None`: it never sleeps. 0: it sleeps
    /// at once, and every hand-over costs a wake-up. (The kernel's virtual processors take 2^15
    /// looks, since a wake-up costs them more.)
    fn park_turns("park-turns") -> Option<u32> as optional(1 << 20) = None;
    /// Whether a waiter that may sleep does so as soon as its predecessor sleeps.
    fn wait_early("wait-early") -> bool as flag = true;
    /// How many looks the head takes in a row while no thread may steal the lock. Not more than a
    /// waiting policy makes before it yields, since a head without a processor would then delay all
    /// threads. With 512, two threads on two processors lost 99 % of their throughput. With 0, the
    /// head leaves the lock to newcomers until it goes to sleep and finds the lock free.
    fn head_turns("head-turns") -> u32 as number(0, 1 << 20) = TURNS_WITHOUT_YIELD;
    /// Whether the head sleeps after these looks. If so, each unlock costs a locked instruction.
    fn park_head("park-head") -> bool as flag = false;
    /// After how many such series of looks no thread may steal the lock any more, until the head
    /// has it. With 0, no thread steals once there is a head.
    fn head_stretches_max("head-stretches") -> u32 as number(0, 1 << 20) = 1 << 10;
}

/// Whether the head competes with other threads for a free lock: newcomers may steal it, or the
/// head may sleep.
///
/// A function outside of the trait, so that it follows from the switches of every implementation.
/// With stealing and without competing, two threads would hold the lock.
#[inline(always)]
pub fn competes<T: QSpinTuning>() -> bool {
    T::park_head() || T::stealing() != Stealing::Off
}

crate::tuning! {
    /// Every write is a read-modify-write of the whole word, including the unlock. For model
    /// checkers and sanitizers, and to measure the gain of the byte store.
    pub struct WholeWord: QSpinTuning {
        access: WordAccess = WordAccess::Whole;
    }
}

/// See the [module](self).
#[repr(transparent)]
pub struct QSpinLock<P: Platform, Q: QueuePolicy<P> = Fifo, T: QSpinTuning = Standard> {
    word: P::U32,
    switches: PhantomData<(Q, T)>,
}

impl<P: Platform, Q: QueuePolicy<P>, T: QSpinTuning> QSpinLock<P, Q, T> {
    /// An unlocked lock, in `const`.
    pub const fn new() -> Self {
        Self { word: Atomic::ZERO, switches: PhantomData }
    }
}

impl<P: Platform, Q: QueuePolicy<P>, T: QSpinTuning> Default for QSpinLock<P, Q, T> {
    fn default() -> Self {
        Self { word: Atomic::new(0), switches: PhantomData }
    }
}

impl<P: Park + LocalNodes<Node<P, Q::Part>>, Q: QueuePolicy<P>, T: QSpinTuning> QSpinLock<P, Q, T> {
    /// A lock with this word.
    ///
    /// # Safety
    ///
    /// If the word names a node, this must be the last node of a queue of waiters.
    #[doc(hidden)] // public for models that start in the middle of a queue
    pub unsafe fn with_word(word: u32) -> Self {
        Self { word: Atomic::new(word), switches: PhantomData }
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self, val: u32) {
        P::count(LockEvent::Slowpath);
        if self.steal() {
            P::count(LockEvent::Stealing);
            return;
        }
        if !competes::<T>() && self.lock_pending(val) {
            P::count(LockEvent::Pending);
            return;
        }
        P::with_node(|lent| match lent {
            // SAFETY: the node is lent for the length of this closure.
            Some(lent) => unsafe { self.lock_queued(&lent) },
            None => self.lock_without_node(),
        });
    }

    /// Takes the lock as the pending waiter. False if there are other waiters: then the caller
    /// queues.
    fn lock_pending(&self, mut val: u32) -> bool {
        if val == PENDING {
            // 0,1,0: the pending waiter is about to take the lock, and its place will be free.
            val = P::wait_until_bounded(&self.word, Relaxed, T::pending_turns_max(), |v| v != PENDING);
        }
        if val & !LOCKED_MASK != 0 {
            return false;
        }
        // 0,0,* -> 0,1,*
        // Ordering: Acquire, pairs with the Release in `unlock`, for the case that the lock has
        // become free and we read its release here.
        let old = self.word.fetch_or(PENDING, Acquire);
        if old & !LOCKED_MASK != 0 {
            if old & PENDING == 0 {
                // There is a tail, but no pending waiter: the mark is ours, and must not stay.
                // Relaxed: nothing is published.
                self.word.fetch_and(!PENDING, Relaxed);
            }
            return false;
        }
        if old & LOCKED_MASK != 0 {
            // Ordering: Acquire, pairs with the Release in `unlock`.
            P::wait_until(&self.word, Acquire, |v| v & LOCKED_MASK == 0);
        }
        // 0,1,0 -> 0,0,1. Relaxed: we publish nothing before `unlock`.
        match T::access() {
            WordAccess::Split => self.word.store_low_half(LOCKED as u16, Relaxed),
            WordAccess::Whole => {
                self.word.fetch_sub(PENDING - LOCKED, Relaxed);
            }
        }
        true
    }

    /// Takes the lock by way of the queue. Safety: the node is lent to the caller.
    #[doc(hidden)] // public for models of more waiters than the pending one
    pub unsafe fn lock_queued(&self, lent: &LentNode<Node<P, Q::Part>>) {
        if let Some(event) = LockEvent::of_level(lent.id.level) {
            P::count(event);
        }
        let tail = Tail::encode(lent.id);
        // SAFETY: the platform lends a node that lives as long as it does.
        let node = unsafe { &*lent.node };
        node.next.store(ptr::null_mut(), Relaxed);
        node.granted.store(0, Relaxed);
        Q::prepare(node, tail);
        // The transfer of the node's cache line may have taken a while. The lock may be free by
        // now.
        if self.try_take() {
            return;
        }
        // p,*,* -> n,*,*
        if let Some(predecessor) = Tail::decode(self.swap_tail(tail)) {
            let predecessor = P::node(predecessor);
            // Ordering: Release, pairs with the Acquire loads of `next`: our node is initialised
            // before another thread writes into it.
            // SAFETY: by invariant 3 the predecessor's node is in use until its owner has seen this
            // store.
            unsafe { &(*predecessor).next }.store(lent.node.cast_mut(), Release);
            // SAFETY: our node, linked in; nodes live as long as the platform.
            unsafe { self.lock_when_granted(node, tail, predecessor) };
        } else {
            // SAFETY: our node, and the tail was clear.
            unsafe { self.lock_as_head(node, tail) };
        }
    }

    /// Waits to become the head, then takes the lock. Safety: `node` is the caller's, queued under
    /// the name `tail`.
    #[doc(hidden)] // public for models that start in the middle of a queue
    pub unsafe fn lock_when_granted(
        &self,
        node: &Node<P, Q::Part>,
        tail: Tail,
        predecessor: *const Node<P, Q::Part>,
    ) {
        // SAFETY: nodes live as long as the platform. After the grant, the caller is the head.
        unsafe {
            queue::wait_granted::<P, _, T>(node, predecessor);
            self.lock_as_head(node, tail);
        }
    }

    /// Takes the lock as the head, and makes its successor the head. Safety: `node` is the head's,
    /// queued under the name `tail`.
    #[doc(hidden)] // public for models that start in the middle of a queue
    pub unsafe fn lock_as_head(&self, node: &Node<P, Q::Part>, tail: Tail) {
        // Ordering: Acquire, pairs with the Release link store in `lock_queued`.
        let mut next = node.next.load(Acquire);
        if !next.is_null() {
            P::prefetch_write(next);
        }
        // SAFETY: we are the head, here and below.
        unsafe { Q::became_head::<T>(&self.word, node) };
        let val = if competes::<T>() {
            self.compete()
        } else {
            // Ordering: Acquire, pairs with the Release in `unlock`: the previous section happens
            // before ours.
            P::wait_until(&self.word, Acquire, |v| v & (LOCKED_MASK | PENDING) == 0)
        };
        let mut word = val;
        if val & TAIL_MASK == tail.bits() {
            // SAFETY: as above.
            match unsafe { Q::try_clear_tail::<T>(&self.word, val, node) } {
                Ok(()) => return,
                Err(seen) => word = seen,
            }
        }
        if !competes::<T>() {
            self.set_locked();
        }
        // SAFETY: as above, and we hold the lock.
        if word & TAIL_MASK == tail.bits() && unsafe { self.try_clear_marked_tail(node, tail) } {
            return;
        }
        if next.is_null() {
            // Ordering: Acquire, as above.
            next = P::wait_until(&node.next, Acquire, |next| !next.is_null());
        }
        // SAFETY: as above, and `next` is linked behind our node.
        unsafe { Q::hand_over::<T>(node, next) };
    }

    /// Clears the tail for a head that could not do so because of a late waiter's mark. False if
    /// another waiter has queued.
    ///
    /// The late waiter clears its mark again. It may not queue after that, since it may have no
    /// node. So a head that waited for a successor now could wait for ever.
    ///
    /// Safety: the caller is the head, with this `node`, queued under the name `tail`, and holds
    /// the lock.
    #[cold]
    #[inline(never)]
    unsafe fn try_clear_marked_tail(&self, node: &Node<P, Q::Part>, tail: Tail) -> bool {
        loop {
            // Relaxed: we hold the lock.
            let val =
                P::wait_until(&self.word, Relaxed, |v| v & TAIL_MASK != tail.bits() || v & PENDING == 0);
            if val & TAIL_MASK != tail.bits() {
                return false;
            }
            // SAFETY: the caller's.
            if unsafe { Q::try_clear_tail::<T>(&self.word, val, node) }.is_ok() {
                return true;
            }
        }
    }

    /// *,0,0 -> *,0,1, by the head. By invariant 1 no other thread takes the lock now. (A late
    /// waiter may have set pending. It saw the tail, so it will clear the bit and queue.)
    #[inline]
    fn set_locked(&self) {
        // Relaxed: as in `lock_pending`.
        match T::access() {
            WordAccess::Split => self.word.store_low_byte(LOCKED as u8, Relaxed),
            WordAccess::Whole => {
                self.word.fetch_or(LOCKED, Relaxed);
            }
        }
    }

    /// Replaces the tail and returns the word's old value (of which only the tail is exact).
    fn swap_tail(&self, tail: Tail) -> u32 {
        match T::access() {
            // Ordering: AcqRel. Release publishes our node to the successor that finds it in the
            // tail. Acquire makes the predecessor's initialised node visible before we link to it.
            WordAccess::Split => {
                u32::from(self.word.swap_high_half((tail.bits() >> TAIL_LEVEL_SHIFT) as u16, AcqRel))
                    << TAIL_LEVEL_SHIFT
            }
            WordAccess::Whole => {
                let mut old = self.word.load(Relaxed);
                loop {
                    // Ordering: AcqRel as above; Relaxed on failure, where the loop only tries
                    // again.
                    match self.word.compare_exchange(old, old & !TAIL_MASK | tail.bits(), AcqRel, Relaxed) {
                        Ok(old) => return old,
                        Err(seen) => old = seen,
                    }
                }
            }
        }
    }

    /// Waits outside of the queue, for a thread without a node. It can starve.
    fn lock_without_node(&self) {
        P::count(LockEvent::NoNode);
        let takes_from: u32 = if competes::<T>() { LOCKED_MASK | PENDING } else { u32::MAX };
        while !self.try_take_over(takes_from) {
            P::wait_until(&self.word, Relaxed, |v| v & takes_from == 0);
        }
    }

    /// 0,0,0 -> 0,0,1 if the word looks free.
    #[inline]
    fn try_take(&self) -> bool {
        self.try_take_over(u32::MAX)
    }

    /// Sets locked, by one attempt, if none of the bits of `mask` is set.
    #[inline]
    fn try_take_over(&self, mask: u32) -> bool {
        let val = self.word.load(Relaxed);
        // Ordering: Acquire, pairs with the Release in `unlock`; Relaxed on failure, where nothing
        // is read through the value.
        val & mask == 0 && self.word.compare_exchange(val, val | LOCKED, Acquire, Relaxed).is_ok()
    }
}

// SAFETY: locked is set only in a step that saw it clear. No other thread can take such a step at
// the same time (module documentation, transitions and invariant 1). Release and Acquire on the
// word order the sections.
unsafe impl<P: Park + LocalNodes<Node<P, Q::Part>>, Q: QueuePolicy<P>, T: QSpinTuning> RawLock
    for QSpinLock<P, Q, T>
{
    type Node = ();

    #[inline]
    unsafe fn lock(&self, _node: &()) {
        // Ordering: Acquire, pairs with the Release in `unlock`: the previous section happens
        // before ours. Relaxed on failure: nothing is read through the value.
        if let Err(val) = self.word.compare_exchange(0, LOCKED, Acquire, Relaxed) {
            self.lock_slow(val);
        }
    }

    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        // Ordering: Release, pairs with the Acquires that see the lock free: our section happens
        // before the next.
        if T::park_head() {
            return self.unlock_and_wake();
        }
        match T::access() {
            WordAccess::Split => self.word.store_low_byte(0, Release),
            WordAccess::Whole => {
                self.word.fetch_and(!LOCKED_MASK, Release);
            }
        }
    }
}

// SAFETY: as above.
unsafe impl<P: Park + LocalNodes<Node<P, Q::Part>>, Q: QueuePolicy<P>, T: QSpinTuning> RawTryLock
    for QSpinLock<P, Q, T>
{
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        self.try_take()
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) & LOCKED_MASK != 0
    }
}

impl<P: Park + LocalNodes<Node<P, Q::Part>>, Q: QueuePolicy<P>, T: QSpinTuning> WaitLock
    for QSpinLock<P, Q, T>
{
    const FREE: Self = Self::new();
}

#[cfg(test)]
mod tests;
