//! Uncontended: the cost of a lock for one thread without contention.

use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use nearlock_core::raw::{RawLock, RawRwLock};
use nearlock_workload::locktorture::OwnLine;

use super::sample::Sample;
use super::statistics::median;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use super::stepping::executed;

/// Operations between two clock readings. A batch takes some microseconds, so that the cost of
/// reading the clock is negligible, and so that most batches are not interrupted.
const BATCH: u32 = 1_000;

#[inline(never)]
fn with_lock<L: RawLock>(lock: &L, node: &L::Node, pairs: u32) {
    for _ in 0..pairs {
        // SAFETY: the node is borrowed from before the lock until after the unlock, and no other
        // acquisition uses it.
        unsafe {
            lock.lock(node);
            lock.unlock(node);
        }
        // Keep iterations apart. (Passing the lock to `black_box` would send its address through
        // memory. Locked instructions do not let that cost overlap.)
        black_box(());
    }
}

/// Locks, writes to each of these lines, and unlocks.
#[inline(never)]
fn with_lock_and_lines<L: RawLock, const LINES: usize>(
    lock: &L,
    node: &L::Node,
    lines: &[OwnLine<AtomicU64>; LINES],
    pairs: u32,
) {
    for pair in 0..pairs {
        // SAFETY: as in `with_lock`.
        unsafe { lock.lock(node) };
        for line in lines {
            line.0.store(pair.into(), Relaxed);
        }
        // SAFETY: as in `with_lock`.
        unsafe { lock.unlock(node) };
        black_box(());
    }
}

/// Locks and unlocks as a reader.
#[inline(never)]
fn with_lock_shared<L: RawRwLock>(lock: &L, node: &L::Node, pairs: u32) {
    for _ in 0..pairs {
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
fn without_lock(pairs: u32) {
    for _ in 0..pairs {
        black_box(());
    }
}

/// One run of one lock: the time of the median batch minus the time of the median empty batch.
pub fn measure<L: RawLock>(window: Duration) -> Sample {
    with::<L>(window, with_lock)
}

/// A case of [`Mode::Stores`](super::Mode::Stores).
#[derive(Debug, PartialEq, Eq)]
pub struct StoresCase {
    /// Its name on the command line.
    pub name: &'static str,
    lines: Lines,
}

/// Number of cache lines that a section writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lines {
    One,
    Four,
}

/// All cases of [`Mode::Stores`](super::Mode::Stores).
pub static STORES_CASES: [StoresCase; 2] =
    [StoresCase { name: "lines-1", lines: Lines::One }, StoresCase { name: "lines-4", lines: Lines::Four }];

/// One run of one lock whose sections write. The time of the writes is included.
pub fn measure_stores<L: RawLock>(case: &StoresCase, window: Duration) -> Sample {
    match case.lines {
        Lines::One => with_lines::<L, 1>(window),
        Lines::Four => with_lines::<L, 4>(window),
    }
}

fn with_lines<L: RawLock, const LINES: usize>(window: Duration) -> Sample {
    on_thread_of_its_own(window, &|| {
        let (lock, node) = (OwnLine(L::default()), L::Node::default());
        let lines: [OwnLine<AtomicU64>; LINES] = std::array::from_fn(|_| OwnLine::default());
        Box::new(move |batch, pairs| match batch {
            Batch::Locked => with_lock_and_lines(&lock.0, &node, &lines, pairs),
            Batch::Empty => without_lock(pairs),
        })
    })
}

/// One run of one lock as a reader.
pub fn measure_shared<L: RawRwLock>(window: Duration) -> Sample {
    with::<L>(window, with_lock_shared)
}

fn with<L: RawLock>(window: Duration, locked: fn(&L, &L::Node, u32)) -> Sample {
    on_thread_of_its_own(window, &|| {
        let (lock, node) = (L::default(), L::Node::default());
        Box::new(move |batch, pairs| match batch {
            Batch::Locked => locked(&lock, &node, pairs),
            Batch::Empty => without_lock(pairs),
        })
    })
}

/// The loop to run.
#[derive(Clone, Copy)]
enum Batch {
    Locked,
    Empty,
}

/// Runs the given loop this many times around.
type Loops = Box<dyn Fn(Batch, u32)>;

/// Measures on a new thread, because some locks cost less in a process that never had two threads.
fn on_thread_of_its_own(window: Duration, loops: &(dyn Fn() -> Loops + Sync)) -> Sample {
    let sample = std::thread::scope(|scope| {
        let alone = || {
            let loops = loops();
            // First, so that one-time work of a lock in a process or a thread is over before the
            // counts.
            let ns_per_op = batches(window, &loops);
            let (instructions_per_op, rmw_per_op) = counts(&loops).unzip();
            Sample { ns_per_op, instructions_per_op, rmw_per_op, ..Sample::default() }
        };
        scope.spawn(alone).join()
    });
    sample.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Instructions per operation, and atomic read-modify-writes among them, without those of the loop.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn counts(loops: &Loops) -> Option<(f64, f64)> {
    /// The second count has this many more pairs than the first. Their difference excludes
    /// everything around the loop.
    const PAIRS: u32 = 4;
    /// Number of counts, of which the least is used. A thread that is moved to another CPU
    /// meanwhile determines its CPU again, which adds to a count.
    const COUNTS: usize = 2;
    let least = |batch, pairs| {
        let counts = (0..COUNTS).map_while(|_| executed(&mut || loops(batch, pairs)));
        let counts = counts.map(|count| [count.instructions, count.atomics]);
        counts.reduce(|a, b| [a[0].min(b[0]), a[1].min(b[1])])
    };
    let of = |batch| {
        let (once, twice) = (least(batch, PAIRS)?, least(batch, 2 * PAIRS)?);
        Some([twice[0] - once[0], twice[1] - once[1]])
    };
    let (locked, empty) = (of(Batch::Locked)?, of(Batch::Empty)?);
    let per_pair = |index: usize| (locked[index] as f64 - empty[index] as f64) / f64::from(PAIRS);
    Some((per_pair(0), per_pair(1)))
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn counts(_loops: &Loops) -> Option<(f64, f64)> {
    None
}

/// Time in ns per operation; `None` if it is too small to be measured.
fn batches(window: Duration, loops: &Loops) -> Option<f64> {
    let batch_ns = |batch| {
        let began = Instant::now();
        loops(batch, BATCH);
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
