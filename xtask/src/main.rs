//! `cargo xtask`: checks of the repository that `cargo test -p xtask` does not make, as they take longer.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use xtask::asm;

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
}

fn main() -> Result<ExitCode> {
    let Task::Asm = Cli::parse().task;
    let (report, findings) = asm::run()?;
    print!("{report}");
    for finding in &findings {
        eprintln!("\n{finding}");
    }
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
