//! Threads that wait for the mutex: newcomers, and those in the queue.

use core::sync::atomic::Ordering::Relaxed;

use super::hints::{Holders, UNIT_SHIFT};
use super::queue::{Place, WaitQueue};
use super::{FREE, NearMutex};
use crate::events::LockEvent;
use crate::near::NearPlatform;
use crate::parking::{GaveUp, Limit, Signal, Waiter};
use crate::platform::Atomic;
use crate::schedule::Spin;

/// How often a newcomer looks before it yields its processor, or joins the queue of a monopolised
/// mutex, with delays of 10, 20, 40 and then 80 ns between: some 0.5 us. With 16, threads that wait
/// for processors wait for the scheduler's slices, as no thread yields; with delays three times as
/// long it is noticed late that a mutex is free.
const NEWCOMER_LOOKS: u32 = 8;
/// The delay between two looks of a newcomer, at most, in ns.
const NEWCOMER_STRIDE_NS: u32 = 80;
/// The shortest delay, in ns. Where a pause takes longer it is one pause.
const LEAST_STRIDE_NS: u32 = 10;
/// How often a newcomer yields its processor before it joins the queue of a mutex that is not
/// monopolised. parking_lot does so as often.
const NEWCOMER_YIELDS: u32 = 7;
/// While no thread is in the queue, one of so many newcomers looks whether the mutex is monopolised
/// before it takes it: 60 ns and more.
const NEWCOMERS_PER_PROBE: u32 = 16;
/// For how many looks, with the shortest delay before each, a mutex must be free not to be
/// monopolised: 60 ns, or six pauses. One that is taken again at once and held for no time is free
/// at every other look.
const PROBE_LOOKS: u32 = 6;
/// The delay between two looks of the first in the queue, at most, in ns. With less it takes the
/// cache line of the word from a holder that locks again and again; with more it notices late that
/// the mutex is free.
const FIRST_STRIDE_NS: u32 = 2560;
/// The same of one that has made a wake request: what it waits for comes to its own record.
const REQUESTED_STRIDE_NS: u32 = 40;
/// The delay between two looks for a gap between two sections of one thread, at most, in ns.
const GAP_STRIDE_NS: u32 = 160;
/// How long the first in the queue looks for such a gap before a mutex counts as monopolised, or
/// while it does, in ns. With 2.5 us a thread that thinks for 0.5 us between sections of 1 us is
/// taken for one that does not think; with more it is in the way of one that does not: 20 us on the
/// holder's processor are an eighth of its turn.
const GAP_PATIENCE_NS: u64 = 6000;
/// How long the first in the queue looks before it parks for a turn or makes a wake request, and
/// once more before it parks without a limit, in ns. At 0 the mutex is handed over at each release;
/// at a second the first in the queue may wait so long.
const PATIENCE_NS: u64 = 20_000;
/// How long a waiter is first in the queue for a monopolised mutex before it makes a wake request,
/// in ns: how long a thread may lock again and again before the next in the queue has its turn.
/// Each turn costs two wake-ups, some 10 us. At `PATIENCE_NS` or less the first in the queue never
/// parks for a turn; at a second it may wait so long.
const TURN_NS: u64 = 100_000;
const TURN_UNITS: u32 = (TURN_NS >> UNIT_SHIFT) as u32;
/// Delays between two looks at the clock, which costs some 20 ns, in ns.
const CLOCK_NS: u32 = 640;

/// How spinning ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpinEnd {
    /// With the mutex.
    Took,
    /// With a signal.
    Signalled,
    /// With neither: its time is over.
    Over,
}

/// What a look must show of a mutex for the thread to take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taking {
    /// That it is free.
    Free,
    /// That it stays free for a while, if one thread may take it again at once.
    StaysFree,
    /// The same, with looks so close that few of the times when it does are missed; but for a
    /// shorter time.
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

impl<P: NearPlatform> NearMutex<P> {
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
                limit.watch(waiter, || self.join_queue(waiter, &mut spin, limit))
            })
        })
    }

    /// The looks of a thread that is not in the queue, some of them after it has yielded its
    /// processor.
    fn take_as_newcomer(&self, yields: u32, spin: &mut Spin, limit: &Limit<'_, P>) -> bool {
        let hints = Self::hints(self);
        let mut stride_ns = LEAST_STRIDE_NS;
        for look in 0..NEWCOMER_LOOKS + yields {
            let is_hopeless = look >= NEWCOMER_LOOKS && hints.holders() == Holders::One;
            if is_hopeless || P::should_give_way(spin) {
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

    /// A newcomer has found the mutex free, and takes it: a monopolised one if it stays free.
    fn take_free_as_newcomer(&self, spin: &mut Spin) -> bool {
        let hints = Self::hints(self);
        let may_probe =
            || P::random_u32() % NEWCOMERS_PER_PROBE == 0 && !Self::count(self).read().has_waiters();
        match hints.holders() {
            Holders::One => {
                let takes = self.stays_free(spin) && self.take();
                if takes {
                    hints.note_shared();
                }
                takes
            }
            Holders::Several if may_probe() && !self.stays_free(spin) => {
                hints.note_retaken();
                false
            }
            Holders::Several => self.take(),
        }
    }

    /// From coming to the queue to leaving it.
    fn join_queue(&self, waiter: &Waiter<P>, spin: &mut Spin, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        // Before the chain is locked: it may be a system call.
        let node = P::numa_node();
        // SAFETY: fresh; it leaves the queue below, or is dequeued, or is granted the mutex, which
        // is the last that is done to it.
        let place = unsafe { WaitQueue::of(self).join(waiter, node) };
        self.wait_in_queue(waiter, place, spin, limit)
    }

    /// From a place in the queue to leaving it.
    fn wait_in_queue(
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
                    // SAFETY: in the queue, since only we could hand over a mutex that we
                    // hold.
                    unsafe { WaitQueue::of(self).leave_with_mutex(waiter) };
                    P::count(how);
                    return Ok(());
                }
                Place::Dequeued => {
                    *spin = Spin::default();
                    // It has been woken for this, so it does not yield. It does not park without a
                    // swap that has found the mutex held: a newcomer may look at nothing, or not
                    // take what it finds free.
                    if self.take_as_newcomer(0, spin, limit) || self.take() {
                        P::count(how);
                        return Ok(());
                    }
                    let node = P::numa_node();
                    // SAFETY: it has been dequeued, and as when it came first.
                    place = unsafe { WaitQueue::of(self).join(waiter, node) };
                    continue;
                }
                Place::First | Place::Behind => {}
            }
            if !waiter.is_signalled() {
                how = LockEvent::MutexAfterSleep;
                P::count(LockEvent::MutexSleep);
            }
            match waiter.park_within(limit) {
                Ok(Signal::Granted) => {
                    P::count(how);
                    return Ok(());
                }
                Ok(Signal::Woken) => place = WaitQueue::of(self).place_of(waiter),
                Err(why) => {
                    // SAFETY: it has been in the queue.
                    return match unsafe { WaitQueue::of(self).give_up(waiter) } {
                        Ok(()) => Err(why),
                        Err(_granted) => {
                            // On its way, and the last that is done to the waiter.
                            while waiter.park() != Signal::Granted {}
                            Ok(())
                        }
                    };
                }
            }
        }
    }

    /// Locks the mutex for a waiter that others put into the queue, now or soon; or returns when
    /// they grant it something else.
    pub(in crate::near) fn lock_when_requeued(&self, waiter: &Waiter<P>) {
        let place = WaitQueue::of(self).place_of(waiter);
        // It does not end without the mutex.
        _ = self.wait_in_queue(waiter, place, &mut Spin::default(), &Limit::NONE);
    }

    /// What the first in the queue does before it parks without a limit.
    pub(super) fn take_as_first(&self, waiter: &Waiter<P>, spin: &mut Spin, limit: &Limit<'_, P>) -> bool {
        let end = match WaitQueue::has_requested(waiter) {
            true => SpinEnd::Over,
            false => self.look_before_request(waiter, spin, limit),
        };
        let end = match end {
            SpinEnd::Over if limit.is_reached().is_none() => {
                WaitQueue::of(self).request(waiter);
                self.look(waiter, Taking::Free, spin, limit)
            }
            end => end,
        };
        match end {
            SpinEnd::Took => true,
            SpinEnd::Signalled => false,
            SpinEnd::Over => self.take_behind_fence(waiter, limit),
        }
    }

    /// The first in the queue looks, and does not take a monopolised mutex until it is its turn. At
    /// one that is known to be monopolised it looks for a moment: a thread that has just been
    /// woken may have the processor of the holder.
    pub(super) fn look_before_request(
        &self,
        waiter: &Waiter<P>,
        spin: &mut Spin,
        limit: &Limit<'_, P>,
    ) -> SpinEnd {
        let hints = Self::hints(self);
        let releases = hints.releases();
        let mut end = match hints.holders() {
            Holders::One => self.look(waiter, Taking::InGap, spin, limit),
            Holders::Several => SpinEnd::Over,
        };
        let is_known = hints.holders() == Holders::One && hints.releases() != releases;
        if end == SpinEnd::Over && !is_known {
            end = self.look(waiter, Taking::StaysFree, spin, limit);
            if end == SpinEnd::Over && hints.releases() == releases {
                return end;
            }
            if end == SpinEnd::Over && hints.has_one_looker() {
                end = self.look(waiter, Taking::InGap, spin, limit);
            }
        }
        match end {
            SpinEnd::Took => hints.note_shared(),
            SpinEnd::Signalled => {}
            SpinEnd::Over if limit.is_reached().is_some() => {}
            SpinEnd::Over if !is_known && !hints.has_one_looker() => hints.note_shared(),
            SpinEnd::Over => return self.park_until_turn(waiter, limit),
        }
        end
    }

    /// The first in the queue for a monopolised mutex parks until its turn.
    fn park_until_turn(&self, waiter: &Waiter<P>, limit: &Limit<'_, P>) -> SpinEnd {
        Self::hints(self).note_retaken();
        let left_units = TURN_UNITS.saturating_sub(WaitQueue::first_for_units(waiter));
        let turn_ns = P::now_ns().saturating_add(u64::from(left_units) << UNIT_SHIFT);
        waiter.park_until(limit.until_ns.map_or(turn_ns, |limit_ns| limit_ns.min(turn_ns)));
        if waiter.is_signalled() { SpinEnd::Signalled } else { SpinEnd::Over }
    }

    /// The heavy side of Dekker's pattern, with `unlock`: the request before it, a look at the word
    /// after it. As long as the waiter may not pass it, since a waiter of this chain has done so a
    /// moment ago, it parks until it may, and a release that has missed the request may not wake it
    /// earlier. True if it has the mutex. If not, and it has not passed the fence, there is a
    /// signal, or the limit is reached: it does not park then.
    fn take_behind_fence(&self, waiter: &Waiter<P>, limit: &Limit<'_, P>) -> bool {
        while !waiter.is_signalled() && limit.is_reached().is_none() {
            let Err(from_ns) = Self::hints(self).fence() else {
                P::heavy();
                return self.take();
            };
            if self.take_if_free() {
                return true;
            }
            waiter.park_until(limit.until_ns.map_or(from_ns, |limit_ns| limit_ns.min(from_ns)));
        }
        false
    }

    /// Looks at the word for a while, and at what has come to the waiter: rarely at a mutex that
    /// may be monopolised.
    pub(super) fn look(
        &self,
        waiter: &Waiter<P>,
        taking: Taking,
        spin: &mut Spin,
        limit: &Limit<'_, P>,
    ) -> SpinEnd {
        // Its time begins again; its looks are counted on.
        *spin = Spin { turns: spin.turns, ..Spin::default() };
        let (mut stride_ns, mut since_clock_ns, mut until_ns) = (LEAST_STRIDE_NS, CLOCK_NS, None);
        loop {
            if P::should_give_way(spin) {
                return SpinEnd::Over;
            }
            if since_clock_ns >= CLOCK_NS {
                let now_ns = P::now_ns();
                let end_ns = *until_ns.get_or_insert_with(|| {
                    let end_ns = now_ns.saturating_add(taking.patience_ns());
                    limit.until_ns.map_or(end_ns, |limit_ns| limit_ns.min(end_ns))
                });
                if now_ns >= end_ns {
                    return SpinEnd::Over;
                }
                since_clock_ns = 0;
            }
            Self::pause(stride_ns, spin);
            since_clock_ns += stride_ns;
            stride_ns = (stride_ns * 2).min(taking.stride_max_ns());
            let is_free = self.word.load(Relaxed) == FREE;
            if is_free && self.may_be_had(taking, spin) && self.take() {
                return SpinEnd::Took;
            }
            if waiter.is_signalled() {
                return SpinEnd::Signalled;
            }
        }
    }

    /// Whether a thread that finds it free should take it. While several threads release it, the
    /// quickest has it.
    fn may_be_had(&self, taking: Taking, spin: &mut Spin) -> bool {
        taking == Taking::Free || !Self::hints(self).may_have_one_holder() || self.stays_free(spin)
    }

    /// Whether it stays free for as long as a thread needs that takes it again at once.
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
