//! A cache that all threads use. It is measured with several locks.
//!
//! ```text
//! cargo run --release -p nearlock --example cache
//! cargo run --release -p nearlock --example cache -- --threads 8
//! ```
//!
//! The program to copy is `cache/program.rs`. A lookup changes the order of use, so readers write,
//! too. This is why the lock is a mutex. The last line shows a reader-writer lock in its place.

mod measure;

use std::iter::successors;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use measure::Variant;

/// The program with one lock.
macro_rules! program {
    ($module:ident, $lock:path) => {
        mod $module {
            use $lock as Mutex;

            include!("cache/program.rs");

            pub fn throughput(threads: usize) -> f64 {
                let cache = Cache::new(crate::CAPACITY);
                let look = |key: &u64| cache.get(key, crate::steps);
                let throughput = crate::throughput(threads, look);
                assert!(cache.len() <= crate::CAPACITY);
                throughput
            }
        }
    };
}

program!(near, nearlock::Mutex);
program!(parking_lot, parking_lot_013::Mutex);
program!(of_std, crate::measure::std_locks::Mutex);
program!(rwlock, crate::RwLockAsMutex);

/// A reader-writer lock in place of the mutex. Each lookup writes.
struct RwLockAsMutex<T>(nearlock::RwLock<T>);

impl<T> RwLockAsMutex<T> {
    const fn new(value: T) -> Self {
        Self(nearlock::RwLock::new(value))
    }

    fn lock(&self) -> nearlock::RwLockWriteGuard<'_, T> {
        self.0.write()
    }
}

const CAPACITY: usize = 256;
const KEYS: u64 = 300;

/// The number of steps from `start + 1` to 1 in the Collatz sequence.
fn steps(start: &u64) -> u64 {
    let next = |number: &u64| Some(if number.is_multiple_of(2) { number / 2 } else { 3 * number + 1 });
    successors(Some(start + 1), next).take_while(|number| *number != 1).count() as u64
}

/// The lookups of all threads per microsecond.
fn throughput(threads: usize, look: impl Fn(&u64) -> u64 + Sync) -> f64 {
    let expected: Vec<u64> = (0..KEYS).map(|key| steps(&key)).collect();
    measure::throughput(threads, |thread, is_over: &AtomicBool| {
        let mut looks = 0;
        while !is_over.load(Relaxed) {
            // Small keys are used more often.
            let at_random = (looks + thread as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let key = at_random % KEYS * (at_random / KEYS % KEYS) / KEYS;
            assert_eq!(look(&key), expected[key as usize]);
            looks += 1;
        }
        looks
    })
}

fn main() {
    let variants = [
        Variant { lock: "nearlock::Mutex", throughput: near::throughput },
        Variant { lock: "parking_lot::Mutex (0.13)", throughput: parking_lot::throughput },
        Variant { lock: "std::sync::Mutex", throughput: of_std::throughput },
        Variant { lock: "nearlock::RwLock, by write", throughput: rwlock::throughput },
    ];
    measure::compare("lookups", measure::threads(), &variants);
}
