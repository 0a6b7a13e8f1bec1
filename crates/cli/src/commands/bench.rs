//! `nearlock bench`.

use std::io;
use std::time::Duration;

use nearlock_lab::bench::{
    self, BenchError, Calibration, Calls, Candidate, HANDOVER_SECTION_NS, Machine, Mode, PEERS, Plan, Point,
};
use nearlock_lab::settings::{Configuration, Group};
use nearlock_lab::torture::Waiting;
use nearlock_lab::{SUBJECTS, Subject, names};

use crate::Ending;
use crate::args::{BenchArgs, BenchMode, Format, ThreadCount, WaitPolicy};
use crate::{progress, report};

/// Flags that the mode has no use for, or cannot obey.
#[derive(Debug, thiserror::Error)]
enum UnfitFlag {
    #[error("--threads {threads}: 1 to {} are possible", bench::THREADS_MAX)]
    TooManyThreads { threads: usize },
    #[error("{flag} says nothing about --mode {mode}, which has {instead}: leave it out")]
    Meaningless { flag: &'static str, mode: &'static str, instead: &'static str },
    #[error(
        "--read-percent {percent}: --mode uncontended measures lock and unlock of a writer (0) or a reader (100)"
    )]
    HalfAReader { percent: u64 },
    #[error("--read-percent: {lock} has no readers; there are: {}", with_readers().join(", "))]
    NoReaders { lock: &'static str },
}

/// The names of all that have readers.
fn with_readers() -> Vec<&'static str> {
    let all = SUBJECTS.iter().map(Candidate::Lock).chain(PEERS.iter().map(Candidate::Peer));
    all.filter(|lock| lock.has_readers()).map(Candidate::name).collect()
}

/// In which numbers of threads throughput is measured unless something else is asked for.
const THREADS: [ThreadCount; 3] = [ThreadCount::Exactly(1), ThreadCount::PerCpu(1), ThreadCount::PerCpu(4)];
/// How long its sections are, in ns.
const SECTION_NS: u64 = 100;

/// A machine with so many runnable threads per CPU before the start is noisy.
const LOAD_PER_CPU_MAX: f64 = 0.25;
/// So is one on which the middle half of the baseline's rounds is wider than this share of the median.
const SPREAD_MAX: f64 = 0.1;

/// Measures what was asked for.
pub fn run(args: &BenchArgs) -> anyhow::Result<Ending> {
    let machine = Machine::this();
    let plan = plan(args, &machine)?;
    plan.suits(&machine)?;
    warn_before(&machine, &plan);
    let calibration = Calibration::measure();
    let bar = progress::runs(plan.runs());
    let measured = bench::run(&plan, &machine, &calibration, || bar.inc(1));
    bar.finish_and_clear();
    let measured = match measured {
        // Only these two are the user's to change; a benchmark that its machine refuses is no slip either.
        Err(error @ (BenchError::Spawn { .. } | BenchError::Pin { .. })) => {
            report::say(format_args!("error: {error}"));
            return Ok(Ending::CheckFailed);
        }
        other => other?,
    };
    let mut out = io::stdout().lock();
    match args.format {
        Format::Text => report::bench::text(&mut out, &machine, &calibration, &plan, &measured.rows)?,
        Format::Json => report::json::array(&mut out, &measured.rows)?,
        Format::Csv => report::csv::rows(&mut out, &measured.rows)?,
    }
    if let Some(spread) = measured.spread.filter(|spread| spread.share > SPREAD_MAX) {
        report::say(format_args!(
            "warning: noisy machine: the middle half of {}'s rounds is {:.0} % wide; take more rounds",
            spread.baseline,
            spread.share * 100.0
        ));
    }
    for failed in &measured.failed {
        report::say(format_args!("FAILURE: {} with {}: {}", failed.lock, failed.point, failed.failure));
    }
    Ok(if measured.failed.is_empty() { Ending::Success } else { Ending::CheckFailed })
}

fn warn_before(machine: &Machine, plan: &Plan) {
    if !machine.optimised {
        report::say("warning: built without optimisation: these figures say nothing; build with --release");
    }
    if let Some(load) = machine.load.filter(|load| *load > LOAD_PER_CPU_MAX * machine.cpus as f64) {
        report::say(format_args!(
            "warning: noisy machine: {load:.2} threads ran on {} CPUs in the minute before (load average)",
            machine.cpus
        ));
    }
    let most = plan.points.iter().map(|point| point.threads).max().unwrap_or(0);
    if plan.waiting == Waiting::Spin && most > machine.cpus {
        report::say(format_args!(
            "warning: --wait spin is for a CPU each, and there are {most} threads on {} CPUs",
            machine.cpus
        ));
    }
}

fn plan(args: &BenchArgs, machine: &Machine) -> anyhow::Result<Plan> {
    let mut configuration = Configuration::new(&[Group::Lock]);
    for setting in &args.set {
        configuration.set(setting)?;
    }
    let (locks, baselines) = locks(args)?;
    Ok(Plan {
        mode: mode(args.mode),
        locks,
        baselines,
        points: points(args, machine)?,
        rounds: args.rounds,
        window: Duration::from_millis(args.duration_ms),
        waiting: match args.wait {
            WaitPolicy::Spin => Waiting::Spin,
            WaitPolicy::Yield => Waiting::Yield,
        },
        settings: configuration.locks,
    })
}

/// The locks and peers, and those of them that are baselines. A baseline that is not asked for is measured too. Where
/// sections read, `all` are those with readers.
fn locks(args: &BenchArgs) -> anyhow::Result<(Vec<Candidate>, Vec<Candidate>)> {
    let mut locks = Vec::new();
    let must_read = !args.read_percent.is_empty();
    let fits = |lock: &Candidate| !must_read || lock.has_readers();
    let working = || Subject::working().map(Candidate::Lock).filter(fits);
    if args.locks.is_empty() {
        locks.extend(working());
    }
    for name in &args.locks {
        match name.as_str() {
            "all" => locks.extend(working()),
            name => locks.push(Candidate::Lock(names::lock(name)?)),
        }
    }
    for name in &args.peers {
        match name.as_str() {
            "all" => locks.extend(PEERS.iter().map(Candidate::Peer).filter(fits)),
            name => locks.push(Candidate::Peer(names::peer(name)?)),
        }
    }
    let has = |all: &[Candidate], one: Candidate| all.iter().any(|lock| lock.name() == one.name());
    let mut baselines = Vec::new();
    for name in &args.baseline {
        let baseline = Candidate::named(name)?;
        if !has(&baselines, baseline) {
            baselines.push(baseline);
        }
    }
    let missing = baselines.iter().copied().filter(|&baseline| !has(&locks, baseline));
    locks = missing.chain(locks.iter().copied()).collect();
    if let Some(lock) = locks.iter().find(|lock| !fits(lock)) {
        return Err(UnfitFlag::NoReaders { lock: lock.name() }.into());
    }
    if baselines.is_empty() {
        baselines.push(locks[0]);
    }
    Ok((locks, baselines))
}

fn mode(mode: BenchMode) -> Mode {
    match mode {
        BenchMode::Throughput => Mode::Throughput,
        BenchMode::Uncontended => Mode::Uncontended,
        BenchMode::Handover => Mode::Handover,
        BenchMode::Open1 => Mode::Calls(Calls::Open1),
        BenchMode::Lock2 => Mode::Calls(Calls::Lock2),
    }
}

fn or_default<T: Copy>(given: &[T], default: T) -> Vec<T> {
    if given.is_empty() { vec![default] } else { given.to_vec() }
}

/// The situations: all combinations, each once.
fn points(args: &BenchArgs, machine: &Machine) -> Result<Vec<Point>, UnfitFlag> {
    let mode = mode(args.mode);
    let meaningless = |flag, given: bool, instead| {
        if given { Err(UnfitFlag::Meaningless { flag, mode: mode.name(), instead }) } else { Ok(()) }
    };
    let threads_given = !args.threads.is_empty();
    let mut points = Vec::new();
    match mode {
        Mode::Throughput => points = of_threads(args, machine, SECTION_NS, 0)?,
        Mode::Calls(calls) => {
            meaningless("--read-percent", !args.read_percent.is_empty(), "writers only")?;
            let constants = calls.constants();
            points = of_threads(args, machine, constants.section_ns, constants.call_ns)?;
        }
        Mode::Uncontended => {
            meaningless("--threads", threads_given, "one thread")?;
            meaningless("--section-ns", !args.section_ns.is_empty(), "empty sections")?;
            meaningless("--think-ns", !args.think_ns.is_empty(), "nothing between sections")?;
            if let Some(&percent) = args.read_percent.iter().find(|percent| ![0, 100].contains(*percent)) {
                return Err(UnfitFlag::HalfAReader { percent });
            }
            let point = |read_percent| Point { read_percent, ..Point::ALONE };
            points.extend(read_percents(args).into_iter().map(point));
        }
        Mode::Handover => {
            meaningless("--threads", threads_given, "two threads")?;
            meaningless("--think-ns", !args.think_ns.is_empty(), "a waiter at all times")?;
            meaningless("--read-percent", !args.read_percent.is_empty(), "writers only")?;
            points.extend(or_default(&args.section_ns, HANDOVER_SECTION_NS).into_iter().map(Point::handover));
        }
    }
    let mut seen = Vec::new();
    points.retain(|point| {
        let is_new = !seen.contains(point);
        seen.push(*point);
        is_new
    });
    Ok(points)
}

fn read_percents(args: &BenchArgs) -> Vec<Option<u64>> {
    or_default(&args.read_percent.iter().copied().map(Some).collect::<Vec<_>>(), None)
}

/// The situations of many threads, with these lengths unless others were given.
fn of_threads(
    args: &BenchArgs,
    machine: &Machine,
    section_ns: u64,
    think_ns: u64,
) -> Result<Vec<Point>, UnfitFlag> {
    let mut points = Vec::new();
    for threads in if args.threads.is_empty() { &THREADS[..] } else { &args.threads } {
        let threads = threads.resolve(machine.cpus);
        if threads > bench::THREADS_MAX {
            return Err(UnfitFlag::TooManyThreads { threads });
        }
        for section_ns in or_default(&args.section_ns, section_ns) {
            for think_ns in or_default(&args.think_ns, think_ns) {
                let point = |read_percent| Point { threads, section_ns, think_ns, read_percent };
                points.extend(read_percents(args).into_iter().map(point));
            }
        }
    }
    Ok(points)
}
