//! The command `nearlock`: flags and glue. What it does is in `nearlock-lab`.

mod args;
mod commands;
mod helper;
mod interrupt;
mod out;
mod progress;
mod report;

use std::io::{self, Write};
use std::process::ExitCode;

use args::{Cli, Command};

/// How a command ended, if it could be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// All is well.
    Success,
    /// A lock failed, or a requested check.
    CheckFailed,
    /// SIGINT ended it. The results so far were written.
    Interrupted,
}

/// A lock or a check failed, or results could not be written.
const EXIT_CHECK_FAILED: u8 = 1;
/// The command was not understood.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    let ended = helper::run().unwrap_or_else(command).and_then(|ending| {
        io::stdout().flush()?;
        Ok(ending)
    });
    match ended {
        Ok(Ending::Success) => ExitCode::SUCCESS,
        Ok(Ending::CheckFailed) => ExitCode::from(EXIT_CHECK_FAILED),
        Ok(Ending::Interrupted) => ExitCode::from(interrupt::EXIT_STATUS),
        Err(error) => match error.downcast_ref::<io::Error>() {
            // The reader of the results has closed the pipe, which is no error.
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Some(error) => {
                report::say(format_args!("error: cannot write the results: {error}"));
                ExitCode::from(EXIT_CHECK_FAILED)
            }
            None => {
                report::error(&error);
                ExitCode::from(EXIT_USAGE)
            }
        },
    }
}

/// Runs the command of the command line.
fn command() -> anyhow::Result<Ending> {
    match Cli::of_process() {
        Ok(cli) => run(&cli),
        Err(message) if message.use_stderr() => message.exit(),
        Err(help) => help.print().map(|()| Ending::Success).map_err(Into::into),
    }
}

fn run(cli: &Cli) -> anyhow::Result<Ending> {
    match &cli.command {
        None => commands::tour::run(),
        Some(Command::Bench(args)) => commands::bench::run(args),
        Some(Command::List(args)) => commands::list::run(args),
        Some(Command::Measure(args)) => commands::measure::run(args),
        Some(Command::Reproduce(args)) => commands::reproduce::reproduce(args),
        Some(Command::Simulate(args)) => commands::simulate::run(args),
        Some(Command::Torture(args)) => commands::torture::run(args),
        Some(Command::Validate(args)) => commands::validate::run(args),
        Some(Command::Completions(args)) => commands::completions::run(args),
        Some(Command::Man(args)) => commands::man::run(args),
    }
}
