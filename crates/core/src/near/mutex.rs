//! Mutex that is released by a plain store: the lock for programs.
//!
//! Most mutexes whose waiters sleep need an atomic read-modify-write to unlock, because the release
//! must learn whether a thread sleeps. Here a release only stores 0 to the word. In return, a
//! waiter that is about to sleep passes the heavy side of an asymmetric fence, which is a system
//! call (membarrier). Without contention a lock and unlock take 4.6 ns. In the mutexes with two
//! read-modify-writes they take 9.5 ns and more (docs/guide/benchmark.md).
//!
//! ```text
//! word   bit 0      1 held | 0 free
//!        bits 1-31  always 0: the word does not say whether threads wait
//!
//!  0 -> 1   `take`: the thread that swaps 0 out holds the mutex
//!  1 -> 0   `free`: its holder
//!  1 -> 1   a hand-over: the mutex has a new holder, and the word does not change
//! ```
//! Everything about waiters is in the mutex's [chain](crate::parking::chain), an entry of the
//! platform's table that is found by the mutex's address. It has the *queue* of waiters
//! (`mutex/queue.rs`), a *filter* that counts waiters and wake requests (`mutex/filter.rs`), and
//! *hints* about the threads that release (`mutex/hints.rs`). By a *wake request* a waiter asks
//! the next release to go to the chain. A waiter (`mutex/waiting.rs`) may give up in any state:
//!
//! ```text
//!  newcomer   spins, then yields ------------------ finds the mutex free ----------> holder
//!     v  finds it held each time: joins the queue (as "first" if the queue is empty)
//!  behind     parked -- becomes first while parked, and its request is raised -----> asleep
//!     v  becomes first, and is told so
//!  first      spins ------------------------------- finds the mutex free ----------> holder
//!     v  finds it held each time; if it is monopolised, the first parks until its turn
//!  requested  spins ------------------------------- finds it free, or is handed it -> holder
//!     v  passes the heavy side of the fence, and finds the mutex held
//!  asleep     parked without a time limit --------- is handed the mutex -----------> holder
//!     v  a release wakes it (if it was dequeued before, or the mutex is monopolised) -> first
//!  dequeued   spins ------------------------------- finds the mutex free ----------> holder
//!     v  finds it held each time: joins the queue again, at its end
//!  behind, or first
//! ```
//! **A release** reads the mutex's count in the filter. Without wake requests it stores 0, passes
//! the light side of the fence, and reads the count again. It locks the chain if there are
//! requests, and every 8 us or so while threads wait. There it hands the mutex to the first in the
//! queue, or frees the mutex and wakes a first that is parked (`mutex/queue.rs`).
//!
//! 1. Only a thread that swaps 0 out of the word, or is handed the mutex by its holder, holds it.
//! 2. The first in the queue is awake, or is parked with a time limit, and will look at the word
//!    before it parks without one. Or it holds the mutex, and will leave the queue. Or it has made
//!    a wake request. The waiters behind it need none of this, and no fence, and a release need not
//!    know of them. So a condition variable may put waiters into the queue while they are parked.
//! 3. A wake request is raised and lowered under the chain's lock, and noted on its waiter.
//!
//! **No wake-up is lost** in any case in which the first in the queue is parked. (`cargo test -p
//! nearlock-model` checks this. With one side of the fence left out, it finds a thread that sleeps
//! for ever: `crates/model/tests/fences.rs`.)
//!
//! 1. *It parked without a time limit.* It had made a request, passed the heavy side of the fence,
//!    and then found the mutex held by a thread H. The release of H stores 0, passes the light
//!    side, and reads the count. By the contract of the fence, the waiter saw the 0, or the release
//!    sees the request. The waiter did not see the 0. Any request in the count sends a release to
//!    the chain, and this one stays until the waiter has been woken.
//! 2. *It parked with a time limit*, until its turn, or until it may pass the heavy side (once in
//!    1.3 ms for all waiters of a chain). It looks at the word before it parks without a limit.
//! 3. *The holder made it first while it was parked.* The holder raised the request itself. Its own
//!    release sees the request, and so does that of a thread to which it hands the mutex.
//! 4. *A release made it first while it was parked*, and dequeued the waiter before it. The release
//!    raised the new request before it lowered the old one. So each release that had to see the old
//!    request sees the new one. The dequeued waiter is awake. It takes the mutex, or finds it held
//!    by a thread whose release had to see the old request, since the waiter had passed the fence.
//!    If it had not (case 2), the new first is woken too. (The release that dequeued the waiter may
//!    itself be late: it may have freed the mutex before.)
//! 5. *It became first because a waiter gave up, or a condition variable put it into an empty
//!    queue.* It is woken, and looks at the word. A dequeued waiter that gives up wakes a first
//!    that has made a request.
//! 6. *It made its request while a release was going to the chain.* If the waiter locked the chain
//!    first, the release finds the request there. If the release did, it stores 0 before it unlocks
//!    the chain, and the waiter sees the 0. At a monopolised mutex the release stores 0 after that,
//!    and reads the count again, as in case 1.
//!
//! **Constants.** Each has its reason in its documentation. `mutex/waiting.rs` lists the commands
//! that measure them. **Cost**: `mutex/hints.rs` (fences), `mutex/waiting.rs` (turns).
//! Fairness: newcomers overtake the queue for a bounded time; `mutex/queue.rs` has the bounds.
//! Source: own. The fence: Dice, Huang, Yang, "Asymmetric Dekker synchronization", 2001.

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

/// How long a waiter is first in the queue for a monopolised mutex until a release hands over to it
/// in any case, in ns. The waiter may then be parked, or have no processor. The time is longer than
/// most waiters take to wake up when their turn has come. A waiter without a processor waits
/// for that of the holder, which gives it up when it locks the mutex again and has to wait. At 0
/// the mutex is handed from one parked waiter to the next. At a second, a thread that gets no
/// processor may wait for a second.
const MONOPOLISED_DUE_NS: u64 = 250_000;
/// The same for a mutex that is not monopolised, in ns. After such a hand-over the mutex serves no
/// thread until the waiter runs, and all threads that want it park. So the time is longer: as long
/// as a time slice of the scheduler. With 0.15 ms, 64 threads with 5 us of think time between
/// sections of 1 us do 0.85 of the work.
const DUE_NS: u64 = 2_000_000;
/// For how long waiters of one NUMA node overtake the waiter that is next in the queue, in ns. The
/// node is that of the waiter that was first before. At 0 the queue is first come, first served. At
/// a second, the waiters of another NUMA node may wait for a second.
const NODE_TURN_NS: u64 = 1_000_000;

/// Whether a release hands the mutex over to the first in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    /// Only if it is the turn of the first.
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
        // Ordering: Acquire, pairs with the Release in `free`: the previous critical section
        // happens before ours.
        self.word.swap(HELD, Acquire) == FREE
    }

    /// As [`take`](Self::take), if the mutex looks free.
    #[inline(always)]
    fn take_if_free(&self) -> bool {
        self.word.load(Relaxed) == FREE && self.take()
    }

    /// 1 -> 0. The last access to the word.
    #[inline(always)]
    fn free(&self) {
        // Ordering: Release, pairs with the Acquire in `take`: our critical section happens before
        // the next.
        self.word.store(FREE, Release);
    }
}

impl<P: Platform> Default for NearMutex<P> {
    fn default() -> Self {
        Self { word: Atomic::new(FREE) }
    }
}

impl<P: NearPlatform> NearMutex<P> {
    /// The hints and the filter in the chain of the mutex at this address.
    #[inline(always)]
    fn beside<'a>(lock: *const Self) -> &'a Beside<P> {
        let chain = <P as Chains<Near>>::chain(lock.cast());
        // SAFETY: valid as long as the platform instance, which outlives its threads.
        unsafe { &*chain }.beside()
    }

    /// The hints of the mutex's chain.
    #[inline(always)]
    fn hints<'a>(lock: *const Self) -> &'a Hints<P> {
        &Self::beside(lock).hints
    }

    /// The count of the mutex at this address, in its chain's filter.
    #[inline(always)]
    fn count<'a>(lock: *const Self) -> &'a Count<P> {
        Self::beside(lock).filter.at(P::place_in_chain(lock.cast()))
    }

    /// Notes the caller's NUMA node on a fresh waiter, for [`requeue`](Self::requeue).
    pub(super) fn note_node(waiter: &Waiter<P>) {
        WaitQueue::note_node(waiter, P::numa_node());
    }

    /// Puts waiters at the end of the queue, in their order. If one of them becomes first, it is
    /// woken. Only the address of the mutex is used.
    ///
    /// Safety: the waiters are in no queue, and their threads call
    /// [`lock_when_requeued`](Self::lock_when_requeued).
    pub(super) unsafe fn requeue(lock: *const Self, waiters: WakeList<P>) {
        // SAFETY: the caller's.
        unsafe { WaitQueue::of(lock).adopt(waiters) };
    }

    /// A release that goes to the chain.
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
                    // The first is woken while the mutex is still held. If the mutex were free for
                    // that time, it would not seem monopolised. The first has no turn yet.
                    queue.wake_first(holders);
                    self.unlock_beside_chain(Self::count(self));
                }
                // Under the chain's lock: a waiter that makes a request later sees that the mutex
                // is free.
                Some(_) => {
                    self.free();
                    queue.wake_first(holders);
                }
                None => self.free(),
            }
        });
    }

    /// Called after a release that finds a wake request only after it has stored 0. Only the
    /// address of the mutex is used, since its memory may be gone.
    #[cold]
    #[inline(never)]
    fn answer_request(lock: *const Self) {
        P::in_slow_path(|| {
            let queue = WaitQueue::of(lock);
            let holders = queue.holders();
            queue.wake_first(holders);
        });
    }

    /// A release that does not go to the chain, unless it finds a wake request at its end.
    #[inline(always)]
    fn unlock_beside_chain(&self, count: &Count<P>) {
        let lock = ptr::from_ref(self);
        self.free();
        // Dekker's pattern, with `take_behind_fence`: the store of 0 is before the fence, and the
        // read of the requests after it.
        P::light();
        if count.read().is_requested() {
            Self::answer_request(lock);
        }
    }

    /// Releases the mutex, and hands it over to the first in the queue if there is one.
    ///
    /// If the number of waiters is a multiple of 1024, the count in the chain's filter may be 0. It
    /// is not 0 once the first in the queue has made a wake request, 20 us after it became first.
    /// Until then this releases as `unlock` does.
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

// SAFETY: invariant 1. The critical sections are ordered by Release and Acquire on the word, or by
// the grant of a hand-over.
unsafe impl<P: NearPlatform> RawLock for NearMutex<P> {
    type Node = ();

    #[inline]
    unsafe fn lock(&self, _node: &()) {
        if !self.take() {
            // Without a limit it returns only with the mutex.
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

// SAFETY: a waiter that gives up is in no queue any more, and does not hold the mutex.
unsafe impl<P: NearPlatform> RawTimedLock for NearMutex<P> {
    type Platform = P;

    #[inline]
    unsafe fn lock_within(&self, _node: &(), limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        if self.take() { Ok(()) } else { self.lock_slow(limit) }
    }
}

#[cfg(test)]
mod tests;
