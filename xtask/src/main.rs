//! `cargo xtask`: checks of the repository that are not part of `cargo test -p xtask`, because they
//! take longer.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use xtask::{Finding, Misuse, asm, compile_time, coverage, locks, mutants, orderings, programs, same};

/// Checks of this repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Compares the machine code of the locks' fast paths with that of hand-written twins
    /// (crates/twins).
    ///
    /// Exit status 1 if one of ours has more instructions, or a lock of Linux' is not 4 bytes.
    Asm,
    /// Compares the processor time that an empty program which depends on nearlock takes to compile
    /// with that of one which depends on parking_lot 0.13.
    ///
    /// Exit status 1 if the median of seven rounds is more than 1.3 times as much, and the lower
    /// quartile too.
    CompileTime,
    /// Shows which lines of the locks were reached, and why the others were not.
    ///
    /// Exit status 1 if fewer than 95 % are reached, or a line is not reached for no known reason.
    /// `.ci/deep coverage` makes the tracefile.
    Coverage {
        /// What `cargo llvm-cov report --lcov` has written.
        #[arg(value_name = "TRACEFILE")]
        tracefile: PathBuf,
    },
    /// Writes docs/guide/locks.md, of the descriptions in crates/lab/src/description.
    Locks,
    /// Runs the models of every lock, drops each ordering, one at a time, and writes
    /// docs/internals/orderings.md. Takes some minutes.
    ///
    /// Exit status 1 if a model fails, or an ordering is not needed.
    Orderings {
        /// Compares instead of writing: exit status 1 if the document differs.
        #[arg(long, conflicts_with = "locks")]
        check: bool,
        /// Shows the models of these locks only, and writes nothing.
        #[arg(long, value_name = "LOCK,...")]
        locks: Option<String>,
    },
    /// Weakens random orderings of crates/core and crates/collection, one at a time, in a copy, and
    /// checks whether a test fails.
    ///
    /// Exit status 1 if one is noticed by no test. Takes one to ten minutes for each.
    Mutants(Mutants),
    /// Runs the tests of crates of crates.io that use parking_lot, with nearlock's locks in its
    /// place, and counts the acquisitions.
    ///
    /// Cargo fetches the crates. They are built below `target/programs`. If a test fails, the crate
    /// also runs with parking_lot itself, since it may be the crate's own failure. Takes half an
    /// hour for all.
    ///
    /// Exit status 1 if a test fails only with nearlock, or nearlock's locks are not used.
    Programs {
        /// Only these crates.
        #[arg(value_name = "CRATE")]
        names: Vec<String>,
        /// Fails if a crate cannot be fetched. Otherwise it is skipped.
        #[arg(long)]
        require: bool,
    },
    /// Runs parking_lot's own tests, of versions 0.12 and 0.13, with nearlock's types.
    ///
    /// Cargo fetches them. They are built below `target/programs`. Takes some minutes.
    ///
    /// Exit status 1 if a test fails that is not known to differ.
    Suites {
        /// Fails if parking_lot cannot be fetched. Otherwise it is skipped.
        #[arg(long)]
        require: bool,
    },
    /// Runs a fixed set of simulations and compares digests of what they print with xtask/same.txt.
    ///
    /// Exit status 1 if one prints something else. The command is built, unless another is given.
    /// Takes a minute or two.
    Same(Same),
}

#[derive(Debug, clap::Args)]
struct Same {
    /// Only runs whose command line contains each of these words.
    #[arg(value_name = "WORD", conflicts_with = "write")]
    words: Vec<String>,
    /// Runs everything that the command lists, and writes the file again.
    #[arg(long)]
    write: bool,
    /// A binary of the command, instead of the one that is built.
    #[arg(long, value_name = "PATH")]
    nearlock: Option<PathBuf>,
    /// An older binary of the command. It runs where results differ, to show the differences.
    #[arg(long, value_name = "PATH", conflicts_with = "write")]
    old: Option<PathBuf>,
}

impl Same {
    fn run(self) -> Result<(String, Vec<Finding>)> {
        let Self { words, write, nearlock, old } = self;
        if write {
            return Ok((same::write(nearlock.as_deref())?, Vec::new()));
        }
        same::compare(nearlock.as_deref(), &same::Comparison { old, words })
    }
}

#[derive(Debug, clap::Args)]
struct Mutants {
    /// Seed that draws the orderings, reproducible with the same sources. Random and printed by
    /// default.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Number of orderings.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    count: u16,
    /// Weakens the orderings of this line instead, named as in the table.
    #[arg(long, value_name = "FILE:LINE", conflicts_with_all = ["seed", "count"])]
    site: Option<String>,
}

impl Mutants {
    fn choice(self) -> mutants::Choice {
        match self.site {
            Some(place) => mutants::Choice::Line(place),
            None => mutants::Choice::Drawn { seed: self.seed, count: self.count.into() },
        }
    }
}

fn main() -> ExitCode {
    run(Cli::parse().task).unwrap_or_else(|error| match error.downcast_ref::<Misuse>() {
        Some(misuse) => {
            eprintln!("error: {misuse}");
            ExitCode::from(2)
        }
        None => {
            eprintln!("error: {error:?}");
            ExitCode::FAILURE
        }
    })
}

fn run(task: Task) -> Result<ExitCode> {
    let (report, findings) = match task {
        Task::Asm => asm::run()?,
        Task::CompileTime => compile_time::run()?,
        Task::Coverage { tracefile } => coverage::run(&tracefile)?,
        Task::Locks => (locks::write()?, Vec::new()),
        Task::Orderings { locks: Some(locks), .. } => (String::new(), orderings::show(&locks)?),
        Task::Orderings { check: true, .. } => (String::new(), orderings::check()?),
        Task::Orderings { .. } => (orderings::write()?, Vec::new()),
        Task::Mutants(mutants) => mutants::run(&mutants.choice())?,
        Task::Programs { names, require } => programs::run(&names, unavailable(require))?,
        Task::Suites { require } => programs::suite::run(unavailable(require))?,
        Task::Same(same) => same.run()?,
    };
    print!("{report}");
    for finding in &findings {
        eprintln!("\n{finding}");
    }
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What to do about sources that cannot be fetched.
fn unavailable(require: bool) -> programs::Unavailable {
    if require { programs::Unavailable::Fail } else { programs::Unavailable::Skip }
}
