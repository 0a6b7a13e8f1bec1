//! Figures that are computed from the samples of runs.

use nearlock_lab::plot::Speed;
use serde::Serialize;

use super::Failure;
use super::candidate::Candidate;
use super::gates::Gate;
use super::mode::{Mode, Point};
use super::plan::{Cell, Plan};
use super::sample::Sample;
use super::statistics::{Quartiles, Waits, median};

/// Figures of one lock in one situation, as medians over the rounds, or means over several
/// situations, which `summary` names. Figures that were not measured are `None`.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// `None` for a situation. Otherwise the group of situations of the mode over which this row is
    /// a mean: those without think time, those with think time, or all.
    pub summary: Option<&'static str>,
    /// Number of situations.
    pub situations: usize,
    /// [`Mode::name`]; `contended` for all modes with sections together.
    pub mode: &'static str,
    /// The case, for a mode that has several.
    pub case: Option<&'static str>,
    /// The lock.
    pub lock: &'static str,
    /// The lock that it is compared with.
    pub baseline: &'static str,
    /// See [`Point`].
    pub threads: Option<usize>,
    /// See [`Point`].
    pub section_ns: Option<u64>,
    /// See [`Point`].
    pub think_ns: Option<u64>,
    /// See [`Point`]; `None` in a mean over several percentages.
    pub read_percent: Option<u64>,
    /// Wall time per operation, all threads together, in ns. An operation is a section, a lock and
    /// unlock, a hand-over, or a system call as the suite counts it.
    pub ns_per_op: Option<f64>,
    /// Operations per microsecond, all threads together.
    pub ops_per_us: Option<f64>,
    /// Speed as a multiple of the baseline's; for several situations the geometric mean.
    pub ratio: Option<f64>,
    /// Lower quartile of the ratio over the rounds.
    pub ratio_low_quartile: Option<f64>,
    /// Upper quartile of the ratio over the rounds.
    pub ratio_high_quartile: Option<f64>,
    /// Number of rounds.
    pub rounds: usize,
    /// Jain's index of the threads' shares: 1 is equal.
    pub jain: Option<f64>,
    /// 99.9th percentile of the waits of all rounds, in ns (to 1 %).
    pub wait_ns_p99_9: Option<u64>,
    /// The longest wait of all rounds, in ns.
    pub wait_ns_max: Option<u64>,
    /// CPU time of all threads per operation, in ns.
    pub cpu_ns_per_op: Option<f64>,
    /// CPU time per operation, as a multiple of the baseline's in the same round: the median, or
    /// the geometric mean of situations.
    pub cpu_ratio: Option<f64>,
    /// Instructions of a lock and unlock, counted in [`Mode::Uncontended`] on x86-64 with Linux.
    pub instructions_per_op: Option<f64>,
    /// Atomic read-modify-writes among these instructions. On other systems, those of our locks are
    /// counted by running the same source on a simulated machine.
    pub rmw_per_op: Option<f64>,
    /// Number of membarrier calls by our fences per second; for several situations the largest. The
    /// calls of peers are not known.
    pub membarriers_per_s: Option<f64>,
    /// Size of the lock, without queue nodes.
    pub size_bytes: usize,
}

impl Row {
    /// The lock's speed as a multiple of the baseline's, if the row is of a situation with
    /// sections.
    fn speed(&self) -> Option<Speed> {
        let ratio = self.ratio?;
        Some(Speed {
            lock: self.lock,
            threads: self.threads?,
            section_ns: self.section_ns?,
            think_ns: self.think_ns?,
            ratio,
            quartiles: (self.ratio_low_quartile.unwrap_or(ratio), self.ratio_high_quartile.unwrap_or(ratio)),
        })
    }

    /// The speeds in the situations of `modes` with this percentage of reads, as multiples of the
    /// speeds of `baseline`.
    pub fn speeds(rows: &[Self], modes: &[Mode], read_percent: Option<u64>, baseline: &str) -> Vec<Speed> {
        let of_modes = Self::of_modes(rows, modes).filter(|row| row.read_percent == read_percent);
        of_modes.filter(|row| row.baseline == baseline).filter_map(Self::speed).collect()
    }

    /// The percentages of reads in the situations of `modes`, in the order in which they come
    /// first.
    pub fn read_percents(rows: &[Self], modes: &[Mode]) -> Vec<Option<u64>> {
        let mut percents = Vec::new();
        for row in Self::of_modes(rows, modes) {
            if !percents.contains(&row.read_percent) {
                percents.push(row.read_percent);
            }
        }
        percents
    }

    fn of_modes<'a>(rows: &'a [Self], modes: &'a [Mode]) -> impl Iterator<Item = &'a Self> {
        let is_of_modes = |row: &&Self| modes.iter().any(|mode| mode.name() == row.mode);
        rows.iter().filter(|row| row.summary.is_none()).filter(is_of_modes)
    }

    /// Whether the row is of this situation.
    pub fn is_of(&self, mode: Mode, point: Point) -> bool {
        let Point { threads, section_ns, think_ns, read_percent } = point;
        (self.mode, self.case) == (mode.name(), mode.case())
            && (self.threads, self.section_ns, self.think_ns)
                == (Some(threads), Some(section_ns), Some(think_ns))
            && self.read_percent == read_percent
    }
}

/// A lock that failed, and the situation in which it failed.
#[derive(Clone, Debug)]
pub struct Failed {
    /// The lock.
    pub lock: &'static str,
    /// The mode.
    pub mode: Mode,
    /// The situation.
    pub point: Point,
    /// What went wrong.
    pub failure: Failure,
}

/// The results of a benchmark.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// A row for each situation, baseline and lock, in this order, without locks that failed. The
    /// means follow.
    pub rows: Vec<Row>,
    /// The gates whose situations were measured. None after a hang.
    pub gates: Vec<Gate>,
    /// The locks that failed. A hang ends the benchmark, because the threads that are left behind
    /// would disturb further measurements.
    pub failed: Vec<Failed>,
    /// Whether the run was broken off.
    pub is_partial: bool,
    /// The largest spread of a baseline's speeds over the rounds of a situation. `None` if nothing
    /// was measured.
    pub spread: Option<Spread>,
}

/// Spread of a baseline's speeds over the rounds.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// The baseline.
    pub baseline: &'static str,
    /// Width of the middle half (interquartile range), as a share of the median.
    pub share: f64,
}

impl Report {
    /// Adds the rows of one situation. For each baseline that is measured in it, there is a row for
    /// each lock without a failure.
    pub(super) fn add(&mut self, plan: &Plan, cell: &Cell, samples: &[Option<Vec<Sample>>]) {
        let measured = || cell.locks.iter().copied().zip(samples.iter().map(Option::as_deref));
        for &baseline in &plan.baselines {
            let Some((_, of_baseline)) = measured().find(|(lock, _)| lock.name() == baseline.name()) else {
                continue;
            };
            let of_baseline = of_baseline.unwrap_or(&[]);
            for (lock, samples) in measured() {
                if let Some(samples) = samples {
                    self.rows.push(row(cell, (lock, samples), (baseline, of_baseline)));
                }
            }
            let speeds = of_baseline.iter().filter_map(|sample| Some(1.0 / sample.ns_per_op?));
            let share = Quartiles::of(speeds).and_then(|speeds| speeds.spread());
            if let Some(share) = share.filter(|&share| self.spread.is_none_or(|widest| widest.share < share))
            {
                self.spread = Some(Spread { baseline: baseline.name(), share });
            }
        }
    }
}

type Measured<'a> = (Candidate, &'a [Sample]);

fn row(cell: &Cell, (lock, samples): Measured, (baseline, of_baseline): Measured) -> Row {
    let Cell { mode, point, .. } = *cell;
    // Quartiles over the rounds in which both the lock and its baseline were measured.
    let quotients = |of: &dyn Fn(&Sample, &Sample) -> Option<f64>| {
        let rounds = samples.iter().zip(of_baseline);
        let quotients = rounds.filter_map(|(sample, of_baseline)| of(sample, of_baseline));
        Quartiles::of(quotients.filter(|quotient| quotient.is_finite()))
    };
    let ratio = quotients(&|sample, of_baseline| Some(of_baseline.ns_per_op? / sample.ns_per_op?));
    let cpu_ratio =
        quotients(&|sample, of_baseline| Some(sample.cpu_ns_per_op? / of_baseline.cpu_ns_per_op?));
    let middle = |of: fn(&Sample) -> Option<f64>| median(samples.iter().filter_map(of));
    let ns_per_op = middle(|sample| sample.ns_per_op);
    let mut waits = Waits::default();
    samples.iter().filter_map(|sample| sample.waits.as_ref()).for_each(|each| waits.add(each));
    let is_ours = matches!(lock, Candidate::Lock(_));
    Row {
        summary: None,
        situations: 1,
        mode: mode.name(),
        case: mode.case(),
        lock: lock.name(),
        baseline: baseline.name(),
        threads: Some(point.threads),
        section_ns: Some(point.section_ns),
        think_ns: Some(point.think_ns),
        read_percent: point.read_percent,
        ns_per_op: ns_per_op.filter(|ns| ns.is_finite()),
        ops_per_us: ns_per_op.filter(|_| mode.is_rate()).map(|ns| 1e3 / ns),
        ratio: ratio.map(|ratio| ratio.median),
        ratio_low_quartile: ratio.map(|ratio| ratio.low),
        ratio_high_quartile: ratio.map(|ratio| ratio.high),
        rounds: samples.len(),
        jain: middle(|sample| sample.jain),
        wait_ns_p99_9: waits.quantile(0.999),
        wait_ns_max: waits.max(),
        cpu_ns_per_op: middle(|sample| sample.cpu_ns_per_op),
        cpu_ratio: cpu_ratio.map(|ratio| ratio.median),
        instructions_per_op: middle(|sample| sample.instructions_per_op),
        rmw_per_op: middle(|sample| sample.rmw_per_op),
        membarriers_per_s: middle(|sample| sample.membarriers_per_s).filter(|_| is_ours),
        size_bytes: lock.size_bytes(),
    }
}
