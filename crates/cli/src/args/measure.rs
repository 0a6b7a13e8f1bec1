//! Flags of `nearlock measure`.

use std::path::PathBuf;

use clap::Args;

use super::Priority;

const EXAMPLES: &str = "\
Examples:
  nearlock measure --out my-server.toml
  nearlock simulate --machine my-server.toml --lock qspinlock,cna --threads 1,2
  taskset -c 0-15 nearlock measure > one-socket.toml        (these CPUs alone)

The machine file goes to standard output, or with --out into a file; a table of the figures with
their quartiles goes to standard error. What is described are the CPUs that the process may use; what
a machine file has no place for, or what could not be measured, stands in the file's notes. As root,
or with the capability CAP_SYS_NICE, the threads that measure run ahead of all other threads for
some ten seconds; `--priority as-started` avoids this. Measure while the machine is quiet.
docs/laboratory/measure.md says what each figure is.";

/// Measures this machine's latencies, and writes them as a machine file of the simulator.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct MeasureArgs {
    /// Write the machine file here, in place of standard output. A file that is there is replaced,
    /// at once and only when all is measured. The machine gets the name of the file; else it is
    /// called `this-machine`.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Take a second in place of ten: the figures are rough.
    #[arg(long)]
    pub quick: bool,
    /// Priority of the threads that measure.
    #[arg(long, value_enum, default_value_t, value_name = "PRIORITY")]
    pub priority: Priority,
}
