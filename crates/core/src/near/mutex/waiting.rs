//! How threads wait for the mutex: newcomers, and waiters in the queue. The terms are those of the
//! [mutex](super).
//!
//! `mutex/spinning.rs` has how a thread *spins*: it reads the word again and again.
//!
//! **A newcomer** reads the word `NEWCOMER_LOOKS` times. Then it yields its processor up to
//! `NEWCOMER_YIELDS` times, and reads the word after each. Then it joins the queue. Newcomers to a
//! monopolised mutex do not yield. A newcomer joins the queue at once while the first rests: the
//! mutex is monopolised then. While no thread waits, one of `NEWCOMERS_PER_PROBE` newcomers
//! *probes*. It joins the queue at once, so that releases are counted. If there are many of them in
//! a short time, the mutex is monopolised.
//!
//! **The first in the queue** spins for `PATIENCE_NS`, with longer and longer delays. Meanwhile the
//! mutex may have been released again and again, by the same thread. Then the first spins with
//! short delays for `GAP_PATIENCE_NS`, to find out whether that thread leaves a gap between two
//! critical sections. If it leaves none, the mutex counts as monopolised. Spinning does not help
//! then, and the first *rests*: it parks with an alarm until its turn, `TURN_NS` after it became
//! first. Meanwhile, releases neither count nor visit the chain. They cost as much as without
//! waiters. A waiter that becomes first of a monopolised mutex begins with the short delays. If it
//! has the processor of the holder, the holder cannot release the mutex meanwhile, and the waiter
//! rests at once. A parked waiter that becomes first by a hand-over to a waiter that is awake also
//! rests, while it is being woken. If it has not noticed that when the call which wakes it returns,
//! it does not rest any more. It may have no processor, so releases must look after it.
//!
//! The first makes a wake request when its turn has come, or at once after it has spun if the mutex
//! is not monopolised. It spins for `PATIENCE_NS` again, and parks with an alarm for `ALARM_NS`.
//! Then it passes the heavy side of the fence, tries to take the mutex once more, and parks without
//! an alarm. The chain is strong from then on, as long as releases visit it often. In a strong
//! chain, a waiter passes a strong fence instead, and parks without an alarm at once
//! (`attention.rs`). When the first takes the mutex, it leaves the queue, and makes the next waiter
//! first.
//!
//! **Futile spinning.** Spinning wastes time if the first in the queue has to wait long for each
//! release, or if holders often have no processor (`mutex/hints.rs`). Then a newcomer joins the
//! queue at once. The first in the queue makes its wake request at once, and parks without an
//! alarm: if the chain is not strong, it makes it strong. Apart from that, no thread spins while
//! the word names the thread's own processor as that of the holder.
//!
//! **The waiters behind it** park at once. No waiter in the queue yields its processor. A thread
//! that yields counts as awake, so a release would hand it the mutex although another program has
//! its processor.
//!
//! **A free mutex is not always taken.** The thread that has released it may be about to take it
//! again. So in some cases a thread that finds the mutex free reads the word some times more. It
//! takes the mutex only if it stays free, and if the hints count no release meanwhile.
//!
//! - Newcomers do so if the mutex is monopolised.
//! - A first that has made no wake request does so if the hints say that one thread may release the
//!   mutex.
//!
//! All others take a free mutex at once. These are the first attempt of `lock`, `try_lock`, and a
//! first that has made a wake request. A dequeued waiter does so at its last attempt. If the mutex
//! is not monopolised, it also does so at its first one.
//!
//! **What a monopolised mutex costs.** One thread takes the mutex again and again, from its own
//! cache, until its turn is over. Meanwhile one other thread is awake for a part of the time, and
//! newcomers spin for less than a microsecond. With a hand-over at each release, the cache lines of
//! the mutex and of its data would move each time. With many threads, each has a turn, in the order
//! of arrival. A turn takes 0.25 to 0.37 ms, if the first gets a processor when its alarm goes off.
//! It begins with `TURN_NS`, and with the 0.05 ms by which Linux lets timers be late. Then the
//! first wakes up. If it does not rest yet, the turn ends at the latest at the first visit after
//! the first is due (`MONOPOLISED_DUE_NS`), up to 16 us later. With 64 threads, a wait is up to 63
//! turns: the page `docs/guide/benchmark.md` has the longest one.
//!
//! **Constants.** docs/internals/tuning-mutex.md lists those of all files here, and the other
//! values that were tried. The repository has no command that compares other values. These commands
//! measure the mutex with the present ones:
//!
//! | command | constants | results |
//! |---|---|---|
//! | `nearlock bench` | all: throughput, waits, membarriers | docs/guide/benchmark.md |
//! | `docs/pictures/mutex-section` | `NEWCOMER_LOOKS` | docs/laboratory/simulator-mutexes.md |
//! | `docs/pictures/mutex-section` | `PREFERRED`, `PREFERRED_AMONG` | the same page |
//! | `cargo bench -p nearlock --bench sleepers` | `COUNTS` | docs/guide/cargo-bench.md |
//! | `cargo test -p nearlock-sim --test turns` | `PATIENCE_NS`, `TURN_NS` | asserted bounds |
//! | `cargo test -p nearlock-sim --test turns` | `DUE_NS`, `NODE_TURN_NS` | asserted bounds |
//!
//! `docs/pictures/mutex-section` simulates, takes some minutes, and writes that page and its
//! pictures again. Delays are made of pauses. `nearlock list topology` prints the cost of a pause.
//!
//! Source: own. The bound on overtaking (barging): WebKit's `WTF::Lock`, and parking_lot 0.12,
//! which hands over after 0.5 ms in the mean. Waiters behind the first stay off the lock: Dice,
//! "Malthusian locks", EuroSys 2017. Turns: the lock cohorts of Dice, Marathe and Shavit, PPoPP
//! 2012, with a thread in the place of a NUMA node.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use super::hints::{Hints, HolderPlace, Holders, UNIT_SHIFT};
use super::queue::{Place, WaitQueue};
use super::spinning::{LEAST_STRIDE_NS, SpinEnd, Taking};
use super::{FREE, NearMutex};
use crate::events::LockEvent;
use crate::near::NearPlatform;
use crate::near::attention::Strength;
use crate::parking::{GaveUp, Limit, Signal, Waiter};
use crate::platform::Atomic;
use crate::schedule::Spin;

/// How often a newcomer reads the word before it yields its processor, or before it joins the queue
/// of a monopolised mutex. The delays are 10, 20, 40 and then 80 ns: about 0.5 us in total. It was
/// chosen by `nearlock bench` and by simulation (docs/laboratory/simulator-mutexes.md). At 1 a
/// newcomer yields before a section of 100 ns is over. With 16 reads, so many newcomers find the
/// mutex free by then that hardly any of them yields. Threads without a processor then wait for the
/// end of a time slice (tried: docs/internals/tuning-mutex.md).
const NEWCOMER_LOOKS: u32 = 8;
/// The delay between two reads of a newcomer, at most, in ns. With delays three times as long, a
/// newcomer notices late that the mutex is free (tried, as above). With shorter ones it takes the
/// cache line of the word from the holder more often.
const NEWCOMER_STRIDE_NS: u32 = 80;
/// How often a newcomer yields its processor before it joins the queue of a mutex that is not
/// monopolised. The value was chosen to be that of parking_lot; no comparison with others is kept.
/// At 0 threads that are ready wait for the end of a time slice more often. At a great value
/// newcomers compete without order for longer, by a system call for each yield.
const NEWCOMER_YIELDS: u32 = 7;
/// While no thread waits, one of so many newcomers probes. It was chosen by experiment. With 16,
/// two threads that exchange a mutex after 0.1 us of think time do less work: a probe takes
/// `PROBE_NS`, and the chain is locked twice. With 256, a mutex with sections of 0 ns is sometimes
/// found monopolised so late that throughput suffers (tried: docs/internals/tuning-mutex.md). At 1
/// no newcomer spins.
pub(in crate::near) const NEWCOMERS_PER_PROBE: u32 = 128;
/// How long a waiter is first in the queue for a monopolised mutex before it makes a wake request,
/// in ns. This is how long a thread may lock again and again before the next waiter has its turn.
/// Each turn costs two wake-ups: that of the first by its alarm, and that of the next waiter. With
/// 0.1 ms, waits end sooner. But the wake-ups take some percent of the processor time. And of
/// sections of 100 ns, more than one in a thousand begin with the wait for a turn. With 0.05 ms,
/// much throughput is lost. `MONOPOLISED_DUE_NS` was changed as well in both cases (tried:
/// docs/internals/tuning-mutex.md). At `GAP_PATIENCE_NS` or less, the first never parks until its
/// turn. At a second, it may wait for a second.
const TURN_NS: u64 = 200_000;
const TURN_UNITS: u32 = (TURN_NS >> UNIT_SHIFT) as u32;
/// How long the first in the queue parks with an alarm after its request, in ns, before it passes
/// the heavy side of the fence and parks without. The fence interrupts all running threads of the
/// process, so it is for long sleeps. The value was chosen so that a mutex has fewer than 1000
/// fences a second. `nearlock bench` prints their number, and docs/guide/benchmark.md has it. With
/// a fence for each sleep, a mutex whose holders yield does less work (tried:
/// docs/internals/tuning-mutex.md). If a release has missed the request, the waiter sleeps for this
/// time. At 0 there is a fence for each sleep. At a second, such a waiter sleeps for a second.
pub(super) const ALARM_NS: u64 = 1_300_000;

/// What a newcomer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::near) enum Purpose {
    /// It spins for the mutex, and then joins the queue.
    Compete,
    /// It joins the queue, and finds out how frequent releases are.
    Probe,
}

impl<P: NearPlatform> NearMutex<P> {
    #[cold]
    #[inline(never)]
    pub(super) fn lock_slow(&self, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        self.lock_for(None, limit)
    }

    /// Locks the mutex as a newcomer that does this, or what newcomers do.
    pub(in crate::near) fn lock_for(
        &self,
        purpose: Option<Purpose>,
        limit: &Limit<'_, P>,
    ) -> Result<(), GaveUp> {
        P::count(LockEvent::Slowpath);
        P::in_slow_path(|| {
            let mark = Self::renew_mark();
            Self::hints(self).note_holder(self.place_of_holder(mark));
            let mut spin = Spin::default();
            let purpose = purpose.unwrap_or_else(|| self.purpose_of_newcomer());
            let has_taken =
                purpose == Purpose::Compete && self.take_as_newcomer(NEWCOMER_YIELDS, &mut spin, limit);
            if has_taken {
                P::count(LockEvent::MutexOptLock);
                return Ok(());
            }
            if let Some(why) = limit.is_reached() {
                return Err(why);
            }
            P::assert_may_sleep();
            P::with_record(|waiter: &Waiter<P>| {
                limit.watch(waiter, || self.join_queue(waiter, purpose, &mut spin, limit))
            })
        })
    }

    /// Spins as a thread that is not in the queue, and then yields so many times. Returns whether
    /// it has taken the mutex.
    fn take_as_newcomer(&self, yields: u32, spin: &mut Spin, limit: &Limit<'_, P>) -> bool {
        let hints = Self::hints(self);
        let (looks, yields) = match self.place_of_holder(P::mark()) {
            _ if hints.is_spinning_futile() || self.is_first_resting() => (0, 0),
            HolderPlace::Here => (0, yields),
            HolderPlace::Elsewhere | HolderPlace::Unknown => (NEWCOMER_LOOKS, yields),
        };
        let mut stride_ns = LEAST_STRIDE_NS;
        for look in 0..looks + yields {
            let is_hopeless = look >= looks && hints.holders() == Holders::One;
            if is_hopeless || P::should_give_way(spin) {
                return false;
            }
            if look < looks {
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

    /// What a newcomer does. It does not probe if it has the processor of the holder, which cannot
    /// release the mutex meanwhile.
    pub(in crate::near) fn purpose_of_newcomer(&self) -> Purpose {
        let hints = Self::hints(self);
        let probes = P::random_u32() % NEWCOMERS_PER_PROBE == 1
            && hints.holders() == Holders::Several
            && !hints.is_spinning_futile()
            && !Self::count(self).read().has_waiters()
            && self.place_of_holder(P::mark()) != HolderPlace::Here;
        if probes { Purpose::Probe } else { Purpose::Compete }
    }

    /// Whether the first in the queue rests, as far as is known.
    // The hints come first. Otherwise this thread would read the other words more often. Once it
    // has read a word, loom follows fewer orders of its writes and the reads of other threads.
    fn is_first_resting(&self) -> bool {
        Self::hints(self).holders() == Holders::One
            && Self::count(self).read().has_waiters()
            && !Self::attention(self).read().is_watched()
    }

    /// A newcomer that has found the mutex free takes it. It takes a monopolised mutex only if the
    /// mutex stays free.
    fn take_free_as_newcomer(&self, spin: &mut Spin) -> bool {
        let hints = Self::hints(self);
        match hints.holders() {
            Holders::One => {
                let takes = self.stays_free(spin) && self.take();
                if takes {
                    hints.note_shared();
                }
                takes
            }
            Holders::Several => self.take(),
        }
    }

    /// Joins the queue, and waits there.
    fn join_queue(
        &self,
        waiter: &Waiter<P>,
        purpose: Purpose,
        spin: &mut Spin,
        limit: &Limit<'_, P>,
    ) -> Result<(), GaveUp> {
        // Before the chain is locked, since this may be a system call.
        let node = P::numa_node();
        // SAFETY: the waiter is fresh. It leaves the queue below, or is dequeued, or is granted the
        // mutex, which is the last access to it by another thread.
        let place = unsafe { WaitQueue::of(self).join(waiter, node) };
        if purpose == Purpose::Probe && place == Place::First {
            self.probe(spin);
        }
        self.wait_in_queue(waiter, place, spin, limit)
    }

    /// Waits from a place in the queue, until the waiter has the mutex or gives up.
    fn wait_in_queue(
        &self,
        waiter: &Waiter<P>,
        mut place: Place,
        spin: &mut Spin,
        limit: &Limit<'_, P>,
    ) -> Result<(), GaveUp> {
        let mut how = LockEvent::MutexAtOnce;
        loop {
            if self.take_at(place, waiter, spin, limit) {
                if place != Place::Dequeued {
                    // SAFETY: the waiter is in the queue: we hold the mutex, so no other thread
                    // could hand it over.
                    unsafe { WaitQueue::of(self).leave_with_mutex(waiter) };
                }
                P::count(how);
                return Ok(());
            }
            if place == Place::Dequeued {
                let node = P::numa_node();
                // SAFETY: the waiter has been dequeued; the rest is as in `join_queue`.
                place = unsafe { WaitQueue::of(self).join(waiter, node) };
                continue;
            }
            if !waiter.is_signalled() {
                how = LockEvent::MutexAfterSleep;
                P::count(LockEvent::MutexSleep);
            }
            match waiter.park_within(limit) {
                Ok(Signal::Granted) if WaitQueue::is_dequeued(waiter) => {
                    Self::renew_mark();
                    place = Place::Dequeued;
                }
                Ok(Signal::Granted) => {
                    self.note_grant_to(waiter);
                    P::count(how);
                    return Ok(());
                }
                Ok(Signal::Woken) => {
                    Self::renew_mark();
                    place = WaitQueue::of(self).place_of(waiter);
                }
                Err(why) => {
                    // SAFETY: the waiter is in the queue, or was taken out by another thread.
                    return match unsafe { WaitQueue::of(self).give_up(waiter) } {
                        Ok(()) => Err(why),
                        Err(_granted) => {
                            // The grant is on its way. It is the last access to the waiter by
                            // another thread.
                            while waiter.park() != Signal::Granted {}
                            self.note_grant();
                            Ok(())
                        }
                    };
                }
            }
        }
    }

    /// What a waiter does at this place before it parks. Returns whether it has taken the mutex.
    fn take_at(&self, place: Place, waiter: &Waiter<P>, spin: &mut Spin, limit: &Limit<'_, P>) -> bool {
        match place {
            Place::First => self.take_as_first(waiter, spin, limit),
            Place::Requested(strength) => self.take_behind_fence(waiter, strength, limit),
            Place::Behind => false,
            Place::Dequeued => {
                *spin = Spin::default();
                // It has been woken to compete, so it does not yield. It must not park before an
                // exchange has found the mutex held. `take_as_newcomer` alone may not read the word
                // at all, or may leave a free mutex.
                Self::hints(self).holders() == Holders::Several && self.take_if_free()
                    || self.take_as_newcomer(0, spin, limit)
                    || self.take()
            }
        }
    }

    /// Locks the mutex for a waiter of a condition variable that another thread puts into the
    /// queue, now or soon. The waiter has taken this signal meanwhile. Returns without the mutex if
    /// the waiter has been notified alone, and so is not put into the queue. Its mark is
    /// [`TAKEN_OUT`](crate::parking::chain::TAKEN_OUT) then.
    pub(in crate::near) fn lock_when_requeued(&self, waiter: &Waiter<P>, signal: Option<Signal>) {
        let place = match signal {
            Some(Signal::Granted) if WaitQueue::is_dequeued(waiter) => Place::Dequeued,
            Some(Signal::Granted) => return self.note_grant_to(waiter),
            Some(Signal::Woken) => WaitQueue::of(self).place_of(waiter),
            // Its signal is still to come.
            None => Place::Behind,
        };
        // Without a limit it does not give up.
        _ = self.wait_in_queue(waiter, place, &mut Spin::default(), &Limit::NONE);
    }

    /// What the first in the queue does before it parks without an alarm. Returns whether it has
    /// taken the mutex.
    pub(super) fn take_as_first(&self, waiter: &Waiter<P>, spin: &mut Spin, limit: &Limit<'_, P>) -> bool {
        let is_futile = Self::hints(self).is_spinning_futile();
        let end = match WaitQueue::has_requested(waiter) || is_futile {
            true => SpinEnd::Over,
            false => self.look_before_request(waiter, spin, limit),
        };
        let mut strength = Strength::Weak;
        let end = match end {
            SpinEnd::Over if limit.is_reached().is_none() => {
                strength = WaitQueue::of(self).request(waiter);
                if is_futile { SpinEnd::Over } else { self.look(waiter, Taking::Free, spin, limit) }
            }
            end => end,
        };
        match end {
            SpinEnd::Took => true,
            SpinEnd::Signalled => false,
            SpinEnd::Over => self.take_behind_fence(waiter, strength, limit),
        }
    }

    /// The first in the queue spins, and parks until its turn if the mutex is monopolised. If the
    /// mutex is known to be monopolised, it spins for a moment only: a thread that has just been
    /// woken may have the processor of the holder.
    pub(super) fn look_before_request(
        &self,
        waiter: &Waiter<P>,
        spin: &mut Spin,
        limit: &Limit<'_, P>,
    ) -> SpinEnd {
        let hints = Self::hints(self);
        if limit.is_reached().is_some() {
            return SpinEnd::Over;
        }
        if hints.holders() == Holders::One && self.place_of_holder(P::mark()) == HolderPlace::Here {
            // It cannot find out now whether the mutex still is monopolised.
            return self.park_until_turn(waiter, limit);
        }
        if WaitQueue::is_resting(waiter) {
            WaitQueue::of(self).end_rest(waiter);
        }
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
            SpinEnd::Over => {
                hints.note_retaken();
                return self.park_until_turn(waiter, limit);
            }
        }
        end
    }

    /// The first in the queue for a monopolised mutex rests: it parks until its turn.
    fn park_until_turn(&self, waiter: &Waiter<P>, limit: &Limit<'_, P>) -> SpinEnd {
        let left_units = TURN_UNITS.saturating_sub(WaitQueue::first_for_units(waiter, Hints::<P>::now()));
        let turn_ns = P::now_ns().saturating_add(u64::from(left_units) << UNIT_SHIFT);
        WaitQueue::of(self).rest(waiter);
        Self::park_with_alarm(waiter, turn_ns, limit);
        if waiter.is_signalled() { SpinEnd::Signalled } else { SpinEnd::Over }
    }

    /// Parks until a signal, this moment, or the limit.
    fn park_with_alarm(waiter: &Waiter<P>, alarm_ns: u64, limit: &Limit<'_, P>) {
        waiter.park_until(limit.until_ns.map_or(alarm_ns, |limit_ns| limit_ns.min(alarm_ns)));
        // It may have moved to another processor.
        Self::renew_mark();
    }

    /// The waiter's side of Dekker's pattern, whose other side is `unlock`: the request is before
    /// the fence, and an exchange of the word after it. In a strong chain, the fence is an ordinary
    /// one. In a weak chain, it is the heavy one. The waiter parks with an alarm before it passes
    /// that. A release that sees the request wakes it earlier, and nearly every release does. While
    /// spinning is futile, the waiter does without the alarm: the chain becomes strong, so the next
    /// waiters need no heavy fence. Returns whether the waiter has the mutex. If it returns false
    /// without having passed a fence, there is a signal, or the limit is reached. The waiter does
    /// not park then.
    fn take_behind_fence(&self, waiter: &Waiter<P>, strength: Strength, limit: &Limit<'_, P>) -> bool {
        if limit.is_reached().is_some() {
            return false;
        }
        if self.take_if_free() {
            return true;
        }
        if strength == Strength::Strong {
            return self.take_behind_strong_fence();
        }
        if !Self::hints(self).is_spinning_futile() {
            let alarm_ns = P::now_ns().saturating_add(ALARM_NS);
            Self::park_with_alarm(waiter, alarm_ns, limit);
            if waiter.is_signalled() || limit.is_reached().is_some() {
                return false;
            }
        }
        let begins = WaitQueue::of(self).begin_strong();
        P::heavy();
        if begins {
            WaitQueue::of(self).become_strong();
        }
        self.take()
    }

    /// The waiter's side in a strong chain.
    fn take_behind_strong_fence(&self) -> bool {
        // Ordering: SeqCst, for Dekker's pattern, with `answer_if_requested`: the request is
        // before the fence, and the exchange of the word after it.
        P::fence(SeqCst);
        self.take()
    }
}
