//! `nearlock list topology`: what the locks see of this machine.

use nearlock_os::topology::{Machine, NumberList};
use nearlock_os::{NodeSource, machine_node_source, node_source, pause_ns, register_membarrier, setting};

use nearlock_lab::Setting;

use crate::report::text::{list_table, wrapped};

/// The list.
pub fn list() -> String {
    let machine = Machine::of_this_process();
    let mut lines = vec![nodes(&machine), String::new(), caches(&machine), String::new()];
    lines.extend(facts(&machine).into_iter().map(|(name, fact)| fact_lines(name, &fact)));
    lines.join("\n")
}

/// Columns before a fact.
const NAME_WIDTH: usize = 24;

fn fact_lines(name: &str, fact: &str) -> String {
    let lines = wrapped(fact, &" ".repeat(NAME_WIDTH));
    format!("{name:NAME_WIDTH$}{}", lines.trim_start())
}

fn nodes(machine: &Machine) -> String {
    let rows = machine.nodes.iter().map(|node| {
        let distances: Vec<_> = node.distances.iter().map(u32::to_string).collect();
        let allowed = node.cpus.and(&machine.allowed);
        [node.number.to_string(), or_none(&node.cpus), or_none(&allowed), distances.join(" ")]
    });
    list_table(&["NUMA node", "CPUs", "of which allowed", "distances"], 1, rows)
}

fn caches(machine: &Machine) -> String {
    let rows = machine.last_level_caches.iter().enumerate().map(|(index, cache)| {
        let level = match cache.level {
            0 => "not told".to_owned(),
            level => format!("L{level}"),
        };
        let node = cache.cpus.iter().next().and_then(|cpu| machine.node_of_cpu(cpu));
        let node = node.map_or_else(String::new, |node| node.number.to_string());
        [index.to_string(), level, or_none(&cache.cpus), node]
    });
    list_table(&["last-level cache", "level", "CPUs", "NUMA node"], 2, rows)
}

fn facts(machine: &Machine) -> Vec<(&'static str, String)> {
    let cpus = |cpus: &NumberList| format!("{} ({})", cpus.len(), or_none(cpus));
    let threads: Vec<_> =
        machine.cores.iter().filter(|core| core.len() > 1).map(ToString::to_string).collect();
    let siblings = match threads.len() {
        0 => "none".to_owned(),
        _ => threads.join(" | "),
    };
    let quota = machine.quota.map_or_else(
        || "none".to_owned(),
        |quota| format!("{:.2} CPUs ({} us in {} us)", quota.cpus(), quota.quota_us, quota.period_us),
    );
    vec![
        ("CPUs possible", cpus(&machine.possible)),
        ("CPUs online", cpus(&machine.online)),
        ("CPUs allowed", cpus(&machine.allowed)),
        ("cores", machine.cores.len().to_string()),
        ("hardware threads", siblings),
        ("CPU quota", quota),
        ("threads at a time", machine.parallelism().to_string()),
        ("cost of a pause", format!("{:.1} ns", pause_ns())),
        ("node of a thread by", machine_node_source().to_string()),
        ("numa.mode", mode()),
        ("membarrier", if register_membarrier() { "yes" } else { "no: fences are ordinary" }.to_owned()),
    ]
}

/// The setting, and what it comes to.
fn mode() -> String {
    let info = Setting::NumaMode.info();
    let value = setting(Setting::NumaMode) - info.min;
    let word = info.words().and_then(|mut words| words.nth(value as usize)).unwrap_or_default();
    match node_source() {
        NodeSource::OneNode => format!("{word}: off here ({})", NodeSource::OneNode),
        _ => format!("{word}: on here"),
    }
}

fn or_none(numbers: &NumberList) -> String {
    if numbers.is_empty() { "none".to_owned() } else { numbers.to_string() }
}
