//! The queue of a qspinlock: its nodes, its order, and how a waiter waits to become the head.
//!
//! ```text
//! granted
//!    0 -> 2      the waiter sleeps (only with `QSpinTuning::park_turns`)   `sleep_until_granted`
//!    0 -> value  the waiter is the head                                    `grant`
//!    2 -> value  the same, and it is woken                                 `grant`
//! ```
//! A waiter sleeps on its own node. The thread that grants swaps the value in, and so learns
//! whether it must wake a sleeper. The swap and the waiter's compare-exchange are on the same word,
//! so one of them sees the other.
//!
//! Difference from the kernel: there, the thread that hands over leaves the wake-up to its unlock,
//! which finds the node in a hash table. Here, it wakes the sleeper at once, inside of its section.
//! This needs no table, and the sleeper runs sooner.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::{LOCKED, QSpinTuning, Tail};
use crate::events::LockEvent;
use crate::platform::{Atomic, Park, Platform, ZeroNode};

/// The value of `granted` while the waiter sleeps. It is neither 1 nor the name of a node.
pub const HALTED: u32 = 2;

const _: () = assert!(Tail::decode(HALTED).is_none());

/// After how many turns a waiter that may sleep early looks at its predecessor. (The kernel's
/// waiters, which look for 2^15 turns, do so every 2^8 turns.) With 0, the waiter would look for
/// ever.
const EARLY_CHECK_TURNS: u32 = 1 << 5;

/// Puts the next field of a [`Node`] at offset 8, whatever the size of a pointer. A spinner of
/// another lock may still read the word there, see [`osq`](crate::linux::osq).
#[repr(align(8))]
#[derive(Default)]
struct AtEight;

/// A place in the queue, with the data of the policy.
#[repr(C)]
pub struct Node<P: Platform, Part> {
    /// The successor; null until it has linked itself in.
    pub next: P::Ptr<Node<P, Part>>,
    at_eight: AtEight,
    /// 0 while the owner must wait, [`HALTED`] while it sleeps, and any other value once it is the
    /// head. A head that found the queue empty keeps 0.
    pub granted: P::U32,
    /// The data of the policy.
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

/// Decides which waiter of the queue comes next. The functions are the hooks in which
/// [CNA](crate::linux::cna) differs from first come, first served.
///
/// # Safety
///
/// Every waiter becomes the head once, after the previous head has stopped being the head
/// (invariant 2).
pub unsafe trait QueuePolicy<P: Platform>: Sized + Send + Sync + 'static {
    /// The data of the policy in each node.
    type Part: Default + Send + Sync + 'static;

    /// Prepares the part of the caller's own node, whose name is `tail`, before it is queued.
    fn prepare(node: &Node<P, Self::Part>, tail: Tail);

    /// Called when the caller has become the head, and is about to wait for `word`.
    ///
    /// # Safety
    ///
    /// The caller is the head, with this `node`. The same holds for the next two functions.
    unsafe fn became_head<T: QSpinTuning>(word: &P::U32, node: &Node<P, Self::Part>);

    /// Called when the word `val` names the head's node as the last. Tries to take the lock and
    /// remove the node from the tail. It must not leave a head behind that no thread will grant.
    /// (The word is free, or the head has locked it already.)
    ///
    /// # Errors
    ///
    /// The present word, if another thread has queued or set pending meanwhile.
    #[allow(clippy::missing_safety_doc)] // said above
    unsafe fn try_clear_tail<T: QSpinTuning>(
        word: &P::U32,
        val: u32,
        node: &Node<P, Self::Part>,
    ) -> Result<(), u32>
    where
        P: Park;

    /// Called when the head holds the lock. Makes another waiter the head. `next` has been read
    /// from the head's node.
    #[allow(clippy::missing_safety_doc)] // said above
    unsafe fn hand_over<T: QSpinTuning>(node: &Node<P, Self::Part>, next: *mut Node<P, Self::Part>)
    where
        P: Park;
}

/// First come, first served: the plain MCS queue.
#[derive(Debug)]
pub struct Fifo;

// SAFETY: the head makes the one waiter that is linked behind it the head, or clears the tail.
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
        // Relaxed: the wait that returned `val` acquired the previous section, and leaving
        // publishes nothing.
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

/// Makes the owner of `granted` the head. `value` may be anything except 0 and [`HALTED`]. It stays
/// in the node.
#[inline(always)]
pub fn grant<P: Park, T: QSpinTuning>(granted: &P::U32, value: u32) {
    let address = ptr::from_ref(granted);
    if T::park_turns().is_none() {
        // Ordering: Release, pairs with the Acquire in `wait_granted`: what the head has seen of
        // the queue, and its changes to it, are visible to the next head.
        granted.store(value, Release);
        return;
    }
    // Ordering: Release, as above.
    if granted.swap(value, Release) == HALTED {
        P::count(LockEvent::KickWaiter);
        P::unpark(address, 1);
    }
}

/// Waits until the owner of `node` has been made the head. `predecessor` was in front of it when it
/// queued. It is a pointer and not a reference: the predecessor may leave meanwhile, and write the
/// node again in its next acquisition. Safety: `predecessor` points to a node of the platform. The
/// same holds for `looks_granted`.
#[inline(always)]
pub(super) unsafe fn wait_granted<P: Park, Part, T: QSpinTuning>(
    node: &Node<P, Part>,
    predecessor: *const Node<P, Part>,
) {
    match T::park_turns() {
        None => {
            // Ordering: Acquire, pairs with the Release in `grant`: we see the queue as the last
            // head left it.
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

/// Looks for `turns` turns, or until the predecessor sleeps. True if granted by then.
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
        // A hint: the predecessor may have left, and its node may be in another queue.
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
