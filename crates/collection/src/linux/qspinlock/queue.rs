//! The queue of a qspinlock: its nodes, who comes next, and how a waiter waits to be the head.
//!
//! ```text
//! granted
//!    0 -> 2      the waiter sleeps (only with `QSpinTuning::park_turns`)   `sleep_until_granted`
//!    0 -> value  the waiter is the head                                    `grant`
//!    2 -> value  the same, and it is woken                                 `grant`
//! ```
//! A waiter sleeps on its own node. Whoever grants swaps the value in and so learns whether there
//! is a sleeper to be woken: the swap and the waiter's compare-exchange are on one word, so one of
//! them sees the other.
//!
//! Difference from the kernel: there the one that hands over leaves the waking to the unlock, by
//! way of a hash table from lock to node. Here it wakes at once, inside its section: no table, and
//! the sleeper is up sooner.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::{LOCKED, QSpinTuning, Tail};
use crate::events::LockEvent;
use crate::platform::{Atomic, Park, Platform, ZeroNode};

/// The value of `granted` while the waiter sleeps. Never the name of a node, nor 1.
pub const HALTED: u32 = 2;

const _: () = assert!(Tail::decode(HALTED).is_none());

/// How often a waiter that may sleep early looks at its predecessor, in turns. (The kernel's
/// waiters, which look for 2^15 turns, do so every 2^8.) 0 would look for ever.
const EARLY_CHECK_TURNS: u32 = 1 << 5;

/// Puts what follows it eight bytes into a [`Node`], however long a pointer is: there a spinner of
/// another lock may still look, see [`osq`](crate::linux::osq).
#[repr(align(8))]
#[derive(Default)]
struct AtEight;

/// A place in the queue, with what the policy `Q` keeps in it.
#[repr(C)]
pub struct Node<P: Platform, Part> {
    /// The waiter behind this one; null until that one has linked itself in.
    pub next: P::Ptr<Node<P, Part>>,
    at_eight: AtEight,
    /// 0 while the owner must wait, [`HALTED`] while it sleeps; anything else once it is the head.
    /// A first head keeps 0.
    pub granted: P::U32,
    /// What the policy keeps.
    pub part: Part,
}

// SAFETY: words and pointers of zero bits are valid (0 and null), and so is the part.
unsafe impl<P: Platform, Part: ZeroNode> ZeroNode for Node<P, Part> {}

impl<P: Platform, Part: Default> Default for Node<P, Part> {
    fn default() -> Self {
        Self {
            next: Atomic::new(ptr::null_mut()),
            at_eight: AtEight,
            granted: Atomic::new(0),
            part: Part::default(),
        }
    }
}

/// Which waiter of the queue comes next: the hooks in which [CNA](crate::linux::cna) differs from
/// first come, first served.
///
/// # Safety
///
/// Every waiter becomes head once, after the one before it has stopped being head (invariant 2).
pub unsafe trait QueuePolicy<P: Platform>: Sized + Send + Sync + 'static {
    /// What it keeps in each node.
    type Part: Default + Send + Sync + 'static;

    /// Prepares the part of the caller's own node, whose name is `tail`, before it is queued.
    fn prepare(node: &Node<P, Self::Part>, tail: Tail);

    /// The caller has become head and is about to wait for `word`.
    ///
    /// # Safety
    ///
    /// The caller is the head, with this `node`. So in the next two.
    unsafe fn became_head<T: QSpinTuning>(word: &P::U32, node: &Node<P, Self::Part>);

    /// The head takes the lock when the word `val` names its node as the last: tries to take it
    /// without leaving a head behind that nobody will grant. (The word is free, or locked by
    /// the head already.)
    ///
    /// # Errors
    ///
    /// The word as it is, if somebody has queued meanwhile, or set pending.
    #[allow(clippy::missing_safety_doc)] // said above
    unsafe fn try_clear_tail<T: QSpinTuning>(
        word: &P::U32,
        val: u32,
        node: &Node<P, Self::Part>,
    ) -> Result<(), u32>
    where
        P: Park;

    /// The head holds the lock and makes another waiter the head; `next` has been read from its
    /// node.
    #[allow(clippy::missing_safety_doc)] // said above
    unsafe fn hand_over<T: QSpinTuning>(node: &Node<P, Self::Part>, next: *mut Node<P, Self::Part>)
    where
        P: Park;
}

/// First come, first served: the MCS queue as it is.
#[derive(Debug)]
pub struct Fifo;

// SAFETY: the one head makes the one waiter linked behind it the head, or clears the tail.
unsafe impl<P: Platform> QueuePolicy<P> for Fifo {
    type Part = ();

    #[inline(always)]
    fn prepare(_node: &Node<P, ()>, _tail: Tail) {}

    #[inline(always)]
    unsafe fn became_head<T: QSpinTuning>(_word: &P::U32, _node: &Node<P, ()>) {}

    #[inline(always)]
    unsafe fn try_clear_tail<T: QSpinTuning>(word: &P::U32, val: u32, _node: &Node<P, ()>) -> Result<(), u32>
    where
        P: Park,
    {
        // Relaxed: the wait that returned `val` acquired the previous section, and nothing of ours is
        // published by leaving.
        word.compare_exchange(val, LOCKED, Relaxed, Relaxed).map(drop)
    }

    #[inline(always)]
    unsafe fn hand_over<T: QSpinTuning>(_node: &Node<P, ()>, next: *mut Node<P, ()>)
    where
        P: Park,
    {
        // SAFETY: the next waiter waits for `granted`, so its node is in use until this store.
        grant::<P, T>(unsafe { &(*next).granted }, 1);
    }
}

/// Makes the owner of `granted` the head. Any `value` but 0 and [`HALTED`] will do; it stays in the
/// node.
#[inline(always)]
pub fn grant<P: Park, T: QSpinTuning>(granted: &P::U32, value: u32) {
    let address = ptr::from_ref(granted);
    if T::park_turns().is_none() {
        // Ordering: Release, pairs with the Acquire in `wait_granted`: what the head has seen and made of
        // the queue is visible to the next head.
        granted.store(value, Release);
        return;
    }
    // Ordering: Release, as above.
    if granted.swap(value, Release) == HALTED {
        P::count(LockEvent::KickWaiter);
        P::unpark(address, 1);
    }
}

/// Waits until `node` has been made the head. `predecessor` was in front of it when it queued: a
/// pointer and not a reference, because the predecessor may leave meanwhile, and its next
/// acquisition write the node anew. Safety: it points to a node of the platform. So in
/// `looks_granted`.
#[inline(always)]
pub(super) unsafe fn wait_granted<P: Park, Part, T: QSpinTuning>(
    node: &Node<P, Part>,
    predecessor: *const Node<P, Part>,
) {
    match T::park_turns() {
        None => {
            // Ordering: Acquire, pairs with the Release in `grant`: we see the queue as the last head did.
            P::wait_until(&node.granted, Acquire, |granted| granted != 0);
        }
        Some(turns) => {
            // SAFETY: the caller's.
            if !unsafe { looks_granted::<P, Part, T>(node, predecessor, turns) } {
                sleep_until_granted(node);
            }
        }
    }
}

/// Looks for `turns` turns, or until the predecessor sleeps; true if granted by then.
pub(super) unsafe fn looks_granted<P: Park, Part, T: QSpinTuning>(
    node: &Node<P, Part>,
    predecessor: *const Node<P, Part>,
    turns: u32,
) -> bool {
    let mut left = turns;
    loop {
        let stretch = left.min(EARLY_CHECK_TURNS);
        // Ordering: Acquire, pairs with the Release in `grant`, as in `wait_granted`.
        if P::wait_until_bounded(&node.granted, Acquire, stretch, |granted| granted != 0) != 0 {
            return true;
        }
        left -= stretch;
        // A hint: the predecessor may have left, and its node be in another queue.
        // SAFETY: nodes live as long as the platform.
        if T::wait_early() && unsafe { &(*predecessor).granted }.load(Relaxed) == HALTED {
            P::count(LockEvent::WaitEarly);
            return false;
        }
        if left == 0 {
            return false;
        }
    }
}

/// Sleeps until granted.
#[cold]
pub(super) fn sleep_until_granted<P: Park, Part>(node: &Node<P, Part>) {
    // Relaxed on success, where nothing is published.
    // Ordering: Acquire on failure, pairs with the Release in `grant`: granted meanwhile.
    if node.granted.compare_exchange(0, HALTED, Relaxed, Acquire).is_err() {
        return;
    }
    P::count(LockEvent::WaitNode);
    loop {
        P::park(&node.granted, HALTED);
        // Ordering: Acquire, as above.
        if node.granted.load(Acquire) != HALTED {
            return;
        }
    }
}
