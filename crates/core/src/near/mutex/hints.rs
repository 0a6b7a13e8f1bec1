//! Hints of a chain: what it knows about the releases of its mutexes. Only speed and fairness
//! depend on them. The terms are those of the [mutex](super).
//!
//! ```text
//! releases    bits 16-31 how many there are between two visits to the chain
//!             0-15 how many are left until the next visit
//! looked_at   when a release last visited the chain, in units of 1024 ns; 0 if the next visit must
//!             not be compared with that
//! waits       bits 25-31 the period in which the chain last noted that its holders lack processors
//!             24 whether processors were short then
//!             16-23 score of threads that found the holder on their own processor
//!             0-15 how long the first in the queue has waited for a release, in the mean, in units
//!             of 128 ns; 0 if the chain is not visited at each release
//! looker      bits 3-31 the thread that visited last, as far as these bits can tell
//!             2 whether the visit before was by the same thread
//!             0-1 monopolised: how often the mutex must still be found to stay free until it
//!             counts as shared; 0: it counts as shared
//! ```
//! The mutexes of a chain share its hints, and threads write to them at the same time: the last
//! write stays. In the names of this file, a *look* is a visit of a release to the chain.
//!
//! **Releases while threads wait.** Most are plain stores, as without waiters. Every `LOOK_UNITS`
//! or so, a release visits the chain: it locks the chain, and hands the mutex over if the first in
//! the queue is due. A release also visits the chain if there is a wake request. Most visits note
//! their thread. Those of a fair release, and of a release which has freed the mutex before, do
//! not. Neither does a first visit that only wakes a notified waiter. Visits by one thread do not
//! show that it monopolises the mutex: the other threads may all be asleep, or have no processor.
//! Only threads that read the word, or count the releases in a short time, find that out
//! (`mutex/waiting.rs`). No thread spins if only one can run at a time, or if `spin.budget-ns` is
//! 0. The mutex then counts as monopolised after three visits in a row by one thread. While the
//! first rests, releases do not read the hints.
//!
//! **Futile spinning.** If sections are longer than `LOOK_UNITS`, each release visits the chain,
//! and notes how long the first in the queue has waited for it. That is how long a thread would
//! have to spin. Spinning is *futile* in two cases:
//!
//! - The mean wait is `RARE_UNITS` or more: releases are *rare*.
//! - The mean wait is `LONG_UNITS` or more, and holders often have no processor. A thread that
//!   finds the mutex held reads in the word on which processor the holder took it. If that is the
//!   thread's own processor, then the holder does not run, or it has moved. The score counts such
//!   threads against others.
//!
//! Then no thread spins, newcomers do not yield, and the mutex does not count as monopolised. So a
//! thread that takes it again and again may do so until the first in the queue is due (`DUE_NS`).
//! It may do so for longer if the first is woken to compete before that (`mutex/releasing.rs`). A
//! hand-over to a sleeping thread costs too much to be made for each few sections: no thread uses
//! the mutex until that thread runs. When sections become short again, or holders run again, the
//! next releases and newcomers find it out.
//!
//! **Short processors.** If holders often have no processor, a thread that is woken to compete for
//! the mutex often comes too late, and sleeps again. While that is so for many chains at the same
//! time (`SHORTAGES_PER_PROCESSOR`), each release that visits one of these chains hands the mutex
//! over. Processors are not idle meanwhile, since they have other holders to run. Threads sleep
//! less often, and waits are shorter.
//!
//! **Cost.** Uncontended: a compare-and-exchange to lock, and a store to release. Contended: one
//! membarrier each time that the first in the queue is about to park without an alarm, unless the
//! chain is strong (`attention.rs`). It parks with an alarm before (`ALARM_NS`), unless spinning is
//! futile. So there are few membarriers, which interrupt all threads of the process that run. The
//! waiters behind the first need none. Until the first makes a wake
//! request, releases stay plain stores, except for the visits. Where the platform has no
//! membarrier, its light fence is an ordinary one. A release then costs about as much as an atomic
//! read-modify-write.

use crate::platform::{Atomic, Clock, Platform};
use crate::schedule::{Schedule, Spin};

/// A unit of time in hints and notes is 2 to this power, in ns: about 1 us. The conversion is a
/// shift.
pub(super) const UNIT_SHIFT: u32 = 10;
/// The time between two visits to a chain with waiters, in units of time. Once the number of
/// releases between two visits has settled, the time is between half of this and twice this. The
/// value was chosen; no comparison with others is kept. A due waiter that has made no request is
/// overlooked for about 16 us then, which is short compared with `MONOPOLISED_DUE_NS`. At 0 each
/// release locks the chain. At 1000 such a waiter is overlooked for up to 2 ms. When critical
/// sections become longer, the next visit comes late, until the number has settled again.
const LOOK_UNITS: u32 = 8;
/// The greatest number of releases between two visits to the chain. It bounds how late a visit is
/// when critical sections become longer. Otherwise it has hardly an effect. On the AMD EPYC of
/// docs/laboratory/costs.md a lock and unlock take 1.9 ns (`nearlock bench`). Even there 4096 of
/// them take about `LOOK_UNITS`. The value was chosen; no comparison with others is kept. At 1 each
/// release visits the chain while threads wait. At 65535, the greatest value that fits, a visit may
/// be 16 times as late.
const STRIDE_MAX: u32 = 4096;
/// A chain is visited often if there are no more releases than this between two visits: sections
/// take some microseconds or more. With 1, a chain whose holders yield becomes weak some hundred
/// times a second. Two sections in a row are short now and then (tried: docs/internals/tuning-
/// mutex.md). At a great value, the releases of short sections pass strong fences for longer.
const STRIDE_OFTEN: u32 = 4;
const LOOKER_SHIFT: u32 = 3;
/// The last two visits were by one thread, about 10 us apart. A first that has also never found the
/// mutex free then finds out whether it is monopolised. The price is paid if two threads exchange
/// the mutex, and the waiter never finds it free. Either thread may be as likely to make the next
/// visit. Then every second waiter parks until its turn. With more visits in a row, the first does
/// not spin for so many if sections take 1 us. The mutex then counts as shared, and turns are
/// uneven (tried: docs/internals/tuning-mutex.md).
const SAME: u32 = 1 << 2;
/// How often a monopolised mutex must be found to stay free until it counts as shared. The value
/// was chosen; no comparison with others is kept. It is the greatest that fits into the two bits.
/// At 1, a waiter may be misled: the thread that monopolises the mutex may have been preempted
/// between two critical sections. With more bits and a great value, as many waiters for a mutex
/// that is no longer monopolised would park until their turn. At 0 no mutex counts as monopolised.
pub(super) const DOUBTS: u32 = 3;
const MONOPOLISED: u32 = 3;
const STRIDE_SHIFT: u32 = 16;
const LEFT: u32 = (1 << STRIDE_SHIFT) - 1;
/// From this mean time on, threads do not spin for a release, in units of time: 77 us. The two
/// spins of the first in the queue take 40 us, and a sleep and a wake-up up to 30 us more. So
/// spinning would save time in less than half of the waits. With 40 us, threads that work for 30 us
/// in a section and as long between sections do less work. Their sleeps make the waits longer
/// (tried: docs/internals/tuning-mutex.md). At 0 no thread spins for a mutex whose sections are
/// longer than `LOOK_UNITS`. At a second, threads spin for holders that sleep in sections.
pub(super) const RARE_UNITS: u32 = 75;
/// From this mean time on, threads do not spin for a release if holders often have no processor, in
/// units of time: 6 us. A sleep and a wake-up take longer. It was chosen by experiment
/// (docs/internals/tuning-mutex.md). At 0, a mutex with short sections is affected too:
/// there, a newcomer may find the holder on its own processor just because the holder has moved. At
/// `RARE_UNITS` this case does not exist.
const LONG_UNITS: u32 = 6;
/// What a thread that finds the holder on its own processor adds to the score. The values of the
/// score were chosen by the same experiment. They compare the share of such threads with one in
/// six: spinning is futile while there are more.
const HERE_GAIN: u32 = 16;
/// What a thread that finds the holder on another processor subtracts from the score.
const ELSEWHERE_LOSS: u32 = 3;
/// The greatest score.
const HERE_MAX: u32 = 255;
/// From this score on, holders often have no processor: a quarter of the greatest score. So the
/// score falls below it after 64 threads in a row that find the holder on another processor.
const HERE_OFTEN: u32 = 64;
const HERE_SHIFT: u32 = 16;
const HERE: u32 = HERE_MAX << HERE_SHIFT;
/// For how long a chain counts once its holders lack processors, in units of time, as a power of 2:
/// 8 ms. It was chosen to be some time slices of the scheduler. With less, chains are missed that
/// are seldom released because other programs have the processors. With more, the mutex is handed
/// over for longer when processors are no longer short. No comparison with others is kept.
const PERIOD_SHIFT: u32 = 13;
const NOTED_SHIFT: u32 = 25;
const PERIOD: u32 = 127 << NOTED_SHIFT;
const SHORT: u32 = 1 << 24;
/// Processors are short if the holders of so many chains lack them, for each processor. With
/// fewer chains, the mutexes of all of them may be on their way to threads that have just been
/// woken, and processors are idle. At 1, eight threads that yield in the critical sections of two
/// mutexes do half of the work on two processors (tried: docs/internals/tuning-mutex.md). At a
/// great value mutexes are never handed over for this reason.
const SHORTAGES_PER_PROCESSOR: u32 = 2;
const MEAN: u32 = (1 << HERE_SHIFT) - 1;
/// Longer waits count as this long, so that a single one does not decide for long. The value was
/// chosen; no comparison with others is kept.
const WAIT_MAX_UNITS: u32 = 200;
/// The parts of a unit of time in the mean.
const WAIT_SHIFT: u32 = 3;
/// The weight of a new value in the mean: one in 2 to this power. The value was chosen, so that
/// four visits or so make a difference; no comparison with others is kept.
const MEAN_SHIFT: u32 = 2;

/// The weight of a wait that is shorter than the mean, if the first was parked when it became
/// first. Such a wait does not show that spinning pays: the thread would not have spun. If a holder
/// is away for 20 ms, eight waiters get the mutex one after the other when it is back, some 10 us
/// apart. With the weight of other waits, spinning is not found futile then (tried:
/// docs/internals/tuning-mutex.md). At 31 such waits never shorten the mean. A mutex with a queue
/// that never empties could then count as one with rare releases for ever.
const PARKED_FALL_SHIFT: u32 = 5;

/// Which threads release a mutex, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holders {
    /// Several threads.
    Several,
    /// One thread, which takes it again at once: the mutex is monopolised. As a rule, other threads
    /// get it by a hand-over.
    One,
}

/// Where the holder of a mutex runs or ran, as a thread sees it that wants the mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HolderPlace {
    /// On the processor of that thread. So the holder does not run, or it has moved.
    Here,
    /// On another processor.
    Elsewhere,
    /// There is no holder, or it has not noted its processor.
    Unknown,
}

/// The visits of releases to the chain of a mutex, which has the mutexes of the same chain too. A
/// part of a [`Diagnosis`](super::Diagnosis).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visits {
    /// Whether one thread seems to lock the mutex again and again.
    pub is_monopolised: bool,
    /// How many releases are left until the next visit, if threads wait.
    pub releases_left: u32,
    /// How many releases there were between the last two visits.
    pub releases_between: u32,
    /// The time since the last visit, in ns. After 73 minutes it begins again at 0. `None`: there
    /// was none since the first in the queue joined it, or since it rested.
    pub last_ago_ns: Option<u64>,
}

/// See the [module](self). All zero: nothing is known.
#[repr(C)]
pub struct Hints<P: Platform> {
    releases: P::U32,
    looked_at: P::U32,
    looker: P::U32,
    waits: P::U32,
}

impl<P: Platform> Hints<P> {
    /// Counts a release while threads wait. Returns whether it is time to visit the chain.
    #[inline(always)]
    pub(super) fn is_time_to_look(&self) -> bool {
        let releases = self.releases();
        let is_time = releases & LEFT == 0;
        if !is_time {
            self.releases.store_hint(releases - 1);
        }
        is_time
    }

    /// A value that changes with each release while threads wait. It may come back to an old value.
    pub(super) fn releases(&self) -> u32 {
        self.releases.load_hint()
    }

    /// How many releases there were since [`releases`](Self::releases) had this value, while
    /// threads waited. At most one of them may have visited the chain, and there were fewer than
    /// there are between two visits. Otherwise the result is too small.
    pub(super) fn releases_since(&self, before: u32) -> u32 {
        let now = self.releases();
        match before.checked_sub(now) {
            Some(passed) if before >> STRIDE_SHIFT == now >> STRIDE_SHIFT => passed,
            _ => (before & LEFT) + 1 + (now >> STRIDE_SHIFT).saturating_sub(now & LEFT),
        }
    }

    /// Whether one release in `STRIDE_OFTEN`, or more, visits the chain while threads wait.
    pub(super) fn is_visited_often(&self) -> bool {
        self.releases() >> STRIDE_SHIFT <= STRIDE_OFTEN
    }

    /// Which threads release a mutex of the chain.
    pub(super) fn holders(&self) -> Holders {
        match self.looker.load_hint() & MONOPOLISED {
            0 => Holders::Several,
            _ if self.is_spinning_futile() => Holders::Several,
            _ => Holders::One,
        }
    }

    /// Whether a thread should not spin for a release of a mutex of the chain.
    pub(super) fn is_spinning_futile(&self) -> bool {
        self.are_releases_rare() || self.holders_lack_processors()
    }

    fn are_releases_rare(&self) -> bool {
        (self.waits.load_hint() & MEAN) >> WAIT_SHIFT >= RARE_UNITS
    }

    /// Whether holders of mutexes of the chain often have no processor, and the first in the queue
    /// waits for a release for `LONG_UNITS` or more, in the mean.
    fn holders_lack_processors(&self) -> bool {
        let waits = self.waits.load_hint();
        (waits & MEAN) >> WAIT_SHIFT >= LONG_UNITS && (waits & HERE) >> HERE_SHIFT >= HERE_OFTEN
    }

    /// Notes where a thread that wants a mutex of the chain has found its holder.
    pub(super) fn note_holder(&self, place: HolderPlace) {
        let waits = self.waits.load_hint();
        let here = (waits & HERE) >> HERE_SHIFT;
        let next = match place {
            HolderPlace::Here => (here + HERE_GAIN).min(HERE_MAX),
            HolderPlace::Elsewhere => here.saturating_sub(ELSEWHERE_LOSS),
            HolderPlace::Unknown => here,
        };
        if next != here {
            self.waits.store_hint(waits & !HERE | next << HERE_SHIFT);
        }
    }

    /// Whether one thread releases the mutex, or the last two visits were by one thread. A thread
    /// that finds such a mutex free should read the word again before it takes the mutex.
    pub(super) fn may_have_one_holder(&self) -> bool {
        self.looker.load_hint() & (MONOPOLISED | SAME) != 0
    }

    /// Whether the last two visits were by one thread.
    pub(super) fn has_one_looker(&self) -> bool {
        self.looker.load_hint() & SAME != 0
    }

    /// Notes that a mutex of the chain was released, and taken again at once.
    pub(super) fn note_retaken(&self) {
        let looker = self.looker.load_hint();
        if looker & MONOPOLISED != DOUBTS {
            self.looker.store_hint(looker & !MONOPOLISED | DOUBTS);
        }
    }

    /// Notes that a mutex of the chain stayed free for a while, or is released by several threads.
    pub(super) fn note_shared(&self) {
        let looker = self.looker.load_hint();
        if looker & MONOPOLISED != 0 {
            self.looker.store_hint(looker - 1);
        }
    }
}

impl<P: Clock + Schedule> Hints<P> {
    /// The time in units, which wraps around.
    pub(super) fn now() -> u32 {
        (P::now_ns() >> UNIT_SHIFT) as u32
    }

    /// Whether processors are short at this time: holders of the mutexes of this chain, and of many
    /// others, often have none. If a mutex is handed over to a sleeper, other holders use the
    /// processors until that thread runs. Processors are not short if releases are rare: such
    /// holders may sleep in their critical sections, and leave processors idle.
    pub(super) fn are_processors_short(&self, now: impl FnOnce() -> u32) -> bool {
        if self.are_releases_rare() || !self.holders_lack_processors() {
            return false;
        }
        let (waits, period) = (self.waits.load_hint(), now() >> PERIOD_SHIFT);
        if (waits & PERIOD) >> NOTED_SHIFT == period & (PERIOD >> NOTED_SHIFT) {
            return waits & SHORT != 0;
        }
        let shortages = P::processors_of_process().saturating_mul(SHORTAGES_PER_PROCESSOR);
        let is_short = P::note_shortage(period) >= shortages;
        let noted = period << NOTED_SHIFT & PERIOD | if is_short { SHORT } else { 0 };
        self.waits.store_hint(self.waits.load_hint() & !(PERIOD | SHORT) | noted);
        is_short
    }

    /// The hints in words, for a report.
    pub(super) fn read(&self) -> Visits {
        let releases = self.releases();
        let looked_at = self.looked_at.load_hint();
        let passed = Self::now().wrapping_sub(looked_at);
        Visits {
            is_monopolised: self.holders() == Holders::One,
            releases_left: releases & LEFT,
            releases_between: releases >> STRIDE_SHIFT,
            last_ago_ns: (looked_at != 0).then(|| u64::from(passed) << UNIT_SHIFT),
        }
    }

    /// Notes a visit to the chain by a release for which the first in the queue has waited for this
    /// time, in units. `None`: it was parked when it became first, at the last visit or after that.
    /// Sets the number of releases until the next visit. Returns how long the first has waited, at
    /// most.
    pub(super) fn looked(&self, first_units: Option<u32>, now: u32) -> u32 {
        let fall_shift = if first_units.is_some() { MEAN_SHIFT } else { PARKED_FALL_SHIFT };
        let (passed, first_units) = match (self.looked_at.load_hint(), first_units) {
            (0, units) => (units.unwrap_or(0).max(LOOK_UNITS), units.unwrap_or(0)),
            (at, None) => (now.wrapping_sub(at), now.wrapping_sub(at)),
            (at, Some(units)) => (now.wrapping_sub(at), units.min(now.wrapping_sub(at))),
        };
        let stride = (self.releases() >> STRIDE_SHIFT).max(1);
        let stride = match passed {
            short if short < LOOK_UNITS / 2 => (stride * 2).min(STRIDE_MAX),
            long if long > LOOK_UNITS * 2 => (stride / 2).max(1),
            _ => stride,
        };
        self.looked_at.store_hint(now);
        self.note_first_wait((stride == 1).then_some(first_units), fall_shift);
        self.releases.store_hint(stride << STRIDE_SHIFT | stride);
        self.looked_by(P::thread_id().get() << LOOKER_SHIFT, first_units);
        first_units
    }

    /// Whether no release has visited the chain since [`resume`](Self::resume).
    pub(super) fn is_first_visit(&self) -> bool {
        self.looked_at.load_hint() == 0
    }

    /// Notes that releases visit the chain from now on. For a while they may not have done so. So
    /// the next visit, which may come soon, must not count as one that has come too soon. It counts
    /// as one after `LOOK_UNITS`, or after the time for which the first has waited.
    pub(super) fn resume(&self) {
        self.looked_at.store_hint(0);
    }

    /// Notes how long the first in the queue has waited for a release, in units of time. `None`:
    /// there are several releases between two visits. `fall_shift` is the weight of a short wait.
    fn note_first_wait(&self, units: Option<u32>, fall_shift: u32) {
        let waits = self.waits.load_hint();
        let mean = waits & MEAN;
        let next = units.map_or(0, |units| {
            let wait = units.min(WAIT_MAX_UNITS) << WAIT_SHIFT;
            // Rounded up, so that the mean reaches a shorter wait.
            match mean.checked_sub(wait) {
                Some(less) => mean - less.div_ceil(1 << fall_shift),
                None => mean + ((wait - mean) >> MEAN_SHIFT),
            }
        });
        if next != mean {
            self.waits.store_hint(waits & !MEAN | next);
        }
    }

    /// Notes that this thread visits the chain. A visit does not count as the second one by the
    /// thread if the first has only just become first. (A thread that notifies a condition
    /// variable, for example, makes the notified waiter first, and then releases the mutex.)
    fn looked_by(&self, thread: u32, first_units: u32) {
        let last = self.looker.load_hint();
        let same = match last >> LOOKER_SHIFT == thread >> LOOKER_SHIFT {
            true if first_units >= LOOK_UNITS / 2 => SAME,
            true => last & SAME,
            false => 0,
        };
        let is_row = same != 0 && last & SAME != 0 && last & MONOPOLISED != DOUBTS;
        // Asked last, since this may be a system call.
        let is_alone = is_row && P::should_give_way(&mut Spin::default());
        self.looker.store_hint(thread | same | if is_alone { DOUBTS } else { last & MONOPOLISED });
    }
}

impl<P: Platform> Default for Hints<P> {
    fn default() -> Self {
        Self {
            releases: Atomic::new(0),
            looked_at: Atomic::new(0),
            looker: Atomic::new(0),
            waits: Atomic::new(0),
        }
    }
}

#[cfg(test)]
mod tests;
