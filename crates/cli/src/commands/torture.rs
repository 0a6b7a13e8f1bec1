//! `nearlock torture`.

use std::io::{self, Write};
use std::time::Duration;

use nearlock_bench::torture::{
    self, News, NumaNodes, Plan, Storm, THREADS_MAX, Threads, Tortured, Verdict, Waiting,
};
use nearlock_lab::locks::{self, entries};
use nearlock_lab::names::RUST_NAMES;
use nearlock_lab::settings::{Assignment, Configuration, Group};
use nearlock_lab::{SUBJECTS, Subject};

use crate::Ending;
use crate::args::{Format, TortureArgs, WaitPolicy};
use crate::interrupt;
use crate::report::lockstat::Clock;
use crate::report::{self, Extent};

/// Impossible numbers of threads.
#[derive(Debug, thiserror::Error)]
enum BadCrew {
    /// More threads than a process can have.
    #[error("--nwriters {writers}: 1 to {THREADS_MAX} are possible")]
    TooManyWriters { writers: usize },
    #[error("--nreaders {readers}: with {writers} writers 0 to {} are possible", THREADS_MAX - writers)]
    TooManyReaders { readers: usize, writers: usize },
    /// A waiter needs a holder.
    #[error("--cancel-storm: with one thread no thread waits for {lock}; use --nwriters 2 or more")]
    NoWaiter { lock: &'static str },
}

/// A flag that would have no effect on any of the locks.
#[derive(Debug, thiserror::Error)]
#[error("{flag}: {what}; locks that it applies to are, for example: {}", fitting.join(", "))]
struct IdleFlag {
    flag: &'static str,
    what: &'static str,
    fitting: Vec<&'static str>,
}

/// A setting that would have no effect.
#[derive(Debug, thiserror::Error)]
#[error(
    "--numa-nodes {nodes} makes all NUMA nodes synthetic, so that {setting} would have no effect: give only \
     one of the two"
)]
struct IdleSetting {
    nodes: u32,
    setting: Assignment,
}

/// Tortures the requested locks.
pub fn run(args: &TortureArgs) -> anyhow::Result<Ending> {
    let given = if args.locks.is_empty() { &args.lock } else { &args.locks };
    let locks = locks(given)?;
    if args.lockstat {
        report::lockstat::check(args.format)?;
    }
    let plan = plan(args, &locks)?;
    interrupt::watch()?;
    let mut all = Vec::new();
    let asked = locks.len();
    let mut extent = Extent { done: asked, of: asked, unit: "locks" };
    for lock in locks {
        let tortured = one(lock, &plan, args.format)?;
        all.push(tortured);
        if interrupt::is_interrupted() {
            extent.done = all.len() - 1;
            report::say(format_args!(
                "warning: interrupted: {} of {asked} locks were tortured, the last one for {:.1} s",
                all.len(),
                all.last().map_or(0.0, |tortured| tortured.seconds)
            ));
            break;
        }
    }
    let failed = all.iter().any(|tortured| tortured.verdict() == Verdict::Failure);
    let ending = match failed {
        true => Ending::CheckFailed,
        false if extent.is_partial() => Ending::Interrupted,
        false => Ending::Success,
    };
    let mut out = io::stdout().lock();
    match args.format {
        Format::Text => {
            if let Some(mark) = extent.mark() {
                writeln!(out, "{mark}")?;
            }
            let ended = match ending {
                Ending::CheckFailed => Verdict::Failure.name(),
                Ending::Interrupted => "INTERRUPTED",
                Ending::Success => Verdict::Success.name(),
            };
            report::text::torture_end(&mut out, &plan, &all, ended)?;
        }
        Format::Json => report::json::tortured(&mut out, &plan, &all, extent)?,
        Format::Csv => report::csv::tortured(&mut out, &plan, &all, extent)?,
    }
    Ok(ending)
}

/// Tortures one lock, and shows its line if the format is text. Problems go to standard error.
pub fn one(lock: &'static Subject, plan: &Plan, format: Format) -> anyhow::Result<Tortured> {
    let tortured = torture::torture(lock, plan, &mut |news| match news {
        News::Totals(totals) => report::say(report::text::totals(lock, totals)),
        News::Progress(event) => report::say(format_args!("{}-torture: {event}", lock.name)),
    })?;
    if format == Format::Text {
        let mut out = io::stdout().lock();
        report::text::tortured(&mut out, &tortured)?;
        if let Some(rows) = &tortured.lockstat {
            report::lockstat::text(&mut out, rows, Clock::Native, tortured.seconds)?;
        }
        out.flush()?;
    }
    for problem in &tortured.problems {
        report::say(format_args!("{}-torture: {problem}", lock.name));
    }
    Ok(tortured)
}

/// The defaults of the command, which the tour uses, for this long.
pub fn default_plan(duration: Duration) -> Plan {
    Plan {
        is_interrupted: interrupt::is_interrupted,
        writers: None,
        readers: None,
        storm: None,
        threads: Threads::Stay,
        numa_nodes: NumaNodes::by(&torture::settings()),
        waiting: Waiting::Yield,
        duration,
        stat_interval: Duration::ZERO,
        stutter: Duration::ZERO,
        long_hold_ms: 100,
        priority_percent: 0,
        hang: Duration::from_secs(20),
        watch_progress: None,
        lockstat: false,
        settings: torture::settings(),
    }
}

fn plan(args: &TortureArgs, locks: &[&'static Subject]) -> anyhow::Result<Plan> {
    let mut configuration = Configuration::new(&[Group::Lock]);
    configuration.locks = torture::settings();
    for setting in &args.set {
        configuration.set(setting)?;
    }
    let numa_nodes = match args.numa_nodes {
        Some(nodes) => synthetic_nodes(nodes, &configuration)?,
        None => NumaNodes::by(&configuration.locks),
    };
    let default = default_plan(Duration::from_secs(args.shutdown_secs));
    let storm = args.cancel_storm || args.cancellations.is_some();
    let plan = Plan {
        writers: args.nwriters,
        readers: args.nreaders,
        storm: storm.then_some(Storm { cancellations: args.cancellations }),
        threads: if args.churn { Threads::ComeAndGo } else { Threads::Stay },
        numa_nodes,
        waiting: match args.wait {
            WaitPolicy::Spin => Waiting::Spin,
            WaitPolicy::Yield => Waiting::Yield,
        },
        stat_interval: Duration::from_secs(args.stat_interval),
        stutter: Duration::from_secs(args.stutter),
        long_hold_ms: args.long_hold,
        watch_progress: args.watch_progress.map(Duration::from_millis),
        lockstat: args.lockstat,
        priority_percent: args.priority_percent,
        hang: Duration::from_secs(args.hang_secs),
        settings: configuration.locks,
        ..default
    };
    check(&plan, locks)?;
    Ok(plan)
}

/// The names of some locks: the recommended ones first, and no presets.
fn examples<'a>(locks: impl Iterator<Item = &'a Subject>) -> Vec<&'static str> {
    const EXAMPLES: usize = 5;
    let rank = |name: &str| RUST_NAMES.iter().position(|row| row.lock == name).unwrap_or(usize::MAX);
    let mut names: Vec<_> =
        locks.filter(|lock| lock.algorithm.name == lock.name).map(|lock| lock.algorithm.name).collect();
    names.sort_by_key(|name| rank(name));
    names.truncate(EXAMPLES);
    names
}

/// Checks that the numbers of threads are possible, and that the flags have an effect.
fn check(plan: &Plan, locks: &[&'static Subject]) -> anyhow::Result<()> {
    for lock in locks {
        let crew = plan.crew(lock);
        if crew.writers > THREADS_MAX {
            return Err(BadCrew::TooManyWriters { writers: crew.writers }.into());
        }
        if crew.readers > THREADS_MAX - crew.writers {
            return Err(BadCrew::TooManyReaders { readers: crew.readers, writers: crew.writers }.into());
        }
        if plan.storm.is_some() && lock.is_timed() && crew.threads() < 2 {
            return Err(BadCrew::NoWaiter { lock: lock.name }.into());
        }
    }
    let idle = |flag, what, has: fn(&Subject) -> bool| match locks.iter().any(|lock| has(lock)) {
        true => Ok(()),
        false => Err(IdleFlag { flag, what, fitting: examples(SUBJECTS.iter().filter(|lock| has(lock))) }),
    };
    if plan.readers.is_some() {
        idle("--nreaders", "none of these locks has readers", |lock| lock.is_rw())?;
    }
    if let Some(storm) = plan.storm {
        let flag = if storm.cancellations.is_some() { "--cancellations" } else { "--cancel-storm" };
        idle(flag, "waiters for these locks cannot give up", |lock| lock.is_timed())?;
    }
    Ok(())
}

/// Synthetic nodes. The settings `numa.*` would have no effect with them.
fn synthetic_nodes(nodes: u32, configuration: &Configuration) -> Result<NumaNodes, IdleSetting> {
    let mut assigned = configuration.assigned().iter();
    match assigned.find(|assignment| assignment.setting.starts_with("numa.")) {
        Some(&setting) => Err(IdleSetting { nodes, setting }),
        None => Ok(NumaNodes::Synthetic(nodes)),
    }
}

fn locks(names: &[String]) -> anyhow::Result<Vec<&'static Subject>> {
    let mut locks = Vec::new();
    for name in entries(names) {
        if name == "all" {
            locks.extend(Subject::working());
        } else {
            locks.push(locks::lock(name)?);
        }
    }
    Ok(locks)
}
