//! `nearlock bench`.

mod choice;
mod modes;
mod readers;
mod situations;

use std::io::{self, Write};
use std::time::Duration;

use anyhow::Context;
use nearlock_bench::bench::{self, BenchError, Calibration, Failed, Mode, Plan, Row, TestBed};
use nearlock_bench::torture::Waiting;
use nearlock_lab::plot;
use nearlock_lab::settings::{Configuration, Group};

use crate::Ending;
use crate::args::{BenchArgs, Format, WaitPolicy};
use crate::out::OutDir;
use crate::report::Extent;
use crate::report::bench::Measured;
use crate::report::provenance::Provenance;
use crate::{helper, interrupt, progress, report};
use choice::Choice;

/// A machine with more runnable threads per CPU than this before the start is noisy.
const LOAD_PER_CPU_MAX: f64 = 0.25;
/// A machine is also noisy if the middle half of the baseline's rounds is wider than this share of
/// the median.
const SPREAD_MAX: f64 = 0.1;

/// The greatest duration of a run whose window is not given.
const LIMIT: Duration = Duration::from_secs(9 * 60);
/// The range of the windows that are chosen to meet the limit.
const WINDOW_LEAST: Duration = Duration::from_millis(10);
const WINDOW_MOST: Duration = Duration::from_millis(50);
/// The duration of a run is printed at its start if it is longer than this.
const LONG: Duration = Duration::from_secs(30);

/// Measures the requested locks.
pub fn run(args: &BenchArgs) -> anyhow::Result<Ending> {
    let machine = TestBed::this();
    let plan = plan(args, &machine)?;
    plan.suits(&machine)?;
    let out = args.out.as_deref().map(OutDir::make).transpose()?;
    warn_before(&machine, &plan);
    let calibration = Calibration::measure();
    let total = plan.runs();
    let bar = progress::runs(total);
    interrupt::watch()?;
    let mut done = 0;
    let measured = bench::run(&plan, &machine, &calibration, || {
        bar.inc(1);
        done += 1;
        interrupt::check_before_end(done, total)
    });
    bar.finish_and_clear();
    let measured = match measured {
        // The user cannot correct the other errors on the command line, and these only in part.
        Err(error @ (BenchError::Spawn { .. } | BenchError::Pin { .. } | BenchError::Helper(_))) => {
            report::say(format_args!("error: {error}"));
            return Ok(Ending::CheckFailed);
        }
        other => other?,
    };
    if measured.is_partial {
        report::say("warning: interrupted: situations are missing, and the last one has fewer rounds");
    }
    let spread = measured.spread.filter(|spread| spread.share > SPREAD_MAX);
    if let Some(spread) = &spread {
        report::say(format_args!(
            "warning: noisy machine: the middle half of {}'s rounds is {:.0} % wide; use more rounds",
            spread.baseline,
            spread.share * 100.0
        ));
    }
    let result = Measured {
        machine: &machine,
        calibration: &calibration,
        plan: &plan,
        rows: &measured.rows,
        gates: &measured.gates,
        is_noisy: busy(&machine).is_some() || spread.is_some(),
    };
    let extent = Extent { done, of: total, unit: "runs" };
    let sentence = |failed: &Failed| {
        let case = failed.mode.case().map_or(String::new(), |case| format!(" in {case}"));
        format!("{}{case} with {}: {}", failed.lock, failed.point, failed.failure)
    };
    let failures: Vec<String> = measured.failed.iter().map(sentence).collect();
    if let Some(out) = out {
        let provenance = Provenance::now("measured", extent, failures.clone());
        write_files(&out, &result, &provenance.with("gates", &measured.gates)?)?;
    }
    let mut stdout = io::stdout().lock();
    if let (Some(mark), Format::Text) = (extent.mark(), args.format) {
        writeln!(stdout, "{mark}")?;
    }
    write(&mut stdout, &result, args.format)?;
    for failure in &failures {
        report::say(format_args!("FAILURE: {failure}"));
    }
    Ok(match measured.failed.is_empty() {
        false => Ending::CheckFailed,
        true if measured.is_partial => Ending::Interrupted,
        true => Ending::Success,
    })
}

fn write(out: &mut impl Write, result: &Measured, format: Format) -> io::Result<()> {
    match format {
        Format::Text => report::bench::text(out, result),
        Format::Json => report::json::array(out, result.rows),
        Format::Csv => report::csv::rows(out, result.rows),
    }
}

/// The situations in the title of a picture, and the name of its file.
fn names_of_picture(modes: &[Mode], percent: Option<u64>, baseline: &str) -> (String, String) {
    let names: Vec<_> = modes.iter().map(|mode| mode.name()).collect();
    let reads = |percent: u64| (format!(", {percent} % reads"), format!("-reads-{percent}"));
    let (in_title, in_file) = percent.map(reads).unwrap_or_default();
    (format!("{}{in_title}", names.join(" and ")), format!("bench-{}-{baseline}{in_file}.svg", names[0]))
}

/// Writes the results as files, with a picture for pinned threads and one for threads that the
/// scheduler places, for each percentage of reads.
fn write_files(out: &OutDir, result: &Measured, provenance: &Provenance) -> anyhow::Result<()> {
    let mut comparisons = Vec::new();
    for modes in [&[Mode::Parallel][..], &[Mode::Free, Mode::Oversubscribed]] {
        let percents = Row::read_percents(result.rows, modes);
        for (baseline, &percent) in
            result.plan.baselines.iter().flat_map(|baseline| percents.iter().map(move |of| (baseline, of)))
        {
            let mut notes =
                vec![report::bench::conditions(result), "Shaded: the middle half of the rounds.".to_owned()];
            notes.splice(0..0, provenance.notes());
            let speeds = Row::speeds(result.rows, modes, percent, baseline.name());
            let (title, file) = names_of_picture(modes, percent, baseline.name());
            if let Some(comparison) = plot::measured(&speeds, &title, baseline.name(), &notes)? {
                out.write(&file, comparison.whole.as_bytes())?;
                comparisons.push(comparison);
            }
        }
    }
    out.write_results("bench", provenance, None, |contents, format| write(contents, result, format))?;
    out.write("bench.html", report::bench::html(result, provenance, &comparisons).as_bytes())?;
    Ok(())
}

/// The load of the machine before the run, if other programs make it noisy.
fn busy(machine: &TestBed) -> Option<f64> {
    machine.load.filter(|load| *load > LOAD_PER_CPU_MAX * machine.cpus as f64)
}

fn warn_before(machine: &TestBed, plan: &Plan) {
    let takes = plan.takes();
    if takes > LONG {
        report::say(format_args!("this takes about {:.0} minutes", (takes.as_secs_f64() / 60.0).ceil()));
    }
    if !machine.optimised {
        report::say("warning: built without optimisation: these figures say nothing; build with --release");
    }
    if let Some(load) = busy(machine) {
        report::say(format_args!(
            "warning: noisy machine: {load:.2} threads ran on {} CPUs in the last minute (load average)",
            machine.cpus
        ));
    }
    let most = plan.cells.iter().map(|cell| cell.point.threads).max().unwrap_or(0);
    if plan.waiting == Waiting::Spin && most > machine.cpus {
        report::say(format_args!(
            "warning: --wait spin needs a CPU for each of the {most} threads, and there are {}",
            machine.cpus
        ));
    }
}

fn plan(args: &BenchArgs, machine: &TestBed) -> anyhow::Result<Plan> {
    let mut configuration = Configuration::new(&[Group::Lock]);
    for setting in &args.set {
        configuration.set(setting)?;
    }
    let situations = situations::of(args, machine)?;
    let choice = Choice::of(args, &situations)?;
    let plan = Plan {
        cells: choice.cells(situations, args.duration_ms)?,
        baselines: choice.baselines,
        rounds: args.rounds,
        window: args.duration_ms.map_or(WINDOW_MOST, Duration::from_millis),
        waiting: match args.wait {
            WaitPolicy::Spin => Waiting::Spin,
            WaitPolicy::Yield => Waiting::Yield,
        },
        helper: helper::command().context("the path of this program is not known")?,
        settings: configuration.locks,
    };
    Ok(match args.duration_ms {
        Some(_) => plan,
        None if args.full => plan.for_gates(),
        None => plan.within(LIMIT, WINDOW_LEAST, WINDOW_MOST),
    })
}
