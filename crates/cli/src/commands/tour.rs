//! `nearlock` without a command.

use std::io::{self, Write};
use std::time::Duration;

use nearlock_bench::torture::Verdict;
use nearlock_lab::names;
use nearlock_lab::published::TABLES;
use nearlock_lab::reproduce::{Effort, Reproduction, Vary};

use super::{reproduce, torture};
use crate::Ending;
use crate::args::Format;
use crate::report::text::paragraph;

/// The locks that are shown on this machine.
const LOCKS: [&str; 2] = ["qspinlock", "cna-v13"];
/// For how long each.
const TORTURE: Duration = Duration::from_secs(3);

/// The tour.
pub fn run() -> anyhow::Result<Ending> {
    let plan = torture::default_plan(TORTURE);
    let mut ending = Ending::Success;
    say(
        "nearlock: a mutex that stays fast under contention, and a laboratory for locks. One source of each \
         lock runs natively here, and in a simulator of other machines. This tour takes about a minute.",
    )?;
    say(&format!(
        "\n1. MEASURED, on this machine: Linux' queued spinlock and its NUMA-aware successor under torture, \
         {} writers for {} s each. Fail: 0 is what counts; totals are no benchmark.",
        plan.crew(names::lock(LOCKS[0])?).writers,
        TORTURE.as_secs()
    ))?;
    for name in LOCKS {
        let tortured = torture::one(names::lock(name)?, &plan, Format::Text)?;
        if tortured.verdict() == Verdict::Failure {
            ending = Ending::CheckFailed;
        }
    }
    let table = TABLES[0];
    say(&format!(
        "\n2. SIMULATED, on the machine of a published table ({}): the same lock source, beside what was \
         published.",
        names::machine(table.machine)?.description
    ))?;
    let reproduction =
        Reproduction { table, effort: Effort::Quick, seeds: None, set: &[], vary: Vary::Nothing };
    let results = reproduce::simulate(&[reproduction], None, Format::Text)?;
    if reproduce::ending(&results) == Ending::CheckFailed {
        ending = Ending::CheckFailed;
    }
    say("\nHow to read it: `stock` is the queued spinlock, which hands the lock over in order of arrival, \
         mostly to another socket. `cna` prefers waiters on the holder's own socket. The columns `err %` show \
         where the simulator is wrong, most of all with few threads: there believe the published figure. The \
         README's picture has these very figures.")?;
    let mut out = io::stdout().lock();
    writeln!(out, "\nNext:")?;
    for (command, what) in [
        ("nearlock reproduce", "the same table with more seeds, and the others"),
        (
            "nearlock simulate --machine epyc-rome-2s --lock qspinlock,cna-v13 --threads 8,64",
            "another machine",
        ),
        ("nearlock torture all", "every lock, 10 s each"),
        ("nearlock list locks", "what there is; also machines, settings, ..."),
    ] {
        writeln!(out, "  {command}\n      {what}")?;
    }
    Ok(ending)
}

fn say(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    paragraph(&mut out, text)?;
    out.flush()
}
