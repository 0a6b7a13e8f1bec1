//! One thread that only writes, among threads that only read.
//!
//! Operations, shares and waits are those of the writer. The readers do not think, so that they
//! want the lock at all times. The writer thinks between its sections. Otherwise a lock may let it
//! in again and again before it lets the readers in, and it would wait for no reader.

use std::sync::Arc;
use std::time::Duration;

use nearlock_core::native::Wait;
use nearlock_core::raw::RawRwLock;
use nearlock_os::Os;
use nearlock_workload::sections::{Mixed, Params, SectionsState, WorkLength, Worker};

use super::crew::Members;
use super::sample::Outcome;
use super::throughput::{Done, Life, with_counted};

/// Default number of threads: the writer and seven readers.
pub const WRITER_THREADS: [usize; 1] = [8];
/// Default work in a section, in ns.
pub const WRITER_SECTION_NS: [u64; 1] = [100];
/// Default work of the writer between its sections, in ns: many sections of readers.
pub const WRITER_THINK_NS: [u64; 1] = [5000];
/// A writer and a reader.
pub(super) const THREADS_LEAST: usize = 2;
/// The counted window is at least this long, and the window in which waits are timed is half as
/// long. In the latter, each of eight threads on two CPUs then has about forty time slices of 3 ms.
/// A longest wait of fewer says little, because the writer waits long if a reader loses its
/// processor.
pub(super) const WINDOW_LEAST: Duration = Duration::from_millis(1000);

/// The thread that writes.
const WRITER: usize = 0;

/// One run of one lock. Only the writer has the think time of `params`.
pub fn measure<W: Wait, L: RawRwLock>(members: Members, params: Params, window: Duration) -> Outcome {
    let shared = Arc::new(SectionsState::<Os<W>, L>::default());
    let worked = Arc::clone(&shared);
    let life: Life<W> = Box::new(move |run, thread| {
        run.witnessed(thread, &mut |witness| {
            let mut node = L::Node::default();
            let (read_percent, params) = match thread {
                WRITER => (0, params),
                _ => (100, Params { think: WorkLength::default(), ..params }),
            };
            let mut worker = Worker::new(&*worked, &mut node, params, thread as u64);
            let Mixed { writes, torn } = worker.run_mixed(read_percent, witness);
            if thread != WRITER {
                witness.forget_waits();
            }
            Done { counted: writes, torn, ..Done::default() }
        });
    });
    with_counted(members, 1, window, life, &|| shared.counter())
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use super::*;
    use crate::bench::Failure;
    use crate::bench::sample::Sample;
    use nearlock_collection::linux::rwsem::Rwsem;
    use nearlock_core::raw::{RawLock, RawTryLock};
    use nearlock_os::SpinThenYield;

    /// A lock whose writers sleep before they lock.
    #[derive(Default)]
    struct SleepyWriter(Rwsem<Os>);

    const SLEEP: Duration = Duration::from_millis(2);

    // SAFETY: all functions are those of the lock within.
    unsafe impl RawLock for SleepyWriter {
        type Node = <Rwsem<Os> as RawLock>::Node;
        unsafe fn lock(&self, node: &Self::Node) {
            std::thread::sleep(SLEEP);
            // SAFETY: by the caller's promise.
            unsafe { self.0.lock(node) }
        }
        unsafe fn unlock(&self, node: &Self::Node) {
            // SAFETY: by the caller's promise.
            unsafe { self.0.unlock(node) }
        }
    }

    // SAFETY: as above.
    unsafe impl RawTryLock for SleepyWriter {
        unsafe fn try_lock(&self, node: &Self::Node) -> bool {
            // SAFETY: by the caller's promise.
            unsafe { self.0.try_lock(node) }
        }
    }

    // SAFETY: as above.
    unsafe impl RawRwLock for SleepyWriter {
        unsafe fn lock_shared(&self, node: &Self::Node) {
            // SAFETY: by the caller's promise.
            unsafe { self.0.lock_shared(node) }
        }
        unsafe fn try_lock_shared(&self, node: &Self::Node) -> bool {
            // SAFETY: by the caller's promise.
            unsafe { self.0.try_lock_shared(node) }
        }
        unsafe fn unlock_shared(&self, node: &Self::Node) {
            // SAFETY: by the caller's promise.
            unsafe { self.0.unlock_shared(node) }
        }
        unsafe fn downgrade(&self, node: &Self::Node) {
            // SAFETY: by the caller's promise.
            unsafe { self.0.downgrade(node) }
        }
    }

    /// A lock that does not see its readers. (`BustedRw` does not let the writer in as long as
    /// readers take turns.)
    #[derive(Default)]
    struct Unread(Rwsem<Os>);

    // SAFETY: writers exclude each other.
    unsafe impl RawLock for Unread {
        type Node = <Rwsem<Os> as RawLock>::Node;
        unsafe fn lock(&self, node: &Self::Node) {
            // SAFETY: by the caller's promise.
            unsafe { self.0.lock(node) }
        }
        unsafe fn unlock(&self, node: &Self::Node) {
            // SAFETY: by the caller's promise.
            unsafe { self.0.unlock(node) }
        }
    }

    // SAFETY: as above.
    unsafe impl RawTryLock for Unread {
        unsafe fn try_lock(&self, node: &Self::Node) -> bool {
            // SAFETY: by the caller's promise.
            unsafe { self.0.try_lock(node) }
        }
    }

    // SAFETY: none: this is what the benchmark has to detect.
    unsafe impl RawRwLock for Unread {
        unsafe fn lock_shared(&self, _node: &Self::Node) {}
        unsafe fn try_lock_shared(&self, _node: &Self::Node) -> bool {
            true
        }
        unsafe fn unlock_shared(&self, _node: &Self::Node) {}
        unsafe fn downgrade(&self, node: &Self::Node) {
            // SAFETY: by the caller's promise.
            unsafe { self.0.unlock(node) }
        }
    }

    fn run<L: RawRwLock>(section: WorkLength, window: Duration) -> Result<Sample, Failure> {
        /// The tests take turns, so that each has the machine for itself.
        static ALONE: Mutex<()> = Mutex::new(());
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let params = Params { section, ..Params::default() };
        measure::<SpinThenYield, L>(Members::Anywhere(3), params, window).expect("threads can be had")
    }

    #[test]
    fn only_the_writer_counts() {
        let sleep_ns = SLEEP.as_nanos() as f64;
        // Nearly all waits of a run are the writer's sleeps. Many more waits of readers are short.
        // On a busy machine, a run may have one wait only, which began before the waits were timed.
        let is_sleep = |sample: Sample| {
            assert!(sample.ns_per_op > Some(sleep_ns / 2.0), "{sample:?}");
            assert_eq!(sample.jain.unwrap_or(1.0), 1.0);
            let long = sample.waits.and_then(|waits| waits.quantile(0.9));
            long.is_some_and(|ns| ns as f64 >= 0.9 * sleep_ns)
        };
        let mut runs = (0..20).map(|_| run::<SleepyWriter>(WorkLength::default(), 50 * SLEEP));
        assert!(runs.any(|sample| is_sleep(sample.expect("the lock excludes"))));
    }

    #[test]
    fn readers_beside_the_writer_are_detected() {
        // On one CPU, a thread is preempted in a section.
        let section = WorkLength { ns: 0, turns: 200_000 };
        let mut runs = (0..20).map(|_| run::<Unread>(section, Duration::from_millis(100)));
        assert!(runs.any(|result| matches!(result, Err(Failure::TornReads { .. }))));
    }
}
