//! `nearlock validate`.

use std::fmt::Display;
use std::io::{self, Write};

use anyhow::bail;
use nearlock_bench::bench::TestBed;
use nearlock_bench::measure::{self, MeasureError};
use nearlock_bench::validate::{self, Effort, MEAN_ERROR_MAX, Report, Row, Step, ValidateError};
use nearlock_lab::settings::{Configuration, Group};
use nearlock_lab::{MachineSpec, names};

use crate::Ending;
use crate::args::{Format, ValidateArgs};
use crate::out::OutDir;
use crate::report::provenance::Provenance;
use crate::report::{self, Extent};
use crate::{interrupt, progress};

/// The machine's name where no file gives one.
const NAME: &str = "this-machine";

/// Measures and simulates the grid.
pub fn run(args: &ValidateArgs) -> anyhow::Result<Ending> {
    let file = args.machine.as_deref().map(names::machine).transpose()?;
    let mut configuration = Configuration::new(&[Group::Machine]);
    for setting in &args.set {
        configuration.set(setting)?;
    }
    check_settings(&configuration, file.as_ref())?;
    let out = args.out.as_deref().map(OutDir::make).transpose()?;
    let this = TestBed::this();
    if let Some(machine) = &file {
        check_described(machine, &this)?;
    }
    if !this.optimised {
        report::say("warning: built without optimisation: these figures say nothing; build with --release");
    }
    report::say(args.priority.permitted());
    interrupt::watch()?;
    let mut machine = match file.map_or_else(|| measured(args), Ok) {
        Ok(machine) => machine,
        Err(MeasureError::Interrupted) => return Ok(nothing_done()),
        Err(error) => return Ok(failed(&error)),
    };
    configuration.configure_machine(&mut machine)?;
    let effort = if args.quick { Effort::QUICK } else { Effort::FULL };
    let bar = progress::cells(validate::steps(&machine, effort));
    let found = validate::run(&machine, effort, args.priority.into(), |step| {
        bar.inc(u64::from(step == Step::Planned));
        interrupt::check()
    });
    bar.finish_and_clear();
    let found = match found {
        Ok(found) => found,
        Err(ValidateError::Interrupted) => return Ok(nothing_done()),
        Err(error) => return Ok(failed(&error)),
    };
    let cpus: Vec<String> = found.cpus.iter().map(ToString::to_string).collect();
    report::say(format_args!("threads on CPU {}", cpus.join(" and ")));
    if let cells @ 1.. = found.without_bursts() {
        report::say(format_args!(
            "warning: {cells} cells have no burst that counts: threads were taken off their CPUs, or these are farther \
             or nearer than {} says, as a hypervisor may place them; measure the machine again",
            machine.name
        ));
    }
    let extent = Extent { done: found.rows.len(), of: found.cells, unit: "cells" };
    if extent.is_partial() {
        report::say(format_args!(
            "warning: interrupted: {} of {} cells are finished",
            extent.done, extent.of
        ));
    }
    // Before the results, which may fail to be written.
    if let Some(out) = out {
        let provenance = Provenance::now("measured and simulated", extent, vec![]);
        out.write_results(&format!("validate-{}", machine.name), &provenance, None, |contents, format| {
            write(contents, &machine, &this, &found, format)
        })?;
    }
    let mut stdout = io::stdout().lock();
    if let (Some(mark), Format::Text) = (extent.mark(), args.format) {
        writeln!(stdout, "{mark}")?;
    }
    write(&mut stdout, &machine, &this, &found, args.format)?;
    Ok(match args.check {
        _ if extent.is_partial() => Ending::Interrupted,
        true => check(&found.rows),
        false => Ending::Success,
    })
}

/// Ctrl-C came before any cell was finished.
fn nothing_done() -> Ending {
    report::say("interrupted: no cell is finished, and nothing is written");
    Ending::Interrupted
}

/// This machine, measured.
fn measured(args: &ValidateArgs) -> Result<MachineSpec, MeasureError> {
    let effort = if args.quick { measure::Effort::Quick } else { measure::Effort::Full };
    let bar = progress::steps();
    let measured = measure::run(NAME, effort, args.priority.into(), |step| {
        bar.set_message(step.to_owned());
        interrupt::check()
    });
    bar.finish_and_clear();
    Ok(measured?.machine)
}

/// Nothing of this is a slip of the user's.
fn failed(error: &dyn Display) -> Ending {
    report::say(format_args!("FAILURE: {error}"));
    Ending::CheckFailed
}

/// Refuses, before the machine is measured, settings that the machine of the file cannot have.
/// Without a file: that no machine can have.
fn check_settings(configuration: &Configuration, file: Option<&MachineSpec>) -> anyhow::Result<()> {
    let try_on = |mut machine: MachineSpec| configuration.configure_machine(&mut machine);
    if let Some(machine) = file {
        return Ok(try_on(machine.clone())?);
    }
    let mut verdict = Ok(());
    for name in MachineSpec::builtin_names() {
        verdict = try_on(MachineSpec::builtin(name)?);
        if verdict.is_ok() {
            break;
        }
    }
    Ok(verdict?)
}

/// Refuses a description of another machine than this one.
fn check_described(machine: &MachineSpec, this: &TestBed) -> anyhow::Result<()> {
    const REMEDY: &str = "`validate` compares the simulator with the machine that it runs on. Give it the file that \
                          `nearlock measure --out FILE` writes here, or no --machine: then it measures first";
    let Some(measured) = &machine.measured else {
        bail!("--machine: {} was not measured by `nearlock measure`. {REMEDY}", machine.name);
    };
    let described = measured.processor.as_str();
    if let Some(model) = this.model.as_deref().filter(|model| *model != described) {
        bail!(
            "--machine: {} is described for {described}, and this machine has {model}. {REMEDY}",
            machine.name
        );
    }
    Ok(())
}

fn write(
    out: &mut impl Write,
    machine: &MachineSpec,
    this: &TestBed,
    found: &Report,
    format: Format,
) -> io::Result<()> {
    match format {
        Format::Text => report::validate::text(out, machine, this, found),
        Format::Json => report::json::array(out, &found.rows),
        Format::Csv => report::csv::rows(out, &found.rows),
    }
}

fn check(rows: &[Row]) -> Ending {
    let mean = validate::mean_error(rows, |_| true).map_or(f64::NAN, |(mean, _)| mean);
    if mean <= MEAN_ERROR_MAX {
        return Ending::Success;
    }
    let (mean, bound) = (mean * 100.0, MEAN_ERROR_MAX * 100.0);
    report::say(format_args!("CHECK FAILED: mean absolute error {mean:.1} %, bound {bound:.1} %"));
    Ending::CheckFailed
}
