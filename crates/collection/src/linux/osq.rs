//! Optimistic spin queue: of those who would spin for a sleeping lock, one does; the others wait
//! for their turn in an MCS queue, which they may leave at any time.
//!
//! ```text
//!  tail  0: nobody | the name of the last node: bits 16-17 level | 18-31 slot + 1
//!
//!  [spinner] --next--> [waiter 1] --next--> [waiter 2] <-- tail
//!            <-previous-          <-previous-
//!
//!  tail  0 -> n        enters, and has its turn at once             `enter`
//!        p -> n        enters behind p                              `enter`
//!        n -> 0        the spinner leaves, and is the last          `release`
//!        n -> p        a waiter leaves, and is the last             `settle`
//!
//!  A waiter x between p and n leaves in three steps:
//!   A  p.next  x -> 0      then p can neither end its turn nor leave: somebody is behind it, nobody knows who
//!   B  x.next  n -> 0      then n cannot do step A of its own        (or x is the last: tail x -> p, and done)
//!   C  n.previous = p, p.next = n
//! ```
//! 1. Whoever is behind a node, as its swap of the tail says or step C, keeps it from leaving until
//!    it has linked itself there, or step C or the tail names another. So p is in the queue from A
//!    to C, and n from B on.
//! 2. The spinner grants n only after it has swapped n out of its own `next`: so either it grants
//!    n, or n's step A succeeds. Hence n, if A fails for good, will find itself granted, and
//!    `leave` says so. For the same reason B is a swap: of two that read n there, one could go on
//!    with a waiter that has left.
//! 3. A link is written by whoever is behind, before it waits, or by step C; those are ordered by
//!    taking the link out.
//!
//! A waiter may look at the `next` of one that has left, whose node may be another lock's by then:
//! the word has four bytes in every node that a platform lends, and never this waiter's name (slot
//! and level are in use by it).
//!
//! A waiter waits in steps A and B, and for a newcomer that has not linked itself in yet. It may
//! have preempted that neighbour. So after `NEIGHBOUR_TURNS` it sleeps between two looks, for
//! `NEIGHBOUR_SLEEP_NS` each time.
//!
//! Fairness: first come, first served, among those who stay. Whoever has no node does not get a
//! turn. Source: the algorithm of Linux' `kernel/locking/osq_lock.c` (Zijlstra, Low, 2014; heeding
//! a predecessor that does not run: Pan Xinhui, 2016), from a description in own words.

use core::mem::offset_of;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::qspinlock::{self, Tail};
use crate::events::LockEvent;
use crate::native::Native;
use crate::platform::{Atomic, LentNode, LocalNodes, ParkTimeout, Platform, ZeroNode};
use crate::schedule::{Schedule, Spin, Stop, ThreadId};

/// No node's name.
const NOBODY: u32 = 0;

/// Turns of waiting for a neighbour that is between two steps, a few instructions, before the
/// waiter sleeps. Natively the first 128 pause and the others yield: 50 to 100 us, if no other
/// thread wants the processor. Fewer: it sleeps where a yield would do. More: a thread of high
/// priority keeps the neighbour from running for as long.
const NEIGHBOUR_TURNS: u32 = 256;
/// How long it sleeps between two looks, in ns: about twice what it costs to sleep and to wake up.
/// Longer, it notices the neighbour late; shorter, it wakes before the neighbour has run.
const NEIGHBOUR_SLEEP_NS: u64 = 50_000;

/// A place in the queue. Neighbours are named as in the tail.
#[repr(C)]
pub struct Node<P: Platform> {
    /// 1 once the owner has its turn.
    granted: P::U32,
    /// Who is in front. Written by the owner when it enters, then by step C of whoever is in front.
    previous: P::U32,
    /// Who is behind, as far as it has linked itself in.
    next: P::U32,
    /// The owner's thread.
    thread: P::U32,
    /// That of who is in front: a hint.
    previous_thread: P::U32,
}

// What others may still look at has four bytes in the other nodes that platforms lend.
const _: () = assert!(offset_of!(Node<Native>, next) == offset_of!(qspinlock::Node<Native, ()>, granted));

// SAFETY: words of zero bits are valid.
unsafe impl<P: Platform> ZeroNode for Node<P> {}

impl<P: Platform> Default for Node<P> {
    fn default() -> Self {
        Self {
            granted: Atomic::new(0),
            previous: Atomic::new(NOBODY),
            next: Atomic::new(NOBODY),
            thread: Atomic::new(0),
            previous_thread: Atomic::new(0),
        }
    }
}

/// See the [module](self). Four bytes; all zero: nobody spins.
#[repr(transparent)]
pub struct Osq<P: Platform> {
    tail: P::U32,
}

impl<P: Platform> Osq<P> {
    /// A queue without a spinner, in `const`.
    pub const fn new() -> Self {
        Self { tail: Atomic::ZERO }
    }

    /// Whether somebody spins, or waits to. Stale by the time it is known, and orders nothing.
    pub fn has_spinner(&self) -> bool {
        self.tail.load(Relaxed) != NOBODY
    }
}

impl<P: Platform> Default for Osq<P> {
    fn default() -> Self {
        Self { tail: Atomic::new(NOBODY) }
    }
}

impl<P: Schedule + ParkTimeout + LocalNodes<Node<P>>> Osq<P> {
    /// Waits for the caller's turn, does `f` then, and ends the turn. `None`: the caller should
    /// spin no longer, as `spin` or `is_over` says, or because the thread in front does not
    /// run; or it has no node.
    ///
    /// What happened in one turn happens before what happens in the next.
    ///
    /// # Safety
    ///
    /// Neither `is_over` nor `f` unwinds: the node would be lent again while in this queue.
    ///
    /// ```compile_fail,E0133
    /// # use {nearlock_collection::linux::osq::*, nearlock_core::{platform::*, schedule::*}};
    /// # fn f<P: Schedule + ParkTimeout + LocalNodes<Node<P>>>() {
    /// Osq::<P>::new().with_turn(P::thread_id(), &mut Spin::default(), || false, |_| -> u32 { panic!() });
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
            // SAFETY: just lent, for the length of this closure; entered once, and then left or released.
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

    /// Enters the queue; true if it was empty: the caller has its turn. Safety: the node is lent to
    /// the caller.
    #[doc(hidden)] // public, as the next three, for models that start in the middle of a queue
    pub unsafe fn enter(&self, lent: &LentNode<Node<P>>, me: ThreadId) -> bool {
        let name = Tail::encode(lent.id).bits();
        // SAFETY: lent nodes live as long as the platform; so below.
        let node = unsafe { &*lent.node };
        node.granted.store(0, Relaxed);
        node.next.store(NOBODY, Relaxed);
        node.thread.store(me.get(), Relaxed);
        // Ordering: AcqRel. Release publishes the stores above to whoever finds us in the tail. Acquire,
        // pairs with the Releases in `release`, `settle` and here: the last turn happens before
        // ours, and whoever is in front has made its node before we write into it.
        let previous = self.tail.swap(name, AcqRel);
        if previous == NOBODY {
            return true;
        }
        // SAFETY: it stays in the queue until we have linked ourselves in (invariant 1).
        let before = unsafe { Self::named(previous) };
        node.previous.store(previous, Relaxed);
        node.previous_thread.store(before.thread.load(Relaxed), Relaxed);
        // Ordering: Release, pairs with the Acquires of `next` in `release` and `settle`: our node is made
        // before they write into it.
        before.next.store(name, Release);
        false
    }

    /// Waits for a turn, or leaves the queue; false then. Safety: the node is the caller's, in it.
    #[doc(hidden)]
    pub unsafe fn wait(&self, lent: &LentNode<Node<P>>, spin: &mut Spin, is_over: impl Fn() -> bool) -> bool {
        // SAFETY: as in `enter`.
        let node = unsafe { &*lent.node };
        loop {
            let owner = node.previous_thread.load(Relaxed);
            let thread = ThreadId::new(owner).expect("threads have names");
            // Ordering: Acquire, pairs with the Release in `release`: the last turn happens before ours.
            match P::spin_on_owner(spin, &node.granted, Acquire, thread, |v| v != 0 || is_over()) {
                Ok(granted) if granted != 0 => return true,
                // Somebody else is in front by now.
                Err(Stop::OwnerSleeps) if node.previous_thread.load(Relaxed) != owner => {}
                // SAFETY: the caller's.
                _ => return unsafe { self.leave(lent) },
            }
        }
    }

    /// Leaves the queue. True if the caller has been granted its turn meanwhile, and so has not
    /// left. Safety: as [`wait`](Self::wait).
    #[doc(hidden)]
    #[cold]
    pub unsafe fn leave(&self, lent: &LentNode<Node<P>>) -> bool {
        P::count(LockEvent::OsqLeave);
        let name = Tail::encode(lent.id).bits();
        // SAFETY: as in `enter`.
        let node = unsafe { &*lent.node };
        // A. Who is in front may be leaving too, and change meanwhile.
        let mut turn = 0;
        let (previous, before) = loop {
            let previous = node.previous.load(Relaxed);
            // SAFETY: nodes live as long as the platform; it may be another lock's by now.
            let before = unsafe { Self::named(previous) };
            // Ordering: Acquire on success, pairs with the Release in C: the link that we take out comes
            // before whatever is written there after we have left. Relaxed on failure, where it
            // is only tried again.
            if before.next.load(Relaxed) == name
                && before.next.compare_exchange(name, NOBODY, Acquire, Relaxed).is_ok()
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
        // B
        let Some(next) = self.settle(name, node, previous) else { return false };
        // C
        // SAFETY: in the queue, and cannot leave before it has seen what we write now (invariant 1).
        let after = unsafe { Self::named(next) };
        after.previous_thread.store(node.previous_thread.load(Relaxed), Relaxed);
        after.previous.store(previous, Relaxed);
        // Ordering: Release, pairs with the Acquires of `next` in `leave`, `release` and `settle`: the
        // store above comes before any later step C.
        before.next.store(next, Release);
        false
    }

    /// Step B: takes out who is behind; `None` if nobody is, and then the tail is `previous`.
    fn settle(&self, name: u32, node: &Node<P>, previous: u32) -> Option<u32> {
        let mut turn = 0;
        loop {
            // Ordering: AcqRel. Release, pairs with the Acquire in `enter`: our step A comes before the link
            // of whoever finds `previous` there. Acquire, pairs with the Release here of whoever
            // has left from behind us: its link comes before our node's next use. Relaxed on
            // failure, where nothing is read through the value.
            if self.tail.load(Relaxed) == name
                && self.tail.compare_exchange(name, previous, AcqRel, Relaxed).is_ok()
            {
                return None;
            }
            if node.next.load(Relaxed) != NOBODY {
                // Ordering: Acquire, pairs with the Releases of the links in `enter` and step C: the node of
                // whoever is behind is made before we write into it.
                let next = node.next.swap(NOBODY, Acquire);
                if next != NOBODY {
                    return Some(next);
                }
            }
            Self::await_neighbour(&node.next, &mut turn);
        }
    }

    /// One turn of waiting for a neighbour that is between two steps, and may change the word from
    /// 0. Only the clock wakes a waiter that sleeps.
    fn await_neighbour(word: &P::U32, turn: &mut u32) {
        if *turn < NEIGHBOUR_TURNS {
            P::cpu_relax(*turn);
            *turn += 1;
        } else {
            P::park_until(word, 0, P::now_ns().saturating_add(NEIGHBOUR_SLEEP_NS));
        }
    }

    /// Ends the caller's turn. Safety: it has it, by this node.
    #[doc(hidden)]
    pub unsafe fn release(&self, lent: &LentNode<Node<P>>) {
        let name = Tail::encode(lent.id).bits();
        // Ordering: AcqRel on success. Release, pairs with the Acquire in `enter`: our turn happens before
        // the next. Acquire, as in `settle`. Relaxed on failure, where nothing is read through the
        // value.
        if self.tail.compare_exchange(name, NOBODY, AcqRel, Relaxed).is_ok() {
            return;
        }
        // SAFETY: as in `enter`.
        let node = unsafe { &*lent.node };
        // Ordering: Acquire, as in `settle`.
        let next = match node.next.swap(NOBODY, Acquire) {
            NOBODY => self.settle(name, node, NOBODY),
            next => Some(next),
        };
        if let Some(next) = next {
            // SAFETY: its step A can succeed no more, so it waits for this (invariant 2).
            let after = unsafe { Self::named(next) };
            // Ordering: Release, pairs with the Acquires of `granted` in `wait` and `leave`: our turn happens
            // before theirs.
            after.granted.store(1, Release);
        }
    }

    /// The node of this name. Safety: some node has it.
    unsafe fn named<'a>(name: u32) -> &'a Node<P> {
        let id = Tail::decode(name).expect("a link names somebody");
        // SAFETY: nodes live as long as the platform.
        unsafe { &*P::node(id) }
    }
}

#[cfg(test)]
mod tests;
