//! Lockstat: statistics of waits for locks and of holds, as lockstat(1) and LOCK_PROFILING(9) of
//! FreeBSD show them.
//!
//! ```text
//!     asks            has it        releases
//! ------|---------------|---------------|------
//!       |     wait      |     hold      |
//!       | block   spin  |
//! ```
//! *block* is the sum of the sleeps within the wait. *spin* is the rest of the wait, if the thread
//! looked without success. Both are recorded once for each acquisition that had any. Natively they
//! are in ns of the clock, in the simulator in virtual ns.
//!
//! The cost is two reads of the clock for each acquisition, and it arises only here: a lock has no
//! instruction for lockstat ([`nearlock_core::lockstat`]).
//!
//! Source: the records of FreeBSD's probes and of its lock profiling, from descriptions in own
//! words.

use hdrhistogram::Histogram;
use nearlock_collection::subjects::Subject;
use nearlock_core::lockstat::Waited;
use serde::Serialize;

/// Precision of the histograms: values are exact to 10 %. They need little memory, since each
/// thread has several.
const SIGNIFICANT_DIGITS: u8 = 1;

/// The most similar kind of lock in FreeBSD. It determines the names of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// A mutex whose waiters may sleep.
    Adaptive,
    /// A spin lock.
    Spin,
    /// A reader-writer lock whose waiters do not give up.
    Rw,
    /// A reader-writer lock whose waiters may give up.
    Sx,
    /// FreeBSD's lockmgr.
    Lockmgr,
}

impl Class {
    /// The class of a lock.
    pub fn of(lock: &Subject) -> Self {
        match (lock.algorithm.name, lock.is_rw(), lock.is_timed()) {
            ("freebsd-lockmgr", ..) => Class::Lockmgr,
            (_, true, true) => Class::Sx,
            (_, true, false) => Class::Rw,
            ("freebsd-mtx", ..) | (_, false, true) => Class::Adaptive,
            _ => Class::Spin,
        }
    }

    /// The first part of the names of its events.
    pub fn name(self) -> &'static str {
        match self {
            Class::Adaptive => "adaptive",
            Class::Spin => "spin",
            Class::Rw => "rw",
            Class::Sx => "sx",
            Class::Lockmgr => "lockmgr",
        }
    }
}

/// How a lock was acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Exclusively.
    Writer,
    /// Shared.
    Reader,
}

impl Mode {
    /// Both modes.
    pub const ALL: [Mode; 2] = [Mode::Writer, Mode::Reader];

    /// The name of the mode.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Writer => "writer",
            Mode::Reader => "reader",
        }
    }
}

/// The durations of an event.
#[derive(Clone, Debug)]
struct Spans {
    count: u64,
    total_ns: u64,
    max_ns: u64,
    ns: Histogram<u64>,
}

impl Default for Spans {
    fn default() -> Self {
        let ns = Histogram::new(SIGNIFICANT_DIGITS).expect("within its limits");
        Self { count: 0, total_ns: 0, max_ns: 0, ns }
    }
}

impl Spans {
    fn record(&mut self, ns: u64) {
        self.count += 1;
        self.total_ns += ns;
        self.max_ns = self.max_ns.max(ns);
        self.ns.record(ns).expect("it grows");
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.total_ns += other.total_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.ns.add(&other.ns).expect("it grows");
    }

    /// How often the duration was 2^n to 2^(n+1)-1 ns, from the shortest to the longest. A duration
    /// of 0 counts in the first bucket.
    fn distribution(&self) -> Vec<Bucket> {
        let mut buckets: Vec<Bucket> = Vec::new();
        for step in self.ns.iter_recorded() {
            let from_ns = 1 << step.value_iterated_to().max(1).ilog2();
            match buckets.last_mut() {
                Some(last) if last.from_ns == from_ns => last.count += step.count_since_last_iteration(),
                _ => buckets.push(Bucket { from_ns, count: step.count_since_last_iteration() }),
            }
        }
        buckets
    }

    fn event(&self, class: Class, what: &str) -> Event {
        Event {
            event: format!("{}-{what}", class.name()),
            count: self.count,
            total_ns: self.total_ns,
            max_ns: self.max_ns,
            distribution: self.distribution(),
        }
    }
}

/// Records of the acquisitions of one lock in one mode.
#[derive(Clone, Debug, Default)]
pub struct Record {
    contended: u64,
    wait: Spans,
    spin: Spans,
    block: Spans,
    hold: Spans,
}

impl Record {
    /// Records an acquisition after `wait_ns`. `waited` tells how the thread waited during this
    /// time.
    pub fn acquired(&mut self, wait_ns: u64, waited: Waited) {
        self.wait.record(wait_ns);
        self.contended += u64::from(waited.has_waited());
        if waited.turns > 0 {
            self.spin.record(wait_ns.saturating_sub(waited.slept_ns));
        }
        if waited.sleeps > 0 {
            self.block.record(waited.slept_ns);
        }
    }

    /// Records a hold of this length, in ns.
    pub fn released(&mut self, hold_ns: u64) {
        self.hold.record(hold_ns);
    }

    /// Adds the records of another thread.
    pub fn add(&mut self, other: &Self) {
        self.contended += other.contended;
        let pairs = [
            (&mut self.wait, &other.wait),
            (&mut self.spin, &other.spin),
            (&mut self.block, &other.block),
            (&mut self.hold, &other.hold),
        ];
        pairs.into_iter().for_each(|(sum, one)| sum.add(one));
    }

    /// The statistics, if there was any acquisition.
    pub fn statistics(&self, name: String, class: Class, mode: Mode) -> Option<LockStatistics> {
        (self.wait.count > 0).then(|| LockStatistics {
            name,
            class,
            mode,
            max_ns: self.hold.max_ns,
            wait_max_ns: self.wait.max_ns,
            total_ns: self.hold.total_ns,
            wait_total_ns: self.wait.total_ns,
            count: self.wait.count,
            cnt_lock: self.contended,
            events: [(&self.spin, "spin"), (&self.block, "block"), (&self.hold, "hold")]
                .map(|(spans, what)| spans.event(class, what))
                .into(),
        })
    }
}

/// A bucket of a distribution of durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// The lower bound in ns, a power of two. The upper bound is twice as long.
    pub from_ns: u64,
    /// The number of durations in the bucket.
    pub count: u64,
}

/// One kind of event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// The name, as that of a probe of lockstat: `adaptive-spin`. (`hold` is lockstat's -H.)
    pub event: String,
    /// The number of events.
    pub count: u64,
    /// The sum of their durations, in ns.
    pub total_ns: u64,
    /// The longest, in ns.
    pub max_ns: u64,
    /// The distribution of their durations.
    pub distribution: Vec<Bucket>,
}

/// The statistics of a lock in one mode: a row of LOCK_PROFILING, and the events of lockstat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LockStatistics {
    /// The lock, with a number if there are several.
    pub name: String,
    /// The class after which its events are named.
    pub class: Class,
    /// How it was acquired.
    pub mode: Mode,
    /// The longest hold, in ns.
    pub max_ns: u64,
    /// The longest wait, in ns.
    pub wait_max_ns: u64,
    /// The sum of all completed holds, in ns.
    pub total_ns: u64,
    /// The sum of all waits that ended with an acquisition, in ns.
    pub wait_total_ns: u64,
    /// The number of acquisitions.
    pub count: u64,
    /// The number of acquisitions that had to wait: that looked without success, or slept.
    pub cnt_lock: u64,
    /// The events spin, block and hold.
    pub events: Vec<Event>,
}

#[cfg(test)]
mod tests;
