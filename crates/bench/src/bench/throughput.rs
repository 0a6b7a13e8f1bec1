//! Throughput: many threads that lock the same lock, directly or in [system calls](super::calls).
//!
//! ```text
//! | warm-up | counted: no thread reads the clock | timed: every wait is measured | end |
//! ```
//! The windows are separate because reading the clock costs as much as an uncontended lock. Half of
//! that cost would lie in the section.

use std::marker::PhantomData;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nearlock_core::native::Wait;
use nearlock_core::platform::Clock;
use nearlock_core::raw::{RawLock, RawRwLock};
use nearlock_os::Os;
use nearlock_workload::Observer;
use nearlock_workload::locktorture::OwnLine;
use nearlock_workload::sections::{Mixed, Params, SectionsState, Worker};

use super::crew::{Crew, Members};
use super::machine::cpu_time_ns;
use super::sample::Sample;
use super::statistics::{Waits, jain};
use super::{BenchError, Failure};

/// Shortest warm-up: the scheduler may first have to give a thread a CPU.
const WARM_UP_LEAST: Duration = Duration::from_millis(2);

fn warm_up(window: Duration) -> Duration {
    (window / 10).max(WARM_UP_LEAST)
}

/// Length of the window in which waits are timed.
fn timed(window: Duration) -> Duration {
    window / 2
}

/// Duration of a run with this counted window, without the start and the end of its threads.
pub(super) fn takes(window: Duration) -> Duration {
    warm_up(window) + window + timed(window)
}

/// Phase in which no wait is timed.
const RUNNING: u32 = 0;
/// Phase in which every wait is timed.
const TIMED: u32 = 1;
/// Phase after the end of the run.
const OVER: u32 = 2;

/// The body of a thread, which gets the thread's number. It is the only part that knows the type of
/// the lock.
pub(super) type Life<W> = Box<dyn Fn(&ThroughputRun<W>, usize) + Send + Sync>;

/// State that the threads share, apart from the lock.
pub(super) struct ThroughputRun<W> {
    waiting: PhantomData<fn() -> W>,
    /// All threads read it after each section. It is rarely written.
    phase: OwnLine<AtomicU32>,
    /// Beginning of the timed window, on the platform's clock.
    timed_since_ns: AtomicU64,
    /// Number of sections of each thread.
    sections: Vec<OwnLine<AtomicU64>>,
    /// The sections of this many threads, the first ones, are operations.
    counted_threads: usize,
    outcome: Mutex<Outcome>,
}

/// Counts of the threads.
#[derive(Clone, Copy, Default)]
pub(super) struct Done {
    /// Number of sections that increment the shared counter.
    pub counted: u64,
    /// Number of read sections that saw a writer's change.
    pub torn: u64,
    /// Number of changes by threads that had to wait.
    pub faults: u64,
}

#[derive(Default)]
struct Outcome {
    waits: Waits,
    done: Done,
}

/// Observes one thread from within. In the counted window it writes only the count. The next lock's
/// atomic instruction waits for all stores between two sections.
pub(super) struct Witness<'a, W> {
    run: &'a ThroughputRun<W>,
    /// Number of sections of this thread; no other thread writes it.
    sections: &'a AtomicU64,
    /// Phase in which the current wait began. `since_ns` is the time at which it began.
    phase: u32,
    since_ns: u64,
    wait_ns: Option<u64>,
    waits: Waits,
}

impl<W: Wait> Observer for Witness<'_, W> {
    #[inline(always)]
    fn waiting(&mut self) {
        let phase = self.run.phase();
        if self.phase != phase {
            self.phase = phase;
        }
        if phase == TIMED {
            self.since_ns = <Os<W>>::now_ns();
        }
    }

    #[inline(always)]
    fn acquired(&mut self) {
        if self.phase == TIMED {
            self.wait_ns = Some(<Os<W>>::now_ns().saturating_sub(self.since_ns));
        } else if self.phase != self.run.phase() && self.phase == RUNNING {
            self.wait_ns = Some(self.run.waited_since_timed());
        }
    }

    #[inline(always)]
    fn goes_on(&mut self) -> bool {
        // Relaxed: a count; no other access depends on its order.
        self.sections.store(self.sections.load(Relaxed) + 1, Relaxed);
        if self.wait_ns.is_some() {
            self.record();
        }
        self.run.phase() != OVER
    }
}

impl<W> Witness<'_, W> {
    /// The waits of this thread do not count.
    pub(super) fn forget_waits(&mut self) {
        self.waits = Waits::default();
    }

    #[cold]
    fn record(&mut self) {
        if let Some(wait_ns) = self.wait_ns.take() {
            self.waits.record(wait_ns);
        }
    }
}

impl<W: Wait> ThroughputRun<W> {
    #[inline(always)]
    fn phase(&self) -> u32 {
        self.phase.0.load(Relaxed)
    }

    /// A wait that began before the timed window counts from the beginning of that window.
    #[cold]
    fn waited_since_timed(&self) -> u64 {
        // Ordering: Acquire, pairs with the Release store of the phase in `lead`, which the caller
        // has read.
        fence(Acquire);
        <Os<W>>::now_ns().saturating_sub(self.timed_since_ns.load(Relaxed))
    }

    fn work<L: RawLock>(&self, shared: &SectionsState<Os<W>, L>, thread: usize, params: Params) {
        self.witnessed(thread, &mut |witness| {
            let mut node = L::Node::default();
            Worker::new(shared, &mut node, params, thread as u64).run(witness);
            Done { counted: witness.sections.load(Relaxed), ..Done::default() }
        });
    }

    fn work_mixed<L: RawRwLock>(
        &self,
        shared: &SectionsState<Os<W>, L>,
        thread: usize,
        params: Params,
        read_percent: u64,
    ) {
        self.witnessed(thread, &mut |witness| {
            let mut node = L::Node::default();
            let mut worker = Worker::new(shared, &mut node, params, thread as u64);
            let Mixed { writes, torn } = worker.run_mixed(read_percent, witness);
            Done { counted: writes, torn, ..Done::default() }
        });
    }

    /// Runs `work` with a witness that observes the thread, and adds its results to the outcome.
    pub(super) fn witnessed(&self, thread: usize, work: &mut dyn FnMut(&mut Witness<'_, W>) -> Done) {
        let mut witness = Witness {
            run: self,
            sections: &self.sections[thread].0,
            phase: RUNNING,
            since_ns: 0,
            wait_ns: None,
            waits: Waits::default(),
        };
        let Done { counted, torn, faults } = work(&mut witness);
        let Outcome { waits, done } = &mut *self.outcome();
        waits.add(&witness.waits);
        done.counted += counted;
        done.torn += torn;
        done.faults += faults;
    }

    fn outcome(&self) -> MutexGuard<'_, Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn counts(&self) -> Vec<u64> {
        self.sections.iter().map(|sections| sections.0.load(Relaxed)).collect()
    }

    fn total(&self) -> u64 {
        self.counts().iter().sum()
    }

    /// Leads the threads through the windows, and returns the figures of the counted window.
    fn lead(&self, window: Duration) -> Sample {
        std::thread::sleep(warm_up(window));
        let membarriers_before = nearlock_os::membarriers();
        let (before, cpu_before, began) = (self.counts(), cpu_time_ns(), Instant::now());
        std::thread::sleep(window);
        let (after, cpu_after, elapsed) = (self.counts(), cpu_time_ns(), began.elapsed());
        let membarriers = nearlock_os::membarriers() - membarriers_before;
        self.timed_since_ns.store(<Os<W>>::now_ns(), Relaxed);
        // Ordering: Release, pairs with the fence in `waited_since_timed`: the timed window's
        // beginning is visible.
        self.phase.0.store(TIMED, Release);
        std::thread::sleep(timed(window));
        self.phase.0.store(OVER, Relaxed);
        let each: Vec<u64> = after
            .iter()
            .zip(&before)
            .take(self.counted_threads)
            .map(|(after, before)| after - before)
            .collect();
        let operations = each.iter().sum::<u64>() as f64;
        let cpu_ns = cpu_after.zip(cpu_before).map(|(after, before)| (after - before) as f64);
        Sample {
            ns_per_op: Some(elapsed.as_nanos() as f64 / operations),
            jain: jain(&each),
            cpu_ns_per_op: cpu_ns.filter(|_| operations > 0.0).map(|cpu_ns| cpu_ns / operations),
            membarriers_per_s: Some(membarriers as f64 / elapsed.as_secs_f64()),
            ..Sample::default()
        }
    }

    /// Runs the threads through all windows. `counter` is the number that they counted under the
    /// lock.
    fn end(&self, crew: Crew, window: Duration, counter: &dyn Fn() -> u64) -> Result<Sample, Failure> {
        crew.start();
        let mut sample = self.lead(window);
        crew.end(&|| self.total())?;
        let (Outcome { waits, done }, counter) = (std::mem::take(&mut *self.outcome()), counter());
        let Done { counted, torn, faults } = done;
        if counted != counter {
            return Err(Failure::LostUpdates { lost: counted.abs_diff(counter), total: counted });
        }
        if faults > 0 {
            return Err(Failure::Faults { times: faults });
        }
        if torn > 0 {
            return Err(Failure::TornReads { times: torn });
        }
        sample.waits = Some(waits);
        Ok(sample)
    }
}

/// One run of one lock.
pub fn measure<W: Wait, L: RawLock>(
    members: Members,
    params: Params,
    window: Duration,
) -> Result<Result<Sample, Failure>, BenchError> {
    let shared = Arc::new(SectionsState::<Os<W>, L>::default());
    let worked = Arc::clone(&shared);
    let life: Life<W> = Box::new(move |run, thread| run.work(&worked, thread, params));
    with(members, window, life, &|| shared.counter())
}

/// One run with threads that only read in `read_percent` of 100 sections.
pub fn measure_mixed<W: Wait, L: RawRwLock>(
    members: Members,
    params: Params,
    read_percent: u64,
    window: Duration,
) -> Result<Result<Sample, Failure>, BenchError> {
    let shared = Arc::new(SectionsState::<Os<W>, L>::default());
    let worked = Arc::clone(&shared);
    let life: Life<W> = Box::new(move |run, thread| run.work_mixed(&worked, thread, params, read_percent));
    with(members, window, life, &|| shared.counter())
}

/// One run of threads with this body. `counter` is the number that they counted under the lock,
/// read at the end.
pub(super) fn with<W: Wait>(
    members: Members,
    window: Duration,
    life: Life<W>,
    counter: &dyn Fn() -> u64,
) -> Result<Result<Sample, Failure>, BenchError> {
    with_counted(members, members.threads(), window, life, counter)
}

/// As [`with`]. Only the sections of the first `counted_threads` threads are operations.
pub(super) fn with_counted<W: Wait>(
    members: Members,
    counted_threads: usize,
    window: Duration,
    life: Life<W>,
    counter: &dyn Fn() -> u64,
) -> Result<Result<Sample, Failure>, BenchError> {
    let run = Arc::new(ThroughputRun::<W> {
        waiting: PhantomData,
        phase: OwnLine(AtomicU32::new(RUNNING)),
        timed_since_ns: AtomicU64::new(0),
        sections: (0..members.threads()).map(|_| OwnLine::default()).collect(),
        counted_threads,
        outcome: Mutex::default(),
    });
    let worked = Arc::clone(&run);
    let crew = Crew::gather(members, move |thread| life(&worked, thread))?;
    Ok(run.end(crew, window, counter))
}
