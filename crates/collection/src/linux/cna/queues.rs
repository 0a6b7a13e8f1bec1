//! The two queues of CNA and the operations on them. All versions of CNA share them, and decide
//! when to use them.
//!
//! ```text
//!  main queue       head --next--> waiter --next--> waiter ... <-- tail in the lock word
//!                    |
//!                    | granted = name of the secondary queue's tail (0 or 1: there is none)
//!                    v
//!  secondary queue  tail --next--> first --next--> ... --next--> tail      a circle
//! ```
//! 1. Each waiter is in exactly one of the queues. The last waiter of the main queue is never
//!    moved, so only newcomers and `try_clear_tail` change the tail in the lock word.
//! 2. The secondary queue, its circle, and the head's `granted` and part belong to the head. They
//!    pass to the next head with the Release of `granted`, so Relaxed is enough for them.

use core::ptr;
use core::sync::atomic::Ordering::{Relaxed, Release};

use crate::events::LockEvent;
use crate::linux::qspinlock::{self, LOCKED, QSpinTuning, Tail, grant};
use crate::platform::{
    Atomic, Clock, LocalNodes, NUMA_NODES_MAX, Park, Platform, Priority, Random, Settings, Topology, ZeroNode,
};
use crate::settings::Setting;

/// A queue node of CNA. `S` is the data of a version of CNA.
pub type Node<P, S> = qspinlock::Node<P, CnaPart<P, S>>;

/// The NUMA node of an urgent waiter. It is not the number of a NUMA node, so that the waiter is
/// never far.
pub const PRIORITY_NODE: u32 = NUMA_NODES_MAX;

switches! {
    /// The switches of CNA that are fixed at compile time.
    pub trait CnaTuning;
    SWITCHES from 26;

    /// While there is no secondary queue, begin one only now and then: at low contention, sorting
    /// costs more than it gains. How often: [`Setting::CnaShuffleReduction`] or
    /// [`Setting::CnaV13ShuffleReduction`].
    fn shuffle_reduction("reduction") -> bool as flag = true;
}

crate::tuning! {
    /// Sorts at every acquisition: the patch series without its last patch.
    pub struct NoShuffleReduction: CnaTuning {
        shuffle_reduction: bool = false;
    }
}

/// The data of CNA in a queue node.
#[repr(C)]
pub struct CnaPart<P: Platform, S> {
    /// The NUMA node that the owner counts as being on: its own, [`PRIORITY_NODE`], or that of an
    /// earlier head.
    pub numa_node: P::U32,
    /// The NUMA node that the owner ran on when it queued.
    real_numa_node: P::U32,
    /// The name of this queue node.
    tail: P::U32,
    /// The data of the version.
    pub state: S,
}

// SAFETY: words of zero bits are valid, and so is the state.
unsafe impl<P: Platform, S: ZeroNode> ZeroNode for CnaPart<P, S> {}

impl<P: Platform, S: Default> Default for CnaPart<P, S> {
    fn default() -> Self {
        Self {
            numa_node: Atomic::new(0),
            real_numa_node: Atomic::new(0),
            tail: Atomic::new(0),
            state: S::default(),
        }
    }
}

/// The capabilities that CNA requires, with data `S` in its nodes.
pub trait CnaPlatform<S>:
    Topology + Clock + Priority + Random + Settings + Park + LocalNodes<Node<Self, S>>
{
}
impl<P: Topology + Clock + Priority + Random + Settings + Park + LocalNodes<Node<P, S>>, S> CnaPlatform<S>
    for P
{
}

impl<P: Topology + Priority + Settings, S> CnaPart<P, S> {
    /// Notes the owner's NUMA node, and the name of its queue node. `priority_waiters` is the
    /// setting that says whether the owner may be urgent.
    pub(in crate::linux) fn prepare(&self, tail: Tail, priority_waiters: Setting) {
        let urgent = P::setting(priority_waiters) != 0 && P::is_priority();
        let real = P::numa_node();
        self.real_numa_node.store(real, Relaxed);
        self.numa_node.store(if urgent { PRIORITY_NODE } else { real }, Relaxed);
        self.tail.store(tail.bits(), Relaxed);
    }

    /// Makes an urgent head sort by the NUMA node that it is really on.
    pub(in crate::linux) fn be_on_a_node(&self) {
        if self.numa_node.load(Relaxed) == PRIORITY_NODE {
            self.numa_node.store(self.real_numa_node.load(Relaxed), Relaxed);
        }
    }
}

/// The shuffle reduction: true for all heads without a secondary queue, except one in 2^bits.
pub(in crate::linux) fn leave_unsorted<P: Random + Settings, S, T: CnaTuning>(
    node: &Node<P, S>,
    bits: Setting,
) -> bool {
    if !T::shuffle_reduction() || node.granted.load(Relaxed) > 1 {
        return false;
    }
    let mask = 1u32.checked_shl(P::setting(bits) as u32).map_or(u32::MAX, |one| one - 1);
    mask != 0 && P::random_u32() & mask != 0
}

/// Moves `next`, which has `after` behind it, to the end of the secondary queue of the head `node`.
/// Calls `begun` if there was no secondary queue.
pub(in crate::linux) fn splice<P: LocalNodes<Node<P, S>>, S>(
    node: &Node<P, S>,
    next: *mut Node<P, S>,
    after: *mut Node<P, S>,
    begun: impl FnOnce(),
) {
    P::count(LockEvent::CnaSplice);
    // SAFETY: `next` is a linked waiter, so its node is in use and ours to move
    // (invariants 1 and 2).
    let (next_next, next_tail) = unsafe { (&(*next).next, &(*next).part.tail) };
    node.next.store(after, Relaxed);
    if let Some(last) = Tail::decode(node.granted.load(Relaxed)) {
        // SAFETY: a node in the secondary queue is in use, and ours to change (invariant 2).
        let last_next = unsafe { &(*P::node(last)).next };
        next_next.store(last_next.load(Relaxed), Relaxed);
        last_next.store(next, Relaxed);
    } else {
        next_next.store(next, Relaxed);
        begun();
    }
    node.granted.store(next_tail.load(Relaxed), Relaxed);
}

/// Puts the secondary queue in front of `next` and makes its first waiter the head, whose NUMA node
/// is preferred from now on.
pub(in crate::linux) fn flush<P: Park + LocalNodes<Node<P, S>>, S, L: QSpinTuning>(
    node: &Node<P, S>,
    next: *mut Node<P, S>,
) {
    P::count(LockEvent::CnaFlush);
    let last = Tail::decode(node.granted.load(Relaxed)).expect("a head that flushes has a secondary queue");
    // SAFETY: a node in the secondary queue is in use, and ours to change (invariant 2).
    let last_next = unsafe { &(*P::node(last)).next };
    let first = last_next.load(Relaxed);
    last_next.store(next, Relaxed);
    // SAFETY: the first of the secondary queue waits for `granted`, so its node is in use.
    grant::<P, L>(unsafe { &(*first).granted }, 1);
}

/// [`QueuePolicy::try_clear_tail`](qspinlock::QueuePolicy::try_clear_tail): the secondary queue, if
/// there is one, replaces the main queue, which is empty except for the head.
pub(in crate::linux) fn try_clear_tail<P: Park + LocalNodes<Node<P, S>>, S, L: QSpinTuning>(
    word: &P::U32,
    val: u32,
    node: &Node<P, S>,
) -> Result<(), u32> {
    let Some(last) = Tail::decode(node.granted.load(Relaxed)) else {
        // Relaxed: as in `Fifo::try_clear_tail`.
        return word.compare_exchange(val, LOCKED, Relaxed, Relaxed).map(drop);
    };
    let last_tail = Tail::encode(last).bits();
    let last = P::node(last);
    // SAFETY: a node in the secondary queue is in use, and by invariant 2 ours to change.
    let last_next = unsafe { &(*last).next };
    let first = last_next.load(Relaxed);
    // The circle becomes the main queue. It must be open before the word names its last node, since
    // a waiter that queues behind that node writes its `next`.
    last_next.store(ptr::null_mut(), Relaxed);
    // Ordering: Release, pairs with the Acquire half of the tail swap: the null above comes before
    // the link of a waiter that queues behind it. Relaxed on failure: nothing is read through the
    // value.
    if let Err(seen) = word.compare_exchange(val, last_tail | LOCKED, Release, Relaxed) {
        P::count(LockEvent::CnaTailUpdateFailed);
        last_next.store(first, Relaxed);
        return Err(seen);
    }
    P::count(LockEvent::CnaTailSplice);
    // SAFETY: the first of the secondary queue waits for `granted`, so its node is in use.
    grant::<P, L>(unsafe { &(*first).granted }, 1);
    Ok(())
}

#[cfg(test)]
mod tests;
