//! What a chain knows of the coming and going at its mutexes: hints, which nothing but speed and fairness depends on.
//!
//! ```text
//! releases    bits 16-31 how many there are between two looks at the chain | 0-15 how many are left until the next
//! times       bits 16-31 from when on a waiter may pass the heavy side of the fence, 0: at any time | 0-15 when it was looked at last, in units of
//!             1024 ns, which go round in 67 ms
//! looker      bits 6-31 the thread that looked last, as far as these bits tell | 2-5 how many looks in a row were its own before |
//!             0-1 hammered: how often a mutex here must still be found to stay free, not to be so
//! ```
//! Locks with the same chain share it, and write to it at the same time: whichever write comes last stays.

use crate::platform::{Atomic, Clock, Platform};
use crate::schedule::Schedule;

/// A unit of time in hints and notes is 2 to this power, in ns: about 1 us.
pub(super) const UNIT_SHIFT: u32 = 10;
/// How long releases beside waiters go on without a look at the chain, in units of time: half of it to twice, once it has settled. At 0 each
/// release costs what a look costs, some 50 ns. When sections grow longer it takes one long stride until it settles again; a due waiter that
/// has not requested is overlooked until then.
const LOOK_UNITS: u32 = 8;
/// Releases between two looks at the chain, at most.
const STRIDE_MAX: u32 = 4096;
/// Looks in a row by the same thread, after which the mutex counts as hammered by it: some 60 us. Two threads that run and think
/// take turns, so that one looks so often in a row once in 256 times.
const LOOKS_IN_ROW: u32 = 8;
const LOOKER_SHIFT: u32 = 6;
const ROW_SHIFT: u32 = 2;
const ROW: u32 = 15 << ROW_SHIFT;
/// Looks of the same thread that follow one of its own, while the first in line has looked in vain, after which it counts as hammered: some
/// 10 us. At 2 and more there are not as many while it looks if sections take 1 us: it counts as shared then, and turns are uneven. At 0 whoever
/// releases it hammers it. At 1 every other waiter for a mutex that two threads exchange would doze, if their looks alternated and it never
/// found it free.
const LOOKS_OF_ONE: u32 = 1;
/// How often a hammered mutex must be found to stay free until it is not hammered. At 1, one that finds its holder preempted
/// between two sections is misled; at many, waiters of a mutex that is not hammered any more doze in vain as often.
pub(super) const DOUBTS: u32 = 3;
const HAMMERED: u32 = 3;
const STRIDE_SHIFT: u32 = 16;
const LEFT: u32 = (1 << STRIDE_SHIFT) - 1;
/// How long after a heavy fence the next one may be, in units of time: 1.3 ms, so that they are fewer than 1000 a second. Each interrupts all
/// threads of the process that run. Until then a waiter sleeps by the clock: at a second, one that a release has missed sleeps for a second.
const FENCE_UNITS: u32 = 1300;
const FENCE_SHIFT: u32 = 16;
const LOOKED_AT: u32 = (1 << FENCE_SHIFT) - 1;

/// Who releases a mutex, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holders {
    /// Several threads, by turns.
    Several,
    /// One thread, which takes it again at once: it is hammered, and can be had only by who is given it.
    One,
}

/// See the [module](self). All zero: nothing is known.
#[repr(C)]
pub struct Pace<P: Platform> {
    releases: P::U32,
    times: P::U32,
    looker: P::U32,
}

impl<P: Platform> Pace<P> {
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

    /// Changes with releases beside waiters; but it may come round to what it was.
    pub(super) fn releases(&self) -> u32 {
        self.releases.load_hint()
    }

    /// Who releases a mutex here.
    pub(super) fn holders(&self) -> Holders {
        match self.looker.load_hint() & HAMMERED {
            0 => Holders::Several,
            _ => Holders::One,
        }
    }

    /// Whether it is one thread, or the last two looks were the same one's: who finds such a mutex free should look twice.
    pub(super) fn may_have_one_holder(&self) -> bool {
        self.looker.load_hint() & (HAMMERED | ROW) != 0
    }

    /// Whether the last two looks were the same thread's.
    pub(super) fn has_one_looker(&self) -> bool {
        (self.looker.load_hint() & ROW) >> ROW_SHIFT >= LOOKS_OF_ONE
    }

    /// A mutex here was released, and taken again at once.
    pub(super) fn note_retaken(&self) {
        let looker = self.looker.load_hint();
        if looker & HAMMERED != DOUBTS {
            self.looker.store_hint(looker & !HAMMERED | DOUBTS);
        }
    }

    /// A mutex here stayed free for a while, or is released by several threads.
    pub(super) fn note_shared(&self) {
        let looker = self.looker.load_hint();
        if looker & HAMMERED != 0 {
            self.looker.store_hint(looker - 1);
        }
    }
}

impl<P: Clock + Schedule> Pace<P> {
    /// The time, in units; it goes round.
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

    /// Whether a waiter may pass the heavy side of the fence now, and all others later; else when it may, in ns.
    pub(super) fn fence(&self) -> Result<(), u64> {
        let (now, times) = (Self::now(), self.times.load_hint());
        let from = times >> FENCE_SHIFT;
        let left = from.wrapping_sub(now) & LOOKED_AT;
        // More than that is the past: the time has gone round.
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
        let hammered = if in_row == LOOKS_IN_ROW { DOUBTS } else { last & HAMMERED };
        self.looker.store_hint(thread | in_row << ROW_SHIFT | hammered);
    }
}

impl<P: Platform> Default for Pace<P> {
    fn default() -> Self {
        Self { releases: Atomic::new(0), times: Atomic::new(0), looker: Atomic::new(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{NOW_NS, OTHER, OneThread, THIRD, THREAD_ID};

    /// Releases until the next look, that one included.
    fn releases_to_look(pace: &Pace<OneThread>) -> usize {
        (1..).find(|_| pace.is_time_to_look()).unwrap()
    }

    #[test]
    fn looks_come_after_about_the_same_time_however_often_there_are_releases() {
        for release_ns in [4, 100, 1000, 20_000] {
            let pace = Pace::<OneThread>::default();
            let mut between_ns = 0;
            for _ in 0..40 {
                pace.looked();
                between_ns = releases_to_look(&pace) as u64 * release_ns;
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
    fn it_is_hammered_until_it_has_stayed_free_several_times() {
        let pace = Pace::<OneThread>::default();
        assert_eq!(pace.holders(), Holders::Several);
        pace.note_retaken();
        for _ in 0..DOUBTS {
            assert_eq!(pace.holders(), Holders::One);
            pace.note_shared();
        }
        assert_eq!(pace.holders(), Holders::Several);
        pace.note_shared();
        assert_eq!(pace.holders(), Holders::Several);
    }

    #[test]
    fn a_thread_that_looks_again_and_again_hammers() {
        let pace = Pace::<OneThread>::default();
        let look_as = |thread| {
            THREAD_ID.set(thread);
            pace.looked();
        };
        for _ in 0..100 {
            look_as(OTHER);
            look_as(THIRD);
        }
        assert!(!pace.may_have_one_holder() && !pace.has_one_looker());
        look_as(THIRD);
        assert!(pace.has_one_looker() && pace.holders() == Holders::Several);
        (0..LOOKS_IN_ROW).for_each(|_| look_as(OTHER));
        assert_eq!(pace.holders(), Holders::Several);
        assert!(pace.may_have_one_holder());
        look_as(OTHER);
        assert_eq!(pace.holders(), Holders::One);
    }

    #[test]
    fn heavy_fences_are_a_while_apart_whenever_that_is() {
        for begin_ns in [0, 1 << 26, 0xffff << UNIT_SHIFT] {
            let pace = Pace::<OneThread>::default();
            NOW_NS.set(begin_ns);
            pace.looked();
            assert_eq!(pace.fence(), Ok(()));
            let next_ns = pace.fence().unwrap_err();
            assert!(next_ns > begin_ns + 1_000_000 && next_ns < begin_ns + 2_000_000, "{next_ns}");
            NOW_NS.set(next_ns - 1024);
            pace.looked();
            assert_eq!(pace.fence(), Err(next_ns));
            NOW_NS.set(next_ns);
            assert_eq!(pace.fence(), Ok(()));
            NOW_NS.set(next_ns + 40_000_000);
            assert_eq!(pace.fence(), Ok(()), "much later");
        }
        NOW_NS.set(u64::MAX);
        let pace = Pace::<OneThread>::default();
        assert_eq!((pace.fence(), pace.fence()), (Ok(()), Err(u64::MAX)), "the clock goes no further");
    }
}
