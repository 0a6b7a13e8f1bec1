//! Measures how often a lock stays on its NUMA node. The threads claim to run on one of two NUMA
//! nodes.
//!
//! ```text
//! cargo run --release -p nearlock --example numa_claims
//! ```
//!
//! The claims show the order in which a lock serves its waiters, even on a machine with one NUMA
//! node. They cannot show the benefit of that order there, since all hand-overs have the same cost.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use nearlock::linux::{RawCnaLock, RawSpinLock};
use nearlock::lock_api::{Mutex, RawMutex};
use nearlock::process::{Setting, set_numa_node, set_setting};

/// Enough for a queue that can be sorted.
const THREADS: u32 = 8;
const RUN: Duration = Duration::from_millis(200);

/// The data that the lock protects: where the lock has been.
#[derive(Default)]
struct Travels {
    numa_node: u32,
    acquisitions: u64,
    /// Acquisitions after one on the same NUMA node.
    local: u64,
}

impl Travels {
    fn arrive(&mut self, numa_node: u32) {
        self.acquisitions += 1;
        self.local += u64::from(self.numa_node == numa_node);
        self.numa_node = numa_node;
    }
}

/// Lets threads of two NUMA nodes contend for a lock.
fn contend<R: RawMutex + Sync>() -> Travels {
    let (travels, stop) = (Mutex::<R, _>::new(Travels::default()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (travels, stop) = (&travels, &stop);
            scope.spawn(move || {
                let numa_node = thread % 2;
                set_numa_node(Some(numa_node));
                while !stop.load(Relaxed) {
                    let mut travels = travels.lock();
                    travels.arrive(numa_node);
                    // Other threads queue meanwhile, even if there are fewer processors than
                    // threads.
                    std::thread::yield_now();
                }
            });
        }
        std::thread::sleep(RUN);
        stop.store(true, Relaxed);
    });
    travels.into_inner()
}

fn main() {
    // CNA then sorts the waiters at each acquisition. By default, a lock with little contention
    // hardly ever does.
    set_setting(Setting::CnaShuffleReduction, 0).expect("0 is its least value");
    println!("{THREADS} threads on two claimed NUMA nodes, {RUN:?} for each lock");
    for (name, travels) in [("SpinLock", contend::<RawSpinLock>()), ("CnaLock", contend::<RawCnaLock>())] {
        let share = 100.0 * travels.local as f64 / travels.acquisitions as f64;
        println!(
            "{name:8}  {:8} acquisitions, {share:5.1} % on the node of the one before",
            travels.acquisitions
        );
    }
}
