//! Flags of `nearlock validate`.

use std::path::PathBuf;

use clap::Args;

use super::{Format, Priority};

const EXAMPLES: &str = "\
Examples:
  nearlock validate
  nearlock measure --out my-server.toml && nearlock validate --machine my-server.toml
  nearlock validate --machine my-server.toml --format csv --out results
  nearlock validate --machine my-server.toml --check || echo 'the simulator is off here'

A fixed grid: four locks, one and two threads, three lengths of sections, three of the work between
them. Each cell is measured in short bursts by threads that are kept on two CPUs, before ordinary
programs if the system permits (as root: nice -20), and simulated on the machine file. With
`--priority as-started` the threads keep the priority of the command. The error is
(simulated - measured) / measured. Takes about half a minute. docs/laboratory/validate.md says how to read it.";

/// Holds the simulator against this machine: a grid of locks, measured and simulated.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ValidateArgs {
    /// The file that `nearlock measure` wrote on this machine. A description of another machine is
    /// refused. Without a file the machine is measured first.
    #[arg(long, value_name = "FILE")]
    pub machine: Option<String>,
    /// Set something of the simulated machine (`nearlock list settings`).
    #[arg(long, value_name = "machine.KEY=VALUE")]
    pub set: Vec<String>,
    /// A few short bursts and short simulations: to see that it works, not how well.
    #[arg(long)]
    pub quick: bool,
    /// Exit status 1 if the mean absolute error over the grid is more than 25 %.
    #[arg(long)]
    pub check: bool,
    /// Priority of the threads that measure.
    #[arg(long, value_enum, ignore_case = true, default_value_t, value_name = "PRIORITY")]
    pub priority: Priority,
    /// How to write the results.
    #[arg(long, value_enum, ignore_case = true, default_value_t, value_name = "FORMAT")]
    pub format: Format,
    /// Write the results into this directory too, as JSON and CSV. It is made if it is not there;
    /// files of the same name are replaced.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
