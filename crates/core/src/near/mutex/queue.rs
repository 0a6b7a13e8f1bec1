//! The queue: those of the waiters in a chain that wait for one mutex.
//!
//! ```text
//! note of a waiter   bits 12-31 since when it is first, in units of 1024 ns | 4-11 its NUMA node
//!                    3 AGAIN | 2 DEQUEUED | 1 REQUEST | 0 GRANTED
//!
//!  0 -> n               it joins the queue, on node n, behind others
//!  n -> passed|n        another has been preferred to it, which was next
//!  * -> since|n         it is first: it has come so, or the one before it has left
//!  s -> s|REQUEST       `raise`; the wake requests of the mutex' count grow by one, only here
//!  s|REQUEST -> s       `lower`: it has been woken, or leaves
//!  * -> GRANTED         a hand-over has taken it out of the queue
//!  s -> DEQUEUED        a release has taken it out of the queue, to compete; unless AGAIN, or the
//!                       mutex is monopolised
//!  DEQUEUED -> n|AGAIN  it joins the queue again
//! ```
//! AGAIN stays until the waiter leaves for good. The time when it was passed over is where the
//! other time will be. Everything here is done under the chain's lock, which a [`WaitQueue`] holds.

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use super::filter::Count;
use super::hints::{Hints, Holders, UNIT_SHIFT};
use super::{DUE_NS, MONOPOLISED_DUE_NS, NODE_TURN_NS, NearMutex};
use crate::events::LockEvent;
use crate::near::{Near, NearPlatform};
use crate::parking::chain::{Locked, Queue};
use crate::parking::{Call, Waiter, WakeList};
use crate::platform::Atomic;

const GRANTED: u32 = 1;
const REQUEST: u32 = 1 << 1;
const DEQUEUED: u32 = 1 << 2;
const AGAIN: u32 = 1 << 3;
/// NUMA nodes are told apart by as many bits, and counted from 1; 0 is none.
const NODE_SHIFT: u32 = 4;
const NODE: u32 = 255 << NODE_SHIFT;
/// In 20 bits the time wraps around after a second. A waiter that has been first for so long, or
/// passed over, seems to have just become so, and is due a moment later.
const SINCE_SHIFT: u32 = 12;
/// For how long waiters of one NUMA node are preferred to one that is next, in units of time: 1 ms.
const NODE_TURN_UNITS: u32 = (NODE_TURN_NS >> UNIT_SHIFT) as u32;
/// How many waiters are looked at for those of one NUMA node, all of them on other threads' stacks,
/// under the chain's lock. At 64 a mutex with some hundred waiters moves to another node whenever
/// none is left among the first ones.
pub(super) const PREFERRED_AMONG: usize = 256;
/// How many are preferred at once, so that the others are not looked at again for each of them. At
/// 4 looking takes a tenth of the throughput of 142 threads on the simulated skylake-sp-8s. A
/// waiter that is passed over waits for so many more when its turn has come.
pub(super) const PREFERRED: usize = 32;
const DUE_UNITS: u32 = (DUE_NS >> UNIT_SHIFT) as u32;
const MONOPOLISED_DUE_UNITS: u32 = (MONOPOLISED_DUE_NS >> UNIT_SHIFT) as u32;

/// Where a waiter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// First in the queue.
    First,
    /// Behind others, or not in the queue.
    Behind,
    /// Taken out of the queue by a release, to compete with newcomers.
    Dequeued,
}

/// The waiter was handed the mutex, and cannot give up any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Granted;

/// See the [module](self). Dropping it unlocks the chain.
#[must_use = "the chain is locked only as long as this lives"]
pub(super) struct WaitQueue<'a, P: NearPlatform>(Locked<'a, P, Near>);

impl<P: NearPlatform> WaitQueue<'_, P> {
    /// The queue of the mutex at this address, which is not followed.
    pub(super) fn of(lock: *const NearMutex<P>) -> Self {
        // SAFETY: this is the mutex' own algorithm.
        Self(unsafe { Locked::of(lock) })
    }

    /// The waiter that is first.
    pub(super) fn first(&self) -> Option<&Waiter<P>> {
        self.0.first(Queue::Exclusive)
    }

    fn is_first(&self, waiter: &Waiter<P>) -> bool {
        self.first().is_some_and(|first| ptr::eq(first, waiter))
    }

    /// Where the waiter is.
    pub(super) fn place_of(&self, waiter: &Waiter<P>) -> Place {
        match waiter.note.load(Relaxed) {
            DEQUEUED => Place::Dequeued,
            _ if self.is_first(waiter) => Place::First,
            _ => Place::Behind,
        }
    }

    /// Whether it has made a wake request. Of another thread's waiter only while the chain is
    /// locked.
    pub(super) fn has_requested(waiter: &Waiter<P>) -> bool {
        waiter.note.load(Relaxed) & REQUEST != 0
    }

    /// Notes that it is first from now on.
    fn becomes_first(waiter: &Waiter<P>) {
        let kept = waiter.note.load(Relaxed) & (NODE | AGAIN);
        waiter.note.store(Hints::<P>::now() << SINCE_SHIFT | kept, Relaxed);
    }

    /// For how long it has been first, in units of time; or since when others have been preferred
    /// to it. Of another thread's waiter only while the chain is locked.
    pub(super) fn first_for_units(first: &Waiter<P>) -> u32 {
        let since = first.note.load(Relaxed) >> SINCE_SHIFT;
        Hints::<P>::now().wrapping_sub(since) << SINCE_SHIFT >> SINCE_SHIFT
    }

    /// Notes on which NUMA node the waiter's thread is.
    pub(super) fn note_node(waiter: &Waiter<P>, node: u32) {
        let node = node % (NODE >> NODE_SHIFT) + 1;
        let kept = waiter.note.load(Relaxed) & !NODE;
        waiter.note.store(kept | node << NODE_SHIFT, Relaxed);
    }

    fn node_of(waiter: &Waiter<P>) -> u32 {
        waiter.note.load(Relaxed) & NODE
    }

    /// Which waiter is to be first, now that one of this node has left: another one of the node, if
    /// there is one near the beginning, with the next ones of the node behind it. The waiter that
    /// is next is passed over for a turn, and until those have left that were moved before it by
    /// then. Nodes do not matter while the mutex is monopolised: where the next waiter is counts
    /// for nothing beside the turn of a thread.
    fn choose_first(&self, node: u32) -> Option<&Waiter<P>> {
        let next = self.first()?;
        let was_passed = next.note.load(Relaxed) >> SINCE_SHIFT != 0;
        let is_due = was_passed && Self::first_for_units(next) >= NODE_TURN_UNITS;
        let is_near = node == 0 || Self::node_of(next) == node;
        if is_near || is_due || self.holders() == Holders::One {
            return Some(next);
        }
        let near = self.0.waiters(Queue::Exclusive).take(PREFERRED_AMONG);
        let mut last = None;
        for waiter in near.filter(|waiter| Self::node_of(waiter) == node).take(PREFERRED) {
            // SAFETY: in the queue; the last one is another.
            unsafe { self.0.move_after(Queue::Exclusive, last, waiter) };
            last = Some(waiter);
        }
        if last.is_some() && !was_passed {
            // 0 would be never: a unit earlier.
            let now = match Hints::<P>::now() << SINCE_SHIFT {
                0 => u32::MAX << SINCE_SHIFT,
                now => now,
            };
            next.note.store(next.note.load(Relaxed) | now, Relaxed);
        }
        self.first()
    }

    /// Whether a release hands the mutex over to it: it has made a request and is awake, or has
    /// been first for so long that it is due.
    pub(super) fn is_its_turn(first: &Waiter<P>, holders: Holders) -> bool {
        let due_units = match holders {
            Holders::Several => DUE_UNITS,
            Holders::One => MONOPOLISED_DUE_UNITS,
        };
        Self::has_requested(first) && !first.is_asleep() || Self::first_for_units(first) >= due_units
    }

    /// The mutex' count in the chain's filter.
    fn count(&self) -> &Count<P> {
        self.0.beside().filter.at(P::place_in_chain(self.0.address()))
    }

    /// Which threads release the mutex.
    pub(super) fn holders(&self) -> Holders {
        self.0.beside().hints.holders()
    }

    /// A release has come to the chain.
    pub(super) fn looked(&self) {
        self.0.beside().hints.looked();
    }

    /// s -> s|REQUEST. Relaxed: a thread whose request must be seen passes a fence, or releases the
    /// mutex itself.
    fn raise(&self, first: &Waiter<P>) {
        let note = first.note.load(Relaxed);
        if note & REQUEST == 0 {
            first.note.store(note | REQUEST, Relaxed);
            self.count().add_request();
        }
    }

    /// s|REQUEST -> s.
    fn lower(&self, waiter: &Waiter<P>) {
        let note = waiter.note.load(Relaxed);
        if note & REQUEST != 0 {
            waiter.note.store(note & !REQUEST, Relaxed);
            self.count().remove_request();
        }
    }

    /// Makes a wake request for the first in the queue.
    pub(super) fn request(self, first: &Waiter<P>) {
        if first.note.load(Relaxed) & GRANTED == 0 {
            self.raise(first);
        }
    }

    /// Puts the waiter at its end.
    ///
    /// Safety: the waiter is in no queue, and stays where it is until it is in none again.
    unsafe fn push(&self, waiter: &Waiter<P>) -> Place {
        let place = match self.first() {
            Some(_) => Place::Behind,
            None => {
                Self::becomes_first(waiter);
                Place::First
            }
        };
        // SAFETY: the caller's.
        unsafe { self.enqueue(waiter) };
        place
    }

    /// Puts the waiter at the end of the queue.
    ///
    /// Safety: as [`push`](Self::push).
    unsafe fn enqueue(&self, waiter: &Waiter<P>) {
        self.count().add_waiter();
        // SAFETY: the caller's.
        unsafe { self.0.push(Queue::Exclusive, waiter) };
    }

    /// Takes the waiter out of the queue.
    ///
    /// Safety: it is in the queue.
    unsafe fn dequeue(&self, waiter: *const Waiter<P>) {
        self.count().remove_waiter();
        // SAFETY: the caller's.
        unsafe { self.0.remove(Queue::Exclusive, waiter) };
    }

    /// Puts the waiter at its end, of a thread on this NUMA node.
    ///
    /// Safety: as [`push`](Self::push).
    pub(super) unsafe fn join(self, waiter: &Waiter<P>, node: u32) -> Place {
        if waiter.note.load(Relaxed) == DEQUEUED {
            waiter.note.store(AGAIN, Relaxed);
        }
        Self::note_node(waiter, node);
        // SAFETY: the caller's.
        unsafe { self.push(waiter) }
    }

    /// Puts these at its end, in their order. If one of them is first then, it is woken to look for
    /// itself.
    ///
    /// Safety: as [`push`](Self::push), of each of them.
    pub(super) unsafe fn adopt(self, mut waiters: WakeList<P>) {
        let mut call = None;
        if let Some(waiter) = waiters.pop() {
            // SAFETY: it has not been told yet what became of it, so it is alive; the rest is the
            // caller's.
            let (waiter, place) = unsafe { (&*waiter, self.push(&*waiter)) };
            match place {
                Place::First => {
                    P::count(LockEvent::CondvarWake);
                    call = waiter.wake();
                }
                Place::Behind | Place::Dequeued => P::count(LockEvent::CondvarMove),
            }
        }
        while let Some(waiter) = waiters.pop() {
            P::count(LockEvent::CondvarMove);
            // SAFETY: as above; the queue is not empty.
            unsafe { self.enqueue(&*waiter) };
        }
        self.make(call);
    }

    /// Tells a waiter that it has become first: now, if it is awake. If it is parked, the release
    /// of the thread that has the mutex from now on will wake it.
    fn tell_or_raise(&self, next: &Waiter<P>) -> Option<Call<P>> {
        if next.is_asleep() {
            self.raise(next);
            None
        } else {
            // It may have parked just now.
            next.wake()
        }
    }

    /// Takes the first out, makes the next one first, and tells it.
    ///
    /// Safety: the waiter is the first in the queue.
    unsafe fn advance(
        &self,
        first: *const Waiter<P>,
        tell: impl FnOnce(&Waiter<P>) -> Option<Call<P>>,
    ) -> Option<Call<P>> {
        // SAFETY: in the queue, so alive, and in the queue.
        let first = unsafe {
            self.dequeue(first);
            &*first
        };
        let call = self.choose_first(Self::node_of(first)).and_then(|next| {
            Self::becomes_first(next);
            tell(next)
        });
        // After the next one's: releases see a request at all times between.
        self.lower(first);
        call
    }

    /// The first in the queue has taken the mutex.
    ///
    /// Safety: it is in the queue, and holds the mutex.
    pub(super) unsafe fn leave_with_mutex(self, first: &Waiter<P>) {
        // SAFETY: the caller's: a waiter that holds the mutex was first, and is so until it leaves.
        let call = unsafe { self.advance(first, |next| self.tell_or_raise(next)) };
        self.make(call);
    }

    /// Hands the mutex over to the first in the queue. While it is monopolised, the next one is
    /// woken now, by a thread that has nothing to do until it has the mutex again. Else the
    /// next holder would do that, which takes 10 us and more, while it holds the mutex.
    ///
    /// Safety: it is the first in the queue; the caller holds the mutex, and gives it away.
    pub(super) unsafe fn hand_over(self, first: *const Waiter<P>, holders: Holders) {
        P::count(LockEvent::MutexHandOver);
        // SAFETY: the caller's; the waiter stays until it is granted the mutex, since one that is
        // not in the queue any more does not leave by itself.
        let (next, call) = unsafe {
            let next = self.advance(first, |next| match holders {
                Holders::Several => self.tell_or_raise(next),
                Holders::One => next.wake(),
            });
            (*first).note.store(GRANTED, Relaxed);
            (next, Waiter::grant(first))
        };
        drop(self);
        [call, next].into_iter().flatten().for_each(Call::make);
    }

    /// Wakes the first in the queue, if it has made a request, when the mutex has become free, or
    /// is about to. The first is taken out of the queue to compete with newcomers, so that the
    /// next release wakes the next waiter. It stays in the queue where competing does not help,
    /// and if it has been taken out before. A first that was awake keeps its request: it has
    /// missed this release. One that is parked until some moment has not passed the fence:
    /// releases may have missed its request, and would miss that of the next one. So the next
    /// one is woken too, and looks for itself.
    pub(super) fn wake_first(self, holders: Holders) {
        let Some(first) = self.first().filter(|first| Self::has_requested(first)) else { return };
        let Some(call) = first.wake() else { return };
        P::count(LockEvent::MutexWake);
        let mut next_call = None;
        if holders == Holders::One || first.note.load(Relaxed) & AGAIN != 0 {
            self.lower(first);
        } else {
            let first = ptr::from_ref(first);
            // SAFETY: the first in the queue; it stays, as it is parked until it is called, or gets the
            // chain's lock.
            unsafe {
                next_call = self.advance(first, |next| match call.is_by_clock() {
                    true => next.wake(),
                    false => self.tell_or_raise(next),
                });
                (*first).note.store(DEQUEUED, Relaxed);
            }
        }
        drop(self);
        call.make();
        next_call.into_iter().for_each(Call::make);
    }

    /// Leaves the queue without the mutex. A waiter that becomes first by that looks for itself. A
    /// dequeued waiter passes on what it was woken for, as the mutex may be free; but it competes
    /// first, and gives up from the queue.
    ///
    /// # Errors
    ///
    /// If it has been handed the mutex by now.
    ///
    /// Safety: the waiter is in the queue, or has been taken out of it by others.
    pub(super) unsafe fn give_up(self, waiter: &Waiter<P>) -> Result<(), Granted> {
        match waiter.note.load(Relaxed) {
            GRANTED => return Err(Granted),
            DEQUEUED => {
                let holders = self.holders();
                self.wake_first(holders);
                return Ok(());
            }
            _ => {}
        }
        let was_first = self.is_first(waiter);
        self.lower(waiter);
        // SAFETY: in the queue.
        unsafe { self.dequeue(waiter) };
        let next = self.first().filter(|_| was_first);
        let call = next.and_then(|next| {
            Self::becomes_first(next);
            next.wake()
        });
        self.make(call);
        Ok(())
    }

    /// Unlocks the chain, and makes the call if there is one.
    fn make(self, call: Option<Call<P>>) {
        drop(self);
        if let Some(call) = call {
            call.make();
        }
    }
}
