//! Who waits for the mutex: newcomers, and those in line.

use super::line::{Line, Place};
use super::pace::{Holders, UNIT_SHIFT};
use super::{FREE, NearMutex};
use crate::events::LockEvent;
use crate::near::Host;
use crate::parking::{GaveUp, Limit, Signal, Waiter};
use crate::platform::Atomic;
use crate::schedule::Spin;
use core::sync::atomic::Ordering::Relaxed;

/// How often a newcomer looks before it gives its processor away, or stands in line for a hammered mutex, with delays of 10, 20, 40 and then 80
/// ns between: some 0.5 us. With 16, threads that wait for processors wait for the scheduler's slices, as nobody makes way; with delays three times
/// as long it is noticed late that a mutex is free.
const NEWCOMER_LOOKS: u32 = 8;
/// The delay between two looks of a newcomer, at most, in ns.
const NEWCOMER_STRIDE_NS: u32 = 80;
/// The shortest delay, in ns. Where a pause takes longer it is one pause.
const LEAST_STRIDE_NS: u32 = 10;
/// How often a newcomer gives its processor away before it stands in line, for a mutex that is not hammered. parking_lot does so as often.
const NEWCOMER_YIELDS: u32 = 7;
/// One of so many newcomers, while nobody stands in line, looks whether the mutex is hammered, before it takes it: 60 ns and more.
const NEWCOMERS_PER_PROBE: u32 = 16;
/// Looks, with the shortest delay before each, that a mutex must be free for not to be hammered: 60 ns, or six pauses. One that
/// is taken again at once and held for no time is free every other time that one looks.
const PROBE_LOOKS: u32 = 6;
/// The delay between two looks of the first in line, at most, in ns. With less it takes the line of the word from a holder that
/// locks again and again; with more, a mutex that is free is noticed late.
const FIRST_STRIDE_NS: u32 = 2560;
/// The same of one that has requested a release: what it waits for comes to its own record.
const REQUESTED_STRIDE_NS: u32 = 40;
/// The delay between two looks for a gap between two sections of one thread, at most, in ns.
const GAP_STRIDE_NS: u32 = 160;
/// How long the first in line looks for such a gap before a mutex counts as hammered, or while it does, in ns. With 2.5 us a thread that thinks for 0.5 us
/// between sections of 1 us is taken for one that does not think; with more it is in the way of one that does not: 20 us on the holder's
/// processor are an eighth of its turn.
const GAP_PATIENCE_NS: u64 = 6000;
/// How long the first in line looks before it dozes or requests a release, and once more before it
/// sleeps, in ns. At 0 it is handed over at each release; at a second the first in line may wait so
/// long.
const PATIENCE_NS: u64 = 20_000;
/// How long somebody is first in line for a hammered mutex before it requests a release, in ns: how
/// long those may go on who lock again and again, before the next in line has its turn. Each turn
/// costs two wake-ups, some 10 us. At `PATIENCE_NS` or less the first in line never dozes; at a
/// second it may wait so long.
const TURN_NS: u64 = 100_000;
const TURN_UNITS: u32 = (TURN_NS >> UNIT_SHIFT) as u32;
/// Delays between two looks at the clock, which costs some 20 ns, in ns.
const CLOCK_NS: u32 = 640;

/// How a spell of spinning ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spell {
    /// With the mutex.
    Took,
    /// With a signal.
    Signalled,
    /// In vain.
    Over,
}

/// What a look must show of a mutex for the looker to take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taking {
    /// That it is free.
    Free,
    /// That it stays free for a while, if one thread may take it again at once.
    StaysFree,
    /// The same, with looks that are so close that few of the times are missed at which it does; but for a shorter time.
    InGap,
}

impl Taking {
    /// The delay between two looks, at most, in ns.
    fn stride_max_ns(self) -> u32 {
        match self {
            Self::Free => REQUESTED_STRIDE_NS,
            Self::StaysFree => FIRST_STRIDE_NS,
            Self::InGap => GAP_STRIDE_NS,
        }
    }

    /// For how long to look, in ns.
    fn patience_ns(self) -> u64 {
        match self {
            Self::Free | Self::StaysFree => PATIENCE_NS,
            Self::InGap => GAP_PATIENCE_NS,
        }
    }
}

impl<P: Host> NearMutex<P> {
    #[cold]
    #[inline(never)]
    pub(super) fn lock_slow(&self, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        P::count(LockEvent::Slowpath);
        P::in_slow_path(|| {
            let mut spin = Spin::default();
            if self.take_as_newcomer(NEWCOMER_YIELDS, &mut spin, limit) {
                P::count(LockEvent::MutexOptLock);
                return Ok(());
            }
            if let Some(why) = limit.is_reached() {
                return Err(why);
            }
            P::assert_may_sleep();
            P::with_record(|waiter: &Waiter<P>| {
                limit.watch(waiter, || self.stand_in_line(waiter, &mut spin, limit))
            })
        })
    }

    /// The looks of one that has no place in line, some of them after it has given its processor away.
    fn take_as_newcomer(&self, yields: u32, spin: &mut Spin, limit: &Limit<'_, P>) -> bool {
        let pace = Self::pace(self);
        let mut stride_ns = LEAST_STRIDE_NS;
        for look in 0..NEWCOMER_LOOKS + yields {
            let is_in_vain = look >= NEWCOMER_LOOKS && pace.holders() == Holders::One;
            if is_in_vain || P::should_give_way(spin) {
                return false;
            }
            if look < NEWCOMER_LOOKS {
                Self::pause(stride_ns, spin);
                stride_ns = (stride_ns * 2).min(NEWCOMER_STRIDE_NS);
            } else if limit.is_reached().is_some() {
                return false;
            } else {
                P::sched_yield();
            }
            if self.word.load(Relaxed) == FREE && self.take_free_as_newcomer(spin) {
                return true;
            }
        }
        false
    }

    /// A newcomer has found it free, and takes it: a hammered one if it stays free.
    fn take_free_as_newcomer(&self, spin: &mut Spin) -> bool {
        let pace = Self::pace(self);
        let may_probe =
            || P::random_u32() % NEWCOMERS_PER_PROBE == 0 && !Self::count(self).read().has_waiters();
        match pace.holders() {
            Holders::One => {
                let takes = self.stays_free(spin) && self.take();
                if takes {
                    pace.note_shared();
                }
                takes
            }
            Holders::Several if may_probe() && !self.stays_free(spin) => {
                pace.note_retaken();
                false
            }
            Holders::Several => self.take(),
        }
    }

    /// From coming to the line to leaving it.
    fn stand_in_line(&self, waiter: &Waiter<P>, spin: &mut Spin, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        // Before the chain is locked: it may be a system call.
        let node = P::numa_node();
        // SAFETY: fresh; it leaves the line below, or is let go, or is granted the mutex, which is the last that is done to it.
        let place = unsafe { Line::of(self).join(waiter, node) };
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
            match place {
                Place::First if self.take_as_first(waiter, spin, limit) => {
                    // SAFETY: in the line, since nobody but us could hand over a mutex that we hold.
                    unsafe { Line::of(self).leave_with_mutex(waiter) };
                    P::count(how);
                    return Ok(());
                }
                Place::Loose => {
                    *spin = Spin::default();
                    // It has been woken for this, so makes way for nobody. It does not sleep without a swap that has found the mutex held: a
                    // newcomer may look at nothing, or leave alone what it finds free.
                    if self.take_as_newcomer(0, spin, limit) || self.take() {
                        P::count(how);
                        return Ok(());
                    }
                    let node = P::numa_node();
                    // SAFETY: it has been let go from the line, and as when it came first.
                    place = unsafe { Line::of(self).join(waiter, node) };
                    continue;
                }
                Place::First | Place::Behind => {}
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
    pub(in crate::near) fn lock_when_put_in_line(&self, waiter: &Waiter<P>) {
        let place = Line::of(self).place_of(waiter);
        // It does not end without the mutex.
        _ = self.wait_in_line(waiter, place, &mut Spin::default(), &Limit::NONE);
    }

    /// What the first in line does before it sleeps.
    pub(super) fn take_as_first(&self, waiter: &Waiter<P>, spin: &mut Spin, limit: &Limit<'_, P>) -> bool {
        let spell = match Line::has_requested(waiter) {
            true => Spell::Over,
            false => self.look_before_request(waiter, spin, limit),
        };
        let spell = match spell {
            Spell::Over if limit.is_reached().is_none() => {
                Line::of(self).request(waiter);
                self.look(waiter, Taking::Free, spin, limit)
            }
            spell => spell,
        };
        match spell {
            Spell::Took => true,
            Spell::Signalled => false,
            Spell::Over => self.take_behind_fence(waiter, limit),
        }
    }

    /// The first in line looks, and leaves a hammered mutex alone until it is its turn. One that is known to be hammered is looked at for a moment:
    /// who has just been woken may have the processor of its holder.
    pub(super) fn look_before_request(
        &self,
        waiter: &Waiter<P>,
        spin: &mut Spin,
        limit: &Limit<'_, P>,
    ) -> Spell {
        let pace = Self::pace(self);
        let releases = pace.releases();
        let mut spell = match pace.holders() {
            Holders::One => self.look(waiter, Taking::InGap, spin, limit),
            Holders::Several => Spell::Over,
        };
        let is_known = pace.holders() == Holders::One && pace.releases() != releases;
        if spell == Spell::Over && !is_known {
            spell = self.look(waiter, Taking::StaysFree, spin, limit);
            if spell == Spell::Over && pace.releases() == releases {
                return spell;
            }
            if spell == Spell::Over && pace.has_one_looker() {
                spell = self.look(waiter, Taking::InGap, spin, limit);
            }
        }
        match spell {
            Spell::Took => pace.note_shared(),
            Spell::Signalled => {}
            Spell::Over if limit.is_reached().is_some() => {}
            Spell::Over if !is_known && !pace.has_one_looker() => pace.note_shared(),
            Spell::Over => return self.doze_until_turn(waiter, limit),
        }
        spell
    }

    /// The first in line for a hammered mutex.
    fn doze_until_turn(&self, waiter: &Waiter<P>, limit: &Limit<'_, P>) -> Spell {
        Self::pace(self).note_retaken();
        let left_units = TURN_UNITS.saturating_sub(Line::first_for_units(waiter));
        let turn_ns = P::now_ns().saturating_add(u64::from(left_units) << UNIT_SHIFT);
        waiter.doze_until(limit.until_ns.map_or(turn_ns, |limit_ns| limit_ns.min(turn_ns)));
        if waiter.is_signalled() { Spell::Signalled } else { Spell::Over }
    }

    /// The heavy side of Dekker's pattern, with `unlock`: the request before it, a look at the word
    /// after it. As long as it may not be passed, since a waiter of this chain has passed it a
    /// moment ago, it sleeps by the clock, and a release that has missed the request may let it do
    /// so. True if it has the mutex. If not, and it has not passed the fence, there is a signal, or
    /// the limit is reached: it does not sleep then.
    fn take_behind_fence(&self, waiter: &Waiter<P>, limit: &Limit<'_, P>) -> bool {
        while !waiter.is_signalled() && limit.is_reached().is_none() {
            let Err(from_ns) = Self::pace(self).fence() else {
                P::heavy();
                return self.take();
            };
            if self.take_if_free() {
                return true;
            }
            waiter.doze_until(limit.until_ns.map_or(from_ns, |limit_ns| limit_ns.min(from_ns)));
        }
        false
    }

    /// Looks at the word for a while, and at what has come to the waiter: rarely at a mutex that may be hammered.
    pub(super) fn look(
        &self,
        waiter: &Waiter<P>,
        taking: Taking,
        spin: &mut Spin,
        limit: &Limit<'_, P>,
    ) -> Spell {
        // Its time begins anew; its looks are counted on.
        *spin = Spin { turns: spin.turns, ..Spin::default() };
        let (mut stride_ns, mut since_clock_ns, mut until_ns) = (LEAST_STRIDE_NS, CLOCK_NS, None);
        loop {
            if P::should_give_way(spin) {
                return Spell::Over;
            }
            if since_clock_ns >= CLOCK_NS {
                let now_ns = P::now_ns();
                let end_ns = *until_ns.get_or_insert_with(|| {
                    let end_ns = now_ns.saturating_add(taking.patience_ns());
                    limit.until_ns.map_or(end_ns, |limit_ns| limit_ns.min(end_ns))
                });
                if now_ns >= end_ns {
                    return Spell::Over;
                }
                since_clock_ns = 0;
            }
            Self::pause(stride_ns, spin);
            since_clock_ns += stride_ns;
            stride_ns = (stride_ns * 2).min(taking.stride_max_ns());
            let is_free = self.word.load(Relaxed) == FREE;
            if is_free && self.may_be_had(taking, spin) && self.take() {
                return Spell::Took;
            }
            if waiter.is_signalled() {
                return Spell::Signalled;
            }
        }
    }

    /// Whether whoever finds it free should take it. While several threads release it, it is had by who is quick.
    fn may_be_had(&self, taking: Taking, spin: &mut Spin) -> bool {
        taking == Taking::Free || !Self::pace(self).may_have_one_holder() || self.stays_free(spin)
    }

    /// Whether it stays free for as long as those need who take it again at once.
    fn stays_free(&self, spin: &mut Spin) -> bool {
        (0..PROBE_LOOKS).all(|_| {
            Self::pause(LEAST_STRIDE_NS, spin);
            self.word.load(Relaxed) == FREE
        })
    }

    /// Pauses for so long.
    fn pause(ns: u32, spin: &mut Spin) {
        let pauses = P::pauses_in(ns);
        P::pause(pauses, 0);
        spin.paused(pauses);
    }
}
