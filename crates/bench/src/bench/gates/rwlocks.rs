//! The gates of `near-rwlock`.

use super::super::mode::{Mode, Point, RwGrid};
use super::super::writer::{WRITER_SECTION_NS, WRITER_THINK_NS, WRITER_THREADS};
use super::Against::{DifferenceFrom, Nothing, RatioTo, RatioToLeast};
use super::Fold::{Each, Mean, One};
use super::Measure::{Jain, Membarriers, Rmw, Throughput, Time, WaitMax};
use super::table::{both, only};
use super::{Against, Fold, Measure, Spec};

/// The lock that these gates are for.
const LOCK: &str = "near-rwlock";
/// The baseline of most gates.
const PARKING_LOT: &str = "parking-lot-0.13-rwlock";
/// No lock at all. Sections that only read need none.
const NONE: &str = "lock-none";

/// Situations in which some sections write.
const MIXED: usize =
    RwGrid::MIXED.len() * RwGrid::THREADS.len() * RwGrid::SECTION_NS.len() * RwGrid::THINK_NS.len();
/// Situations in which all sections read.
const READERS: usize = RwGrid::READERS_SECTION_NS.len();
/// All situations with many threads, with that of a writer among readers.
const ALL: usize = MIXED + READERS + 1;

const fn gate(
    name: &'static str,
    is_in: fn(Mode, Point) -> bool,
    (measure, fold): (Measure, Fold),
    against: Against,
    (gate, target): (Option<f64>, Option<f64>),
) -> Spec {
    Spec { name, lock: LOCK, is_in, against, measure, fold, gate, target }
}

/// Whether it is the uncontended pair of a reader (100) or of a writer (0).
fn is_pair(mode: Mode, point: Point, read_percent: u64) -> bool {
    mode == Mode::Uncontended && point.read_percent == Some(read_percent)
}

/// Whether two threads with a core each only read.
fn is_reading(mode: Mode, point: Point) -> bool {
    let Point { threads, section_ns, think_ns, read_percent } = point;
    mode == Mode::Parallel
        && read_percent == Some(100)
        && RwGrid::READERS.contains(&threads)
        && RwGrid::READERS_SECTION_NS.contains(&section_ns)
        && RwGrid::READERS_THINK_NS.contains(&think_ns)
}

/// Whether threads read and write.
fn is_mixed(mode: Mode, point: Point) -> bool {
    let Point { threads, section_ns, think_ns, read_percent } = point;
    matches!(mode, Mode::Free | Mode::Oversubscribed)
        && read_percent.is_some_and(|percent| RwGrid::MIXED.contains(&percent))
        && RwGrid::THREADS.contains(&threads)
        && RwGrid::SECTION_NS.contains(&section_ns)
        && RwGrid::THINK_NS.contains(&think_ns)
}

/// Whether one thread writes among seven that read.
fn is_writer(mode: Mode, point: Point) -> bool {
    mode == Mode::Writer
        && [point.threads] == WRITER_THREADS
        && [point.section_ns] == WRITER_SECTION_NS
        && [point.think_ns] == WRITER_THINK_NS
}

/// The gates.
#[rustfmt::skip]
pub static GATES: [Spec; 10] = [
    gate("read, uncontended", |m, p| is_pair(m, p, 100), (Rmw, One), Nothing, only(0.0)),
    gate("read, uncontended", |m, p| is_pair(m, p, 100), (Time, One), RatioToLeast, both(0.15, 0.1)),
    gate("write, uncontended", |m, p| is_pair(m, p, 0), (Time, One), RatioTo(PARKING_LOT), only(0.8)),
    gate("2 readers, 0 ns", |m, p| is_reading(m, p) && p.section_ns == 0, (Throughput, One), RatioTo(NONE), only(0.95)),
    gate("2 readers, 100 ns", |m, p| is_reading(m, p) && p.section_ns == 100, (Throughput, One), RatioTo(NONE), only(0.95)),
    gate("mixed, mean", is_mixed, (Throughput, Mean(MIXED)), RatioTo(PARKING_LOT), both(1.5, 2.7)),
    gate("mixed, each", is_mixed, (Throughput, Each(MIXED)), RatioTo(PARKING_LOT), both(0.85, 0.95)),
    gate("mixed, each", is_mixed, (Jain, Each(MIXED)), DifferenceFrom(PARKING_LOT), only(-0.05)),
    gate("a writer's wait", is_writer, (WaitMax, One), RatioTo(PARKING_LOT), only(2.0)),
    gate("all, each", |m, p| is_mixed(m, p) || is_reading(m, p) || is_writer(m, p), (Membarriers, Each(ALL)), Nothing, only(10_000.0)),
];
