//! Counting filter of a chain: tells a release whether threads wait for its mutex.
//!
//! ```text
//! filter   11 counts; the platform selects that of a mutex, by its address
//! count    bits 22-31 waiters in the queue, modulo 1024: a hint | 0-21 wake requests
//! ```
//! A count is written under the chain's lock, and read without. Mutexes of one chain share a count
//! if the platform selects the same one for them. A release of one of them then visits the chain
//! although no thread waits for it. That costs time, and nothing else.
//!
//! The number of wake requests never overflows into the number of waiters. A thread has at most one
//! request, and Linux has at most 2^22 - 1 threads: their ids are not 0, and less than 2^22
//! (`PID_MAX_LIMIT`). The number of waiters wraps around. It is a hint: it decides only when a
//! release visits the chain.
//!
//! **Why the counts are not in the mutex.** The thread that finds the mutex free may be the last to
//! use it. It may free the memory before the release that has made the mutex free has returned. So
//! a release does not access the mutex after it has stored 0. It reads the count in a table that is
//! never freed, and uses only the address of the mutex. (A swap as the last access would do as
//! well. It would be a second atomic read-modify-write. The head of `mutex.rs` says what that
//! costs.) A late release may find waiters of a new mutex at the same address. It then wakes a
//! waiter for no reason. The waiter tolerates that, although it may have to join the queue again.
//!
//! Source: Fan, Cao, Almeida, Broder, "Summary cache", SIGCOMM 1998, section 5, with one hash
//! function.

use core::array;
use core::sync::atomic::Ordering::Relaxed;

use crate::platform::{Atomic, AtomicInt, Platform};

/// As many as fit into a cache line of 64 bytes together with the [`Hints`](super::hints::Hints)
/// and the patience of condition variables. With fewer, more mutexes share a count, and more
/// releases visit a chain for another mutex. With more, a release that also reads the hints reads
/// two cache lines. docs/guide/cargo-bench.md, "Many sleepers", compares 13 counts, as there were
/// before, with one. The command is `cargo bench -p nearlock --bench sleepers`.
const COUNTS: usize = 11;
const WAITER_SHIFT: u32 = 22;
const REQUESTS: u32 = (1 << WAITER_SHIFT) - 1;

/// See the [module](self). All zero: no thread waits.
#[repr(transparent)]
pub struct Filter<P: Platform> {
    counts: [Count<P>; COUNTS],
}

/// The count of those mutexes of a chain that share it.
#[repr(transparent)]
pub struct Count<P: Platform>(P::U32);

/// The value of a count when it was read.
#[derive(Clone, Copy)]
pub(super) struct Counted(u32);

impl Counted {
    /// Whether a release must visit the chain.
    #[inline(always)]
    pub(super) fn is_requested(self) -> bool {
        self.0 & REQUESTS != 0
    }

    /// Whether threads seem to be in the queue.
    #[inline(always)]
    pub(super) fn has_waiters(self) -> bool {
        self.waiters() != 0
    }

    /// The number of threads in the queue, modulo 1024.
    #[inline(always)]
    pub(super) fn waiters(self) -> u32 {
        self.0 >> WAITER_SHIFT
    }

    /// The number of wake requests.
    pub(super) fn requests(self) -> u32 {
        self.0 & REQUESTS
    }
}

impl<P: Platform> Count<P> {
    /// Relaxed: the fences make sure that a request is seen (`mutex.rs`). The number of waiters is
    /// a hint.
    #[inline(always)]
    pub(super) fn read(&self) -> Counted {
        Counted(self.0.load(Relaxed))
    }

    /// Counts one more thread in the queue. All changes of a count are made under the chain's lock.
    pub(super) fn add_waiter(&self) {
        self.0.add_alone(1 << WAITER_SHIFT);
    }

    /// Counts one thread less in the queue.
    pub(super) fn remove_waiter(&self) {
        self.0.sub_alone(1 << WAITER_SHIFT);
    }

    /// Counts one more wake request: the next release has to visit the chain.
    pub(super) fn add_request(&self) {
        self.0.add_alone(1);
    }

    /// Counts one wake request less.
    pub(super) fn remove_request(&self) {
        self.0.sub_alone(1);
    }
}

impl<P: Platform> Filter<P> {
    /// Whether there is a wake request for any mutex of the chain.
    pub(super) fn has_requests(&self) -> bool {
        self.counts.iter().any(|count| count.read().is_requested())
    }

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
        let beside = size_of::<crate::near::mutex::hints::Hints<Native>>() + size_of::<u32>();
        let together = size_of::<Filter<Native>>() + beside;
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
    fn requests_are_not_lost_however_many_threads_wait() {
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
