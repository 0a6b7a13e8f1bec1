//! Tables of sleeping locks of Linux in 2013: AIM7 and exim on Westmere.

use super::super::{Cells, KeyValue, RowKey, Rows, Scale, SeenCells, Setup, Table, Variant, statements};
use crate::names;
use crate::settings::{Assignment, Value};

/// The kind of lock that `i_mmap_mutex` was.
const MUTEX_OF_3_10: &str = "linux-counter-mutex-queue";

/// The root's lock is an rwsem even if `i_mmap_mutex` is a mutex.
fn rwsem_at_the_root(workload: &str) -> Assignment {
    let of_root = Assignment::of(&format!("{workload}.root-lock"), Value::Word("rwsem-xadd-base"));
    of_root.expect("a workload of users with jobs")
}

/// Users of AIM7 if a publication does not give their number: ten for each CPU.
const USERS: usize = 800;

/// The numbers of users for the range of a row: in steps of 10 up to 100, otherwise in steps of
/// 100.
fn users(row: &RowKey) -> Vec<usize> {
    match row.get("users") {
        Some(&KeyValue::Range(from, to)) => (from..=to).step_by(if to <= 100 { 10 } else { 100 }).collect(),
        _ => Vec::new(),
    }
}

/// Sets the machine's hyperthreading as in the row.
fn with_hyperthreading(row: &RowKey, setup: &mut Setup) {
    let smt = if row.is("smt", "on") { 2 } else { 1 };
    setup.settings.push(Assignment { setting: "machine.smt", value: Value::Integer(smt) });
}

/// Sets NUMA nodes and hyperthreading as the publication restricted the machine.
fn restricted(row: &RowKey, setup: &mut Setup) {
    with_hyperthreading(row, setup);
    let nodes = Value::Integer(row.number("nodes") as u64);
    setup.settings.push(Assignment { setting: "machine.nodes", value: nodes });
}

/// Collapses come and go within tens of milliseconds. The window contains several of them. It
/// begins after the first one, in which all users run or wait for a CPU.
const COLLAPSES: [Assignment; 2] = [
    Assignment { setting: "simulation.warm-up-ns", value: Value::Integer(60_000_000) },
    Assignment { setting: "simulation.window-ns", value: Value::Integer(300_000_000) },
];

fn collapses(setup: &mut Setup) {
    setup.settings.extend(COLLAPSES);
}

fn high_systime(row: &RowKey, setup: &mut Setup) {
    restricted(row, setup);
    collapses(setup);
    setup.threads = users(row);
}

/// The row names the workload: exim with a client for each core of the smaller machine, or a mix of
/// AIM7.
fn by_workload(row: &RowKey, setup: &mut Setup) {
    let name = row.word("workload");
    setup.workload = match names::workload(name).expect("a workload").name() {
        // This profile has the mutex of Linux 3.7 at the root only.
        "aim7-high-systime" => "aim7-high-systime-forks",
        name => name,
    };
    if setup.workload == "exim" {
        setup.machine = "westmere-ex-4s";
        setup.threads = vec![40];
        return;
    }
    setup.threads = vec![USERS];
    if setup.lock == MUTEX_OF_3_10 {
        setup.settings.push(rwsem_at_the_root(setup.workload));
    }
}

/// The choices that were made with all rows in view.
const HIGH_SYSTIME_CHOICES: &str = "that the other limit to scaling is a counter and not a spinlock, that \
     half of it grows with the users, that sections are spread evenly over all jobs and one in 500 is long, \
     the length of sections, what is counted, how long users wait for other things, and how long a core \
     keeps a line";

const MUTEX: &[Variant] = &[
    Variant { name: "without", lock: "linux-counter-mutex-no-preread", column: "without" },
    Variant { name: "with", lock: "linux-counter-mutex", column: "with" },
];

pub(super) static MUTEX_HIGH_SYSTIME: Table = Table {
    name: "mutex-high-systime",
    source: "Long, \"mutex: Make more scalable by doing less atomic operations\", linux-kernel, April 2013",
    machine: "westmere-ex-8s",
    workload: "aim7-high-systime",
    metric: "jobs",
    unit: "mean jobs per minute",
    scale: Scale::JobsPerMinute,
    keys: &["users", "nodes", "smt"],
    adjust: high_systime,
    variants: MUTEX,
    statements: statements::MUTEX_HIGH_SYSTIME,
    mean_error_max: 0.15,
    fitted: &[Cells {
        variant: "without",
        rows: Rows::With(&[
            &[("users", "1100-2000"), ("nodes", "1"), ("smt", "off")],
            &[("users", "1100-2000"), ("nodes", "2"), ("smt", "off")],
            &[("users", "1100-2000"), ("nodes", "8"), ("smt", "off")],
        ]),
    }],
    seen: &[SeenCells { variants: &["without", "with"], rows: Rows::ALL, choice: HIGH_SYSTIME_CHOICES }],
    file: published!("mutex_high_systime.csv"),
};

/// As above, with 1500 users and without hyperthreading.
fn at_1500_users(row: &RowKey, setup: &mut Setup) {
    restricted(row, setup);
    collapses(setup);
    setup.threads = vec![1500];
}

pub(super) static MUTEX_SLOWPATH_SHARE: Table = Table {
    name: "mutex-slowpath-share",
    metric: "CPU time in the mutex's slow path",
    unit: "% of CPU time",
    scale: Scale::SlowPathPercent,
    keys: &["nodes"],
    adjust: at_1500_users,
    statements: statements::MUTEX_SLOWPATH_SHARE,
    fitted: &[],
    file: published!("mutex_slowpath_share.csv"),
    ..MUTEX_HIGH_SYSTIME
};

/// All mixes. When they were first scored, mixes with forks were counted over a window within their
/// lists, and a fork had twice as many sections at the root's lock.
const MIXES: Rows = Rows::With(&[
    &[("workload", "aim7-alltests")],
    &[("workload", "aim7-custom")],
    &[("workload", "aim7-disk")],
    &[("workload", "aim7-high-systime")],
    &[("workload", "aim7-shared")],
    &[("workload", "aim7-short")],
]);

const MIXES_CHOICES: &str = "that whole runs are counted, as AIM7 does, in mixes with forks too, and that a \
     fork has as many sections at the root's lock as in the table of the mutex";

pub(super) static RWSEM_SERIES: Table = Table {
    name: "rwsem-series",
    source: "Chen, \"rwsem performance optimizations\", patch series v8, cover letter, October 2013",
    machine: "westmere-ex-8s",
    workload: "exim",
    metric: "throughput",
    unit: "% more than before",
    scale: Scale::PercentOver(
        |row| {
            if row.is("workload", "exim") { "rwsem-xadd-base" } else { MUTEX_OF_3_10 }
        },
    ),
    keys: &["workload"],
    adjust: by_workload,
    variants: &[
        Variant { name: "rwsem", lock: "rwsem-xadd-base", column: "rwsem" },
        Variant { name: "preread+spin", lock: "rwsem-xadd-preread-spin", column: "series_without_waker" },
        Variant { name: "+single-waker", lock: "rwsem-xadd", column: "series" },
    ],
    statements: statements::RWSEM_SERIES,
    mean_error_max: 0.15,
    fitted: &[Cells { variant: "preread+spin", rows: Rows::With(&[&[("workload", "exim")]]) }],
    seen: &[SeenCells {
        variants: &["rwsem", "preread+spin", "+single-waker"],
        rows: MIXES,
        choice: MIXES_CHOICES,
    }],
    file: published!("rwsem_series.csv"),
};

/// The whole machine with 1500 users, with or without hyperthreading. As in the profile, the tested
/// lock is that of the root. `i_mmap_mutex` is not simulated.
fn whole_machine(row: &RowKey, setup: &mut Setup) {
    with_hyperthreading(row, setup);
    collapses(setup);
    setup.threads = vec![1500];
}

const SINGLE_WAKER_CHOICES: &str =
    "the profile of the mutex' table, changed twice after these cells had been scored";

pub(super) static RWSEM_SINGLE_WAKER: Table = Table {
    name: "rwsem-single-waker",
    source: "Long and Chen, \"rwsem: reduce spinlock contention in wakeup code path\", patch 9/9 of the \
             series v8",
    machine: "westmere-ex-8s",
    workload: "aim7-high-systime",
    metric: "jobs",
    unit: "jobs per minute",
    scale: Scale::JobsPerMinute,
    keys: &["smt"],
    adjust: whole_machine,
    variants: &[
        Variant { name: "base", lock: "rwsem-xadd-base", column: "base" },
        Variant { name: "single-waker", lock: "rwsem-xadd-single-waker", column: "single_waker" },
        Variant { name: "series", lock: "rwsem-xadd", column: "series" },
    ],
    statements: statements::RWSEM_SINGLE_WAKER,
    mean_error_max: 0.15,
    fitted: &[],
    seen: &[SeenCells {
        variants: &["base", "single-waker", "series"],
        rows: Rows::ALL,
        choice: SINGLE_WAKER_CHOICES,
    }],
    file: published!("rwsem_single_waker.csv"),
};

pub(super) static RWSEM_SPIN_FIRST: Table = Table {
    name: "rwsem-spin-first",
    source: "the change log of version 5 in the same letter",
    machine: "westmere-ex-8s",
    workload: "exim",
    metric: "throughput",
    unit: "% more than spinning in the queue",
    scale: Scale::PercentOver(|_| "rwsem-xadd-preread-spin-queued"),
    keys: &["workload"],
    adjust: by_workload,
    variants: &[Variant { name: "spin-first", lock: "rwsem-xadd-preread-spin", column: "before_queue" }],
    statements: statements::RWSEM_SPIN_FIRST,
    mean_error_max: 0.15,
    fitted: &[],
    seen: &[SeenCells { variants: &["spin-first"], rows: MIXES, choice: MIXES_CHOICES }],
    file: published!("rwsem_spin_first.csv"),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_users_are_those_that_aim7_steps_through() {
        let users = |range| users(&RowKey::new(vec![("users", KeyValue::of(range))]));
        assert_eq!((users("1100-2000").len(), users("200-1000").len(), users("10-100").len()), (10, 9, 10));
        assert_eq!(users("10-100")[..2], [10, 20]);
        assert_eq!(users("1100-2000")[9], 2000);
    }
}
