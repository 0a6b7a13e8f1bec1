//! `nearlock list`.

use std::io::{self, Write};

use nearlock_bench::bench::PEERS;
use nearlock_lab::names;
use nearlock_lab::published::TABLES;
use nearlock_lab::simulate::workloads;
use nearlock_lab::{ALGORITHMS, Algorithm, Family, MachineSpec, PRESETS, SUBJECTS, settings};

use super::topology;
use crate::Ending;
use crate::args::{ListArgs, Listed};
use crate::report::text::{list_table, wrapped};

/// The machine whose settings are shown: that of the first published table.
fn machine() -> &'static str {
    TABLES[0].machine
}

/// Lists what was asked for.
pub fn run(args: &ListArgs) -> anyhow::Result<Ending> {
    let table = match args.what {
        Listed::Locks => locks(),
        Listed::Switches => switches(),
        Listed::Peers => list_table(
            &["peer", "what it is"],
            1,
            PEERS.iter().map(|peer| [peer.name.into(), peer.summary.into()]),
        ),
        Listed::Workloads => list_table(
            &["workload", "what it does"],
            1,
            workloads().map(|w| [w.name().into(), w.summary().into()]),
        ),
        Listed::Machines => machines()?,
        Listed::Tables => tables(),
        Listed::Settings => settings()?,
        Listed::Topology => topology::list(),
    };
    let mut out = io::stdout().lock();
    writeln!(out, "{table}")?;
    match args.what {
        Listed::Settings => {
            writeln!(out, "\nNAME.KEY=default (limits). Those of machines are as on {}.", machine())?;
        }
        Listed::Switches => {
            writeln!(out, "\nNAME[KEY=VALUE,...], as in 'linux-mutex[handoff=off]'. Defaults stand first.")?;
        }
        Listed::Peers => writeln!(out, "\nMeasured on this machine only: nearlock bench --peers all")?,
        Listed::Machines => writeln!(out, "\nOr give the path of a machine file.")?,
        _ => {}
    }
    Ok(Ending::Success)
}

fn locks() -> String {
    let rows = SUBJECTS.iter().map(|subject| {
        let family = match subject.family() {
            Family::Classic => "classic",
            Family::Linux => "Linux",
            Family::FreeBsd => "FreeBSD",
            Family::Near => "nearlock",
            Family::Control => "control",
        };
        [subject.name, family, subject.summary, subject.fairness().name()].map(str::to_owned)
    });
    list_table(&["lock", "family", "what it is", "promise to a waiter"], 2, rows)
}

/// Each algorithm's, those of another one by its name, and its presets.
fn switches() -> String {
    let mut lines = Vec::new();
    for (index, algorithm) in ALGORITHMS.iter().enumerate() {
        let is_same = |other: &&Algorithm| std::ptr::eq(other.switches, algorithm.switches);
        match ALGORITHMS[..index].iter().find(is_same) {
            _ if algorithm.switches.is_empty() => continue,
            Some(other) => lines.push(format!("{}: those of {}", algorithm.name, other.name)),
            None => {
                lines.push(format!("{}:", algorithm.name));
                for switch in algorithm.switches {
                    let default = switch.values.show(switch.default);
                    lines.push(format!("  {}={default}    ({})", switch.key, switch.values));
                    lines.push(wrapped(&plain(switch.summary), "      "));
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

/// Without the signs of documentation: links, and code.
fn plain(documentation: &str) -> String {
    documentation.trim().replace(['[', ']', '`'], "")
}

fn machines() -> anyhow::Result<String> {
    let mut rows = Vec::new();
    for name in MachineSpec::builtin_names() {
        let machine = names::machine(name)?;
        let confidence = names::confidence(machine.confidence).to_owned();
        rows.push([machine.name.clone(), machine.cpus().to_string(), machine.description, confidence]);
    }
    Ok(list_table(&["machine", "CPUs", "what it is", "latencies"], 2, rows))
}

fn tables() -> String {
    let blocks = TABLES.iter().map(|table| {
        let variants: Vec<_> = table.variants.iter().map(|variant| variant.name).collect();
        let cells = format!("{} on {}: {}", table.workloads(), table.machines(), variants.join(", "));
        format!("{}\n{}\n{}", table.name, wrapped(&cells, "    "), wrapped(table.source, "    "))
    });
    blocks.collect::<Vec<_>>().join("\n")
}

fn settings() -> anyhow::Result<String> {
    let mut lines = Vec::new();
    let all = settings::all(&names::machine(machine())?);
    for (index, row) in all.iter().enumerate() {
        lines.push(format!("{}={}    ({})", row.name, row.default, row.range));
        // What is the same of several workloads is said once.
        if all.get(index + 1).is_none_or(|next| next.summary != row.summary) {
            lines.push(wrapped(row.summary, "    "));
        }
    }
    Ok(lines.join("\n"))
}
