//! Flags of `nearlock measure`.

use std::path::PathBuf;

use clap::Args;

use super::Priority;

const EXAMPLES: &str = "\
Examples:
  nearlock measure --out my-server.toml
  nearlock simulate --machine my-server.toml --lock qspinlock,cna --threads 1,2
  taskset -c 0-15 nearlock measure > one-socket.toml        (only these CPUs)

The machine file goes to standard output, or with --out into a file. A table of the figures with
their quartiles goes to standard error. The file describes the CPUs that the process may use. Its
notes contain what could not be measured, and what a machine file has no field for. As root, or with
the capability CAP_SYS_NICE, the threads that measure run ahead of all other threads for about ten
seconds; `--priority as-started` avoids this. Measure while the machine is idle.
docs/laboratory/measure.md explains each figure.";

/// Measures this machine's latencies, and writes them as a machine file of the simulator.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct MeasureArgs {
    /// Write the machine file here, instead of to standard output. An existing file is replaced in
    /// one step, after the measurement. The machine gets the name of the file; without --out, it is
    /// called `this-machine`.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Take one second instead of ten: the figures are rough.
    #[arg(long)]
    pub quick: bool,
    /// Priority of the threads that measure.
    #[arg(long, value_enum, ignore_case = true, default_value_t, value_name = "PRIORITY")]
    pub priority: Priority,
}
