//! One run: the threads, what watches them, and the verdict.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use nearlock_core::events::LockEvent;
use nearlock_core::native::Wait;
use nearlock_core::platform::{Clock, Park};
use nearlock_core::raw::{RawLock, RawRwLock, RawTimedLock, RawTimedRwLock, RawTryLock};
use nearlock_core::settings::Setting;
use nearlock_core::subjects::{LockVisitor, RwLockVisitor, Subject, TimedLockVisitor, TimedRwLockVisitor};
use nearlock_os::Os;
use nearlock_workload::locktorture::{
    LONG_READ_TIMES, LongHolds, OwnLine, Params, ReadHeld, Reader, Shared, ShortHolds, Stats, Writer,
};

use super::pace::{Next, PHASE, Pace, Phase};
use super::storm::Storm;
use super::thread::{Role, Torturer, Watch};
use super::ways::{self, Ways};
use super::{Counts, Crew, GivenUp, NumaNodes, Plan, Problem, TortureError, Tortured, Totals};

/// How often the run is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// In a storm waiters spin in one phase of so many, and sleep at once in the others: it is sleepers that can be cancelled.
const SPINNING_ONE_IN: u64 = 4;
/// Of a thread: the locks keep nothing large on it.
const STACK_BYTES: usize = 256 * 1024;

/// A counter that only the holder of the lock writes, and in two steps, a load and a store: if the lock fails
/// to exclude, an increment between them is lost. Relaxed suffices, as the lock orders its holders; atomic it is
/// for the locks that fail to. Built for ThreadSanitizer (`nearlock_visible_words`) the accesses are plain, so that
/// it also sees a lock that excludes, but does not order its holders.
#[derive(Default)]
pub struct Canary(AtomicU64);

impl Canary {
    /// # Safety
    ///
    /// The caller holds the lock, shared or not, or nobody does nor will. (What a lock that excludes nobody makes of this is for
    /// ThreadSanitizer to report.)
    pub unsafe fn read(&self) -> u64 {
        if cfg!(nearlock_visible_words) {
            // SAFETY: the word is alive, and by our own condition nobody writes to it.
            return unsafe { self.0.as_ptr().read() };
        }
        self.0.load(Relaxed)
    }
    /// # Safety
    ///
    /// The caller holds the lock exclusively. (As above.)
    pub unsafe fn write(&self, value: u64) {
        if cfg!(nearlock_visible_words) {
            // SAFETY: the word is alive, and by our own condition nobody else uses it.
            return unsafe { self.0.as_ptr().write(value) };
        }
        self.0.store(value, Relaxed);
    }
}

/// Everything that the threads share. The writers come first among them, then the readers.
pub struct Run<P: Park, L, O> {
    pub shared: Shared<P, L>,
    pub read_held: ReadHeld<P>,
    stats: Vec<Stats<P>>,
    pub watches: Vec<OwnLine<Watch>>,
    pub canary: OwnLine<Canary>,
    pub pace: Pace,
    pub storm: Option<Storm<P>>,
    crew: Crew,
    write_params: Params,
    read_params: Params,
    ways: PhantomData<O>,
}

/// Another number each time, in every process: each run of a torture test should be another.
fn entropy() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Runs the plan over the lock type that it is given.
pub struct Visitor<'a> {
    pub lock: &'static Subject,
    pub plan: &'a Plan,
    pub interim: &'a mut dyn FnMut(&Totals),
}

impl Visitor<'_> {
    /// By all the ways that the lock has.
    pub fn visit_all<W: Wait>(self) -> Result<Tortured, TortureError> {
        let lock = self.lock;
        let tortured = match (lock.is_rw, lock.is_timed) {
            (false, false) => Some(lock.visit::<Os<W>, _>(self)),
            (false, true) => lock.visit_timed::<Os<W>, _>(self),
            (true, false) => lock.visit_rw::<Os<W>, _>(self),
            (true, true) => lock.visit_timed_rw::<Os<W>, _>(self),
        };
        tortured.expect("a lock is visited as what the list says it is")
    }

    /// By these ways.
    pub fn torture<W: Wait, L: RawTryLock, O: Ways<Os<W>, L>>(self) -> Result<Tortured, TortureError> {
        let run = Arc::new(Run::<Os<W>, L, O>::new(self.lock, self.plan));
        let events_before = nearlock_os::events();
        let canceller = run.start_canceller()?;
        let handles = start(&run, self.plan)?;
        let began = Instant::now();
        let mut monitor = Monitor::new(self.lock, &run, self.plan, &handles);
        let mut problems = Vec::new();
        problems.extend(monitor.run(self.interim));
        run.stop();
        if problems.is_empty() {
            problems.extend(monitor.wait_for_the_end());
        }
        let seconds = began.elapsed().as_secs_f64();
        let wait_ns_max = run.wait_ns_max();
        if problems.is_empty() {
            problems.extend(join(handles));
        }
        problems.extend(canceller.and_then(|canceller| join(vec![canceller])));
        problems.extend(run.lost_exclusion(problems.is_empty()));
        let mut events = nearlock_os::events();
        for (count, before) in events.iter_mut().zip(events_before) {
            *count -= before;
        }
        let _: [u64; LockEvent::COUNT] = events;
        let (crew, totals, given_up) = (run.crew, run.totals(), run.given_up());
        let downgraded = run.watches.iter().map(|watch| watch.0.downgraded()).sum();
        let lock = self.lock;
        Ok(Tortured { lock, crew, totals, given_up, downgraded, seconds, wait_ns_max, events, problems })
    }
}

impl<W: Wait> LockVisitor<Os<W>> for Visitor<'_> {
    type Output = Result<Tortured, TortureError>;
    fn visit<L: RawTryLock>(self) -> Self::Output {
        self.torture::<W, L, ways::Plain>()
    }
}

impl<W: Wait> RwLockVisitor<Os<W>> for Visitor<'_> {
    type Output = Result<Tortured, TortureError>;
    fn visit<L: RawRwLock>(self) -> Self::Output {
        self.torture::<W, L, ways::Shared>()
    }
}

impl<W: Wait> TimedLockVisitor<Os<W>> for Visitor<'_> {
    type Output = Result<Tortured, TortureError>;
    fn visit<L: RawTimedLock<Platform = Os<W>>>(self) -> Self::Output {
        self.torture::<W, L, ways::Timed>()
    }
}

impl<W: Wait> TimedRwLockVisitor<Os<W>> for Visitor<'_> {
    type Output = Result<Tortured, TortureError>;
    fn visit<L: RawTimedRwLock<Platform = Os<W>>>(self) -> Self::Output {
        self.torture::<W, L, ways::TimedShared>()
    }
}

/// Starts the threads, who pause until the pace is set.
fn start<W: Wait, L: RawTryLock, O: Ways<Os<W>, L>>(
    run: &Arc<Run<Os<W>, L, O>>,
    plan: &Plan,
) -> Result<Vec<JoinHandle<()>>, TortureError> {
    let threads = run.crew.threads();
    let mut handles = Vec::with_capacity(threads);
    for thread in 0..threads {
        let numa_node = match plan.numa_nodes {
            NumaNodes::Real(_) | NumaNodes::Slots(_) => None,
            NumaNodes::Synthetic(nodes) => Some((thread % nodes as usize) as u32),
        };
        let (role, name) = match thread.checked_sub(run.crew.writers) {
            None => (Role::Writer, format!("writer {thread}")),
            Some(reader) => (Role::Reader, format!("reader {reader}")),
        };
        let shared = Arc::clone(run);
        let started = Builder::new().name(name).stack_size(STACK_BYTES).spawn(move || {
            nearlock_os::set_numa_node(numa_node);
            shared.live(thread, role);
        });
        match started {
            Ok(handle) => handles.push(handle),
            Err(source) => {
                run.stop();
                // They are paused still, so they end at once.
                let _ = join(handles);
                return Err(TortureError::Spawn { thread, threads, source });
            }
        }
    }
    Ok(handles)
}

/// Waits for threads that are known to end.
fn join(handles: Vec<JoinHandle<()>>) -> Option<Problem> {
    let threads = handles.into_iter().filter_map(|handle| handle.join().err()).count();
    (threads > 0).then_some(Problem::Panicked { threads })
}

fn params(threads: usize, short_holds: ShortHolds, long_holds: LongHolds, plan: &Plan) -> Params {
    Params {
        writers: threads as u64,
        short_holds,
        long_holds,
        section_ns: 0,
        think_ns: 0,
        // A scheduler tick at 250 Hz, most distributions' choice.
        tick_ns: 4_000_000,
        priority_percent: plan.priority_percent,
    }
}

impl<W: Wait, L: RawTryLock, O: Ways<Os<W>, L>> Run<Os<W>, L, O> {
    fn new(lock: &Subject, plan: &Plan) -> Self {
        let (kind, crew) = (super::kind(lock), plan.crew(lock));
        let long_holds = |times| match plan.long_hold_ms {
            0 => LongHolds::LeftOut,
            ms => LongHolds::Made { ms, times },
        };
        let threads = crew.threads();
        Self {
            shared: Shared::default(),
            read_held: ReadHeld::default(),
            stats: (0..threads).map(|_| Stats::default()).collect(),
            watches: (0..threads).map(|_| OwnLine::default()).collect(),
            canary: OwnLine::default(),
            pace: Pace::new(threads),
            storm: (plan.storm.is_some() && O::TIMED).then(|| Storm::new(threads)),
            crew,
            write_params: params(crew.writers, kind.short_holds(), long_holds(kind.long_write_times()), plan),
            read_params: params(crew.readers, ShortHolds::Never, long_holds(LONG_READ_TIMES), plan),
            ways: PhantomData,
        }
    }

    /// The life of one thread.
    fn live(&self, thread: usize, role: Role) {
        if self.pace.next(thread) == Next::Stop {
            return;
        }
        let (mut node, stats) = (L::Node::default(), &self.stats[thread]);
        let mut hand = Torturer::new(self, thread, role);
        match role {
            Role::Writer => Writer::new(&self.shared, stats, &mut node, &self.write_params, entropy())
                .with_readers(&self.read_held)
                .run_by(&mut hand),
            Role::Reader => {
                let (shared, read_held, params) = (&self.shared, &self.read_held, &self.read_params);
                Reader::new(shared, read_held, stats, &mut node, params, entropy()).run_by(&mut hand);
            }
        }
    }

    /// Starts who cancels, if there is a storm.
    fn start_canceller(self: &Arc<Self>) -> Result<Option<JoinHandle<()>>, TortureError> {
        if self.storm.is_none() {
            return Ok(None);
        }
        let run = Arc::clone(self);
        let rage = move || {
            let waits = |thread: usize| run.watches[thread].0.cancellable.load(Relaxed) != 0;
            run.storm.iter().for_each(|storm| storm.rage(waits));
        };
        let started = Builder::new().name("canceller".to_owned()).spawn(rage);
        started.map(Some).map_err(|source| TortureError::Spawn {
            thread: 0,
            threads: self.crew.threads(),
            source,
        })
    }

    fn stop(&self) {
        self.pace.stop();
        self.storm.iter().for_each(Storm::end);
    }
}

impl<P: Park, L: RawLock, O> Run<P, L, O> {
    fn totals(&self) -> Totals {
        let (writers, readers) = self.stats.split_at(self.crew.writers);
        let (write_watches, read_watches) = self.watches.split_at(self.crew.writers);
        let of = |stats: &[Stats<P>], watches: &[OwnLine<Watch>]| {
            let acquired = || stats.iter().map(Stats::acquired);
            let seen = watches.iter().map(|watch| watch.0.failures.load(Relaxed));
            Counts {
                total: acquired().sum(),
                max: acquired().max().unwrap_or(0),
                min: acquired().min().unwrap_or(0),
                failures: stats.iter().map(Stats::failures).chain(seen).sum(),
            }
        };
        Totals { writes: of(writers, write_watches), reads: of(readers, read_watches) }
    }

    fn given_up(&self) -> GivenUp {
        self.watches.iter().map(|watch| watch.0.given_up()).sum()
    }

    /// What exclusion violated left behind; whether threads still run decides whether the canary counts.
    fn lost_exclusion(&self, all_have_ended: bool) -> Vec<Problem> {
        let totals = self.totals();
        let failures = totals.writes.failures + totals.reads.failures;
        let mut problems = Vec::new();
        if failures > 0 {
            problems.push(Problem::Exclusion { failures });
        }
        if all_have_ended {
            let total = totals.writes.total;
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

impl<P: Clock + Park, L: RawLock, O> Run<P, L, O> {
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

/// Looks at a run from outside: changes phases, reports, and notices a standstill.
struct Monitor<'a, W: Wait, L, O> {
    lock: &'static Subject,
    run: &'a Run<Os<W>, L, O>,
    plan: &'a Plan,
    handles: &'a [JoinHandle<()>],
    /// Acquisitions and ended threads at the last change of either.
    progress: (u64, usize),
    since: Instant,
    /// Cancelled waiters at the last change.
    cancelled: u64,
    cancelled_since: Instant,
}

impl<'a, W: Wait, L: RawTryLock, O: Ways<Os<W>, L>> Monitor<'a, W, L, O> {
    fn new(
        lock: &'static Subject,
        run: &'a Run<Os<W>, L, O>,
        plan: &'a Plan,
        handles: &'a [JoinHandle<()>],
    ) -> Self {
        let now = Instant::now();
        Self { lock, run, plan, handles, progress: (0, 0), since: now, cancelled: 0, cancelled_since: now }
    }

    /// Runs the threads through their phases, for as long as the plan says.
    fn run(&mut self, interim: &mut dyn FnMut(&Totals)) -> Option<Problem> {
        let began = Instant::now();
        let mut next_phase = Duration::ZERO;
        let mut next_report = self.plan.stat_interval;
        loop {
            let elapsed = began.elapsed();
            let left = match self.cancellations_wanted() {
                None => self.plan.duration.saturating_sub(elapsed),
                Some(wanted) if self.run.given_up().cancelled < wanted => LOOK,
                Some(_) => Duration::ZERO,
            };
            if left.is_zero() {
                return None;
            }
            if elapsed >= next_phase {
                let (phase, length) = self.phase(elapsed);
                self.run.pace.set(phase);
                next_phase = elapsed + length;
            }
            if !self.plan.stat_interval.is_zero() && elapsed >= next_report {
                interim(&self.run.totals());
                next_report += self.plan.stat_interval;
            }
            std::thread::sleep(LOOK.min(left));
            // No thread ends before it is told to.
            let ended = self.ended();
            if ended > 0 {
                return Some(Problem::Panicked { threads: ended });
            }
            if let Some(problem) = self.hang().or_else(|| self.calm()) {
                return Some(problem);
            }
        }
    }

    /// How many cancellations end the run, if not time does.
    fn cancellations_wanted(&self) -> Option<u64> {
        self.run.storm.as_ref().and(self.plan.storm).and_then(|storm| storm.cancellations)
    }

    /// Waits until every thread has seen that the run is over.
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
            self.cancelled_since = self.since;
            return (Phase::pause(), PHASE);
        }
        let threads = self.run.crew.threads();
        match self.run.storm {
            // Its rounds are phases enough.
            Some(_) => {
                let spins = entropy().is_multiple_of(SPINNING_ONE_IN);
                let budget_ns = self.plan.settings[Setting::SpinBudgetNs as usize];
                let set = nearlock_os::set_setting(Setting::SpinBudgetNs, if spins { budget_ns } else { 0 });
                debug_assert!(set.is_ok(), "0 and what it was are within the limits");
                (Phase::full(threads), PHASE)
            }
            None => Phase::draw(threads, || entropy() as u32),
        }
    }

    fn ended(&self) -> usize {
        self.handles.iter().filter(|handle| handle.is_finished()).count()
    }

    /// For how long nothing may happen.
    fn patience(&self) -> Duration {
        let times = super::kind(self.lock).long_write_times().max(LONG_READ_TIMES);
        let long_hold = Duration::from_millis(self.plan.long_hold_ms.saturating_mul(times));
        self.plan.hang.max(long_hold.saturating_mul(3))
    }

    /// Whether nothing has happened for too long.
    fn hang(&mut self) -> Option<Problem> {
        let totals = self.run.totals();
        let progress = (totals.writes.total + totals.reads.total, self.ended());
        if progress != self.progress {
            self.progress = progress;
            self.since = Instant::now();
        }
        let idle = self.since.elapsed();
        let (waiting, threads) = (self.run.waiting(), self.handles.len());
        (idle >= self.patience()).then_some(Problem::Hang { idle, waiting, threads })
    }

    /// Whether a storm that is to cancel so many cancels nobody any more.
    fn calm(&mut self) -> Option<Problem> {
        let wanted = self.cancellations_wanted()?;
        let cancelled = self.run.given_up().cancelled;
        if cancelled != self.cancelled {
            self.cancelled = cancelled;
            self.cancelled_since = Instant::now();
        }
        let idle = self.cancelled_since.elapsed();
        (idle >= self.patience()).then_some(Problem::Calm { idle, cancelled, wanted })
    }
}
