//! The benchmark on the machine that runs the tests. The figures are not judged.

use std::collections::BTreeSet;

use crate::support::{assert_fits, assert_refused, csv_file, json_file, keys, nearlock, sorted};
use serde_json::Value;

/// Short runs with meaningless figures.
pub const QUICK: &str = "--rounds 2 --duration-ms 5";

const KEYS: &str = "summary situations mode case lock baseline threads section_ns think_ns read_percent ns_per_op \
                    ops_per_us ratio ratio_low_quartile ratio_high_quartile rounds jain wait_ns_p99_9 \
                    wait_ns_max cpu_ns_per_op cpu_ratio instructions_per_op rmw_per_op membarriers_per_s \
                    size_bytes";

/// The rows of situations, without their means.
pub fn rows(args: &str) -> Vec<Value> {
    let run = nearlock(&format!("bench {args} {QUICK} --format json"));
    assert_eq!(run.code, 0, "{args}: {}", run.err);
    assert_eq!(keys(&run.out), sorted(KEYS));
    let rows: Vec<Value> = serde_json::from_str(&run.out).expect("JSON");
    rows.into_iter().filter(|row| row["summary"].is_null()).collect()
}

#[test]
fn sections_have_a_row_for_each_lock_and_situation() {
    let rows = rows("--mode free --locks mcs,ttas --threads 1,3 --section-ns 0,50 --think-ns 10 --wait spin");
    let found: Vec<_> = rows
        .iter()
        .map(|row| (row["threads"].as_u64(), row["section_ns"].as_u64(), row["lock"].as_str()))
        .collect();
    let mut expected = Vec::new();
    for threads in [1, 3] {
        for section_ns in [0, 50] {
            expected.extend(["mcs", "ttas"].map(|lock| (Some(threads), Some(section_ns), Some(lock))));
        }
    }
    assert_eq!(found, expected);
    for row in &rows {
        assert_eq!((&row["mode"], &row["baseline"]), (&"free".into(), &"mcs".into()));
        assert_eq!((&row["think_ns"], &row["rounds"]), (&10.into(), &2.into()));
        assert!(row["read_percent"].is_null() && row["rmw_per_op"].is_null(), "{row}");
    }
}

#[test]
fn threads_can_be_multiples_of_the_cpus() {
    let rows = rows("--mode free --locks ttas --threads 1x,2X,1x --section-ns 0 --think-ns 0");
    let threads: Vec<_> = rows.iter().map(|row| row["threads"].as_u64().expect("a number")).collect();
    assert_eq!(threads.len(), 2, "the same situation is measured once: {threads:?}");
    assert_eq!(threads[1], 2 * threads[0]);
}

#[test]
fn the_baseline_can_be_named_and_is_measured_too() {
    let rows =
        rows("--mode free --locks mcs,ttas --baseline qspinlock --threads 2 --section-ns 0 --think-ns 0");
    let locks: Vec<_> = rows.iter().map(|row| row["lock"].as_str().expect("a name")).collect();
    assert_eq!(locks, ["qspinlock", "mcs", "ttas"]);
    assert!(rows.iter().all(|row| row["baseline"] == "qspinlock"));
}

#[test]
fn peers_are_measured_beside_the_locks_and_are_baselines() {
    let rows = rows("--mode uncontended --locks mcs --peers all --baseline std,mcs,std");
    let of = |baseline: &str| -> Vec<_> {
        rows.iter()
            .filter(|row| row["baseline"] == baseline)
            .map(|row| row["lock"].as_str().expect("a name"))
            .collect()
    };
    let locks = of("std");
    for expected in ["mcs", "std", "parking-lot-0.12", "parking-lot-0.13", "usync", "spin"] {
        assert!(locks.contains(&expected), "{expected}: {locks:?}");
    }
    assert!(!locks.contains(&"std-rwlock"), "{locks:?}");
    assert_eq!((locks[0], &of("mcs"), rows.len()), ("mcs", &locks, 2 * locks.len()));
}

#[test]
fn modes_share_the_numbers_of_threads() {
    let point = "--locks ttas --section-ns 0 --think-ns 0";
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let threads_of = |rows: &[Value], mode: &str| -> Vec<u64> {
        let of_mode = rows.iter().filter(|row| row["mode"] == mode);
        of_mode.map(|row| row["threads"].as_u64().expect("a number")).collect()
    };
    let all = rows(point);
    assert_eq!(threads_of(&all, "uncontended"), [1]);
    let [parallel, free, over] = ["parallel", "free", "oversubscribed"].map(|mode| threads_of(&all, mode));
    assert_eq!([free.clone(), over.clone()].concat(), [1, 2, 4, 8, 16, 32, 64]);
    assert!(free.iter().all(|&threads| threads as usize <= cpus), "{free:?}");
    assert!(parallel.iter().all(|&threads| threads >= 2 && threads as usize <= cpus), "{parallel:?}");
    let alone = rows(&format!("--mode free {point}"));
    assert_eq!(threads_of(&alone, "free"), [1, 2, 4, 8, 16, 32, 64]);
    assert_refused(&format!("bench --mode oversubscribed --threads 1 {point}"), &["oversubscribed has "]);
    assert_refused(&format!("bench --mode parallel --threads 8000 {point}"), &["parallel has 1 to "]);
}

#[test]
fn waiters_that_only_spin_are_left_out_if_there_are_too_few_processors() {
    let locks = |args: &str| -> Vec<String> {
        let rows = rows(&format!("--section-ns 0 --think-ns 0 --mode oversubscribed --threads 2x {args}"));
        rows.iter().map(|row| row["lock"].as_str().expect("a name").to_owned()).collect()
    };
    let all = locks("--locks ttas --peers all");
    assert!(all.contains(&"usync".to_owned()) && !all.contains(&"spin".to_owned()), "{all:?}");
    assert_eq!(locks("--locks ttas --peers spin"), ["ttas", "spin"]);
}

#[test]
fn several_baselines_share_a_table() {
    let run =
        nearlock(&format!("bench --mode uncontended --locks ttas --baseline std,parking-lot-0.13 {QUICK}"));
    assert_eq!(run.code, 0, "{}", run.err);
    assert_fits(&run.out);
    assert!(run.out.contains("ratio 1 ratio 2 rmw/op ins/op bytes"), "{}", run.out);
    assert!(run.out.contains("ratio 2: times as fast as parking-lot-0.13"), "{}", run.out);
    assert_eq!(run.out.matches("\nttas ").count(), 1, "{}", run.out);
}

#[test]
fn uncontended_has_one_thread_and_no_waits() {
    let rows = rows("--mode uncontended --locks mcs,qspinlock --peers parking-lot-0.13");
    let atomics: Vec<_> = rows.iter().map(|row| row["rmw_per_op"].as_f64()).collect();
    assert_eq!((atomics[0], atomics[1]), (Some(2.0), Some(1.0)));
    for row in rows {
        assert_eq!((&row["mode"], &row["threads"]), (&"uncontended".into(), &1.into()));
        for key in ["jain", "wait_ns_p99_9", "wait_ns_max", "cpu_ns_per_op"] {
            assert!(row[key].is_null(), "{key}: {row}");
        }
    }
}

#[test]
fn hand_over_needs_two_cpus() {
    let args = "--mode handover --locks mcs,ttas --section-ns 300,600";
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        assert_refused(&format!("bench {args}"), &["CPU"]);
        return;
    }
    let rows = rows(args);
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert_eq!((&row["mode"], &row["threads"]), (&"handover".into(), &2.into()));
        assert!(row["ops_per_us"].is_null() && row["jain"].is_null(), "{row}");
    }
}

#[test]
fn cases_of_condition_variables_can_be_selected() {
    let rows =
        rows("--mode condvar --case broadcast-32,ping-pong-under-one-cpu --lock mcs,Mutex --peers std");
    let found: Vec<_> = rows
        .iter()
        .map(|row| (row["case"].as_str(), row["lock"].as_str(), row["baseline"].as_str()))
        .collect();
    let of = |case| ["near-mutex", "std"].map(|lock| (Some(case), Some(lock), Some("near-mutex")));
    assert_eq!(found, [of("ping-pong-under-one-cpu"), of("broadcast-32")].concat());
    let run = nearlock(&format!("bench --mode condvar --case broadcast-32 --lock mcs,Mutex {QUICK}"));
    assert!(run.err.contains("left out of condvar: mcs: it has no condition variable"), "{}", run.err);
    assert!(run.out.contains("\ncondvar broadcast-32: 33 threads\n"), "{}", run.out);
    assert_fits(&run.out);
}

#[test]
fn long_sections_many_locks_and_sleepers_have_rows() {
    for (mode, expected) in [
        ("long", &[Some("sleep"), Some("yield"), Some("page-fault")][..]),
        ("many", &[Some("one"), Some("shared"), Some("own")]),
        ("away", &[None]),
        ("wake", &[Some("idle"), Some("busy"), Some("relock")]),
    ] {
        let rows = rows(&format!("--mode {mode} --lock near-mutex"));
        let cases: Vec<_> = rows.iter().map(|row| row["case"].as_str()).collect();
        assert_eq!(cases, expected);
        assert!(rows.iter().all(|row| row["mode"] == mode && row["section_ns"] == 0), "{rows:?}");
    }
    let run = nearlock(&format!("bench --mode long,away,wake --case yield,busy --lock near-mutex {QUICK}"));
    let headings = ["\nlong yield: 64 threads\n", "\naway: 9 threads\n", "\nwake busy: 2 threads\n"];
    assert!(headings.iter().all(|heading| run.out.contains(heading)), "{}", run.out);
    assert_fits(&run.out);
}

#[test]
fn uncontended_sections_may_write_lines() {
    let rows = rows("--mode uncontended --case lines-1,lines-4 --lock near-mutex --peers bare-exchange");
    let cases: Vec<_> = rows.iter().map(|row| row["case"].as_str()).collect();
    assert_eq!(cases, [Some("lines-1"), Some("lines-1"), Some("lines-4"), Some("lines-4")]);
}

#[test]
fn gates_are_in_the_text_and_in_the_files() {
    // Nothing is subtracted from the time of this case, so each round counts.
    let directory = std::env::temp_dir().join(format!("nearlock-gates-{}", std::process::id()));
    let run = nearlock(&format!(
        "bench --mode uncontended --case lines-4 --lock near-mutex --peers parking-lot-0.13 --rounds 7 \
         --duration-ms 1 --out {}",
        directory.display()
    ));
    assert_eq!(run.code, 0, "{}", run.err);
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).expect(name);
    let (json, html): (Value, _) =
        (serde_json::from_str(&read("bench.json")).expect("JSON"), read("bench.html"));
    std::fs::remove_dir_all(&directory).expect("it is there");
    let gate = &json["gates"][0];
    assert_eq!((&gate["name"], &gate["rounds"]), (&"uncontended, 4 lines".into(), &7.into()), "{json}");
    assert!(gate["value"].as_f64() > Some(0.0) && gate["verdict"].is_string(), "{gate}");
    assert!(html.contains("<h2>Gates of near-mutex</h2>"), "{html}");
    assert!(
        run.out.contains("\ngates of near-mutex\n") && run.out.contains(" of 1 gates hold"),
        "{}",
        run.out
    );
    assert_fits(&run.out);
}

#[test]
fn modes_that_start_processes_have_rows() {
    let started = rows("--mode start --lock near-mutex,mcs --peers parking-lot-0.13");
    assert_eq!(started.len(), 3);
    for row in started {
        assert_eq!((&row["mode"], &row["threads"]), (&"start".into(), &17.into()));
        assert!(row["ns_per_op"].as_f64() > Some(0.0) && row["ops_per_us"].is_null(), "{row}");
    }
    let beside = rows("--mode beside --threads 4 --lock near-mutex");
    assert_eq!((&beside[0]["mode"], &beside[0]["think_ns"]), (&"beside".into(), &40.into()));
    assert!(beside[0]["cpu_ns_per_op"].as_f64() > Some(0.0), "{}", beside[0]);
}

#[test]
fn text_says_what_was_measured_and_fits() {
    for (mode, point) in
        [("free", "--threads 2 --section-ns 0 --think-ns 0"), ("uncontended", ""), ("open1", "")]
    {
        let run = nearlock(&format!("bench --mode {mode} {point} --locks all --rounds 1 --duration-ms 1"));
        assert_eq!(run.code, 0, "{}", run.err);
        assert_fits(&run.out);
        assert!(run.out.starts_with(&format!("MEASURED: {mode} on ")), "{}", run.out);
        // A long name of the processor breaks the machine's line into several lines.
        let words = run.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("rustc 1.") && words.contains("wait yield"), "{}", run.out);
        assert!(run.out.contains("\ncna-v13 ") && !run.out.contains("\nlock-"), "{}", run.out);
        // Tests are usually built without optimisation.
        if cfg!(debug_assertions) {
            assert!(run.err.contains("warning: built without optimisation"), "{}", run.err);
        }
    }
}

#[test]
fn csv_has_the_same_columns() {
    let run = nearlock(&format!(
        "bench --mode free --locks mcs --threads 2 --section-ns 100 --think-ns 0 {QUICK} --format csv"
    ));
    assert_eq!(run.code, 0, "{}", run.err);
    let lines: Vec<_> = run.out.lines().collect();
    assert_eq!(lines.len(), 2, "one situation has no mean: {}", run.out);
    assert_eq!(lines[0], KEYS.split_whitespace().collect::<Vec<_>>().join(","));
    assert!(lines[1].starts_with(",1,free,,mcs,mcs,2,100,0,,"), "{}", lines[1]);
}

#[test]
fn files_have_all_results() {
    let directory = std::env::temp_dir().join(format!("nearlock-bench-{}", std::process::id()));
    let run = nearlock(&format!(
        "bench --mode free --locks ttas --threads 1,2 --section-ns 0 --think-ns 0,100 --baseline std {QUICK} --out {}",
        directory.display()
    ));
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).expect(name);
    let (html, svg, json) = (read("bench.html"), read("bench-free-std.svg"), read("bench.json"));
    let (head, rows) = (read("bench.csv"), json_file(&json));
    assert!(csv_file(&head).0.contains(&"# partial: false"), "{head}");
    // Tests are usually not optimised, and then the command warns.
    let warnings = rows.0["warnings"].to_string();
    assert!(cfg!(not(debug_assertions)) || warnings.contains("\"built without optimisation"), "{warnings}");
    assert!(html.contains("<meta name=\"viewport\"") && html.contains("times the work of std"), "{html}");
    std::fs::remove_dir_all(&directory).expect("it is there");
    assert!(
        html.starts_with("<!DOCTYPE html>") && html.contains("<svg") && html.contains("<td>ttas</td>"),
        "{html}"
    );
    assert!(html.contains("<h2>MEASURED: free and oversubscribed, times as fast as std</h2>"), "{html}");
    // On a busy machine, the rounds of a situation may have no figures.
    let has_figures = |row: &&Value| row["summary"].is_null() && !row["ratio"].is_null();
    let thinks: BTreeSet<_> = rows.1.iter().filter(has_figures).map(|row| row["think_ns"].as_u64()).collect();
    assert_eq!(html.matches("<svg ").count(), thinks.len(), "one for each situation: {html}");
    assert_eq!(html.matches("</title>").count(), 1 + thinks.len(), "of the page and of pictures: {html}");
    for think in thinks.into_iter().flatten() {
        let heading = format!("section 0 ns, think {think} ns");
        assert!(svg.contains(&heading) && html.contains(&heading), "{heading}: {svg}");
    }
    assert!(!html.contains("min-width"), "no picture is wider than the window: {html}");
    assert!(svg.contains("times as fast as std"), "{svg}");
    assert!(run.code == 0 && json.contains("\"summary\":null"), "{}", run.err);
}

#[test]
fn a_lock_that_loses_updates_fails_and_has_no_figures() {
    let run = nearlock(
        "bench --mode free --locks lock-busted --threads 4 --section-ns 50000 --think-ns 0 --rounds 1 --duration-ms 500",
    );
    assert_eq!(run.code, 1, "{}", run.out);
    assert!(run.err.contains("FAILURE: lock-busted with 4 threads"), "{}", run.err);
    assert!(run.err.contains("increments under the lock were lost"), "{}", run.err);
    assert!(!run.out.contains("\nlock-busted"), "{}", run.out);
}

#[test]
fn many_threads_in_a_queue_stop_promptly_with_each_way_to_wait() {
    for wait in ["spin", "yield"] {
        let run = nearlock(&format!(
            "bench --mode free --locks mcs,qspinlock --threads 64 --section-ns 0 --think-ns 0 --wait {wait} {QUICK}"
        ));
        assert_eq!(run.code, 0, "{}", run.err);
    }
}

#[test]
fn a_peer_can_be_named_as_a_lock() {
    let run = nearlock(&format!("bench --mode uncontended --lock Mutex,std {QUICK} --format csv"));
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("near-mutex") && run.out.contains("std"), "{}", run.out);
}

#[test]
fn mistakes_are_named() {
    for (args, expected) in [
        ("--locks mcz", "did you mean `mcs`"),
        ("--locks mcs --baseline frob", "no lock or peer `frob`"),
        ("--threads 0", "1 or more"),
        ("--threads 0x", "as in 4x"),
        ("--threads x", "as in 4x"),
        ("--threads 1.5x", "as in 4x"),
        ("--threads 100000", "--threads 100000: 1 to 8192"),
        ("--threads 18446744073709551615x", "1 to 8192"),
        ("--section-ns=-1", "--section-ns"),
        ("--section-ns 200000000", "0 to 100000000 ns"),
        ("--think-ns soon", "--think-ns"),
        ("--rounds 0", "--rounds"),
        ("--duration-ms 0", "--duration-ms"),
        ("--read-percent 101", "--read-percent"),
        (
            "--read-percent 50 --locks rwsem,mcs",
            "--read-percent: mcs has no readers; these have: glibc-rwlock, ",
        ),
        ("--read-percent 50 --baseline std", "std has no readers"),
        ("--mode uncontended --read-percent 50", "a writer (0) or a reader (100)"),
        ("--mode handover --read-percent 50", "--read-percent does not apply to --mode handover"),
        ("--mode open1 --read-percent 50", "--read-percent does not apply to --mode open1"),
        (
            "--mode latency",
            "uncontended, parallel, free, oversubscribed, handover, open1, lock2, condvar, long, many, away, wake, start, beside, writer",
        ),
        ("--mode condvar --case frob", "--case frob: no such case; there are ping-pong-under-one-cpu, "),
        ("--mode free --case broadcast-32", "have no cases; name a mode that has"),
        (
            "--mode free --peers bare-exchange --lock mcs --baseline bare-exchange",
            "it is a control for --mode uncontended",
        ),
        ("--full --mode free", "--mode"),
        ("--full --read-percent 50 --lock mcs", "--read-percent: mcs has no readers"),
        ("--full --read-percent 50 --mode free", "--mode"),
        ("--full --read-percent 50 --case lines-4", "--case"),
        ("--mode writer --lock mcs", "--mode writer: mcs has no readers; these have: "),
        ("--mode writer,free --lock mcs", "for example parking-lot-0.13-rwlock"),
        ("--mode writer --threads 1", "writer has 2 to 8192"),
        ("--mode writer --read-percent 50", "--read-percent does not apply to --mode writer"),
        ("--mode long,many --case frob", "there are sleep, yield, page-fault, one, shared, own"),
        ("--mode away --think-ns 2", "--think-ns does not apply to --mode away"),
        ("--mode condvar --threads 2", "--threads does not apply to --mode condvar"),
        ("--mode condvar --lock mcs", "no baseline can be measured in it; mcs: it has no condition variable"),
        (
            "--mode condvar --baseline mcs --lock near-mutex",
            "no baseline can be measured in it; mcs: it has no condition variable",
        ),
        ("--mode uncontended --threads 2", "--threads does not apply to --mode uncontended"),
        ("--mode uncontended --section-ns 2", "--section-ns does not apply"),
        ("--mode handover --think-ns 2", "--think-ns does not apply to --mode handover"),
        ("--set machine.smt=1", "no setting `machine.smt` here"),
        ("--set cna-v13.threshold-ns=1", "1000 to"),
        ("--peers parking-lot", "did you mean `parking-lot-0.12`"),
        ("--peers mcs", "`mcs`: it is a lock; name it with --lock"),
        ("--lock stdd", "`std-mutex-protocol` (std), `std`"),
        ("--baseline mcs,frob", "there is no lock or peer `frob`"),
    ] {
        assert_refused(&format!("bench {args}"), &[expected]);
    }
}
