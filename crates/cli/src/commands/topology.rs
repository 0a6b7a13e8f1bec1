//! `nearlock list topology`: what the locks see of this machine.

use nearlock_os::{NodeSource, machine_node_source, node_source, pause_ns, register_membarrier, setting};
use nearlock_topology::{HostTopology, NumberList};

use nearlock_lab::Setting;

use crate::report::text::{list_table, wrapped};

/// The list.
pub fn list() -> String {
    let machine = HostTopology::of_this_process();
    let mut lines = vec![nodes(&machine), String::new(), caches(&machine), String::new()];
    lines.extend(facts(&machine).into_iter().map(|(name, fact)| fact_lines(name, &fact)));
    lines.join("\n")
}

/// Each fact with its name: nodes and caches too.
pub fn facts_of_this_machine() -> Vec<[String; 2]> {
    let machine = HostTopology::of_this_process();
    let mut rows = Vec::new();
    for node in &machine.nodes {
        rows.push([format!("CPUs of NUMA node {}", node.number), or_none(&node.cpus)]);
    }
    for (index, cache) in machine.last_level_caches.iter().enumerate() {
        rows.push([format!("CPUs of last-level cache {index}"), or_none(&cache.cpus)]);
    }
    rows.extend(facts(&machine).into_iter().map(|(name, fact)| [name.to_owned(), fact]));
    rows
}

/// Columns before a fact.
const NAME_WIDTH: usize = 24;

fn fact_lines(name: &str, fact: &str) -> String {
    let lines = wrapped(fact, &" ".repeat(NAME_WIDTH));
    format!("{name:NAME_WIDTH$}{}", lines.trim_start())
}

fn nodes(machine: &HostTopology) -> String {
    let rows = machine.nodes.iter().map(|node| {
        let distances: Vec<_> = node.distances.iter().map(u32::to_string).collect();
        let allowed = node.cpus.and(&machine.allowed);
        [node.number.to_string(), in_lines(&node.cpus), in_lines(&allowed), distances.join(" ")]
    });
    list_table(&["NUMA node", "CPUs", "of which allowed", "distances"], 3, rows)
}

fn caches(machine: &HostTopology) -> String {
    let rows = machine.last_level_caches.iter().enumerate().map(|(index, cache)| {
        let level = match cache.level {
            0 => "unknown".to_owned(),
            level => format!("L{level}"),
        };
        let node = cache.cpus.iter().next().and_then(|cpu| machine.node_of_cpu(cpu));
        let node = node.map_or_else(String::new, |node| node.number.to_string());
        [index.to_string(), level, in_lines(&cache.cpus), node]
    });
    list_table(&["last-level cache", "level", "CPUs", "NUMA node"], 2, rows)
}

fn facts(machine: &HostTopology) -> Vec<(&'static str, String)> {
    // With spaces, at which a line may be broken: a restricted set may be long.
    let cpus = |cpus: &NumberList| format!("{} ({})", cpus.len(), or_none(cpus).replace(',', ", "));
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

/// The setting, and its effect here.
fn mode() -> String {
    let info = Setting::NumaMode.info();
    let value = setting(Setting::NumaMode) - info.min;
    let word = info.words().and_then(|mut words| words.nth(value as usize)).unwrap_or_default();
    match node_source() {
        NodeSource::OneNode => format!("{word}: off here ({})", NodeSource::OneNode),
        _ => format!("{word}: on here"),
    }
}

/// Columns of a list in a table. CPUs are often numbered alternately over the sockets.
const LIST_WIDTH: usize = 30;

/// The list, in lines that end at commas.
fn in_lines(numbers: &NumberList) -> String {
    let mut lines = vec![String::new()];
    for range in or_none(numbers).split_inclusive(',') {
        if lines.last().is_some_and(|line| line.len() + range.len() > LIST_WIDTH) {
            lines.push(String::new());
        }
        lines.last_mut().expect("begins with one, and grows").push_str(range);
    }
    lines.join("\n")
}

fn or_none(numbers: &NumberList) -> String {
    if numbers.is_empty() { "none".to_owned() } else { numbers.to_string() }
}

#[cfg(test)]
mod tests {
    use nearlock_topology::{LastLevelCache, NumaNode};

    use super::*;
    use crate::report::text::WIDTH;

    #[test]
    fn sockets_with_alternating_cpu_numbers_fit_into_the_lines() {
        let mut machine = HostTopology::of_this_process();
        let alternating = |first| (first..128).step_by(2).collect::<NumberList>();
        machine.allowed = alternating(0);
        let node = |number| NumaNode { number, cpus: alternating(number), distances: vec![10, 21] };
        machine.nodes = vec![node(0), node(1)];
        machine.last_level_caches =
            [0, 1].map(|first| LastLevelCache { level: 3, cpus: alternating(first) }).into();
        let facts = facts(&machine).into_iter().map(|(name, fact)| fact_lines(name, &fact));
        for text in facts.chain([nodes(&machine), caches(&machine)]) {
            assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        }
        let (nodes, caches) = (nodes(&machine), caches(&machine));
        assert!(nodes.lines().count() < 30 && nodes.contains(" 101,103,"), "{nodes}");
        assert!(caches.lines().count() < 30 && caches.contains(" 101,103,"), "{caches}");
    }
}
