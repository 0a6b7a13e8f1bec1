//! Inputs that a user would plausibly get wrong: the message is short, and the right name is among
//! the first three that it suggests.

use crate::support::{Finished, nearlock_args};

/// What was typed, and what the message must suggest.
const SLIPS: [(&str, &str); 26] = [
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
    ("torture rwlock", "freebsd-rw"),
    ("torture tickets", "ticket"),
    ("torture near_mutx", "near-mutex"),
    ("torture all --writers 4", "--nwriters"),
    ("reproduce cna-locktortur", "cna-locktorture"),
    ("reproduce locktorture", "cna-locktorture"),
    ("bench --peers parking_lot", "parking-lot-0.13"),
    ("bench --peers pthread", "pthread-mutex"),
    ("list setings", "settings"),
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
