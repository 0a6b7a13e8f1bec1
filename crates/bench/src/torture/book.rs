//! State and results of the threads of a run.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle};

use nearlock_collection::subjects::Subject;
use nearlock_core::events::LockEvent;
use nearlock_core::near::mutex::Diagnosis;
use nearlock_core::platform::Clock;
use nearlock_core::schedule::Schedule;
use nearlock_workload::locktorture::{
    LONG_READ_TIMES, LongHolds, OwnLine, Params, ReadHeld, ShortHolds, Stats,
};

use super::pace::Pace;
use super::storm::Storm;
use super::thread::Watch;
use super::{Counts, Crew, GivenUp, Plan, Problem, TortureError, Totals};
use crate::watched::OsWatched;
use nearlock_lab::lockstat::{Class, LockStatistics, Mode, Record};

/// A counter that only the holder of the lock writes. It is incremented by a load and a store, so
/// that an increment in between is lost if the lock fails to exclude. Relaxed suffices, as the lock
/// orders its holders. The counter is atomic because of locks that fail to exclude. In builds for
/// ThreadSanitizer (`nearlock_visible_words`) the accesses are plain. ThreadSanitizer then also
/// reports a lock that excludes but does not order its holders.
#[derive(Default)]
pub struct Canary(AtomicU64);

impl Canary {
    /// # Safety
    ///
    /// The caller holds the lock, shared or exclusively, or no thread holds it now or later. (If a
    /// lock does not exclude, ThreadSanitizer reports the violation.)
    pub unsafe fn read(&self) -> u64 {
        if cfg!(nearlock_visible_words) {
            // SAFETY: the word is alive, and no other thread writes it, by this function's own
            // condition.
            return unsafe { self.0.as_ptr().read() };
        }
        self.0.load(Relaxed)
    }
    /// # Safety
    ///
    /// The caller holds the lock exclusively. (For locks that do not exclude, see above.)
    pub unsafe fn write(&self, value: u64) {
        if cfg!(nearlock_visible_words) {
            // SAFETY: the word is alive, and no other thread accesses it, by this function's own
            // condition.
            return unsafe { self.0.as_ptr().write(value) };
        }
        self.0.store(value, Relaxed);
    }
}

/// Balance of notifications of a lock that is made of a condition variable, as its users see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notifications {
    /// Number of notifications that were sent to a waiter.
    pub sent: u64,
    /// Number of waits that ended with a notification.
    pub returned: u64,
}

impl Notifications {
    /// The counts of the calling thread's slot, including those of earlier threads in the slot.
    pub fn of_slot() -> Self {
        let of = |event: LockEvent| nearlock_os::events_of_slot().map_or(0, |events| events[event as usize]);
        Self { sent: of(LockEvent::CondvarSent), returned: of(LockEvent::CondvarReturn) }
    }

    /// Adds the difference between two readings of the counts.
    pub fn add(&mut self, from: Self, to: Self) {
        self.sent += to.sent - from.sent;
        self.returned += to.returned - from.returned;
    }
}

/// State that the threads share, apart from the lock. Threads are numbered: first the writers, then
/// the readers.
pub struct Book {
    pub read_held: ReadHeld<OsWatched>,
    pub stats: Vec<Stats<OsWatched>>,
    pub watches: Vec<OwnLine<Watch>>,
    pub canary: OwnLine<Canary>,
    pub pace: Pace,
    pub storm: Option<Storm<OsWatched>>,
    /// Counts of the threads that have ended.
    pub notifications: Mutex<Notifications>,
    /// Records of the threads that have ended, by mode; `None` without recording.
    pub lockstat: Option<Mutex<[Record; 2]>>,
    pub crew: Crew,
    pub write_params: Params,
    pub read_params: Params,
    /// Reads the state of the lock, for a lock that tells it.
    pub probe: OnceLock<Probe>,
    /// The kernel's number of the canceller; 0: none.
    canceller: AtomicU32,
}

/// Reads the state of a lock.
pub type Probe = Box<dyn Fn() -> Diagnosis + Send + Sync>;

/// The name of the thread that cancels waiters.
const CANCELLER: &str = "canceller";

/// A random number. It differs in every process and call, so that each torture run differs.
pub fn entropy() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn params(threads: usize, short_holds: ShortHolds, long_holds: LongHolds, plan: &Plan) -> Params {
    Params {
        writers: threads as u64,
        short_holds,
        long_holds,
        section_ns: 0,
        think_ns: 0,
        // A scheduler tick at 250 Hz, the usual rate of distributions.
        tick_ns: 4_000_000,
        priority_percent: plan.priority_percent,
    }
}

impl Book {
    pub fn new(lock: &Subject, plan: &Plan) -> Self {
        let (kind, crew) = (super::kind(lock), plan.crew(lock));
        let long_holds = |times| match plan.long_hold_ms {
            0 => LongHolds::LeftOut,
            ms => LongHolds::Made { ms, times },
        };
        let threads = crew.threads();
        Self {
            read_held: ReadHeld::default(),
            stats: (0..threads).map(|_| Stats::default()).collect(),
            watches: (0..threads).map(|_| OwnLine::default()).collect(),
            canary: OwnLine::default(),
            pace: Pace::new(threads),
            storm: (plan.storm.is_some() && lock.is_timed()).then(|| Storm::new(threads)),
            notifications: Mutex::default(),
            lockstat: plan.lockstat.then(Mutex::default),
            crew,
            write_params: params(crew.writers, kind.short_holds(), long_holds(kind.long_write_times()), plan),
            read_params: params(crew.readers, ShortHolds::Never, long_holds(LONG_READ_TIMES), plan),
            probe: OnceLock::new(),
            canceller: AtomicU32::new(0),
        }
    }

    /// Starts the canceller, if there is a storm.
    pub fn start_canceller(self: &Arc<Self>) -> Result<Option<JoinHandle<()>>, TortureError> {
        if self.storm.is_none() {
            return Ok(None);
        }
        let book = Arc::clone(self);
        let rage = move || {
            book.canceller.store(OsWatched::thread_id().get(), Relaxed);
            book.storm.iter().for_each(|storm| storm.rage(|thread| book.waits_by_cancellation(thread)))
        };
        let started = Builder::new().name(CANCELLER.to_owned()).spawn(rage);
        started.map(Some).map_err(|source| TortureError::Spawn {
            thread: 0,
            threads: self.crew.threads(),
            source,
        })
    }

    /// Whether the thread waits with a cancellation at present.
    pub fn waits_by_cancellation(&self, thread: usize) -> bool {
        self.watches[thread].0.cancellable.load(Relaxed) != 0
    }

    /// The kernel's number of the thread that cancels waiters, if there is one.
    pub fn canceller(&self) -> Option<Option<u32>> {
        let number = self.canceller.load(Relaxed);
        self.storm.as_ref().map(|_| (number != 0).then_some(number))
    }

    /// The names of the threads, and that of the canceller if there is one.
    pub fn names(&self) -> Vec<String> {
        let threads = (0..self.crew.threads()).map(|thread| self.crew.name(thread));
        threads.chain(self.storm.as_ref().map(|_| CANCELLER.to_owned())).collect()
    }

    /// The state of the lock, if it tells it.
    pub fn diagnose(&self) -> Option<Diagnosis> {
        self.probe.get().map(|probe| probe())
    }

    /// Acquisitions of each thread.
    pub fn acquired(&self) -> Vec<u64> {
        self.stats.iter().map(Stats::acquired).collect()
    }

    pub fn stop(&self) {
        self.pace.stop();
        self.storm.iter().for_each(Storm::end);
    }

    pub fn totals(&self) -> Totals {
        let (writers, readers) = self.stats.split_at(self.crew.writers);
        let (write_watches, read_watches) = self.watches.split_at(self.crew.writers);
        let of = |stats: &[Stats<OsWatched>], watches: &[OwnLine<Watch>]| {
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

    /// Adds a thread's record.
    pub fn record(&self, mode: Mode, record: &Record) {
        if let Some(records) = &self.lockstat {
            records.lock().unwrap_or_else(PoisonError::into_inner)[mode as usize].add(record);
        }
    }

    pub fn statistics(&self, lock: &Subject) -> Option<Vec<LockStatistics>> {
        let records = self.lockstat.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |mode: Mode| records[mode as usize].statistics(lock.name.to_owned(), Class::of(lock), mode);
        Some(Mode::ALL.into_iter().filter_map(of).collect())
    }

    pub fn given_up(&self) -> GivenUp {
        self.watches.iter().map(|watch| watch.0.given_up()).sum()
    }

    /// Whether a thread has seen another thread in its section.
    pub fn lost_exclusion(&self) -> Option<Problem> {
        let totals = self.totals();
        let failures = totals.writes.failures + totals.reads.failures;
        (failures > 0).then_some(Problem::Exclusion { failures })
    }

    /// Whether the canary lacks increments. Call it when all threads have ended.
    pub fn lost_updates(&self) -> Option<Problem> {
        let total = self.totals().writes.total;
        // SAFETY: no thread is left that could hold the lock.
        let lost = total.abs_diff(unsafe { self.canary.0.read() });
        (lost > 0).then_some(Problem::LostUpdates { lost, total })
    }

    /// Whether notifications had no effect, or waits ended without a notification. Call it when all
    /// threads have ended.
    pub fn lost_notifications(&self) -> Option<Problem> {
        let Notifications { sent, returned } =
            *self.notifications.lock().unwrap_or_else(PoisonError::into_inner);
        (sent != returned).then_some(Problem::LostNotifications { sent, returned })
    }

    pub fn waiting(&self) -> usize {
        self.watches.iter().filter(|watch| watch.0.account.waiting_since_ns().is_some()).count()
    }

    pub fn wait_ns_max(&self) -> u64 {
        let now_ns = OsWatched::now_ns();
        let longest = |watch: &OwnLine<Watch>| {
            let since_ns = watch.0.account.waiting_since_ns();
            let present = since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns));
            present.max(watch.0.wait_ns_max.load(Relaxed))
        };
        self.watches.iter().map(longest).max().unwrap_or(0)
    }
}
