//! `nearlock simulate`.

use std::io::{self, Write};

use nearlock_lab::settings::{Assignment, Configuration, Group};
use nearlock_lab::simulate::{Facts, Simulated, Simulation};
use nearlock_lab::sweep;
use nearlock_lab::{MachineSpec, locks, names, plot};

use crate::Ending;
use crate::args::{Format, SimulateArgs, threads};
use crate::out::OutDir;
use crate::report::provenance::Provenance;
use crate::{interrupt, progress, report};

/// A number of threads that the machine has no CPUs for.
#[derive(Debug, thiserror::Error)]
#[error("--threads {threads}: {machine} has {cpus} CPUs, and each thread needs one: 1 to {cpus}")]
struct TooManyThreads {
    threads: usize,
    machine: String,
    cpus: usize,
}

/// A number of threads that leaves some without a partner.
#[derive(Debug, thiserror::Error)]
#[error(
    "--threads {threads}: the threads of {workload} come in groups of {group}: give a multiple of {group}"
)]
struct OddThreads {
    threads: usize,
    workload: String,
    group: usize,
}

/// Seeds beyond the last number.
#[derive(Debug, thiserror::Error)]
#[error("--seed {first} --seeds {count}: the last seed would be beyond {}", u64::MAX)]
struct TooManySeeds {
    first: u64,
    count: usize,
}

/// Simulates the requested cells.
pub fn run(args: &SimulateArgs) -> anyhow::Result<Ending> {
    if args.lockstat {
        report::lockstat::check(args.format)?;
    }
    let mut configuration = Configuration::new(Group::ALL);
    for setting in &args.set {
        configuration.set(setting)?;
    }
    let simulations = simulations(args, &configuration)?;
    let out = args.out.as_deref().map(OutDir::make).transpose()?;
    let bar = progress::simulations(simulations.len());
    interrupt::watch()?;
    let outcomes = sweep::run(&simulations, |_, _| {
        bar.inc(1);
        interrupt::check()
    });
    bar.finish_and_clear();
    if outcomes.len() < simulations.len() {
        report::say(format_args!(
            "warning: interrupted: {} of {} cells are simulated",
            outcomes.len(),
            simulations.len()
        ));
    }
    let is_partial = outcomes.len() < simulations.len();
    let mut rows = Vec::new();
    let mut failures = Vec::new();
    for outcome in outcomes {
        match outcome {
            Ok(row) => rows.push(row),
            Err(failure) => failures.push(failure),
        }
    }
    // Before the results, since standard output may have no reader.
    if let (Some(out), Some(Simulation { machine, .. })) = (out, simulations.first()) {
        write_files(&out, &rows, machine, configuration.assigned())?;
    }
    write(&mut io::stdout().lock(), &rows, args.format)?;
    for failure in &failures {
        let command = sweep::command(&args.machine, &args.workload, failure, configuration.assigned());
        report::failure(failure, &command);
    }
    Ok(match failures.is_empty() {
        false => Ending::CheckFailed,
        true if is_partial => Ending::Interrupted,
        true => Ending::Success,
    })
}

/// The cells, lock by lock.
fn simulations(args: &SimulateArgs, configuration: &Configuration) -> anyhow::Result<Vec<Simulation>> {
    let locks = locks::entries(&args.lock).into_iter().map(locks::lock).collect::<Result<Vec<_>, _>>()?;
    let workload = configuration.workload(&args.workload)?;
    let mut machine = names::machine(&args.machine)?;
    configuration.configure_machine(&mut machine)?;
    let Facts { threads_max, group, .. } = workload.facts(&machine);
    let numbers = threads::resolve(&args.threads, machine.cpus());
    if let Some(&threads) = numbers.iter().find(|&&threads| threads > threads_max) {
        let cpus = machine.cpus();
        return Err(TooManyThreads { threads, machine: machine.name, cpus }.into());
    }
    if let Some(&threads) = numbers.iter().find(|threads| !threads.is_multiple_of(group)) {
        return Err(OddThreads { threads, workload: args.workload.clone(), group }.into());
    }
    let (first, count) = (args.seed, args.seeds);
    let last = first.checked_add(count as u64 - 1).ok_or(TooManySeeds { first, count })?;
    let mut simulations = Vec::new();
    for lock in locks {
        for &threads in &numbers {
            let of = |seed| Simulation {
                lockstat: args.lockstat,
                ..configuration.simulation(machine.clone(), workload.clone(), lock, threads, seed)
            };
            simulations.extend((first..=last).map(of));
        }
    }
    Ok(simulations)
}

fn write(out: &mut impl Write, rows: &[Simulated], format: Format) -> io::Result<()> {
    match format {
        Format::Text => report::text::simulated(out, rows),
        Format::Json => report::json::simulated(out, rows),
        Format::Csv => report::csv::rows(out, rows),
    }
}

/// Writes the picture and the rows. If every lock failed, there are none.
fn write_files(
    out: &OutDir,
    rows: &[Simulated],
    machine: &MachineSpec,
    settings: &[Assignment],
) -> anyhow::Result<()> {
    let Some(Simulated { machine: name, workload, .. }) = rows.first() else { return Ok(()) };
    let picture = plot::simulated(rows, machine, report::set(settings).as_slice())?;
    let (stem, provenance) = (format!("simulate-{name}-{workload}"), Provenance::now("simulated"));
    out.write_results(&stem, &provenance, picture.as_deref(), |contents, format| {
        write(contents, rows, format)
    })?;
    Ok(())
}
