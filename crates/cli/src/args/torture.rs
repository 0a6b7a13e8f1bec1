//! Flags of `nearlock torture`.

use clap::{Args, ValueEnum};

use super::mistakes::expected;
use super::{Format, at_least_one, lock_list, time};

const EXAMPLES: &str = "\
Examples:
  nearlock torture all
  nearlock torture cna,qspinlock --nwriters 64 --shutdown-secs 60 --stat-interval 5
  nearlock torture all --nwriters 16 --nreaders 16 --cancel-storm
  nearlock torture near-mutex,near-condvar --churn --shutdown-secs 600
  nearlock torture near-mutex --watch-progress 50ms --long-hold 0
  nearlock torture lock-busted          (ends in FAILURE, as it is meant to)

The test checks exclusion and progress. ??? after Max/Min means that one writer (or reader) acquired
the lock more than twice as often as another, which is no failure. !!! marks a failure. Fail counts
how often a thread saw two holders that must exclude each other, and the lines below name the other
failures. The number of running threads, and what they do between acquisitions, change every 50 or
150 ms at random, so that queues fill and empty: totals are no benchmark. Locks with readers are
also tried and downgraded. Waiters that can give up also wait with short timeouts. With
--cancel-storm they are cancelled: all threads then run in rounds, and at the end of a round each
must have had the lock or given up. With --churn, the first quarter of the time is for warm-up, and
the middle of the second quarter is compared with that of the last. By default,
cna.shuffle-reduction and cna-v13.shuffle-reduction are 2 here and cna-v13.threshold-ns is 1000000,
so that every path of CNA is taken often. A path after NOT TAKEN was not tested.
With --watch-progress, the line `stalls` counts the times without an acquisition by cause.
Threads without a processor are no failure. JSON has the counts too, CSV has not.";

/// Flags that one would expect, with those that are meant. There are two numbers of threads.
const EXPECTED: [(&str, &str); 4] = [
    ("threads", "--nwriters"),
    ("writers", "--nwriters"),
    ("duration", "--shutdown-secs"),
    ("seconds", "--shutdown-secs"),
];

/// Tortures locks on this machine, as the kernel's locktorture does.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args = EXPECTED.map(|(flag, right)| expected(flag, right)))]
pub struct TortureArgs {
    /// Locks (`nearlock list locks`), each NAME or NAME[KEY=VALUE,...] with its own switches and
    /// settings, as in 'linux-mutex[handoff=off]'; or `all` that are not broken on purpose.
    #[arg(value_name = "LOCK,...|all", required_unless_present = "lock", value_parser = lock_list)]
    pub locks: Vec<String>,
    /// The same, as a flag like that of other commands.
    #[arg(long, alias = "locks", value_name = "L,L,...", conflicts_with = "locks", value_parser = lock_list)]
    pub lock: Vec<String>,
    /// Number of writers, with the readers up to 8192 [default: twice the CPUs, at least 4; half as
    /// many if the lock has readers]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub nwriters: Option<usize>,
    /// Number of readers, for locks with readers [default: as many as writers]
    #[arg(long, value_name = "N")]
    pub nreaders: Option<usize>,
    /// Cancel waiters all the time, if they can give up. In three of four phases, waiters then
    /// sleep without spinning, regardless of spin.budget-ns.
    #[arg(long)]
    pub cancel_storm: bool,
    /// The same, until this many waits are cancelled; --shutdown-secs applies to other locks only.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub cancellations: Option<u64>,
    /// Create and end threads and locks, --nwriters threads at a time [default: 64], each for some
    /// ms to some 100 ms. A lock fails if its threads leak memory.
    #[arg(long, conflicts_with_all = ["cancel_storm", "cancellations", "nreaders", "lockstat", "stutter", "numa_nodes"])]
    pub churn: bool,
    /// How long to torture each lock, in s or with a unit.
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = time("s", 1..=1_000_000))]
    pub shutdown_secs: u64,
    /// Interval of the reports to standard error, in s; 0: none.
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = time("s", 0..=1_000_000))]
    pub stat_interval: u64,
    /// Let all threads run for this many s, then pause as long, and so on; 0: no pauses (the
    /// kernel: 5).
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = time("s", 0..=1_000_000))]
    pub stutter: u64,
    /// Length of the rare long holds, in ms; 0: none.
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = time("ms", 0..=60_000))]
    pub long_hold: u64,
    /// How threads wait.
    #[arg(long, value_enum, ignore_case = true, default_value_t, value_name = "HOW")]
    pub wait: WaitPolicy,
    /// Number of synthetic NUMA nodes, which the threads get in turn [default: according to the
    /// settings `numa.*`: the machine's own, or two synthetic ones if it has only one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub numa_nodes: Option<u32>,
    /// Percentage of urgent acquisitions.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=100))]
    pub priority_percent: u64,
    /// A lock that no thread acquires for this many s is hung, and fails.
    #[arg(long, value_name = "S", default_value_t = 20, value_parser = time("s", 1..=1_000_000))]
    pub hang_secs: u64,
    /// Report stalls on standard error, with what the threads and the lock do. In a stall no thread
    /// has acquired the lock for this many ms, although a thread wants it. A lost wake-up is found
    /// after about 100 ms more, and fails. Use --long-hold 0, because long holds are stalls too.
    #[arg(long, value_name = "MS", conflicts_with = "churn", value_parser = time("ms", 10..=60_000))]
    pub watch_progress: Option<u64>,
    /// Record waits and holds of each lock, and show them in the columns of LOCK_PROFILING(9) and
    /// the events of lockstat(1) of FreeBSD. Not with --format csv.
    #[arg(long)]
    pub lockstat: bool,
    /// Change a setting of a lock (`nearlock list settings`).
    #[arg(long, value_name = "NAME.KEY=VALUE")]
    pub set: Vec<String>,
    /// How to write the results.
    #[arg(long, value_enum, ignore_case = true, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}

/// Waiting policies.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum WaitPolicy {
    /// Pause; with no more writers than CPUs
    Spin,
    /// Pause briefly, then yield the CPU
    #[default]
    Yield,
}
