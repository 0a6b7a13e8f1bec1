//! The benchmark of reader-writer locks on the machine that runs the tests. The figures are not
//! judged.

use std::collections::BTreeSet;

use crate::bench::{QUICK, rows};
use crate::support::{assert_fits, nearlock};
use serde_json::Value;

#[test]
fn readers_are_measured_if_there_are_any() {
    let found = |rows: Vec<Value>| -> Vec<_> {
        let of = |row: &Value| (row["read_percent"].as_u64(), row["lock"].as_str().map(str::to_owned));
        rows.iter().map(of).collect()
    };
    let row = |percent, lock: &str| (Some(percent), Some(lock.to_owned()));
    let mixed = rows(
        "--mode free --locks rwsem --peers std-rwlock --threads 2 --section-ns 0 --think-ns 0 --read-percent 0,90",
    );
    let expected = [row(0, "rwsem"), row(0, "std-rwlock"), row(90, "rwsem"), row(90, "std-rwlock")];
    assert_eq!(found(mixed), expected);
    let alone = rows("--mode uncontended --peers all --read-percent 100 --baseline std-rwlock");
    assert_eq!(alone[0]["lock"], "glibc-rwlock", "{}", alone[0]);
    let alone = found(alone);
    assert!(alone.contains(&row(100, "parking-lot-0.12-rwlock")) && !alone.contains(&row(100, "std")));
}

#[test]
fn a_lock_that_lets_readers_in_beside_a_writer_fails() {
    let busted = "bench --mode free --locks lock-busted-rw --threads 2 --section-ns 50000 --think-ns 50000 --read-percent 50";
    // Without spare CPUs a thread may run alone for a long time.
    let mut runs = (0..20).map(|_| nearlock(&format!("{busted} --rounds 1 --duration-ms 500")));
    let failed = runs.find(|run| run.code != 0).expect("a reader and a writer meet");
    assert_eq!(failed.code, 1, "{}", failed.err);
    assert!(failed.err.contains("FAILURE: lock-busted-rw with 2 threads"), "{}", failed.err);
    assert!(failed.err.contains("readers saw the counter change"), "{}", failed.err);
}

/// All gates of `near-rwlock`, in their order, with their figures.
const RW_GATES: [(&str, &str); 10] = [
    ("read, uncontended", "rmw/op"),
    ("read, uncontended", "time"),
    ("write, uncontended", "time"),
    ("2 readers, 0 ns", "throughput"),
    ("2 readers, 100 ns", "throughput"),
    ("mixed, mean", "throughput"),
    ("mixed, each", "throughput"),
    ("mixed, each", "Jain difference"),
    ("a writer's wait", "longest wait"),
    ("all, each", "membarriers/s"),
];

#[test]
fn full_with_reads_measures_and_judges_the_reader_writer_lock() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return;
    }
    let directory = std::env::temp_dir().join(format!("nearlock-rw-gates-{}", std::process::id()));
    let run = nearlock(&format!(
        "bench --full --read-percent 100,99,90,50 --rounds 1 --duration-ms 1 --out {}",
        directory.display()
    ));
    assert_eq!(run.code, 0, "{}", run.err);
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).expect(name);
    let (file, html): (Value, _) =
        (serde_json::from_str(&read("bench.json")).expect("JSON"), read("bench.html"));
    for percent in ["free-parking-lot-0.13-rwlock-reads-99", "parallel-parking-lot-0.13-rwlock-reads-100"] {
        assert!(read(&format!("bench-{percent}.svg")).contains("% reads, times as fast as"), "{percent}");
    }
    std::fs::remove_dir_all(&directory).expect("it is there");
    assert_fits(&run.out);
    let gates = file["gates"].as_array().expect("an array");
    let name = |gate: &Value, key: &str| gate[key].as_str().expect("a name").to_owned();
    let found: Vec<_> = gates.iter().map(|gate| (name(gate, "name"), name(gate, "measure"))).collect();
    let is_found = |&(gate, figure): &(&str, &str)| found.contains(&(gate.to_owned(), figure.to_owned()));
    // A run of 1 ms may have no operation of one of the locks, and then no figure.
    let surely = ["rmw/op", "membarriers/s"];
    assert!(RW_GATES.iter().all(|gate| is_found(gate) || !surely.contains(&gate.1)), "{found:?}");
    assert!(found.iter().all(|(gate, figure)| RW_GATES.contains(&(gate, figure))), "{found:?}");
    for gate in gates {
        assert_eq!((&gate["lock"], &gate["verdict"]), (&"near-rwlock".into(), &"too-few-rounds".into()));
        let cells = gate["cells"].as_array().expect("an array");
        assert_eq!(cells.len(), usize::from(name(gate, "name").ends_with("each")), "{gate}");
    }
    assert!(run.out.contains("\ngates of near-rwlock\n") && html.contains("<h2>Gates of near-rwlock</h2>"));
    assert!(run.out.contains("\nsituations of the gates about each: "), "{}", run.out);
    assert!(run.out.contains("\nwriter: 8 threads, section 100 ns, think 5000 ns\n"), "{}", run.out);
    rw_rows(file["rows"].as_array().expect("an array"));
}

/// Checks which locks are measured where by `--full` with `--read-percent 100,99,90,50`.
fn rw_rows(rows: &[Value]) {
    let of = |lock: &str| -> Vec<_> {
        let of_lock = rows.iter().filter(|row| row["summary"].is_null() && row["lock"] == lock);
        of_lock.map(|row| (row["mode"].as_str().expect("a name"), row["read_percent"].as_u64())).collect()
    };
    let count = |lock: &str, mode: &[&str]| of(lock).iter().filter(|row| mode.contains(&row.0)).count();
    for lock in ["near-rwlock", "parking-lot-0.13-rwlock"] {
        assert_eq!(count(lock, &["free", "oversubscribed"]), 3 * 6 * 3 * 2, "{lock}");
        assert_eq!(count(lock, &["parallel", "uncontended"]), 2 + 2, "{lock}");
        assert_eq!(of(lock).last(), Some(&("writer", None)));
    }
    assert_eq!(of("lock-none"), [("parallel", Some(100)); 2]);
    for lock in ["rwsem", "std-rwlock", "parking-lot-0.12-rwlock", "usync-rwlock"] {
        assert_eq!((count(lock, &["free", "oversubscribed"]), count(lock, &["writer"])), (9, 1), "{lock}");
    }
    assert_eq!(count("spin-rwlock", &["oversubscribed", "writer"]), 0);
    assert_eq!(count("spin-rwlock", &["uncontended"]), 2);
    // Each percentage has means of its own, and all of them together have some.
    let means = rows.iter().filter(|row| row["summary"] == "all" && row["mode"] == "contended");
    let percents: BTreeSet<_> = means.map(|row| row["read_percent"].as_u64()).collect();
    assert_eq!(percents, BTreeSet::from([None, Some(50), Some(90), Some(99), Some(100)]));
}

#[test]
fn other_percentages_of_reads_have_fewer_gates() {
    let gates = |args: &str| -> Vec<String> {
        let directory = std::env::temp_dir().join(format!("nearlock-few-gates-{}", std::process::id()));
        let run = nearlock(&format!(
            "bench --full {args} --threads 2 --section-ns 0 --think-ns 0 --rounds 7 --duration-ms 2 --out {}",
            directory.display()
        ));
        assert_eq!(run.code, 0, "{}", run.err);
        let json = std::fs::read_to_string(directory.join("bench.json")).expect("it is written");
        std::fs::remove_dir_all(&directory).expect("it is there");
        let file: Value = serde_json::from_str(&json).expect("JSON");
        let gates = file["gates"].as_array().expect("an array").iter();
        gates.map(|gate| gate["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(gates("--read-percent 75"), ["write, uncontended"]);
    // There are gates of one lock only.
    let none: [String; 0] = [];
    assert_eq!(gates("--read-percent 75 --lock rwsem --baseline parking-lot-0.13-rwlock"), none);
}

#[test]
fn a_writer_among_readers_has_rows() {
    let rows = rows("--mode writer --lock rwsem,near-rwlock --peers std-rwlock --threads 2,8");
    let found: Vec<_> = rows.iter().map(|row| (row["threads"].as_u64(), row["lock"].as_str())).collect();
    let of = |threads| ["rwsem", "near-rwlock", "std-rwlock"].map(|lock| (Some(threads), Some(lock)));
    assert_eq!(found, [of(2), of(8)].concat());
    for row in rows {
        assert_eq!((&row["mode"], &row["section_ns"]), (&"writer".into(), &100.into()));
        assert!(row["read_percent"].is_null() && row["think_ns"] == 5000, "{row}");
    }
    let run = nearlock(&format!("bench --mode writer,long --case yield --lock rwsem,mcs {QUICK}"));
    assert!(run.err.contains("left out of writer: mcs: it has no readers"), "{}", run.err);
    assert_fits(&run.out);
}
