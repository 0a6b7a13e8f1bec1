//! The queue: those of the waiters in a chain that wait for one mutex. The terms are those of the
//! [mutex](super).
//!
//! ```text
//! note of a waiter   bits 12-31 its stamp, a time in units of 1024 ns: since when the waiter is
//!                    first, or since when others are preferred to it; 0: no stamp
//!                    5-11 its NUMA node | 4 RESTING | 3 AGAIN | 2 DEQUEUED | 1 REQUEST
//!                    0 GRANTED
//!
//! n: the NUMA node; since, passed: a stamp; s, *: any note
//!
//!  0 -> n               it joins the queue behind others; its thread is on NUMA node n
//!  n -> passed|n        it was next, and another waiter was preferred to it, at this time
//!  * -> n               it is first: it joined an empty queue, or the waiter before it left
//!  n -> since|n         `stamp`, at once if it is told so. Otherwise its wake request was raised,
//!                       and the next release that visits the chain stamps it, with the time of the
//!                       visit before. That saves a reading of the clock when threads sleep
//!  s -> s|REQUEST       `raise`: one more wake request in the mutex's count; done nowhere else
//!  s|REQUEST -> s       `lower`: it has been woken, or leaves
//!  s -> s|RESTING       `rest`: it parks until its turn, or is being woken after a hand-over;
//!                       back: `end_rest`
//!  * -> GRANTED         a hand-over has taken it out of the queue
//!  s -> DEQUEUED        a release has taken it out of the queue, to compete; unless AGAIN, or the
//!                       mutex is monopolised, or it is parked with an alarm
//!  DEQUEUED -> n|AGAIN  it joins the queue again
//! ```
//! AGAIN stays until the waiter leaves for good. Queue and notes are read and changed under the
//! chain's lock, which a [`WaitQueue`] holds. A waiter's own thread also reads its note without the
//! lock, and writes the note before it joins the queue.
//!
//! **NUMA nodes.** When the first gets the mutex or is dequeued, waiters of its NUMA node may
//! overtake the next waiter, for `NODE_TURN_NS`. So the few threads that are awake and exchange the
//! mutex end up on one NUMA node. NUMA nodes do not matter while the mutex is monopolised.
//!
//! Source: own. Waiters of one NUMA node are moved together, by the thread that leaves: Kashyap et
//! al., "Scalable and practical locking with shuffling", SOSP 2019.

mod first;
mod requests;

use core::cell::OnceCell;
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use super::diagnosis::Note;
use super::hints::{Hints, Holders, UNIT_SHIFT};
use super::{DUE_NS, MONOPOLISED_DUE_NS, NODE_TURN_NS, NearMutex, Notifier};
use crate::events::LockEvent;
use crate::near::attention::Strength;
use crate::near::{Near, NearPlatform};
use crate::parking::chain::{Locked, Queue};
use crate::parking::{Call, SleepState, Waiter, WakeList};
use crate::platform::Atomic;

const GRANTED: u32 = 1;
const REQUEST: u32 = 1 << 1;
const DEQUEUED: u32 = 1 << 2;
const AGAIN: u32 = 1 << 3;
const RESTING: u32 = 1 << 4;
/// The NUMA node takes 7 bits, and is counted from 1; 0 is none.
const NODE_SHIFT: u32 = 5;
const NODE: u32 = 127 << NODE_SHIFT;
/// In 20 bits the time wraps around after 1.07 s. A waiter that has been first or passed over for
/// so long seems to have just become so, and is due a moment later.
const SINCE_SHIFT: u32 = 12;
const SINCE: u32 = u32::MAX << SINCE_SHIFT;
/// [`NODE_TURN_NS`] in units of time: 1 ms.
const NODE_TURN_UNITS: u32 = (NODE_TURN_NS >> UNIT_SHIFT) as u32;
/// Among how many waiters those of one NUMA node are searched for. It was chosen by simulation:
/// docs/laboratory/simulator-mutexes.md, whose command has the present value. The search reads the
/// stacks of as many other threads, and the chain is locked meanwhile. At 64, a mutex with some
/// hundred waiters moves to another NUMA node whenever no waiter of its node is left among the
/// first ones. At 1 no waiter is preferred.
pub(super) const PREFERRED_AMONG: usize = 256;
/// How many waiters are preferred at once, so that the others are not searched again for each of
/// them. It was chosen by the same simulations. At 4, the searches take a part of the throughput of
/// many threads. A waiter that is passed over waits for so many more once `NODE_TURN_NS` is over.
pub(super) const PREFERRED: usize = 32;
const DUE_UNITS: u32 = (DUE_NS >> UNIT_SHIFT) as u32;
const MONOPOLISED_DUE_UNITS: u32 = (MONOPOLISED_DUE_NS >> UNIT_SHIFT) as u32;

/// The place of a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// First in the queue.
    First,
    /// First in the queue, with a wake request since it has joined. It can rely on this fence.
    Requested(Strength),
    /// Behind others, or not in the queue.
    Behind,
    /// Taken out of the queue by a release, to compete with newcomers.
    Dequeued,
}

/// The waiter has been handed the mutex, and cannot give up any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Granted;

/// See the [module](self). Dropping it unlocks the chain.
#[must_use = "the chain is locked only as long as this lives"]
pub(super) struct WaitQueue<'a, P: NearPlatform> {
    chain: Locked<'a, P, Near>,
    now: OnceCell<u32>,
}

impl<'a, P: NearPlatform> WaitQueue<'a, P> {
    /// The queue of the mutex at this address. The pointer is not dereferenced.
    pub(super) fn of(lock: *const NearMutex<P>) -> Self {
        // SAFETY: this is the mutex's own algorithm.
        Self::new(unsafe { Locked::of(lock) })
    }

    /// As [`of`](Self::of), but `None` if another thread has the chain locked for as long as a
    /// waiter would spin.
    pub(super) fn try_of(lock: *const NearMutex<P>) -> Option<Self> {
        // SAFETY: this is the mutex's own algorithm.
        unsafe { Locked::try_of(lock) }.map(Self::new)
    }

    fn new(chain: Locked<'a, P, Near>) -> Self {
        Self { chain, now: OnceCell::new() }
    }

    /// The time in units. The clock is read once for as long as the chain is locked.
    pub(super) fn now(&self) -> u32 {
        *self.now.get_or_init(Hints::<P>::now)
    }

    /// The waiters in the queue, in its order.
    pub(super) fn waiters(&self) -> impl Iterator<Item = &Waiter<P>> {
        self.chain.waiters(Queue::Exclusive)
    }

    /// The waiter that is first.
    pub(super) fn first(&self) -> Option<&Waiter<P>> {
        self.chain.first(Queue::Exclusive)
    }

    fn is_first(&self, waiter: &Waiter<P>) -> bool {
        self.first().is_some_and(|first| ptr::eq(first, waiter))
    }

    /// The place of the waiter.
    pub(super) fn place_of(&self, waiter: &Waiter<P>) -> Place {
        match waiter.note.load(Relaxed) {
            DEQUEUED => Place::Dequeued,
            _ if self.is_first(waiter) => Place::First,
            _ => Place::Behind,
        }
    }

    /// Whether a waiter that has taken a grant has been dequeued. Otherwise it has been handed the
    /// mutex, or its notification.
    pub(super) fn is_dequeued(granted: &Waiter<P>) -> bool {
        granted.note.load(Relaxed) == DEQUEUED
    }

    /// Whether the waiter has made a wake request. For the waiter of another thread, the chain must
    /// be locked.
    pub(super) fn has_requested(waiter: &Waiter<P>) -> bool {
        waiter.note.load(Relaxed) & REQUEST != 0
    }

    /// Notes since when the waiter is first, or has been passed over.
    fn stamp(&self, waiter: &Waiter<P>, since: u32) {
        // 0 stands for no stamp. One unit earlier is used instead.
        let since = match since << SINCE_SHIFT {
            0 => SINCE,
            since => since,
        };
        waiter.note.store(since | waiter.note.load(Relaxed) & !SINCE, Relaxed);
    }

    fn has_stamp(waiter: &Waiter<P>) -> bool {
        waiter.note.load(Relaxed) & SINCE != 0
    }

    /// For how long the waiter has been first, or others have been preferred to it, in units of
    /// time, at this moment; 0 without a stamp. For the waiter of another thread, the chain must be
    /// locked.
    pub(super) fn first_for_units(first: &Waiter<P>, now: u32) -> u32 {
        match first.note.load(Relaxed) >> SINCE_SHIFT {
            0 => 0,
            since => now.wrapping_sub(since) << SINCE_SHIFT >> SINCE_SHIFT,
        }
    }

    /// Notes the NUMA node of the waiter's thread.
    pub(super) fn note_node(waiter: &Waiter<P>, node: u32) {
        let node = node % (NODE >> NODE_SHIFT) + 1;
        let kept = waiter.note.load(Relaxed) & !NODE;
        waiter.note.store(kept | node << NODE_SHIFT, Relaxed);
    }

    /// The note of the waiter in words.
    pub(super) fn note_of(waiter: &Waiter<P>) -> Note {
        let note = waiter.note.load(Relaxed);
        Note {
            has_requested: note & REQUEST != 0,
            is_resting: note & RESTING != 0,
            was_dequeued: note & AGAIN != 0,
            numa_node: ((note & NODE) >> NODE_SHIFT).checked_sub(1),
            since_ns: Self::has_stamp(waiter)
                .then(|| u64::from(Self::first_for_units(waiter, Hints::<P>::now())) << UNIT_SHIFT),
        }
    }

    fn node_of(waiter: &Waiter<P>) -> u32 {
        waiter.note.load(Relaxed) & NODE
    }

    /// Chooses the new first when a waiter of this NUMA node has left. It is another waiter of the
    /// NUMA node, if there is one near the beginning of the queue. The next waiters of the NUMA
    /// node are moved behind it. The waiter that is next is passed over for `NODE_TURN_NS`, and
    /// until those have left that were moved before it by then. NUMA nodes do not matter while the
    /// mutex is monopolised, because a turn of one thread outweighs where the next waiter is.
    fn choose_first(&self, node: u32) -> Option<&Waiter<P>> {
        let next = self.first()?;
        let was_passed = Self::has_stamp(next);
        let is_due = was_passed && Self::first_for_units(next, self.now()) >= NODE_TURN_UNITS;
        let is_near = node == 0 || Self::node_of(next) == node;
        if is_near || is_due || self.holders() == Holders::One {
            return Some(next);
        }
        let near = self.chain.waiters(Queue::Exclusive).take(PREFERRED_AMONG);
        let mut last = None;
        for waiter in near.filter(|waiter| Self::node_of(waiter) == node).take(PREFERRED) {
            // SAFETY: both waiters are in the queue, and are not the same.
            unsafe { self.chain.move_after(Queue::Exclusive, last, waiter) };
            last = Some(waiter);
        }
        if last.is_some() && !was_passed {
            self.stamp(next, self.now());
        }
        self.first()
    }

    /// Whether a release that visits the chain hands the mutex over to the first. It does if the
    /// first has made a request and is awake, or if the first is due, or if processors are short.
    /// It does not if the first rests. Then the visit is for another mutex of the chain.
    pub(super) fn is_its_turn(&self, first: &Waiter<P>, holders: Holders) -> bool {
        let due_units = match holders {
            Holders::Several => DUE_UNITS,
            Holders::One => MONOPOLISED_DUE_UNITS,
        };
        if Self::is_resting(first) {
            return false;
        }
        Self::has_requested(first) && !first.is_asleep()
            || Self::has_stamp(first) && Self::first_for_units(first, self.now()) >= due_units
            || self.chain.beside().hints.are_processors_short(|| self.now())
    }

    /// Puts the waiter at the end of the queue.
    ///
    /// Safety: the waiter is in no queue, and stays where it is until it is in none again.
    unsafe fn push(&self, waiter: &Waiter<P>) -> Place {
        let place = match self.first() {
            Some(_) => Place::Behind,
            None => {
                self.watch();
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
        unsafe { self.chain.push(Queue::Exclusive, waiter) };
    }

    /// Takes the waiter out of the queue.
    ///
    /// Safety: the waiter is in the queue.
    unsafe fn dequeue(&self, waiter: *const Waiter<P>) {
        self.count().remove_waiter();
        // SAFETY: the caller's.
        unsafe { self.chain.remove(Queue::Exclusive, waiter) };
    }

    /// Puts the waiter of a thread on this NUMA node at the end of the queue. While spinning is
    /// futile, it makes its wake request at once if it is first.
    ///
    /// Safety: as [`push`](Self::push).
    pub(super) unsafe fn join(self, waiter: &Waiter<P>, node: u32) -> Place {
        if waiter.note.load(Relaxed) == DEQUEUED {
            waiter.note.store(AGAIN, Relaxed);
            waiter.forget_grant();
        }
        Self::note_node(waiter, node);
        // SAFETY: the caller's.
        let place = unsafe { self.push(waiter) };
        if place == Place::First {
            self.stamp(waiter, self.now());
        }
        match place {
            Place::First if self.chain.beside().hints.is_spinning_futile() => {
                Place::Requested(self.request(waiter))
            }
            place => place,
        }
    }

    /// Lets the first of these waiters compete for the mutex, and puts the others at the end of the
    /// queue, in their order.
    ///
    /// - If the queue is empty and the notifier holds the mutex, the first joins the queue with a
    ///   wake request. The release by the notifier sees the request.
    /// - If the queue is empty otherwise, the first joins it and is woken, and so reads the word.
    /// - If the queue is not empty, the first is granted the notification alone, and locks the
    ///   mutex as a newcomer. Behind a queue of waiters it would get the mutex only after all of
    ///   them have woken up.
    ///
    /// Safety: as [`push`](Self::push), for each of them.
    pub(super) unsafe fn adopt(self, mut waiters: WakeList<P>, notifier: Notifier) {
        let Some(first) = waiters.pop() else { return };
        P::count(LockEvent::CondvarWake);
        let is_empty = self.first().is_none();
        if is_empty {
            // SAFETY: the waiter has not been signalled yet, so it is alive; the rest is the
            // caller's.
            unsafe { self.push(&*first) };
        }
        while let Some(waiter) = waiters.pop() {
            P::count(LockEvent::CondvarMove);
            // SAFETY: as above; the queue is not empty.
            unsafe { self.enqueue(&*waiter) };
        }
        // SAFETY: as above. In the queue, it stays as long as the chain is locked.
        let call = unsafe {
            match (is_empty, notifier) {
                (true, Notifier::Holder) => {
                    self.raise(&*first);
                    None
                }
                (true, Notifier::Other) => self.tell(&*first),
                (false, _) => Waiter::grant(first),
            }
        };
        self.make(call);
    }

    /// Takes the first out, makes the next waiter first, and tells it.
    ///
    /// Safety: the waiter is the first in the queue.
    unsafe fn advance(
        &self,
        first: *const Waiter<P>,
        tell: impl FnOnce(&Waiter<P>) -> Option<Call<P>>,
    ) -> Option<Call<P>> {
        // SAFETY: the waiter is in the queue, and so it is alive.
        let first = unsafe {
            self.dequeue(first);
            &*first
        };
        let next = self.choose_first(Self::node_of(first));
        let call = self.make_first(next, first, tell);
        // After the request of the next waiter is raised: releases see a request at all times.
        self.lower(first);
        call
    }

    /// The first in the queue has taken the mutex, and leaves the queue.
    ///
    /// Safety: the waiter is in the queue, and holds the mutex.
    pub(super) unsafe fn leave_with_mutex(self, first: &Waiter<P>) {
        // SAFETY: the caller's: a waiter that holds the mutex was first, and stays first until it
        // leaves.
        let call = unsafe { self.advance(first, |next| self.tell_or_raise(next)) };
        self.make(call);
    }

    /// Hands the mutex over to the first in the queue. At a monopolised mutex the caller also wakes
    /// the next waiter, since the caller has nothing to do until it has the mutex again. Otherwise
    /// the next holder would have to make this system call while it holds the mutex.
    ///
    /// Safety: the waiter is the first in the queue. The caller holds the mutex, and gives it away.
    // Inlined, as the next two functions, because each function that returns after the system call
    // costs 10 ns (`linux/futex.rs` of nearlock-os).
    #[inline(always)]
    pub(super) unsafe fn hand_over(self, first: *const Waiter<P>, holders: Holders) {
        P::count(LockEvent::MutexHandOver);
        // SAFETY: the caller's.
        unsafe { self.grant_first(first, GRANTED, holders) };
    }

    /// Takes the first out of the queue, and grants it what this note says.
    ///
    /// Safety: the waiter is the first in the queue.
    #[inline(always)]
    unsafe fn grant_first(self, first: *const Waiter<P>, note: u32, holders: Holders) {
        // SAFETY: the caller's. The waiter stays until it is granted, since a waiter that was taken
        // out of the queue does not leave by itself.
        let (rests, next, call) = unsafe {
            // A thread that has to be woken may take this one's processor before the next is woken.
            let may_rest = holders == Holders::One && !(*first).is_asleep();
            let next = self.advance(first, |next| match holders {
                Holders::Several => self.tell_or_raise(next),
                Holders::One if may_rest => self.tell_resting(next),
                Holders::One => self.tell(next),
            });
            (*first).note.store(note, Relaxed);
            (may_rest && next.is_some(), next, Waiter::grant(first))
        };
        let lock = self.chain.address();
        drop(self);
        if let Some(call) = call {
            call.make();
        }
        if let Some(next) = next {
            next.make();
        }
        if rests {
            Self::of(lock.cast()).look_after_told();
        }
    }

    /// Whether a release that wakes the first dequeues it to compete.
    fn is_to_compete(first: &Waiter<P>, holders: Holders) -> bool {
        let was_dequeued = first.note.load(Relaxed) & AGAIN != 0;
        let is_asleep = first.state().0 == SleepState::Asleep;
        Self::has_requested(first) && holders == Holders::Several && !was_dequeued && is_asleep
    }

    /// Wakes the first in the queue, if it has made a request and is parked. The mutex has become
    /// free, or is about to become free. The first is dequeued to compete with newcomers, so that
    /// the next release wakes the next waiter. It stays in the queue if the mutex is monopolised,
    /// if it was dequeued before, or if it is parked with an alarm. In the last case it has not
    /// passed the fence. Releases may have missed its request, and would miss that of the next
    /// waiter.
    ///
    /// A first that is awake only gets a signal, and keeps its request: it may have missed this
    /// release.
    #[inline(always)]
    pub(super) fn wake_first(self, holders: Holders) {
        let Some(first) = self.first().filter(|first| Self::has_requested(first)) else { return };
        if !Self::is_to_compete(first, holders) {
            let Some(call) = first.wake() else { return };
            P::count(LockEvent::MutexWake);
            self.lower(first);
            return self.make(Some(call));
        }
        P::count(LockEvent::MutexWake);
        let first = ptr::from_ref(first);
        // SAFETY: the waiter is the first in the queue.
        unsafe { self.grant_first(first, DEQUEUED, holders) };
    }

    /// Leaves the queue without the mutex. A waiter that becomes first by that is woken, and reads
    /// the word. A dequeued waiter that gives up wakes the first in the queue in its place, since
    /// the mutex may be free. (As a rule it competes first, and gives up from the queue.)
    ///
    /// # Errors
    ///
    /// If it has been handed the mutex meanwhile.
    ///
    /// Safety: the waiter is in the queue, or has been taken out of it by another thread.
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
        // SAFETY: the waiter is in the queue.
        unsafe { self.dequeue(waiter) };
        let call = was_first.then(|| self.make_first(self.first(), waiter, |next| self.tell(next)));
        self.make(call.flatten());
        Ok(())
    }

    /// Unlocks the chain, and then makes the call if there is one.
    fn make(self, call: Option<Call<P>>) {
        drop(self);
        if let Some(call) = call {
            call.make();
        }
    }
}
