//! A configuration that all threads read, and that is replaced now and then. It is measured with
//! several locks.
//!
//! ```text
//! cargo run --release -p nearlock --example config
//! cargo run --release -p nearlock --example config -- --threads 8
//! ```
//!
//! The program to copy is `config/program.rs`. Each thread asks for limits of customers, and hashes
//! the customer's name in between. Another thread replaces the configuration 100 times a second.
//! Most servers do so far less often. The last line shows a mutex in place of the lock.

mod measure;

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use measure::Variant;
use near::Limits;

/// The program with one lock.
macro_rules! program {
    ($module:ident, $lock:path) => {
        mod $module {
            use $lock as RwLock;

            include!("config/program.rs");

            pub fn throughput(threads: usize) -> f64 {
                crate::throughput(threads, limit, reload)
            }
        }
    };
}

program!(near, nearlock::RwLock);
program!(parking_lot, parking_lot_013::RwLock);
program!(of_std, crate::measure::std_locks::RwLock);
program!(mutex, crate::MutexAsRwLock);

/// A mutex in place of the lock, so readers exclude each other.
struct MutexAsRwLock<T>(nearlock::Mutex<T>);

impl<T> MutexAsRwLock<T> {
    const fn new(value: T) -> Self {
        Self(nearlock::Mutex::new(value))
    }

    fn read(&self) -> nearlock::MutexGuard<'_, T> {
        self.0.lock()
    }

    fn write(&self) -> nearlock::MutexGuard<'_, T> {
        self.0.lock()
    }
}

const CUSTOMERS: u32 = 64;
const BETWEEN_RELOADS: Duration = Duration::from_millis(10);

/// A configuration in which each limit is the number of the version.
fn version(number: u32) -> Limits {
    (0..CUSTOMERS).map(|customer| (format!("customer-{customer}"), number)).collect()
}

/// The requests of all threads per microsecond.
fn throughput(
    threads: usize,
    limit: impl Fn(&str) -> Option<u32> + Sync,
    reload: impl Fn(Limits) + Sync,
) -> f64 {
    reload(version(1));
    let reload_until = |is_over: &AtomicBool| {
        let mut number = 1;
        while !is_over.load(Relaxed) {
            std::thread::sleep(BETWEEN_RELOADS);
            number += 1;
            reload(version(number));
        }
    };
    measure::throughput(threads + 1, |thread, is_over| {
        if thread == threads {
            reload_until(is_over);
            return 0;
        }
        let customers: Vec<String> = version(0).into_keys().collect();
        let hasher = RandomState::new();
        let (mut requests, mut newest, mut customer) = (0, 0, &customers[0]);
        while !is_over.load(Relaxed) {
            let number = limit(customer).expect("each customer has a limit");
            assert!(number >= newest, "an old configuration is back");
            newest = number;
            customer = &customers[hasher.hash_one((customer, requests)) as usize % customers.len()];
            requests += 1;
        }
        requests
    })
}

fn main() {
    let variants = [
        Variant { lock: "nearlock::RwLock", throughput: near::throughput },
        Variant { lock: "parking_lot::RwLock (0.13)", throughput: parking_lot::throughput },
        Variant { lock: "std::sync::RwLock", throughput: of_std::throughput },
        Variant { lock: "nearlock::Mutex", throughput: mutex::throughput },
    ];
    measure::compare("requests", measure::threads(), &variants);
}
