//! `cargo xtask`: checks of the repository that `cargo test -p xtask` does not make, as they take longer.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use xtask::{asm, coverage, orderings};

/// Checks of this repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Compares the machine code of the locks' fast paths with that of hand-written twins (crates/twins).
    ///
    /// Exit status 1 if one of ours has more instructions, or a lock of Linux' is not 4 bytes.
    Asm,
    /// Shows which lines of crates/core its unit tests and the torture reach, and why not the others.
    ///
    /// Exit status 1 if fewer than 95 % are reached, or nobody knows why a line is not. Takes a few minutes.
    Coverage,
    /// Runs the models of every lock, drops each ordering in turn, and writes docs/orderings.md: some minutes.
    ///
    /// Exit status 1 if a model fails, or an ordering is not needed.
    Orderings {
        /// Writes nothing, but compares: exit status 1 if the document is not what it would be.
        #[arg(long, conflicts_with = "locks")]
        check: bool,
        /// Only of these locks, to be looked at; writes nothing.
        #[arg(long, value_name = "LOCK,...")]
        locks: Option<String>,
    },
}

fn main() -> Result<ExitCode> {
    let (report, findings) = match Cli::parse().task {
        Task::Asm => asm::run()?,
        Task::Coverage => coverage::run()?,
        Task::Orderings { locks: Some(locks), .. } => (String::new(), orderings::show(&locks)?),
        Task::Orderings { check: true, .. } => (String::new(), orderings::check()?),
        Task::Orderings { .. } => (orderings::write()?, Vec::new()),
    };
    print!("{report}");
    for finding in &findings {
        eprintln!("\n{finding}");
    }
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
