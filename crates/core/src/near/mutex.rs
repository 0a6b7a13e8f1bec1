//! Mutex that is released by a plain store: the lock for programs.
//!
//! ```text
//! word      0 free | 1 held                                        the whole lock
//! count     of this mutex' waiters, and of their wake requests     in the chain's filter
//! queue     the mutex' waiters in the chain, in the order of their coming; records on their stacks
//!
//!  0 -> 1   `take`: the thread that swaps 0 out holds the mutex
//!  1 -> 0   `free`: its holder
//!  1 -> 1   a hand-over: the mutex changes hands, and the word does not change
//! ```
//! A [chain](crate::parking::chain) is a place in the platform's table, found by the lock's
//! address. A *wake request* tells the next release that it has to go to the chain.
//!
//! **A waiter.** A newcomer looks at the word for some pauses, yields its processor a few times,
//! and then joins the queue. *The first in the queue* looks at the word, ever less often, for
//! `PATIENCE_NS`. If the mutex was released meanwhile, by the same thread again and again, the
//! first looks closely for `GAP_PATIENCE_NS`, to find out whether that thread leaves a gap. If it
//! does not, the mutex is *monopolised*: looking does not help, and the first parks until `TURN_NS`
//! after it became first. A thread that becomes first of a monopolised mutex looks closely at once.
//! After that, or else at once, the first makes a wake request, looks for `PATIENCE_NS` again, and
//! parks. *All others* park at once. The first leaves the queue when it gets the mutex, and makes
//! the next waiter first.
//!
//! Newcomers to a monopolised mutex look too, but do not yield. Waiters in the queue never yield: a
//! thread that yields counts as awake, and would be handed the mutex although another program has
//! its processor. A thread that finds the mutex free, while one thread may take it again at once,
//! looks whether it stays free before it takes it. When the first gets the mutex, or is dequeued,
//! the next waiter of the NUMA node from which it came to the queue is preferred to those before
//! it, for `NODE_TURN_NS`. So the few threads that are awake and exchange the mutex come to be on
//! one node. Nodes do not matter while the mutex is monopolised.
//!
//! **A release.** It reads the mutex' count in the chain's filter. If the count is 0, the release
//! stores 0 to the word, does the light side of the asymmetric fence, and reads the count again:
//! there is no read-modify-write. If there are waiters it does the same, and every 8 us or so
//! (`hints`) it looks at the chain. If there are wake requests it looks at the chain at once. There
//! it hands the mutex to the first in the queue, if that has made a request and is awake, or is
//! due. It wakes a first that is parked, and dequeues it, so that the next release wakes the next
//! waiter; those that were woken compete with newcomers. It does not dequeue the first if the mutex
//! is monopolised, where competing does not help, or if it has done so before. The first is *due*
//! when it has been first for `DUE_NS`, or `MONOPOLISED_DUE_NS`, and may have no processor.
//!
//! 1. Only a thread that swaps 0 out of the word, or is handed the mutex by its holder, holds it.
//! 2. The first in the queue is in one of these states. It is awake, or is parked until some
//!    moment, and will look at the word before it parks without a limit. Or it holds the mutex, and
//!    will leave the queue. Or it has made a wake request. Only the first needs any of this: the
//!    others need no fence, and a release need not know of them. So they may be put into the queue
//!    while they are parked, as a condition variable does.
//! 3. A wake request is raised and lowered under the chain's lock, and noted on its waiter.
//!
//! **Why no wake-up is lost.** Let the first in the queue be parked. It was awake when it became
//! first, or it was not.
//!
//! *It was awake.* It has made a wake request, passed the heavy side of the fence, and then found
//! the mutex held by a thread H. The release of H stores 0, passes the light side, and reads the
//! count. By the contract of the fence, either the first has seen that 0, or the release sees the
//! request. The first has not seen the 0. So the release goes to the chain. Any request in the
//! count sends it there, and this one stays until the waiter has been woken. A first that may not
//! pass the heavy side yet, because it was passed a moment ago, parks until it may, and looks
//! before each time that it parks.
//!
//! *It was parked*, and a thread that held the mutex made it first. That thread raised the request
//! itself. Its own release sees it, and so does the release of a thread that it hands the mutex to.
//!
//! *It was parked*, and a release made it first, which dequeued the one before it. That release
//! raised the request of the new first before it lowered the other's. So a release that had to see
//! the other's sees this one. The dequeued waiter is awake. It takes the mutex, or finds it held by
//! a thread whose release is one of those, because the waiter has passed the fence. If it has not
//! passed the fence, because it was parked until some moment, then the new first is woken too.
//! ("Had to see": a late release may dequeue a waiter without having held the mutex.)
//!
//! A release that finds requests when it begins stores 0 under the chain's lock. A waiter that
//! makes a request later takes that lock later, and sees the 0.
//!
//! **Nothing of the mutex is read once it is free.** The requests are in a table that is never
//! freed, and of the mutex a release needs the address alone. (A swap as the last access would do
//! as well, at the price of a second atomic instruction: 9.5 ns a pair in place of 4.6, as
//! docs/benchmark.md has it of the mutexes with two.) So a thread that finds the mutex free may
//! free its memory, also where no borrow keeps the mutex alive. A late release may come to waiters
//! of a new lock at the same address. It wakes a waiter for no reason then, which that waiter
//! tolerates: it may have to join the queue again. The price is that requests of one lock make
//! releases of others with the same count look there, too.
//!
//! **What it costs.** Uncontended, a swap and a store. Contended, one membarrier each time that the
//! first in the queue is about to park, not for each waiter that parks, and as a rule fewer than
//! 1000 a second for a chain, since it interrupts all threads of the process that run. While the
//! first looks, which is most of the time, releases stay plain stores. Where the platform has no
//! membarrier its light fence is an ordinary one, and a release costs as much as an atomic one.
//!
//! **What a monopolised mutex costs.** The thread that has it takes it again and again, from its
//! own cache, until its turn is over. One other thread is awake for a part of that time, beside
//! newcomers, which look for a microsecond. With two threads that is faster than to exchange the
//! mutex at each release, and with many each has a turn, in the order of their coming. With
//! `TURN_NS` of 100 us a turn takes 0.15 to 0.27 ms, because the operating system lets timers be
//! 0.05 ms late, and an idle processor takes its time to wake up; then the first in the queue is
//! due.
//!
//! Fairness: newcomers take the mutex as long as the first in the queue has made no request; those
//! that come to a monopolised mutex take it only if it stays free. A first that is awake is given
//! the mutex at the first release that sees its request, `PATIENCE_NS` and up to twice
//! `GAP_PATIENCE_NS` after it began to look (it begins again when it is woken in the queue), or
//! `TURN_NS` after it became first of a monopolised mutex. At most one section of another thread is
//! in between, that of a release that has missed the request. A first that has no processor, or is
//! parked, is given the mutex by the first release that looks at the chain after `DUE_NS`, or
//! `MONOPOLISED_DUE_NS`: some us later, or 4096 releases if sections have just grown long. The
//! queue is first come, first served, with two exceptions. Waiters of the NUMA node of the last
//! first are preferred to the one that is next for `NODE_TURN_NS`, and after that those of up to 32
//! that were moved before it together and are still there; this may happen again to the one behind
//! it, when the node changes. And a waiter that was dequeued, and competed without success, joins
//! the queue again at its end, once. [`unlock_fair`](NearMutex::unlock_fair) hands over to the
//! first in the queue at once.
//!
//! Source: own. The fence: Dice, Huang, Yang, "Asymmetric Dekker synchronization", 2001; the bound
//! on barging: WebKit's `WTF::Lock` and parking_lot (0.5 ms); that waiters beyond the first be kept
//! off the lock: Dice, "Malthusian locks", EuroSys 2017. Turns: the lock cohorts of Dice, Marathe
//! and Shavit, PPoPP 2012, with a thread in the place of a NUMA node. That waiters of one node be
//! moved together, by the thread that leaves: Kashyap et al., "Scalable and practical locking with
//! shuffling", SOSP 2019.

pub(super) mod beside;
mod filter;
mod hints;
mod queue;
mod waiting;

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use self::beside::Beside;
use self::filter::Count;
use self::hints::{Hints, Holders};
use self::queue::WaitQueue;
use super::{Near, NearPlatform};
use crate::parking::chain::Chains;
use crate::parking::{GaveUp, Limit, RawTimedLock, Waiter, WakeList};
use crate::platform::{Atomic, Platform};
use crate::raw::{RawLock, RawTryLock};

const FREE: u32 = 0;
const HELD: u32 = 1;

/// How long a waiter is first in the queue for a monopolised mutex until a release hands the mutex
/// over although the waiter is parked or has no processor, in ns: longer than most take to wake up
/// when their turn has come. The processor that it waits for is the holder's, who gives it up at
/// the next lock. At 0 the mutex is handed from one parked waiter to the next; at a second a thread
/// that finds no processor may wait so long.
const MONOPOLISED_DUE_NS: u64 = 250_000;
/// The same for a mutex that is not monopolised, in ns. The mutex serves no thread until the waiter
/// runs, and all threads that want it park meanwhile: so longer, and as long as a scheduler's
/// slice. With 0.15 ms, 64 threads that think for 5 us between sections of 1 us do 0.85 of the
/// work.
const DUE_NS: u64 = 2_000_000;
/// For how long waiters of the NUMA node from which the last first in the queue came are preferred
/// to the one that is next, in ns. At 0 the queue is first come, first served; at a second a node
/// may wait so long.
const NODE_TURN_NS: u64 = 1_000_000;

/// Whether a release hands the mutex over to the first in the queue, whatever that is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    /// Only if it is its turn.
    Anybody,
    /// In any case.
    First,
}

/// See the [module](self). 4 bytes natively; all zero: unlocked.
#[repr(transparent)]
pub struct NearMutex<P: Platform> {
    word: P::U32,
}

impl<P: Platform> NearMutex<P> {
    /// An unlocked mutex, in `const`.
    pub const fn new() -> Self {
        Self { word: Atomic::ZERO }
    }

    /// 0 -> 1.
    #[inline(always)]
    fn take(&self) -> bool {
        // Ordering: Acquire, pairs with the Release in `free`: the last section happens before
        // ours.
        self.word.swap(HELD, Acquire) == FREE
    }

    /// The same, if it looks free.
    #[inline(always)]
    fn take_if_free(&self) -> bool {
        self.word.load(Relaxed) == FREE && self.take()
    }

    /// 1 -> 0. The last that is done to the word.
    #[inline(always)]
    fn free(&self) {
        // Ordering: Release, pairs with the Acquire in `take`: our section happens before the next.
        self.word.store(FREE, Release);
    }
}

impl<P: Platform> Default for NearMutex<P> {
    fn default() -> Self {
        Self { word: Atomic::new(FREE) }
    }
}

impl<P: NearPlatform> NearMutex<P> {
    /// What the chain of the mutex at this address has beside its queues.
    #[inline(always)]
    fn beside<'a>(lock: *const Self) -> &'a Beside<P> {
        let chain = <P as Chains<Near>>::chain(lock.cast());
        // SAFETY: valid as long as the platform instance, which outlives its threads.
        unsafe { &*chain }.beside()
    }

    /// The hints of its chain.
    #[inline(always)]
    fn hints<'a>(lock: *const Self) -> &'a Hints<P> {
        &Self::beside(lock).hints
    }

    /// The count of the mutex at this address, in its chain's filter.
    #[inline(always)]
    fn count<'a>(lock: *const Self) -> &'a Count<P> {
        Self::beside(lock).filter.at(P::place_in_chain(lock.cast()))
    }

    /// Notes on a fresh waiter where its thread is, for [`requeue`](Self::requeue).
    pub(super) fn note_node(waiter: &Waiter<P>) {
        WaitQueue::note_node(waiter, P::numa_node());
    }

    /// Puts waiters at the end of the queue, in their order. Wakes the one that becomes first by
    /// that, if one does. Only the address of the mutex is used.
    ///
    /// Safety: they are in no queue, and go to
    /// [`lock_when_requeued`](Self::lock_when_requeued).
    pub(super) unsafe fn requeue(lock: *const Self, waiters: WakeList<P>) {
        // SAFETY: the caller's.
        unsafe { WaitQueue::of(lock).adopt(waiters) };
    }

    /// A release that the chain must hear of.
    #[cold]
    #[inline(never)]
    fn unlock_at_chain(&self, to: To) {
        P::in_slow_path(|| {
            let queue = WaitQueue::of(self);
            if to == To::Anybody {
                queue.looked();
            }
            let holders = queue.holders();
            match queue.first() {
                Some(first) if to == To::First || WaitQueue::is_its_turn(first, holders) => {
                    let first = ptr::from_ref(first);
                    // SAFETY: the first in the queue; the caller holds the mutex.
                    unsafe { queue.hand_over(first, holders) };
                }
                Some(_) if holders == Holders::One => {
                    // While the mutex is held: free for so long, it would not seem monopolised. The
                    // waiter that is woken has no turn yet.
                    queue.wake_first(holders);
                    self.unlock_beside_chain(Self::count(self));
                }
                // Under the chain's lock: a thread that makes a request later sees that it is free.
                Some(_) => {
                    self.free();
                    queue.wake_first(holders);
                }
                None => self.free(),
            }
        });
    }

    /// After a release that a wake request has come too late for, or just in time. Of the mutex
    /// only the address is left.
    #[cold]
    #[inline(never)]
    fn answer_request(lock: *const Self) {
        P::in_slow_path(|| {
            let queue = WaitQueue::of(lock);
            let holders = queue.holders();
            queue.wake_first(holders);
        });
    }

    /// A release that the chain need not hear of, as far as it is known.
    #[inline(always)]
    fn unlock_beside_chain(&self, count: &Count<P>) {
        let lock = ptr::from_ref(self);
        self.free();
        // Dekker's pattern, with `take_as_first`: the store before it, the look at the requests
        // after it.
        P::light();
        if count.read().is_requested() {
            Self::answer_request(lock);
        }
    }

    /// Releases the mutex, and hands it to the first in the queue if there is one.
    ///
    /// With a multiple of 1024 waiters the count in the chain's filter may be 0 until the first of
    /// them makes a wake request, 20 us after it became first. Until then this releases as `unlock`
    /// does.
    ///
    /// # Safety
    ///
    /// As [`RawLock::unlock`].
    #[inline]
    pub unsafe fn unlock_fair(&self) {
        let count = Self::count(self);
        let counted = count.read();
        if counted.has_waiters() || counted.is_requested() {
            self.unlock_at_chain(To::First);
        } else {
            self.unlock_beside_chain(count);
        }
    }
}

// SAFETY: invariant 1; Release and Acquire on the word order the sections, or the grant does.
unsafe impl<P: NearPlatform> RawLock for NearMutex<P> {
    type Node = ();

    #[inline]
    unsafe fn lock(&self, _node: &()) {
        if !self.take() {
            // It does not end without the mutex.
            _ = self.lock_slow(&Limit::NONE);
        }
    }

    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        let count = Self::count(self);
        let counted = count.read();
        let is_time = || counted.has_waiters() && Self::hints(self).is_time_to_look();
        if counted.is_requested() || is_time() {
            self.unlock_at_chain(To::Anybody);
        } else {
            self.unlock_beside_chain(count);
        }
    }
}

// SAFETY: as above.
unsafe impl<P: NearPlatform> RawTryLock for NearMutex<P> {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        self.take_if_free()
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) != FREE
    }
}

// SAFETY: a waiter that gives up is in no queue any more, and does not have the mutex.
unsafe impl<P: NearPlatform> RawTimedLock for NearMutex<P> {
    type Platform = P;

    #[inline]
    unsafe fn lock_within(&self, _node: &(), limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        if self.take() { Ok(()) } else { self.lock_slow(limit) }
    }
}

#[cfg(test)]
mod tests;
