//! Native measurement of cells.
//!
//! A cell is measured in many short bursts. In each round the cells run in a new random order, so
//! that a temporary slowdown of the machine affects all of them. In a burst, the threads have their
//! own CPUs and priority over ordinary programs, if the system permits. They only spin, as in the
//! simulator.
//!
//! The CPUs of a virtual machine may move to other cores, which are nearer to each other or farther
//! apart. So two threads pass a word to and fro before and after their burst. The burst counts only
//! if each pass takes as long as the machine's description says. This check does not depend on the
//! lock's behaviour.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::time::Duration;

use nearlock_collection::subjects::LockVisitor;
use nearlock_core::platform::Clock;
use nearlock_core::raw::{RawLock, RawTryLock};
use nearlock_os::{Os, Spin};
use nearlock_workload::Observer;
use nearlock_workload::locktorture::OwnLine;
use nearlock_workload::sections::{Params, SectionsState, Worker};

use super::{Cell, Effort, Step, ValidateError};
use crate::bench::statistics::Quartiles;
use crate::bench::{Calibration, Failure, Order};
use crate::measure::threads::{Priority, Rank, on_cpus};
use crate::switched::switched;

type Platform = Os<Spin>;

/// Approximate time between two clock readings of a thread, in ns. It is so long that the cost of a
/// reading, about 30 ns, is negligible, and much shorter than a burst.
const BETWEEN_LOOKS_NS: u64 = 16_000;
/// Least time of a section in addition to its work, in ns.
const SECTION_LEAST_NS: u64 = 8;
/// Time for which the threads sleep after a burst, as a share of its length. Other threads, which
/// have to wait during a burst, run then.
const PAUSE_SHARE: f64 = 0.25;

/// Round trips of the word: first the untimed ones, then the timed ones.
const TRIPS: [u64; 2] = [30, 150];
/// Largest relative difference between the time of a pass and the description.
const PASSAGE_TOLERANCE: f64 = 0.25;
/// Largest number of rounds for each required burst of each cell.
const ROUNDS_PER_BURST_MAX: usize = 4;

/// The measurement of one cell.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Sections per microsecond by all threads.
    pub ops_per_us: Quartiles,
    /// Number of bursts that count; if it is 0, the figures are of all bursts.
    pub bursts: usize,
}

/// One thread's part of a burst.
#[derive(Clone, Copy, Debug)]
struct Share {
    /// Number of sections.
    total: u64,
    /// Number of sections that count.
    sections: u64,
    /// Time of these sections.
    elapsed_ns: u64,
    /// Whether the thread was preempted meanwhile; `false` if that is unknown.
    preempted: bool,
    /// Time of a pass of the word from one thread to the other, before and after the burst, in ns;
    /// `None` with only one thread.
    passage_ns: Option<[f64; 2]>,
}

impl Share {
    /// Whether it counts for a machine with this time of a pass, if that is known.
    fn counts(&self, passage_ns: Option<f64>) -> bool {
        let near = |ns: f64| passage_ns.is_none_or(|right| (ns / right - 1.0).abs() <= PASSAGE_TOLERANCE);
        !self.preempted && self.passage_ns.is_none_or(|[before, after]| near(before) && near(after))
    }
}

/// Measures cells on these CPUs until enough bursts of each cell count. `passage_ns` is the time of
/// a word's pass between the CPUs of the described machine, if it is known. Calls `done` before
/// each burst. If it breaks, no cell is finished: [`ValidateError::Interrupted`].
pub fn measure(
    cells: &[Cell],
    cpus: &[u32],
    passage_ns: Option<f64>,
    calibration: &Calibration,
    effort: Effort,
    priority: Priority,
    mut done: impl FnMut(Step) -> ControlFlow<()>,
) -> Result<Vec<Measured>, ValidateError> {
    let mut bursts: Vec<Vec<Vec<Share>>> = vec![Vec::new(); cells.len()];
    let mut order = Order::new(cells.len());
    let enough = |bursts: &Vec<Vec<Share>>| {
        bursts.iter().filter(|burst| counts(burst, passage_ns)).count() >= effort.bursts
    };
    for round in 0..effort.bursts * ROUNDS_PER_BURST_MAX {
        for &index in order.draw() {
            let step = if round < effort.bursts { Step::Planned } else { Step::Repeated };
            if done(step).is_break() {
                return Err(ValidateError::Interrupted);
            }
            if enough(&bursts[index]) {
                continue;
            }
            let cell = &cells[index];
            let cpus = &cpus[..cell.threads];
            let burst = Burst { cell, cpus, calibration, length: effort.burst, seed: round as u64, priority };
            bursts[index].push(switched(cell.lock, || cell.lock.visit::<Platform, _>(burst))?);
            std::thread::sleep(effort.burst.mul_f64(PAUSE_SHARE));
        }
    }
    Ok(bursts.iter().map(|bursts| summary(bursts, passage_ns)).collect())
}

fn counts(burst: &[Share], passage_ns: Option<f64>) -> bool {
    burst.iter().all(|share| share.counts(passage_ns))
}

/// Figures of the bursts that count, or of all bursts if none counts.
fn summary(bursts: &[Vec<Share>], passage_ns: Option<f64>) -> Measured {
    let counted: Vec<f64> =
        bursts.iter().filter(|burst| counts(burst, passage_ns)).map(|burst| ops_per_us(burst)).collect();
    let bursts_that_count = counted.len();
    let figures =
        if counted.is_empty() { bursts.iter().map(|burst| ops_per_us(burst)).collect() } else { counted };
    let none = Quartiles { low: f64::NAN, median: f64::NAN, high: f64::NAN };
    Measured { ops_per_us: Quartiles::of(figures).unwrap_or(none), bursts: bursts_that_count }
}

/// Sum of the threads' speeds, since their windows are not exactly the same.
fn ops_per_us(burst: &[Share]) -> f64 {
    burst.iter().map(|share| share.sections as f64 * 1e3 / share.elapsed_ns.max(1) as f64).sum()
}

struct Burst<'a> {
    cell: &'a Cell,
    cpus: &'a [u32],
    calibration: &'a Calibration,
    length: Duration,
    seed: u64,
    priority: Priority,
}

impl LockVisitor<Platform> for Burst<'_> {
    type Output = Result<Vec<Share>, ValidateError>;

    fn visit<L: RawTryLock>(self) -> Self::Output {
        let Self { cell, cpus, calibration, length, seed, priority } = self;
        let work_length = |ns| calibration.work_length(ns);
        let stage = Stage::<L> {
            shared: SectionsState::default(),
            ready: OwnLine(AtomicUsize::new(0)),
            over: OwnLine(AtomicBool::new(false)),
            word: OwnLine(AtomicU64::new(0)),
            params: Params {
                section: work_length(cell.section_ns),
                think: work_length(cell.think_ns),
                ..Params::default()
            },
            threads: cpus.len(),
            length,
            seed,
            stride: (BETWEEN_LOOKS_NS / (cell.section_ns + cell.think_ns + SECTION_LEAST_NS)).max(1),
        };
        let shares = on_cpus(cpus, Rank::Foremost, priority, &|thread| stage.work(thread))?;
        let (total, counter) = (shares.iter().map(|share| share.total).sum::<u64>(), stage.shared.counter());
        if total != counter {
            let failure = Failure::LostUpdates { lost: total.abs_diff(counter), total };
            return Err(ValidateError::Native { lock: cell.lock.name, failure });
        }
        Ok(shares)
    }
}

/// State that the threads of a burst share.
struct Stage<L> {
    shared: SectionsState<Platform, L>,
    ready: OwnLine<AtomicUsize>,
    over: OwnLine<AtomicBool>,
    /// The word that the threads pass to and fro.
    word: OwnLine<AtomicU64>,
    params: Params,
    threads: usize,
    length: Duration,
    seed: u64,
    /// Sections between two clock readings.
    stride: u64,
}

impl<L: RawLock> Stage<L> {
    fn work(&self, thread: usize) -> Share {
        let mut node = OwnLine(L::Node::default());
        let mut worker = Worker::new(&self.shared, &mut node.0, self.params, self.seed << 1 | thread as u64);
        let switches = involuntary_switches();
        // Relaxed: it only determines when they begin.
        self.ready.0.fetch_add(1, Relaxed);
        while self.ready.0.load(Relaxed) < self.threads {
            std::hint::spin_loop();
        }
        let before_ns = self.passage_ns(thread as u64, 0);
        let now_ns = Platform::now_ns();
        let mut watch = Watch {
            over: &self.over.0,
            stride: self.stride,
            sections: 0,
            look_at: self.stride,
            began: (0, now_ns),
            now_ns,
            end_ns: now_ns + self.length.as_nanos() as u64,
            looked: false,
        };
        worker.run(&mut watch);
        let (sections, began_ns) = watch.began;
        let elapsed_ns = Platform::now_ns() - began_ns;
        let after_ns = self.passage_ns(thread as u64, 1);
        Share {
            total: watch.sections,
            sections: watch.sections - sections,
            elapsed_ns,
            preempted: involuntary_switches() > switches,
            passage_ns: before_ns.zip(after_ns).map(<[f64; 2]>::from),
        }
    }

    /// Half of the time of a word's round trip. Two threads alternately change the word by
    /// compare-and-swap, as in `nearlock measure`.
    fn passage_ns(&self, thread: u64, time: u64) -> Option<f64> {
        if self.threads != 2 {
            return None;
        }
        let [warm_up, timed] = TRIPS;
        let first = 2 * (warm_up + timed) * time + thread;
        let mut began_ns = 0;
        for trip in 0..warm_up + timed {
            if trip == warm_up {
                began_ns = Platform::now_ns();
            }
            let mine = first + 2 * trip;
            // Relaxed: no other memory depends on the word.
            while self.word.0.compare_exchange(mine, mine + 1, Relaxed, Relaxed).is_err() {}
        }
        Some((Platform::now_ns() - began_ns) as f64 / (2 * timed) as f64)
    }
}

/// Counts a thread's sections, and ends the burst for all threads after its duration.
struct Watch<'a> {
    over: &'a AtomicBool,
    stride: u64,
    sections: u64,
    /// Number of sections at the next clock reading.
    look_at: u64,
    /// Number of sections and time at which counting begins. These are the values of the first
    /// clock reading, after the warm-up, unless that reading ends the burst.
    began: (u64, u64),
    now_ns: u64,
    end_ns: u64,
    looked: bool,
}

impl Watch<'_> {
    #[cold]
    fn look(&mut self) {
        self.now_ns = Platform::now_ns();
        self.look_at += self.stride;
        if self.now_ns >= self.end_ns {
            self.over.store(true, Relaxed);
        } else if !std::mem::replace(&mut self.looked, true) {
            self.began = (self.sections, self.now_ns);
        }
    }
}

impl Observer for Watch<'_> {
    #[inline(always)]
    fn goes_on(&mut self) -> bool {
        self.sections += 1;
        if self.sections == self.look_at {
            self.look();
        }
        !self.over.load(Relaxed)
    }
}

/// Number of times that the calling thread was preempted, if the system reports it.
fn involuntary_switches() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/thread-self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(sections: u64, elapsed_ns: u64, preempted: bool) -> Share {
        Share { total: sections, sections, elapsed_ns, preempted, passage_ns: None }
    }

    #[test]
    fn the_threads_speeds_are_added() {
        assert_eq!(ops_per_us(&[share(100, 1000, false), share(50, 500, true)]), 200.0);
    }

    #[test]
    fn bursts_with_a_switch_count_only_if_there_are_no_others() {
        let calm = |sections| vec![share(sections, 1000, false), share(0, 1000, false)];
        let torn = vec![share(0, 1000, false), share(1, 1_000_000, true)];
        let measured = summary(&[calm(10), torn.clone(), calm(20), calm(30)], None);
        assert_eq!((measured.bursts, measured.ops_per_us.median), (3, 20.0));
        let measured = summary(&[torn.clone(), torn], None);
        assert_eq!((measured.bursts, measured.ops_per_us.median), (0, 0.001));
    }

    #[test]
    fn bursts_on_cores_that_are_not_the_described_ones_do_not_count() {
        let burst = |sections, passage_ns| vec![Share { passage_ns, ..share(sections, 1000, false) }];
        let bursts = [
            burst(1, Some([28.0, 30.0])),
            burst(5, Some([105.0, 104.0])),
            burst(5, Some([28.0, 104.0])),
            burst(3, Some([34.0, 23.0])),
        ];
        let measured = summary(&bursts, Some(28.0));
        assert_eq!((measured.bursts, measured.ops_per_us.median), (2, 2.0));
        assert_eq!(summary(&bursts, None).bursts, 4, "a description without such a figure lets all count");
        assert_eq!(summary(&[burst(1, None)], Some(28.0)).bursts, 1, "one thread needs no distance");
        assert_eq!(summary(&bursts[1..3], Some(28.0)).bursts, 0);
    }

    #[test]
    fn a_word_passes_between_two_threads() {
        let stage = Stage::<nearlock_collection::classic::mcs::McsLock<Platform>> {
            shared: SectionsState::default(),
            ready: OwnLine::default(),
            over: OwnLine::default(),
            word: OwnLine::default(),
            params: Params::default(),
            threads: 2,
            length: Duration::ZERO,
            seed: 0,
            stride: 1,
        };
        let both = |thread| [0, 1].map(|time| stage.passage_ns(thread, time));
        let other = std::thread::scope(|scope| {
            let other = scope.spawn(|| both(1));
            assert!(both(0).iter().all(|ns| ns.is_some_and(|ns| ns > 0.0)));
            other.join().expect("no panic")
        });
        assert!(other.iter().all(Option::is_some));
        assert_eq!(stage.word.0.load(Relaxed), 4 * TRIPS.iter().sum::<u64>());
        assert_eq!(Stage { threads: 1, ..stage }.passage_ns(0, 0), None);
    }

    #[test]
    fn a_watch_counts_from_its_first_look_and_ends_the_burst_for_all() {
        let over = AtomicBool::new(false);
        let began = (0, Platform::now_ns());
        let mut watch = Watch {
            over: &over,
            stride: 3,
            sections: 0,
            look_at: 3,
            began,
            now_ns: began.1,
            end_ns: u64::MAX,
            looked: false,
        };
        assert!((0..8).all(|_| watch.goes_on()));
        assert_eq!((watch.sections, watch.began.0), (8, 3));
        assert!(watch.began.1 >= began.1 && watch.now_ns >= watch.began.1);
        watch.end_ns = 0;
        assert!(!watch.goes_on() && over.load(Relaxed));
        watch = Watch { looked: false, sections: 11, look_at: 12, began, ..watch };
        watch.goes_on();
        assert_eq!(watch.began, began, "a burst of one look counts from its beginning");
    }
}
