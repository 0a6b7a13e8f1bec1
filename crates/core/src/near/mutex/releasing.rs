//! How the mutex is released, and when it is handed over. The terms are those of the
//! [mutex](super).
//!
//! **A release** reads the attention word. If that is quiet, it stores 0 to the mutex, passes the
//! light side of the fence, and reads the word again. If attention is raised, it reads the mutex's
//! count in the filter before that. It visits the chain if there are requests, and every 8 us or so
//! while threads wait. If the only firsts of the chain rest, the word may be quiet although threads
//! wait. If the chain is strong, the release passes a strong fence after it has stored 0, and reads
//! the count again.
//!
//! **A release that visits the chain** hands the mutex over if the first in the queue is awake and
//! has made a wake request. It also does so if the first is due, or if processors are short
//! (`mutex/hints.rs`). A waiter is *due* when it has been
//! first for `DUE_NS`, or for `MONOPOLISED_DUE_NS` if the mutex is monopolised. Such a waiter may
//! have no processor. Otherwise the release frees the mutex, and wakes a first that has made a
//! request and is parked. It also dequeues that waiter, so that the next release wakes the next
//! waiter. Dequeued waiters compete with newcomers. In three cases the release leaves the waiter in
//! the queue:
//!
//! - The mutex is monopolised, so that competing does not help.
//! - The waiter was dequeued before.
//! - The waiter is parked with an alarm.
//!
//! **Fairness.** A thread that calls `lock` takes the mutex if its first exchange finds it free.
//! Later, as a newcomer, it takes a free mutex too, but a monopolised one only if it stays free. So
//! newcomers overtake the queue until a release hands the mutex over to the first. When that is
//! depends on the state of the first:
//!
//! - A first that is awake gets it at the first release that sees its request. It makes the request
//!   20 to 32 us after it began to spin: after `PATIENCE_NS`, and none, one or two times
//!   `GAP_PATIENCE_NS`. (It begins again when it is woken and stays in the queue.) At a monopolised
//!   mutex it rests until `TURN_NS` after it became first. Then it makes the request, as soon as it
//!   has a processor. No release hands the mutex over before, except a fair one. At most one
//!   critical section of another thread is between request and hand-over: one whose release has
//!   missed the request.
//! - A first that does not rest, and is parked or has no processor, gets it at the first release
//!   that visits the chain after `DUE_NS`, or `MONOPOLISED_DUE_NS`. Such a visit comes within about
//!   16 us, or after at most 4096 releases if critical sections have just become longer. Until then
//!   newcomers overtake it, although it may have made a request.
//! - A first that is being woken after a hand-over, and rests meanwhile, does not get the mutex
//!   until it runs. The thread that has handed the mutex over ends that rest when its call to wake
//!   the first returns. This takes a few microseconds if that thread keeps its processor.
//! - While spinning is futile (`mutex/hints.rs`), the first makes its request at once, and parks.
//!   The next release wakes it, and takes it out of the queue to compete. If it competes without
//!   success, it joins the queue at the end. When it is first again, it gets the mutex at the first
//!   visit after `DUE_NS`. So with many waiters, and one thread that takes the mutex again and
//!   again, each waiter first competes once.
//! - While processors are short (`mutex/hints.rs`), a first in any state gets the mutex at the next
//!   visit.
//! - [`unlock_fair`](NearMutex::unlock_fair) hands over to the first in any state. Its
//!   documentation names one exception.
//!
//! The queue is first come, first served, with two exceptions:
//!
//! - Waiters of one NUMA node overtake the waiter that is next, for `NODE_TURN_NS`. After that,
//!   only waiters that were already moved before it overtake it. They are at most 32. When the NUMA
//!   node changes, the same may happen to the waiter behind it.
//! - A waiter that was dequeued and competed without success joins the queue again, at its end,
//!   once.
//!
//! Source: own. The bound on overtaking (barging): WebKit's `WTF::Lock`, and parking_lot 0.12,
//! which hands over after 0.5 ms in the mean.

use core::ptr;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use super::NearMutex;
use super::hints::Holders;
use super::queue::WaitQueue;
use crate::near::NearPlatform;
use crate::near::attention::{Attended, Attention};
use crate::platform::Atomic;
use crate::schedule::Mark;

/// Whether a release hands the mutex over to the first in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    /// Only if [`WaitQueue::is_its_turn`].
    Anybody,
    /// In any case.
    First,
}

impl<P: NearPlatform> NearMutex<P> {
    /// A release that visits the chain.
    #[cold]
    #[inline(never)]
    pub(super) fn unlock_at_chain(&self, to: To) {
        P::in_slow_path(|| {
            let queue = WaitQueue::of(self);
            // Without a first that needs it, the visit is for the strength of the chain.
            if to == To::Anybody && !queue.is_watched() {
                self.free();
                return queue.calm();
            }
            if to == To::Anybody {
                queue.looked();
            }
            let holders = queue.holders();
            match queue.first() {
                Some(first) if to == To::First || queue.is_its_turn(first, holders) => {
                    let first = ptr::from_ref(first);
                    self.disown();
                    // SAFETY: the first in the queue; the caller holds the mutex.
                    unsafe { queue.hand_over(first, holders) };
                }
                Some(_) if holders == Holders::One => {
                    // The first must not be handed the mutex yet. If it is parked, it is woken
                    // while the mutex is still held. If the mutex were free for as long as that
                    // takes, it would not seem monopolised.
                    queue.wake_first(holders);
                    self.unlock_beside_chain(Self::attention(self).read());
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

    /// A release that has not found the attention word quiet. If the chain is strong, and nothing
    /// is watched, it visits the chain, which becomes weak after some such releases.
    #[cold]
    #[inline(never)]
    pub(super) fn unlock_with_attention(&self, attended: Attended) {
        if !attended.is_raised() {
            let lock = ptr::from_ref(self);
            self.free();
            return Self::pass_light(lock);
        }
        let counted = Self::count(self).read();
        let is_time = || match counted.has_waiters() {
            true => Self::hints(self).is_time_to_look(),
            false => !attended.is_watched(),
        };
        if counted.is_requested() || is_time() {
            self.unlock_at_chain(To::Anybody);
        } else {
            self.unlock_beside_chain(attended);
        }
    }

    /// A release that does not visit the chain, unless it finds a wake request at its end.
    #[inline(always)]
    fn unlock_beside_chain(&self, attended: Attended) {
        let lock = ptr::from_ref(self);
        self.free();
        // Dekker's pattern, with `take_behind_fence`: the store of 0 is before the fence, and the
        // reads of the attention and of the requests after it.
        if !attended.is_light() {
            return Self::pass_light(lock);
        }
        P::free_light();
        Self::answer_if_requested(lock, Self::attention(lock).read());
    }

    /// A release that has found the attention word quiet.
    #[inline(always)]
    pub(super) fn unlock_alone(&self, attention: &Attention<'_, P>) {
        let lock = ptr::from_ref(self);
        self.free();
        // Dekker's pattern, as above: the attention is raised before a request is made.
        P::free_light();
        let attended = attention.read();
        if !attended.is_quiet() {
            Self::answer_attention(lock, attended);
        }
    }

    /// The rest of a release that has stored 0, if the attention word does not say that the light
    /// side costs nothing.
    #[cold]
    #[inline(never)]
    fn pass_light(lock: *const Self) {
        P::light();
        let attention = Self::attention(lock);
        if P::is_light_free() {
            attention.note_light();
        }
        let attended = attention.read();
        if attended.is_raised() {
            Self::answer_attention(lock, attended);
        }
    }

    /// As [`answer_if_requested`](Self::answer_if_requested), but not inlined into releases without
    /// contention.
    #[cold]
    #[inline(never)]
    fn answer_attention(lock: *const Self, attended: Attended) {
        Self::answer_if_requested(lock, attended);
    }

    /// Looks for a wake request after the store of 0 and the light side of the fence.
    #[inline(always)]
    fn answer_if_requested(lock: *const Self, attended: Attended) {
        if attended.needs_strong_fence() {
            // Ordering: SeqCst, for Dekker's pattern, with `take_behind_strong_fence`:
            // the store of 0 is before the fence, and the read of the requests after it.
            P::fence(SeqCst);
        }
        if Self::count(lock).read().is_requested() {
            Self::answer_request(lock);
        }
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

    /// * -> anonymous, before a hand-over. Afterwards the caller does not find itself in the word.
    fn disown(&self) {
        self.word.store(Mark::ANONYMOUS.word(), Relaxed);
    }

    /// Lets any thread release the acquisition of the caller. The word names the caller no more. So
    /// a notification of a condition variable by the caller does not rely on its release.
    ///
    /// # Safety
    ///
    /// The caller holds the mutex.
    #[inline]
    pub unsafe fn let_anyone_release(&self) {
        self.disown();
    }
}
