//! The order in which a queue is served. The hooks of the queue's policy are called one after the
//! other on one thread.

use std::sync::atomic::Ordering::Relaxed;

use nearlock_collection::linux::qspinlock::{QSpinTuning, Stealing, TAIL_MASK, Tail};
use nearlock_core::platform::{Atomic, LocalNodes, NodeId};
use nearlock_model::loom::{Loom, LoomU32};
use nearlock_model::model::Model;
use nearlock_model::staged::{Queue, Stage, build};

use crate::policy::{NodeOf, node_in};

nearlock_core::tuning! {
    /// A head that gives up sorting after a few turns, since no other thread is there to unlock the
    /// lock.
    struct Brief: QSpinTuning {
        stealing: Stealing = Stealing::Once;
        head_turns: u32 = 4;
    }
}

/// A model of `queue`, which no thread joins. Its waiters, by their slots, become head in the order
/// `expected`. The clock is `begin_ns` for the first of them and `later_ns` for the others.
pub fn served<Q: Stage<Loom>>(
    name: &str,
    queue: Queue,
    begin_ns: u64,
    later_ns: u64,
    expected: &'static [u32],
) -> Model
where
    Loom: LocalNodes<NodeOf<Q>>,
{
    Model::new(format!("{name}: order of service"), queue.slots(), Some(0), move || {
        let word = LoomU32::new(build::<Loom, Q>(&queue));
        let mut order = Vec::new();
        let mut head = Some(0);
        while let Some(slot) = head {
            Loom::set_now_ns(if order.is_empty() { begin_ns } else { later_ns });
            order.push(slot);
            pass_on::<Q>(&word, slot);
            let granted = |slot: &u32| node_in::<Q>(*slot).granted.load(Relaxed) != 0;
            head = (0..queue.slots()).filter(|slot| !order.contains(slot)).find(granted);
        }
        assert!(order == expected, "served in the order {order:?}, not {expected:?}");
    })
}

/// The work of the head in this slot.
fn pass_on<Q: Stage<Loom>>(word: &LoomU32, slot: u32)
where
    Loom: LocalNodes<NodeOf<Q>>,
{
    let (node, tail) = (node_in::<Q>(slot), Tail::encode(NodeId { slot, level: 0 }));
    // SAFETY: the node is the head's.
    unsafe { Q::became_head::<Brief>(word, node) };
    let val = word.load(Relaxed);
    // SAFETY: as above.
    if val & TAIL_MASK != tail.bits() || unsafe { Q::try_clear_tail::<Brief>(word, val, node) }.is_err() {
        // SAFETY: as above.
        unsafe { Q::hand_over::<Brief>(node, node.next.load(Relaxed)) };
    }
}
