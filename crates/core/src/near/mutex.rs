//! Mutex that is released by a plain store: the lock for programs.
//!
//! ```text
//! word      0 free | 1 held                                             the whole lock
//! summons   how many waiters of the chain want a release to come to it  the chain's, beside its lock
//! line      the lock's waiters in the chain, in the order of their coming; records on their stacks
//!
//!  0 -> 1   `take`: whoever swaps 0 out holds the mutex
//!  1 -> 0   `free`: its holder
//!  1 -> 1   a hand-over: the mutex changes hands, and the word does not change
//! ```
//! A [chain](crate::freebsd::chain) is a place in the platform's table, found by the lock's address.
//!
//! **A waiter.** A newcomer looks for some pauses, and then stands in line. *The first in line* looks at the word, ever less
//! often, for `PATIENCE_NS`. Then it summons the next release, looks for as long again, and sleeps. *All others* sleep at
//! once. Whoever is first and gets the mutex leaves the line, and makes the next one first.
//!
//! **A release.** With no summons in the chain it stores 0, does the light side of the asymmetric fence, and looks at the
//! summons again: no read-modify-write, and no other thread is woken while the first in line has not asked for it. With summons
//! it goes to the chain. If the lock's first in line has summoned it, then one that is awake is given the mutex, and so is one that has
//! been first for `DUE_NS`; any other is woken, and competes with newcomers.
//!
//! 1. Only a thread that swaps 0 out of the word, or is handed the mutex by its holder, holds it.
//! 2. Of a line that is not empty, the first is awake, and will look at the word before it sleeps; or holds the mutex, and will
//!    leave the line; or has summoned the next release. That is the first one's business alone: others need no fence, and their
//!    coming is nothing that a release must know. So others may be put there asleep, as a condition variable does.
//! 3. A summons is raised and lowered under the chain's lock, and noted on its waiter.
//!
//! **Why no wake-up is lost.** Let the first in line sleep. It has summoned, passed the heavy side of the fence, and then found the
//! mutex held by some H. H's release stores 0, passes the light side, and then reads the summons. By the fence's contract
//! the first has seen the 0, which it has not, or the release sees the summons, and goes to the chain. That there is a summons
//! of the chain's is enough: it stays until the waiter has been woken. If the first was made so while it slept, then by a
//! thread that held the mutex, which raised the summons itself. Its own release sees it, as does that of whoever it is handed to.
//! A release that looks at the summons first, and finds some, stores 0 under the chain's lock; whoever is first, and summons later,
//! takes that lock later, and so sees the 0.
//!
//! **Nothing of the mutex is read once it is free**: the summons are in a table that is never freed, and of the mutex a release
//! needs the address alone. So whoever finds it free may free its memory, also where no borrow keeps the mutex alive. A late
//! release may come to waiters of a new lock at the same address. It wakes a waiter for no reason then, which bears it. The price is
//! that summons of one lock have releases of others in the same chain look there, too.
//!
//! **What it costs.** Uncontended, a swap and a store. Contended, one membarrier for each time that the first in line falls
//! asleep, not for each sleeper: and while it looks, which is most of the time, releases stay plain stores.
//! Where the platform has no membarrier its light fence is an ordinary one, and the release as dear as an atomic one.
//!
//! Fairness: newcomers take the mutex as long as the first in line has not asked. Who is first and awake is given it at the first
//! release that sees its summons, about `PATIENCE_NS` later; at most one foreign section is in between, that of a release
//! that has missed it. Who is first and has no processor, or sleeps, is given it by the first release after `DUE_NS` that the next
//! one in line, or the summons themselves, bring to the chain. The line is first come, first served. [`unlock_fair`](NearMutex::unlock_fair) hands over
//! to the first in line at once.
//!
//! Source: own. The fence: Dice, Huang, Yang, "Asymmetric Dekker synchronization", 2001; the bound on barging: WebKit's
//! `WTF::Lock` and parking_lot (0.5 ms); that waiters beyond the first be kept off the lock: Dice, "Malthusian locks",
//! EuroSys 2017.

mod line;

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use self::line::{Line, Place};
use super::Host;
use crate::events::LockEvent;
use crate::platform::{Atomic, Platform};
use crate::raw::{RawLock, RawTimedLock, RawTryLock};
use crate::schedule::Spin;
use crate::waiter::{Chosen, GaveUp, Limit, Signal, Waiter};

const FREE: u32 = 0;
const HELD: u32 = 1;

/// How often a newcomer looks before it stands in line: with pauses of 1, 2, 4 and then 8 between, some 1.5 us at 13 ns for a pause, and 5 us
/// at 45 ns (Skylake). With 1 it stands in line at once, and a section of 100 ns that it meets costs it the way to the
/// chain; with many more, newcomers keep disturbing the holder's line.
const NEWCOMER_LOOKS: u32 = 16;
/// Pauses between two looks of a newcomer, at most.
const NEWCOMER_STRIDE: u32 = 8;
/// Pauses between two looks of the first in line, at most: 3.3 us at 13 ns. With fewer it takes the line of the word from a holder that
/// locks again and again; with more, a mutex that is free is noticed late.
const FIRST_STRIDE: u32 = 256;
/// The same of one that has summoned a release: what it waits for comes to its own record.
const SUMMONED_STRIDE: u32 = 4;
/// How long the first in line looks before it summons a release, and once more before it sleeps, in ns. Also how long those may
/// go on who lock again and again, before the next in line has its turn: each turn costs the wake-up of a sleeper, some
/// us, so a tenth of that time or less. At 0 it is handed over at each release; at a second the first in line may wait so long.
const PATIENCE_NS: u64 = 20_000;
/// How long somebody is first in line until a release hands the mutex over to it though it sleeps, in ns. As long as it takes to wake it, the
/// mutex serves nobody, which may be 50 us. parking_lot's mean is the same. At 0 it is handed over from sleeper to sleeper; at a second
/// a thread that finds no processor may wait so long.
const DUE_NS: u64 = 500_000;
/// Pauses between two looks at the clock, which costs about two.
const PAUSES_PER_CLOCK: u32 = 64;

/// How a spell of spinning ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spell {
    /// With the mutex.
    Took,
    /// With a signal.
    Signalled,
    /// In vain.
    Over,
}

/// Whether a release hands the mutex over to the first in line, whatever it waits for.
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
        // Ordering: Acquire, pairs with the Release in `free`: the last section happens before ours.
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

impl<P: Host> NearMutex<P> {
    /// Whether a release must come to the chain of the mutex at this address. Relaxed: what is read there is under the chain's
    /// lock, and that there is something to read is the fences' business.
    #[inline(always)]
    fn is_summoned(lock: *const Self) -> bool {
        // SAFETY: a chain is valid as long as the platform instance.
        unsafe { &*P::chain(lock.cast()) }.summons().load(Relaxed) != 0
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        P::count(LockEvent::Slowpath);
        P::in_slow_path(|| {
            let mut spin = Spin::default();
            if self.take_as_newcomer(&mut spin) {
                P::count(LockEvent::MutexOptLock);
                return Ok(());
            }
            if let Some(why) = limit.is_reached() {
                return Err(why);
            }
            debug_assert!(P::section_depth() == 0, "sleeps in the section of a spin lock");
            P::with_record(|waiter: &Waiter<P>| {
                limit.watch(waiter, || self.stand_in_line(waiter, &mut spin, limit))
            })
        })
    }

    /// The looks of one that has no place in line.
    fn take_as_newcomer(&self, spin: &mut Spin) -> bool {
        let mut stride = 1;
        for _ in 0..NEWCOMER_LOOKS {
            if P::should_give_way(spin) {
                return false;
            }
            P::pause(stride, 0);
            spin.paused(stride);
            if self.take_if_free() {
                return true;
            }
            stride = (stride * 2).min(NEWCOMER_STRIDE);
        }
        false
    }

    /// From coming to the line to leaving it.
    fn stand_in_line(&self, waiter: &Waiter<P>, spin: &mut Spin, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        // SAFETY: fresh; it leaves the line below, or is granted the mutex, which is the last that is done to it.
        let place = unsafe { Line::of(self).join(waiter) };
        self.wait_in_line(waiter, place, spin, limit)
    }

    /// From a place in the line to leaving it.
    fn wait_in_line(
        &self,
        waiter: &Waiter<P>,
        mut place: Place,
        spin: &mut Spin,
        limit: &Limit<'_, P>,
    ) -> Result<(), GaveUp> {
        let mut how = LockEvent::MutexAtOnce;
        loop {
            if place == Place::First && self.take_as_first(waiter, spin, limit) {
                // SAFETY: in the line, since nobody but us could hand over a mutex that we hold.
                unsafe { Line::of(self).leave_with_mutex(waiter) };
                P::count(how);
                return Ok(());
            }
            if !waiter.is_signalled() {
                how = LockEvent::MutexAfterSleep;
                P::count(LockEvent::MutexSleep);
            }
            match waiter.rest_within(limit) {
                Ok(Signal::Granted) => {
                    P::count(how);
                    return Ok(());
                }
                Ok(Signal::Woken) if place == Place::First => {}
                Ok(Signal::Woken) => place = Line::of(self).place_of(waiter),
                Err(why) => {
                    // SAFETY: it has been in the line.
                    return match unsafe { Line::of(self).give_up(waiter) } {
                        Ok(()) => Err(why),
                        Err(_granted) => {
                            // On its way, and the last that is done to the waiter.
                            while waiter.rest() != Signal::Granted {}
                            Ok(())
                        }
                    };
                }
            }
        }
    }

    /// Locks the mutex for a waiter whom others put into the line, now or soon; or returns when they grant it something else.
    pub(super) fn lock_when_put_in_line(&self, waiter: &Waiter<P>) {
        let place = Line::of(self).place_of(waiter);
        // It does not end without the mutex.
        _ = self.wait_in_line(waiter, place, &mut Spin::default(), &Limit::NONE);
    }

    /// Puts waiters at the end of the line, in their order; wakes whoever becomes first by that, and lets the others sleep. Only
    /// the address of the mutex is used.
    ///
    /// Safety: they are in no queue, and go to [`lock_when_put_in_line`](Self::lock_when_put_in_line).
    pub(super) unsafe fn put_in_line(lock: *const Self, waiters: Chosen<P>) {
        // SAFETY: the caller's.
        unsafe { Line::of(lock).adopt(waiters) };
    }

    /// What the first in line does before it sleeps.
    fn take_as_first(&self, waiter: &Waiter<P>, spin: &mut Spin, limit: &Limit<'_, P>) -> bool {
        match self.look(waiter, FIRST_STRIDE, spin, limit) {
            Spell::Took => return true,
            Spell::Signalled => return false,
            Spell::Over => {}
        }
        Line::of(self).summon(waiter);
        match self.look(waiter, SUMMONED_STRIDE, spin, limit) {
            Spell::Took => return true,
            Spell::Signalled => return false,
            Spell::Over => {}
        }
        // Dekker's pattern, with `unlock`: the summons before it, the look at the word after it.
        P::heavy();
        self.take()
    }

    /// Looks at the word for a while, with up to so many pauses between, and at what has come to the waiter.
    fn look(&self, waiter: &Waiter<P>, stride_max: u32, spin: &mut Spin, limit: &Limit<'_, P>) -> Spell {
        // Its time begins anew; its looks are counted on.
        *spin = Spin { turns: spin.turns, ..Spin::default() };
        let (mut stride, mut since_clock, mut until_ns) = (1, PAUSES_PER_CLOCK, None);
        loop {
            if P::should_give_way(spin) {
                return Spell::Over;
            }
            if since_clock >= PAUSES_PER_CLOCK {
                let now_ns = P::now_ns();
                let end_ns = *until_ns.get_or_insert_with(|| {
                    let end_ns = now_ns.saturating_add(PATIENCE_NS);
                    limit.until_ns.map_or(end_ns, |limit_ns| limit_ns.min(end_ns))
                });
                if now_ns >= end_ns {
                    return Spell::Over;
                }
                since_clock = 0;
            }
            P::pause(stride, 0);
            spin.paused(stride);
            since_clock += stride;
            stride = (stride * 2).min(stride_max);
            if self.take_if_free() {
                return Spell::Took;
            }
            if waiter.is_signalled() {
                return Spell::Signalled;
            }
        }
    }

    /// A release that the chain must hear of.
    #[cold]
    #[inline(never)]
    fn unlock_at_chain(&self, to: To) {
        P::in_slow_path(|| {
            let line = Line::of(self);
            match line.first() {
                Some(first) if to == To::First || line.is_its_turn(first) => {
                    let first = ptr::from_ref(first);
                    // SAFETY: the first in line; the caller holds the mutex.
                    unsafe { line.hand_over(first) };
                }
                _ => {
                    // Under the chain's lock: whoever summons later sees that it is free.
                    self.free();
                    line.wake_first();
                }
            }
        });
    }

    /// After a release that a summons has come too late for, or just not. Of the mutex only the address is left.
    #[cold]
    #[inline(never)]
    fn answer_summons(lock: *const Self) {
        P::in_slow_path(|| Line::of(lock).wake_first());
    }

    /// Releases the mutex; if others wait in line, it is the first one's then.
    ///
    /// # Safety
    ///
    /// As [`RawLock::unlock`].
    #[inline]
    pub unsafe fn unlock_fair(&self) {
        self.unlock_at_chain(To::First);
    }
}

// SAFETY: invariant 1; Release and Acquire on the word order the sections, or the grant does.
unsafe impl<P: Host> RawLock for NearMutex<P> {
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
        let lock = ptr::from_ref(self);
        if Self::is_summoned(lock) {
            return self.unlock_at_chain(To::Anybody);
        }
        self.free();
        // Dekker's pattern, with `take_as_first`: the store before it, the look at the summons after it.
        P::light();
        if Self::is_summoned(lock) {
            Self::answer_summons(lock);
        }
    }
}

// SAFETY: as above.
unsafe impl<P: Host> RawTryLock for NearMutex<P> {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        self.take_if_free()
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) != FREE
    }
}

// SAFETY: whoever gives up is in no line any more, and does not have the mutex.
unsafe impl<P: Host> RawTimedLock for NearMutex<P> {
    type Platform = P;

    #[inline]
    unsafe fn lock_within(&self, _node: &(), limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        if self.take() { Ok(()) } else { self.lock_slow(limit) }
    }
}

#[cfg(test)]
mod tests;
