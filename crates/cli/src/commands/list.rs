//! `nearlock list`.

mod locks;

use std::io::{self, Write};

use clap::ValueEnum;
use nearlock_bench::bench::PEERS;
use nearlock_lab::names;
use nearlock_lab::published::TABLES;
use nearlock_lab::simulate::workloads;
use nearlock_lab::{ALGORITHMS, Algorithm, MachineSpec, PRESETS, settings};
use serde_json::{Map, Value};

use super::topology;
use crate::Ending;
use crate::args::{Format, ListArgs, Listed};
use crate::report;
use crate::report::text::{list_table, wrapped};

/// No row has a name that contains one of the words.
#[derive(Debug, thiserror::Error)]
#[error("no name in the list of {list} contains {}{near} `nearlock list {list}` shows all", quoted.join(" or "))]
struct NoMatch {
    list: &'static str,
    quoted: Vec<String>,
    /// The nearest names, or a semicolon if there are none.
    near: String,
}

/// A list: a row of cells for each name. The name is the first cell.
struct List {
    /// The names of the cells in JSON and CSV.
    keys: &'static [&'static str],
    rows: Vec<Vec<String>>,
}

impl List {
    fn new<const COLUMNS: usize>(
        keys: &'static [&'static str; COLUMNS],
        rows: impl IntoIterator<Item = [String; COLUMNS]>,
    ) -> Self {
        Self { keys, rows: rows.into_iter().map(Vec::from).collect() }
    }

    /// The rows whose name contains one of these words; all rows if there are no words.
    fn filtered(mut self, list: Listed, words: &[String]) -> Result<Self, NoMatch> {
        let all: Vec<String> = self.rows.iter().map(|row| row[0].clone()).collect();
        let contains = |name: &str| {
            let name = names::folded(name);
            words.iter().map(|word| names::folded(word)).any(|word| !word.is_empty() && name.contains(&word))
        };
        // A lock has a second name, in Rust.
        let is_meant = |row: &Vec<String>| {
            words.is_empty() || contains(&row[0]) || list == Listed::Locks && contains(&row[1])
        };
        self.rows.retain(is_meant);
        if self.rows.is_empty() {
            let known: Vec<&str> = all.iter().map(String::as_str).collect();
            let near: String = words.iter().map(|word| names::suggestion(word, &known)).collect();
            let near = if near.is_empty() { ";".to_owned() } else { near };
            let quoted = words.iter().map(|word| format!("`{}`", names::echoed(word))).collect();
            return Err(NoMatch { list: list.name(), quoted, near });
        }
        Ok(self)
    }

    fn json(&self, out: &mut impl Write) -> io::Result<()> {
        let object = |row: &Vec<String>| -> Map<String, Value> {
            let value = |cell: &String| if cell.is_empty() { Value::Null } else { cell.clone().into() };
            self.keys.iter().zip(row).map(|(key, cell)| ((*key).to_owned(), value(cell))).collect()
        };
        report::json::array(out, &self.rows.iter().map(object).collect::<Vec<_>>())
    }

    fn csv(&self, out: &mut impl Write) -> io::Result<()> {
        let heads = self.keys.iter().map(|key| (*key).to_owned()).collect();
        report::csv::records(out, std::iter::once(&heads).chain(&self.rows))
    }

    /// As a table. The column `broken` is broken into lines.
    fn table<const COLUMNS: usize>(&self, heads: &[&str; COLUMNS], broken: usize) -> String {
        let cells = self.rows.iter().map(|row| std::array::from_fn(|column| row[column].clone()));
        list_table(heads, broken, cells)
    }
}

/// Prints the requested list.
pub fn run(args: &ListArgs) -> anyhow::Result<Ending> {
    let mut out = io::stdout().lock();
    let Some(what) = args.what else {
        let lists = lists();
        match args.format {
            Format::Json => lists.json(&mut out)?,
            Format::Csv => lists.csv(&mut out)?,
            Format::Text => writeln!(out, "{}", lists.table(&["command", "what it lists"], 1))?,
        }
        return Ok(Ending::Success);
    };
    let list = match what {
        Listed::Locks => locks::list(),
        Listed::Switches => switches(),
        Listed::Peers => {
            List::new(&["peer", "summary"], PEERS.iter().map(|peer| [peer.name.into(), peer.summary.into()]))
        }
        Listed::Workloads => {
            List::new(&["workload", "summary"], workloads().map(|w| [w.name().into(), w.summary().into()]))
        }
        Listed::Machines => machines()?,
        Listed::Tables => tables(),
        Listed::Settings => settings()?,
        Listed::Topology => List::new(&["fact", "value"], topology::facts_of_this_machine()),
    };
    let list = list.filtered(what, &args.words)?;
    match args.format {
        Format::Json => list.json(&mut out)?,
        Format::Csv => list.csv(&mut out)?,
        Format::Text => writeln!(out, "{}", text(args, what, &list))?,
    }
    Ok(Ending::Success)
}

/// The available lists.
fn lists() -> List {
    let rows = Listed::value_variants().iter().map(|listed| {
        let help = listed.to_possible_value().and_then(|value| value.get_help().map(ToString::to_string));
        [format!("nearlock list {}", listed.name()), help.unwrap_or_default()]
    });
    List::new(&["command", "summary"], rows)
}

/// The list for people.
fn text(args: &ListArgs, what: Listed, list: &List) -> String {
    let is_whole = args.words.is_empty();
    match what {
        Listed::Locks if is_whole && !args.all => locks::overview(list),
        Listed::Locks => locks::text(list, &args.words),
        Listed::Switches => {
            format!(
                "{}\n\n{}",
                switches_text(list),
                wrapped(
                    "NAME[KEY=VALUE,...], as in 'linux-mutex[handoff=off]'. Above: KEY=default (values).",
                    ""
                )
            )
        }
        Listed::Peers => {
            let table = list.table(&["peer", "what it is"], 1);
            let note = "They can only be measured, on this machine: nearlock bench --peers all";
            format!("{table}\n\n{}", wrapped(note, ""))
        }
        Listed::Workloads => list.table(&["workload", "what it does"], 1),
        Listed::Machines => {
            let table = list.table(&["machine", "CPUs", "what it is", "latencies"], 2);
            let note = "Or give the path of a machine file (`nearlock measure` writes one).";
            format!("{table}\n\n{}", wrapped(note, ""))
        }
        Listed::Tables => {
            let block = |row: &Vec<String>| {
                let cells = format!("{} on {}: {}", row[1], row[2], row[3]);
                format!("{}\n{}\n{}", row[0], wrapped(&cells, "    "), wrapped(&row[4], "    "))
            };
            list.rows.iter().map(block).collect::<Vec<_>>().join("\n")
        }
        Listed::Settings => settings_text(list),
        Listed::Topology if is_whole => topology::list(),
        Listed::Topology => list.table(&["", ""], 1),
    }
}

/// Each switch of each algorithm, and each preset.
fn switches() -> List {
    let mut rows = Vec::new();
    for algorithm in ALGORITHMS {
        for switch in algorithm.switches {
            rows.push([
                algorithm.name.to_owned(),
                switch.key.to_owned(),
                switch.values.show(switch.default).to_string(),
                switch.values.to_string(),
                plain(switch.summary),
            ]);
        }
    }
    List::new(&["lock", "switch", "default", "values", "summary"], rows)
}

/// The switches and presets of each algorithm. For switches that an earlier algorithm has too, its
/// name is given.
fn switches_text(list: &List) -> String {
    let is_listed = |algorithm: &&Algorithm| list.rows.iter().any(|row| row[0] == algorithm.name);
    let listed: Vec<&Algorithm> = ALGORITHMS.iter().filter(is_listed).collect();
    let mut lines = Vec::new();
    for (index, algorithm) in listed.iter().enumerate() {
        let is_same = |other: &&&Algorithm| std::ptr::eq(other.switches, algorithm.switches);
        match listed[..index].iter().find(is_same) {
            Some(other) => lines.push(format!("{}: the switches of {}", algorithm.name, other.name)),
            None => {
                lines.push(format!("{}:", algorithm.name));
                for row in list.rows.iter().filter(|row| row[0] == algorithm.name) {
                    lines.push(format!("  {}={}    ({})", row[1], row[2], row[3]));
                    lines.push(wrapped(&row[4], "      "));
                }
            }
        }
        for preset in PRESETS.iter().filter(|preset| preset.algorithm == algorithm.name) {
            lines.push(format!("  {}: {}", preset.name, preset.source));
            let positions = preset.positions.iter().map(|position| {
                format!("{}={}", position.switch.key, position.switch.values.show(position.value))
            });
            let text = match &*positions.collect::<Vec<_>>() {
                [] => format!("the same as {}", algorithm.name),
                positions => format!("{} with {}", algorithm.name, positions.join(", ")),
            };
            lines.push(wrapped(&text, "      "));
        }
    }
    lines.join("\n")
}

/// The text without the markup of links and code.
fn plain(documentation: &str) -> String {
    documentation.trim().replace(['[', ']', '`'], "")
}

fn machines() -> anyhow::Result<List> {
    let mut rows = Vec::new();
    for name in MachineSpec::builtin_names() {
        let machine = names::machine(name)?;
        let confidence = names::confidence(machine.confidence).to_owned();
        rows.push([machine.name.clone(), machine.cpus().to_string(), machine.description, confidence]);
    }
    Ok(List::new(&["machine", "cpus", "summary", "latencies"], rows))
}

fn tables() -> List {
    let row = |table: &&'static nearlock_lab::published::Table| {
        let variants: Vec<_> = table.variants.iter().map(|variant| variant.name).collect();
        [
            table.name.to_owned(),
            table.workloads().to_string(),
            table.machines().to_string(),
            variants.join(", "),
            table.source.to_owned(),
        ]
    };
    List::new(&["table", "workloads", "machines", "variants", "source"], TABLES.iter().map(row))
}

/// The machine whose settings are shown: that of the first published table.
fn machine() -> &'static str {
    TABLES[0].machine
}

fn settings() -> anyhow::Result<List> {
    let all = settings::all(&names::machine(machine())?);
    let row = |row: settings::SettingRow| {
        [row.name.to_owned(), row.default.to_string(), row.range, row.summary.to_owned()]
    };
    Ok(List::new(&["setting", "default", "values", "summary"], all.into_iter().map(row)))
}

fn settings_text(list: &List) -> String {
    let mut lines = Vec::new();
    for (index, row) in list.rows.iter().enumerate() {
        lines.push(format!("{}={}    ({})", row[0], row[1], row[2]));
        // A summary that several workloads share is shown once.
        if list.rows.get(index + 1).is_none_or(|next| next[3] != row[3]) {
            lines.push(wrapped(&row[3], "    "));
        }
    }
    let notes = format!(
        "NAME.KEY=default (limits). A time may have a unit, as in =1ms. machine.* has the defaults of {}.",
        machine()
    );
    format!("{}\n\n{}", lines.join("\n"), wrapped(&notes, ""))
}
