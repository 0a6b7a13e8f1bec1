//! Flags of `nearlock bench`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::mistakes::expected;
use super::{Format, ThreadRange, WaitPolicy, lock_list, peer, time, work_ns};

const EXAMPLES: &str = "\
Examples:
  nearlock bench
  nearlock bench --full --out results
  nearlock bench --full --read-percent 100,99,90,50 --rounds 7
  nearlock bench --lock mcs,qspinlock,cna --threads 1x,2x,4x,32x --section-ns 100 --think-ns 0,500
  nearlock bench --mode uncontended --peers all --baseline std,parking-lot-0.13
  nearlock bench --mode condvar --case channel-4-4-slots-4,broadcast-32
  taskset -c 0,8 nearlock bench --mode handover        (a hand-over between these two CPUs)

Without flags: near-mutex and all available peers, uncontended and in parallel; near-mutex, std,
parking-lot-0.13 and pthread-mutex in all situations of sections, and in a choice of other modes. This
takes under 10 minutes. --full measures everything. With --read-percent it measures near-rwlock and
the peers that have readers instead.

Each lock runs once in each round, in a random order. A ratio is the speed of a lock divided by
that of the baseline in the same round. Figures are medians over the rounds. The ratios and their
quartiles are more reliable than nanoseconds. To see the noise, name a lock twice. In JSON and CSV,
figures that are not measured are null or empty, and each baseline has its own rows.
docs/guide/benchmark.md explains the figures.";

/// Flags of other commands, with those that are meant.
const EXPECTED: [(&str, &str); 2] = [("seeds", "--rounds"), ("nwriters", "--threads")];

/// Measures locks against each other on this machine.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args = EXPECTED.map(|(flag, right)| expected(flag, right)))]
pub struct BenchArgs {
    /// What to measure [default: uncontended,parallel,free,oversubscribed]
    #[arg(long, value_enum, ignore_case = true, value_name = "MODE,...", value_delimiter = ',')]
    pub mode: Vec<BenchMode>,
    /// Measure all modes in all their cases, however long it takes, and end with the table of
    /// gates. With --read-percent: the situations of the gates of near-rwlock
    #[arg(long, conflicts_with_all = ["mode", "case"])]
    pub full: bool,
    /// Cases of the modes that have several (docs/guide/benchmark.md lists them) [default:
    /// all; for uncontended: empty sections]
    #[arg(long, alias = "cases", value_name = "NAME,...", value_delimiter = ',')]
    pub case: Vec<String>,
    /// Locks (`nearlock list locks`) and peers (`nearlock list peers`). `all` is all locks except
    /// those that are broken on purpose. [default: near-mutex; with --read-percent or --mode
    /// writer, all with readers; with --full too, near-rwlock]
    #[arg(long, alias = "locks", value_name = "L,L,...", value_parser = lock_list)]
    pub lock: Vec<String>,
    /// Peers: locks of other projects (`nearlock list peers`), in addition to --lock; or `all`.
    #[arg(long, value_name = "P,P,...", value_delimiter = ',', value_parser = peer)]
    pub peers: Vec<String>,
    /// Numbers of threads: 8, 1..8 (from 1 to 8), or 4x (four for each CPU of the process).
    /// [default: 1,2,4,8,16,32,64; for calls 1,1x,4x; for beside 16,64; for writer 8]
    #[arg(long, value_name = "N|N..N|Nx,...", value_delimiter = ',')]
    pub threads: Vec<ThreadRange>,
    /// Lengths of the work in a section, in ns [default: 0,100,1000; for hand-overs 500; for calls
    /// as simulated; for beside 0; for writer 100]
    #[arg(long, value_name = "TIME,...", value_delimiter = ',', value_parser = work_ns)]
    pub section_ns: Vec<u64>,
    /// Lengths of the work between sections, in ns [default: 0,500,5000; for calls as simulated;
    /// for beside 40; for writer 5000]
    #[arg(long, value_name = "TIME,...", value_delimiter = ',', value_parser = work_ns)]
    pub think_ns: Vec<u64>,
    /// Percentage of sections that only read, for locks with readers. With --mode uncontended: 0 or
    /// 100.
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(..=100))]
    pub read_percent: Vec<u64>,
    /// Number of measurements of each lock in each situation.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = rounds)]
    pub rounds: usize,
    /// Locks or peers that all others are compared with, one at a time [default: the first lock;
    /// without --lock and --peers, parking-lot-0.13; with --full and --read-percent,
    /// parking-lot-0.13-rwlock]
    #[arg(long, value_name = "L,L,...", value_parser = lock_list)]
    pub baseline: Vec<String>,
    /// Length of a lock's window in a round, in ms or with a unit [default: 50, or less, down to
    /// 10, so that the run takes less than 10 minutes]
    #[arg(long, value_name = "TIME", value_parser = time("ms", 1..=60_000))]
    pub duration_ms: Option<u64>,
    /// How threads wait.
    #[arg(long, value_enum, ignore_case = true, default_value_t, value_name = "HOW")]
    pub wait: WaitPolicy,
    /// Change a setting of a lock (`nearlock list settings`).
    #[arg(long, value_name = "NAME.KEY=VALUE")]
    pub set: Vec<String>,
    /// Also write files into this directory: JSON, CSV, pictures as SVG, and an HTML page with all
    /// results.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// How to write the results.
    #[arg(long, value_enum, ignore_case = true, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}

impl BenchArgs {
    /// Whether the situations are those of the gates of reader-writer locks.
    pub fn is_full_with_readers(&self) -> bool {
        self.full && !self.read_percent.is_empty()
    }

    /// Whether no flag chooses locks or situations.
    pub fn is_plain(&self) -> bool {
        let lists = [&self.case, &self.lock, &self.peers, &self.baseline];
        let lengths = [&self.section_ns, &self.think_ns, &self.read_percent];
        !self.full
            && self.mode.is_empty()
            && self.threads.is_empty()
            && lists.iter().all(|list| list.is_empty())
            && lengths.iter().all(|list| list.is_empty())
    }
}

/// What `bench` measures.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum BenchMode {
    /// One thread without contention: lock and unlock
    Uncontended,
    /// Threads that take the lock, each pinned to its own core: sections per time, shares, waits,
    /// CPU time
    Parallel,
    /// The same without pinning; together with --mode oversubscribed, no more threads than CPUs
    Free,
    /// The same without pinning, with more threads than CPUs
    #[value(alias = "over-subscribed")]
    Oversubscribed,
    /// The time from the release to the return of a waiter on another CPU
    #[value(alias = "hand-over")]
    Handover,
    /// Threads that open and close a file each: the locks and counts that they share in the kernel
    Open1,
    /// Threads that lock and unlock one record of a file: the locks and counts in the kernel
    Lock2,
    /// Threads that wait for each other with a condition variable, in several cases
    Condvar,
    /// Threads whose sections sleep, yield or wait for memory
    Long,
    /// Threads that lock one of a million locks at random
    Many,
    /// A holder that sleeps in its section while other threads want the lock: CPU time, waits
    Away,
    /// The time from the release to the return of a waiter that sleeps
    Wake,
    /// The first lock and unlock of a new process with 16 other threads
    Start,
    /// Threads in sections of 4 cache lines, beside a process that computes
    Beside,
    /// One thread that only writes among threads that only read: waits of the writer
    Writer,
}

fn rounds(text: &str) -> Result<usize, String> {
    const ROUNDS_MAX: usize = 10_000;
    let number = text.parse().ok().filter(|number| (1..=ROUNDS_MAX).contains(number));
    number.ok_or_else(|| format!("it must be a whole number from 1 to {ROUNDS_MAX}"))
}
