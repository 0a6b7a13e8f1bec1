//! Counting filter of a chain: tells a release whether threads wait for its mutex.
//!
//! ```text
//! filter   13 counts; the platform selects that of a mutex, by its address
//! count    bits 22-31 waiters in the queue, modulo 1024: a hint | 0-21 wake requests
//! ```
//! A count is written under the chain's lock, and read without. Mutexes of one chain share a count
//! where the platform selects the same one. A release of one of them then looks at the chain
//! although no thread waits for it. That costs time and nothing else.
//!
//! Requests do not carry into the waiters. A waiting thread has at most one, and Linux has at most
//! 2^22 threads (`PID_MAX_LIMIT`), of which the counting thread does not wait. The count of waiters
//! wraps around. It is a hint: when a release looks at the chain depends on it, and nothing else.
//!
//! Source: Fan, Cao, Almeida, Broder, "Summary cache", SIGCOMM 1998, section 5, with one hash
//! function.

use core::array;
use core::sync::atomic::Ordering::Relaxed;

use crate::platform::{Atomic, AtomicInt, Platform};

/// As many as fit into a line of 64 bytes, beside the [`Hints`](super::hints::Hints).
const COUNTS: usize = 13;
const WAITER_SHIFT: u32 = 22;
const REQUESTS: u32 = (1 << WAITER_SHIFT) - 1;

/// See the [module](self). All zero: no thread waits.
#[repr(transparent)]
pub struct Filter<P: Platform> {
    counts: [Count<P>; COUNTS],
}

/// Of the mutexes of a chain that share it.
#[repr(transparent)]
pub struct Count<P: Platform>(P::U32);

/// What a count was when it was read.
#[derive(Clone, Copy)]
pub(super) struct Counted(u32);

impl Counted {
    /// Whether a release must go to the chain.
    #[inline(always)]
    pub(super) fn is_requested(self) -> bool {
        self.0 & REQUESTS != 0
    }

    /// Whether threads seem to be in the queue.
    #[inline(always)]
    pub(super) fn has_waiters(self) -> bool {
        self.0 >> WAITER_SHIFT != 0
    }
}

impl<P: Platform> Count<P> {
    /// Relaxed: what is read at the chain is read under its lock, and the fences see to it that a
    /// request is seen.
    #[inline(always)]
    pub(super) fn read(&self) -> Counted {
        Counted(self.0.load(Relaxed))
    }

    /// One more thread is in the queue. Relaxed, as all changes of a count: under the chain's lock.
    // A load and a store would do. But loom follows no release that reads between the two.
    pub(super) fn add_waiter(&self) {
        self.0.fetch_add(1 << WAITER_SHIFT, Relaxed);
    }

    /// One thread less is in the queue.
    pub(super) fn remove_waiter(&self) {
        self.0.fetch_sub(1 << WAITER_SHIFT, Relaxed);
    }

    /// One more thread has made a wake request: the next release has to go to the chain.
    pub(super) fn add_request(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    /// One wake request less.
    pub(super) fn remove_request(&self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl<P: Platform> Filter<P> {
    /// The count of a mutex with this [place](crate::parking::chain::Chains::place_in_chain).
    #[inline(always)]
    pub(super) fn at(&self, place: u32) -> &Count<P> {
        &self.counts[((u64::from(place) * COUNTS as u64) >> u32::BITS) as usize]
    }
}

impl<P: Platform> Default for Filter<P> {
    fn default() -> Self {
        Self { counts: array::from_fn(|_| Count(Atomic::new(0))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Native;

    #[test]
    fn a_line_holds_it_beside_the_hints() {
        let together = size_of::<Filter<Native>>() + size_of::<crate::near::mutex::hints::Hints<Native>>();
        assert!(together <= 64 && together + size_of::<Count<Native>>() > 64, "{together}");
    }

    #[test]
    fn waiters_and_requests_are_told_apart() {
        let count = Count::<Native>(Atomic::new(0));
        let seen = || (count.read().has_waiters(), count.read().is_requested());
        assert_eq!(seen(), (false, false));
        count.add_waiter();
        assert_eq!(seen(), (true, false));
        count.add_request();
        assert_eq!(seen(), (true, true));
        count.remove_waiter();
        assert_eq!(seen(), (false, true));
        count.remove_request();
        assert_eq!(seen(), (false, false));
    }

    #[test]
    fn however_many_wait_requests_are_not_lost() {
        let count = Count::<Native>(Atomic::new(0));
        count.add_request();
        for _ in 0..3000 {
            count.add_waiter();
            assert!(count.read().is_requested());
        }
        count.remove_request();
        (0..3000).for_each(|_| count.remove_waiter());
        assert!(!count.read().is_requested() && !count.read().has_waiters());
    }

    #[test]
    fn each_count_is_for_as_many_places() {
        let filter = Filter::<Native>::default();
        let places = 1 << 16;
        for place in 0..places {
            filter.at(place << 16).add_waiter();
        }
        let seen = filter.counts.each_ref().map(|count| count.0.load(Relaxed) >> WAITER_SHIFT);
        let fair = places / COUNTS as u32;
        assert!(seen.iter().all(|seen| *seen == fair % 1024 || *seen == (fair + 1) % 1024), "{seen:?}");
    }
}
