//! The effect of a mutation, which every operation of the loom platform asks for.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::panic::Location;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use serde::{Deserialize, Serialize};

/// One half of an ordering, and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Site {
    /// Source file of the lock.
    pub file: &'static str,
    /// Its line.
    pub line: u32,
    /// Its column.
    pub column: u32,
    /// The operation.
    pub operation: &'static str,
    /// The half that is dropped.
    pub half: Half,
}

/// A half of an ordering, or another thing that can be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Half {
    /// The half that makes the writes of other threads visible.
    Acquire,
    /// The half that makes the thread's own writes visible.
    Release,
    /// The part of SeqCst beyond both.
    TotalOrder,
    /// A whole asymmetric fence.
    Whole,
}

thread_local! {
    pub(super) static RECORDING: Cell<bool> = const { Cell::new(false) };
    pub(super) static SEEN: RefCell<BTreeSet<Site>> = const { RefCell::new(BTreeSet::new()) };
    pub(super) static DROPPED: Cell<Option<Site>> = const { Cell::new(None) };
    pub(super) static STORES: Cell<Stores> = const { Cell::new(Stores::Ordered) };
    pub(super) static CHECKING: Cell<Check> = const { Cell::new(Check::Other) };
}

/// The rule for plain stores to one word; see `words.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stores {
    /// The stores happen one after the other. The memory model does not require this.
    Ordered,
    /// There is no rule. A model then fails only by the consequences.
    AsTheyCome,
}

/// Whether plain stores to one word must happen one after the other.
pub(crate) fn stores_are_ordered() -> bool {
    STORES.get() == Stores::Ordered
}

/// What loom's race detector is checking, for reports: its own messages do not distinguish these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// Whether two sections overlap.
    Sections,
    /// Whether two plain stores to one word are ordered.
    Stores,
    /// Something else.
    Other,
}

/// Runs `f`, which fails if the check does.
pub(crate) fn checking<R>(what: Check, f: impl FnOnce() -> R) -> R {
    CHECKING.set(what);
    let r = f();
    CHECKING.set(Check::Other);
    r
}

/// The rest of `order` at this place after the mutation. Called by every operation of the loom
/// platform.
pub(crate) fn effective(
    order: Ordering,
    operation: &'static str,
    at: &'static Location<'static>,
) -> Ordering {
    let total = order == SeqCst;
    let acquire = matches!(order, Acquire | AcqRel) || total && operation != "store";
    let release =
        matches!(order, Release | AcqRel) || total && !["load", "failed exchange"].contains(&operation);
    if !total && !acquire && !release || is_idle() {
        return order;
    }
    let keeps = |half| keeps_half(half, operation, at);
    if total && operation == "fence" {
        // If the weaker AcqRel is not enough, neither is anything less.
        return if keeps(Half::TotalOrder) { SeqCst } else { AcqRel };
    }
    let kept = [
        !acquire || keeps(Half::Acquire),
        !release || keeps(Half::Release),
        !total || keeps(Half::TotalOrder),
    ];
    match (kept == [true; 3], acquire && kept[0], release && kept[1]) {
        (true, ..) => order,
        (_, true, true) => AcqRel,
        (_, true, false) => Acquire,
        (_, false, true) => Release,
        (_, false, false) => Relaxed,
    }
}

/// Whether the asymmetric fence at this place is still there.
pub(crate) fn keeps(operation: &'static str, at: &'static Location<'static>) -> bool {
    is_idle() || keeps_half(Half::Whole, operation, at)
}

/// Whether nothing is recorded and nothing dropped.
fn is_idle() -> bool {
    !RECORDING.get() && DROPPED.get().is_none()
}

fn keeps_half(half: Half, operation: &'static str, at: &'static Location<'static>) -> bool {
    let site = Site { file: at.file(), line: at.line(), column: at.column(), operation, half };
    if RECORDING.get() {
        SEEN.with_borrow_mut(|seen| seen.insert(site));
    }
    DROPPED.get() != Some(site)
}
