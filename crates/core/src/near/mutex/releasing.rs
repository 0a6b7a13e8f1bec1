//! How the mutex is released, and when it is handed over. The terms are those of the
//! [mutex](super).
//!
//! **A release** stores 0, passes the light side of the fence, and reads the attention word. If
//! threads wait, it reads the mutex's count in the filter. It visits the chain if there are
//! requests, and every 8 us or so while threads wait. There it takes the mutex again, if that is
//! still free. It hands the mutex to the first in the queue if the first is awake and has made a
//! request, or has been first for long enough. Otherwise it frees the mutex, and wakes a first that
//! is parked and has made a request.
//!
//! A thread that has found the attention word raised is *attentive*. In its next releases it reads
//! the count, and visits the chain if needed, before it stores 0. So it holds the mutex at the
//! visit already, and no other thread takes the mutex meanwhile. It stays attentive until a release
//! finds no waiters. Its mark says so in each word that it takes, so a release reads nothing else
//! to know that.
//!
//! **A release that visits the chain** hands the mutex over if the first in the queue is awake and
//! has made a wake request. It also does so if the first is due. A waiter is *due* when it has been
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
//! **A visit after the release** accesses the mutex, which the next holder may have freed. It does
//! so only while it has the chain locked and a waiter is in the queue, or while it has taken the
//! mutex again. The thread of that waiter has not returned from `lock`, so the mutex is still
//! there. A release that finds the mutex taken by another thread asks that thread for attention.
//! So does a waiter that makes a wake request. The release of the holder then hands the mutex over,
//! if it is the turn of the first. The word may miss the bit, because its holder stores to it. Then
//! a later visit asks again.
//!
//! **Fairness.** A thread that calls `lock` takes the mutex if its first exchange finds it free.
//! Later, as a newcomer, it takes a free mutex too, but a monopolised one only if it stays free. So
//! newcomers overtake the queue until a release hands the mutex over to the first. When that is
//! depends on the state of the first:
//!
//! - A first that is awake gets it at the first release that sees its request. It makes the request
//!   20 to 32 us after it began to spin: after `PATIENCE_NS`, and none, one or two times
//!   `GAP_PATIENCE_NS`. (It begins again when it is woken and stays in the queue.) At a monopolised
//!   mutex it makes the request `TURN_NS` after it became first. As a rule at most two critical
//!   sections of other threads are between request and hand-over: one whose release has missed the
//!   request, and one of a thread that took the mutex before that release visited the chain. For a
//!   third one, a further release must miss the bit that asks for its attention: the bit must be
//!   set in the few nanoseconds between its read of the word and its store.
//! - A first that is parked, or has no processor, gets it at the first release that visits the
//!   chain after `DUE_NS`, or `MONOPOLISED_DUE_NS`. Such a visit comes within about 16 us, or after
//!   at most 4096 releases if critical sections have just become longer. Until then newcomers
//!   overtake it, although it may have made a request.
//! - While spinning is futile (`mutex/hints.rs`), the first makes its request at once. It is seldom
//!   awake at a release. So as a rule it gets the mutex when it is due, after `DUE_NS`.
//! - [`unlock_fair`](NearMutex::unlock_fair) hands over to the first in any state.
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
use core::sync::atomic::Ordering::Relaxed;

use super::filter::Counted;
use super::hints::Holders;
use super::queue::WaitQueue;
use super::{ATTENTIVE, FREE, NearMutex};
use crate::near::NearPlatform;
use crate::platform::Atomic;
use crate::schedule::Mark;

/// To which waiter a release hands the mutex over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    /// The first in the queue, if [it is its turn](WaitQueue::is_its_turn).
    Due,
    /// The first in the queue, in any case.
    First,
}

impl<P: NearPlatform> NearMutex<P> {
    /// A release that locks the chain before it frees the mutex, and may hand the mutex over.
    #[cold]
    #[inline(never)]
    pub(super) fn unlock_at_chain(&self, to: To) {
        P::in_slow_path(|| {
            let queue = WaitQueue::of(self);
            if to == To::Due {
                queue.looked();
            }
            self.unlock_in_chain(queue, to);
        });
    }

    /// The same with the chain locked.
    fn unlock_in_chain(&self, queue: WaitQueue<'_, P>, to: To) {
        let holders = queue.holders();
        match queue.first() {
            Some(first) if to == To::First || WaitQueue::is_its_turn(first, holders) => {
                let first = ptr::from_ref(first);
                self.disown();
                // SAFETY: the first in the queue; the caller holds the mutex.
                unsafe { queue.hand_over(first, holders) };
            }
            Some(_) if holders == Holders::One => {
                // The first must not be handed the mutex yet. If it is parked, it is woken while
                // the mutex is held. If the mutex were free for as long as that takes, it would
                // not seem monopolised.
                queue.wake_first(holders);
                self.free_and_answer();
            }
            // Under the chain's lock: a waiter that makes a request later sees that the mutex is
            // free.
            Some(_) => {
                self.free();
                queue.wake_first(holders);
            }
            None => self.free(),
        }
    }

    /// Frees the mutex, and then looks whether threads wait.
    #[inline(always)]
    pub(super) fn free_and_look(&self) {
        let lock = ptr::from_ref(self);
        self.free();
        // Dekker's pattern, with `take_behind_fence`: the store of 0 is before the fence, and the
        // read of the attention, which is raised with a request, after it.
        P::light();
        if Self::attention(lock).is_raised() {
            Self::look_after_waiters(lock);
        }
    }

    /// Visits the chain after a release, if there is a wake request or if it is time to. Only the
    /// address of the mutex is used, since its memory may be gone.
    #[inline(never)]
    fn look_after_waiters(lock: *const Self) {
        P::set_mark(P::mark().attentive());
        if Self::must_visit(Self::count(lock).read(), lock) {
            Self::visit(lock);
        }
    }

    /// Whether a release must visit the chain.
    #[inline(always)]
    fn must_visit(counted: Counted, lock: *const Self) -> bool {
        counted.is_requested() || counted.has_waiters() && Self::hints(lock).is_time_to_look()
    }

    /// A release that looks whether threads wait before it frees the mutex.
    #[inline(never)]
    pub(super) fn unlock_attentively(&self) {
        let counted = Self::count(self).read();
        if !counted.has_waiters() && !counted.is_requested() {
            P::set_mark(P::mark().inattentive());
            self.free_and_look();
        } else if Self::must_visit(counted, self) || !P::mark().is_attentive() {
            self.unlock_at_chain(To::Due);
        } else {
            self.free_and_answer();
        }
    }

    /// Visits the chain after a release. If threads wait, it takes the mutex again, in order to hand
    /// it over or to free it.
    #[cold]
    #[inline(never)]
    fn visit(lock: *const Self) {
        P::in_slow_path(|| {
            let queue = WaitQueue::of(lock);
            let Some(first) = queue.first() else { return queue.looked() };
            // SAFETY: the thread of the first waits for the mutex. It stays in the queue, and so
            // the mutex stays, as long as the chain is locked or the mutex is held.
            let mutex = unsafe { &*lock };
            // At once: if the mutex were free for longer, it would not seem monopolised.
            let has_taken = mutex.take();
            queue.looked();
            if has_taken {
                mutex.unlock_in_chain(queue, To::Due);
            } else if WaitQueue::is_its_turn(first, queue.holders()) {
                mutex.ask_for_attention();
            } else {
                let holders = queue.holders();
                queue.wake_first(holders);
            }
        });
    }

    /// Frees the mutex, and wakes a parked first that has made a request.
    #[inline(always)]
    fn free_and_answer(&self) {
        let lock = ptr::from_ref(self);
        self.free();
        // Dekker's pattern, as in `free_and_look`.
        P::light();
        if Self::count(lock).read().is_requested() {
            Self::answer(lock);
        }
    }

    /// Called after a release that finds a wake request only after it has stored 0. Only the
    /// address of the mutex is used, since its memory may be gone.
    #[cold]
    #[inline(never)]
    fn answer(lock: *const Self) {
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

    /// held -> held|ATTENTIVE, if the mutex is held. The holder may miss it, since it changes the
    /// word by plain stores.
    pub(super) fn ask_for_attention(&self) {
        let held = self.word.load(Relaxed);
        if held != FREE {
            _ = self.word.compare_exchange(held, held | ATTENTIVE, Relaxed, Relaxed);
        }
    }
}
