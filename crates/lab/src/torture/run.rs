//! One run: the writers, what watches them, and the verdict.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nearlock_core::events::LockEvent;
use nearlock_core::native::Wait;
use nearlock_core::platform::{Clock, Platform, Random, Work};
use nearlock_core::raw::{RawLock, RawTryLock};
use nearlock_core::subjects::{LockVisitor, Subject};
use nearlock_os::Os;
use nearlock_workload::Observer;
use nearlock_workload::locktorture::{LongHolds, OwnLine, Params, Shared, ShortHolds, Stats, Writer};

use super::pace::{Next, PHASE, Pace, Phase, SLEEP_ONE_IN, Think};
use super::{Counts, NumaNodes, Plan, Problem, TortureError, Tortured};

/// How often the run is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// Of a writer: the locks keep nothing large on it.
const STACK_BYTES: usize = 256 * 1024;

/// A counter that only the holder of the lock touches, and in two steps, a load and a store: if the lock fails
/// to exclude, an increment between them is lost. Relaxed suffices, as the lock orders its holders; atomic it is
/// for the locks that fail to. Built for ThreadSanitizer (`nearlock_visible_words`) the accesses are plain, so that
/// it also sees a lock that excludes, but does not order its holders.
#[derive(Default)]
struct Canary(AtomicU64);

impl Canary {
    /// # Safety
    ///
    /// The caller holds the lock, or nobody does nor will. (What a lock that excludes nobody makes of this is for
    /// ThreadSanitizer to report.)
    unsafe fn read(&self) -> u64 {
        if cfg!(nearlock_visible_words) {
            // SAFETY: the word is alive, and by our own condition nobody writes to it.
            return unsafe { self.0.as_ptr().read() };
        }
        self.0.load(Relaxed)
    }
    /// # Safety
    ///
    /// The caller holds the lock. (As above.)
    unsafe fn write(&self, value: u64) {
        if cfg!(nearlock_visible_words) {
            // SAFETY: the word is alive, and by our own condition nobody else uses it.
            return unsafe { self.0.as_ptr().write(value) };
        }
        self.0.store(value, Relaxed);
    }
}

/// What is known of one writer's waits.
#[derive(Default)]
struct Watch {
    /// Since when it waits, in ns of the platform's clock; 0: it does not.
    waiting_since_ns: AtomicU64,
    wait_ns_max: AtomicU64,
}

/// Everything that the writers share.
struct Run<P: Platform, L> {
    shared: Shared<P, L>,
    stats: Vec<Stats<P>>,
    watches: Vec<OwnLine<Watch>>,
    canary: OwnLine<Canary>,
    pace: Pace,
    params: Params,
}

/// Watches one writer from within.
struct Witness<'a, P: Platform, L> {
    run: &'a Run<P, L>,
    writer: usize,
    waiting_since_ns: u64,
    wait_ns_max: u64,
    canary: u64,
}

impl<P: Work + Random, L: RawLock> Observer for Witness<'_, P, L> {
    fn waiting(&mut self) {
        self.waiting_since_ns = P::now_ns().max(1);
        self.watch().waiting_since_ns.store(self.waiting_since_ns, Relaxed);
    }

    fn acquired(&mut self) {
        let wait_ns = P::now_ns().saturating_sub(self.waiting_since_ns);
        self.watch().waiting_since_ns.store(0, Relaxed);
        if wait_ns > self.wait_ns_max {
            self.wait_ns_max = wait_ns;
            self.watch().wait_ns_max.store(wait_ns, Relaxed);
        }
        // Read at the beginning of the section and written at its end, so that any overlap shows.
        // SAFETY: the lock was acquired.
        self.canary = unsafe { self.run.canary.0.read() };
    }

    fn releasing(&mut self) {
        // SAFETY: the lock is held.
        unsafe { self.run.canary.0.write(self.canary + 1) };
    }

    fn goes_on(&mut self) -> bool {
        match self.run.pace.next(self.writer) {
            Next::Stop => false,
            Next::Go(think) => {
                match think {
                    Think::Not => {}
                    Think::Busy { shift } => P::busy_ns(below::<P>(1 << shift)),
                    Think::Sleep { shift } => {
                        if below::<P>(SLEEP_ONE_IN.into()) == 0 {
                            P::sleep_ns(below::<P>(1 << shift));
                        }
                    }
                }
                true
            }
        }
    }
}

/// Another number each time, in every process: each run of a torture test should be another.
fn entropy() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn below<P: Random>(n: u64) -> u64 {
    u64::from(P::random_u32()) % n
}

impl<P: Platform, L> Witness<'_, P, L> {
    fn watch(&self) -> &Watch {
        &self.run.watches[self.writer].0
    }
}

/// Runs the plan over the lock type that it is given.
pub struct Visitor<'a> {
    pub lock: &'static Subject,
    pub plan: &'a Plan,
    pub interim: &'a mut dyn FnMut(&Counts),
}

impl<W: Wait> LockVisitor<Os<W>> for Visitor<'_> {
    type Output = Result<Tortured, TortureError>;

    fn visit<L: RawTryLock>(self) -> Self::Output {
        let run = Arc::new(Run::<Os<W>, L>::new(self.plan));
        let events_before = nearlock_os::events();
        let handles = start(&run, self.plan)?;
        let began = Instant::now();
        let mut monitor = Monitor::new(&run, self.plan, &handles);
        let mut problems = Vec::new();
        problems.extend(monitor.run(self.interim));
        run.pace.stop();
        if problems.is_empty() {
            problems.extend(monitor.wait_for_the_end());
        }
        let seconds = began.elapsed().as_secs_f64();
        let wait_ns_max = run.wait_ns_max();
        if problems.is_empty() {
            problems.extend(join(handles));
        }
        problems.extend(run.lost_exclusion(problems.is_empty()));
        let mut events = nearlock_os::events();
        for (count, before) in events.iter_mut().zip(events_before) {
            *count -= before;
        }
        let _: [u64; LockEvent::COUNT] = events;
        Ok(Tortured { lock: self.lock, counts: run.counts(), seconds, wait_ns_max, events, problems })
    }
}

/// Starts the writers, who pause until the pace is set.
fn start<W: Wait, L: RawLock>(
    run: &Arc<Run<Os<W>, L>>,
    plan: &Plan,
) -> Result<Vec<JoinHandle<()>>, TortureError> {
    let mut handles = Vec::with_capacity(plan.writers);
    for writer in 0..plan.writers {
        let numa_node = match plan.numa_nodes {
            NumaNodes::Real(_) | NumaNodes::Slots(_) => None,
            NumaNodes::Synthetic(nodes) => Some((writer % nodes as usize) as u32),
        };
        let shared = Arc::clone(run);
        let builder = std::thread::Builder::new().name(format!("writer {writer}")).stack_size(STACK_BYTES);
        let started = builder.spawn(move || {
            nearlock_os::set_numa_node(numa_node);
            shared.write(writer);
        });
        match started {
            Ok(handle) => handles.push(handle),
            Err(source) => {
                run.pace.stop();
                // They are paused still, so they end at once.
                let _ = join(handles);
                return Err(TortureError::Spawn { writer, writers: plan.writers, source });
            }
        }
    }
    Ok(handles)
}

/// Waits for writers that are known to end.
fn join(handles: Vec<JoinHandle<()>>) -> Option<Problem> {
    let writers = handles.into_iter().filter_map(|handle| handle.join().err()).count();
    (writers > 0).then_some(Problem::Panicked { writers })
}

impl<P: Platform, L: RawLock> Run<P, L> {
    fn new(plan: &Plan) -> Self {
        let long_holds = match plan.long_hold_ms {
            0 => LongHolds::LeftOut,
            ms => LongHolds::Made { ms },
        };
        Self {
            shared: Shared::default(),
            stats: (0..plan.writers).map(|_| Stats::default()).collect(),
            watches: (0..plan.writers).map(|_| OwnLine::default()).collect(),
            canary: OwnLine::default(),
            pace: Pace::new(plan.writers),
            params: Params {
                writers: plan.writers as u64,
                short_holds: ShortHolds::Today,
                long_holds,
                section_ns: 0,
                think_ns: 0,
                // A scheduler tick at 250 Hz, most distributions' choice.
                tick_ns: 4_000_000,
                priority_percent: plan.priority_percent,
            },
        }
    }

    fn counts(&self) -> Counts {
        let acquired = || self.stats.iter().map(Stats::acquired);
        Counts {
            total: acquired().sum(),
            max: acquired().max().unwrap_or(0),
            min: acquired().min().unwrap_or(0),
            failures: self.stats.iter().map(Stats::failures).sum(),
        }
    }

    /// What exclusion violated left behind; whether writers still run decides whether the canary counts.
    fn lost_exclusion(&self, all_have_ended: bool) -> Vec<Problem> {
        let Counts { total, failures, .. } = self.counts();
        let mut problems = Vec::new();
        if failures > 0 {
            problems.push(Problem::Exclusion { failures });
        }
        if all_have_ended {
            // SAFETY: nobody is left to hold the lock.
            let lost = total.abs_diff(unsafe { self.canary.0.read() });
            problems.extend((lost > 0).then_some(Problem::LostUpdates { lost, total }));
        }
        problems
    }

    fn waiting(&self) -> usize {
        self.watches.iter().filter(|watch| watch.0.waiting_since_ns.load(Relaxed) != 0).count()
    }
}

impl<P: Clock, L: RawLock> Run<P, L> {
    fn wait_ns_max(&self) -> u64 {
        let now_ns = P::now_ns();
        let longest = |watch: &OwnLine<Watch>| {
            let present = match watch.0.waiting_since_ns.load(Relaxed) {
                0 => 0,
                since_ns => now_ns.saturating_sub(since_ns),
            };
            present.max(watch.0.wait_ns_max.load(Relaxed))
        };
        self.watches.iter().map(longest).max().unwrap_or(0)
    }
}

impl<W: Wait, L: RawLock> Run<Os<W>, L> {
    /// The life of one writer.
    fn write(&self, writer: usize) {
        if self.pace.next(writer) == Next::Stop {
            return;
        }
        let mut node = L::Node::default();
        let mut witness = Witness { run: self, writer, waiting_since_ns: 0, wait_ns_max: 0, canary: 0 };
        Writer::new(&self.shared, &self.stats[writer], &mut node, &self.params, entropy()).run(&mut witness);
    }
}

/// Looks at a run from outside: changes phases, reports, and notices a standstill.
struct Monitor<'a, P: Platform, L> {
    run: &'a Run<P, L>,
    plan: &'a Plan,
    handles: &'a [JoinHandle<()>],
    /// Acquisitions and ended writers at the last change of either.
    progress: (u64, usize),
    since: Instant,
}

impl<'a, P: Platform, L: RawLock> Monitor<'a, P, L> {
    fn new(run: &'a Run<P, L>, plan: &'a Plan, handles: &'a [JoinHandle<()>]) -> Self {
        Self { run, plan, handles, progress: (0, 0), since: Instant::now() }
    }

    /// Runs the writers through their phases, for as long as the plan says.
    fn run(&mut self, interim: &mut dyn FnMut(&Counts)) -> Option<Problem> {
        let began = Instant::now();
        let mut next_phase = Duration::ZERO;
        let mut next_report = self.plan.stat_interval;
        loop {
            let elapsed = began.elapsed();
            if elapsed >= self.plan.duration {
                return None;
            }
            if elapsed >= next_phase {
                let (phase, length) = self.phase(elapsed);
                self.run.pace.set(phase);
                next_phase = elapsed + length;
            }
            if !self.plan.stat_interval.is_zero() && elapsed >= next_report {
                interim(&self.run.counts());
                next_report += self.plan.stat_interval;
            }
            std::thread::sleep(LOOK.min(self.plan.duration - elapsed));
            // No writer ends before it is told to.
            let ended = self.ended();
            if ended > 0 {
                return Some(Problem::Panicked { writers: ended });
            }
            if let Some(problem) = self.hang() {
                return Some(problem);
            }
        }
    }

    /// Waits until every writer has seen that the run is over.
    fn wait_for_the_end(&mut self) -> Option<Problem> {
        self.since = Instant::now();
        while self.ended() < self.handles.len() {
            std::thread::sleep(LOOK / 10);
            if let Some(problem) = self.hang() {
                return Some(problem);
            }
        }
        None
    }

    fn phase(&mut self, elapsed: Duration) -> (Phase, Duration) {
        let stutter = self.plan.stutter.as_nanos();
        if stutter > 0 && elapsed.as_nanos() / stutter % 2 == 1 {
            // Nobody can be expected to make progress.
            self.since = Instant::now();
            return (Phase::pause(), PHASE);
        }
        Phase::draw(self.plan.writers, || entropy() as u32)
    }

    fn ended(&self) -> usize {
        self.handles.iter().filter(|handle| handle.is_finished()).count()
    }

    /// Whether nothing has happened for too long.
    fn hang(&mut self) -> Option<Problem> {
        let progress = (self.run.counts().total, self.ended());
        if progress != self.progress {
            self.progress = progress;
            self.since = Instant::now();
        }
        let idle = self.since.elapsed();
        let long_hold = Duration::from_millis(self.plan.long_hold_ms);
        let limit = self.plan.hang.max(long_hold.saturating_mul(3));
        let (waiting, writers) = (self.run.waiting(), self.handles.len());
        (idle >= limit).then_some(Problem::Hang { idle, waiting, writers })
    }
}
