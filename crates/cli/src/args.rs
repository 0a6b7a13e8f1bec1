//! The flags: a module per command, and the shared parts.

mod bench;
mod completions;
mod list;
mod man;
mod measure;
mod mistakes;
mod priority;
mod reproduce;
mod simulate;
pub mod threads;
mod torture;
mod validate;

use std::ops::RangeInclusive;

use clap::{Parser, Subcommand, ValueEnum};
use nearlock_lab::{locks, names, quantity};

pub use bench::{BenchArgs, BenchMode};
pub use completions::CompletionsArgs;
pub use list::{ListArgs, Listed};
pub use man::ManArgs;
pub use measure::MeasureArgs;
pub use priority::Priority;
pub use reproduce::ReproduceArgs;
pub use simulate::SimulateArgs;
pub use threads::ThreadRange;
pub use torture::{TortureArgs, WaitPolicy};
pub use validate::ValidateArgs;

const EXIT_CODES: &str = "\
Exit status:
  0  success
  1  a lock or a requested check failed, also if Ctrl-C ended the command then; or the results
     could not be written
  2  the command line was not understood
  130  interrupted by Ctrl-C: the results so far are written, and marked as partial (`reproduce`:
     finished tables; `validate`: finished cells; `measure`: nothing)

Results go to standard output, progress and all other messages to standard error.";

/// Locks for threads that contend: measures and tests them here, simulates other machines.
///
/// Without a command: a tour of a minute that measures this machine and reproduces a published
/// table.
#[derive(Debug, Parser)]
#[command(name = "nearlock", version, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Cli {
    /// The command line of this process.
    ///
    /// # Errors
    ///
    /// A text that was asked for, such as the help, or a mistake with suggestions.
    pub fn of_process() -> Result<Self, clap::Error> {
        let mut cli = Self::try_parse().map_err(mistakes::explained)?;
        if let Some(Command::Reproduce(args)) = &mut cli.command {
            args.all_is_no_table();
        }
        Ok(cli)
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    Bench(BenchArgs),
    List(ListArgs),
    Measure(MeasureArgs),
    Reproduce(ReproduceArgs),
    Simulate(SimulateArgs),
    Torture(TortureArgs),
    Validate(ValidateArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// How results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// One array of objects
    Json,
    /// Comma-separated values with a header
    Csv,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("it must be a whole number, 1 or more".to_owned()),
        Ok(number) => Ok(number),
    }
}

/// The greatest number of seeds. More are never needed, and many more would not fit in memory.
const SEEDS_MAX: usize = 10_000;

/// Reads a time within these limits: a whole number of `unit`, or one with its own unit.
fn time(
    unit: &'static str,
    limits: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text| {
        let time = quantity::read(text, unit).filter(|time| limits.contains(time));
        time.ok_or_else(|| {
            let (min, max) = limits.clone().into_inner();
            let forms = quantity::forms(unit).unwrap_or_default();
            format!("it must be {min} to {max} {unit}: {forms}")
        })
    }
}

/// Reads the length of some work, in ns. At most 0.1 s.
fn work_ns(text: &str) -> Result<u64, String> {
    const WORK_NS_MAX: u64 = 100_000_000;
    time("ns", 0..=WORK_NS_MAX)(text)
}

/// Reads a list of locks. Peers and `all` get their usual spelling. Control characters, which no
/// name has, are escaped, since messages repeat the names.
fn lock_list(text: &str) -> Result<String, String> {
    let list = [names::escaped(text)];
    Ok(locks::entries(&list).into_iter().map(usual).collect::<Vec<_>>().join(","))
}

/// Reads the name of a peer, or `all`.
fn peer(text: &str) -> Result<String, String> {
    Ok(usual(text).to_owned())
}

/// Peers and `all` without capitals and with their own hyphens; other names as they are.
fn usual(name: &str) -> &str {
    const ALL: &str = "all";
    if names::is_same(name, ALL) { ALL } else { names::peer(name).unwrap_or(name) }
}

fn seeds(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=SEEDS_MAX).contains(number));
    number.ok_or_else(|| format!("it must be a whole number from 1 to {SEEDS_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_flags_are_well_formed() {
        Cli::command().debug_assert();
    }
}
