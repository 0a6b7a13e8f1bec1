//! A storm of cancellations: rounds in which everybody comes, and one who cancels those who wait.
//!
//! A lock that loses the wake-up of a waiter that gave up can go unnoticed for long, because
//! whoever comes next makes good for it. So nobody comes again in a round that has finished his
//! share of it, and at the end of each round every waiter must have had the lock, or have given up.

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

/// Where all threads meet at the end of a round.
struct Rounds {
    threads: usize,
    round: Mutex<Round>,
    next: Condvar,
}

impl Rounds {
    /// Waits until all have arrived, or the storm is over. Whether all have.
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
    /// By which each thread waits at present. A cancelled one stays so: its thread then takes
    /// another.
    cancellations: Vec<OwnLine<Mutex<Arc<Cancellation<P>>>>>,
    over: AtomicBool,
}

/// Of two waiters, how many wait for ever. Those who sleep on after a wake-up was lost are among
/// them.
pub const UNLIMITED_ONE_IN: u64 = 2;
/// After how many acquisitions a thread has done its share of a round, on average.
const ACQUISITIONS_A_ROUND: u32 = 2;
/// One section in so many is left for another thread, so that waiters come together also on few
/// processors.
const YIELDING_ONE_IN: u32 = 2;
/// One section in so many sleeps, at most for [`SLEEP_NS_MAX`]: waiters fall asleep, too.
const SLEEPING_ONE_IN: u32 = 8;
/// See above: some wake-ups long.
const SLEEP_NS_MAX: u32 = 1 << 16;
/// The canceller pauses after one look in so many, for at most [`PAUSE_NS_MAX`]. Else hardly
/// anybody who waits by a cancellation would get the lock.
const PAUSE_ONE_IN: u32 = 4;
/// See above: a few hand-overs.
const PAUSE_NS_MAX: u32 = 1 << 14;
/// A thread that has the lock cancels those who wait, each with a chance of one in so many; so does
/// one that has just released it, when whoever is woken has not run yet. So there are cancellations
/// as long as anybody runs: the canceller, too, waits for a processor where they are few, and would
/// have its turn a hundred times a second.
const CANCELLED_ONE_IN: u32 = 2;

impl<P: Work + Random + Park> Storm<P> {
    pub fn new(threads: usize) -> Self {
        Self {
            rounds: Rounds { threads, round: Mutex::default(), next: Condvar::new() },
            cancellations: (0..threads).map(|_| OwnLine::default()).collect(),
            over: AtomicBool::new(false),
        }
    }

    /// By which this thread is to wait next.
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

    /// Cancels some of those that wait.
    fn gust(&self, waits: impl Fn(usize) -> bool) {
        let waiting = (0..self.cancellations.len()).filter(|thread| waits(*thread));
        waiting.filter(|_| one_in::<P>(CANCELLED_ONE_IN)).for_each(|thread| self.cancel(thread));
    }

    /// What the holder does in its section.
    pub fn hold(&self, waits: impl Fn(usize) -> bool) {
        self.gust(waits);
        if one_in::<P>(SLEEPING_ONE_IN) {
            P::sleep_ns(u64::from(P::random_u32() % SLEEP_NS_MAX));
        } else if one_in::<P>(YIELDING_ONE_IN) {
            P::preempt();
        }
    }

    /// To be called after each acquisition, or after it was given up: at random, the thread has
    /// then done its share of the round. Whether the storm goes on.
    pub fn goes_on(&self, waits: impl Fn(usize) -> bool) -> bool {
        self.gust(waits);
        !one_in::<P>(ACQUISITIONS_A_ROUND) || self.rounds.arrive()
    }

    /// Cancels those who wait, until it is over.
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

    /// Ends it.
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
    fn who_waits_is_cancelled_and_waits_by_another_then() {
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
