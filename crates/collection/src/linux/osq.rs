//! Optimistic spin queue: of the threads that want to spin for a sleeping lock, only one spins at a
//! time. The others wait for their turn in an MCS queue, which they may leave at any time.
//!
//! ```text
//!  tail  0: no thread | the name of the last node: bits 16-17 level | 18-31 slot + 1
//!
//!  [spinner] --next--> [waiter 1] --next--> [waiter 2] <-- tail
//!            <-previous-          <-previous-
//!
//!  tail  0 -> n        n enters, and has its turn at once           `enter`
//!        p -> n        n enters behind p                            `enter`
//!        n -> 0        the spinner leaves, and is the last          `release`
//!        n -> p        a waiter leaves, and is the last             `settle`
//!
//!  A waiter x between p and n leaves in three steps:
//!   A  p.next  x -> 0      From now on, p can neither end its turn nor leave: it has a successor,
//!                          and does not know which.
//!   B  x.next  n -> 0      From now on, n cannot do its own step A.
//!                          (If x is the last: tail x -> p, and x has left.)
//!   C  n.previous = p, p.next = n
//! ```
//! 1. A node's successor is the thread that found the node in the tail, or that a step C has made
//!    its successor. A node with a successor stays in the queue until the successor has linked
//!    itself in the node. It may also leave once a step C has linked another thread there, or the
//!    tail names the node again. So p is in the queue from A to C, and n from B on.
//! 2. The spinner grants n only after it has swapped n out of its own `next`. So either the spinner
//!    grants n, or n's step A succeeds. If step A can never succeed, n will see that it has been
//!    granted, and `leave` returns true. For the same reason B is a swap. If two threads could read
//!    n there, one of them could go on with a waiter that has left.
//! 3. A link is written by the successor before it waits, or by a step C. Between two such writes
//!    the link is taken out, which orders them.
//!
//! A waiter may read the `next` of a node whose owner has left. By then, another lock may use the
//! node. At that offset, every node that a platform lends has four bytes. They never hold this
//! waiter's name, since the waiter itself uses this slot and level.
//!
//! A thread waits in steps A and B, and for a newcomer that has not linked itself in yet. It may
//! have preempted the thread that it waits for. So after `NEIGHBOUR_TURNS` it sleeps between two
//! looks, for `NEIGHBOUR_SLEEP_NS` each time.
//!
//! Fairness: first come, first served, among the waiters that stay. A thread without a node does
//! not get a turn. Source: the algorithm of Linux' `kernel/locking/osq_lock.c` (Zijlstra, Low,
//! 2014; leaving when the predecessor does not run: Pan Xinhui, 2016), written from a description
//! in our own words.

use core::mem::offset_of;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::qspinlock::{self, Tail};
use crate::events::LockEvent;
use crate::native::Native;
use crate::platform::{Atomic, LentNode, LocalNodes, ParkTimeout, Platform, ZeroNode};
use crate::schedule::{Schedule, Spin, Stop, ThreadId};

/// The name of no node.
const NO_NODE: u32 = 0;

/// How many turns a thread waits for a neighbour that is between two steps, before it sleeps. The
/// steps are a few instructions apart. Natively, the first 128 turns pause and the others yield.
/// That takes 50 to 100 us if no other thread wants the processor. With fewer turns, the thread
/// would sleep where a yield is enough. With more turns, a thread of high priority would keep the
/// neighbour from running for longer.
const NEIGHBOUR_TURNS: u32 = 256;
/// How long it sleeps between two looks, in ns: about twice the cost of sleeping and waking up.
/// With a longer sleep, it would notice the neighbour late. With a shorter sleep, it would wake up
/// before the neighbour has run.
const NEIGHBOUR_SLEEP_NS: u64 = 50_000;

/// A place in the queue. Neighbours are named as in the tail.
#[repr(C)]
pub struct Node<P: Platform> {
    /// 1 once the owner has its turn.
    granted: P::U32,
    /// The predecessor. Written by the owner when it enters, and later by step C of a predecessor.
    previous: P::U32,
    /// The successor, if it has linked itself in.
    next: P::U32,
    /// The owner's thread.
    thread: P::U32,
    /// The predecessor's thread: a hint.
    previous_thread: P::U32,
}

// Other threads may still read `next` after the owner has left. The other nodes that platforms lend
// have four bytes at this offset.
const _: () = assert!(offset_of!(Node<Native>, next) == offset_of!(qspinlock::Node<Native, ()>, granted));

// SAFETY: words of zero bits are valid.
unsafe impl<P: Platform> ZeroNode for Node<P> {}

impl<P: Platform> Default for Node<P> {
    fn default() -> Self {
        Self {
            granted: Atomic::new(0),
            previous: Atomic::new(NO_NODE),
            next: Atomic::new(NO_NODE),
            thread: Atomic::new(0),
            previous_thread: Atomic::new(0),
        }
    }
}

/// See the [module](self). Four bytes. If all are zero, no thread spins.
#[repr(transparent)]
pub struct Osq<P: Platform> {
    tail: P::U32,
}

impl<P: Platform> Osq<P> {
    /// An empty queue, in `const`.
    pub const fn new() -> Self {
        Self { tail: Atomic::ZERO }
    }

    /// Whether a thread spins, or waits for its turn. The answer may be stale, and orders nothing.
    pub fn has_spinner(&self) -> bool {
        self.tail.load(Relaxed) != NO_NODE
    }
}

impl<P: Platform> Default for Osq<P> {
    fn default() -> Self {
        Self { tail: Atomic::new(NO_NODE) }
    }
}

impl<P: Schedule + ParkTimeout + LocalNodes<Node<P>>> Osq<P> {
    /// Waits for the caller's turn, calls `f`, and ends the turn. Returns `None` if the caller
    /// should not spin any longer, as `spin` or `is_over` says, or because the predecessor's thread
    /// does not run. Also returns `None` if the caller has no node.
    ///
    /// Everything in one turn happens before everything in the next turn.
    ///
    /// # Safety
    ///
    /// Neither `is_over` nor `f` may unwind. Otherwise the node would be lent again while it is in
    /// this queue.
    ///
    /// ```compile_fail,E0133
    /// # use {nearlock_collection::linux::osq::*, nearlock_core::{platform::*, schedule::*}};
    /// # fn f<P: Schedule + ParkTimeout + LocalNodes<Node<P>>>() {
    /// let mut spin = Spin::default();
    /// Osq::<P>::new().with_turn(P::thread_id(), &mut spin, || false, |_| -> u32 { panic!() });
    /// # }
    /// ```
    pub unsafe fn with_turn<R>(
        &self,
        me: ThreadId,
        spin: &mut Spin,
        is_over: impl Fn() -> bool,
        f: impl FnOnce(&mut Spin) -> R,
    ) -> Option<R> {
        P::with_node(|lent| {
            let Some(lent) = lent else {
                P::count(LockEvent::NoNode);
                return None;
            };
            // SAFETY: the node is lent for the length of this closure. It enters once, and then
            // leaves or is released.
            unsafe {
                if !self.enter(&lent, me) && !self.wait(&lent, spin, is_over) {
                    return None;
                }
                let r = f(spin);
                self.release(&lent);
                Some(r)
            }
        })
    }

    /// Enters the queue. True if the queue was empty: then the caller has its turn. Safety: the
    /// node is lent to the caller.
    #[doc(hidden)] // public, as the next three, for models that start in the middle of a queue
    pub unsafe fn enter(&self, lent: &LentNode<Node<P>>, me: ThreadId) -> bool {
        let name = Tail::encode(lent.id).bits();
        // SAFETY: lent nodes live as long as the platform, here and below.
        let node = unsafe { &*lent.node };
        node.granted.store(0, Relaxed);
        node.next.store(NO_NODE, Relaxed);
        node.thread.store(me.get(), Relaxed);
        // Ordering: AcqRel. Release publishes the stores above to a thread that finds us in the
        // tail. Acquire pairs with the Releases in `release`, `settle` and here: the last turn
        // happens before ours, and the predecessor's node is initialised before we write into it.
        let previous = self.tail.swap(name, AcqRel);
        if previous == NO_NODE {
            return true;
        }
        // SAFETY: the predecessor stays in the queue until we have linked ourselves in
        // (invariant 1).
        let before = unsafe { Self::named(previous) };
        node.previous.store(previous, Relaxed);
        node.previous_thread.store(before.thread.load(Relaxed), Relaxed);
        // Ordering: Release, pairs with the Acquires of `next` in `release` and `settle`: our node
        // is initialised before they write into it.
        before.next.store(name, Release);
        false
    }

    /// Waits for a turn. False if it has left the queue instead. Safety: the node is the caller's,
    /// and in the queue.
    #[doc(hidden)]
    pub unsafe fn wait(&self, lent: &LentNode<Node<P>>, spin: &mut Spin, is_over: impl Fn() -> bool) -> bool {
        // SAFETY: as in `enter`.
        let node = unsafe { &*lent.node };
        loop {
            let owner = node.previous_thread.load(Relaxed);
            let thread = ThreadId::new(owner).expect("threads have names");
            // Ordering: Acquire, pairs with the Release in `release`: the last turn happens before
            // ours.
            match P::spin_on_owner(spin, &node.granted, Acquire, thread, |v| v != 0 || is_over()) {
                Ok(granted) if granted != 0 => return true,
                // Another thread is the predecessor by now.
                Err(Stop::OwnerSleeps) if node.previous_thread.load(Relaxed) != owner => {}
                // SAFETY: the caller's.
                _ => return unsafe { self.leave(lent) },
            }
        }
    }

    /// Leaves the queue. True if the caller has been granted its turn meanwhile: then it has not
    /// left. Safety: as [`wait`](Self::wait).
    #[doc(hidden)]
    #[cold]
    pub unsafe fn leave(&self, lent: &LentNode<Node<P>>) -> bool {
        P::count(LockEvent::OsqLeave);
        let name = Tail::encode(lent.id).bits();
        // SAFETY: as in `enter`.
        let node = unsafe { &*lent.node };
        // Step A. The predecessor may be leaving too, and may change meanwhile.
        let mut turn = 0;
        let (previous, before) = loop {
            let previous = node.previous.load(Relaxed);
            // SAFETY: nodes live as long as the platform. Another lock may use this one by now.
            let before = unsafe { Self::named(previous) };
            // Ordering: Acquire on success, pairs with the Release in step C: the link that we take
            // out comes before any link that is written there later. Relaxed on failure, where the
            // loop only tries again.
            if before.next.load(Relaxed) == name
                && before.next.compare_exchange(name, NO_NODE, Acquire, Relaxed).is_ok()
            {
                break (previous, before);
            }
            // Ordering: Acquire, pairs with the Release in `release`, as in `wait`.
            if node.granted.load(Acquire) != 0 {
                P::count(LockEvent::OsqGranted);
                return true;
            }
            Self::await_neighbour(&node.granted, &mut turn);
        };
        // Step B.
        let Some(next) = self.settle(name, node, previous) else { return false };
        // Step C.
        // SAFETY: the successor is in the queue. It cannot leave before it has seen the stores
        // below (invariant 1).
        let after = unsafe { Self::named(next) };
        after.previous_thread.store(node.previous_thread.load(Relaxed), Relaxed);
        after.previous.store(previous, Relaxed);
        // Ordering: Release, pairs with the Acquires of `next` in `leave`, `release` and `settle`:
        // the stores above come before any later step C.
        before.next.store(next, Release);
        false
    }

    /// Step B: takes the link to the successor out. `None` if there is no successor. Then the tail
    /// is `previous`.
    fn settle(&self, name: u32, node: &Node<P>, previous: u32) -> Option<u32> {
        let mut turn = 0;
        loop {
            // Ordering: AcqRel. Release pairs with the Acquire in `enter`: our step A comes before
            // the link of a thread that finds `previous` in the tail. Acquire pairs with the
            // Release here of a successor that has left: its link comes before the next use of our
            // node. Relaxed on failure, where nothing is read through the value.
            if self.tail.load(Relaxed) == name
                && self.tail.compare_exchange(name, previous, AcqRel, Relaxed).is_ok()
            {
                return None;
            }
            if node.next.load(Relaxed) != NO_NODE {
                // Ordering: Acquire, pairs with the Releases of the links in `enter` and step C:
                // the successor's node is initialised before we write into it.
                let next = node.next.swap(NO_NODE, Acquire);
                if next != NO_NODE {
                    return Some(next);
                }
            }
            Self::await_neighbour(&node.next, &mut turn);
        }
    }

    /// One turn of waiting for a neighbour that is between two steps, and may change the word from
    /// 0. Only the clock wakes the caller if it sleeps.
    fn await_neighbour(word: &P::U32, turn: &mut u32) {
        if *turn < NEIGHBOUR_TURNS {
            P::cpu_relax(*turn);
            *turn += 1;
        } else {
            P::park_until(word, 0, P::now_ns().saturating_add(NEIGHBOUR_SLEEP_NS));
        }
    }

    /// Ends the caller's turn. Safety: the caller has its turn, with this node.
    #[doc(hidden)]
    pub unsafe fn release(&self, lent: &LentNode<Node<P>>) {
        let name = Tail::encode(lent.id).bits();
        // Ordering: AcqRel on success. Release pairs with the Acquire in `enter`: our turn happens
        // before the next. Acquire is as in `settle`. Relaxed on failure, where nothing is read
        // through the value.
        if self.tail.compare_exchange(name, NO_NODE, AcqRel, Relaxed).is_ok() {
            return;
        }
        // SAFETY: as in `enter`.
        let node = unsafe { &*lent.node };
        // Ordering: Acquire, as in `settle`.
        let next = match node.next.swap(NO_NODE, Acquire) {
            NO_NODE => self.settle(name, node, NO_NODE),
            next => Some(next),
        };
        if let Some(next) = next {
            // SAFETY: the successor's step A cannot succeed any more, so it waits for this grant
            // (invariant 2).
            let after = unsafe { Self::named(next) };
            // Ordering: Release, pairs with the Acquires of `granted` in `wait` and `leave`: our
            // turn happens before the successor's.
            after.granted.store(1, Release);
        }
    }

    /// The node with this name. Safety: there is a node with this name.
    unsafe fn named<'a>(name: u32) -> &'a Node<P> {
        let id = Tail::decode(name).expect("a link names a node");
        // SAFETY: nodes live as long as the platform.
        unsafe { &*P::node(id) }
    }
}

#[cfg(test)]
mod tests;
