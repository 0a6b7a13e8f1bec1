//! Condition variables whose waiters give up in all ways. They are freed and made again all the
//! time.
//!
//! Would find:
//! * a notification that reaches no waiter, or two;
//! * a waiter that gives up and loses a notification;
//! * a waiter of the condition variable or of the mutex that sleeps on;
//! * two holders of the mutex;
//! * an access to a mutex or a condition variable that may be freed. The next round has its own at
//!   the same addresses.

use std::array;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::{Duration, Instant};

use nearlock::{Cancellation, Condvar, LockCancellable, Mutex, MutexGuard, WaitCancellable};

use crate::support::{Random, Sections, Watchdog, run_time};

const THREADS: u64 = 6;

/// One mutex, its two condition variables, and the common data of the round's threads.
#[derive(Default)]
struct Round {
    mutex: Box<Mutex<u64>>,
    condvars: Box<[Condvar; 2]>,
    cancellation: Cancellation,
    is_over: AtomicBool,
    sections: Sections,
    tally: Tally,
}

#[derive(Default)]
struct Tally {
    /// How many waiters the notifications have reached, by their results.
    notified: AtomicU64,
    /// How many waits have ended by a notification.
    woken: AtomicU64,
    /// How many have ended by their limit or by the cancellation.
    given_up: AtomicU64,
}

impl Tally {
    fn note_wait(&self, is_woken: bool) {
        let count = if is_woken { &self.woken } else { &self.given_up };
        count.fetch_add(1, Relaxed);
    }
}

impl Round {
    fn section(&self, guard: &mut MutexGuard<'_, u64>) {
        self.sections.pass(guard, || ());
    }

    fn notify_one(&self, condvar: &Condvar) {
        let guard = self.mutex.lock();
        let is_notified = condvar.notify_one();
        drop(guard);
        self.tally.notified.fetch_add(u64::from(is_notified), Relaxed);
    }

    fn notify_all(&self, condvar: &Condvar) {
        self.tally.notified.fetch_add(condvar.notify_all() as u64, Relaxed);
    }

    fn wait_for(&self, condvar: &Condvar, time: Duration) {
        let mut guard = self.mutex.lock();
        let waited = condvar.wait_for(&mut guard, time);
        self.tally.note_wait(!waited.timed_out());
        self.section(&mut guard);
    }

    /// It is cancelled at the end of the round at the latest.
    fn wait_cancellable(&self, condvar: &Condvar) {
        let mut guard = self.mutex.lock();
        let waited = condvar.wait_cancellable(&mut guard, &self.cancellation);
        self.tally.note_wait(waited.is_ok());
        self.section(&mut guard);
    }

    fn lock_for(&self, time: Duration) {
        if let Some(mut guard) = self.mutex.try_lock_for(time) {
            self.section(&mut guard);
            MutexGuard::unlock_fair(guard);
        }
    }

    fn lock_cancellable(&self) {
        if let Ok(mut guard) = self.mutex.lock_cancellable(&self.cancellation) {
            self.section(&mut guard);
        }
    }

    fn lock_and_offer(&self) {
        let mut guard = self.mutex.lock();
        self.section(&mut guard);
        MutexGuard::bump(&mut guard);
    }

    fn step(&self, random: &mut Random) {
        let condvar = &self.condvars[usize::from(random.below(3) == 0)];
        match random.below(8) {
            0 => self.notify_all(condvar),
            1 | 2 => self.notify_one(condvar),
            3 => self.wait_for(condvar, Duration::from_nanos(random.below(60_000))),
            4 => self.wait_cancellable(condvar),
            5 => self.lock_for(Duration::from_nanos(random.below(30_000))),
            6 => self.lock_cancellable(),
            _ => self.lock_and_offer(),
        }
    }

    fn run(&self, seeds: [u64; THREADS as usize], time: Duration) {
        thread::scope(|scope| {
            for seed in seeds {
                scope.spawn(move || {
                    let mut random = Random::new(seed);
                    while !self.is_over.load(Relaxed) {
                        self.step(&mut random);
                    }
                });
            }
            thread::sleep(time);
            self.is_over.store(true, Relaxed);
            self.cancellation.cancel();
        });
    }
}

#[test]
fn every_notification_reaches_one_waiter() {
    let _watchdog = Watchdog::new("threads wait for a mutex or its condition variables");
    let end = Instant::now() + run_time();
    let (mut round, mut given_up, mut notified) = (0, 0, 0);
    while Instant::now() < end {
        let this = Round::default();
        // From a few steps of each thread to many.
        let time = Duration::from_micros(500 + round % 7 * 700) * if cfg!(miri) { 20 } else { 1 };
        this.run(array::from_fn(|thread| round * THREADS + thread as u64), time);
        assert_eq!(this.sections.fault(*this.mutex.lock()), None, "round {round}");
        let [sent, woken] = [&this.tally.notified, &this.tally.woken].map(|count| count.load(Relaxed));
        assert_eq!(sent, woken, "round {round}: notifications, and waits that they have ended");
        notified += sent;
        given_up += this.tally.given_up.load(Relaxed);
        round += 1;
    }
    println!("{round} rounds: {notified} waits were notified, {given_up} gave up");
}
