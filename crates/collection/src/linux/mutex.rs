//! Owner mutex: Linux' mutex since 4.9, whose word names the holder. Waiters spin one at a time
//! while the owner runs, and sleep in a queue when it does not. They are handed the mutex if other
//! threads keep taking it.
//!
//! ```text
//! word       bits 3-30 owner: a thread's id, or 0 | 2 PICKUP | 1 HANDOFF | 0 WAITERS
//! spinners   the queue of spinning threads (`osq`)
//! wait_lock  protects the queue of sleepers, `waiters`
//!
//!  0 -> t              lock of a free mutex without waiters
//!  w -> t|w            lock of a free mutex with waiters, by any thread             `try_take`
//!  t|w -> t|w|h        the first waiter has slept, and failed: asks for a hand-over `try_take`
//!  t -> 0              unlock without waiters                                       `unlock`
//!  t|w -> w            unlock; wakes the first waiter                               `unlock_slow`
//!  t|w|h -> f|w|p      unlock: hands over to f, the first, and wakes it             `hand_over`
//!  t -> 0              the same; the last waiter has given up since h was seen      `hand_over`
//!  f|w|p -> f|w        f picks it up                                                `try_take`
//!  * -> *|w            the first waiter enters the queue                            `enqueue`
//!  * -> *&!(w|h|p)     the last waiter leaves the queue                             `leave`
//! ```
//! WAITERS: the queue is not empty. HANDOFF: the mutex must be handed over to the first waiter. It
//! is set only with an owner and WAITERS. PICKUP: the named owner has not picked the mutex up yet.
//! It is set only with an owner and WAITERS, and never with HANDOFF.
//!
//! 1. A thread changes the owner field from 0 only to its own name. Only the holder changes it from
//!    a name to 0, or to another name with PICKUP. Without PICKUP, the named thread holds the
//!    mutex.
//! 2. HANDOFF is set in the same step that sees an owner. An owner that sees it does not free the
//!    mutex.
//! 3. WAITERS changes only under `wait_lock`, with the queue. A thread that takes a free mutex
//!    leaves it as it is. So an unlock while there are waiters in the queue locks `wait_lock`, and
//!    wakes the first.
//! 4. A waiter gives up only after an attempt under `wait_lock` has failed. Hand-overs are made
//!    under `wait_lock`, so the mutex has not been handed over to it. And there is an owner, whose
//!    unlock will wake the next waiter. HANDOFF may stay, for the waiter that is first by then.
//!
//! `unlock` may lock `wait_lock` after other threads may hold the mutex. **A thread that frees a
//! mutex must know that every `unlock` has returned.** It is not enough that it was the last to
//! lock it. (So a mutex must not protect the reference count of the object that contains it.)
//!
//! Not recursive: a thread that locks it again waits for itself.
//!
//! Fairness: newcomers and spinners overtake the queue until its first waiter has slept and been
//! woken. If the next attempt of that waiter fails, it is handed the mutex at the next unlock. So
//! other threads have the mutex at most once more. Waiter k waits for k such rounds. There is no
//! bound in time, and no bound at all without [`MutexTuning::hand_over`].
//! Source: Linux' `kernel/locking/mutex.c` (Zijlstra, 2016; Molnar, 2006; spinning: Zijlstra, Low,
//! Long), written from a description in our own words.

mod tuning;

use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::osq::{self, Osq};
use crate::events::LockEvent;
use crate::parking::{GaveUp, Limit, QueueLock, RawTimedLock, WaitList, WaitLock, Waiter, locked};
use crate::platform::{Atomic, AtomicInt, LocalNodes, ParkTimeout, Platform};
use crate::raw::{RawLock, RawTryLock};
use crate::schedule::{OwnerState, Schedule, Spin, Stop, ThreadId};
use crate::tuning::Standard;

pub use tuning::{
    HeedlessSpinning, MutexTuning, NoHandOver, NoSpinnerQueue, NoSpinning, SWITCHES, SleepyWaiter, Spinning,
    YieldsBeforeQueue,
};

/// Set while the queue is not empty.
pub const WAITERS: u32 = 1;
/// Set if the mutex must be handed over to the first waiter.
pub const HANDOFF: u32 = 1 << 1;
/// Set if the mutex has been handed over to the owner, which has not noticed yet.
pub const PICKUP: u32 = 1 << 2;
const FLAGS: u32 = WAITERS | HANDOFF | PICKUP;
const OWNER_SHIFT: u32 = 3;

const _: () = assert!(FLAGS >> OWNER_SHIFT == 0 && OWNER_SHIFT + ThreadId::BITS <= u32::BITS);

const fn owned_by(thread: ThreadId) -> u32 {
    thread.get() << OWNER_SHIFT
}

/// The thread that the word names.
const fn owner_of(word: u32) -> Option<ThreadId> {
    ThreadId::new(word >> OWNER_SHIFT)
}

/// Checks a value of the word, wherever one is at hand anyway.
fn assert_legal(word: u32) {
    let (is_free, flags) = (owner_of(word).is_none(), word & FLAGS);
    debug_assert!(!is_free || flags & (HANDOFF | PICKUP) == 0, "free, and to be handed over");
    debug_assert!(flags == 0 || flags & WAITERS != 0, "to be handed over to no thread");
    debug_assert!(flags != FLAGS, "handed over, and to be handed over");
}

/// What a thread asks for if its attempt finds the mutex held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Nothing,
    /// A hand-over. For the first waiter, under `wait_lock`.
    HandOver,
}

/// See the [module](self). 32 bytes natively; all zero: unlocked.
#[repr(C)]
pub struct LinuxMutex<P: Platform, T: MutexTuning = Standard, W: WaitLock = QueueLock<P>> {
    word: P::U32,
    spinners: Osq<P>,
    wait_lock: W,
    waiters: WaitList<P>,
    switches: PhantomData<T>,
}

impl<P: Platform, T: MutexTuning, W: WaitLock> LinuxMutex<P, T, W> {
    /// An unlocked mutex, in `const`.
    pub const fn new() -> Self {
        Self {
            word: Atomic::ZERO,
            spinners: Osq::new(),
            wait_lock: W::FREE,
            waiters: WaitList::new(),
            switches: PhantomData,
        }
    }

    /// The word, for tests that look at it.
    ///
    /// # Safety
    ///
    /// The caller writes only values that threads which use the lock could have written.
    #[doc(hidden)]
    pub unsafe fn word(&self) -> &P::U32 {
        &self.word
    }
}

impl<P: Platform, T: MutexTuning, W: WaitLock> Default for LinuxMutex<P, T, W> {
    fn default() -> Self {
        Self {
            word: Atomic::new(0),
            spinners: Osq::default(),
            wait_lock: W::default(),
            waiters: WaitList::default(),
            switches: PhantomData,
        }
    }
}

impl<P, T: MutexTuning, W: WaitLock> LinuxMutex<P, T, W>
where
    P: ParkTimeout + Schedule + LocalNodes<osq::Node<P>>,
{
    /// Takes the mutex if it is free, or has been handed over to the caller. Otherwise returns the
    /// word.
    fn try_take(&self, me: ThreadId, wish: Wish) -> Result<(), u32> {
        let mut word = self.word.load(Relaxed);
        loop {
            let taken = match owner_of(word) {
                // t|w -> t|w; picked up.
                Some(owner) if owner == me && word & PICKUP != 0 => word & !PICKUP,
                Some(_) if wish == Wish::HandOver && word & (HANDOFF | PICKUP) == 0 => {
                    // t|w -> t|w|h. A compare-exchange and no `fetch_or`: the mutex could have
                    // become free (invariant 2). Relaxed: asks, and publishes nothing.
                    match self.word.compare_exchange(word, word | HANDOFF, Relaxed, Relaxed) {
                        Ok(_) => return Err(word | HANDOFF),
                        Err(seen) => {
                            word = seen;
                            continue;
                        }
                    }
                }
                Some(_) => return Err(word),
                None => {
                    debug_assert!(word & (HANDOFF | PICKUP) == 0, "free, and to be handed over");
                    word | owned_by(me)
                }
            };
            // Ordering: Acquire, pairs with the Releases in `unlock`, `unlock_slow` and
            // `hand_over`: the last section happens before ours. Relaxed on failure, where the loop
            // only tries again.
            match self.word.compare_exchange(word, taken, Acquire, Relaxed) {
                Ok(_) => return Ok(()),
                Err(seen) => word = seen,
            }
        }
    }

    /// Whether spinning may be worth it.
    fn is_worth_spinning(&self) -> bool {
        match T::spinning() {
            Spinning::Never => false,
            Spinning::UnlessOwnerSleeps => owner_of(self.word.load(Relaxed))
                .is_none_or(|owner| P::owner_state(owner) != OwnerState::Asleep),
            Spinning::Always => true,
        }
    }

    /// Spins until the mutex has another owner, or none, or the limit is reached.
    fn watch(&self, spin: &mut Spin, owner: ThreadId, limit: &Limit<'_, P>) -> Result<(), Stop> {
        let has_changed = |word| owner_of(word) != Some(owner) || limit.is_reached().is_some();
        match T::spinning() {
            Spinning::Never | Spinning::UnlessOwnerSleeps => {
                P::spin_on_owner(spin, &self.word, Relaxed, owner, has_changed).map(drop)
            }
            Spinning::Always => {
                while !has_changed(self.word.load(Relaxed)) {
                    let turn = spin.turns;
                    if P::should_give_way(spin) {
                        return Err(Stop::GiveWay);
                    }
                    P::cpu_relax(turn);
                }
                Ok(())
            }
        }
    }

    /// Spins as long as it may be worth it, within the limit. Returns whether the caller has the
    /// mutex.
    fn spin(&self, me: ThreadId, spin: &mut Spin, limit: &Limit<'_, P>) -> bool {
        loop {
            let owner = match self.try_take(me, Wish::Nothing) {
                Ok(()) => return true,
                Err(word) => owner_of(word),
            };
            let stops = |owner| limit.is_reached().is_some() || self.watch(spin, owner, limit).is_err();
            if owner.is_some_and(stops) {
                return false;
            }
        }
    }

    fn spin_as_newcomer(&self, me: ThreadId, limit: &Limit<'_, P>) -> bool {
        if !self.is_worth_spinning() {
            return false;
        }
        let (mut spin, is_over) = (Spin::default(), || limit.is_reached().is_some());
        let is_mine = match T::spinner_queue() {
            true => {
                let turn = |spin: &mut Spin| self.spin(me, spin, limit);
                // SAFETY: `is_over` and `turn` do not unwind.
                unsafe { self.spinners.with_turn(me, &mut spin, is_over, turn) == Some(true) }
            }
            false => self.spin(me, &mut spin, limit),
        };
        if is_mine {
            P::count(LockEvent::MutexOptLock);
        } else if T::yields_before_queue() {
            P::cpu_relax(u32::MAX);
        }
        is_mine
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self, me: ThreadId, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        P::count(LockEvent::Slowpath);
        P::in_slow_path(|| {
            if self.try_take(me, Wish::Nothing).is_ok() || self.spin_as_newcomer(me, limit) {
                return Ok(());
            }
            P::with_record(|waiter: &Waiter<P>| {
                limit.watch(waiter, || {
                    if self.enqueue(me, waiter) {
                        P::count(LockEvent::MutexAtOnce);
                        return Ok(());
                    }
                    self.wait(me, waiter, limit)
                })
            })
        })
    }

    /// Puts the waiter into the queue, unless it can take the mutex. True if it has taken the
    /// mutex: then it is in no queue.
    fn enqueue(&self, me: ThreadId, waiter: &Waiter<P>) -> bool {
        waiter.note.store(me.get(), Relaxed);
        locked(&self.wait_lock, || {
            if self.try_take(me, Wish::Nothing).is_ok() {
                return true;
            }
            let is_first = self.waiters.is_empty();
            // SAFETY: under `wait_lock`. The waiter is in no list, and stays where it is until
            // `leave`.
            unsafe { self.waiters.push(waiter) };
            if is_first {
                // * -> *|w. Relaxed: an unlock that sees the bit locks `wait_lock`, which orders.
                // An unlock that does not see it comes before the next attempt in the order of the
                // word.
                let word = self.word.fetch_or(WAITERS, Relaxed);
                debug_assert!(word & FLAGS == 0, "flags of an empty queue");
            }
            let is_mine = is_first && self.try_take(me, Wish::Nothing).is_ok();
            if is_mine {
                // SAFETY: under `wait_lock`, and just pushed.
                unsafe { self.leave(waiter) };
            }
            is_mine
        })
    }

    /// Waits in the queue. The waiter is in the queue at the beginning, and in no queue at the end.
    fn wait(&self, me: ThreadId, waiter: &Waiter<P>, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        loop {
            P::count(LockEvent::MutexSleep);
            // A waiter that has been woken checks its limit too. Otherwise repeated wake-ups could
            // keep it in the queue. A waiter whose limit is reached asks for nothing.
            let gave_up = waiter.park_within(limit).err().or_else(|| limit.is_reached());
            let (is_mine, is_first) = locked(&self.wait_lock, || {
                let is_first = self.waiters.first().cast_const() == ptr::from_ref(waiter);
                let wish = match is_first && T::hand_over() && gave_up.is_none() {
                    true => Wish::HandOver,
                    false => Wish::Nothing,
                };
                let is_mine = self.try_take(me, wish).is_ok();
                if is_mine || gave_up.is_some() {
                    // SAFETY: under `wait_lock`, in the queue.
                    unsafe { self.leave(waiter) };
                }
                (is_mine, is_first)
            });
            match gave_up {
                _ if is_mine => {}
                Some(gave_up) => return Err(gave_up),
                None if is_first && self.spin_as_waiter(me, limit) => locked(&self.wait_lock, || {
                    // SAFETY: under `wait_lock`, in the queue.
                    unsafe { self.leave(waiter) };
                }),
                None => continue,
            }
            P::count(LockEvent::MutexAfterSleep);
            return Ok(());
        }
    }

    fn spin_as_waiter(&self, me: ThreadId, limit: &Limit<'_, P>) -> bool {
        T::waiter_spins() && self.is_worth_spinning() && self.spin(me, &mut Spin::default(), limit)
    }

    /// Takes the waiter out of the queue, and clears the flags if it was the last.
    ///
    /// Safety: the caller holds `wait_lock`; the waiter is in the queue.
    unsafe fn leave(&self, waiter: &Waiter<P>) {
        // SAFETY: the caller's.
        unsafe { self.waiters.remove(waiter) };
        if self.waiters.is_empty() {
            // * -> *&!(w|h|p). Relaxed: nothing is published.
            let word = self.word.fetch_and(!FLAGS, Relaxed);
            assert_legal(word);
        }
    }

    #[cold]
    #[inline(never)]
    fn unlock_slow(&self, mut word: u32) {
        P::in_slow_path(|| {
            assert_legal(word);
            while word & HANDOFF == 0 {
                // t|w -> w
                // Ordering: Release, as in `unlock`. Relaxed on failure, where the loop only tries
                // again.
                match self.word.compare_exchange(word, word & FLAGS, Release, Relaxed) {
                    Ok(_) if word & WAITERS == 0 => return,
                    Ok(_) => break,
                    Err(seen) => word = seen,
                }
            }
            let call = locked(&self.wait_lock, || {
                let first = self.waiters.first();
                // SAFETY: waiters in the queue are alive while `wait_lock` is held.
                let first = unsafe { first.as_ref() };
                if word & HANDOFF != 0 {
                    self.hand_over(first);
                }
                first.and_then(Waiter::wake)
            });
            if let Some(call) = call {
                P::count(LockEvent::MutexWake);
                call.make();
            }
        });
    }

    /// t|w|h -> f|w|p, or t -> 0 if the queue is empty by now. By the holder, under `wait_lock`. No
    /// other thread writes the word now: after HANDOFF, it changes only under `wait_lock`.
    fn hand_over(&self, first: Option<&Waiter<P>>) {
        P::count(LockEvent::MutexHandOver);
        let handed = first.map_or(0, |first| first.note.load(Relaxed) << OWNER_SHIFT | WAITERS | PICKUP);
        // Ordering: Release, pairs with the Acquires in `lock_within` and `try_take`: our section
        // happens before the next. If no waiter is left, the next thread takes the mutex by the
        // word alone.
        self.word.store(handed, Release);
    }
}

// SAFETY: the owner in the word changes from none, or from one that hands over, to a thread that
// takes the mutex or picks it up (invariant 1). Release and Acquire on the word order the sections.
unsafe impl<P, T: MutexTuning, W: WaitLock> RawLock for LinuxMutex<P, T, W>
where
    P: ParkTimeout + Schedule + LocalNodes<osq::Node<P>>,
{
    type Node = ();

    #[inline]
    unsafe fn lock(&self, node: &()) {
        // SAFETY: the caller's.
        let locked = unsafe { self.lock_within(node, &Limit::NONE) };
        debug_assert!(locked.is_ok(), "gave up without a limit");
    }

    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        // The owner is read from the word, since the thread's id may have changed. Relaxed: only
        // the holder changes it.
        let word = self.word.load(Relaxed);
        // t -> 0
        // Ordering: Release, pairs with the Acquires in `lock_within` and `try_take`: our section
        // happens before the next. Relaxed on failure, where the slow path tries again.
        if word & FLAGS != 0 || self.word.compare_exchange(word, 0, Release, Relaxed).is_err() {
            self.unlock_slow(self.word.load(Relaxed));
        }
    }
}

// SAFETY: as above.
unsafe impl<P, T: MutexTuning, W: WaitLock> RawTryLock for LinuxMutex<P, T, W>
where
    P: ParkTimeout + Schedule + LocalNodes<osq::Node<P>>,
{
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        self.try_take(P::thread_id(), Wish::Nothing).is_ok()
    }

    #[inline]
    fn is_locked(&self) -> bool {
        owner_of(self.word.load(Relaxed)).is_some()
    }
}

// SAFETY: as above; a waiter that gives up has failed to take the mutex.
unsafe impl<P, T: MutexTuning, W: WaitLock> RawTimedLock for LinuxMutex<P, T, W>
where
    P: ParkTimeout + Schedule + LocalNodes<osq::Node<P>>,
{
    type Platform = P;

    #[inline]
    unsafe fn lock_within(&self, _node: &(), limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        let me = P::thread_id();
        // 0 -> t
        // Ordering: Acquire, pairs with the Releases in `unlock`, `unlock_slow` and `hand_over`:
        // the last section happens before ours. Relaxed on failure, where nothing is read through
        // the value.
        match self.word.compare_exchange(0, owned_by(me), Acquire, Relaxed) {
            Ok(_) => Ok(()),
            Err(_) => self.lock_slow(me, limit),
        }
    }
}

#[cfg(test)]
mod tests;
