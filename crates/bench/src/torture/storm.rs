//! A storm of cancellations: rounds in which all threads take part, and a canceller that cancels
//! waiters.
//!
//! A lock that loses a wake-up when a waiter gives up can remain undetected for long, because the
//! next thread to arrive repairs the loss. So a thread that has finished its share of a round does
//! not acquire the lock again in that round. At the end of each round every waiter must have had
//! the lock or have given up.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use nearlock_core::parking::Cancellation;
use nearlock_core::platform::{Park, Random, Work};
use nearlock_workload::locktorture::OwnLine;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct Round {
    number: u64,
    arrived: usize,
    stopped: bool,
}

/// The point at which all threads meet at the end of a round.
struct Rounds {
    threads: usize,
    round: Mutex<Round>,
    next: Condvar,
}

impl Rounds {
    /// Waits until all threads have arrived, or the storm is over. Returns whether all have
    /// arrived.
    fn arrive(&self) -> bool {
        let mut round = locked(&self.round);
        let mine = round.number;
        round.arrived += 1;
        if round.arrived == self.threads {
            round.arrived = 0;
            round.number += 1;
            self.next.notify_all();
        }
        while round.number == mine && !round.stopped {
            round = self.next.wait(round).unwrap_or_else(PoisonError::into_inner);
        }
        round.number != mine
    }
}

/// See the [module](self).
pub struct Storm<P: Park> {
    rounds: Rounds,
    /// The cancellation of each thread's current wait. After a cancellation, the thread takes a new
    /// one.
    cancellations: Vec<OwnLine<Mutex<Arc<Cancellation<P>>>>>,
    over: AtomicBool,
}

/// One waiter in this many waits without a limit. The waiters that sleep on after a lost wake-up
/// are among them.
pub const UNLIMITED_ONE_IN: u64 = 2;
/// Average number of acquisitions after which a thread has done its share of a round.
const ACQUISITIONS_A_ROUND: u32 = 2;
/// The holder yields in one section of this many. So several threads wait at the same time even on
/// few CPUs.
const YIELDING_ONE_IN: u32 = 2;
/// The holder sleeps in one section of this many, for at most [`SLEEP_NS_MAX`]. So waiters fall
/// asleep too.
const SLEEPING_ONE_IN: u32 = 8;
/// Longest sleep of a holder: as long as some wake-ups.
const SLEEP_NS_MAX: u32 = 1 << 16;
/// The canceller pauses after one look of this many, for at most [`PAUSE_NS_MAX`]. Otherwise hardly
/// any cancellable waiter would get the lock.
const PAUSE_ONE_IN: u32 = 4;
/// Longest pause of the canceller: as long as a few hand-overs.
const PAUSE_NS_MAX: u32 = 1 << 14;
/// A holder cancels each waiter with a chance of one in this many. So does a thread that has just
/// released the lock, while the woken waiter has not run yet. So there are cancellations as long as
/// any thread runs. The canceller alone would not suffice: on few CPUs it has to wait for a CPU,
/// and would run a hundred times a second.
const CANCELLED_ONE_IN: u32 = 2;

impl<P: Work + Random + Park> Storm<P> {
    pub fn new(threads: usize) -> Self {
        Self {
            rounds: Rounds { threads, round: Mutex::default(), next: Condvar::new() },
            cancellations: (0..threads).map(|_| OwnLine::default()).collect(),
            over: AtomicBool::new(false),
        }
    }

    /// The cancellation for this thread's next wait.
    pub fn cancellation(&self, thread: usize) -> Arc<Cancellation<P>> {
        let mut present = locked(&self.cancellations[thread].0);
        if present.is_cancelled() {
            *present = Arc::default();
        }
        Arc::clone(&present)
    }

    fn cancel(&self, thread: usize) {
        let cancellation = Arc::clone(&locked(&self.cancellations[thread].0));
        cancellation.cancel();
    }

    /// Cancels some of the waiters.
    fn gust(&self, waits: impl Fn(usize) -> bool) {
        let waiting = (0..self.cancellations.len()).filter(|thread| waits(*thread));
        waiting.filter(|_| one_in::<P>(CANCELLED_ONE_IN)).for_each(|thread| self.cancel(thread));
    }

    /// The holder's part in its section.
    pub fn hold(&self, waits: impl Fn(usize) -> bool) {
        self.gust(waits);
        if one_in::<P>(SLEEPING_ONE_IN) {
            P::sleep_ns(u64::from(P::random_u32() % SLEEP_NS_MAX));
        } else if one_in::<P>(YIELDING_ONE_IN) {
            P::preempt();
        }
    }

    /// Call it after each acquisition, and after each wait that was given up. At random, the thread
    /// has then done its share of the round. Returns whether the storm continues.
    pub fn goes_on(&self, waits: impl Fn(usize) -> bool) -> bool {
        self.gust(waits);
        !one_in::<P>(ACQUISITIONS_A_ROUND) || self.rounds.arrive()
    }

    /// Cancels waiters until the storm is over.
    pub fn rage(&self, waits: impl Fn(usize) -> bool) {
        while !self.over.load(Relaxed) {
            let thread = P::random_u32() as usize % self.cancellations.len();
            if waits(thread) {
                self.cancel(thread);
            } else {
                P::preempt();
            }
            if one_in::<P>(PAUSE_ONE_IN) {
                P::busy_ns(u64::from(P::random_u32() % PAUSE_NS_MAX));
            }
        }
    }

    /// Ends the storm.
    pub fn end(&self) {
        self.over.store(true, Relaxed);
        locked(&self.rounds.round).stopped = true;
        self.rounds.next.notify_all();
    }
}

fn one_in<P: Random>(n: u32) -> bool {
    P::random_u32().is_multiple_of(n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watched::OsWatched;

    #[test]
    fn a_round_ends_when_all_have_arrived_and_the_last_when_it_is_over() {
        let storm = Storm::<OsWatched>::new(2);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| (storm.rounds.arrive(), storm.rounds.arrive()));
            assert!(storm.rounds.arrive());
            storm.end();
            assert_eq!(other.join().unwrap(), (true, false));
        });
    }

    #[test]
    fn a_cancelled_waiter_gets_another_cancellation() {
        let storm = Storm::<OsWatched>::new(2);
        let [first, second] = [storm.cancellation(0), storm.cancellation(1)];
        std::thread::scope(|scope| {
            scope.spawn(|| storm.rage(|thread| thread == 1));
            while !second.is_cancelled() {
                std::thread::yield_now();
            }
            storm.end();
        });
        assert!(!first.is_cancelled() && Arc::ptr_eq(&first, &storm.cancellation(0)));
        assert!(!storm.cancellation(1).is_cancelled());
    }
}
