//! The queue: how threads wait in it, leave it, and are let in.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use super::spin::Owner;
use super::{HANDOFF, HELD, READER, READERS, Rwsem, RwsemPlatform, RwsemTuning, WAITERS, WRITER};
use crate::events::LockEvent;
use crate::parking::{Call, GaveUp, Limit, Signal, WaitLock, Waiter, WakeList, locked};
use crate::platform::{Atomic, AtomicInt, Park};
use crate::schedule::{Spin, ThreadId};

/// A flag in [`Waiter::note`]: the waiter is a writer.
pub(super) const WRITES: u32 = 1;
/// A flag: no thread may overtake the waiter. HANDOFF has been set on its behalf.
pub(super) const MARKED: u32 = 1 << 1;
/// A flag: the waiter may ask for that at once, without having waited for long.
const URGENT: u32 = 1 << 2;
/// A flag: the waiter has been taken out of the queue, and will be granted the lock.
pub(super) const CHOSEN: u32 = 1 << 3;

/// The waiters that a waker may wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whom {
    /// The first waiter, whether it reads or writes.
    Any,
    /// Readers, if they are first.
    Readers,
    /// Readers, if they are first. The caller holds the lock as a reader, so that no writer can
    /// take it meanwhile.
    FellowReaders,
}

/// The wake-ups to make after `wait_lock` has been released.
#[must_use = "a thread waits for it"]
pub(super) struct Wakes<P: Park> {
    call: Option<Call<P>>,
    wake_list: WakeList<P>,
}

impl<P: Park> Wakes<P> {
    const NONE: Self = Self { call: None, wake_list: WakeList::EMPTY };

    pub(super) fn make(self) {
        if let Some(call) = self.call {
            call.make();
        }
        self.wake_list.grant();
    }
}

/// The result of a queued writer's attempt.
enum Attempt<P: Park> {
    Taken,
    GaveUp(GaveUp, Wakes<P>),
    Failed,
    /// It failed, but no thread can overtake the writer any more.
    FailedMarked,
}

impl<P: RwsemPlatform, T: RwsemTuning, W: WaitLock> Rwsem<P, T, W> {
    /// The slow path of a reader. `count` is the count after its attempt, which is in it.
    #[cold]
    #[inline(never)]
    pub(super) fn lock_shared_slow(&self, count: u64, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        P::in_slow_path(|| {
            let mut spin = Spin::default();
            if T::reader_spin() && self.may_spin(&mut spin) {
                // Relaxed: nothing is published.
                self.count.fetch_sub(READER, Relaxed);
                if self.spin(P::thread_id(), spin, limit, || self.try_shared_ahead_of_queue()) {
                    if self.count.load(Relaxed) & WAITERS != 0 {
                        self.wake(Whom::FellowReaders);
                    }
                    return Ok(());
                }
                return P::with_record(|me| self.queue_reader(me, 0, limit));
            }
            // Readers that come one after the other must not keep the lock from a sleeping writer.
            let is_alone = count & READERS == READER;
            let goes_on = !is_alone && self.owner() == Owner::Readers;
            if T::reader_steal() && count & (WRITER | HANDOFF) == 0 && !goes_on {
                self.note_readers();
                P::count(LockEvent::RwsemRlockSteal);
                if is_alone && count & WAITERS != 0 {
                    self.wake(Whom::FellowReaders);
                }
                return Ok(());
            }
            P::with_record(|me| self.queue_reader(me, READER, limit))
        })
    }

    /// `counted` is the caller's part of the count.
    fn queue_reader(&self, me: &Waiter<P>, counted: u64, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        self.prepare(me, 0);
        let wakes = locked(&self.wait_lock, || {
            let is_first = self.list.is_empty();
            // Ordering: Acquire, pairs with the Release in `unlock`: the writer has gone meanwhile,
            // and its section happens before ours.
            if is_first && counted != 0 && self.count.load(Acquire) & WRITER == 0 {
                return None;
            }
            let change = if is_first { WAITERS } else { 0 }.wrapping_sub(counted);
            // SAFETY: under wait_lock; the record stays until we are granted the lock, or leave.
            unsafe { self.list.push(me) };
            let count = self.count.fetch_add(change, Relaxed);
            if is_first {
                Self::assert_unmarked(count)
            } else {
                Self::assert_marked(count)
            }
            Some(self.wake_of(count.wrapping_add(change)))
        });
        let Some(wakes) = wakes else {
            self.note_readers();
            P::count(LockEvent::RwsemRlockFast);
            return Ok(());
        };
        wakes.make();
        P::count(LockEvent::RwsemSleepReader);
        let rested = limit.watch(me, || {
            loop {
                match me.park_within(limit) {
                    Ok(Signal::Granted) => return Ok(()),
                    Ok(Signal::Woken) => {}
                    Err(why) => return self.give_up_reading(me, why),
                }
            }
        });
        P::count(if rested.is_ok() { LockEvent::RwsemRlock } else { LockEvent::RwsemRlockFail });
        rested
    }

    fn give_up_reading(&self, me: &Waiter<P>, why: GaveUp) -> Result<(), GaveUp> {
        let left = locked(&self.wait_lock, || {
            let is_chosen = me.note.load(Relaxed) & CHOSEN != 0;
            // SAFETY: under wait_lock, and in the list unless it has been chosen.
            (!is_chosen).then(|| unsafe { self.leave(me) })
        });
        match left {
            Some(wakes) => {
                wakes.make();
                Err(why)
            }
            None => {
                // The grant is on its way.
                while me.park() != Signal::Granted {}
                Ok(())
            }
        }
    }

    /// The slow path of a writer, after a failed attempt.
    #[cold]
    #[inline(never)]
    pub(super) fn lock_slow(&self, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        P::in_slow_path(|| {
            let (writer, mut spin) = (P::thread_id(), Spin::default());
            if T::writer_spin() {
                if !self.may_spin(&mut spin) {
                    P::count(LockEvent::RwsemOptNospin);
                } else if self.spin(writer, spin, limit, || self.try_ahead_of_queue(writer)) {
                    return Ok(());
                }
            }
            P::with_record(|me| self.queue_writer(me, writer, limit))
        })
    }

    fn queue_writer(&self, me: &Waiter<P>, writer: ThreadId, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        self.prepare(me, WRITES);
        let wakes = locked(&self.wait_lock, || {
            let is_first = self.list.is_empty();
            // SAFETY: under wait_lock; the record stays until we have removed it.
            unsafe { self.list.push(me) };
            if is_first {
                // Relaxed: our attempt comes after it.
                Self::assert_unmarked(self.count.fetch_or(WAITERS, Relaxed));
                return Wakes::NONE;
            }
            let count = self.count.load(Relaxed);
            Self::assert_marked(count);
            self.wake_of(count)
        });
        wakes.make();
        limit.watch(me, || {
            let mut spin = Spin::default();
            loop {
                match locked(&self.wait_lock, || self.attempt(me, writer, limit)) {
                    Attempt::Taken => {
                        P::count(LockEvent::RwsemWlock);
                        return Ok(());
                    }
                    Attempt::GaveUp(why, wakes) => {
                        P::count(LockEvent::RwsemWlockFail);
                        wakes.make();
                        return Err(why);
                    }
                    Attempt::FailedMarked if T::handoff_spin() && self.owner_goes(&mut spin, limit) => {}
                    Attempt::Failed | Attempt::FailedMarked => {
                        P::count(LockEvent::RwsemSleepWriter);
                        // Whatever ends the sleep, the next attempt comes first.
                        let _ = me.park_within(limit);
                        // The spinning before the sleep does not count any more.
                        spin = Spin::default();
                    }
                }
            }
        })
    }

    /// Spins until the owner has gone. False if there is a reason to stop.
    fn owner_goes(&self, spin: &mut Spin, limit: &Limit<'_, P>) -> bool {
        let has_gone = self.owner_after_spin(spin, limit) == Owner::NoThread && !P::should_give_way(spin);
        if has_gone {
            P::cpu_relax(spin.turns);
        }
        has_gone
    }

    /// An attempt, after which the writer may give up. Under `wait_lock`.
    fn attempt(&self, me: &Waiter<P>, writer: ThreadId, limit: &Limit<'_, P>) -> Attempt<P> {
        if self.try_queued(me, writer) {
            return Attempt::Taken;
        }
        if let Some(why) = limit.is_reached() {
            // SAFETY: under wait_lock, and in the list.
            return Attempt::GaveUp(why, unsafe { self.leave(me) });
        }
        match me.note.load(Relaxed) & MARKED {
            0 => Attempt::Failed,
            _ => Attempt::FailedMarked,
        }
    }

    /// An attempt of a queued writer, under `wait_lock`.
    fn try_queued(&self, me: &Waiter<P>, writer: ThreadId) -> bool {
        // SAFETY: the list is not empty, and its waiters are alive.
        let first = unsafe { &*self.list.first() };
        let is_first = self.list.is_first(me);
        let mut count = self.count.load(Relaxed);
        loop {
            Self::assert_marked(count);
            let is_handed_over = count & HANDOFF != 0;
            if is_handed_over && !is_first && first.note.load(Relaxed) & MARKED != 0 {
                return false;
            }
            let new = if count & HELD != 0 {
                if is_handed_over || !Self::may_insist(me) {
                    return false;
                }
                count | HANDOFF
            } else {
                // SAFETY: we are in the list, under its lock.
                let is_alone = is_first && unsafe { self.list.after(me) }.is_null();
                let waiters = if is_alone { 0 } else { WAITERS };
                count & !(HANDOFF | WAITERS) | waiters | WRITER
            };
            // 0,*,1,0 -> 0,0,*,1 or *,0,1,* -> *,1,1,*
            // Ordering: Acquire, pairs with the Releases of the previous holders.
            match self.count.compare_exchange(count, new, Acquire, Relaxed) {
                Ok(_) if new & HANDOFF != 0 => {
                    P::count(LockEvent::RwsemWlockHandoff);
                    Self::mark(first);
                    return false;
                }
                Ok(_) => break,
                Err(now) => count = now,
            }
        }
        self.note_writer(writer);
        // SAFETY: as above.
        unsafe { self.list.remove(me) };
        true
    }

    /// Initialises the record of a waiter that is about to queue.
    fn prepare(&self, me: &Waiter<P>, note: u32) {
        let urgent = if P::is_priority() { URGENT } else { 0 };
        me.note.store(note | urgent, Relaxed);
        if let Some(handoff_ns) = T::handoff_ns() {
            me.mark.store(P::now_ns().saturating_add(handoff_ns), Relaxed);
        }
    }

    /// Whether this waiter has waited for so long that the first waiter should not be overtaken any
    /// more.
    fn is_overdue(waiter: &Waiter<P>) -> bool {
        T::handoff_ns().is_some() && P::now_ns() >= waiter.mark.load(Relaxed)
    }

    fn may_insist(me: &Waiter<P>) -> bool {
        T::handoff_ns().is_some() && (me.note.load(Relaxed) & URGENT != 0 || Self::is_overdue(me))
    }

    /// Asserts invariant 1 for a count from a time when the queue was not empty.
    fn assert_marked(count: u64) {
        debug_assert!(count & WAITERS != 0, "a queue without its mark");
    }

    /// Asserts invariant 1 for a count from a time when the queue was empty.
    fn assert_unmarked(count: u64) {
        debug_assert!(count & (WAITERS | HANDOFF) == 0, "marks of an empty queue");
    }

    /// Marks the first waiter. Under `wait_lock`.
    fn mark(first: &Waiter<P>) {
        first.note.store(first.note.load(Relaxed) | MARKED, Relaxed);
    }

    /// Takes a waiter that gives up out of the queue.
    ///
    /// Safety: the caller holds `wait_lock`; the waiter is in the list.
    unsafe fn leave(&self, me: &Waiter<P>) -> Wakes<P> {
        let was_first = self.list.is_first(me);
        // SAFETY: the caller's.
        unsafe { self.list.remove(me) };
        if self.list.is_empty() {
            // Relaxed: nothing is published.
            Self::assert_marked(self.count.fetch_and(!(HANDOFF | WAITERS), Relaxed));
            return Wakes::NONE;
        }
        // It may have been woken, and HANDOFF may have been set for it. The next waiter must learn
        // of both.
        if was_first { self.wake_first(Whom::Any) } else { Wakes::NONE }
    }

    /// Wakes waiters after a release.
    #[cold]
    #[inline(never)]
    pub(super) fn wake(&self, whom: Whom) {
        P::in_slow_path(|| {
            let wakes = locked(&self.wait_lock, || {
                if self.list.is_empty() { Wakes::NONE } else { self.wake_first(whom) }
            });
            wakes.make();
        });
    }

    /// Wakes the waiters that a newcomer finds asleep without need. `count` is the count that the
    /// newcomer has left. Under `wait_lock`, with a queue that is not empty.
    fn wake_of(&self, count: u64) -> Wakes<P> {
        if count & WRITER != 0 {
            return Wakes::NONE;
        }
        if count & READERS != 0 {
            return self.wake_first(Whom::Readers);
        }
        self.readers_have_gone();
        self.wake_first(Whom::Any)
    }

    /// Wakes a first writer, or lets in the first readers. Under `wait_lock`, with a queue that is
    /// not empty.
    fn wake_first(&self, whom: Whom) -> Wakes<P> {
        // SAFETY: in the list, so alive.
        let first = unsafe { &*self.list.first() };
        if first.note.load(Relaxed) & WRITES != 0 {
            let call = (whom == Whom::Any).then(|| {
                P::count(LockEvent::RwsemWakeWriter);
                first.wake()
            });
            return Wakes { call: call.flatten(), ..Wakes::NONE };
        }
        let counted = if whom == Whom::FellowReaders { 0 } else { READER };
        if counted != 0 && !self.admit(first) {
            return Wakes::NONE;
        }
        self.note_readers();
        let (readers, wake_list) = self.choose_readers();
        let mut change = (readers * READER).wrapping_sub(counted);
        if self.list.is_empty() {
            change = change.wrapping_sub(WAITERS);
        }
        // Relaxed: HANDOFF changes under wait_lock only. Readers are in, so no thread needs to stay
        // behind for them.
        change = change.wrapping_sub(self.count.load(Relaxed) & HANDOFF);
        // Relaxed: `admit`, or the caller's hold, has ordered us after the last writer.
        Self::assert_marked(self.count.fetch_add(change, Relaxed));
        Wakes { call: None, wake_list }
    }

    /// Counts the first reader, unless a writer holds the lock. Then the release of the writer will
    /// wake it.
    fn admit(&self, first: &Waiter<P>) -> bool {
        // Ordering: Acquire, pairs with the Release in `unlock`: the last writer's section is
        // visible to us, and by the grant to the readers.
        let count = self.count.fetch_add(READER, Acquire);
        if count & WRITER == 0 {
            return true;
        }
        let mut back = READER.wrapping_neg();
        if Self::is_overdue(first) {
            if count & HANDOFF == 0 {
                P::count(LockEvent::RwsemRlockHandoff);
                back = back.wrapping_add(HANDOFF);
            }
            Self::mark(first);
        }
        // Relaxed: nothing is published.
        self.count.fetch_add(back, Relaxed);
        false
    }

    /// Takes readers out of the queue. Returns their number and their list.
    fn choose_readers(&self) -> (u64, WakeList<P>) {
        let (mut readers, mut wake_list) = (0, WakeList::EMPTY);
        let mut at = self.list.first();
        while !at.is_null() && readers < T::wake_readers_max() {
            // SAFETY: a waiter in the list is alive, and we hold the list's lock. Readers that are
            // taken out stay until they are granted the lock.
            unsafe {
                let (next, note) = (self.list.after(at), (*at).note.load(Relaxed));
                if note & WRITES == 0 {
                    self.list.remove(at);
                    (*at).note.store(note | CHOSEN, Relaxed);
                    wake_list.push(at);
                    P::count(LockEvent::RwsemWakeReader);
                    readers += 1;
                } else if !T::readers_past_writers() {
                    break;
                }
                at = next;
            }
        }
        (readers, wake_list)
    }
}
