//! The native benchmark: locks against each other on this machine.
//!
//! Three questions, kept apart ([`Mode`]): what a lock costs when nobody else wants it, how long it takes from
//! one thread to another, and how many sections, or calls, many threads get through. Locks are compared within a
//! *round*, in which each runs once, in an order that is drawn anew; a lock's *ratio* is how many times as
//! fast it is as the baseline in the same round. What disturbs a machine for longer than a round
//! disturbs all locks alike, so that ratios are worth more than nanoseconds. Reported are medians over
//! rounds, and quartiles of the ratio.
//!
//! | file | what |
//! |---|---|
//! | `candidate.rs`, `peers.rs` | what can be measured: the locks of the list, and those of others |
//! | `throughput.rs`, `uncontended.rs`, `handover.rs`, `calls.rs` | one run of one lock, a file for each mode |
//! | `atomics.rs` | atomic read-modify-writes, counted |
//! | `crew.rs`, `wait.rs` | threads that begin together, and that a run ends in time |
//! | `machine.rs` | the machine: what it is, CPUs, the cost of the clock, the length of work |
//! | `statistics.rs` | quartiles, Jain's index, histograms of waits |

mod atomics;
mod calls;
mod candidate;
mod crew;
mod handover;
mod machine;
mod peers;
pub(crate) mod statistics;
mod throughput;
mod uncontended;
mod wait;

use std::fmt;
use std::time::Duration;

use nearlock_core::settings::Setting;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

use crate::torture::Waiting;
pub use candidate::Candidate;
use candidate::Run;
pub(crate) use machine::pin;
pub use machine::{Calibration, Machine};
pub use nearlock_workload::will_it_scale::Calls;
pub use peers::{PEERS, Peer};
use statistics::Waits;
pub(crate) use statistics::{Quartiles, median};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Many threads: sections per time, shares, waits, CPU time.
    Throughput,
    /// One thread that has the lock for itself: lock and unlock.
    Uncontended,
    /// Two threads on two CPUs: from the release to the waiter's acquisition.
    Handover,
    /// Many threads in loops of system calls: as throughput.
    Calls(Calls),
}

impl Mode {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Throughput => "throughput",
            Mode::Uncontended => "uncontended",
            Mode::Handover => "handover",
            Mode::Calls(calls) => calls.name(),
        }
    }
}

/// Most threads; as many as the torture test's writers, for the same reason.
pub const THREADS_MAX: usize = crate::torture::THREADS_MAX;

/// How long the holder works once the other waits, unless something else is asked for, in ns. Longer than a
/// waiter needs to be in the queue, and shorter than it pauses before it yields.
pub const HANDOVER_SECTION_NS: u64 = 500;

/// One situation in which all locks are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Number of threads, 1 to [`THREADS_MAX`]. In the other modes that of the mode.
    pub threads: usize,
    /// Work in a section, in ns.
    pub section_ns: u64,
    /// Work between sections, or of a call outside of its sections, in ns.
    pub think_ns: u64,
    /// Of 100 sections, how many only read; `None` if there is no talk of readers. Locks without readers have none.
    /// In [`Mode::Uncontended`] 0 or 100, in [`Mode::Handover`] and [`Mode::Calls`] `None`.
    pub read_percent: Option<u64>,
}

impl Point {
    /// The one situation of [`Mode::Uncontended`].
    pub const ALONE: Point = Point { threads: 1, section_ns: 0, think_ns: 0, read_percent: None };

    /// A situation of [`Mode::Handover`].
    pub const fn handover(section_ns: u64) -> Self {
        Point { threads: handover::THREADS, section_ns, think_ns: 0, read_percent: None }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = if self.threads == 1 { "thread" } else { "threads" };
        write!(f, "{} {threads}, section {} ns, think {} ns", self.threads, self.section_ns, self.think_ns)?;
        self.read_percent.map_or(Ok(()), |percent| write!(f, ", {percent} % of the sections read"))
    }
}

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What.
    pub mode: Mode,
    /// Of which locks.
    pub locks: Vec<Candidate>,
    /// Those of them that all are compared with, with one after the other.
    pub baselines: Vec<Candidate>,
    /// In which situations.
    pub points: Vec<Point>,
    /// How often, 1 or more.
    pub rounds: usize,
    /// For how long a run counts. It takes about 1.6 times as long in [`Mode::Throughput`] and [`Mode::Calls`].
    pub window: Duration,
    /// How waiting threads pass the time.
    pub waiting: Waiting,
    /// Values of the locks' settings, indexed by [`Setting`].
    pub settings: [u64; Setting::COUNT],
}

impl Plan {
    /// How many runs of a lock it takes.
    pub fn runs(&self) -> usize {
        self.points.len() * self.rounds * self.locks.len()
    }

    /// Whether this machine can do it at all.
    ///
    /// # Errors
    ///
    /// If it has too few CPUs for the mode.
    pub fn suits(&self, machine: &Machine) -> Result<(), BenchError> {
        match self.mode {
            Mode::Handover => two_cpus(machine).map(drop),
            Mode::Throughput | Mode::Uncontended | Mode::Calls(_) => Ok(()),
        }
    }
}

/// What one run of one lock came to. What a mode does not measure is `None`.
#[derive(Clone, Debug, Default)]
struct Sample {
    /// Infinite if there was no operation; `None` if it is too little to be measured.
    ns_per_op: Option<f64>,
    jain: Option<f64>,
    cpu_ns_per_op: Option<f64>,
    waits: Option<Waits>,
}

/// Something that a working lock does not do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Failure {
    /// The counter that every section increments is too small.
    #[error("exclusion violated: {lost} of {total} increments under the lock were lost")]
    LostUpdates {
        /// How many increments.
        lost: u64,
        /// How many there were.
        total: u64,
    },
    /// A reader saw what a writer does.
    #[error("exclusion violated: {times} readers saw the counter change while they held the lock")]
    TornReads {
        /// How often.
        times: u64,
    },
    /// Something that the lock protects was not as its holder had left it.
    #[error("exclusion violated: {times} times somebody else had changed what the lock protects")]
    Faults {
        /// How often.
        times: u64,
    },
    /// The lock was acquired while another thread had it.
    #[error("exclusion violated: {times} times the lock was acquired before it was released")]
    Overlaps {
        /// How often.
        times: u64,
    },
    /// Nobody gets the lock.
    #[error("hang: no acquisition for {idle:.1?}, and {waiting} threads have not ended")]
    Hang {
        /// For how long.
        idle: Duration,
        /// How many threads are left.
        waiting: usize,
    },
}

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// No more threads.
    #[error("cannot start {threads} threads: {source}; try fewer with --threads")]
    Spawn {
        /// How many were asked for.
        threads: usize,
        /// Why.
        source: std::io::Error,
    },
    /// No second CPU.
    #[error("a hand-over is from one CPU to another, and this process may use one only: give it two")]
    OneCpu,
    /// A thread cannot be kept on its CPU.
    #[error("cannot keep a thread on each of the CPUs {cpus:?}: {source}")]
    Pin {
        /// The two CPUs.
        cpus: [u32; handover::THREADS],
        /// Why.
        source: std::io::Error,
    },
    /// A setting has a value that it cannot have.
    #[error(transparent)]
    Setting(#[from] nearlock_os::OutOfRange),
}

/// Figures of one lock in one situation: medians over the rounds. What was not measured is `None`.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// [`Mode::name`].
    pub mode: &'static str,
    /// The lock.
    pub lock: &'static str,
    /// The lock that it is compared with.
    pub baseline: &'static str,
    /// See [`Point`].
    pub threads: usize,
    /// See [`Point`].
    pub section_ns: u64,
    /// See [`Point`].
    pub think_ns: u64,
    /// See [`Point`].
    pub read_percent: Option<u64>,
    /// Wall time per operation (a section, a lock and unlock, a hand-over, as the suite counts its calls), all threads
    /// together, in ns.
    pub ns_per_op: Option<f64>,
    /// Operations per microsecond, all threads together.
    pub ops_per_us: Option<f64>,
    /// How many times as fast as the baseline.
    pub ratio: Option<f64>,
    /// Its lower quartile over the rounds.
    pub ratio_low_quartile: Option<f64>,
    /// Its upper quartile over the rounds.
    pub ratio_high_quartile: Option<f64>,
    /// Number of rounds.
    pub rounds: usize,
    /// Jain's index of the threads' shares: 1 is equal.
    pub jain: Option<f64>,
    /// Of 1000 waits of all rounds, 999 are no longer, in ns (to 1 %).
    pub wait_ns_p99_9: Option<u64>,
    /// The longest wait of all rounds, in ns.
    pub wait_ns_max: Option<u64>,
    /// CPU time of all threads per operation, in ns.
    pub cpu_ns_per_op: Option<f64>,
    /// Atomic read-modify-writes of a lock and unlock, counted by running the same source on a simulated machine, in
    /// [`Mode::Uncontended`]. Nothing counts those of peers.
    pub rmw_per_op: Option<f64>,
    /// Size of the lock itself.
    pub size_bytes: usize,
}

/// A lock that failed, in which situation.
#[derive(Clone, Debug)]
pub struct Failed {
    /// The lock.
    pub lock: &'static str,
    /// The situation.
    pub point: Point,
    /// What it did.
    pub failure: Failure,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Report {
    /// A row for each situation, baseline and lock, in this order, without locks that failed.
    pub rows: Vec<Row>,
    /// The locks that failed. After a hang nothing else is measured: the threads left behind disturb.
    pub failed: Vec<Failed>,
    /// The widest middle half of a baseline's speeds over the rounds of a situation. `None` if nothing was measured.
    pub spread: Option<Spread>,
}

/// How far a baseline's rounds are apart.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// Which baseline.
    pub baseline: &'static str,
    /// Width of the middle half, as a share of the median.
    pub share: f64,
}

/// Measures what is planned on this machine; `done` is called after each run of a lock. Sets the process' lock settings.
///
/// # Errors
///
/// If threads cannot be started or kept on their CPUs, or a setting is out of its limits.
pub fn run(
    plan: &Plan,
    machine: &Machine,
    calibration: &Calibration,
    mut done: impl FnMut(),
) -> Result<Report, BenchError> {
    for &setting in Setting::ALL {
        nearlock_os::set_setting(setting, plan.settings[setting as usize])?;
    }
    let mut report = Report { rows: Vec::new(), failed: Vec::new(), spread: None };
    let mut order = Order::new(plan.locks.len());
    for &point in &plan.points {
        // Of each lock; `None` once it has failed.
        let mut samples = vec![Some(Vec::with_capacity(plan.rounds)); plan.locks.len()];
        for _round in 0..plan.rounds {
            for &index in order.draw() {
                if let Some(of_lock) = &mut samples[index] {
                    let lock = plan.locks[index];
                    match lock.measure(Run { plan, machine, calibration, point })? {
                        Ok(sample) => of_lock.push(sample),
                        Err(failure) => {
                            let is_hang = matches!(failure, Failure::Hang { .. });
                            report.failed.push(Failed { lock: lock.name(), point, failure });
                            if is_hang {
                                return Ok(report);
                            }
                            samples[index] = None;
                        }
                    }
                }
                done();
            }
        }
        add(&mut report, plan, point, &samples);
    }
    Ok(report)
}

/// The rows of one situation: for each baseline, one of each lock without failure.
fn add(report: &mut Report, plan: &Plan, point: Point, samples: &[Option<Vec<Sample>>]) {
    let measured = || plan.locks.iter().copied().zip(samples.iter().map(Option::as_deref));
    for &baseline in &plan.baselines {
        let of_baseline = measured().find(|(lock, _)| lock.name() == baseline.name());
        let of_baseline = of_baseline.and_then(|(_, samples)| samples).unwrap_or(&[]);
        for (lock, samples) in measured() {
            if let Some(samples) = samples {
                report.rows.push(row(plan, point, (lock, samples), (baseline, of_baseline)));
            }
        }
        let speeds = of_baseline.iter().filter_map(|sample| Some(1.0 / sample.ns_per_op?));
        let share = Quartiles::of(speeds).and_then(|speeds| speeds.spread());
        if let Some(share) = share.filter(|&share| report.spread.is_none_or(|widest| widest.share < share)) {
            report.spread = Some(Spread { baseline: baseline.name(), share });
        }
    }
}

type Measured<'a> = (Candidate, &'a [Sample]);

fn row(plan: &Plan, point: Point, (lock, samples): Measured, (baseline, of_baseline): Measured) -> Row {
    let ratios = samples.iter().zip(of_baseline).filter_map(|(sample, of_baseline)| {
        let ratio = of_baseline.ns_per_op? / sample.ns_per_op?;
        ratio.is_finite().then_some(ratio)
    });
    let ratio = Quartiles::of(ratios);
    let ns_per_op = median(samples.iter().filter_map(|sample| sample.ns_per_op));
    let mut waits = Waits::default();
    samples.iter().filter_map(|sample| sample.waits.as_ref()).for_each(|each| waits.add(each));
    Row {
        mode: plan.mode.name(),
        lock: lock.name(),
        baseline: baseline.name(),
        threads: point.threads,
        section_ns: point.section_ns,
        think_ns: point.think_ns,
        read_percent: point.read_percent,
        ns_per_op: ns_per_op.filter(|ns| ns.is_finite()),
        ops_per_us: ns_per_op.filter(|_| plan.mode != Mode::Handover).map(|ns| 1e3 / ns),
        ratio: ratio.map(|ratio| ratio.median),
        ratio_low_quartile: ratio.map(|ratio| ratio.low),
        ratio_high_quartile: ratio.map(|ratio| ratio.high),
        rounds: plan.rounds,
        jain: median(samples.iter().filter_map(|sample| sample.jain)),
        wait_ns_p99_9: waits.quantile(0.999),
        wait_ns_max: waits.max(),
        cpu_ns_per_op: median(samples.iter().filter_map(|sample| sample.cpu_ns_per_op)),
        rmw_per_op: (plan.mode == Mode::Uncontended)
            .then(|| lock.rmw_per_pair(point, plan.settings))
            .flatten(),
        size_bytes: lock.size_bytes(),
    }
}

/// In which order the locks run in a round: each time another, and the same in each process.
pub(crate) struct Order {
    indices: Vec<usize>,
    rng: Xoshiro256PlusPlus,
}

impl Order {
    pub fn new(locks: usize) -> Self {
        Self { indices: (0..locks).collect(), rng: Xoshiro256PlusPlus::seed_from_u64(1) }
    }

    pub fn draw(&mut self) -> &[usize] {
        // Fisher and Yates.
        for last in (1..self.indices.len()).rev() {
            let other = self.rng.next_u64() % (last as u64 + 1);
            self.indices.swap(last, other as usize);
        }
        &self.indices
    }
}

/// The two CPUs of a hand-over.
fn two_cpus(machine: &Machine) -> Result<[u32; handover::THREADS], BenchError> {
    machine.allowed.first_chunk().copied().ok_or(BenchError::OneCpu)
}

#[cfg(test)]
mod tests;
