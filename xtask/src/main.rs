//! `cargo xtask`: checks of the repository that `cargo test -p xtask` does not make, as they take longer.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use xtask::{asm, coverage};

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
}

fn main() -> Result<ExitCode> {
    let (report, findings) = match Cli::parse().task {
        Task::Asm => asm::run()?,
        Task::Coverage => coverage::run()?,
    };
    print!("{report}");
    for finding in &findings {
        eprintln!("\n{finding}");
    }
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
