//! Flags of `nearlock simulate`.

use std::path::PathBuf;

use clap::Args;

use super::{Format, ThreadRange, lock_list, seeds};

const EXAMPLES: &str = "\
Examples:
  nearlock simulate --machine haswell-ex-4s --lock qspinlock,cna --threads 1,36,142
  nearlock simulate --machine my-server.toml --lock cna --threads 64 --seeds 8 \\
      --set cna.threshold-ns=100000 --set machine.smt=1 --format csv
  nearlock simulate --machine epyc-rome-2s --lock mcs,cna --threads 1,8,64 --seeds 4 --out pictures

One row per lock, number of threads and seed. All times are virtual nanoseconds. `ops_per_us` is
acquisitions per microsecond by all threads together. It includes the mean of the rare long holds
of locktorture, which are not simulated: 500 ns divided by the number of threads. The same seed
gives the same row, in every process. If a lock fails (exclusion violated, deadlock, livelock,
starvation), the command that repeats the failure is printed.";

/// Simulates locks on a machine.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SimulateArgs {
    /// Machine (`nearlock list machines`), or path of a machine file.
    #[arg(long, value_name = "M|FILE")]
    pub machine: String,
    /// Workload (`nearlock list workloads`).
    #[arg(long, value_name = "W", default_value = "locktorture")]
    pub workload: String,
    /// Locks (`nearlock list locks`), each NAME or NAME[KEY=VALUE,...] with its own switches and
    /// settings, as in 'linux-mutex[handoff=off]'.
    #[arg(long, alias = "locks", value_name = "L,L,...", required = true, value_parser = lock_list)]
    pub lock: Vec<String>,
    /// Numbers of threads: 8, 1..8 (each number from 1 to 8), or 1x (one for each CPU of the
    /// machine). Most workloads have at most one thread for each CPU.
    #[arg(long, value_name = "N|N..N|Nx,...", value_delimiter = ',', required = true)]
    pub threads: Vec<ThreadRange>,
    /// Number of seeds for each lock and number of threads.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seeds)]
    pub seeds: usize,
    /// The first seed; the others follow it.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Change a setting of a lock, the machine, the workload or the simulation (`nearlock list
    /// settings`).
    #[arg(long, value_name = "NAME.KEY=VALUE")]
    pub set: Vec<String>,
    /// Record waits and holds of each of the workload's locks, in virtual time, and show them in
    /// the columns of LOCK_PROFILING(9) and the events of lockstat(1) of FreeBSD. Not with
    /// --format csv.
    #[arg(long)]
    pub lockstat: bool,
    /// How to write the results.
    #[arg(long, value_enum, ignore_case = true, default_value_t, value_name = "FORMAT")]
    pub format: Format,
    /// Also write the results into this directory, as a picture (SVG), JSON and CSV. The
    /// directory is created if necessary; files of the same name are replaced.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
