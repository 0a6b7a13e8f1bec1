//! Flags of `nearlock reproduce`.

use std::env;
use std::path::PathBuf;

use clap::Args;

use nearlock_lab::band::{Change, PARAMETERS, Parameter};
use nearlock_lab::mechanisms::MECHANISMS;
use nearlock_lab::reproduce::Vary;
use nearlock_lab::sweep::quoted;

use super::{Format, seeds};
use crate::report::text::wrapped;

const EXAMPLES: &str = "\
Examples:
  nearlock reproduce --quick
  nearlock reproduce --band --out evidence
  nearlock reproduce cna-locktorture --quick --mechanisms
  nearlock reproduce cna-locktorture --seeds 32 --format json > cells.json
  nearlock reproduce cna-locktorture --quick --set simulation.placement=random

All tables that are asked for are simulated as one run, over all processors. What was simulated before
is taken from a cache, in $XDG_CACHE_HOME/nearlock or ~/.cache/nearlock: a run that was ended goes on
where it was. What the cache has is found by the machine, the workload, the lock, all their constants
and the sources of the simulator, so that nothing old is taken for new. It may be deleted at any time.

A cell is the mean over seeds, which draw where the threads run: 32 seeds up to 8 threads, 16 up to
36, 8 above (--quick: 8, 3 and 2, and half the window); 3 where a whole run is simulated (--quick: 1,
of half the jobs). `error` in JSON and CSV is (simulated -
published) / published: 0.05 is 5 %. A cell is `fitted` if the simulator's parameters were chosen
with it, `seen` if it was looked at while the model's structure was chosen, and otherwise
`predicted`: of the model as it is, whatever --set has changed. In a table relative to stock that is 1: it is marked
fitted, and counts in no mean. Where figures are per cent more than something, the error is of what
they are more; where they are shares of CPU time, it is their difference. What is not in the document
is simulated, and has no error.

What the publication says in words is held against the simulated figures, and with --band or
--mechanisms against those with each change alone.";

const BAND: &str = "\
--band moves each of these parameters alone. By how much that changes a cell is simulated with a part of its seeds (a \
sixteenth of them, --quick: a fourth, one at least), the same with and without the change; where the row is a mean over \
numbers of users, at the middle one; where a whole run is simulated, with a fourth of the jobs. `low` and `high` are the \
least and the greatest of the cell so changed and the cell itself; without --band they are null. machine.queued-grab-fraction is left alone: between 0.15 and 0.2 some locks fall off a cliff \
that no real machine has.";

const MECHANISMS_OF: &str = "\
--mechanisms moves each of these alone, but for changes to what is so already, with all seeds and jobs, and shows the errors of \
all cells under each change. CSV then has the columns table, variation, variant, threads, simulated, published, error and row; \
JSON has one more key, variation. It is `NAME.KEY=VALUE`; empty or null for the table as it is.";

/// What stands below the flags.
fn after_help() -> String {
    let mut text = format!("{EXAMPLES}\n");
    for (head, parameters) in [(BAND, PARAMETERS), (MECHANISMS_OF, MECHANISMS)] {
        text += &format!("\n{}\n", wrapped(head, ""));
        for Parameter { setting, changes, reason } in parameters {
            let changes: Vec<_> = changes.iter().map(Change::to_string).collect();
            text += &format!("  {setting}: {}\n{}\n", changes.join(", "), wrapped(reason, "      "));
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// Simulates published tables, and shows both.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub struct ReproduceArgs {
    /// Tables (`nearlock list tables`); all unless given.
    #[arg(value_name = "TABLE")]
    pub tables: Vec<String>,
    /// Take fewer seeds and a shorter window: four minutes for all tables on two processors.
    #[arg(long)]
    pub quick: bool,
    /// Number of seeds for each cell.
    #[arg(long, value_name = "N", value_parser = seeds)]
    pub seeds: Option<usize>,
    /// Set something of a lock, the machine, the workload or the simulation, in all cells
    /// (`nearlock list settings`).
    #[arg(long, value_name = "NAME.KEY=VALUE")]
    pub set: Vec<String>,
    /// Give each cell a band, low to high, over the simulator's sensitive parameters (see below).
    /// Takes twice as long; all tables three quarters of an hour on two processors.
    #[arg(long, conflicts_with = "mechanisms")]
    pub band: bool,
    /// Show what each mechanism of the model does: all errors with it out, in or moved, alone (see
    /// below). Takes about twenty times as long.
    #[arg(long)]
    pub mechanisms: bool,
    /// How to write the results.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
    /// Exit with 1 if a table misses its bound on the mean absolute error.
    #[arg(long)]
    pub check: bool,
    /// Simulate everything again, and replace what the cache has.
    #[arg(long)]
    pub fresh: bool,
    /// Write the results into this directory too: of each table a picture (SVG), JSON and CSV, and
    /// all of them as one page, report.html, which needs no network, and evidence.md (but with
    /// --mechanisms). It is made if it is not there; files of the same name are replaced.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

impl ReproduceArgs {
    /// The command, without the directory of its results.
    pub fn command(&self) -> String {
        let mut words = vec!["nearlock reproduce".to_owned()];
        words.extend(self.tables.iter().cloned());
        words.extend(self.quick.then(|| "--quick".to_owned()));
        words.extend(self.seeds.map(|seeds| format!("--seeds {seeds}")));
        words.extend(self.set.iter().map(|setting| format!("--set {}", quoted(setting))));
        words.extend(self.band.then(|| "--band".to_owned()));
        words.push("--out DIR".to_owned());
        words.join(" ")
    }

    /// Where simulations are kept, if there is a place for it.
    pub fn cache(&self) -> Option<PathBuf> {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let caches = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
        caches.map(|caches| caches.join("nearlock/simulations"))
    }

    /// The changes that are asked for.
    pub fn vary(&self) -> Vary {
        if self.band {
            Vary::Band
        } else if self.mechanisms {
            Vary::Mechanisms
        } else {
            Vary::Nothing
        }
    }
}
