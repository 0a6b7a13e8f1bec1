//! Hints of a chain: what it knows of the releases of its mutexes. Only speed and fairness depend
//! on them.
//!
//! ```text
//! releases    bits 16-31 how many there are between two looks at the chain
//!             0-15 how many are left until the next look
//! times       bits 16-31 from when on a waiter may pass the heavy side of the fence, 0: any time
//!             0-15 when the chain was looked at last; in units of 1024 ns, which wrap after 67 ms
//! looker      bits 6-31 the thread that looked last, as far as these bits tell
//!             2-5 how many looks in a row were its own before
//!             0-1 monopolised: how often a mutex must still be found to stay free not to be so
//! ```
//! Mutexes with the same chain share its hints, and write to them at the same time: the last write
//! stays.

use crate::platform::{Atomic, Clock, Platform};
use crate::schedule::Schedule;

/// A unit of time in hints and notes is 2 to this power, in ns: about 1 us.
pub(super) const UNIT_SHIFT: u32 = 10;
/// How long releases beside waiters go on without a look at the chain, in units of time: half of it
/// to twice, once it has settled. At 0 each release costs what a look costs, some 50 ns. When
/// sections grow longer it takes one long stride until it settles again; a due waiter that has made
/// no request is overlooked until then.
const LOOK_UNITS: u32 = 8;
/// Releases between two looks at the chain, at most.
const STRIDE_MAX: u32 = 4096;
/// Looks in a row by the same thread, after which the mutex counts as monopolised by it: some 60
/// us. Two threads that run and think take turns, so that one looks so often in a row once in 256
/// times.
const LOOKS_IN_ROW: u32 = 8;
const LOOKER_SHIFT: u32 = 6;
const ROW_SHIFT: u32 = 2;
const ROW: u32 = 15 << ROW_SHIFT;
/// Looks of the same thread that follow one of its own, while the first in the queue has not found
/// the mutex free, after which it counts as monopolised: some 10 us. At 2 and more there are not as
/// many while the first looks if sections take 1 us: the mutex counts as shared then, and turns are
/// uneven. At 0 any thread that releases it monopolises it. At 1 every other waiter for a mutex
/// that two threads exchange would park for a turn, if their looks alternated and it never found
/// the mutex free.
const LOOKS_OF_ONE: u32 = 1;
/// How often a monopolised mutex must be found to stay free until it is not monopolised. At 1, a
/// waiter that finds its holder preempted between two sections is misled; at many, waiters for a
/// mutex that is not monopolised any more park for a turn as often.
pub(super) const DOUBTS: u32 = 3;
const MONOPOLISED: u32 = 3;
const STRIDE_SHIFT: u32 = 16;
const LEFT: u32 = (1 << STRIDE_SHIFT) - 1;
/// How long after a heavy fence the next one may be, in units of time: 1.3 ms, so that they are
/// fewer than 1000 a second. Each interrupts all threads of the process that run. Until then a
/// waiter parks with a time limit: at a second, one that a release has missed sleeps for a second.
const FENCE_UNITS: u32 = 1300;
const FENCE_SHIFT: u32 = 16;
const LOOKED_AT: u32 = (1 << FENCE_SHIFT) - 1;

/// Which threads release a mutex, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holders {
    /// Several threads, by turns.
    Several,
    /// One thread, which takes it again at once: it is monopolised, and others have it only if they
    /// are given it.
    One,
}

/// See the [module](self). All zero: nothing is known.
#[repr(C)]
pub struct Hints<P: Platform> {
    releases: P::U32,
    times: P::U32,
    looker: P::U32,
}

impl<P: Platform> Hints<P> {
    /// A release beside waiters: whether it is time to look at the chain.
    #[inline(always)]
    pub(super) fn is_time_to_look(&self) -> bool {
        let releases = self.releases();
        let is_time = releases & LEFT == 0;
        if !is_time {
            self.releases.store_hint(releases - 1);
        }
        is_time
    }

    /// Changes with releases beside waiters, but may wrap around to what it was.
    pub(super) fn releases(&self) -> u32 {
        self.releases.load_hint()
    }

    /// Which threads release a mutex here.
    pub(super) fn holders(&self) -> Holders {
        match self.looker.load_hint() & MONOPOLISED {
            0 => Holders::Several,
            _ => Holders::One,
        }
    }

    /// Whether it is one thread, or the last two looks were those of one thread: a thread that
    /// finds such a mutex free should look twice.
    pub(super) fn may_have_one_holder(&self) -> bool {
        self.looker.load_hint() & (MONOPOLISED | ROW) != 0
    }

    /// Whether the last two looks were those of one thread.
    pub(super) fn has_one_looker(&self) -> bool {
        (self.looker.load_hint() & ROW) >> ROW_SHIFT >= LOOKS_OF_ONE
    }

    /// A mutex here was released, and taken again at once.
    pub(super) fn note_retaken(&self) {
        let looker = self.looker.load_hint();
        if looker & MONOPOLISED != DOUBTS {
            self.looker.store_hint(looker & !MONOPOLISED | DOUBTS);
        }
    }

    /// A mutex here stayed free for a while, or is released by several threads.
    pub(super) fn note_shared(&self) {
        let looker = self.looker.load_hint();
        if looker & MONOPOLISED != 0 {
            self.looker.store_hint(looker - 1);
        }
    }
}

impl<P: Clock + Schedule> Hints<P> {
    /// The time, in units; it wraps around.
    pub(super) fn now() -> u32 {
        (P::now_ns() >> UNIT_SHIFT) as u32
    }

    /// The chain is looked at now: sets how many releases there are until the next time.
    pub(super) fn looked(&self) {
        let now = Self::now();
        let times = self.times.load_hint();
        let passed = now.wrapping_sub(times) & LOOKED_AT;
        let stride = (self.releases() >> STRIDE_SHIFT).max(1);
        let stride = match passed {
            short if short < LOOK_UNITS / 2 => (stride * 2).min(STRIDE_MAX),
            long if long > LOOK_UNITS * 2 => (stride / 2).max(1),
            _ => stride,
        };
        self.times.store_hint(times & !LOOKED_AT | now & LOOKED_AT);
        self.releases.store_hint(stride << STRIDE_SHIFT | stride);
        self.looked_by(P::thread_id().get() << LOOKER_SHIFT);
    }

    /// Whether a waiter may pass the heavy side of the fence now, and all others later; else when
    /// it may, in ns.
    pub(super) fn fence(&self) -> Result<(), u64> {
        let (now, times) = (Self::now(), self.times.load_hint());
        let from = times >> FENCE_SHIFT;
        let left = from.wrapping_sub(now) & LOOKED_AT;
        // More than that is the past: the time has wrapped around.
        if from != 0 && (1..=FENCE_UNITS).contains(&left) {
            return Err(P::now_ns().saturating_add(u64::from(left) << UNIT_SHIFT));
        }
        let from = (now.wrapping_add(FENCE_UNITS) & LOOKED_AT).max(1);
        self.times.store_hint(from << FENCE_SHIFT | times & LOOKED_AT);
        Ok(())
    }

    /// The chain is looked at by this thread.
    fn looked_by(&self, thread: u32) {
        let last = self.looker.load_hint();
        let in_row = match last >> LOOKER_SHIFT == thread >> LOOKER_SHIFT {
            true => (((last - thread) >> ROW_SHIFT) + 1).min(LOOKS_IN_ROW),
            false => 0,
        };
        let monopolised = if in_row == LOOKS_IN_ROW { DOUBTS } else { last & MONOPOLISED };
        self.looker.store_hint(thread | in_row << ROW_SHIFT | monopolised);
    }
}

impl<P: Platform> Default for Hints<P> {
    fn default() -> Self {
        Self { releases: Atomic::new(0), times: Atomic::new(0), looker: Atomic::new(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{NOW_NS, OTHER, OneThread, THIRD, THREAD_ID};

    /// Releases until the next look, that one included.
    fn releases_to_look(hints: &Hints<OneThread>) -> usize {
        (1..).find(|_| hints.is_time_to_look()).unwrap()
    }

    #[test]
    fn looks_come_after_about_the_same_time_however_often_there_are_releases() {
        for release_ns in [4, 100, 1000, 20_000] {
            let hints = Hints::<OneThread>::default();
            let mut between_ns = 0;
            for _ in 0..40 {
                hints.looked();
                between_ns = releases_to_look(&hints) as u64 * release_ns;
                NOW_NS.set(NOW_NS.get() + between_ns);
            }
            let unit_ns = u64::from(LOOK_UNITS) << UNIT_SHIFT;
            let most_ns = (unit_ns * 2 + 1024).max(2 * release_ns);
            assert!(
                between_ns <= most_ns + release_ns,
                "{between_ns} ns between looks, releases each {release_ns} ns"
            );
            assert!(
                between_ns >= unit_ns / 4,
                "{between_ns} ns between looks, releases each {release_ns} ns"
            );
        }
    }

    #[test]
    fn it_is_monopolised_until_it_has_stayed_free_several_times() {
        let hints = Hints::<OneThread>::default();
        assert_eq!(hints.holders(), Holders::Several);
        hints.note_retaken();
        for _ in 0..DOUBTS {
            assert_eq!(hints.holders(), Holders::One);
            hints.note_shared();
        }
        assert_eq!(hints.holders(), Holders::Several);
        hints.note_shared();
        assert_eq!(hints.holders(), Holders::Several);
    }

    #[test]
    fn a_thread_that_looks_again_and_again_monopolises() {
        let hints = Hints::<OneThread>::default();
        let look_as = |thread| {
            THREAD_ID.set(thread);
            hints.looked();
        };
        for _ in 0..100 {
            look_as(OTHER);
            look_as(THIRD);
        }
        assert!(!hints.may_have_one_holder() && !hints.has_one_looker());
        look_as(THIRD);
        assert!(hints.has_one_looker() && hints.holders() == Holders::Several);
        (0..LOOKS_IN_ROW).for_each(|_| look_as(OTHER));
        assert_eq!(hints.holders(), Holders::Several);
        assert!(hints.may_have_one_holder());
        look_as(OTHER);
        assert_eq!(hints.holders(), Holders::One);
    }

    #[test]
    fn heavy_fences_are_a_while_apart_whenever_that_is() {
        for begin_ns in [0, 1 << 26, 0xffff << UNIT_SHIFT] {
            let hints = Hints::<OneThread>::default();
            NOW_NS.set(begin_ns);
            hints.looked();
            assert_eq!(hints.fence(), Ok(()));
            let next_ns = hints.fence().unwrap_err();
            assert!(next_ns > begin_ns + 1_000_000 && next_ns < begin_ns + 2_000_000, "{next_ns}");
            NOW_NS.set(next_ns - 1024);
            hints.looked();
            assert_eq!(hints.fence(), Err(next_ns));
            NOW_NS.set(next_ns);
            assert_eq!(hints.fence(), Ok(()));
            NOW_NS.set(next_ns + 40_000_000);
            assert_eq!(hints.fence(), Ok(()), "much later");
        }
        NOW_NS.set(u64::MAX);
        let hints = Hints::<OneThread>::default();
        assert_eq!((hints.fence(), hints.fence()), (Ok(()), Err(u64::MAX)), "the clock goes no further");
    }
}
