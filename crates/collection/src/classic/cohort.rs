//! Lock cohorting: a NUMA-aware lock made of two locks that are not NUMA-aware.
//!
//! ```text
//!  global   G: held by a part, that is by the thread that holds the part's local lock
//!
//!  part 0   L: [holder: n] [waiter] [waiter]     threads of NUMA node 0
//!  part 1   L: [waits for G] [waiter]            threads of NUMA node 1
//!
//!  n: the holder is the n-th in a row of its part. A holder leaves a word in L for the next one.
//!
//!  word found in L
//!  0   lock: take the global lock; 1st in a row
//!  n   lock: the part holds the global lock already; n-th in a row
//!
//!  unlock
//!  leave n + 1 in L            if a thread waits for L, and n is at most the pass limit
//!  release G, then L with 0    otherwise
//! ```
//! The two locks have to meet these conditions:
//! * The global lock may be unlocked by a thread other than the one that locked it
//!   ([`ThreadOblivious`]).
//! * The holder of the local lock can tell whether a thread waits for it, and can leave a word for
//!   the next holder ([`CohortDetecting`]). The global lock may stay with a part only if there is a
//!   next holder.
//!
//! An acquisition stores its part in its node, since the thread may run elsewhere when it unlocks.
//!
//! 1. A thread holds the lock if it has found a word other than 0 in its local lock, or has locked
//!    the global lock since.
//! 2. `try_lock` tries the global lock alone, without a part. If it queued in a part, it would have
//!    to leave that queue again. Meanwhile other threads could mistake it for a waiter.
//!
//! `unlock` accesses its part after other threads may hold the lock. So a thread that frees the
//! memory of a lock must know that every `unlock` has returned.
//!
//! Fairness: that of the local lock within a NUMA node, that of the global one between NUMA nodes.
//! A NUMA node unlocks the global lock after at most (pass limit + 1) critical sections. If both
//! locks are first come, first served ([`CohortLock`]), a wait is bounded as in
//! [`hmcs`](super::hmcs).
//! Source: Dice, Marathe and Shavit, "Lock cohorting: a general technique for designing NUMA
//! locks", PPoPP 2012 and ACM TOPC 1(2), 2015. `try_lock` is ours.

use core::array;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;

use super::mcs::{self, McsLock};
use super::per_node::{NO_PART, OwnLines, PARTS, part_here};
use super::tas::TasLock;
use super::ticket::TicketLock;
use super::ttas::{TtasLock, TtasTuning};
use crate::events::LockEvent;
use crate::platform::{Atomic, Platform, Settings, Topology};
use crate::raw::{RawLock, RawTryLock};
use crate::settings::Setting;

const _: () = assert!(Setting::CohortLocalPassLimit.info().max + 2 < u32::MAX as u64);

/// The greatest word that a holder may leave. A part counts no further, even if its limit is
/// greater.
const WORD_MAX: u32 = u32::MAX - 1;

/// A ticket lock as global lock, and MCS locks as local locks: first come, first served on both
/// levels. C-TKT-MCS in the literature.
///
/// (At most nine tickets are drawn at a time, one for each part and one by `try_lock`. So the limit
/// of the ticket lock is out of reach.)
pub type CohortLock<P> = Cohort<P, TicketLock<P>, McsLock<P>>;

/// A lock that any thread may unlock, not only the one that locked it.
///
/// # Safety
///
/// Any thread may call [`unlock`](RawLock::unlock), provided that the acquisition happens before
/// the call.
pub unsafe trait ThreadOblivious: RawTryLock<Node = ()> {}

// SAFETY: these locks consist of words, and their `unlock` reads and writes these words only.
unsafe impl<P: Platform> ThreadOblivious for TasLock<P> {}
// SAFETY: as above.
unsafe impl<P: Platform, T: TtasTuning> ThreadOblivious for TtasLock<P, T> {}
// SAFETY: as above; the word contains the ticket that is served.
unsafe impl<P: Platform> ThreadOblivious for TicketLock<P> {}

/// A lock whose holder can tell whether a thread waits for it, and can leave a word for the next
/// holder.
///
/// # Safety
///
/// If [`is_alone`](Self::is_alone) is false, there is a waiter that gets the lock next, whatever
/// else happens. The next holder finds the word that the previous holder left, or 0 if the previous
/// holder used [`unlock`](RawLock::unlock).
pub unsafe trait CohortDetecting: RawLock {
    /// Locks, and returns the word that the previous holder left.
    ///
    /// # Safety
    ///
    /// As [`RawLock::lock`].
    unsafe fn lock_receiving(&self, node: &Self::Node) -> u32;

    /// Whether no thread waits. May miss a thread that has just arrived.
    ///
    /// # Safety
    ///
    /// The caller holds the lock, locked with this `node`.
    unsafe fn is_alone(&self, node: &Self::Node) -> bool;

    /// Unlocks, and leaves a word below `u32::MAX`.
    ///
    /// # Safety
    ///
    /// As [`RawLock::unlock`]; and [`is_alone`](Self::is_alone) was false.
    unsafe fn unlock_leaving(&self, node: &Self::Node, word: u32);
}

/// The node of an acquisition, in use from `lock` to `unlock`.
#[repr(C)]
pub struct Node<P: Platform, N> {
    /// The node in the local lock.
    local: N,
    /// Index of the part that the owner locked, or `NO_PART`.
    part: P::U32,
    /// The number of holders in a row on the owner's part, including the owner.
    holder: P::U32,
}

impl<P: Platform> Node<P, mcs::Node<P>> {
    /// A node for a static or a pool.
    pub const fn new() -> Self {
        Self { local: mcs::Node::new(), part: Atomic::ZERO, holder: Atomic::ZERO }
    }
}

impl<P: Platform, N: Default> Default for Node<P, N> {
    fn default() -> Self {
        Self { local: N::default(), part: Atomic::new(0), holder: Atomic::new(0) }
    }
}

/// See the [module](self).
#[repr(C)]
pub struct Cohort<P: Platform, G, L> {
    global: OwnLines<G>,
    parts: [OwnLines<L>; PARTS],
    platform: PhantomData<P>,
}

impl<P: Platform> CohortLock<P> {
    /// An unlocked lock, in `const`.
    pub const fn new() -> Self {
        let parts = [const { OwnLines(McsLock::new()) }; PARTS];
        Self { global: OwnLines(TicketLock::new()), parts, platform: PhantomData }
    }
}

impl<P: Platform, G: Default, L: Default> Default for Cohort<P, G, L> {
    fn default() -> Self {
        let parts = array::from_fn(|_| OwnLines(L::default()));
        Self { global: OwnLines(G::default()), parts, platform: PhantomData }
    }
}

// SAFETY: by invariant 1 one thread at a time holds it: the global lock belongs to one part, and
// the part's local lock to one thread. The local lock orders the critical sections within a part,
// and the global lock those of different parts.
unsafe impl<P, G, L> RawLock for Cohort<P, G, L>
where
    P: Topology + Settings,
    G: ThreadOblivious,
    L: CohortDetecting,
{
    type Node = Node<P, L::Node>;

    #[inline]
    unsafe fn lock(&self, node: &Self::Node) {
        let index = part_here::<P>();
        node.part.store(index, Relaxed);
        // SAFETY: the caller owns the node from here to `unlock`.
        let mut holder = unsafe { self.parts[index as usize].0.lock_receiving(&node.local) };
        if holder == 0 {
            // SAFETY: the node is (), which any number of acquisitions may share.
            unsafe { self.global.0.lock(&()) };
            holder = 1;
        }
        node.holder.store(holder, Relaxed);
    }

    #[inline]
    unsafe fn unlock(&self, node: &Self::Node) {
        let index = node.part.load(Relaxed);
        if index == NO_PART {
            // SAFETY: acquired by `try_lock`.
            return unsafe { self.global.0.unlock(&()) };
        }
        let local = &self.parts[index as usize].0;
        // SAFETY: we hold the local lock with this node.
        if !unsafe { local.is_alone(&node.local) } {
            let holder = node.holder.load(Relaxed);
            if u64::from(holder) <= P::setting(Setting::CohortLocalPassLimit) {
                P::count(LockEvent::LocalPass);
                // SAFETY: as above, and a thread waits.
                return unsafe { local.unlock_leaving(&node.local, (holder + 1).min(WORD_MAX)) };
            }
            P::count(LockEvent::PassLimit);
        }
        // SAFETY: the part holds the global lock. Its acquisition happens before this, by way of
        // the local lock, which we hold.
        unsafe {
            self.global.0.unlock(&());
            local.unlock(&node.local);
        }
    }
}

// SAFETY: as above; the caller holds the global lock, and no part does.
unsafe impl<P, G, L> RawTryLock for Cohort<P, G, L>
where
    P: Topology + Settings,
    G: ThreadOblivious,
    L: CohortDetecting,
{
    #[inline]
    unsafe fn try_lock(&self, node: &Self::Node) -> bool {
        // SAFETY: the node is ().
        let taken = unsafe { self.global.0.try_lock(&()) };
        if taken {
            node.part.store(NO_PART, Relaxed);
        }
        taken
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.global.0.is_locked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU32;

    use crate::testing::{NUMA_NODE, OneThread, set};

    type Lock = CohortLock<OneThread>;

    const _: () = assert!(size_of::<Lock>() == 128 * (1 + PARTS));
    const _: () = assert!(size_of::<Node<OneThread, mcs::Node<OneThread>>>() == 2 * size_of::<usize>() + 8);

    /// A local lock with simulated waiters.
    #[derive(Default)]
    struct Local {
        held: AtomicU32,
        waiters: AtomicU32,
        word: AtomicU32,
    }

    // SAFETY: used by one thread, which never waits.
    unsafe impl RawLock for Local {
        type Node = ();
        unsafe fn lock(&self, _node: &()) {
            assert_eq!(self.held.swap(1, Relaxed), 0);
        }
        unsafe fn unlock(&self, _node: &()) {
            assert_eq!(self.held.swap(0, Relaxed), 1);
        }
    }

    // SAFETY: as above.
    unsafe impl CohortDetecting for Local {
        unsafe fn lock_receiving(&self, _node: &()) -> u32 {
            assert_eq!(self.held.swap(1, Relaxed), 0);
            self.word.swap(0, Relaxed)
        }
        unsafe fn is_alone(&self, _node: &()) -> bool {
            self.waiters.load(Relaxed) == 0
        }
        unsafe fn unlock_leaving(&self, _node: &(), word: u32) {
            assert_eq!(self.held.swap(0, Relaxed), 1);
            self.word.store(word, Relaxed);
        }
    }

    #[test]
    fn the_part_is_the_one_that_was_locked() {
        let (lock, node) = (Lock::new(), Node::new());
        for (numa_node, part) in [(0, 0), (3, 3), (PARTS as u32 + 1, 1)] {
            NUMA_NODE.set(numa_node);
            // SAFETY: one thread, and unlock follows lock.
            unsafe { lock.lock(&node) };
            assert!(lock.is_locked() && lock.parts[part].0.is_locked());
            NUMA_NODE.set(numa_node + 1);
            // SAFETY: as above.
            unsafe { lock.unlock(&node) };
            assert!(!lock.is_locked() && !lock.parts[part].0.is_locked());
        }
    }

    /// Six critical sections in a row, with waiters during the first five: whether the global lock
    /// was free after each of them.
    fn released<G: ThreadOblivious>(limit: u64) -> [bool; 6] {
        set(Setting::CohortLocalPassLimit, limit);
        let (lock, node) = (Cohort::<OneThread, G, Local>::default(), Node::default());
        [5, 4, 3, 2, 1, 0].map(|waiters| {
            lock.parts[0].0.waiters.store(waiters, Relaxed);
            // SAFETY: one thread, and unlock follows lock.
            unsafe {
                lock.lock(&node);
                assert!(lock.is_locked());
                lock.unlock(&node);
            }
            !lock.is_locked()
        })
    }

    #[test]
    fn the_lock_stays_on_its_numa_node_up_to_the_limit_and_while_a_thread_waits() {
        let (stays, leaves) = (false, true);
        for (limit, expected) in [
            (0, [leaves; 6]),
            (1, [stays, leaves, stays, leaves, stays, leaves]),
            (2, [stays, stays, leaves, stays, stays, leaves]),
            (9, [stays, stays, stays, stays, stays, leaves]),
        ] {
            assert_eq!(released::<TicketLock<OneThread>>(limit), expected, "limit {limit}");
            assert_eq!(released::<TtasLock<OneThread>>(limit), expected, "limit {limit}");
            assert_eq!(released::<TasLock<OneThread>>(limit), expected, "limit {limit}");
        }
    }

    #[test]
    fn words_are_counted_up_to_the_greatest_whatever_the_limit() {
        set(Setting::CohortLocalPassLimit, u64::MAX);
        let lock = Cohort::<OneThread, TicketLock<OneThread>, Local>::default();
        let node = Node::default();
        let part = &lock.parts[0].0;
        part.waiters.store(1, Relaxed);
        for (holder, left) in [(1, 2), (WORD_MAX - 1, WORD_MAX), (WORD_MAX, WORD_MAX)] {
            part.word.store(holder, Relaxed);
            // SAFETY: one thread, and unlock follows lock.
            unsafe {
                lock.lock(&node);
                lock.unlock(&node);
            }
            assert_eq!(part.word.load(Relaxed), left);
        }
    }

    #[test]
    fn try_lock_goes_past_the_parts() {
        let (lock, node, other) = (Lock::new(), Node::new(), Node::new());
        // SAFETY: one thread, and unlock follows each success.
        unsafe {
            assert!(lock.try_lock(&node));
            assert!(lock.is_locked() && !lock.parts[0].0.is_locked());
            assert!(!lock.try_lock(&other));
            lock.unlock(&node);
            assert!(!lock.is_locked());
            lock.lock(&node);
            assert!(!lock.try_lock(&other));
            lock.unlock(&node);
            assert!(!lock.is_locked());
        }
    }
}
