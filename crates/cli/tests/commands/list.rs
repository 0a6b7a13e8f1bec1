//! Lists of names, and help.

use crate::support::{Finished, assert_fits, commands, nearlock};
use nearlock_lab::simulate::workloads;

fn list(what: &str) -> String {
    let out = list_of(what);
    assert_fits(&out);
    out
}

fn list_of(what: &str) -> String {
    let Finished { code, out, err } = nearlock(&format!("list {what}"));
    assert_eq!((code, err.as_str()), (0, ""));
    out
}

#[test]
fn everything_is_listed() {
    for (what, names) in [
        (
            "locks",
            vec!["ttas", "mcs", "qspinlock", "cna", "cna-v13", "cna-v13-no-sro", "lock-busted", "controls"],
        ),
        (
            "switches",
            vec![
                "handoff=on    (off, on)",
                "stealing=off    (off, once, hybrid)",
                "cna:",
                "freebsd-sx:",
                "qspinlock-steal: Linux 4.15, paravirtual",
                "qspinlock with stealing=hybrid",
                "linux-counter-mutex-queue: the switches of linux-counter-mutex",
            ],
        ),
        ("peers", vec!["std", "parking-lot-0.13", "nearlock bench --peers all"]),
        ("workloads", workloads().map(|workload| workload.name()).collect()),
        ("machines", vec!["haswell-ex-4s", "westmere-ex-8s", "epyc-rome-2s", "graviton3", "144"]),
        (
            "tables",
            vec![
                "cna-locktorture",
                "haswell-ex-4s",
                "cna-wo-sro",
                "cna-context1",
                "cna-open1",
                "cna-lock2",
                "cna-readrandom",
                "cascadelake-2s",
            ],
        ),
        (
            "settings",
            vec![
                "cna.threshold-ns=1000000",
                "cna-v13.threshold-ns=10000000",
                "numa.mode=auto    (off, on or auto)",
                "numa.locality=node ",
                "numa.synthetic-nodes=2 ",
                "machine.smt=2",
                "locktorture.short-holds=v5.10",
                "context1.think-ns=",
                "aim7-shared.locking-percent=7    (0 to 100 %)",
                "simulation.window-ns=",
            ],
        ),
    ] {
        let out = list(what);
        for name in names {
            assert!(out.contains(name), "no {name} in {out}");
        }
    }
}

#[test]
fn locks_begin_with_the_recommended_ones_and_fit_a_terminal() {
    let out = list("locks");
    assert!(
        out.lines().nth(1).is_some_and(|line| line.starts_with("near-mutex ") && line.contains(" Mutex ")),
        "{out}"
    );
    assert!(out.lines().count() <= 50, "{} lines", out.lines().count());
    let all = list("locks --all");
    for subject in nearlock_lab::SUBJECTS {
        assert!(all.contains(&format!("\n{} ", subject.name)), "no {}", subject.name);
        assert!(out.contains(subject.name), "no {}", subject.name);
    }
}

#[test]
fn a_word_selects_from_each_list_and_all_lists_have_json_and_csv() {
    for (args, name, other) in [
        ("locks CNA", "cna-preemptible", "ticket"),
        ("locks SpinLock", "qspinlock-preemptible", "ticket"),
        ("settings cna", "cna.threshold-ns", "hmcs.local-pass-limit"),
        ("switches linux-mutex", "handoff", "pre-read"),
        ("machines epyc", "epyc-rome-2s", "graviton3"),
        ("tables lock2", "cna-lock2", "cna-open1"),
        ("workloads aim7", "aim7-short", "locktorture"),
        ("peers pthread", "pthread-spin", "usync"),
        ("topology quota", "CPU quota", "membarrier"),
    ] {
        let text = list(args);
        assert!(text.contains(name) && !text.contains(&format!("\n{other}")), "{args}: {text}");
        let json = list_of(&format!("{args} --format json"));
        let rows: Vec<serde_json::Map<String, serde_json::Value>> = serde_json::from_str(&json).expect(args);
        assert!(rows.iter().any(|row| row.values().any(|value| value == name)), "{args}: {json}");
        let csv = list_of(&format!("{args} --format csv"));
        assert!(csv.lines().count() > rows.len() && csv.contains(name), "{args}: {csv}");
    }
    assert!(list("").contains("nearlock list machines"));
    let cna = list("locks CNA");
    assert!(cna.contains("\ncna-v13") && cna.matches("  source\n").count() == 1, "one is named: {cna}");
    assert!(cna.contains("EuroSys 2019"), "{cna}");
    let nothing = nearlock("list locks qspinlok");
    assert_eq!(nothing.code, 2);
    assert!(nothing.err.contains("did you mean `qspinlock`"), "{}", nothing.err);
}

#[test]
fn the_lists_are_listed_in_each_format() {
    let rows: Vec<serde_json::Map<String, serde_json::Value>> =
        serde_json::from_str(&list_of("--format json")).expect("JSON");
    let all = list("");
    assert!(rows.len() == 8 && rows.len() + 1 == list_of("--format csv").lines().count());
    assert!(rows.iter().all(|row| all.contains(row["command"].as_str().expect("a text"))), "{rows:?}");
}

#[test]
fn the_settings_of_locks_are_those_of_the_list_that_bench_names() {
    let refused = nearlock("bench --set machine.smt=1").err.replace('\n', " ");
    let (_, command) = refused.split_once("`nearlock list ").expect("it names a list");
    let (words, _) = command.split_once('`').expect("the command ends");
    let rows: Vec<serde_json::Map<String, serde_json::Value>> =
        serde_json::from_str(&list_of(&format!("{words} --format json"))).expect("JSON");
    let listed: Vec<_> = rows.iter().map(|row| row["setting"].as_str().expect("a text")).collect();
    let known: Vec<_> = nearlock_lab::Setting::ALL.iter().map(|setting| setting.info().name).collect();
    assert_eq!(listed, known);
}

#[test]
fn the_topology_is_that_of_this_machine() {
    let out = list("topology");
    let fact = |name: &str| {
        let line = out.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {out}")).trim().to_owned()
    };
    let cpus: u32 = fact("CPUs online").split(' ').next().unwrap().parse().expect("a number");
    let allowed: u32 = fact("CPUs allowed").split(' ').next().unwrap().parse().expect("a number");
    let at_a_time: u32 = fact("threads at a time").parse().expect("a number");
    assert!(1 <= at_a_time && at_a_time <= allowed && allowed <= cpus, "{out}");
    assert!(fact("cost of a pause").ends_with(" ns"), "{out}");
    assert!(fact("numa.mode").starts_with("auto: o"), "{out}");
    for name in [
        "NUMA node ",
        "last-level cache ",
        "hardware threads",
        "CPU quota",
        "node of a thread by",
        "membarrier",
    ] {
        fact(name);
    }
}

#[test]
fn the_node_is_found_without_restartable_sequences() {
    let run = assert_cmd::cargo::cargo_bin_cmd!("nearlock")
        .args(["list", "topology"])
        .env("GLIBC_TUNABLES", "glibc.pthread.rseq=0")
        .output()
        .expect("the command can be run");
    let out = String::from_utf8(run.stdout).expect("results are text");
    let line = out.lines().find(|line| line.starts_with("node of a thread by")).expect("a line for it");
    // On a system without NUMA nodes, all threads count as on one NUMA node.
    assert!(!line.ends_with("rseq"), "{line}");
}

#[test]
fn every_lock_that_is_listed_can_be_simulated() {
    let quick = "--set simulation.warm-up-ns=0 --set simulation.window-ns=10000";
    let rows =
        |line: &&str| !line.starts_with(' ') && (line.contains(" classic ") || line.contains(" Linux "));
    for line in list("locks --all").lines().filter(rows) {
        let lock = line.split_whitespace().next().expect("lines have names");
        let run = nearlock(&format!("simulate --machine haswell-ex-4s --lock {lock} --threads 3 {quick}"));
        assert_eq!(run.code, 0, "{lock}: {}", run.err);
    }
}

#[test]
fn help_has_examples_and_exit_codes() {
    let help = nearlock("--help");
    assert_eq!(help.code, 0);
    for expected in ["reproduce", "simulate", "torture", "list", "Exit status", "standard error"] {
        assert!(help.out.contains(expected), "{}", help.out);
    }
    for command in commands() {
        let help = nearlock(&format!("{command} --help"));
        assert_eq!(help.code, 0);
        assert!(help.out.contains("Examples:") || command == "help", "{}", help.out);
        assert_fits(&help.out);
    }
    assert!(nearlock("--version").out.starts_with("nearlock "));
}

#[test]
fn a_closed_pipe_is_no_error() {
    for args in [
        "list locks",
        "list settings",
        "list topology",
        "completions bash",
        "man",
        "--help",
        "bench --help",
        "simulate --machine haswell-ex-4s --lock mcs --threads 1 --set simulation.window-ns=10000",
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = std::process::Command::new(assert_cmd::cargo::cargo_bin!("nearlock"))
            .args(args.split(' '))
            .stdout(writer)
            .stderr(std::process::Stdio::piped())
            .output()
            .expect("the command can be run");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), err.as_ref()), (Some(0), ""), "{args}");
    }
}

#[test]
fn nothing_is_coloured_if_the_user_wants_no_colour() {
    for args in ["--help", "frob", "list locks", "simulate --machine pdp-11 --lock mcs --threads 1"] {
        let run = |no_color: Option<&str>| {
            let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("nearlock"));
            command.args(args.split(' ')).env_remove("NO_COLOR").env("TERM", "xterm");
            command.env("CLICOLOR_FORCE", "1").envs(no_color.map(|value| ("NO_COLOR", value)));
            let output = command.output().expect("the command can be run");
            [output.stdout, output.stderr].concat()
        };
        assert!(!run(Some("1")).contains(&0x1b), "{args}");
        if args == "frob" {
            assert!(run(None).contains(&0x1b), "there can be colour, so this test can fail");
        }
    }
}
