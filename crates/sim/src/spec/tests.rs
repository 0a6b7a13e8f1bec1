//! Tests of machine files, of the built-in machines and of machine settings.

use super::*;

/// A small machine to change: two sockets with two domains each, two cores per domain.
const SMALL: &str = r#"
schema = 1
name = "small"
description = "two sockets"
source = "made up"
confidence = "estimate"

[topology]
sockets = 2
cores_per_socket = 4
cores_per_domain = 2
smt = 2
ghz = 2.0
distances = ["domain", "socket", "remote"]

[latency_ns]
cas = [20.0, 100.0, 200.0]

[local_ns]
pause = 5.0
"#;

/// The small machine with a piece of its text replaced.
fn parse_changed(from: &str, to: &str) -> Result<MachineSpec, SpecError> {
    assert!(SMALL.contains(from), "{from}");
    MachineSpec::parse(&SMALL.replacen(from, to, 1), "small.toml")
}

/// Asserts that the changed small machine is refused with a message that has all the parts.
fn assert_refused(from: &str, to: &str, parts: &[&str]) {
    let message = parse_changed(from, to).expect_err(to).to_string();
    for part in ["small.toml"].iter().chain(parts) {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

fn assert_setting_refused(key: &str, value: &str, parts: &[&str]) {
    let mut spec = MachineSpec::builtin("westmere-ex-8s").unwrap();
    let before = spec.clone();
    let message = spec.set(key, value).expect_err(value).to_string();
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
    assert_eq!(spec, before);
}

fn builtins() -> impl Iterator<Item = MachineSpec> {
    MachineSpec::builtin_names().into_iter().map(|name| {
        let spec = MachineSpec::builtin(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(spec.name, name);
        spec
    })
}

fn rows(spec: &MachineSpec) -> [&[f64]; 7] {
    [
        Access::LoadModified,
        Access::LoadShared,
        Access::LoadMemory,
        Access::StoreModified,
        Access::StoreShared,
        Access::AtomicModified,
        Access::AtomicShared,
    ]
    .map(|access| spec.latency_ns.row(access))
}

/// Asserts that distances are symmetric, index the latency arrays, and are 0 in the same domain
/// only.
fn assert_distances(spec: &MachineSpec) {
    for a in 0..spec.domains() {
        for b in 0..spec.domains() {
            let distance = spec.distance(a, b);
            assert_eq!(distance, spec.distance(b, a), "{}: {a} {b}", spec.name);
            assert_eq!(distance == 0, a == b, "{}: {a} {b}", spec.name);
            assert!(distance < spec.distances.len(), "{}: {a} {b}", spec.name);
            let same_socket = spec.socket_of_domain(a) == spec.socket_of_domain(b);
            assert_eq!(distance < spec.local_distances, same_socket, "{}: {a} {b}", spec.name);
        }
        for home in 0..spec.sockets {
            let local = spec.memory_distance(a, home) < spec.local_distances;
            assert_eq!(local, home == spec.socket_of_domain(a), "{}: {a} {home}", spec.name);
        }
    }
}

#[test]
fn builtins_hold_the_invariants() {
    for spec in builtins() {
        assert!(spec.cores() <= CORES_MAX && spec.domains() <= DOMAINS_MAX);
        for row in rows(&spec) {
            assert_eq!(row.len(), spec.distances.len(), "{}", spec.name);
            assert!(row.is_sorted(), "{}", spec.name);
            assert!(row[0] > spec.local_ns.l1, "{}", spec.name);
        }
        assert!(spec.local_ns.atomic_owned < spec.latency_ns.atomic_modified[0], "{}", spec.name);
        assert!(!spec.source.is_empty() && !spec.description.is_empty());
        assert_distances(&spec);
    }
}

#[test]
fn builtins_have_the_published_sizes() {
    let cpus: Vec<_> = builtins().map(|spec| (spec.name.clone(), spec.cpus(), spec.domains())).collect();
    let expected = [
        ("westmere-ex-8s", 80, 8),
        ("westmere-ex-4s", 40, 4),
        ("haswell-ex-4s", 144, 4),
        ("haswell-ex-8s", 288, 8),
        ("haswell-ex-4830-4s", 48, 4),
        ("ivybridge-ep-2s", 40, 2),
        ("skylake-sp-8s", 448, 8),
        ("cascadelake-2s", 96, 2),
        ("epyc-rome-2s", 256, 32),
        ("epyc-genoa-2s", 192, 24),
        ("graviton3", 64, 1),
        ("cortex-a7-quad", 4, 1),
    ]
    .map(|(name, cpus, domains)| (name.to_owned(), cpus, domains));
    assert_eq!(cpus, expected);
}

#[test]
fn cpus_are_numbered_core_by_core() {
    let spec = MachineSpec::parse(SMALL, "small.toml").unwrap();
    assert_eq!((spec.cpus(), spec.cores(), spec.domains()), (16, 8, 4));
    let domains: Vec<_> = (0..16).map(|cpu| spec.domain_of_core(spec.core_of_cpu(cpu))).collect();
    assert_eq!(domains, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
    assert_eq!((spec.core_of_cpu(5), spec.thread_of_cpu(5)), (2, 1));
    assert_eq!((spec.numa_node_of_cpu(7), spec.numa_node_of_cpu(8)), (0, 1));
    assert_eq!([0, 1, 2, 3].map(|domain| spec.distance(0, domain)), [0, 1, 2, 2]);
    assert_eq!([0, 1].map(|socket| spec.memory_distance(1, socket)), [1, 2]);
}

#[test]
fn latencies_are_derived_from_compare_and_swap() {
    let spec = MachineSpec::parse(SMALL, "small.toml").unwrap();
    let expected = [
        [18.4, 92.0, 184.0],
        [8.0, 75.0, 150.0],
        [90.0, 90.0, 190.0],
        [19.4, 97.0, 194.0],
        [19.4, 97.0, 194.0],
        [20.0, 100.0, 200.0],
        [19.4, 97.0, 194.0],
    ];
    for (row, expected) in rows(&spec).iter().zip(expected) {
        let close = row.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(close && row.len() == expected.len(), "{row:?} is not {expected:?}");
    }
    assert_eq!(spec.latency_ns.provenance, Provenance::Derived);
    assert_eq!(spec.local_ns, LocalNs { l1: 2.5, atomic_owned: 10.0, pause: 5.0 });
    assert_eq!(spec.model, ModelParameters::default());
}

#[test]
fn derivation_agrees_with_the_machine_its_ratios_come_from() {
    let text = include_str!("../../machines/westmere-ex-4s.toml");
    let measured = MachineSpec::parse(text, "measured").unwrap();
    let (head, rest) = text.split_once("[latency_ns]").unwrap();
    let (_, tail) = rest.split_once("[local_ns]").unwrap();
    let text = format!("{head}[latency_ns]\ncas = [56.3, 152.1]\n[local_ns]{tail}");
    let derived = MachineSpec::parse(&text, "derived").unwrap();
    for (index, (row, reference)) in rows(&derived).into_iter().zip(rows(&measured)).enumerate() {
        // The rule takes DRAM from a newer machine.
        for (a, b) in row.iter().zip(reference).filter(|_| index != 2) {
            assert!((a / b - 1.0).abs() < 0.1, "row {index}: {a} ns derived, {b} ns measured");
        }
    }
}

#[test]
fn hops_of_westmere_are_a_ring_with_chords() {
    let spec = MachineSpec::builtin("westmere-ex-8s").unwrap();
    for a in 0..8 {
        for b in 0..8usize {
            let expected = match b.abs_diff(a) {
                0 => 0,
                1 | 4 | 7 => 1,
                _ => 2,
            };
            assert_eq!(spec.hops[a][b], expected);
        }
    }
}

#[test]
fn scales_apply_by_socket() {
    let mut spec = MachineSpec::parse(SMALL, "small.toml").unwrap();
    spec.set("cross-socket-scale", "0.5").unwrap();
    spec.set("same-socket-scale", "2").unwrap();
    let scaled = [0, 1, 2].map(|distance| spec.latency(Access::AtomicModified, distance));
    assert_eq!(scaled, [40.0, 200.0, 100.0]);
}

#[test]
fn nodes_restrict_to_the_first_sockets() {
    let mut spec = MachineSpec::builtin("westmere-ex-8s").unwrap();
    spec.set("nodes", "4").unwrap();
    assert_eq!((spec.sockets, spec.cpus(), spec.domains()), (4, 40, 4));
    assert_eq!(spec.hops, [[0, 1, 2, 2], [1, 0, 1, 2], [2, 1, 0, 1], [2, 2, 1, 0]]);
    assert_distances(&spec);
    spec.set("sockets", "1").unwrap();
    assert_eq!(spec.cpus(), 10);
    assert_distances(&spec);
}

#[test]
fn hyperthreading_can_be_turned_on_and_off() {
    let mut spec = MachineSpec::builtin("westmere-ex-8s").unwrap();
    spec.set("smt", "2").unwrap();
    assert_eq!((spec.cpus(), spec.cores(), spec.socket_of_cpu(19), spec.socket_of_cpu(20)), (160, 80, 0, 1));
    let mut spec = MachineSpec::builtin("haswell-ex-4s").unwrap();
    spec.set("smt", "1").unwrap();
    assert_eq!(spec.cpus(), 72);
}

#[test]
fn cores_per_socket_keep_the_distances() {
    let mut spec = MachineSpec::builtin("epyc-rome-2s").unwrap();
    for (cores, domains) in [("8", 4), ("2", 2)] {
        spec.set("cores-per-socket", cores).unwrap();
        assert_eq!(spec.domains(), domains);
        assert_distances(&spec);
    }
    let mut spec = MachineSpec::builtin("haswell-ex-4s").unwrap();
    spec.set("cores_per_socket", "15").unwrap();
    assert_eq!((spec.cpus(), spec.domains()), (120, 4));
    let mut spec = MachineSpec::builtin("epyc-rome-2s").unwrap();
    assert!(spec.set("cores-per-socket", "6").unwrap_err().to_string().contains("4 does not divide"));
}

/// The key in a setting's name `machine.KEY`.
fn key(setting: &MachineSetting) -> &'static str {
    setting.name.strip_prefix("machine.").unwrap()
}

#[test]
fn every_listed_setting_can_be_set_to_its_value() {
    for mut spec in builtins() {
        let before = spec.clone();
        for setting in spec.settings() {
            spec.assign(setting.name, setting.value)
                .unwrap_or_else(|error| panic!("{}: {error}", before.name));
            // The value's text is read back as the same value.
            let read = MachineSpec::read_setting(key(&setting), &setting.value.to_string()).unwrap();
            assert_eq!(read, (setting.name, setting.value));
            assert!(setting.summary.ends_with('.') && !setting.range.is_empty());
        }
        assert_eq!(spec, before);
    }
}

#[test]
fn settings_out_of_range_are_refused() {
    assert_setting_refused("nodes", "9", &["machine.nodes=9", "1 to 8"]);
    assert_setting_refused("nodes", "0", &["1 to 8"]);
    assert_setting_refused("smt", "two", &["machine.smt=two", "1 to 8"]);
    assert_setting_refused("jitter", "nan", &["0 to 0.9"]);
    assert_setting_refused("pause-ns", "0", &["0.001 to 100000 ns"]);
    assert_setting_refused("l1-ns", "60", &["load_modified"]);
    assert_setting_refused("ownership-overlap", "yes", &["none or prefetch"]);
    assert_setting_refused("store-buffer-entries", "0", &["1 to 1024"]);
    assert_setting_refused("node-count", "7", &["in-node or free"]);
    assert_setting_refused("cores-per-socket", "100", &["800 cores", "at most 256"]);
    assert_setting_refused("cores-per-socket", "500", &["1 to 256"]);
    assert_setting_refused("jiter", "0.1", &["no machine setting `jiter`", "nodes", "jitter", "pause-ns"]);
}

#[test]
fn values_of_another_kind_are_refused() {
    let mut spec = MachineSpec::builtin("westmere-ex-8s").unwrap();
    let before = spec.clone();
    for (name, value, part) in [
        ("machine.smt", Value::Float(1.0), "machine.smt=1: must be a whole number from 1 to 8"),
        ("machine.jitter", Value::Integer(0), "machine.jitter=0: must be 0 to 0.9"),
        ("machine.jitter", Value::Float(f64::NAN), "machine.jitter=NaN: must be 0 to 0.9"),
        ("machine.balance", Value::Word("on"), "machine.balance=on: must be off or idle"),
        ("machine.nodes", Value::Integer(u64::MAX), "must be a whole number from 1 to 8"),
        ("machine.sockets", Value::Integer(1), "no machine setting `sockets`"),
    ] {
        let message = spec.assign(name, value).unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(spec, before);
}

#[test]
fn unknown_machines_are_refused_with_the_list() {
    let message = MachineSpec::load("haswell").unwrap_err().to_string();
    assert!(message.contains("`haswell`") && message.contains("haswell-ex-4s, haswell-ex-8s"), "{message}");
    let message = MachineSpec::load("./none/such.toml").unwrap_err().to_string();
    assert!(message.contains("./none/such.toml"), "{message}");
}

/// A machine with one core. No other core takes lines from it.
const ALONE: &str = r#"
schema = 1
name = "alone"
description = "one core"
source = "made up"
confidence = "measured"
topology = { sockets = 1, cores_per_socket = 1, smt = 2, ghz = 2.5, distances = ["socket"] }
latency_ns = { load_memory = [80.0] }
local_ns = { pause = 5.0 }

[measured]
date = "2026-11-21"
by = "hand \"measure\""
processor = "none"
system = "none"
cpus = "0,4"
priority = "FIFO"
notes = ["nothing \\ else"]
figures = { "latency_ns.load_memory.socket" = { low = 79.0, median = 80, high = 81.5, samples = 12 } }
"#;

/// Files are read back as they were written.
#[test]
fn files_are_written_as_they_are_read() {
    let alone = MachineSpec::parse(ALONE, "alone.toml").unwrap();
    let mut changed = MachineSpec::parse(SMALL, "small.toml").unwrap();
    // A part of a domain has no machine file: the file would have a distance that no two cores
    // have.
    for setting in changed.settings().iter().filter(|setting| key(setting) != "cores-per-socket") {
        // Some other value, if there is one. Each parameter must leave a trace in the file.
        for value in ["0.5", "7", "0.25", "2", "1", "none"] {
            if changed.set(key(setting), value).is_ok() {
                break;
            }
        }
    }
    for spec in builtins().chain([alone, changed]) {
        let text = spec.to_toml();
        let read = MachineSpec::parse(&text, &spec.name).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(read, spec, "{text}");
    }
}

#[test]
fn one_core_needs_memory_only() {
    let mut spec = MachineSpec::parse(ALONE, "alone.toml").unwrap();
    assert_eq!(spec.latency_ns.provenance, Provenance::MemoryOnly);
    assert_eq!(spec.latency(Access::LoadMemory, 0), 80.0);
    assert_eq!(spec.measured.as_ref().unwrap().figures["latency_ns.load_memory.socket"].samples, 12);
    let refused = spec.set("cores-per-socket", "2").unwrap_err().to_string();
    assert!(refused.contains("no latencies between cores"), "{refused}");
    let two = ALONE.replace("cores_per_socket = 1", "cores_per_socket = 2");
    let message = MachineSpec::parse(&two, "two.toml").unwrap_err().to_string();
    assert!(message.contains("latency_ns.load_modified: is missing"), "{message}");
}

#[test]
fn mistakes_of_measurement_are_refused() {
    let refused = |from: &str, to: &str, parts: [&str; 2]| {
        assert!(ALONE.contains(from), "{from}");
        let message = MachineSpec::parse(&ALONE.replacen(from, to, 1), "a").expect_err(to).to_string();
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    };
    refused("2026-11-21", "yesterday", ["measured.date: is `yesterday`", "as in 2026-11-21"]);
    refused("low = 79.0", "low = 80.5", ["load_memory.socket\"", "ascending order"]);
    refused("high = 81.5", "high = inf", ["load_memory.socket\"", "finite"]);
    refused("samples = 12", "samples = 0", ["load_memory.socket\"", "at least 1"]);
    refused("cpus = \"0,4\"", "cpus = \"\\u001b\"", ["measured.cpus", "control character"]);
    refused("priority = \"FIFO\"", "", ["measured", "priority"]);
    refused("samples = 12", "samples = 12, mean = 80", ["`mean`", "`median`"]);
}

#[test]
fn machines_are_loaded_from_files() {
    let path = std::env::temp_dir().join(format!("nearlock-machine-{}.toml", std::process::id()));
    std::fs::write(&path, SMALL).unwrap();
    let spec = MachineSpec::load(path.to_str().unwrap());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(spec.unwrap().name, "small");
}

#[test]
fn files_without_an_end_are_refused() {
    let path = std::env::temp_dir().join(format!("nearlock-long-{}.toml", std::process::id()));
    std::fs::write(&path, "#".repeat(FILE_BYTES_MAX as usize + 1)).unwrap();
    let message = MachineSpec::load(path.to_str().unwrap()).unwrap_err().to_string();
    std::fs::remove_file(&path).unwrap();
    assert!(message.contains("cannot read") && message.contains("more than 1048576 bytes"), "{message}");
}

#[test]
fn mistakes_of_form_are_refused_with_their_place() {
    assert_refused("smt = 2", "smt = 'two'", &["line 12, column 7"]);
    assert_refused("smt = 2", "threads = 2", &["line 12", "`threads`", "`cores_per_domain`", "`hops`"]);
    assert_refused("[local_ns]\npause = 5.0", "", &["local_ns"]);
    assert_refused("pause = 5.0", "pause = 5.0\n[model]\njiter = 0.1", &["`jiter`", "`jitter`"]);
    assert_refused("confidence = \"estimate\"", "confidence = \"sure\"", &["line 6", "`measured-crowd`"]);
    assert_refused("schema = 1", "schema = 2", &["schema: is 2", "schema 1"]);
    assert_refused("\"small\"", "\" \"", &["name: is empty"]);
    assert_refused("\"small\"", "\"sm\\u001b[31mall\"", &["name: holds a control character"]);
}

#[test]
fn mistakes_of_size_are_refused() {
    assert_refused("sockets = 2", "sockets = 0", &["topology.sockets: is 0"]);
    assert_refused("cores_per_socket = 4", "cores_per_socket = 0", &["topology.cores_per_socket: is 0"]);
    assert_refused("cores_per_domain = 2", "cores_per_domain = 3", &["3 does not divide", "4"]);
    assert_refused("cores_per_domain = 2", "cores_per_domain = 0", &["cores_per_domain: is 0"]);
    assert_refused("smt = 2", "smt = 9", &["topology.smt: is 9", "at most 8"]);
    assert_refused("cores_per_socket = 4", "cores_per_socket = 400", &["400 cache domains", "at most 64"]);
    let many = "cores_per_socket = 600\ncores_per_domain = 100 #";
    assert_refused("cores_per_socket = 4\ncores_per_domain = 2", many, &["1200 cores", "at most 256"]);
    assert_refused("ghz = 2.0", "ghz = 2600", &["topology.ghz: is 2600 GHz"]);
}

#[test]
fn mistakes_of_distance_are_refused() {
    let distances = r#"["domain", "socket", "remote"]"#;
    assert_refused(
        distances,
        r#"["socket", "remote"]"#,
        &["topology.distances", "(socket, remote)", "at least 3"],
    );
    assert_refused(distances, r#"["domain", "socket", "socket"]"#, &["`socket`", "names must differ"]);
    let four = r#"["domain", "socket", "remote", "far"]"#;
    assert_refused(distances, four, &["topology.hops: is missing", "(remote, far)", "1 to 2"]);
    let hops = |matrix: &str| format!("{distances}\nhops = {matrix}");
    assert_refused(distances, &hops("[[0, 1]]"), &["topology.hops: has 1 rows", "2 sockets"]);
    assert_refused(distances, &hops("[[0, 1], [1]]"), &["row 1 has 1 values", "must have 2"]);
    assert_refused(distances, &hops("[[1, 1], [1, 0]]"), &["socket 0 is 1 hops from itself"]);
    assert_refused(distances, &hops("[[0, 2], [2, 0]]"), &["0 and 1 are 2 hops apart", "must be 1 to 1"]);
    assert_refused(distances, &hops("[[0, 0], [0, 0]]"), &["0 and 1 are 0 hops apart"]);
    let matrix = "[[0, 1, 2], [1, 0, 1], [1, 1, 0]]";
    let text =
        SMALL.replace("sockets = 2", "sockets = 3").replace(distances, &format!("{four}\nhops = {matrix}"));
    let message = MachineSpec::parse(&text, "small.toml").unwrap_err().to_string();
    assert!(message.contains("0 and 2 are 2 hops apart one way and 1 the other"), "{message}");
}

#[test]
fn mistakes_of_latency_are_refused() {
    let cas = "cas = [20.0, 100.0, 200.0]";
    assert_refused(cas, "", &["latency_ns: is missing", "give latency_ns.cas, or all of load_modified"]);
    let one = "load_modified = [20.0, 100.0, 200.0]";
    assert_refused(cas, one, &["latency_ns.load_shared: is missing", "give latency_ns.cas, or all of"]);
    assert_refused(cas, &format!("{cas}\n{one}"), &["latency_ns.cas: stands beside other rows"]);
    let domains = "has 1 values, this machine has 3 distances (domain, socket, remote)";
    assert_refused(cas, "cas = [20.0]", &["latency_ns.cas", domains]);
    assert_refused(cas, "cas = [20.0, nan, 200.0]", &["latency_ns.cas (socket): is NaN ns"]);
    assert_refused(cas, "cas = [0.0, 100.0, 200.0]", &["latency_ns.cas (domain): is 0 ns"]);
    assert_refused(cas, "cas = [20.0, 100.0, 100001.0]", &["(remote): is 100001 ns", "at most 100000 ns"]);
    assert_refused(
        cas,
        "cas = [20.0, 300.0, 200.0]",
        &["200 ns over distance remote", "300 ns over the nearer socket"],
    );
    assert_refused("pause = 5.0", "pause = -1", &["local_ns.pause: is -1 ns"]);
    assert_refused("pause = 5.0", "pause = 5.0\nl1 = 30", &["local_ns.l1: is 30 ns", "18.4"]);
    assert_refused("pause = 5.0", "pause = 5.0\n[model]\njitter = 2", &["model.jitter: is 2", "0 to 0.9"]);
    let none = "pause = 5.0\n[model]\nstore_buffer_entries = 0";
    assert_refused("pause = 5.0", none, &["model.store_buffer_entries: is 0"]);
}

#[test]
fn ticks_leave_half_of_the_time_at_least() {
    let mut spec = MachineSpec::builtin("haswell-ex-4s").unwrap();
    spec.set("tick-hz", "5000").unwrap();
    spec.set("tick-ns", "100000").unwrap();
    let message = spec.set("tick-hz", "5001").unwrap_err().to_string();
    assert!(message.contains("half of the time between ticks"), "{message}");
}
