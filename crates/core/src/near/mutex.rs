//! Mutex that is released by a plain store: the lock for programs.
//!
//! Most mutexes whose waiters sleep need an atomic read-modify-write to unlock, because the release
//! must learn whether a thread sleeps. Here a release only stores 0 to the word. In return, a
//! waiter that is about to sleep passes the heavy side of an asymmetric fence. This is a system
//! call (membarrier), which has each running thread of the process pass a fence. A release passes
//! the light side, which takes no instruction where there is membarrier. Before and after that it
//! reads one word of a table. Without contention a lock and unlock take 4.6 ns on an AMD EPYC (Zen
//! 5). The mutexes with two read-modify-writes take 9.5 ns and more there (`nearlock bench`,
//! docs/guide/benchmark.md).
//!
//! ```text
//! word   0          free
//!        otherwise  held; the [`Mark`] of the holder: its number and processor, as far as it has
//!                   noted them. The word does not say whether threads wait
//!        open       held by a reader of a [reader-writer lock](super::rwlock), bit 0 is 0
//!
//!  0 -> mark          `take`: the thread that exchanges 0 for its mark holds the mutex
//!  * -> 0             `free`: its holder
//!  * -> anonymous     the holder is about to hand the mutex over, or another thread may release it
//!  anonymous -> mark  `note_grant`: the thread to which it was handed over
//!  0 -> open, open -> mark
//!                     `mutex/opening.rs`
//! ```
//! Only its holder changes a word that is not 0, or a thread that takes an open mutex over from it.
//! So a thread whose own number is in the word holds the mutex.
//!
//! Everything about waiters is elsewhere:
//!
//! - The *chain* of a mutex is an entry of the platform's table of [chains](crate::parking::chain).
//!   It is found by the mutex's address. A release *visits* the chain if it locks it.
//! - The *queue* of waiters is in the chain (`mutex/queue.rs`). A release *dequeues* a waiter if it
//!   takes the waiter out of the queue to compete with newcomers for the mutex.
//! - The *attention word* of the chain says whether a first in a queue of the chain needs that
//!   releases look after it ([`attention`](super::attention)). It also says whether the chain is
//!   *strong*: then releases pass a strong fence. It is *quiet* if it says neither of these, but
//!   says that the light side of the fence costs nothing. The words are in a table of their own.
//! - The *filter* of the chain counts waiters and wake requests, and tells the mutexes of the chain
//!   apart (`mutex/filter.rs`). By a *wake request* a waiter asks the next release to visit the
//!   chain.
//! - The *hints* of the chain are about the threads that release (`mutex/hints.rs`). A mutex is
//!   *monopolised* if one thread releases it and takes it again at once, over and over. Then each
//!   thread has a *turn* of many critical sections. The turn of the first in the queue comes when
//!   it has been first for `TURN_NS` (`mutex/waiting.rs`).
//!
//! A waiter is parked *with an alarm* if it has set a time at which it wakes up by itself
//! (`park_until`). A time limit of the caller does not count as an alarm. A waiter *rests* if it is
//! parked with an alarm until its turn, and releases do not look after it meanwhile. A first that
//! has just been told so may also rest, until its thread has woken up. A waiter may
//! give up in any of these states:
//!
//! ```text
//!  lock       tries to take the mutex
//!     |  finds the mutex free --------------------------------------------------------> holder
//!     v  finds it held
//!  newcomer   spins, then yields
//!     |  finds the mutex free, and takes it ------------------------------------------> holder
//!     v  has not taken it: joins the queue (as "first" if the queue is empty, or as "requested"
//!        if spinning is futile)
//!  behind     parked
//!     |  becomes first, and a wake request is made for it ----------------------------> asleep
//!     v  becomes first, and is told so
//!  first      spins; if the mutex is monopolised, it then rests until its turn
//!     |  finds the mutex free and takes it, or is handed it --------------------------> holder
//!     v  has not got it: makes a wake request
//!  requested  spins, and again if it is woken meanwhile; parks with an alarm, unless the chain is
//!             strong or spinning is futile
//!     |  finds the mutex free, or is handed it ---------------------------------------> holder
//!     |  is woken while it is parked, and stays in the queue -------------------------> first
//!     v  passes the heavy side, or a strong fence in a strong chain; finds the mutex held
//!  asleep     parked without an alarm
//!     |  is handed the mutex ---------------------------------------------------------> holder
//!     |  is woken, and stays in the queue --------------------------------------------> first
//!     v  is woken, and is dequeued
//!  dequeued   spins
//!     |  finds the mutex free --------------------------------------------------------> holder
//!     v  finds it held: joins the queue again, at its end
//!  behind, or first if the queue is empty
//! ```
//! A release that wakes a parked waiter leaves it in the queue in three cases (`mutex/queue.rs`).
//! Otherwise it dequeues the waiter. In both cases it withdraws the wake request.
//!
//! 1. Only a thread that exchanges 0 for its mark, or is handed the mutex by its holder, holds it.
//! 2. The first in the queue is in at least one of four states. (a) It is awake. (b) It is parked
//!    with an alarm. (c) It holds the mutex, and will leave the queue. (d) It has made a wake
//!    request. In states (a) and (b) it reads the word before it parks without an alarm. The
//!    waiters behind the first need none of this. They pass no fence, and a release need not know
//!    of them. So a condition variable may put waiters into the queue while they are parked.
//! 3. A wake request is raised and lowered under the chain's lock, and noted on its waiter.
//!
//! **No wake-up is lost** in any case in which the first in the queue is parked. (`cargo test -p
//! nearlock-model` checks this. With one side of the fence left out, it finds a thread that sleeps
//! for ever: `crates/model/tests/fences.rs`.)
//!
//! 1. *It parked without an alarm.* It had made a request, passed the heavy side of the fence, and
//!    then found the mutex held by a thread H. The release of H stores 0, passes the light side,
//!    and reads the attention word and the count. By the contract of the fence, the waiter saw the
//!    0, or the release sees what the waiter did before. A waiter that rests ends that when it
//!    makes its request. So the attention word was raised before the request was made. The waiter
//!    did not see the 0. The request stays in the count until a release has woken the waiter, or
//!    has handed it the mutex. The waiter is in the queue as long. Until then each release visits
//!    the chain. In a strong chain, the waiter passed a strong fence. `attention.rs` has the reason
//!    why the release sees the request then, too.
//! 2. *It parked with an alarm*: it rests, or parked for `ALARM_NS` before it passes the heavy
//!    side. It reads the word before it parks without an alarm. It stays in the queue when it is
//!    woken.
//! 3. *The holder made it first while it was parked.* The holder raised the request itself. Its own
//!    release sees the request, and so does that of a thread to which it hands the mutex.
//! 4. *A release dequeued a waiter D, and so made a parked waiter F first.* It raised F's request
//!    before it lowered D's. So each release that had to see D's request sees F's. D is awake, and
//!    learns by a grant that it was dequeued. The grant comes after F's request was raised. If D
//!    takes the mutex, D's own release sees F's request. D had parked without an alarm (cases
//!    1, 3 and 4). So if D finds the mutex held by a thread H, the release of H had to see D's
//!    request. (The release that dequeued D may be late: it may have freed the mutex before it
//!    locked the chain. Then another thread may hold the mutex.)
//! 5. *It became first in another way:* a waiter gave up, or a condition variable put it into an
//!    empty queue. Or a monopolised mutex was handed over to the waiter before it. It is woken, and
//!    reads the word. A holder that notifies the condition variable raises the request instead, as
//!    in case 3. A dequeued waiter that gives up also wakes a first that has made a request.
//! 6. *It made its request while a release was on its way to the chain.* If the waiter locked the
//!    chain first, the release finds the request there. If the release locked the chain first, it
//!    stores 0 before it unlocks the chain, and the waiter sees the 0. At a monopolised mutex the
//!    release unlocks the chain first. Then it stores 0, and reads the count again, as in case 1.
//!
//! **Constants.** The documentation of each says by what reason it has its value. Few values are
//! measured against others, and the documentation says which. `mutex/waiting.rs` lists the commands
//! that measure the mutex with the present values. **Cost**: `mutex/hints.rs` (fences),
//! `mutex/waiting.rs` (turns).
//! Release, and fairness: newcomers overtake the queue for a bounded time (`mutex/releasing.rs`).
//! Source: own. The fence: Dice, Huang, Yang, "Asymmetric Dekker synchronization", 2001.

pub(super) mod beside;
mod diagnosis;
mod filter;
mod hints;
mod opening;
mod queue;
mod releasing;
mod spinning;
mod waiting;

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

pub use self::diagnosis::{Diagnosis, Note, QueueState, SHOWN, WaiterState};
pub use self::hints::Visits;

use self::beside::Beside;
use self::filter::Count;
use self::hints::{Hints, HolderPlace};
use self::queue::WaitQueue;
use self::releasing::To;
pub(in crate::near) use self::spinning::MONOPOLISED_NS;
pub(in crate::near) use self::waiting::{NEWCOMERS_PER_PROBE, Purpose};
use super::attention::Attention;
use super::{Near, NearPlatform};
use crate::parking::chain::{Chains, TAKEN_OUT};
use crate::parking::{GaveUp, Limit, RawTimedLock, Waiter, WakeList};
use crate::platform::{Atomic, Platform};
use crate::raw::{RawLock, RawTryLock};
use crate::schedule::{Mark, ThreadId};

const FREE: u32 = 0;

/// How long a waiter is first in the queue for a monopolised mutex until a release hands over to it
/// in any case, in ns, unless it rests. The waiter may then be parked, or have no processor.
/// `TURN_NS` is 0.2 ms of it, and Linux lets timers be 0.05 ms late. The other 0.1 ms were chosen
/// to be longer than most waiters take to wake up. A waiter without a processor usually waits for
/// the holder's processor. The holder gives it up when it has to wait for the mutex itself. With
/// 0.1 ms, and 0.05 ms for `TURN_NS`, much throughput is lost, because turns go to waiters that are
/// about to wake up (tried: docs/internals/tuning-mutex.md). At 0 the mutex is handed from one
/// parked waiter to the next. At a second, a thread that gets no processor may wait for a second.
const MONOPOLISED_DUE_NS: u64 = 350_000;
/// The same for a mutex that is not monopolised, in ns. After such a hand-over the mutex serves no
/// thread until the waiter runs, and all threads that want it park. So the time is longer. It was
/// chosen to be about a time slice of the scheduler. With 0.15 ms, threads that outnumber the
/// processors do less work (tried: docs/internals/tuning-mutex.md). At 0 a parked first is handed
/// the mutex at each visit. At a second, a thread that gets no processor may wait for a second.
const DUE_NS: u64 = 2_000_000;
/// For how long waiters of one NUMA node overtake the waiter that is next in the queue, in ns. The
/// node is that of the waiter that was first before. The value was chosen; no comparison with
/// others is kept. A waiter leaves the queue every 20 us or so, so some tens of them leave it in
/// that time. At 0 the queue is first come, first served. docs/laboratory/simulator-mutexes.md has
/// figures of this (`nearlock simulate --set numa.mode=off`). At a second, the waiters of another
/// NUMA node may wait for a second.
const NODE_TURN_NS: u64 = 1_000_000;

/// Whether the thread that notifies a condition variable holds the mutex, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notifier {
    /// It holds the mutex, and so will release it.
    Holder,
    /// It may not hold the mutex.
    Other,
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

    /// The word, on which readers of a reader-writer lock park.
    pub(super) fn word(&self) -> &P::U32 {
        &self.word
    }

    /// The word, if the mutex is held, and not open.
    pub(super) fn closed_word(&self) -> Option<u32> {
        Mark::from_word(self.word.load(Relaxed)).filter(|mark| !mark.is_open()).map(Mark::word)
    }

    /// Whether the mutex is free. Then the last critical section happens before what follows.
    #[inline(always)]
    pub(super) fn is_free(&self) -> bool {
        // Ordering: Acquire, pairs with the Release in `free`.
        self.word.load(Acquire) == FREE
    }

    /// * -> 0. The last access to the word.
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
    /// 0 -> mark.
    #[inline(always)]
    pub(super) fn take(&self) -> bool {
        let mark = P::mark().word();
        // Ordering: Acquire, pairs with the Release in `free`: the previous critical section
        // happens before ours.
        self.word.compare_exchange(FREE, mark, Acquire, Relaxed).is_ok()
    }

    /// As [`take`](Self::take), if a read finds the mutex free.
    #[inline(always)]
    fn take_if_free(&self) -> bool {
        self.word.load(Relaxed) == FREE && self.take()
    }

    /// anonymous -> mark, after a hand-over to the caller.
    fn note_grant(&self) {
        self.word.store(Self::renew_mark().word(), Relaxed);
    }

    /// The same, if the waiter was handed the mutex. A waiter of a condition variable may have been
    /// granted its notification instead.
    fn note_grant_to(&self, waiter: &Waiter<P>) {
        if waiter.mark.load(Relaxed) != TAKEN_OUT {
            self.note_grant();
        }
    }

    /// Notes the caller's number and present processor in its mark.
    pub(super) fn renew_mark() -> Mark {
        let mark = Mark::new(P::thread_id(), P::processor());
        P::set_mark(mark);
        mark
    }

    /// The mark of the thread that holds the mutex, as far as is known; `None` if it is free.
    fn holder(&self) -> Option<Mark> {
        Mark::from_word(self.word.load(Relaxed))
    }

    /// Whether the caller holds the mutex for sure.
    pub(super) fn is_held_by_caller(&self) -> bool {
        self.holder().is_some_and(|holder| holder.is_same_thread(P::mark()))
    }

    /// Whether this thread holds the mutex for sure.
    pub(super) fn is_held_by(&self, thread: ThreadId) -> bool {
        self.holder().is_some_and(|holder| holder.is_same_thread(Mark::new(thread, None)))
    }

    /// Where the holder was when it last noted that, for the caller, whose mark this is.
    fn place_of_holder(&self, mark: Mark) -> HolderPlace {
        Self::place_in(self.word.load(Relaxed), mark)
    }

    /// The same, if this is the word.
    fn place_in(word: u32, mark: Mark) -> HolderPlace {
        match Mark::from_word(word) {
            Some(holder) if holder.is_same_processor(mark) => HolderPlace::Here,
            Some(holder) if holder.has_processor() => HolderPlace::Elsewhere,
            _ => HolderPlace::Unknown,
        }
    }

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

    /// The attention of the mutex at this address.
    #[inline(always)]
    fn attention<'a>(lock: *const Self) -> Attention<'a, P> {
        Attention::of(lock.cast())
    }

    /// Notes the caller's NUMA node on a fresh waiter, for [`requeue`](Self::requeue).
    pub(super) fn note_node(waiter: &Waiter<P>) {
        WaitQueue::note_node(waiter, P::numa_node());
    }

    /// Puts notified waiters at the end of the queue, in their order, and lets the first of them
    /// compete ([`WaitQueue::adopt`]). Only the address of the mutex is used.
    ///
    /// Safety: the waiters are in no queue, and their threads call
    /// [`lock_when_requeued`](Self::lock_when_requeued).
    pub(super) unsafe fn requeue(lock: *const Self, waiters: WakeList<P>, notifier: Notifier) {
        // SAFETY: the caller's.
        unsafe { WaitQueue::of(lock).adopt(waiters, notifier) };
    }

    /// Releases the mutex, and hands it over to the first in the queue if there is one.
    ///
    /// If the number of waiters is a multiple of 1024, the count in the chain's filter may be 0. It
    /// is not 0 once the first in the queue has made a wake request. A first that has a processor
    /// does so at most 32 us after it became first. At a monopolised mutex it does so after
    /// `TURN_NS`, and a timer may be late. Until then this releases as `unlock` does.
    ///
    /// # Safety
    ///
    /// As [`RawLock::unlock`].
    #[inline]
    pub unsafe fn unlock_fair(&self) {
        let counted = Self::count(self).read();
        if counted.has_waiters() || counted.is_requested() {
            self.unlock_at_chain(To::First);
        } else {
            // SAFETY: the caller's.
            unsafe { self.unlock(&()) };
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
        let attention = Self::attention(self);
        let attended = attention.read();
        if attended.is_quiet() {
            self.unlock_alone(&attention);
        } else {
            self.unlock_with_attention(attended);
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
