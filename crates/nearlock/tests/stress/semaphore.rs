//! Would find: more permits in use than there are; a waiter that is not woken; permits that get
//! lost or appear, in particular where waiters give up.

use std::array;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::thread;
use std::time::{Duration, Instant};

use nearlock::{Cancellation, Semaphore, SemaphoreGuard};

use super::support::{Random, Watchdog, run_time};

const THREADS: usize = 6;
const PERMITS: usize = 4;

struct Round {
    semaphore: Semaphore,
    in_use: AtomicUsize,
    acquired: AtomicU64,
    given_up: AtomicU64,
    cancellation: Cancellation,
    is_over: AtomicBool,
}

impl Round {
    const fn new() -> Self {
        Self {
            semaphore: Semaphore::new(PERMITS),
            in_use: AtomicUsize::new(0),
            acquired: AtomicU64::new(0),
            given_up: AtomicU64::new(0),
            cancellation: Cancellation::new(),
            is_over: AtomicBool::new(false),
        }
    }

    fn section(&self, guard: Option<SemaphoreGuard<'_>>) {
        let Some(guard) = guard else {
            self.given_up.fetch_add(1, Relaxed);
            return;
        };
        self.acquired.fetch_add(1, Relaxed);
        let before = self.in_use.fetch_add(guard.permits(), Relaxed);
        assert!(before + guard.permits() <= PERMITS, "{before} and {} are in use", guard.permits());
        thread::yield_now();
        self.in_use.fetch_sub(guard.permits(), Relaxed);
    }

    fn step(&self, random: &mut Random) {
        let permits = 1 + random.below(PERMITS as u64) as usize;
        let time = Duration::from_nanos(random.below(50_000));
        let semaphore = &self.semaphore;
        self.section(match random.below(5) {
            0 => semaphore.try_acquire_many(permits),
            1 | 2 => semaphore.try_acquire_many_for(permits, time),
            3 => semaphore.acquire_many_cancellable(permits, &self.cancellation).ok(),
            _ => Some(semaphore.acquire_many(permits)),
        });
    }
}

#[test]
fn permits_are_neither_lost_nor_made() {
    let _watchdog = Watchdog::new("threads wait for a semaphore");
    let end = Instant::now() + run_time();
    let (mut rounds, mut acquired, mut given_up) = (0, 0, 0);
    while Instant::now() < end {
        let round = Round::new();
        let seeds: [u64; THREADS] = array::from_fn(|thread| (rounds * THREADS + thread) as u64);
        thread::scope(|scope| {
            for seed in seeds {
                let round = &round;
                scope.spawn(move || {
                    let mut random = Random::new(seed);
                    while !round.is_over.load(Relaxed) {
                        round.step(&mut random);
                    }
                });
            }
            thread::sleep(Duration::from_millis(if cfg!(miri) { 60 } else { 20 }));
            round.is_over.store(true, Relaxed);
            round.cancellation.cancel();
        });
        assert_eq!(round.semaphore.available_permits(), PERMITS, "round {rounds}");
        assert!(round.semaphore.try_acquire_many(PERMITS).is_some(), "a waiter is left in the queue");
        acquired += round.acquired.load(Relaxed);
        given_up += round.given_up.load(Relaxed);
        rounds += 1;
    }
    println!("{rounds} rounds: {acquired} acquisitions, {given_up} waits gave up");
}
