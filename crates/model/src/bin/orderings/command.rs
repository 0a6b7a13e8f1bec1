//! The command `orderings`.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::Parser;
use clap::builder::PossibleValuesParser;
use nearlock_collection::subjects::Subject;
use nearlock_model::document;
use nearlock_model::evidence::Evidence;
use nearlock_model::model::{Depth, Model};
use nearlock_model::mutate::record;
use nearlock_model::parts::PARTS;
use nearlock_model::subjects::{all_models, models_of};

/// Runs the models and drops each ordering, one at a time. The document goes to stdout, the steps
/// to stderr.
#[derive(Debug, Parser)]
#[command(name = "orderings")]
struct Cli {
    /// Run only the models of these locks or parts of core, within their own bounds. Write no
    /// document, and the steps to stdout.
    #[arg(long, value_delimiter = ',', value_name = "LOCK", value_parser = PossibleValuesParser::new(names()))]
    locks: Vec<String>,
    /// Run the models as they are, within their own bounds, and drop nothing.
    #[arg(long)]
    run_only: bool,
    /// Preemptions beyond the models' own bounds.
    #[arg(long, value_name = "N", default_value_t = 1)]
    more_preemptions: usize,
    /// Executions after which a model's search is stopped.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    executions_max: usize,
    /// In models of up to this many executions, look for consequences of a missing ordering, before
    /// stores that nothing orders count as a failure.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    consequences_max: u64,
}

/// The locks and parts that have models.
fn names() -> impl Iterator<Item = &'static str> {
    Subject::working().map(|subject| subject.name).chain(PARTS.iter().map(|(name, _)| *name))
}

fn models_called(name: &str) -> Vec<Model> {
    let part = || PARTS.iter().find(|part| part.0 == name).map(|part| part.1());
    Subject::named(name).map(models_of).or_else(part).unwrap_or_default()
}

/// Runs the command.
pub fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    if !cli.locks.is_empty() {
        return Ok(of_locks(&cli));
    }
    if cli.run_only {
        return Ok(run(&all_models()));
    }
    let begin = Instant::now();
    let Cli { more_preemptions, consequences_max, .. } = cli;
    let depth = Depth { more_preemptions, executions_max: Some(cli.executions_max), consequences_max };
    let tell = |step: &dyn std::fmt::Display| eprintln!("{:4} s: {step}", begin.elapsed().as_secs());
    let evidence = Evidence::gather(&all_models(), depth, tell);
    print!("{}", document::render(&evidence, depth)?);
    Ok(ExitCode::SUCCESS)
}

/// For a few locks: which models hold, and which of their orderings these locks need by themselves.
fn of_locks(cli: &Cli) -> ExitCode {
    let models: Vec<_> = cli.locks.iter().flat_map(|name| models_called(name)).collect();
    if cli.run_only {
        return run(&models);
    }
    let depth = Depth { consequences_max: cli.consequences_max, ..Depth::default() };
    let evidence = Evidence::gather(&models, depth, |_| ());
    evidence.runs.iter().for_each(|run| println!("{run}"));
    evidence.mutants.iter().for_each(|mutant| println!("{mutant}"));
    let all_caught = evidence.mutants.iter().all(|mutant| mutant.caught().is_some());
    if all_caught { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs the models as they are. A model that does not hold prints that and panics.
fn run(models: &[Model]) -> ExitCode {
    models.iter().for_each(|model| println!("{}", record(model, Depth::default()).0));
    ExitCode::SUCCESS
}
