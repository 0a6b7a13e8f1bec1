//! `nearlock simulate`.

use std::io::{self, Write};

use nearlock_lab::settings::{Configuration, Group};
use nearlock_lab::simulate::{Facts, Simulation};
use nearlock_lab::sweep::{self, Outcome};
use nearlock_lab::{locks, names, plot};

use crate::Ending;
use crate::args::{Format, SimulateArgs, threads};
use crate::out::OutDir;
use crate::report::Extent;
use crate::report::provenance::Provenance;
use crate::report::text::paragraph;
use crate::report::verdict::{self, Simulations};
use crate::{interrupt, progress, report};

/// A number of threads that the workload cannot have on the machine.
#[derive(Debug, thiserror::Error)]
enum TooManyThreads {
    #[error("--threads {threads}: {machine} has {cpus} CPUs, and each thread needs one: 1 to {cpus}")]
    ForMachine { threads: usize, machine: String, cpus: usize },
    #[error("--threads {threads}: {workload} has at most {threads_max} threads: 1 to {threads_max}")]
    ForWorkload { threads: usize, workload: String, threads_max: usize },
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
    let total = simulations.len();
    let mut done = 0;
    let outcomes = sweep::run(&simulations, |_, _| {
        bar.inc(1);
        done += 1;
        interrupt::check_before_end(done, total)
    });
    bar.finish_and_clear();
    let results = Results::of(&simulations, outcomes);
    if results.extent.is_partial() {
        report::say(format_args!(
            "warning: interrupted: {} of {total} cells are simulated",
            results.extent.done
        ));
    }
    let command_of =
        |failure| sweep::command(&args.machine, &args.workload, failure, configuration.assigned());
    // Before the results, since standard output may have no reader.
    if let (Some(out), Some(Simulation { machine, .. })) = (out, simulations.first()) {
        let failures = results
            .simulated
            .failures
            .iter()
            .map(|failure| report::failed(failure, &command_of(failure)))
            .collect();
        let provenance = Provenance::now("simulated", results.extent, failures);
        let stem = format!("simulate-{}-{}", machine.name, args.workload);
        let mut notes = provenance.notes();
        notes.extend(report::set(configuration.assigned()));
        let picture = plot::simulated(&results.simulated.rows, machine, &notes)?;
        out.write_results(&stem, &provenance, picture.as_deref(), |contents, format| {
            write(contents, &results, format)
        })?;
    }
    write(&mut io::stdout().lock(), &results, args.format)?;
    for failure in &results.simulated.failures {
        report::failure(failure, &command_of(failure));
    }
    Ok(match results.simulated.failures.is_empty() {
        false => Ending::CheckFailed,
        true if results.extent.is_partial() => Ending::Interrupted,
        true => Ending::Success,
    })
}

/// The results of the simulations.
struct Results<'a> {
    simulated: Simulations<'a>,
    extent: Extent,
}

impl<'a> Results<'a> {
    fn of(simulations: &'a [Simulation], outcomes: Vec<Outcome>) -> Self {
        let extent = Extent { done: outcomes.len(), of: simulations.len(), unit: "cells" };
        let mut locks: Vec<&str> = Vec::new();
        for simulation in simulations {
            if !locks.contains(&simulation.lock.name) {
                locks.push(simulation.lock.name);
            }
        }
        let threads_max = simulations.iter().map(|simulation| simulation.threads).max().unwrap_or(0);
        let (mut rows, mut failures) = (Vec::new(), Vec::new());
        for outcome in outcomes {
            match outcome {
                Ok(row) => rows.push(row),
                Err(failure) => failures.push(failure),
            }
        }
        Self { simulated: Simulations { locks, threads_max, rows, failures }, extent }
    }
}

/// The cells, lock by lock.
fn simulations(args: &SimulateArgs, configuration: &Configuration) -> anyhow::Result<Vec<Simulation>> {
    let locks = locks::entries(&args.lock).into_iter().map(locks::lock).collect::<Result<Vec<_>, _>>()?;
    let workload = configuration.workload(&args.workload)?;
    let mut machine = names::machine(&args.machine)?;
    configuration.configure_machine(&mut machine)?;
    let Facts { threads_max, group, .. } = workload.facts(&machine);
    let numbers = threads::resolve(&args.threads, machine.cpus())?;
    if let Some(&threads) = numbers.iter().find(|&&threads| threads > threads_max) {
        let cpus = machine.cpus();
        let workload = args.workload.clone();
        return Err(match threads_max != cpus {
            true => TooManyThreads::ForWorkload { threads, workload, threads_max },
            false => TooManyThreads::ForMachine { threads, machine: machine.name, cpus },
        }
        .into());
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

fn write(out: &mut impl Write, results: &Results, format: Format) -> io::Result<()> {
    let rows = &results.simulated.rows;
    match format {
        Format::Text => text(out, results),
        Format::Json => report::json::simulated(out, rows),
        Format::Csv => report::csv::rows(out, rows),
    }
}

/// The rows and the verdict.
fn text(out: &mut impl Write, results: &Results) -> io::Result<()> {
    let Results { simulated, extent } = results;
    if let Some(mark) = extent.mark() {
        writeln!(out, "{mark}")?;
    }
    report::text::simulated(out, &simulated.rows)?;
    match verdict::simulated(simulated) {
        Some(verdict) => paragraph(out, &format!("\n{verdict}")),
        None => Ok(()),
    }
}
