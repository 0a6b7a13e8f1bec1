//! Lockstat: how long locks were waited for and held, as lockstat(1) and LOCK_PROFILING(9) of
//! FreeBSD show it.
//!
//! ```text
//!     asks            has it        releases
//! ------|---------------|---------------|------
//!       |     wait      |     hold      |
//!       | block   spin  |
//! ```
//! *block*: the sleeps within the wait, together; *spin*: what is left of the wait of an
//! acquisition that looked in vain. Both are recorded once for each acquisition that had any.
//! Natively in ns of the clock, in the simulator in virtual ns.
//!
//! Two looks at the clock for each acquisition are what it costs, and here only: a lock has no
//! instruction for it ([`nearlock_core::lockstat`]).
//!
//! Source: what FreeBSD's probes and its lock profiling record, from descriptions in own words.

use hdrhistogram::Histogram;
use nearlock_collection::subjects::Subject;
use nearlock_core::lockstat::Waited;
use serde::Serialize;

/// Of the histograms: values are exact to 10 %, in little memory, since threads have several each.
const SIGNIFICANT_DIGITS: u8 = 1;

/// Which of FreeBSD's kinds of locks comes nearest: by it the events are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// A mutex whose waiters may sleep.
    Adaptive,
    /// A spin lock.
    Spin,
    /// A reader-writer lock whose waiters do not give up.
    Rw,
    /// A reader-writer lock whose waiters may.
    Sx,
    /// FreeBSD's lockmgr.
    Lockmgr,
}

impl Class {
    /// That of a lock.
    pub fn of(lock: &Subject) -> Self {
        match (lock.algorithm.name, lock.is_rw(), lock.is_timed()) {
            ("freebsd-lockmgr", ..) => Class::Lockmgr,
            (_, true, true) => Class::Sx,
            (_, true, false) => Class::Rw,
            ("freebsd-mtx", ..) | (_, false, true) => Class::Adaptive,
            _ => Class::Spin,
        }
    }

    /// As the names of its events begin.
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
    /// Both.
    pub const ALL: [Mode; 2] = [Mode::Writer, Mode::Reader];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Writer => "writer",
            Mode::Reader => "reader",
        }
    }
}

/// How long something lasted, each time that it happened.
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

    /// How often it lasted for 2^n to 2^(n+1)-1 ns; 0 counts to the first. From the shortest to the
    /// longest.
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

/// What was recorded of the acquisitions of one lock in one mode.
#[derive(Clone, Debug, Default)]
pub struct Record {
    contended: u64,
    wait: Spans,
    spin: Spans,
    block: Spans,
    hold: Spans,
}

impl Record {
    /// It has been acquired after so long, in ns, in which the thread has waited so.
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

    /// It has been held for so long, in ns.
    pub fn released(&mut self, hold_ns: u64) {
        self.hold.record(hold_ns);
    }

    /// Adds what another thread has recorded.
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

    /// What it comes to, if there was any acquisition.
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

/// How often something lasted that long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// From so many ns, a power of two, to less than twice as many.
    pub from_ns: u64,
    /// How often.
    pub count: u64,
}

/// One kind of event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Its name, as a probe of lockstat's: `adaptive-spin`. (`hold` is lockstat's -H.)
    pub event: String,
    /// How often it happened.
    pub count: u64,
    /// How long all of them lasted together, in ns.
    pub total_ns: u64,
    /// The longest, in ns.
    pub max_ns: u64,
    /// How long they lasted.
    pub distribution: Vec<Bucket>,
}

/// The statistics of a lock in one mode: a row of LOCK_PROFILING, and the events of lockstat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LockStatistics {
    /// The lock; with a number, if there are several.
    pub name: String,
    /// What its events are named after.
    pub class: Class,
    /// How it was acquired.
    pub mode: Mode,
    /// The longest hold, in ns.
    pub max_ns: u64,
    /// The longest wait, in ns.
    pub wait_max_ns: u64,
    /// All holds that have ended, together, in ns.
    pub total_ns: u64,
    /// All waits that have ended with the lock, together, in ns.
    pub wait_total_ns: u64,
    /// Acquisitions.
    pub count: u64,
    /// Those of them that had to wait: that looked in vain, or slept.
    pub cnt_lock: u64,
    /// Spin, block and hold.
    pub events: Vec<Event>,
}

#[cfg(test)]
mod tests;
