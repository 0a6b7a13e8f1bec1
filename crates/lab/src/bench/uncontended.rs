//! Uncontended: what a lock costs one thread that has it for itself.

use std::hint::black_box;
use std::time::{Duration, Instant};

use nearlock_core::raw::{RawLock, RawRwLock};

use super::Sample;
use super::statistics::median;

/// Operations between two looks at the clock: some microseconds, so that the look does not count, and so that
/// most batches are not interrupted.
const BATCH: u32 = 1_000;

#[inline(never)]
fn with_lock<L: RawLock>(lock: &L, node: &L::Node) {
    for _ in 0..BATCH {
        // SAFETY: the node is borrowed from before the lock until after the unlock, and nobody else has it.
        unsafe {
            lock.lock(node);
            lock.unlock(node);
        }
        // Whatever comes before and after stays apart. (Passing the lock through it would send its address
        // through memory, at a cost that locked instructions do not let overlap.)
        black_box(());
    }
}

/// As a reader.
#[inline(never)]
fn with_lock_shared<L: RawRwLock>(lock: &L, node: &L::Node) {
    for _ in 0..BATCH {
        // SAFETY: as in `with_lock`.
        unsafe {
            lock.lock_shared(node);
            lock.unlock_shared(node);
        }
        black_box(());
    }
}

/// The same loop, empty.
#[inline(never)]
fn without_lock<L: RawLock>(_lock: &L, _node: &L::Node) {
    for _ in 0..BATCH {
        black_box(());
    }
}

/// One run of one lock: the median batch, less the median empty batch.
pub fn measure<L: RawLock>(window: Duration) -> Sample {
    with::<L>(window, with_lock)
}

/// The same, as a reader.
pub fn measure_shared<L: RawRwLock>(window: Duration) -> Sample {
    with::<L>(window, with_lock_shared)
}

fn with<L: RawLock>(window: Duration, locked: fn(&L, &L::Node)) -> Sample {
    on_thread_of_its_own(window, &|| {
        let (lock, node) = (L::default(), L::Node::default());
        Box::new(move |batch| match batch {
            Batch::Locked => locked(&lock, &node),
            Batch::Empty => without_lock(&lock, &node),
        })
    })
}

/// Which loop to run.
#[derive(Clone, Copy)]
enum Batch {
    Locked,
    Empty,
}

/// Runs the loop that it is told to.
type Loops = Box<dyn Fn(Batch)>;

/// A thread of its own, as some locks cost less in a process that never had two.
fn on_thread_of_its_own(window: Duration, loops: &(dyn Fn() -> Loops + Sync)) -> Sample {
    let ns_per_op = std::thread::scope(|scope| scope.spawn(|| batches(window, &loops())).join());
    let ns_per_op = ns_per_op.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    Sample { ns_per_op, ..Sample::default() }
}

/// In ns per operation; `None` if it is too little to be measured.
fn batches(window: Duration, loops: &Loops) -> Option<f64> {
    let batch_ns = |batch| {
        let began = Instant::now();
        loops(batch);
        began.elapsed().as_nanos() as f64
    };
    let began = Instant::now();
    let (mut locked, mut empty) = (Vec::new(), Vec::new());
    while locked.is_empty() || began.elapsed() < window {
        locked.push(batch_ns(Batch::Locked));
        empty.push(batch_ns(Batch::Empty));
    }
    let ns_per_op = (median(locked)? - median(empty)?) / f64::from(BATCH);
    (ns_per_op > 0.0).then_some(ns_per_op)
}
