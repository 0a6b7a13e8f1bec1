//! The flags.

use clap::{Args, Parser, Subcommand, ValueEnum};

const EXIT_CODES: &str = "\
Exit status:
  0  success
  1  a lock failed, or a check that was asked for
  2  the command line was not understood

Results go to standard output; progress and everything else to standard error.";

/// Locks for big machines: tortured on this one, simulated on others.
///
/// Without a command: a tour of a minute, with this machine measured and a published table reproduced.
#[derive(Debug, Parser)]
#[command(name = "nearlock", version, after_help = EXIT_CODES, disable_help_subcommand = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    List(ListArgs),
    Reproduce(ReproduceArgs),
    Simulate(SimulateArgs),
    Torture(TortureArgs),
}

/// Lists what can be named on the command line.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// What to list.
    #[arg(value_enum, value_name = "locks|workloads|machines|tables|settings")]
    pub what: Listed,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Listed {
    /// Locks, those that are broken on purpose included
    Locks,
    /// What is run over the locks
    Workloads,
    /// Machines that can be simulated
    Machines,
    /// Published tables that can be reproduced
    Tables,
    /// What `--set` takes
    Settings,
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

const REPRODUCE_EXAMPLES: &str = "\
Examples:
  nearlock reproduce --quick
  nearlock reproduce cna-locktorture --seeds 32 --format json > cells.json

A cell is the median over seeds, which draw where the threads run: 16 seeds up to 36 threads,
8 above (--quick: 12 up to 8 threads, 6 up to 36, 3 above, half the window). `error` in JSON and CSV
is (simulated - published) / published: 0.05 is 5 %. A cell is `fitted` if the simulator's
parameters were chosen with it, `seen` if it was looked at while the model's structure was chosen,
and otherwise `predicted`. Of cna-locktorture every cell is fitted or seen: none is a prediction.";

/// Simulates published tables, and shows both.
#[derive(Debug, Args)]
#[command(after_help = REPRODUCE_EXAMPLES)]
pub struct ReproduceArgs {
    /// Tables (`nearlock list tables`); all unless given.
    #[arg(value_name = "TABLE")]
    pub tables: Vec<String>,
    /// Take fewer seeds and a shorter window: a minute or less.
    #[arg(long)]
    pub quick: bool,
    /// Number of seeds for each cell.
    #[arg(long, value_name = "N", value_parser = seeds)]
    pub seeds: Option<usize>,
    /// How to write the results.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
    /// Exit with 1 if a table misses its bound on the mean absolute error.
    #[arg(long)]
    pub check: bool,
}

const SIMULATE_EXAMPLES: &str = "\
Examples:
  nearlock simulate --machine haswell-ex-4s --lock qspinlock,cna-v13 --threads 1,36,142
  nearlock simulate --machine my-server.toml --lock cna-v13 --threads 64 --seeds 8 \\
      --set cna-v13.threshold-ns=1000000 --set machine.smt=1 --format csv

One row per lock, number of threads and seed. All times are virtual nanoseconds; `ops_per_us` is
acquisitions per microsecond by all threads together; the rare long holds of locktorture, which are
not simulated, are in it at their mean, 500 ns divided by the number of threads. The same seed gives
the same row, in every process. If a lock fails (exclusion violated, deadlock, livelock, starvation),
the command that repeats it is printed.";

/// Simulates locks on a machine.
#[derive(Debug, Args)]
#[command(after_help = SIMULATE_EXAMPLES)]
pub struct SimulateArgs {
    /// Machine (`nearlock list machines`), or path of a machine file.
    #[arg(long, value_name = "M|FILE")]
    pub machine: String,
    /// Workload (`nearlock list workloads`).
    #[arg(long, value_name = "W", default_value = "locktorture")]
    pub workload: String,
    /// Locks (`nearlock list locks`).
    #[arg(long, value_name = "L,L,...", value_delimiter = ',', required = true)]
    pub lock: Vec<String>,
    /// Numbers of threads, each at most the machine's number of CPUs.
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', required = true, value_parser = at_least_one)]
    pub threads: Vec<usize>,
    /// Number of seeds for each lock and number of threads.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seeds)]
    pub seeds: usize,
    /// The first seed; the others follow it.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Set something of a lock, the machine, the workload or the simulation (`nearlock list settings`).
    #[arg(long, value_name = "NAME.KEY=VALUE")]
    pub set: Vec<String>,
    /// How to write the results.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}

const TORTURE_EXAMPLES: &str = "\
Examples:
  nearlock torture all
  nearlock torture cna-v13,qspinlock --nwriters 64 --shutdown-secs 60 --stat-interval 5
  nearlock torture lock-busted          (ends in FAILURE: that is what it is for)

Judged are exclusion and progress. Marks: ??? after Max/Min means that one writer got the lock more
than twice as often as another (no failure), !!! after Fail that a writer saw another hold the lock.
How many writers take part, and how they pass the time between acquisitions, changes every 50 or
150 ms at random, so that queues run full and empty: totals are no benchmark. Unless set,
cna-v13.threshold-ns is 1000000 and cna-v13.shuffle-reduction is 2, so that every path of CNA is
taken often. One that was not is named after NOT TAKEN: the run says nothing about it.";

/// Tortures locks on this machine, as the kernel's locktorture does.
#[derive(Debug, Args)]
#[command(after_help = TORTURE_EXAMPLES)]
pub struct TortureArgs {
    /// Locks (`nearlock list locks`), or `all`: those that mean to work.
    #[arg(value_name = "LOCK,...|all", value_delimiter = ',', required = true)]
    pub locks: Vec<String>,
    /// Number of writers, up to 8192; unless given twice the CPUs, but at least 4, so that every path of
    /// CNA can be taken.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub nwriters: Option<usize>,
    /// How long to torture each lock, in s.
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub shutdown_secs: u64,
    /// Report to standard error every so many s; 0: never.
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub stat_interval: u64,
    /// All writers run for so many s, then pause as long, and so on; 0: they never pause (the kernel: 5).
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub stutter: u64,
    /// Length of the rare long holds, in ms; 0: none.
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(..=60_000))]
    pub long_hold: u64,
    /// How waiting writers pass the time.
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    pub wait: WaitPolicy,
    /// Number of made-up NUMA nodes, to which the writers belong in turn; unless given the machine's own,
    /// or two made-up ones if it has only one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub numa_nodes: Option<u32>,
    /// Of 100 acquisitions, how many are urgent.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=100))]
    pub priority_percent: u64,
    /// A lock that nobody acquires for so many s is hung, and fails.
    #[arg(long, value_name = "S", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub hang_secs: u64,
    /// Set something of a lock (`nearlock list settings`).
    #[arg(long, value_name = "NAME.KEY=VALUE")]
    pub set: Vec<String>,
    /// How to write the results.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}

/// Waiting policies.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum WaitPolicy {
    /// Pause: for no more writers than CPUs
    Spin,
    /// Pause shortly, then offer the CPU to others
    #[default]
    Yield,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("it must be a whole number, 1 or more".to_owned()),
        Ok(number) => Ok(number),
    }
}

/// More are never needed, and many more would not fit in memory.
const SEEDS_MAX: usize = 10_000;

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
