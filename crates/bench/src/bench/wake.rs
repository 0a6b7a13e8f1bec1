//! Wake: the time from an unlock to the return of a waiter that sleeps by then, while the thread
//! that has unlocked does something else.
//!
//! ```text
//! releaser   lock | barrier | sleep 1 ms | note the time; unlock; go on as the case says | barrier
//! waiter          | barrier | lock: sleeps ...              note the time; unlock       | barrier
//! ```

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nearlock_core::native::Wait;
use nearlock_core::platform::Clock;
use nearlock_core::raw::RawLock;
use nearlock_os::Os;
use nearlock_workload::locktorture::OwnLine;
use nearlock_workload::sections::WorkLength;

use super::Failure;
use super::crew::{Crew, Members};
use super::machine::{Calibration, cpu_time_ns};
use super::sample::{Outcome, Sample};
use super::statistics::Waits;

/// What the releaser does after its unlock, until the waiter has the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Sleep,
    Compute,
    Relock,
}

/// A case of [`Mode::Wake`](super::Mode::Wake).
#[derive(Debug, PartialEq, Eq)]
pub struct WakeCase {
    /// Its name on the command line.
    pub name: &'static str,
    next: Next,
}

/// All cases of [`Mode::Wake`](super::Mode::Wake).
pub static WAKE_CASES: [WakeCase; 3] = [
    WakeCase { name: "idle", next: Next::Sleep },
    WakeCase { name: "busy", next: Next::Compute },
    WakeCase { name: "relock", next: Next::Relock },
];

/// The releaser and the waiter.
pub const THREADS: usize = 2;
const RELEASER: usize = 0;
/// Time for which the lock is held while the other thread goes to sleep.
const HOLD: Duration = Duration::from_millis(1);
/// A waiter that has waited for less than this may not sleep yet. Its wake-up does not count.
const WAITED_LEAST_NS: u64 = 500_000;
/// Length of a piece of the releaser's work, and of its further sections.
const WORK_NS: u64 = 200;

/// State that both threads share.
struct WakeRun<L> {
    lock: OwnLine<L>,
    /// Both threads meet there before a round and after it.
    barrier: Barrier,
    /// Number of the round and time of its release, written in the section.
    number: OwnLine<AtomicU64>,
    released_ns: AtomicU64,
    is_last: AtomicBool,
    /// The last round in which the waiter has got the lock.
    acquired: OwnLine<AtomicU64>,
    /// Set when the run is over.
    is_over: OwnLine<AtomicBool>,
    outcome: Mutex<WakeOutcome>,
    next: Next,
    work: WorkLength,
}

#[derive(Default)]
struct WakeOutcome {
    waits: Waits,
    overlaps: u64,
}

impl<L: RawLock> WakeRun<L> {
    fn release<W: Wait>(&self) {
        let node = L::Node::default();
        for n in 1.. {
            let is_last = self.is_over.0.load(Relaxed);
            self.is_last.store(is_last, Relaxed);
            // SAFETY: the node is this thread's own, and is not in use.
            unsafe { self.lock.0.lock(&node) };
            self.barrier.wait();
            std::thread::sleep(HOLD);
            self.number.0.store(n, Relaxed);
            self.released_ns.store(<Os<W>>::now_ns(), Relaxed);
            // SAFETY: locked above with this node.
            unsafe { self.lock.0.unlock(&node) };
            self.go_on::<W>(&node, n);
            self.barrier.wait();
            if is_last {
                return;
            }
        }
    }

    /// What follows the unlock of this round.
    fn go_on<W: Wait>(&self, node: &L::Node, n: u64) {
        while self.next != Next::Sleep && self.acquired.0.load(Relaxed) < n {
            match self.next {
                Next::Relock => {
                    // SAFETY: the node is this thread's own, and is not in use.
                    unsafe { self.lock.0.lock(node) };
                    self.work.pass::<Os<W>>();
                    // SAFETY: locked above with this node.
                    unsafe { self.lock.0.unlock(node) };
                }
                _ => self.work.pass::<Os<W>>(),
            }
        }
    }

    fn wait<W: Wait>(&self) {
        let node = L::Node::default();
        let mut outcome = WakeOutcome::default();
        for n in 1.. {
            self.barrier.wait();
            let began_ns = <Os<W>>::now_ns();
            // SAFETY: the node is this thread's own, and is not in use.
            unsafe { self.lock.0.lock(&node) };
            let acquired_ns = <Os<W>>::now_ns();
            let released_ns = self.released_ns.load(Relaxed);
            if self.number.0.load(Relaxed) != n {
                outcome.overlaps += 1;
            } else if released_ns.saturating_sub(began_ns) >= WAITED_LEAST_NS {
                outcome.waits.record(acquired_ns.saturating_sub(released_ns));
            }
            self.acquired.0.store(n, Relaxed);
            // SAFETY: locked above with this node.
            unsafe { self.lock.0.unlock(&node) };
            let is_last = self.is_last.load(Relaxed);
            self.barrier.wait();
            if is_last {
                break;
            }
        }
        *self.outcome() = outcome;
    }

    fn outcome(&self) -> MutexGuard<'_, WakeOutcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the threads wake each other for `window`.
    fn end(&self, crew: Crew, clock_ns: f64, window: Duration) -> Result<Sample, Failure> {
        let cpu_before = cpu_time_ns();
        crew.start();
        std::thread::sleep(window);
        self.is_over.0.store(true, Relaxed);
        crew.end(&|| self.acquired.0.load(Relaxed))?;
        let cpu_ns = cpu_time_ns().zip(cpu_before).map(|(after, before)| (after - before) as f64);
        let WakeOutcome { waits, overlaps } = std::mem::take(&mut *self.outcome());
        if overlaps > 0 {
            return Err(Failure::Overlaps { times: overlaps });
        }
        let rounds = self.acquired.0.load(Relaxed) as f64;
        Ok(Sample {
            ns_per_op: waits.quantile(0.5).map(|ns| ns as f64 - clock_ns).filter(|&ns| ns > 0.0),
            cpu_ns_per_op: cpu_ns.map(|ns| ns / rounds),
            waits: Some(waits),
            ..Sample::default()
        })
    }
}

/// One run of one lock. The median is reduced by the cost of reading the clock.
pub fn measure<W: Wait, L: RawLock>(case: &WakeCase, calibration: &Calibration, window: Duration) -> Outcome {
    let run = Arc::new(WakeRun::<L> {
        lock: OwnLine(L::default()),
        barrier: Barrier::new(THREADS),
        number: OwnLine::default(),
        released_ns: AtomicU64::new(0),
        is_last: AtomicBool::new(false),
        acquired: OwnLine::default(),
        is_over: OwnLine::default(),
        outcome: Mutex::default(),
        next: case.next,
        work: calibration.work_length(WORK_NS),
    });
    let worked = Arc::clone(&run);
    let crew = Crew::gather(Members::Anywhere(THREADS), move |thread| match thread {
        RELEASER => worked.release::<W>(),
        _ => worked.wait::<W>(),
    })?;
    Ok(run.end(crew, calibration.clock_ns, window))
}
