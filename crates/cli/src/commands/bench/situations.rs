//! The situations in which locks are measured.

use nearlock_bench::bench::{
    self, BESIDE_THINK_NS, BESIDE_THREADS, Grid, HANDOVER_SECTION_NS, Mode, Point, TestBed,
};

use super::modes::{self, UnknownCase};
use super::readers::{self, Defaults};
use crate::args::threads::{self, EmptyRange};
use crate::args::{BenchArgs, ThreadRange};

/// A flag that does not apply to the modes, or that they cannot satisfy.
#[derive(Debug, thiserror::Error)]
pub enum UnfitFlag {
    #[error("--threads {threads}: 1 to {} are possible", bench::THREADS_MAX)]
    TooManyThreads { threads: usize },
    #[error("--threads {threads}: {} on this machine", ranges(.modes))]
    NotInMode { threads: usize, modes: Vec<(Mode, usize, usize)> },
    #[error("--mode {}: this machine has too few CPUs for it", .0.name())]
    NotHere(Mode),
    #[error("{flag} does not apply to --mode {mode}, which has {instead}: leave it out")]
    Meaningless { flag: &'static str, mode: &'static str, instead: &'static str },
    #[error(
        "--read-percent {percent}: --mode uncontended measures lock and unlock of a writer (0) or a reader (100)"
    )]
    HalfAReader { percent: u64 },
    #[error(transparent)]
    UnknownCase(#[from] UnknownCase),
    #[error(transparent)]
    EmptyRange(#[from] EmptyRange),
}

/// The range of each mode.
fn ranges(modes: &[(Mode, usize, usize)]) -> String {
    let of = |&(mode, least, most): &(Mode, usize, usize)| format!("{} has {least} to {most}", mode.name());
    modes.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// The default numbers of threads for calls.
const CALLERS: [ThreadRange; 3] = [ThreadRange::exactly(1), ThreadRange::per_cpu(1), ThreadRange::per_cpu(4)];

/// All requested situations, each once.
///
/// # Errors
///
/// If a flag applies to none of the modes, or if they cannot satisfy it.
pub fn of(args: &BenchArgs, machine: &TestBed) -> Result<Vec<(Mode, Point)>, UnfitFlag> {
    let modes = modes::of(args, machine)?;
    let asked = Asked { args, machine, modes: &modes };
    for &mode in &modes {
        asked.has_no_more_than(mode)?;
    }
    asked.threads_fit()?;
    let mut situations = Vec::new();
    for &mode in &modes {
        let before = situations.len();
        for point in asked.points(mode)? {
            if !situations.contains(&(mode, point)) {
                situations.push((mode, point));
            }
        }
        if situations.len() == before && !args.mode.is_empty() {
            return Err(UnfitFlag::NotHere(mode));
        }
    }
    Ok(situations)
}

/// The request of the flags.
struct Asked<'a> {
    args: &'a BenchArgs,
    machine: &'a TestBed,
    modes: &'a [Mode],
}

impl Asked<'_> {
    /// Refuses flags that do not apply to the only mode.
    fn has_no_more_than(&self, mode: Mode) -> Result<(), UnfitFlag> {
        let Self { args, modes, .. } = *self;
        let threads = ("--threads", !args.threads.is_empty());
        let section = ("--section-ns", !args.section_ns.is_empty());
        let think = ("--think-ns", !args.think_ns.is_empty());
        let readers = ("--read-percent", !args.read_percent.is_empty());
        let unfit: &[_] = match mode {
            Mode::Parallel | Mode::Free | Mode::Oversubscribed => &[],
            Mode::Calls(_) => &[(readers, "writers only")],
            Mode::Stores(_) => &[
                (threads, "one thread"),
                (section, "its own sections"),
                (think, "nothing between sections"),
                (readers, "writers only"),
            ],
            Mode::Uncontended => {
                &[(threads, "one thread"), (section, "empty sections"), (think, "nothing between sections")]
            }
            Mode::Beside => &[(readers, "writers only")],
            Mode::Writer => &[(readers, "one writer and readers")],
            Mode::Condvar(_) | Mode::Long(_) | Mode::Many(_) | Mode::Away | Mode::Wake(_) | Mode::Start => &[
                (threads, "its own numbers of threads"),
                (section, "its own sections"),
                (think, "nothing between sections"),
                (readers, "writers only"),
            ],
            Mode::Handover => {
                &[(threads, "two threads"), (think, "a waiter at all times"), (readers, "writers only")]
            }
        };
        let is_alone = modes.iter().all(|other| other.name() == mode.name());
        match unfit.iter().find(|((_, given), _)| *given && is_alone) {
            Some(&((flag, _), instead)) => Err(UnfitFlag::Meaningless { flag, mode: mode.name(), instead }),
            None => Ok(()),
        }
    }

    /// Refuses numbers of threads that no mode has.
    fn threads_fit(&self) -> Result<(), UnfitFlag> {
        let many = |mode: &&Mode| {
            mode.has_sections() || matches!(mode, Mode::Calls(_) | Mode::Beside | Mode::Writer)
        };
        let modes: Vec<_> = self.modes.iter().filter(many).map(|&mode| self.range(mode)).collect();
        for threads in threads::resolve(&self.args.threads, self.machine.cpus)? {
            if threads > bench::THREADS_MAX {
                return Err(UnfitFlag::TooManyThreads { threads });
            }
            if !modes.iter().any(|&(_, least, most)| (least..=most).contains(&threads)) {
                return Err(UnfitFlag::NotInMode { threads, modes });
            }
        }
        Ok(())
    }

    /// The least and the greatest number of threads of a mode. A mode does not repeat numbers of
    /// another one.
    fn range(&self, mode: Mode) -> (Mode, usize, usize) {
        let (least, most) = mode.threads(self.machine);
        match mode {
            Mode::Parallel if self.modes.contains(&Mode::Free) => (mode, 2, most),
            Mode::Free if self.modes.contains(&Mode::Oversubscribed) => (mode, least, self.machine.cpus),
            _ => (mode, least, most),
        }
    }

    fn points(&self, mode: Mode) -> Result<Vec<Point>, UnfitFlag> {
        let Self { args, .. } = *self;
        if args.is_full_with_readers() {
            return self.of_gates(mode);
        }
        Ok(match mode {
            Mode::Parallel | Mode::Free | Mode::Oversubscribed => {
                let threads = Grid::THREADS.map(ThreadRange::exactly);
                let lengths = (&Grid::SECTION_NS[..], &Grid::THINK_NS[..]);
                self.of_threads(mode, &threads, lengths, &self.read_percents())?
            }
            Mode::Calls(calls) => {
                let constants = calls.constants();
                let lengths = (&[constants.section_ns][..], &[constants.call_ns][..]);
                self.of_threads(mode, &CALLERS, lengths, &[None])?
            }
            Mode::Uncontended => {
                let is_one = |percent: &u64| [0, 100].contains(percent);
                let other = args.read_percent.iter().copied().find(|percent| !is_one(percent));
                if let Some(percent) = other.filter(|_| self.modes.len() == 1) {
                    return Err(UnfitFlag::HalfAReader { percent });
                }
                let fitting =
                    self.read_percents().into_iter().filter(|percent| percent.as_ref().is_none_or(is_one));
                fitting.map(|read_percent| Point { read_percent, ..Point::ALONE }).collect()
            }
            Mode::Beside => {
                let threads = BESIDE_THREADS.map(ThreadRange::exactly);
                self.of_threads(mode, &threads, (&[0], &[BESIDE_THINK_NS]), &[None])?
            }
            Mode::Writer => self.of_defaults(mode, readers::writer(), &[None])?,
            Mode::Condvar(_)
            | Mode::Long(_)
            | Mode::Many(_)
            | Mode::Away
            | Mode::Wake(_)
            | Mode::Start
            | Mode::Stores(_) => mode.point().into_iter().collect(),
            Mode::Handover => or_default(&args.section_ns, &[HANDOVER_SECTION_NS])
                .iter()
                .copied()
                .map(Point::handover)
                .collect(),
        })
    }

    /// The situations of the gates of reader-writer locks.
    fn of_gates(&self, mode: Mode) -> Result<Vec<Point>, UnfitFlag> {
        let percents = readers::percents(mode, &self.args.read_percent);
        match mode {
            Mode::Uncontended => {
                let of = |read_percent| Point { read_percent, ..Point::ALONE };
                Ok(percents.into_iter().map(of).collect())
            }
            mode => self.of_defaults(mode, readers::defaults(mode), &percents),
        }
    }

    fn of_defaults(
        &self,
        mode: Mode,
        Defaults { threads, section_ns, think_ns }: Defaults,
        percents: &[Option<u64>],
    ) -> Result<Vec<Point>, UnfitFlag> {
        let threads: Vec<_> = threads.iter().copied().map(ThreadRange::exactly).collect();
        self.of_threads(mode, &threads, (section_ns, think_ns), percents)
    }

    fn read_percents(&self) -> Vec<Option<u64>> {
        match &self.args.read_percent[..] {
            [] => vec![None],
            given => given.iter().copied().map(Some).collect(),
        }
    }

    /// The situations of many threads, with these numbers and lengths as defaults.
    fn of_threads(
        &self,
        mode: Mode,
        threads: &[ThreadRange],
        (section_ns, think_ns): (&[u64], &[u64]),
        percents: &[Option<u64>],
    ) -> Result<Vec<Point>, UnfitFlag> {
        let Self { args, machine, .. } = *self;
        let (_, least, most) = self.range(mode);
        let all = threads::resolve(or_default(&args.threads, threads), machine.cpus)?;
        let mut points = Vec::new();
        for threads in all.into_iter().filter(|threads| (least..=most).contains(threads)) {
            for &section_ns in or_default(&args.section_ns, section_ns) {
                for &think_ns in or_default(&args.think_ns, think_ns) {
                    let point = |read_percent| Point { threads, section_ns, think_ns, read_percent };
                    points.extend(percents.iter().copied().map(point));
                }
            }
        }
        Ok(points)
    }
}

fn or_default<'a, T>(given: &'a [T], default: &'a [T]) -> &'a [T] {
    if given.is_empty() { default } else { given }
}
