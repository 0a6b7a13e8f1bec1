//! The figures of a gate: which figure of a run it is, and what it is compared with.

use super::super::candidate::Candidate;
use super::super::mode::{Mode, Point};
use super::super::peers::Waiters;
use super::super::plan::Cell;
use super::super::sample::Sample;
use super::super::statistics::median;

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// Operations per time; more is better. All others but Jain's index are better if they are
    /// less.
    Throughput,
    /// Time of an operation.
    Time,
    /// CPU time of an operation.
    Cpu,
    /// 99.9th percentile of the waits.
    WaitP99_9,
    /// The longest wait.
    WaitMax,
    /// Jain's index of the shares; more is better.
    Jain,
    /// Atomic read-modify-writes of an operation.
    Rmw,
    /// Membarrier calls per second, by our own fences.
    Membarriers,
}

impl Measure {
    pub fn name(self) -> &'static str {
        match self {
            Measure::Throughput => "throughput",
            Measure::Time => "time",
            Measure::Cpu => "CPU time",
            Measure::WaitP99_9 => "p99.9 wait",
            Measure::WaitMax => "longest wait",
            Measure::Jain => "Jain's index",
            Measure::Rmw => "rmw/op",
            Measure::Membarriers => "membarriers/s",
        }
    }

    pub fn more_is_better(self) -> bool {
        matches!(self, Measure::Throughput | Measure::Jain)
    }

    /// The figure of a run, in ns if it is a time.
    fn of(self, sample: &Sample) -> Option<f64> {
        let wait = |ns: Option<u64>| ns.map(|ns| ns as f64);
        match self {
            Measure::Throughput => sample.ns_per_op.map(|ns| 1.0 / ns),
            Measure::Time => sample.ns_per_op,
            Measure::Cpu => sample.cpu_ns_per_op,
            Measure::WaitP99_9 => wait(sample.waits.as_ref()?.quantile(0.999)),
            Measure::WaitMax => wait(sample.waits.as_ref()?.max()),
            Measure::Jain => sample.jain,
            Measure::Rmw => sample.rmw_per_op,
            Measure::Membarriers => sample.membarriers_per_s,
        }
    }
}

/// What a figure is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Against {
    /// Nothing: it is the figure itself.
    Nothing,
    /// It is the ratio to the figure of this lock.
    RatioTo(&'static str),
    /// It is the difference from the figure of this lock.
    DifferenceFrom(&'static str),
    /// It is the ratio to the least figure of the measured peers whose waiters sleep. The peer with
    /// the least median over the rounds is chosen, so that it is the same in all rounds.
    RatioToLeast,
}

/// The figures of a lock in a situation.
#[derive(Clone, Debug)]
pub(super) struct Situation {
    pub mode: Mode,
    pub point: Point,
    /// The lock that it is compared with.
    pub baseline: Option<&'static str>,
    /// A figure for each round in which both locks have one.
    pub figures: Vec<f64>,
}

impl Situation {
    /// The figures of `lock`; `None` if it or the other lock is not measured in this situation, or
    /// has failed.
    pub fn of(
        lock: &str,
        (measure, against): (Measure, Against),
        cell: &Cell,
        samples: &[Option<Vec<Sample>>],
    ) -> Option<Self> {
        let of = |name: &str| {
            let index = cell.locks.iter().position(|lock| lock.name() == name)?;
            samples[index].as_deref()
        };
        let own = of(lock)?;
        let figure = |sample| measure.of(sample);
        let compared = |baseline, with: fn(f64, f64) -> f64| -> Option<Vec<f64>> {
            let rounds = own.iter().zip(of(baseline)?);
            Some(rounds.filter_map(|(own, other)| Some(with(figure(own)?, figure(other)?))).collect())
        };
        let (baseline, figures): (_, Vec<f64>) = match against {
            Against::Nothing => (None, own.iter().filter_map(figure).collect()),
            Against::RatioTo(baseline) => (Some(baseline), compared(baseline, |own, other| own / other)?),
            Against::DifferenceFrom(baseline) => {
                (Some(baseline), compared(baseline, |own, other| own - other)?)
            }
            Against::RatioToLeast => {
                let baseline = least(measure, cell, samples)?;
                (Some(baseline), compared(baseline, |own, other| own / other)?)
            }
        };
        let figures = figures.into_iter().filter(|figure| figure.is_finite()).collect();
        Some(Self { mode: cell.mode, point: cell.point, baseline, figures })
    }
}

/// The peer with the least median, of those whose waiters sleep.
fn least(measure: Measure, cell: &Cell, samples: &[Option<Vec<Sample>>]) -> Option<&'static str> {
    let of = |(lock, samples): (&Candidate, &Option<Vec<Sample>>)| match lock {
        Candidate::Peer(peer) if peer.waiters == Waiters::Leave => {
            Some((peer.name, median(samples.as_ref()?.iter().filter_map(|sample| measure.of(sample)))?))
        }
        _ => None,
    };
    let all = cell.locks.iter().zip(samples).filter_map(of);
    all.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name)
}
