//! `nearlock` without a command.

use std::io::{self, Write};
use std::time::Duration;

use clap::Parser;
use nearlock_bench::torture::Verdict;
use nearlock_lab::published::TABLES;
use nearlock_lab::reproduce::{Effort, Reproduction, Vary};
use nearlock_lab::{locks, names};

use super::{bench, reproduce, torture};
use crate::args::{Cli, Command, Format};
use crate::report::text::paragraph;
use crate::{Ending, interrupt};

/// What the README says of `Mutex`, measured: alone, with two threads, and with many.
const BENCH: &str = "nearlock bench --lock mutex,std,parking-lot-0.13 --baseline parking-lot-0.13 \
                     --mode uncontended,free --threads 2,32x --section-ns 100 --think-ns 0 --rounds 9";
/// The locks that are tortured.
const LOCKS: [&str; 3] = ["near-mutex", "qspinlock", "cna-v13"];
/// For how long each.
const TORTURE: Duration = Duration::from_secs(2);
/// Commands to continue with, and what each shows.
const NEXT: [(&str, &str); 5] = [
    ("nearlock bench", "`Mutex` against all libraries, in all situations; under ten minutes"),
    (
        "nearlock simulate --machine epyc-rome-2s --lock qspinlock,cna --threads 8,64",
        "the same locks on another machine",
    ),
    ("nearlock reproduce", "all published tables, with more seeds"),
    ("nearlock torture all", "every lock, 10 s each"),
    ("nearlock list locks", "the locks; `list` also has machines, settings, ..."),
];

/// The tour.
pub fn run() -> anyhow::Result<Ending> {
    say(
        "nearlock: a mutex that stays fast under contention, and a laboratory for locks. One source of each \
         lock runs natively here, and in a simulator of other machines. This tour takes about a minute.",
    )?;
    let mut ending = Ending::Success;
    for part in [measure, check, simulate] {
        match part()? {
            Ending::Success => {}
            Ending::CheckFailed => ending = Ending::CheckFailed,
            Ending::Interrupted => return Ok(Ending::Interrupted),
        }
    }
    let mut out = io::stdout().lock();
    writeln!(out, "\nNext:")?;
    for (command, what) in NEXT {
        writeln!(out, "  {command}\n      {what}")?;
    }
    Ok(ending)
}

/// Speed: the recommended mutex beside those that programs have now.
fn measure() -> anyhow::Result<Ending> {
    say(
        "\n1. MEASURED, on this machine: `Mutex` (near-mutex) beside the mutexes of `std` and parking_lot. The \
         sentence at the end says what the figures mean. The command:",
    )?;
    say(&format!("{BENCH}\n"))?;
    match Cli::try_parse_from(BENCH.split_whitespace())?.command {
        Some(Command::Bench(args)) => bench::run(&args),
        _ => unreachable!("the command is `bench`"),
    }
}

/// Correctness: locks under torture.
fn check() -> anyhow::Result<Ending> {
    let plan = torture::default_plan(TORTURE);
    say(&format!(
        "\n2. MEASURED, on this machine: `Mutex`, Linux' queued spinlock and its NUMA-aware successor CNA under \
         torture, {} writers for {} s each. `Fail: 0` is the result; the totals are no benchmark.",
        plan.crew(locks::lock(LOCKS[0])?).writers,
        TORTURE.as_secs()
    ))?;
    let mut ending = Ending::Success;
    for name in LOCKS {
        let tortured = torture::one(locks::lock(name)?, &plan, Format::Text)?;
        if interrupt::is_interrupted() {
            return Ok(Ending::Interrupted);
        }
        if tortured.verdict() == Verdict::Failure {
            ending = Ending::CheckFailed;
        }
    }
    Ok(ending)
}

/// Trust: a published table, simulated.
fn simulate() -> anyhow::Result<Ending> {
    let table = TABLES[0];
    say(&format!(
        "\n3. SIMULATED, on the machine of a published table ({}): the same lock source, beside what was \
         published.",
        names::machine(table.machine)?.description
    ))?;
    let reproduction =
        Reproduction { table, effort: Effort::Quick, seeds: None, set: &[], vary: Vary::Nothing };
    let results = reproduce::simulate(&[reproduction], None, Format::Text)?;
    if interrupt::is_interrupted() {
        return Ok(Ending::Interrupted);
    }
    say("\nHow to read it: `stock` is the queued spinlock, which hands the lock over in order of arrival, \
         mostly to another socket. `cna` prefers waiters on the holder's own socket. The columns `err %` show \
         where the simulator is wrong, most of all with few threads: there believe the published figure. The \
         README's picture has these very figures.")?;
    Ok(reproduce::ending(&results))
}

fn say(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    paragraph(&mut out, text)?;
    out.flush()
}
