//! Flags of `nearlock torture`.

use clap::{Args, ValueEnum};

use super::{Format, at_least_one};

const EXAMPLES: &str = "\
Examples:
  nearlock torture all
  nearlock torture cna,qspinlock --nwriters 64 --shutdown-secs 60 --stat-interval 5
  nearlock torture all --nwriters 16 --nreaders 16 --cancel-storm
  nearlock torture near-mutex,near-condvar --churn --shutdown-secs 600
  nearlock torture lock-busted          (ends in FAILURE: that is what it is for)

Judged are exclusion and progress. Marks: ??? after Max/Min means that one writer (or reader) got
the lock more than twice as often as another (no failure), !!! after Fail that somebody saw the lock
held by another who must not. How many threads take part, and how they pass the time between
acquisitions, changes every 50 or 150 ms at random, so that queues run full and empty: totals are no
benchmark. Locks with readers are also tried and downgraded, waiters that can give up also have
short limits, and with --cancel-storm are cancelled: then all threads come in rounds, and at the end
of each everybody must have had the lock or given up. With --churn the first quarter of the time
is for warming up; the middles of the second quarter and of the last are compared. Unless set,
cna.shuffle-reduction and cna-v13.shuffle-reduction are 2 and cna-v13.threshold-ns is 1000000, so that
every path of CNA is taken often. One that was not is named after NOT TAKEN: the run says nothing
about it.";

/// Tortures locks on this machine, as the kernel's locktorture does.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TortureArgs {
    /// Locks (`nearlock list locks`), each NAME or NAME[KEY=VALUE,...]: with switches and settings
    /// for itself, as in 'linux-mutex[handoff=off]'; or `all`: those that mean to work.
    #[arg(value_name = "LOCK,...|all", required_unless_present = "lock")]
    pub locks: Vec<String>,
    /// The same, as the other commands take it.
    #[arg(long, alias = "locks", value_name = "L,L,...", conflicts_with = "locks")]
    pub lock: Vec<String>,
    /// Number of writers, up to 8192 with the readers [default: twice the CPUs, at least 4; half as
    /// many if the lock has readers]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub nwriters: Option<usize>,
    /// Number of readers of locks that have them [default: as many as writers]
    #[arg(long, value_name = "N")]
    pub nreaders: Option<usize>,
    /// Cancel those who wait all the time, where waiters can give up. In three of four phases
    /// waiters then sleep without spinning, whatever spin.budget-ns is.
    #[arg(long)]
    pub cancel_storm: bool,
    /// The same, until so many waits were cancelled; --shutdown-secs counts for other locks only.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub cancellations: Option<u64>,
    /// Threads and locks come and go, --nwriters threads at a time [default: 64], each for some ms
    /// to some 100 ms. A lock fails if its threads leave memory behind.
    #[arg(long, conflicts_with_all = ["cancel_storm", "cancellations", "nreaders", "lockstat", "stutter", "numa_nodes"])]
    pub churn: bool,
    /// How long to torture each lock, in s.
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub shutdown_secs: u64,
    /// Report to standard error every so many s; 0: never.
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub stat_interval: u64,
    /// All threads run for so many s, then pause as long, and so on; 0: they never pause (the
    /// kernel: 5).
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub stutter: u64,
    /// Length of the rare long holds, in ms; 0: none.
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(..=60_000))]
    pub long_hold: u64,
    /// How waiting threads pass the time.
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    pub wait: WaitPolicy,
    /// Number of made-up NUMA nodes, to which the threads belong in turn; unless given those that
    /// the settings `numa.*` say: the machine's own, or two made-up ones if it has only one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub numa_nodes: Option<u32>,
    /// Of 100 acquisitions, how many are urgent.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=100))]
    pub priority_percent: u64,
    /// A lock that nobody acquires for so many s is hung, and fails.
    #[arg(long, value_name = "S", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub hang_secs: u64,
    /// Record how long each lock is waited for and held, and show it in the columns of
    /// LOCK_PROFILING(9) and the events of lockstat(1) of FreeBSD. Not with --format csv.
    #[arg(long)]
    pub lockstat: bool,
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
