//! Flags of `nearlock reproduce`.

use std::env;
use std::path::PathBuf;

use clap::Args;

use nearlock_lab::band::{Change, PARAMETERS, Parameter};
use nearlock_lab::mechanisms::MECHANISMS;
use nearlock_lab::names;
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

All requested tables are simulated in one run, on all processors. Earlier results are taken from a
cache in $XDG_CACHE_HOME/nearlock or ~/.cache/nearlock, so an interrupted run continues where it
was. The key of a result is the machine, the workload, the lock, all their constants and the
sources of the simulator, so outdated results are not used. The cache may be deleted at any time.

A cell is the mean over seeds, which choose where the threads run: 32 seeds up to 8 threads, 16 up
to 36, 8 above (--quick: 8, 3 and 2, and half the window). If a whole run is simulated, there are 3
(--quick: 1, with half the jobs). `error` in JSON and CSV is (simulated - published) / published:
0.05 is 5 %. A cell is `fitted` if the simulator's parameters were chosen to fit it, `seen` if it
was looked at while the model's structure was chosen, and otherwise `predicted`. --set changes no
class. In a table relative to stock, stock is 1: it is marked fitted, and no mean includes it. If
figures are a gain in per cent, the error is that of 100 % plus the gain. If they are shares of CPU
time, it is their difference. Figures that the document does not have are simulated, and have no
error.

Statements of the publication are checked against the simulated figures, and with --band or
--mechanisms also against those with each change alone.";

const BAND: &str = "\
--band moves each of these parameters alone. The effect on a cell is simulated with a part of its \
seeds (a sixteenth, --quick: a fourth, at least one), which are the same with and without the \
change. If the row is a mean over numbers of users, the middle one is simulated; if a whole run is \
simulated, it has a fourth of the jobs. `low` and `high` are the least and the greatest value of \
the cell with and without the changes; without --band they are null. machine.queued-grab-fraction \
is not moved: between 0.15 and 0.2 some locks collapse in a way that no real machine shows.";

const MECHANISMS_OF: &str = "\
--mechanisms makes each of these changes alone, except those without effect, with all seeds and \
jobs, and shows the errors of all cells with each. CSV then has the columns table, variation, \
variant, threads, simulated, published, error and row; JSON has one more key, variation. It is \
`NAME.KEY=VALUE`; empty or null for the table as it is.";

/// The text below the flags.
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

/// Simulates published tables, and compares the figures.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub struct ReproduceArgs {
    /// Tables (`nearlock list tables`), or `all` [default: all]
    #[arg(value_name = "TABLE")]
    pub tables: Vec<String>,
    /// Use fewer seeds and a shorter window: four minutes for all tables on two processors.
    #[arg(long)]
    pub quick: bool,
    /// Number of seeds for each cell.
    #[arg(long, value_name = "N", value_parser = seeds)]
    pub seeds: Option<usize>,
    /// Change a setting of a lock, the machine, the workload or the simulation, in all cells
    /// (`nearlock list settings`).
    #[arg(long, value_name = "NAME.KEY=VALUE")]
    pub set: Vec<String>,
    /// Give each cell a band, low to high, over the simulator's sensitive parameters (see below).
    /// Takes twice as long: for all tables three quarters of an hour on two processors.
    #[arg(long, conflicts_with = "mechanisms")]
    pub band: bool,
    /// Show the effect of each mechanism of the model: all errors with only this mechanism off, on
    /// or moved (see below). Takes about twenty times as long.
    #[arg(long)]
    pub mechanisms: bool,
    /// How to write the results.
    #[arg(long, value_enum, ignore_case = true, default_value_t, value_name = "FORMAT")]
    pub format: Format,
    /// Exit with 1 if the mean absolute error of a table exceeds its bound.
    #[arg(long)]
    pub check: bool,
    /// Simulate everything again, and replace the results in the cache.
    #[arg(long)]
    pub fresh: bool,
    /// Also write the results into this directory: a picture (SVG), JSON and CSV for each table,
    /// and, except with --mechanisms, all tables as report.html, which needs no network, and as
    /// evidence.md. The directory is created if necessary; files of the same name are replaced.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

impl ReproduceArgs {
    /// Replaces `all` by no table, which means all.
    pub(super) fn all_is_no_table(&mut self) {
        if self.tables.iter().any(|table| names::is_same(table, "all")) {
            self.tables.clear();
        }
    }

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

    /// The directory of the cache. `None` if neither variable names one.
    pub fn cache(&self) -> Option<PathBuf> {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let caches = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
        caches.map(|caches| caches.join("nearlock/simulations"))
    }

    /// The requested changes.
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
