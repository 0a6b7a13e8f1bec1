//! `nearlock torture`.

use std::io::{self, Write};
use std::time::Duration;

use nearlock_lab::settings::{Configuration, Group};
use nearlock_lab::torture::{self, NumaNodes, Plan, Tortured, Verdict, WRITERS_MAX, Waiting};
use nearlock_lab::{Subject, names};

use crate::Ending;
use crate::args::{Format, TortureArgs, WaitPolicy};
use crate::report;

/// More writers than a process can have threads.
#[derive(Debug, thiserror::Error)]
#[error("--nwriters {writers}: 1 to {WRITERS_MAX} are possible")]
struct TooManyWriters {
    writers: usize,
}

/// A setting that would have no effect.
#[derive(Debug, thiserror::Error)]
#[error(
    "--numa-nodes {nodes} makes up the nodes of all writers, so that {setting} would have no effect: give one \
     of the two"
)]
struct IdleSetting {
    nodes: u32,
    setting: String,
}

/// Tortures what was asked for.
pub fn run(args: &TortureArgs) -> anyhow::Result<Ending> {
    let plan = plan(args)?;
    let locks = locks(&args.locks)?;
    let mut all = Vec::new();
    for lock in locks {
        let tortured = one(lock, &plan, args.format)?;
        all.push(tortured);
    }
    let failed = all.iter().any(|tortured| tortured.verdict() == Verdict::Failure);
    let mut out = io::stdout().lock();
    match args.format {
        Format::Text => {
            let verdict = if failed { Verdict::Failure } else { Verdict::Success };
            report::text::torture_end(&mut out, &plan, verdict)?;
        }
        Format::Json => report::json::tortured(&mut out, &plan, &all)?,
        Format::Csv => report::csv::tortured(&mut out, &plan, &all)?,
    }
    Ok(if failed { Ending::CheckFailed } else { Ending::Success })
}

/// Tortures one lock, and shows its line if the format is text. Problems go to standard error.
pub fn one(lock: &'static Subject, plan: &Plan, format: Format) -> anyhow::Result<Tortured> {
    let tortured = torture::torture(lock, plan, &mut |counts| {
        report::say(report::text::counts(lock, counts));
    })?;
    if format == Format::Text {
        let mut out = io::stdout().lock();
        report::text::tortured(&mut out, &tortured)?;
        out.flush()?;
    }
    for problem in &tortured.problems {
        report::say(format_args!("{}-torture: {problem}", lock.name));
    }
    Ok(tortured)
}

/// The defaults of the command, as the tour uses them, for this long.
pub fn default_plan(duration: Duration) -> Plan {
    Plan {
        writers: torture::writers_by_default(),
        numa_nodes: NumaNodes::by(&torture::settings()),
        waiting: Waiting::Yield,
        duration,
        stat_interval: Duration::ZERO,
        stutter: Duration::ZERO,
        long_hold_ms: 100,
        priority_percent: 0,
        hang: Duration::from_secs(20),
        settings: torture::settings(),
    }
}

fn plan(args: &TortureArgs) -> anyhow::Result<Plan> {
    let mut configuration = Configuration::new(&[Group::Lock]);
    configuration.locks = torture::settings();
    for setting in &args.set {
        configuration.set(setting)?;
    }
    let numa_nodes = match args.numa_nodes {
        Some(nodes) => made_up_nodes(nodes, &configuration)?,
        None => NumaNodes::by(&configuration.locks),
    };
    let default = default_plan(Duration::from_secs(args.shutdown_secs));
    let writers = args.nwriters.unwrap_or(default.writers);
    if writers > WRITERS_MAX {
        return Err(TooManyWriters { writers }.into());
    }
    Ok(Plan {
        writers,
        numa_nodes,
        waiting: match args.wait {
            WaitPolicy::Spin => Waiting::Spin,
            WaitPolicy::Yield => Waiting::Yield,
        },
        stat_interval: Duration::from_secs(args.stat_interval),
        stutter: Duration::from_secs(args.stutter),
        long_hold_ms: args.long_hold,
        priority_percent: args.priority_percent,
        hang: Duration::from_secs(args.hang_secs),
        settings: configuration.locks,
        ..default
    })
}

/// Writers claim made-up nodes, so that the settings `numa.*` would say nothing.
fn made_up_nodes(nodes: u32, configuration: &Configuration) -> Result<NumaNodes, IdleSetting> {
    let mut settings = configuration.texts().iter();
    match settings.find(|text| text.starts_with("numa.")) {
        Some(setting) => Err(IdleSetting { nodes, setting: setting.clone() }),
        None => Ok(NumaNodes::Synthetic(nodes)),
    }
}

fn locks(names: &[String]) -> anyhow::Result<Vec<&'static Subject>> {
    let mut locks = Vec::new();
    for name in names {
        if name == "all" {
            locks.extend(Subject::working());
        } else {
            locks.push(names::lock(name)?);
        }
    }
    Ok(locks)
}
