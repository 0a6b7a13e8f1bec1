//! Gates: what `near-mutex` and `near-rwlock` must reach in comparison with other locks, and what
//! is aimed at.
//!
//! A gate compares figures of the same round. So it is computed from the samples, and not from the
//! medians of the rows.
//!
//! | file | contents |
//! |---|---|
//! | this file | how situations become one figure, and the verdict |
//! | `figures.rs` | the figures of a situation |
//! | `table.rs`, `rwlocks.rs` | the gates of `near-mutex`, and those of `near-rwlock` |

mod figures;
mod rwlocks;
mod table;

use std::time::Duration;

use serde::Serialize;

use super::mode::{Mode, Point};
use super::plan::Cell;
use super::sample::Sample;
use super::statistics::Quartiles;
use figures::{Against, Measure, Situation};

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
const WINDOW: Duration = Duration::from_millis(250);

/// The least window of a situation of `near-rwlock`, for each thread. Most readers of that lock do
/// not wait, so a thread has whole time slices of 4 ms. On two CPUs, 64 threads with
/// 99 % reads and sections of 100 ns have Jain's index 0.87 with 250 ms: two time slices each. With
/// 2 s it is 0.98. `nearlock bench --mode oversubscribed --lock near-rwlock --threads 64
/// --section-ns 100 --think-ns 0 --read-percent 99 --duration-ms 250` (AMD EPYC, family 26 model 2)
const WINDOW_OF_READER: Duration = Duration::from_millis(16);

/// The least window of a situation with a gate of its own.
pub(super) fn window(point: Point) -> Duration {
    match point.read_percent {
        None => WINDOW,
        Some(_) => WINDOW.max(WINDOW_OF_READER * point.threads as u32),
    }
}

/// All gates.
fn all() -> impl Iterator<Item = &'static Spec> {
    table::GATES.iter().chain(&rwlocks::GATES)
}

/// Whether a situation has a gate of its own.
pub(super) fn has_own(mode: Mode, point: Point) -> bool {
    let is_own = |spec: &Spec| matches!(spec.fold, Fold::One | Fold::Each(_));
    all().any(|spec| is_own(spec) && (spec.is_in)(mode, point))
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
    /// Each of at least this many situations has its own verdict. The figure is that of the worst
    /// one.
    Each(usize),
}

/// One in this many situations may be undecided in a gate about each situation that holds. Of many
/// situations that just meet the bound, noise alone lets some straddle it.
const MAY_BE_UNDECIDED: usize = 20;

impl Fold {
    /// The least number of situations.
    fn least(self) -> usize {
        match self {
            Fold::One => 1,
            Fold::Mean(least) | Fold::Share { of: least, .. } | Fold::Each(least) => least,
        }
    }

    /// What has a verdict: each situation, or all of them together. `None` if one has no rounds.
    fn parts(self, situations: &[Situation]) -> Option<Vec<Part<'_>>> {
        if let Fold::Each(_) = self {
            let of = |situation: &Situation| Quartiles::of(situation.figures.iter().copied());
            return situations.iter().map(|situation| Some((of(situation)?, situation))).collect();
        }
        let of_round = |round: usize| -> Vec<f64> { situations.iter().map(|of| of.figures[round]).collect() };
        let all = (0..rounds(situations)).map(|round| self.of(&of_round(round)));
        Some(vec![(Quartiles::of(all)?, &situations[0])])
    }

    /// One figure of a round.
    fn of(self, figures: &[f64]) -> f64 {
        let count = figures.len() as f64;
        match self {
            Fold::One | Fold::Each(_) => figures[0],
            Fold::Mean(_) => (figures.iter().map(|figure| figure.ln()).sum::<f64>() / count).exp(),
            Fold::Share { within, .. } => {
                figures.iter().filter(|figure| **figure <= within).count() as f64 / count
            }
        }
    }
}

/// Quartiles over the rounds, and the situation that they are of, or the first one of all.
type Part<'a> = (Quartiles, &'a Situation);

/// The number of rounds that all situations have.
fn rounds(situations: &[Situation]) -> usize {
    situations.iter().map(|situation| situation.figures.len()).min().unwrap_or(0)
}

/// A row of the table.
struct Spec {
    name: &'static str,
    /// The lock that it is for.
    lock: &'static str,
    /// The situations.
    is_in: fn(Mode, Point) -> bool,
    against: Against,
    measure: Measure,
    fold: Fold,
    /// The value that must be reached.
    gate: Option<f64>,
    /// The value that is aimed at.
    target: Option<f64>,
}

impl Spec {
    fn more_is_better(&self) -> bool {
        matches!(self.fold, Fold::Share { .. }) || self.measure.more_is_better()
    }

    /// The figures of a situation; `None` if it does not belong to the gate, or if a lock is not
    /// measured in it or has failed.
    fn situation(&self, cell: &Cell, samples: &[Option<Vec<Sample>>]) -> Option<Situation> {
        let is_in = (self.is_in)(cell.mode, cell.point);
        is_in.then(|| Situation::of(self.lock, (self.measure, self.against), cell, samples)).flatten()
    }

    /// The result over these situations; `None` if there are too few.
    fn result(&self, situations: &[Situation]) -> Option<Gate> {
        if situations.len() < self.fold.least() {
            return None;
        }
        let mut parts = self.fold.parts(situations)?;
        parts.sort_by(|(a, _), (b, _)| self.badness(b.median).total_cmp(&self.badness(a.median)));
        let (worst, first) = *parts.first()?;
        let rounds = rounds(situations);
        let enough = |verdict| if rounds < ROUNDS_LEAST { Verdict::TooFewRounds } else { verdict };
        let verdict = |bound: f64| enough(self.verdict(&parts, bound));
        Some(Gate {
            name: self.name,
            lock: self.lock,
            baseline: first.baseline,
            measure: match (self.fold, self.against) {
                (Fold::Share { .. }, _) => "share",
                (_, Against::DifferenceFrom(_)) if self.measure == Measure::Jain => "Jain difference",
                _ => self.measure.name(),
            },
            situations: situations.len(),
            rounds,
            value: worst.median,
            low_quartile: worst.low,
            high_quartile: worst.high,
            gate: self.gate,
            verdict: self.gate.map(verdict),
            target: self.target,
            target_verdict: self.target.map(verdict),
            target_distance: self.target.map(|target| self.distance(worst.median, target)),
            cells: match (self.fold, self.gate) {
                (Fold::Each(_), Some(bound)) => {
                    self.cells(&parts, &|quartiles| enough(self.verdict_of(quartiles, bound)))
                }
                _ => Vec::new(),
            },
        })
    }

    /// More is worse.
    fn badness(&self, figure: f64) -> f64 {
        if self.more_is_better() { -figure } else { figure }
    }

    /// The first situation, which is the worst, and all others that do not hold.
    fn cells(&self, worst_first: &[Part], verdict: &dyn Fn(Quartiles) -> Verdict) -> Vec<GateCell> {
        let all = worst_first.iter().map(|&(quartiles, situation)| GateCell {
            mode: situation.mode.name(),
            threads: situation.point.threads,
            section_ns: situation.point.section_ns,
            think_ns: situation.point.think_ns,
            read_percent: situation.point.read_percent,
            value: quartiles.median,
            low_quartile: quartiles.low,
            high_quartile: quartiles.high,
            verdict: verdict(quartiles),
        });
        let is_listed = |cell: &GateCell| matches!(cell.verdict, Verdict::Fails | Verdict::Undecided);
        all.enumerate().filter(|(rank, cell)| *rank == 0 || is_listed(cell)).map(|(_, cell)| cell).collect()
    }

    /// The verdict on all parts. If there are many, a few may be undecided.
    fn verdict(&self, parts: &[Part], bound: f64) -> Verdict {
        let verdicts = parts.iter().map(|&(quartiles, _)| self.verdict_of(quartiles, bound));
        let (mut undecided, mut fail) = (0, 0);
        for verdict in verdicts {
            undecided += usize::from(verdict == Verdict::Undecided);
            fail += usize::from(verdict == Verdict::Fails);
        }
        match fail {
            0 if undecided <= parts.len() / MAY_BE_UNDECIDED => Verdict::Holds,
            0 => Verdict::Undecided,
            _ => Verdict::Fails,
        }
    }

    fn verdict_of(&self, Quartiles { low, high, .. }: Quartiles, bound: f64) -> Verdict {
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
    /// Both quartiles meet it. In a gate about each situation, one in twenty may be undecided, and
    /// none fails.
    Holds,
    /// One quartile meets it. In a gate about each situation, more than one in twenty are like
    /// this.
    Undecided,
    /// No quartile meets it, or a situation fails.
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
    /// The lock that it is compared with; `None` if it is compared with none.
    pub baseline: Option<&'static str>,
    /// The figure that is compared.
    pub measure: &'static str,
    /// Number of situations.
    pub situations: usize,
    /// Number of rounds.
    pub rounds: usize,
    /// The median over the rounds, in ns if it is a time and no ratio. In a gate about each
    /// situation, that of the worst one.
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
    /// In a gate about each situation: the worst one, and all others that do not hold, worst first.
    pub cells: Vec<GateCell>,
}

/// A situation of a gate about each situation.
#[derive(Clone, Debug, Serialize)]
pub struct GateCell {
    /// [`Mode::name`].
    pub mode: &'static str,
    /// See [`Point`].
    pub threads: usize,
    /// See [`Point`].
    pub section_ns: u64,
    /// See [`Point`].
    pub think_ns: u64,
    /// See [`Point`].
    pub read_percent: Option<u64>,
    /// The median over the rounds.
    pub value: f64,
    /// Lower quartile over the rounds.
    pub low_quartile: f64,
    /// Upper quartile over the rounds.
    pub high_quartile: f64,
    /// Whether it reaches the gate's bound.
    pub verdict: Verdict,
}

/// Collects the figures of all gates, one situation after the other.
pub(super) struct Collected {
    /// The gates, with their situations.
    gates: Vec<(&'static Spec, Vec<Situation>)>,
}

impl Collected {
    pub fn new() -> Self {
        Self { gates: all().map(|spec| (spec, Vec::new())).collect() }
    }

    /// Adds a situation, with the samples of each of its locks.
    pub fn add(&mut self, cell: &Cell, samples: &[Option<Vec<Sample>>]) {
        for (spec, situations) in &mut self.gates {
            situations.extend(spec.situation(cell, samples));
        }
    }

    /// The results of the gates whose situations were measured.
    pub fn results(&self) -> Vec<Gate> {
        self.gates.iter().filter_map(|(spec, situations)| spec.result(situations)).collect()
    }
}

#[cfg(test)]
mod tests;
