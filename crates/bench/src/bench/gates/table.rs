//! The gates of `near-mutex`.

use super::super::mode::{Mode, Point};
use super::Fold::{Mean, One, Share};
use super::Measure::{Cpu, Jain, Throughput, Time, WaitMax, WaitP99_9};
use super::{Against, Fold, Measure, Spec};

/// The lock that these gates are for.
pub(super) const LOCK: &str = "near-mutex";
/// The baseline of most gates.
const PARKING_LOT: &str = "parking-lot-0.13";
const PTHREAD: &str = "pthread-mutex";

/// A gate of one situation, or of several that are folded.
const fn gate(
    name: &'static str,
    is_in: fn(Mode, Point) -> bool,
    (measure, fold): (Measure, Fold),
    baseline: Option<&'static str>,
    (gate, target): (Option<f64>, Option<f64>),
) -> Spec {
    let against = match baseline {
        Some(baseline) => Against::RatioTo(baseline),
        None => Against::Nothing,
    };
    Spec { name, lock: LOCK, is_in, against, measure, fold, gate, target }
}

/// Whether it is this case of a mode.
fn is(mode: Mode, name: &str, case: &str) -> bool {
    mode.name() == name && mode.case() == Some(case)
}

/// Whether unpinned threads do these sections.
fn is_free(mode: Mode, point: Point, threads: usize, section_ns: u64, think_ns: u64) -> bool {
    let expected = Point { threads, section_ns, think_ns, read_percent: None };
    matches!(mode, Mode::Free | Mode::Oversubscribed) && point == expected
}

/// Whether threads contend in sections.
fn is_contended(mode: Mode, point: Point) -> bool {
    mode.has_sections() && point.threads >= 2 && point.read_percent.is_none()
}

/// Whether it is one of the situations whose longest waits are counted.
fn has_long_waits(mode: Mode, point: Point) -> bool {
    is_contended(mode, point) && mode != Mode::Parallel && point.threads >= 4
}

pub(super) const fn both(gate: f64, target: f64) -> (Option<f64>, Option<f64>) {
    (Some(gate), Some(target))
}

pub(super) const fn only(gate: f64) -> (Option<f64>, Option<f64>) {
    (Some(gate), None)
}

/// The 21 situations without think time, and the 42 with, are those of a machine with two CPUs.
/// Larger machines have more.
#[rustfmt::skip]
pub static GATES: [Spec; 27] = [
    gate("long sleep", |m, _| is(m, "long", "sleep"), (Throughput, One), Some(PARKING_LOT), both(0.9, 1.0)),
    gate("long sleep", |m, _| is(m, "long", "sleep"), (Cpu, One), Some(PARKING_LOT), both(1.2, 1.0)),
    gate("long sleep", |m, _| is(m, "long", "sleep"), (Jain, One), None, (None, Some(0.9))),
    gate("long yield", |m, _| is(m, "long", "yield"), (Throughput, One), Some(PTHREAD), both(0.95, 1.1)),
    gate("ping-pong, one CPU", |m, _| is(m, "condvar", "ping-pong-under-one-cpu"), (Throughput, One), Some(PARKING_LOT), both(0.95, 1.1)),
    gate("ping-pong, one CPU", |m, _| is(m, "condvar", "ping-pong-under-one-cpu"), (Cpu, One), Some(PARKING_LOT), only(1.1)),
    gate("queue-all 1/1", |m, _| is(m, "condvar", "queue-all-1-1-slots-1"), (Time, One), Some(PARKING_LOT), both(1.2, 0.9)),
    gate("queue-all 10/1", |m, _| is(m, "condvar", "queue-all-10-1-slots-1"), (Time, One), Some(PARKING_LOT), both(1.2, 0.9)),
    gate("queue-all 1/10", |m, _| is(m, "condvar", "queue-all-1-10-slots-1"), (Time, One), Some(PARKING_LOT), both(1.2, 0.9)),
    gate("queue-all 10/10", |m, _| is(m, "condvar", "queue-all-10-10-slots-1"), (Time, One), Some(PARKING_LOT), both(1.2, 0.9)),
    gate("channel 4/4, 4 slots", |m, _| is(m, "condvar", "channel-4-4-slots-4"), (Throughput, One), Some("std"), both(0.95, 1.1)),
    gate("beside, 16 threads", |m, p| m == Mode::Beside && p.threads == 16, (Throughput, One), Some(PTHREAD), both(0.9, 1.0)),
    gate("beside, 64 threads", |m, p| m == Mode::Beside && p.threads == 64, (Throughput, One), Some(PTHREAD), both(0.9, 1.0)),
    gate("uncontended, 4 lines", |m, _| is(m, "uncontended", "lines-4"), (Time, One), Some(PARKING_LOT), both(1.1, 0.9)),
    gate("uncontended", |m, p| m == Mode::Uncontended && p == Point::ALONE, (Time, One), Some("bare-compare-exchange"), only(1.05)),
    gate("many shared", |m, _| is(m, "many", "shared"), (Throughput, One), Some(PARKING_LOT), both(0.97, 1.05)),
    gate("many own", |m, _| is(m, "many", "own"), (Throughput, One), Some(PARKING_LOT), both(0.97, 1.05)),
    gate("32 threads, think 500", |m, p| is_free(m, p, 32, 100, 500), (Throughput, One), Some(PARKING_LOT), both(0.97, 1.0)),
    gate("64 threads, think 500", |m, p| is_free(m, p, 64, 100, 500), (Throughput, One), Some(PARKING_LOT), both(0.97, 1.0)),
    gate("away", |m, _| m == Mode::Away, (Cpu, One), Some(PARKING_LOT), both(1.2, 0.8)),
    gate("32 threads", |m, p| is_free(m, p, 32, 100, 0), (WaitP99_9, One), Some(PARKING_LOT), both(1.0, 0.25)),
    gate("2 pinned threads", |m, p| m == Mode::Parallel && p == Point { threads: 2, section_ns: 100, ..Point::ALONE }, (WaitP99_9, One), Some(PARKING_LOT), both(1.0, 0.5)),
    gate("longest waits, to 2x", has_long_waits, (WaitMax, Share { within: 2.0, of: 45 }), Some(PARKING_LOT), both(0.82, 1.0)),
    gate("start", |m, _| m == Mode::Start, (Time, One), None, both(20_000.0, 5_000.0)),
    gate("no think time", |m, p| is_contended(m, p) && p.think_ns == 0, (Throughput, Mean(21)), Some(PARKING_LOT), only(1.3)),
    gate("think time", |m, p| is_contended(m, p) && p.think_ns > 0, (Throughput, Mean(42)), Some(PARKING_LOT), only(0.99)),
    gate("all contended", is_contended, (Cpu, Mean(63)), Some(PARKING_LOT), only(0.8)),
];
