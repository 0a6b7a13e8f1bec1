//! The flags: a module per command, and the shared parts.

mod bench;
mod completions;
mod list;
mod man;
mod measure;
mod priority;
mod reproduce;
mod simulate;
pub mod threads;
mod torture;
mod validate;

use clap::{Parser, Subcommand, ValueEnum};
use nearlock_lab::quantity;

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
  1  a lock failed, or a requested check failed
  2  the command line was not understood
  130  interrupted by Ctrl-C: the results so far are written, and marked as partial

Results go to standard output, progress and all other messages to standard error.";

/// Locks for big machines: tests them on this one, simulates others.
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

/// A time in ns: a whole number, or one with a unit, as in `1ms`. At most 0.1 s.
fn work_ns(text: &str) -> Result<u64, String> {
    const WORK_NS_MAX: u64 = 100_000_000;
    let ns = quantity::read(text, "ns").filter(|ns| *ns <= WORK_NS_MAX);
    ns.ok_or_else(|| {
        "it must be a time from 0 to 100ms: a number of ns, or one with a unit, as in 5us".to_owned()
    })
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
