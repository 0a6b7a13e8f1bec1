//! Each mistake gives an error that names it and lists the valid choices, with exit status 2 and no
//! results.

use std::fs::{self, OpenOptions};
use std::io;
use std::process::{Command, Stdio};

use crate::support::{assert_refused, nearlock};
use assert_cmd::cargo::cargo_bin;

const SIMULATE: &str = "simulate --machine haswell-ex-4s --lock mcs --threads 2";

#[test]
fn lockstat_needs_a_format_with_room() {
    let expected = ["--lockstat", "CSV", "--format text or json"];
    assert_refused("torture mcs --lockstat --format csv", &expected);
    let simulate = "simulate --machine haswell-ex-4s --lock mcs --threads 1 --lockstat --format csv";
    assert_refused(simulate, &expected);
    assert_refused("bench --lockstat", &["--lockstat"]);
}

#[test]
fn unknown_names() {
    for (args, expected) in [
        ("simulate --machine haswell-ex-4s --lock qspinlok --threads 2", "did you mean `qspinlock`"),
        ("simulate --machine haswell-ex-4s --lock zzz --threads 2", "`nearlock list locks` shows all"),
        ("simulate --machine haswell-ex-4s --lock std --threads 2", "for `nearlock bench` only"),
        ("simulate --machine haswell --lock mcs --threads 2", "did you mean `haswell-ex-4s`"),
        ("simulate --machine pdp-11 --lock mcs --threads 2", "`nearlock list machines` shows all"),
        (&format!("{SIMULATE} --workload frob"), "`nearlock list workloads` shows all"),
        ("reproduce cna-locktortur", "did you mean `cna-locktorture`"),
        ("reproduce frob", "`nearlock list tables` shows all"),
        ("torture msc", "did you mean `mcs`"),
        ("simulate --machine hsawell-ex-4s --lock mcs --threads 2", "did you mean `haswell-ex-4s`"),
        (&format!("{SIMULATE} --workload locktortur"), "did you mean `locktorture`"),
        ("bench --baseline tickt", "did you mean `ticket`"),
        ("reproduc", "'reproduce'"),
        ("torture mcz", "did you mean `mcs`"),
        ("torture mcs,frob", "no lock `frob`"),
        (
            "torture linux-mutex[hand-off=off]",
            "`hand-off`; did you mean `handoff`? There are: spinning (never, ",
        ),
        ("torture linux-mutex[handoff=of]", "linux-mutex: handoff must be off or on, not `of`"),
        ("torture linux-mutex[handoff]", "write NAME or NAME[KEY=VALUE,...], as in cna[threshold-ns=100000]"),
        (
            "torture linux-mutex[handoff=off",
            "write NAME or NAME[KEY=VALUE,...], as in cna[threshold-ns=100000]",
        ),
        ("torture cna[reduction=off,reduction=on]", "cna: reduction is given twice"),
        ("bench --locks ticket[frob=1]", "ticket has no switch or setting `frob`; it has none"),
        ("bench --baseline cna[threshold-ns=x]", "cna: threshold-ns must be 0 to 100000000000 ns, not `x`"),
        ("list lock", "locks, switches, peers, workloads, machines, tables, settings, topology"),
        ("list switches cnaa", "; did you mean `cna` or `cna-v13`? `nearlock list switches` shows all"),
        ("list settings treshold", "`cna-v13.threshold-ns`? `nearlock list settings` shows all"),
        ("list locks frob", "contains `frob`; `nearlock list locks` shows all"),
        ("frob", "frob"),
    ] {
        assert_refused(args, &[expected]);
    }
}

#[test]
fn names_of_removed_locks_lead_to_their_replacements() {
    for name in ["near-mutex-biased", "near-mutex-biased-eager"] {
        let expected = [&format!("`{name}`: it was removed, since "), "; `near-mutex` replaces it"];
        for args in [
            format!("torture {name}"),
            format!("torture mcs,{name}"),
            format!("simulate --machine haswell-ex-4s --lock {name} --threads 2"),
            format!("bench --locks {name}"),
            format!("bench --peers {name}"),
            format!("bench --baseline {name}"),
        ] {
            assert_refused(&args, &expected);
        }
    }
}

#[test]
fn unknown_or_absurd_settings() {
    for (setting, expected) in [
        ("threshold", "NAME.KEY=VALUE"),
        ("threshold=1", "NAME.KEY=VALUE"),
        ("cna.treshold-ns=1", "did you mean `cna.threshold-ns`"),
        ("cna-v13.treshold-ns=1", "did you mean `cna-v13.threshold-ns`"),
        ("frob.x=1", "`nearlock list settings` shows all"),
        ("cna-v13.threshold-ns=1", "must be 1000 to 100000000000 ns, not `1`"),
        ("cna-v13.threshold-ns=soon", "not `soon`"),
        ("locktorture.short-holds=v4.0", "v5.10 or today"),
        ("numa.mode=of", "must be off, on or auto, not `of`"),
        ("numa.node=1", "did you mean `numa.mode`"),
        ("numa.synthetic-nodes=0", "must be 1 to 1024 nodes"),
        ("simulation.window-ns=-1", "not `-1`"),
        ("machine.colour=red", "`nearlock list settings machine` shows all"),
        ("machine.smp=1", "did you mean `machine.smt`"),
        ("simulation.window-ns=1parsec", "not `1parsec`"),
        ("machine.smt=0", "1 to 8"),
        ("machine.nodes=5", "1 to 4"),
    ] {
        assert_refused(&format!("{SIMULATE} --set {setting}"), &[expected]);
    }
    assert_refused("torture mcs --set numa.mode=no", &["must be off, on or auto, not `no`"]);
    assert_refused(
        "torture mcs --numa-nodes 4 --set numa.mode=off",
        &["--numa-nodes 4", "numa.mode=off would have no effect"],
    );
    assert_refused(
        "torture mcs --set machine.smt=1",
        &["no setting `machine.smt` here", "only locks have settings here", "nearlock list settings cna "],
    );
    assert_refused(
        &format!("{SIMULATE} --set cna.threshold-ns=1m"),
        &["not `1m`: write a whole number of ns, or a time with its unit: ps, ns, us, ms or s"],
    );
}

#[test]
fn numbers() {
    let simulate = "simulate --machine haswell-ex-4s --lock mcs";
    for (args, expected) in [
        (format!("{simulate} --threads 0"), vec!["--threads", "'0'", "1 or more"]),
        (format!("{simulate} --threads 4,x"), vec!["--threads", "'x'", "1 or more"]),
        (format!("{simulate} --threads 4,145"), vec!["--threads 145", "144 CPUs", "1 to 144"]),
        (format!("{simulate} --threads 145 --set machine.smt=1"), vec!["72 CPUs"]),
        (format!("{simulate} --workload mutex-section --threads 10001"), vec!["at most 10000 threads"]),
        (format!("{SIMULATE} --workload context1 --set context1.lines=17"), vec!["1 to 16 lines"]),
        (format!("{SIMULATE} --workload open1 --set open1.lines=17"), vec!["0 to 16 lines"]),
        (format!("{SIMULATE} --workload lock2 --set lock2.call-ns=x"), vec!["lock2.call-ns", "`x`"]),
        (
            format!("{SIMULATE} --workload mutex-section --set mutex-section.long-permille=1001"),
            vec!["0 to 1000 permille"],
        ),
        (
            format!("{SIMULATE} --workload mutex-section --set mutex-section.away=spin"),
            vec!["sleep or compute", "`spin`"],
        ),
        (
            format!("{SIMULATE} --workload rw-section --set rw-section.read-percent=101"),
            vec!["rw-section.read-percent", "0 to 100 %"],
        ),
        (
            format!("{SIMULATE} --workload rw-section --set rw-section.read-lines=0"),
            vec!["rw-section.read-lines", "1 to 16 lines"],
        ),
        (
            format!("{SIMULATE} --workload rw-section --set rw-section.write-lines=17"),
            vec!["rw-section.write-lines", "1 to 16 lines"],
        ),
        (format!("{simulate} --workload context1 --threads 4,5"), vec!["--threads 5", "multiple of 2"]),
        (format!("{SIMULATE} --seeds 0"), vec!["--seeds", "'0'", "1 to 10000"]),
        (format!("{SIMULATE} --seeds 20000"), vec!["--seeds", "1 to 10000"]),
        (format!("{SIMULATE} --seed {} --seeds 2", u64::MAX), vec!["--seed", "beyond"]),
        (format!("{SIMULATE} --seed x"), vec!["--seed", "'x'"]),
        ("reproduce --seeds 0".to_owned(), vec!["--seeds", "1 to 10000"]),
        ("torture mcs --watch-progress 5".to_owned(), vec!["--watch-progress", "'5'", "10 to 60000 ms"]),
        ("torture mcs --watch-progress 50 --churn".to_owned(), vec!["--watch-progress", "--churn"]),
        ("torture mcs --nwriters 0".to_owned(), vec!["--nwriters", "'0'", "1 or more"]),
        ("torture mcs --nwriters 100000".to_owned(), vec!["--nwriters 100000", "1 to 8192"]),
        ("torture lock-busted-rw --nreaders 8192".to_owned(), vec!["--nreaders 8192", "0 to 81"]),
        (
            "torture mcs,ttas --nreaders 2".to_owned(),
            vec!["--nreaders: none of these locks has readers", "rwsem"],
        ),
        (
            "torture mcs --cancel-storm".to_owned(),
            vec!["--cancel-storm: waiters for these locks cannot", "near-mutex"],
        ),
        ("torture mcs --cancellations 5".to_owned(), vec!["--cancellations: waiters for these locks cannot"]),
        ("torture mcs --churn --cancel-storm".to_owned(), vec!["--churn", "--cancel-storm"]),
        ("torture lock-lost-cancel --cancellations 0".to_owned(), vec!["--cancellations", "'0'"]),
        (
            "torture lock-lost-cancel --cancel-storm --nwriters 1".to_owned(),
            vec!["with one thread no thread waits for lock-lost-cancel", "--nwriters 2"],
        ),
        ("torture mcs --shutdown-secs 0".to_owned(), vec!["--shutdown-secs", "'0'"]),
        ("torture mcs --numa-nodes 0".to_owned(), vec!["--numa-nodes", "'0'"]),
        ("torture mcs --priority-percent 101".to_owned(), vec!["--priority-percent", "100"]),
        ("torture mcs --wait sleep".to_owned(), vec!["--wait", "spin, yield"]),
        (format!("{SIMULATE} --format xml"), vec!["--format", "text, json, csv"]),
    ] {
        assert_refused(&args, &expected);
    }
}

#[test]
fn a_range_of_threads_that_is_empty() {
    let simulate = "simulate --machine haswell-ex-4s --lock mcs";
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let here = cpus + 1;
    for (args, expected) in [
        (
            format!("{simulate} --threads 200..1x"),
            "--threads 200..1x: empty range: 1x is 144 here".to_owned(),
        ),
        (
            format!("{simulate} --threads 1,80..1x --set machine.smt=1"),
            "empty range: 1x is 72 here".to_owned(),
        ),
        (format!("{simulate} --threads 8..1"), "empty range: begin with 1, as in 1..8".to_owned()),
        (format!("{simulate} --threads 4x..1x"), "empty range: begin with 1x, as in 1x..4x".to_owned()),
        (format!("bench --threads {here}..1x --lock mutex"), format!("empty range: 1x is {cpus} here")),
        (format!("bench --mode free --threads {here}..1x"), format!("empty range: 1x is {cpus} here")),
    ] {
        assert_refused(&args, &[&expected]);
    }
}

#[test]
fn times_in_units_that_do_not_exist_or_are_too_small() {
    for (args, expected) in [
        ("bench --duration-ms 5q", "1 to 60000 ms: a whole number of ms, or a time with its unit: ps, ns,"),
        ("bench --duration-ms 61s", "1 to 60000 ms"),
        ("bench --section-ns 1s", "0 to 100000000 ns: a whole number of ns, or a time with its unit"),
        ("torture mcs --shutdown-secs 1ms", "1 to 1000000 s: a whole number of s, or a time with its unit"),
        ("torture mcs --hang-secs 0.5s", "1 to 1000000 s: a whole number of s"),
        ("torture mcs --stat-interval soon", "0 to 1000000 s: a whole number of s"),
        ("torture mcs --long-hold 1h", "0 to 60000 ms: a whole number of ms"),
    ] {
        assert_refused(args, &[expected]);
    }
}

#[test]
fn missing_arguments() {
    assert_refused("simulate", &["--machine", "--lock", "--threads"]);
    assert_refused("torture", &["LOCK"]);
}

#[test]
fn commands_that_do_not_exist_yet_are_not_offered() {
    assert_refused("run", &[]);
}

/// A complete machine file.
const MACHINE: &str = r#"
schema = 1
name = "mine"
description = "two sockets"
source = "made up"
confidence = "estimate"
[topology]
sockets = 2
cores_per_socket = 2
ghz = 2.0
distances = ["socket", "remote"]
[latency_ns]
cas = [50.0, 150.0]
[local_ns]
pause = 10.0
"#;

/// Simulates the machine that `text` describes, and expects an error.
fn refused_machine(name: &str, text: &str, expected: &[&str]) {
    let path = format!("{}/{name}.toml", env!("CARGO_TARGET_TMPDIR"));
    fs::write(&path, text).expect("the directory is ours");
    assert_refused(&format!("simulate --machine {path} --lock mcs --threads 2"), expected);
}

#[test]
fn machine_files() {
    let path = format!("{}/good.toml", env!("CARGO_TARGET_TMPDIR"));
    fs::write(&path, MACHINE).expect("the directory is ours");
    let quick = "--set simulation.warm-up-ns=0 --set simulation.window-ns=10000";
    let good = nearlock(&format!("simulate --machine {path} --lock mcs --threads 4 {quick}"));
    assert_eq!(good.code, 0, "{}", good.err);
    assert!(good.out.contains("locktorture on mine"), "{}", good.out);

    let without_cas = MACHINE.replace("cas = [50.0, 150.0]", "");
    refused_machine("without-cas", &without_cas, &["without-cas.toml", "latency_ns", "cas"]);
    let one_cas = MACHINE.replace("cas = [50.0, 150.0]", "cas = [50.0]");
    refused_machine("one-cas", &one_cas, &["one-cas.toml", "latency_ns.cas"]);
    let negative = MACHINE.replace("150.0", "-150.0");
    refused_machine("negative", &negative, &["latency_ns.cas", "-150"]);
    let huge = MACHINE.replace("150.0", "150000000.0");
    refused_machine("huge", &huge, &["latency_ns.cas", "150000000"]);
    refused_machine("no-pause", &MACHINE.replace("pause = 10.0", ""), &["no-pause.toml", "pause"]);
    refused_machine("no-cores", &MACHINE.replace("cores_per_socket = 2", "cores_per_socket = 0"), &["cores"]);
    refused_machine("no-toml", "]", &["no-toml.toml"]);
    refused_machine("empty", "", &["empty.toml", "missing"]);
    assert_refused(
        "simulate --machine no/such.toml --lock mcs --threads 2",
        &["cannot read", "no/such.toml"],
    );
}

#[test]
fn an_error_that_cannot_be_printed_still_gives_an_exit_status() {
    let full = || Stdio::from(OpenOptions::new().write(true).open("/dev/full").expect("Linux has /dev/full"));
    // The reading end of the pipe is dropped.
    let closed = || Stdio::from(io::pipe().expect("a pipe").1);
    for (args, code) in
        [("frob", 2), ("reproduce nosuch", 2), ("torture lock-busted --shutdown-secs 2 --stat-interval 1", 1)]
    {
        for nowhere in [full(), closed()] {
            let mut command = Command::new(cargo_bin!("nearlock"));
            command.args(args.split(' ')).stdout(Stdio::null()).stderr(nowhere);
            assert_eq!(command.status().expect("the command can be run").code(), Some(code), "{args}");
        }
    }
}
