//! Cells measured natively.
//!
//! A cell is measured in many short bursts, of all cells in an order drawn anew for each round:
//! whatever slows the machine for a while slows all of them. In a burst the threads have CPUs of
//! their own and come before ordinary programs, if the system permits; they wait by pausing alone,
//! as in the simulator.
//!
//! A virtual machine's CPUs may be moved to other cores, nearer or farther than before. So two
//! threads pass a word to and fro before and after their burst, and the burst counts only if that
//! takes as long as the machine's description says: whatever the lock did meanwhile has no say in
//! it.

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

use super::{Cell, Effort, ValidateError};
use crate::bench::statistics::Quartiles;
use crate::bench::{Calibration, Failure, Order};
use crate::measure::threads::{Rank, on_cpus};
use crate::switched::switched;

type Platform = Os<Spin>;

/// How long a thread works between two looks at the clock, about, in ns: so long that a look, at
/// some 30 ns, is nothing, and much shorter than a burst.
const BETWEEN_LOOKS_NS: u64 = 16_000;
/// What a section takes besides its work, at least, in ns.
const SECTION_LEAST_NS: u64 = 8;
/// How long the threads sleep after a burst, as a share of its length: others, who have to wait
/// during a burst, run then.
const PAUSE_SHARE: f64 = 0.25;

/// Round trips of the word before it is timed, and timed.
const TRIPS: [u64; 2] = [30, 150];
/// By how much the time of a passage may differ from what the description says.
const PASSAGE_TOLERANCE: f64 = 0.25;
/// Rounds for each burst that is to count of each cell, at most.
const ROUNDS_PER_BURST_MAX: usize = 4;

/// One cell.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Sections per microsecond by all threads.
    pub ops_per_us: Quartiles,
    /// How many bursts count; if none does, the figures are of all.
    pub bursts: usize,
}

/// What one thread did in a burst.
#[derive(Clone, Copy, Debug)]
struct Share {
    /// All sections.
    total: u64,
    /// Those that count.
    sections: u64,
    /// In which time.
    elapsed_ns: u64,
    /// Whether it was taken off its CPU meanwhile; unknown counts as no.
    preempted: bool,
    /// How long the word took from one thread to the other before and after, in ns; `None` of one
    /// thread.
    passage_ns: Option<[f64; 2]>,
}

impl Share {
    /// Whether it says something about a machine on which a passage takes so long, if that is
    /// known.
    fn counts(&self, passage_ns: Option<f64>) -> bool {
        let near = |ns: f64| passage_ns.is_none_or(|right| (ns / right - 1.0).abs() <= PASSAGE_TOLERANCE);
        !self.preempted && self.passage_ns.is_none_or(|[before, after]| near(before) && near(after))
    }
}

/// Measures cells on these CPUs until so many bursts of each count. `passage_ns` is what a passage
/// of a word between the CPUs takes on the described machine, if that is known. `done` is called
/// after each burst of the first rounds.
pub fn measure(
    cells: &[Cell],
    cpus: &[u32],
    passage_ns: Option<f64>,
    calibration: &Calibration,
    effort: Effort,
    mut done: impl FnMut(),
) -> Result<Vec<Measured>, ValidateError> {
    let mut bursts: Vec<Vec<Vec<Share>>> = vec![Vec::new(); cells.len()];
    let mut order = Order::new(cells.len());
    let enough = |bursts: &Vec<Vec<Share>>| {
        bursts.iter().filter(|burst| counts(burst, passage_ns)).count() >= effort.bursts
    };
    for round in 0..effort.bursts * ROUNDS_PER_BURST_MAX {
        for &index in order.draw() {
            if round < effort.bursts {
                done();
            }
            if enough(&bursts[index]) {
                continue;
            }
            let cell = &cells[index];
            let cpus = &cpus[..cell.threads];
            let burst = Burst { cell, cpus, calibration, length: effort.burst, seed: round as u64 };
            bursts[index].push(switched(cell.lock, || cell.lock.visit::<Platform, _>(burst))?);
            std::thread::sleep(effort.burst.mul_f64(PAUSE_SHARE));
        }
    }
    Ok(bursts.iter().map(|bursts| summary(bursts, passage_ns)).collect())
}

fn counts(burst: &[Share], passage_ns: Option<f64>) -> bool {
    burst.iter().all(|share| share.counts(passage_ns))
}

/// Of the bursts that count; of all if none does.
fn summary(bursts: &[Vec<Share>], passage_ns: Option<f64>) -> Measured {
    let counted: Vec<f64> =
        bursts.iter().filter(|burst| counts(burst, passage_ns)).map(|burst| ops_per_us(burst)).collect();
    let bursts_that_count = counted.len();
    let figures =
        if counted.is_empty() { bursts.iter().map(|burst| ops_per_us(burst)).collect() } else { counted };
    let none = Quartiles { low: f64::NAN, median: f64::NAN, high: f64::NAN };
    Measured { ops_per_us: Quartiles::of(figures).unwrap_or(none), bursts: bursts_that_count }
}

/// The threads' own speeds added up: their windows are not exactly the same.
fn ops_per_us(burst: &[Share]) -> f64 {
    burst.iter().map(|share| share.sections as f64 * 1e3 / share.elapsed_ns.max(1) as f64).sum()
}

struct Burst<'a> {
    cell: &'a Cell,
    cpus: &'a [u32],
    calibration: &'a Calibration,
    length: Duration,
    seed: u64,
}

impl LockVisitor<Platform> for Burst<'_> {
    type Output = Result<Vec<Share>, ValidateError>;

    fn visit<L: RawTryLock>(self) -> Self::Output {
        let Self { cell, cpus, calibration, length, seed } = self;
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
        let shares = on_cpus(cpus, Rank::Foremost, &|thread| stage.work(thread))?;
        let (total, counter) = (shares.iter().map(|share| share.total).sum::<u64>(), stage.shared.counter());
        if total != counter {
            let failure = Failure::LostUpdates { lost: total.abs_diff(counter), total };
            return Err(ValidateError::Native { lock: cell.lock.name, failure });
        }
        Ok(shares)
    }
}

/// What the threads of a burst share.
struct Stage<L> {
    shared: SectionsState<Platform, L>,
    ready: OwnLine<AtomicUsize>,
    over: OwnLine<AtomicBool>,
    /// What passes to and fro.
    word: OwnLine<AtomicU64>,
    params: Params,
    threads: usize,
    length: Duration,
    seed: u64,
    /// Sections between two looks at the clock.
    stride: u64,
}

impl<L: RawLock> Stage<L> {
    fn work(&self, thread: usize) -> Share {
        let mut node = OwnLine(L::Node::default());
        let mut worker = Worker::new(&self.shared, &mut node.0, self.params, self.seed << 1 | thread as u64);
        let switches = involuntary_switches();
        // Relaxed: only when they begin matters.
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

    /// Half of a round trip of a word that two threads change in turn by compare-and-swap, as
    /// `measure` does it.
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
            // Relaxed: the word says everything.
            while self.word.0.compare_exchange(mine, mine + 1, Relaxed, Relaxed).is_err() {}
        }
        Some((Platform::now_ns() - began_ns) as f64 / (2 * timed) as f64)
    }
}

/// Counts a thread's sections, and ends the burst for all when its time is over.
struct Watch<'a> {
    over: &'a AtomicBool,
    stride: u64,
    sections: u64,
    /// The number of sections at which the clock is looked at next.
    look_at: u64,
    /// Number and moment from which on it counts: those of the first look, when all is warm, unless
    /// that is the last.
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

/// How often the calling thread was taken off its CPU, if the system tells.
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
        assert_eq!(summary(&[burst(1, None)], Some(28.0)).bursts, 1, "one thread is as far away as ever");
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
            other.join().expect("it passed on what it had")
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
