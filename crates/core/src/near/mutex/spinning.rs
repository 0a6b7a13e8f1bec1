//! How a thread spins for the mutex. The terms are those of the [mutex](super).
//!
//! To *spin* is to read the word again and again, with a delay before each read. A waiter in the
//! queue reads its own record too, where signals arrive. In the names of constants, a *look* is
//! such a read. (The function `look` is a whole spin. In `mutex/hints.rs` a look is a visit of a
//! release to the chain.) `mutex/waiting.rs` says when a thread spins.
//!
//! **A spin may end early.** The platform ends it at once if only one thread of the process can run
//! at a time, and otherwise after `spin.budget-ns` (docs/internals/tuning.md). A newcomer whose
//! spin ends joins the queue at once.
//!
//! Source: own. Delays that grow: Anderson, "The performance of spin lock alternatives for
//! shared-memory multiprocessors", IEEE TPDS 1990.

use core::sync::atomic::Ordering::Relaxed;

use super::hints::HolderPlace;
use super::{FREE, NearMutex};
use crate::near::NearPlatform;
use crate::near::transfer::{NEAR_NS, timed, transfer_ns};
use crate::parking::{Limit, Waiter};
use crate::platform::Atomic;
use crate::schedule::Spin;

/// The shortest delay between two reads, in ns. It is one pause where a pause takes longer. The
/// value was chosen; no comparison with others is kept. It is shorter than a transfer of a cache
/// line between two cores, which takes about 30 ns on the AMD EPYC of docs/laboratory/measure.md
/// (`nearlock measure`). It must not be 0: delays would not grow, and a spin would never read the
/// clock again.
pub(super) const LEAST_STRIDE_NS: u32 = 10;
/// In how many reads in a row the mutex must be free to be found not monopolised, if releases are
/// not counted. The shortest delay precedes each read: 60 ns in total, or six pauses. A mutex that
/// is taken again at once and held for no time is free at every other read. So it passes the check
/// once in 64 times. There are more reads where the transfer of a cache line takes longer. The
/// value was chosen; no comparison with others is kept. At 0 each mutex passes. At a great value
/// other threads take a free mutex before the check is over.
const PROBE_LOOKS: u32 = 6;
/// The same while a waiter is first in the queue and does not rest: 30 ns, or three pauses. There
/// are more where the transfer of a cache line takes longer, as above. Then
/// the number of releases tells whether a thread has taken the mutex in between. With
/// `PROBE_LOOKS`, threads with 0.1 us of think time between their sections were mistaken for
/// threads without think time (tried: docs/internals/tuning-mutex.md). At 1, a thread whose cache
/// line this thread has taken by its first read may have had no time to take the mutex again.
const COUNTED_LOOKS: u32 = 3;
/// For how long a newcomer that probes lets releases be counted, in ns, where the transfer of a
/// cache line takes `NEAR_NS`. Elsewhere it takes as much longer as the transfer does. The mutex is
/// monopolised if there are `PROBE_RELEASES` in that time: one in 25 ns. In that time, a mutex and
/// its data do not get to another processor and back. So one thread that uses the mutex alone does
/// more sections than two threads that exchange it. The values were chosen; no comparison with
/// others is kept. At a great value of `PROBE_NS`, a probe holds the newcomer up. At 1 for
/// `PROBE_RELEASES`, each mutex that is released meanwhile counts as monopolised.
const PROBE_NS: u32 = 200;
pub(super) const PROBE_RELEASES: u32 = 8;
/// A thread whose sections follow each other in less time uses the mutex alone, in ns.
pub(in crate::near) const MONOPOLISED_NS: u64 = (PROBE_NS / PROBE_RELEASES) as u64;
/// With more releases, the newcomer has lost its processor meanwhile: in `PROBE_NS` there are not
/// so many sections.
pub(super) const PROBE_RELEASES_MAX: u32 = 128;
/// The longest delay between two reads of the first in the queue, in ns. With less, it takes the
/// cache line of the word from a holder that locks again and again. With more, it notices late that
/// the mutex is free. The value was chosen; no comparison with others is kept. It is an eighth of
/// `PATIENCE_NS`, so a spin has about 15 reads.
const FIRST_STRIDE_NS: u32 = 2560;
/// The same once the first has made a wake request. It then waits for a signal in its own record.
/// With more, it notices late that it was handed the mutex, which serves no thread meanwhile. With
/// less, it takes the cache line of the word from the holder more often. The value was chosen; no
/// comparison with others is kept.
const REQUESTED_STRIDE_NS: u32 = 40;
/// The longest delay between two reads that look for a gap between two critical sections of one
/// thread, in ns. With more, the first misses short gaps. With less, it takes the cache line of the
/// word from the holder more often. The value was chosen; no comparison with others is kept.
const GAP_STRIDE_NS: u32 = 160;
/// How long the first in the queue spins for such a gap, in ns. It does so before it treats the
/// mutex as monopolised. It also does so each time that it begins to wait while the mutex counts as
/// monopolised. With 2.5 us, a thread with 0.5 us of think time between sections of 1 us is
/// mistaken for a thread without think time (tried: docs/internals/tuning-mutex.md). With more, the
/// waiter delays a holder without think time, whose processor it may have. 20 us would be a tenth
/// of a turn of 0.2 ms.
const GAP_PATIENCE_NS: u64 = 6000;
/// How long the first in the queue spins before it parks until its turn or makes a wake request, in
/// ns. It spins as long again before it parks without an alarm. The value was chosen; no comparison
/// with others is kept. It is the default of `spin.budget-ns`, which is about the cost of a sleep
/// and a wake-up (docs/internals/tuning.md). That budget also ends each of the two spins. At 0 the
/// mutex is handed over at each release. At a second, the first in the queue may wait for a second.
const PATIENCE_NS: u64 = 20_000;
/// How much delay passes between two readings of the clock, in ns. The value was chosen: a reading
/// costs 23 ns on the AMD EPYC of docs/laboratory/costs.md (`nearlock bench` prints it), so
/// readings take a few percent of a spin. No comparison with others is kept. At 0 the clock is read
/// before each read of the word. At a great value a spin ends so much later.
const CLOCK_NS: u32 = 640;

/// How a waiter stopped spinning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpinEnd {
    /// With the mutex.
    Took,
    /// With a signal.
    Signalled,
    /// With neither, since its time is over.
    Over,
}

/// The condition under which a thread takes the mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taking {
    /// The mutex is free.
    Free,
    /// The mutex stays free for a while, if one thread may take it again at once.
    StaysFree,
    /// The same. The delays are so short that the thread misses few gaps, and it stops sooner.
    InGap,
}

impl Taking {
    /// The longest delay between two reads, in ns.
    fn stride_max_ns(self) -> u32 {
        match self {
            Self::Free => REQUESTED_STRIDE_NS,
            Self::StaysFree => FIRST_STRIDE_NS,
            Self::InGap => GAP_STRIDE_NS,
        }
    }

    /// How long to spin, in ns.
    fn patience_ns(self) -> u64 {
        match self {
            Self::Free | Self::StaysFree => PATIENCE_NS,
            Self::InGap => GAP_PATIENCE_NS,
        }
    }
}

impl<P: NearPlatform> NearMutex<P> {
    /// Spins for a while as the first in the queue: reads the word and the waiter's signal again
    /// and again.
    pub(super) fn look(
        &self,
        waiter: &Waiter<P>,
        taking: Taking,
        spin: &mut Spin,
        limit: &Limit<'_, P>,
    ) -> SpinEnd {
        // The time of the spin begins again. The count of its reads does not.
        *spin = Spin { turns: spin.turns, ..Spin::default() };
        let (mut stride_ns, mut since_clock_ns, mut until_ns) = (LEAST_STRIDE_NS, CLOCK_NS, None);
        let mut word = self.word.load(Relaxed);
        loop {
            if P::should_give_way(spin) || Self::place_in(word, P::mark()) == HolderPlace::Here {
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
            word = self.word.load(Relaxed);
            if word == FREE && self.may_be_had(taking, spin) && self.take() {
                return SpinEnd::Took;
            }
            if waiter.is_signalled() {
                return SpinEnd::Signalled;
            }
        }
    }

    /// Whether a thread that finds the mutex free should take it. While several threads release it,
    /// the first thread to try takes it.
    fn may_be_had(&self, taking: Taking, spin: &mut Spin) -> bool {
        taking == Taking::Free || !Self::hints(self).may_have_one_holder() || self.stays_free(spin)
    }

    /// Whether the mutex stays free for as long as a thread needs to take it again at once. A
    /// thread may take it and release it between two reads. That shows in the number of releases,
    /// unless the first in the queue rests.
    pub(super) fn stays_free(&self, spin: &mut Spin) -> bool {
        let releases = Self::hints(self).releases();
        let looks = match Self::attention(self).read().is_watched() {
            true => COUNTED_LOOKS,
            false => PROBE_LOOKS,
        };
        let is_free = (0..looks.max(Self::looks_of_transfer())).all(|_| {
            Self::pause(LEAST_STRIDE_NS, spin);
            self.word.load(Relaxed) == FREE
        });
        is_free && Self::hints(self).releases() == releases
    }

    /// Finds out, as the first in the queue, whether releases are so frequent that the mutex is
    /// monopolised. The word is not read meanwhile, so its cache line stays with the holder.
    pub(super) fn probe(&self, spin: &mut Spin) {
        let hints = Self::hints(self);
        let before = hints.releases();
        Self::pause(PROBE_NS + transfer_ns::<P>().saturating_sub(NEAR_NS), spin);
        timed::<P>(before, || hints.releases());
        if (PROBE_RELEASES..PROBE_RELEASES_MAX).contains(&hints.releases_since(before)) {
            hints.note_retaken();
        }
    }

    /// How many looks take as long as the transfer of a cache line, and a quarter more.
    pub(in crate::near) fn looks_of_transfer() -> u32 {
        let transfer_ns = transfer_ns::<P>();
        P::pauses_in(transfer_ns + transfer_ns / 4) / P::pauses_in(LEAST_STRIDE_NS)
    }

    /// Pauses for this time.
    pub(in crate::near) fn pause(ns: u32, spin: &mut Spin) {
        let pauses = P::pauses_in(ns);
        P::pause(pauses, 0);
        spin.paused(pauses);
    }
}
