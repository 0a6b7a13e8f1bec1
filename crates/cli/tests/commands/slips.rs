//! Inputs that a user would plausibly get wrong: the message is short, and the right name is among
//! the first three that it suggests.

use crate::support::{Finished, nearlock_args};

/// What was typed, and what the message must suggest.
const SLIPS: [(&str, &str); 52] = [
    ("simulate --machine haswell --lock qspinlock --threads 2", "haswell-ex-4s"),
    ("simulate --machine epyc --lock qspinlock --threads 2", "epyc-rome-2s"),
    ("simulate --machine skylake-8s --lock qspinlock --threads 2", "skylake-sp-8s"),
    ("simulate --machine graviton --lock qspinlock --threads 2", "graviton3"),
    ("simulate --machine haswell-ex-4s --lock qspinlok --threads 2", "qspinlock"),
    ("simulate --machine haswell-ex-4s --lock cna-v15 --threads 2", "cna-v13"),
    ("simulate --machine haswell-ex-4s --lock mcslock --threads 2 --workload locktorture2", "locktorture"),
    ("simulate --machine haswell-ex-4s --lock linux-mutx --threads 2", "linux-mutex"),
    ("simulate --machine haswell-ex-4s --lock qspinlock --threads 2 --workload mutex", "mutex-section"),
    (
        "simulate --machine haswell-ex-4s --lock qspinlock --threads 2 --set cna.treshold=1ms",
        "cna.threshold-ns",
    ),
    ("simulate --machine haswell-ex-4s --lock qspinlock --threads 2 --set machine.socket=2", "machine.nodes"),
    ("simulate --machine haswell-ex-4s --lock cna[treshold-ns=1ms] --threads 2", "threshold-ns"),
    ("simulate --machine haswell-ex-4s --lock linux-mutex[handof=off] --threads 2", "handoff"),
    ("simulate --machine haswell-ex-4s --lock std --threads 2", "std-mutex-protocol"),
    ("simulate --machines haswell-ex-4s --lock qspinlock --threads 2", "--machine"),
    ("simulate --machine haswell-ex-4s --lock qspinlock --thread 2", "--threads"),
    ("simulate --machine haswell-ex-4s --lock qspinlock --threads 8..1", "1..8"),
    ("torture rwlok", "near-rwlock"),
    ("torture tickets", "ticket"),
    ("torture near_mutx", "near-mutex"),
    ("torture all --writers 4", "--nwriters"),
    ("reproduce cna-locktortur", "cna-locktorture"),
    ("reproduce locktorture", "cna-locktorture"),
    ("bench --peers parking_lot", "parking-lot-0.13"),
    ("bench --peers pthread", "pthread-mutex"),
    ("list setings", "settings"),
    ("simulate --machine haswell-ex-4s --lock mutx --threads 2", "near-mutex"),
    ("simulate --machine haswell-ex-4s --lock mutex2 --threads 2", "near-mutex"),
    ("simulate --machine haswell-ex-4s --lock std::sync::Mutex --threads 2", "near-mutex"),
    ("simulate --machine haswell-ex-4s --lock parking_lot::Mutex --threads 2", "parking-lot-0.13-protocol"),
    ("simulate --machine haswell-ex-4s --lock spinlok --threads 2", "qspinlock-preemptible"),
    ("simulate --machine haswell-ex-4s --lock pthread --threads 2", "glibc-mutex"),
    ("simulate --machine haswell-ex-4s --lock PTHREAD-MUTEX --threads 2", "glibc-mutex"),
    ("simulate --machine haswell-ex-4s --lock cna --threads 2 --set threshold-ns=1ms", "cna.threshold-ns"),
    (
        "simulate --machine haswell-ex-4s --lock cna --threads 2 --set section-ns=200",
        "mutex-section.section-ns",
    ),
    ("simulate --machine haswell-ex-4s --lock cna --threads 2 --set machine.cpus=2", "machine.nodes"),
    ("simulate --machine xeon --lock cna --threads 2", "haswell-ex-4s"),
    ("simulate --machine intel --lock cna --threads 2", "haswell-ex-4s"),
    ("simulate --machine amd --lock cna --threads 2", "epyc-genoa-2s"),
    ("simulate --machine raspberry-pi --lock cna --threads 2", "cortex-a7-quad"),
    ("simulate --machine haswell-ex-4s --lock cna --threads 2 --workload leveldb", "readrandom"),
    ("torture cna --threads 4", "'--nwriters'"),
    ("torture cna --duration 5", "'--shutdown-secs'"),
    ("torture cna --seconds=5", "'--shutdown-secs'"),
    ("bench --lock std::sync::Mutex", "`std`"),
    ("bench --lock mutx", "near-mutex"),
    ("bench --peers parking_lot::Mutex", "parking-lot-0.13"),
    ("bench --peers Mutex", "name it with --lock"),
    ("bench --seeds 3", "'--rounds'"),
    ("bench --nwriters 3", "'--threads'"),
    ("bench --set machine.smt=1", "list settings cna hmcs"),
    ("help benchh", "'bench'"),
];

/// The greatest length of a message, in lines of 100 columns.
const LINES_MAX: usize = 10;

#[test]
fn each_slip_is_answered_in_a_few_lines_with_the_right_name() {
    for (args, right) in SLIPS {
        let Finished { code, out, err } = nearlock_args(args.split(' '));
        assert_eq!((code, out.as_str()), (2, ""), "{args}: {err}");
        let rows: usize = err.lines().map(|line| line.chars().count().div_ceil(100).max(1)).sum();
        assert!(rows <= LINES_MAX, "{args}: {err}");
        let text = err.replace('\n', " ");
        // Only the first three suggestions count.
        let suggestions = text.split_once("did you mean").map(|(_, rest)| rest);
        let end_of_third = |rest: &str| rest.match_indices('`').nth(5).map_or(rest.len(), |(end, _)| end);
        let first_three = suggestions.map_or(text.as_str(), |rest| &rest[..end_of_third(rest)]);
        assert!(first_three.contains(right), "{args}: {err}");
    }
}

#[test]
fn names_in_another_spelling_are_understood() {
    let quick = "--set simulation.warm-up-ns=0 --set simulation.window-ns=10us";
    for (lock, expected) in [("CNA", "cna"), ("SpinLock", "qspinlock-preemptible"), ("mutex", "near-mutex")] {
        let run =
            format!("simulate --machine Haswell-EX-4S --locks {lock} --threads 2-3 {quick} --format csv");
        let Finished { code, out, err } = nearlock_args(run.split(' '));
        assert_eq!(code, 0, "{err}");
        let rows: Vec<_> = out.lines().skip(1).collect();
        assert!(rows.len() == 2 && rows.iter().all(|row| row.contains(&format!(",{expected},"))), "{out}");
    }
}

#[test]
fn case_and_hyphens_of_words_are_forgiven() {
    for args in [
        "list MACHINES epyc --format JSON",
        "bench --mode UNCONTENDED --lock tas --peers Std --baseline STD --rounds 1 --duration-ms 1ms --format Csv",
        "validate --quick --priority AS_STARTED --format CSV",
    ] {
        let Finished { code, err, .. } = nearlock_args(args.split(' '));
        assert_eq!(code, 0, "{args}: {err}");
    }
    let seeds = nearlock_args("reproduce ALL --seeds 1 --set machine.frob=1".split(' '));
    assert!(seeds.code == 2 && seeds.err.contains("no setting `machine.frob`"), "{}", seeds.err);
}

#[test]
fn arguments_are_repeated_without_control_characters_and_in_short() {
    let (red, long) = ("x\u{1b}]31m\nred", "a".repeat(3000));
    for (before, argument) in [
        ("", red),
        ("help", red),
        ("list", red),
        ("list locks", red),
        ("man", red),
        ("torture", red),
        ("torture", "cna[x\u{1b}=1]"),
        ("reproduce", red),
        ("bench --lock", red),
        ("bench --peers", red),
        ("bench --baseline", red),
        ("bench --set", red),
        ("bench --rounds", red),
        ("bench --format", red),
        ("bench --duration-ms", red),
        ("simulate --lock mcs --threads 1 --machine", red),
        ("simulate --lock mcs --threads 1 --machine", "no/\u{1b}"),
        ("simulate --lock mcs --threads 1 --machine haswell-ex-4s --workload", red),
        ("", &long),
        ("help", &long),
        ("list locks", &long),
        ("torture", &long),
        ("reproduce", &long),
        ("bench --set", &long),
        ("bench --rounds", &long),
        ("simulate --lock mcs --threads 1 --machine", &long),
    ] {
        let Finished { code, err, .. } =
            nearlock_args(before.split(' ').filter(|word| !word.is_empty()).chain([argument]));
        assert_eq!(code, 2, "{before}: {err}");
        assert!(!err.contains('\u{1b}') && !err.contains("\nred"), "{before}: {err:?}");
        assert!(!err.contains(&"a".repeat(61)), "{before}: {err}");
        let flag = nearlock_args(["bench", &format!("--{argument}")]);
        assert!(flag.code == 2 && !flag.err.contains('\u{1b}') && flag.err.len() < 500, "{:?}", flag.err);
    }
}
