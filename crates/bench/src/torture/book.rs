//! What a run keeps of its threads, and what that comes to.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use nearlock_collection::subjects::Subject;
use nearlock_core::events::LockEvent;
use nearlock_core::platform::Clock;
use nearlock_workload::locktorture::{
    LONG_READ_TIMES, LongHolds, OwnLine, Params, ReadHeld, ShortHolds, Stats,
};

use super::pace::Pace;
use super::storm::Storm;
use super::thread::Watch;
use super::{Counts, Crew, GivenUp, Plan, Problem, TortureError, Totals};
use crate::watched::OsWatched;
use nearlock_lab::lockstat::{Class, LockStatistics, Mode, Record};

/// A counter that only the holder of the lock writes, and in two steps, a load and a store: if the
/// lock fails to exclude, an increment between them is lost. Relaxed suffices, as the lock orders
/// its holders; atomic it is for the locks that fail to. Built for ThreadSanitizer
/// (`nearlock_visible_words`) the accesses are plain, so that it also sees a lock that excludes,
/// but does not order its holders.
#[derive(Default)]
pub struct Canary(AtomicU64);

impl Canary {
    /// # Safety
    ///
    /// The caller holds the lock, shared or not, or nobody does nor will. (What a lock that
    /// excludes nobody makes of this is for ThreadSanitizer to report.)
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

/// The account of a lock that is made of a condition variable, by what that says to its users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notifications {
    /// To somebody who waited.
    pub sent: u64,
    /// Waits that have ended with one.
    pub returned: u64,
}

impl Notifications {
    /// What the calling thread has counted, and those that had its slot before it.
    pub fn of_slot() -> Self {
        let of = |event: LockEvent| nearlock_os::events_of_slot().map_or(0, |events| events[event as usize]);
        Self { sent: of(LockEvent::CondvarSent), returned: of(LockEvent::CondvarReturn) }
    }

    /// Adds what was counted from one look to another.
    pub fn add(&mut self, from: Self, to: Self) {
        self.sent += to.sent - from.sent;
        self.returned += to.returned - from.returned;
    }
}

/// What the threads share, but for the lock. The writers come first among them, then the readers.
pub struct Book {
    pub read_held: ReadHeld<OsWatched>,
    pub stats: Vec<Stats<OsWatched>>,
    pub watches: Vec<OwnLine<Watch>>,
    pub canary: OwnLine<Canary>,
    pub pace: Pace,
    pub storm: Option<Storm<OsWatched>>,
    /// Of the threads that have ended.
    pub notifications: Mutex<Notifications>,
    /// What the threads that have ended have recorded, by mode; `None` if nothing is recorded.
    pub lockstat: Option<Mutex<[Record; 2]>>,
    pub crew: Crew,
    pub write_params: Params,
    pub read_params: Params,
}

/// Another number each time, in every process: each run of a torture test should be another.
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
        // A scheduler tick at 250 Hz, most distributions' choice.
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
        }
    }

    /// Starts who cancels, if there is a storm.
    pub fn start_canceller(self: &Arc<Self>) -> Result<Option<JoinHandle<()>>, TortureError> {
        if self.storm.is_none() {
            return Ok(None);
        }
        let book = Arc::clone(self);
        let rage = move || {
            book.storm.iter().for_each(|storm| storm.rage(|thread| book.waits_by_cancellation(thread)))
        };
        let started = Builder::new().name("canceller".to_owned()).spawn(rage);
        started.map(Some).map_err(|source| TortureError::Spawn {
            thread: 0,
            threads: self.crew.threads(),
            source,
        })
    }

    /// Whether the thread can be cancelled at present.
    pub fn waits_by_cancellation(&self, thread: usize) -> bool {
        self.watches[thread].0.cancellable.load(Relaxed) != 0
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

    /// Adds what a thread has recorded.
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

    /// Whether somebody has seen another in its section.
    pub fn lost_exclusion(&self) -> Option<Problem> {
        let totals = self.totals();
        let failures = totals.writes.failures + totals.reads.failures;
        (failures > 0).then_some(Problem::Exclusion { failures })
    }

    /// Whether the canary has missed sections. For when all threads have ended.
    pub fn lost_updates(&self) -> Option<Problem> {
        let total = self.totals().writes.total;
        // SAFETY: nobody is left to hold the lock.
        let lost = total.abs_diff(unsafe { self.canary.0.read() });
        (lost > 0).then_some(Problem::LostUpdates { lost, total })
    }

    /// Whether notifications have come to nothing, or waits have ended without one. For when all
    /// threads have ended.
    pub fn lost_notifications(&self) -> Option<Problem> {
        let Notifications { sent, returned } =
            *self.notifications.lock().unwrap_or_else(PoisonError::into_inner);
        (sent != returned).then_some(Problem::LostNotifications { sent, returned })
    }

    pub fn waiting(&self) -> usize {
        self.watches.iter().filter(|watch| watch.0.waiting_since_ns.load(Relaxed) != 0).count()
    }

    pub fn wait_ns_max(&self) -> u64 {
        let now_ns = OsWatched::now_ns();
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
