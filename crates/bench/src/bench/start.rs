//! Start: the first lock and unlock of a process that has other threads. Each sample is a new
//! process.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use nearlock_collection::subjects::LockVisitor;
use nearlock_core::raw::{RawLock, RawTryLock};
use nearlock_os::Os;

use super::helper::Helper;
use super::sample::{Outcome, Sample};
use super::statistics::{Waits, median};

/// Threads besides the main thread. They sleep.
pub const THREADS: usize = 16;

/// Measures the first lock and unlock of this process.
pub struct FirstLock;

impl LockVisitor<Os> for FirstLock {
    type Output = u64;
    fn visit<L: RawTryLock>(self) -> u64 {
        first_lock_ns::<L>()
    }
}

/// The time of the first lock and unlock of this process, in ns.
pub fn first_lock_ns<L: RawLock>() -> u64 {
    static ARE_THERE: Barrier = Barrier::new(THREADS + 1);
    for _ in 0..THREADS {
        thread::spawn(|| {
            ARE_THERE.wait();
            loop {
                thread::park();
            }
        });
    }
    ARE_THERE.wait();
    // Until all other threads sleep.
    thread::sleep(Duration::from_millis(2));
    let (lock, node) = (L::default(), L::Node::default());
    // The first read of the clock must not count.
    _ = Instant::now().elapsed();
    let began = Instant::now();
    // SAFETY: the node is unused, and both stay in place until the unlock.
    unsafe {
        lock.lock(&node);
        lock.unlock(&node);
    }
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// One run: new processes until the window has passed, at least one.
pub fn measure(lock: &str, helper: &Helper, window: Duration) -> Outcome {
    let began = Instant::now();
    let (mut times, mut waits) = (Vec::new(), Waits::default());
    while times.is_empty() || began.elapsed() < window {
        let ns = helper.first_lock_ns(lock)?;
        times.push(ns as f64);
        waits.record(ns);
    }
    Ok(Ok(Sample { ns_per_op: median(times), waits: Some(waits), ..Sample::default() }))
}
