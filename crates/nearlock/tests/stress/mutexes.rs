//! Several mutexes, locked in all ways, alone and two at a time. They are freed and made again all
//! the time.
//!
//! Would find:
//! * two holders;
//! * a waiter that sleeps on at a free mutex, or leaves the queue and loses a grant;
//! * a mutex that is taken for another one in the same queue;
//! * an access to a mutex that may be freed. The next round has its own at the same addresses.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use nearlock::{Cancellation, LockCancellable, Mutex, MutexGuard};

use crate::support::{Random, Sections, Watchdog, run_time};

const THREADS: u64 = 5;
/// Not a power of two, which would repeat with the bits of addresses.
const MUTEXES: usize = 7;

#[derive(Default)]
struct Place {
    mutex: Mutex<u64>,
    sections: Sections,
}

impl Place {
    fn section(&self, guard: &mut MutexGuard<'_, u64>, random: &mut Random) {
        self.sections.pass(guard, || match random.below(400) {
            0 => thread::sleep(Duration::from_micros(60)),
            1..9 => thread::yield_now(),
            _ => {}
        });
    }
}

#[derive(Default)]
struct Round {
    places: Box<[Place; MUTEXES]>,
    cancellation: Cancellation,
    is_over: AtomicBool,
}

impl Round {
    /// Locks two neighbours, the first before the second as everywhere. Unlocks them in either
    /// order.
    fn lock_two(&self, at: usize, random: &mut Random) {
        let [first, second] = [&self.places[at], &self.places[at + 1]];
        let (mut one, mut two) = (first.mutex.lock(), second.mutex.lock());
        second.section(&mut two, random);
        if random.below(2) == 0 {
            drop(one);
            second.section(&mut two, random);
        } else {
            drop(two);
            first.section(&mut one, random);
        }
    }

    fn lock_one(&self, at: usize, random: &mut Random) {
        let place = &self.places[at];
        match random.below(7) {
            0 => {
                if let Some(mut guard) = place.mutex.try_lock() {
                    place.section(&mut guard, random);
                }
            }
            1 => {
                let time = Duration::from_nanos(random.below(50_000));
                if let Some(mut guard) = place.mutex.try_lock_for(time) {
                    place.section(&mut guard, random);
                    MutexGuard::unlock_fair(guard);
                }
            }
            2 => {
                if let Ok(mut guard) = place.mutex.lock_cancellable(&self.cancellation) {
                    place.section(&mut guard, random);
                }
            }
            _ => place.section(&mut place.mutex.lock(), random),
        }
    }

    /// Uses one mutex for some time, like a thread that uses the same data for a while.
    fn burst(&self, random: &mut Random) {
        let at = random.below(MUTEXES as u64) as usize;
        for _ in 0..random.below(6) {
            if at + 1 < MUTEXES && random.below(8) == 0 {
                self.lock_two(at, random);
            } else {
                self.lock_one(at, random);
            }
        }
    }

    fn run(&self, round: u64, time: Duration) {
        thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || {
                    let mut random = Random::new(round * THREADS + thread);
                    while !self.is_over.load(Relaxed) {
                        self.burst(&mut random);
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
fn several_mutexes_each_have_one_holder() {
    let _watchdog = Watchdog::new("threads wait for one of several mutexes");
    let end = Instant::now() + run_time();
    let (mut round, mut sections) = (0, 0);
    while Instant::now() < end {
        let this = Round::default();
        let time = Duration::from_micros(800 + round % 7 * 700) * if cfg!(miri) { 20 } else { 1 };
        this.run(round, time);
        for place in this.places.iter() {
            let count = place.mutex.try_lock().map(|count| *count).expect("no thread holds it any more");
            assert_eq!(place.sections.fault(count), None, "round {round}");
            sections += count;
        }
        round += 1;
    }
    println!("{round} rounds, {sections} sections");
}
