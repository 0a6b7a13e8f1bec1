//! Queue policies with a bug: the policies of core, except for one hook.

use std::marker::PhantomData;
use std::sync::atomic::Ordering::Relaxed;

use nearlock_collection::linux::qspinlock::{Node, QSpinTuning, QueuePolicy, Tail};
use nearlock_core::platform::{Atomic, LocalNodes, NodeId};
use nearlock_model::loom::{Loom, LoomU32};
use nearlock_model::staged::Stage;

/// The node of a policy.
pub type NodeOf<Q> = Node<Loom, <Q as QueuePolicy<Loom>>::Part>;

/// A policy with one hook that differs; the others are those of `Base`. The conditions are those of
/// [`QueuePolicy`].
pub trait Bug: Sized + Send + Sync + 'static {
    type Base: Stage<Loom>;

    unsafe fn became_head<L: QSpinTuning>(word: &LoomU32, node: &NodeOf<Self::Base>) {
        // SAFETY: the condition of the caller; also below.
        unsafe { Self::Base::became_head::<L>(word, node) }
    }
    unsafe fn try_clear_tail<L: QSpinTuning>(
        word: &LoomU32,
        val: u32,
        node: &NodeOf<Self::Base>,
    ) -> Result<(), u32> {
        // SAFETY: as above.
        unsafe { Self::Base::try_clear_tail::<L>(word, val, node) }
    }
    unsafe fn hand_over<L: QSpinTuning>(node: &NodeOf<Self::Base>, next: *mut NodeOf<Self::Base>) {
        // SAFETY: as above.
        unsafe { Self::Base::hand_over::<L>(node, next) }
    }
}

/// The policy with this bug.
pub struct With<B>(PhantomData<B>);

// SAFETY: none: the bug may break it.
unsafe impl<B: Bug> QueuePolicy<Loom> for With<B> {
    type Part = <B::Base as QueuePolicy<Loom>>::Part;

    fn prepare(node: &NodeOf<B::Base>, tail: Tail) {
        B::Base::prepare(node, tail);
    }
    unsafe fn became_head<L: QSpinTuning>(word: &LoomU32, node: &NodeOf<B::Base>) {
        // SAFETY: the condition of the caller; also below.
        unsafe { B::became_head::<L>(word, node) }
    }
    unsafe fn try_clear_tail<L: QSpinTuning>(
        word: &LoomU32,
        val: u32,
        node: &NodeOf<B::Base>,
    ) -> Result<(), u32> {
        // SAFETY: as above.
        unsafe { B::try_clear_tail::<L>(word, val, node) }
    }
    unsafe fn hand_over<L: QSpinTuning>(node: &NodeOf<B::Base>, next: *mut NodeOf<B::Base>) {
        // SAFETY: as above.
        unsafe { B::hand_over::<L>(node, next) }
    }
}

impl<B: Bug> Stage<Loom> for With<B> {
    fn give_secondary(head: &NodeOf<B::Base>, last: Tail) {
        B::Base::give_secondary(head, last);
    }
}

/// The node in this slot.
pub fn node_in<'a, Q: QueuePolicy<Loom>>(slot: u32) -> &'a NodeOf<Q>
where
    Loom: LocalNodes<NodeOf<Q>>,
{
    node_called::<Q>(NodeId { slot, level: 0 })
}

/// The node with this name.
pub fn node_called<'a, Q: QueuePolicy<Loom>>(id: NodeId) -> &'a NodeOf<Q>
where
    Loom: LocalNodes<NodeOf<Q>>,
{
    // SAFETY: nodes live as long as the execution.
    unsafe { &*Loom::node(id) }
}

/// The last node of the secondary queue of the head `node`, if it has one.
pub fn end_of_secondary<'a, Q: QueuePolicy<Loom>>(node: &NodeOf<Q>) -> Option<&'a NodeOf<Q>>
where
    Loom: LocalNodes<NodeOf<Q>>,
{
    Tail::decode(node.granted.load(Relaxed)).map(|id| node_called::<Q>(id))
}

/// A pointer to the node, as links have it.
pub fn pointer<N>(node: &N) -> *mut N {
    std::ptr::from_ref(node).cast_mut()
}
