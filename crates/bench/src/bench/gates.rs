//! Gates: what `near-mutex` must reach in comparison with other locks, and what is aimed at.
//!
//! A gate compares figures of the same round. So it is computed from the samples, and not from the
//! medians of the rows.
//!
//! | file | contents |
//! |---|---|
//! | this file | figures of a gate, and its verdict |
//! | `table.rs` | the gates |

mod table;

use std::time::Duration;

use serde::Serialize;

use super::mode::{Mode, Point};
use super::plan::Cell;
use super::sample::Sample;
use super::statistics::Quartiles;
use table::GATES;

/// The lock that the gates are for.
const LOCK: &str = "near-mutex";
/// Fewer rounds have no meaningful quartiles.
const ROUNDS_LEAST: usize = 7;

/// The least window of a situation with a gate of its own. Of 64 threads on two CPUs, each has had
/// its time slice of 3 ms after 0.1 s. In a shorter window some have not run, and the figure
/// depends on which. The middle half of the ratios of 32 threads is 2 to 4 % wide with 50 ms. With
/// 250 ms it is about 1 % wide. This command prints the ratios (AMD EPYC, family 25
/// model 17; once with 50 and once with 250):
///
/// ```text
/// nearlock bench --mode oversubscribed --threads 32 \
///     --section-ns 100 --think-ns 500 --duration-ms 50
/// ```
pub(super) const WINDOW: Duration = Duration::from_millis(250);

/// Whether a situation has a gate of its own.
pub(super) fn has_own(mode: Mode, point: Point) -> bool {
    GATES.iter().any(|spec| spec.fold == Fold::One && (spec.is_in)(mode, point))
}

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    /// Operations per time; more is better. All others are better if they are less.
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
}

impl Measure {
    fn name(self) -> &'static str {
        match self {
            Measure::Throughput => "throughput",
            Measure::Time => "time",
            Measure::Cpu => "CPU time",
            Measure::WaitP99_9 => "p99.9 wait",
            Measure::WaitMax => "longest wait",
            Measure::Jain => "Jain's index",
        }
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
        }
    }
}

/// How the figures of several situations become one, in each round.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fold {
    /// There is one situation.
    One,
    /// The geometric mean of at least this many situations.
    Mean(usize),
    /// The share of situations whose figure is at most `within`, of at least `of` situations.
    Share { within: f64, of: usize },
}

impl Fold {
    /// The least number of situations.
    fn least(self) -> usize {
        match self {
            Fold::One => 1,
            Fold::Mean(least) | Fold::Share { of: least, .. } => least,
        }
    }

    fn of(self, figures: &[f64]) -> f64 {
        let count = figures.len() as f64;
        match self {
            Fold::One => figures[0],
            Fold::Mean(_) => (figures.iter().map(|figure| figure.ln()).sum::<f64>() / count).exp(),
            Fold::Share { within, .. } => {
                figures.iter().filter(|figure| **figure <= within).count() as f64 / count
            }
        }
    }
}

/// A row of the table.
struct Spec {
    name: &'static str,
    /// The situations.
    is_in: fn(Mode, Point) -> bool,
    /// The figure is a ratio to this lock's, or without it the figure itself.
    baseline: Option<&'static str>,
    measure: Measure,
    fold: Fold,
    /// The value that must be reached.
    gate: Option<f64>,
    /// The value that is aimed at.
    target: Option<f64>,
}

impl Spec {
    fn more_is_better(&self) -> bool {
        matches!(self.fold, Fold::Share { .. }) || matches!(self.measure, Measure::Throughput | Measure::Jain)
    }

    /// The figures of a situation in the rounds in which both locks have one; `None` if a lock is
    /// not measured in it, or has failed.
    fn figures(&self, cell: &Cell, samples: &[Option<Vec<Sample>>]) -> Option<Vec<f64>> {
        let of = |name: &str| {
            let index = cell.locks.iter().position(|lock| lock.name() == name)?;
            samples[index].as_deref()
        };
        let own = of(LOCK)?;
        let figure = |sample| self.measure.of(sample);
        let figures: Vec<f64> = match self.baseline {
            None => own.iter().filter_map(figure).collect(),
            Some(baseline) => {
                let rounds = own.iter().zip(of(baseline)?);
                rounds.filter_map(|(own, other)| Some(figure(own)? / figure(other)?)).collect()
            }
        };
        Some(figures.into_iter().filter(|figure| figure.is_finite()).collect())
    }

    /// The result over these situations; `None` if there are too few.
    fn result(&self, situations: &[Vec<f64>]) -> Option<Gate> {
        if situations.len() < self.fold.least() {
            return None;
        }
        let rounds = situations.iter().map(Vec::len).min()?;
        let of_round = |round: usize| -> Vec<f64> { situations.iter().map(|of| of[round]).collect() };
        let quartiles = Quartiles::of((0..rounds).map(|round| self.fold.of(&of_round(round))))?;
        let verdict = |bound: f64| match rounds < ROUNDS_LEAST {
            true => Verdict::TooFewRounds,
            false => self.verdict(quartiles, bound),
        };
        Some(Gate {
            name: self.name,
            lock: LOCK,
            baseline: self.baseline,
            measure: match self.fold {
                Fold::Share { .. } => "share",
                _ => self.measure.name(),
            },
            situations: situations.len(),
            rounds,
            value: quartiles.median,
            low_quartile: quartiles.low,
            high_quartile: quartiles.high,
            gate: self.gate,
            verdict: self.gate.map(verdict),
            target: self.target,
            target_verdict: self.target.map(verdict),
            target_distance: self.target.map(|target| self.distance(quartiles.median, target)),
        })
    }

    fn verdict(&self, Quartiles { low, high, .. }: Quartiles, bound: f64) -> Verdict {
        let meets = |figure: f64| if self.more_is_better() { figure >= bound } else { figure <= bound };
        match (meets(low), meets(high)) {
            (true, true) => Verdict::Holds,
            (false, false) => Verdict::Fails,
            _ => Verdict::Undecided,
        }
    }

    /// How far the figure is from the target, as a share of the target; 0 if it meets the target.
    fn distance(&self, figure: f64, target: f64) -> f64 {
        let misses = if self.more_is_better() { target - figure } else { figure - target };
        misses.max(0.0) / target
    }
}

/// Whether a bound is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Both quartiles meet it.
    Holds,
    /// One quartile meets it.
    Undecided,
    /// No quartile meets it.
    Fails,
    /// There are fewer than seven rounds.
    TooFewRounds,
}

impl Verdict {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Undecided => "undecided",
            Verdict::Fails => "FAILS",
            Verdict::TooFewRounds => "few rounds",
        }
    }
}

/// The result of a gate.
#[derive(Clone, Debug, Serialize)]
pub struct Gate {
    /// Its name.
    pub name: &'static str,
    /// The lock that it is for.
    pub lock: &'static str,
    /// The lock that it is compared with; `None` if the figure is no ratio.
    pub baseline: Option<&'static str>,
    /// The figure that is compared.
    pub measure: &'static str,
    /// Number of situations.
    pub situations: usize,
    /// Number of rounds.
    pub rounds: usize,
    /// The median over the rounds, in ns if it is a time and no ratio.
    pub value: f64,
    /// Lower quartile over the rounds.
    pub low_quartile: f64,
    /// Upper quartile over the rounds.
    pub high_quartile: f64,
    /// The value that must be reached.
    pub gate: Option<f64>,
    /// Whether it is reached.
    pub verdict: Option<Verdict>,
    /// The value that is aimed at.
    pub target: Option<f64>,
    /// Whether it is reached.
    pub target_verdict: Option<Verdict>,
    /// How far the median is from the target, as a share of the target; 0 if it is reached.
    pub target_distance: Option<f64>,
}

/// Collects the figures of all gates, one situation after the other.
pub(super) struct Collected {
    /// For each gate, the figures of each of its situations.
    figures: Vec<Vec<Vec<f64>>>,
}

impl Collected {
    pub fn new() -> Self {
        Self { figures: vec![Vec::new(); GATES.len()] }
    }

    /// Adds a situation, with the samples of each of its locks.
    pub fn add(&mut self, cell: &Cell, samples: &[Option<Vec<Sample>>]) {
        for (spec, figures) in GATES.iter().zip(&mut self.figures) {
            if (spec.is_in)(cell.mode, cell.point) {
                figures.extend(spec.figures(cell, samples));
            }
        }
    }

    /// The results of the gates whose situations were measured.
    pub fn results(&self) -> Vec<Gate> {
        GATES.iter().zip(&self.figures).filter_map(|(spec, figures)| spec.result(figures)).collect()
    }
}

#[cfg(test)]
mod tests;
