//! Results of `simulate`, and tests of its checkers.

use crate::support::{Finished, assert_fits, keys, nearlock, nearlock_args, sorted};

/// A run that is short enough for a test.
const SIMULATE: &str = "simulate --machine haswell-ex-4s --workload locktorture --set simulation.warm-up-ns=20000 \
                        --set simulation.window-ns=200000";

fn success(args: &str) -> String {
    let Finished { code, out, err } = nearlock(args);
    assert_eq!(code, 0, "{args}: {err}");
    assert_eq!(err, "", "{args}: no progress bar without a terminal");
    out
}

#[test]
fn json_has_the_documented_keys() {
    let out = success(&format!("{SIMULATE} --lock qspinlock,cna-v13 --threads 1,8 --seeds 2 --format json"));
    let documented = "machine workload lock threads seed ops_per_us jain wait_ns_p50 wait_ns_p99 wait_ns_max cpu_ns_per_op \
                      line_transfers_per_op remote_transfers_per_op local_handover_share slow_path_share jobs_per_minute events";
    assert_eq!(keys(&out), sorted(documented));
    let rows: Vec<serde_json::Value> = serde_json::from_str(&out).expect("JSON");
    let cells: Vec<_> =
        rows.iter().map(|row| format!("{} {} {}", row["lock"], row["threads"], row["seed"])).collect();
    let expected = ["\"qspinlock\" 1 1", "\"qspinlock\" 1 2", "\"qspinlock\" 8 1", "\"qspinlock\" 8 2"];
    assert_eq!(cells[..4], expected);
    assert_eq!(cells.len(), 8);
    assert!(rows.iter().all(|row| row["ops_per_us"].as_f64().is_some_and(|ops| ops > 0.1)));
}

#[test]
fn lockstat_adds_to_the_results_and_changes_none() {
    let args = format!("{SIMULATE} --lock freebsd-mtx,qspinlock --threads 8");
    let (without, with) = (success(&args), success(&format!("{args} --lockstat")));
    assert_fits(&with);
    let (table, verdict) = without.rsplit_once("\n\nAt 8 threads ").expect("ends with a verdict");
    assert!(with.starts_with(table) && with.ends_with(verdict), "{with}");
    let added = &with[table.len()..];
    assert_eq!(added.matches("LOCKSTAT, SIMULATED: times in us of virtual time\n").count(), 2, "{with}");
    assert!(added.contains("writer (adaptive:freebsd-mtx)"), "{with}");
    assert!(
        added.contains("spin-spin, writer qspinlock: ") && added.contains(" virtual us each\n"),
        "{with}"
    );
    let json = success(&format!("{args} --lockstat --format json"));
    let plain = success(&format!("{args} --format json"));
    let [mut rows, plain]: [Vec<serde_json::Value>; 2] =
        [&json, &plain].map(|text| serde_json::from_str(text).expect("JSON"));
    for row in &mut rows {
        let lockstat = row.as_object_mut().unwrap().remove("lockstat").expect("the key");
        let mtx = &lockstat[0];
        assert!(mtx["count"].as_u64() > Some(100), "{lockstat}");
        let (wait, ns) = (mtx["wait_max_ns"].as_u64().unwrap(), row["wait_ns_max"].as_u64().unwrap());
        assert!(wait <= ns + ns / 100, "{wait} ns, {ns} ns");
    }
    assert_eq!(rows, plain, "the fixed keys stay, and so do the figures");
}

#[test]
fn lockstat_tells_readers_from_writers_and_locks_from_each_other() {
    let simulate = |workload: &str, lock: &str| {
        let limits = "--set simulation.warm-up-ns=100000 --set simulation.window-ns=1000000";
        let json = success(&format!(
            "simulate --machine westmere-ex-8s --workload {workload} --lock {lock} --threads 16 {limits} \
             --lockstat --format json"
        ));
        let rows: Vec<serde_json::Value> = serde_json::from_str(&json).expect("JSON");
        let text = |row: &serde_json::Value| {
            format!("{}-{} {}", row["class"], row["name"], row["mode"]).replace('"', "")
        };
        let modes: Vec<String> = rows[0]["lockstat"].as_array().expect("an array").iter().map(text).collect();
        modes
    };
    assert_eq!(simulate("page-fault", "freebsd-sx"), ["sx-freebsd-sx writer", "sx-freebsd-sx reader"]);
    assert_eq!(simulate("context1", "mcs"), ["spin-mcs#0 writer", "spin-mcs#1 writer"]);
}

#[test]
fn json_says_by_which_path_a_mutex_was_acquired() {
    let args = "simulate --machine westmere-ex-8s --workload sections --lock linux-counter-mutex --threads 1,40 \
                --set simulation.warm-up-ns=200000 --set simulation.window-ns=2000000 --format json";
    let rows: Vec<serde_json::Value> = serde_json::from_str(&success(args)).expect("JSON");
    assert_eq!(rows[0]["events"], serde_json::json!({}), "one thread acquires it at once");
    let count = |event: &str| rows[1]["events"][event].as_u64().unwrap_or(0);
    let by_slow_path = ["mutex_opt_lock", "mutex_lock_at_once", "mutex_lock_after_sleep"].map(count);
    assert!(
        by_slow_path[0] > 0 && by_slow_path.iter().sum::<u64>() <= count("lock_slowpath") + 40,
        "{rows:?}"
    );
}

#[test]
fn users_with_jobs_have_jobs_per_minute() {
    let args = "simulate --machine westmere-ex-8s --workload aim7-high-systime --lock mcs --threads 8 \
                --set aim7-high-systime.sleep-percent=0 --set simulation.warm-up-ns=200000 \
                --set simulation.window-ns=5000000";
    let out = success(&format!("{args} --format json"));
    let rows: Vec<serde_json::Value> = serde_json::from_str(&out).expect("JSON");
    // A job takes 4.8 ms, and eight users hardly contend.
    let jobs = rows[0]["jobs_per_minute"].as_f64().expect("a number");
    assert!((70_000.0..130_000.0).contains(&jobs), "{jobs}");
    let text = success(args);
    assert!(text.contains(&format!(" {jobs:.0}\n")) && text.contains("jobs/min"), "{text}");
    let csv = success(&format!("{SIMULATE} --lock mcs --threads 2 --format csv"));
    assert!(csv.trim_end().ends_with(','), "there are no jobs: {csv}");
}

#[test]
fn a_holder_that_computes_takes_cpu_time_and_one_that_sleeps_takes_none() {
    let args = "simulate --machine haswell-ex-4s --workload mutex-section --lock near-mutex --threads 1 \
                --set mutex-section.long-permille=1000 --set mutex-section.long-ns=50us \
                --set simulation.warm-up-ns=1ms --set simulation.window-ns=5ms";
    let cpu_ns = |away: &str| {
        let args = format!("{args} --set mutex-section.away={away}");
        let rows: Vec<serde_json::Value> =
            serde_json::from_str(&success(&format!("{args} --format json"))).expect("JSON");
        let cpu_ns = rows[0]["cpu_ns_per_op"].as_f64().expect("a number");
        let text = success(&args);
        assert!(text.contains(&format!(" {cpu_ns:.0} ")) && text.contains(" CPU/op "), "{cpu_ns} {text}");
        cpu_ns
    };
    assert!(cpu_ns("sleep") < 5_000.0 && cpu_ns("compute") > 50_000.0);
}

/// Sections that only read are compared with the same sections without a lock. With sections that
/// write, that is a fault.
#[test]
fn readers_are_compared_with_no_lock() {
    let args = "simulate --machine haswell-ex-4s --workload rw-section --threads 16 --format json \
                --set simulation.warm-up-ns=1ms --set simulation.window-ns=1ms";
    let reads = format!("{args} --lock lock-none,near-rwlock,glibc-rwlock,std-rwlock-protocol");
    let out = success(&format!("{reads} --set rw-section.read-percent=100"));
    let rows: Vec<serde_json::Value> = serde_json::from_str(&out).expect("JSON");
    let ops: Vec<_> = rows.iter().map(|row| row["ops_per_us"].as_f64().expect("a number")).collect();
    assert!(ops[1] > 0.95 * ops[0] && ops[2] < 0.5 * ops[0] && ops[3] < 0.5 * ops[0], "{ops:?}");
    let writes = nearlock(&format!("{args} --lock lock-none --set rw-section.read-percent=50"));
    let is_told = ["lock-none, 16 threads", "exclusion violated"].map(|text| writes.err.contains(text));
    assert_eq!((writes.code, is_told), (1, [true; 2]), "{}", writes.err);
}

#[test]
fn csv_has_the_same_figures() {
    let args = format!("{SIMULATE} --lock mcs --threads 4");
    let csv = success(&format!("{args} --format csv"));
    let json = success(&format!("{args} --format json"));
    let (header, row) = csv.trim_end().split_once('\n').expect("a header and a row");
    assert!(header.starts_with("machine,workload,lock,threads,seed,ops_per_us,"), "{header}");
    let ops_per_us = row.split(',').nth(5).expect("a sixth field");
    assert!(json.contains(&format!("\"ops_per_us\":{ops_per_us},")), "{json}");
}

#[test]
fn the_same_seed_gives_the_same_result_in_every_process() {
    let args =
        format!("{SIMULATE} --lock ttas,mcs,cna-v13-no-sro --threads 2,40 --seed 42 --seeds 2 --format json");
    let first = success(&args);
    assert_eq!(first, success(&args));
    let other = success(&args.replace("--seed 42", "--seed 44"));
    assert_ne!(first, other);
}

#[test]
fn settings_change_results() {
    let args = format!("{SIMULATE} --lock cna-v13 --threads 24 --format json");
    let plain = success(&args);
    for setting in [
        "cna-v13.shuffle-reduction=0",
        "machine.nodes=1",
        "machine.cross-socket-scale=2",
        "locktorture.short-holds=today",
    ] {
        assert_ne!(plain, success(&format!("{args} --set {setting}")), "{setting}");
    }
    assert_eq!(plain, success(&format!("{args} --set cna-v13.shuffle-reduction=7")), "the default");
}

#[test]
fn text_ends_with_the_work_of_the_locks_relative_to_the_first() {
    let out = success(&format!("{SIMULATE} --lock qspinlock,cna-v13,ticket --threads 1,72 --seeds 2"));
    let verdict = out.rsplit_once("\n\n").expect("a paragraph of its own").1.replace('\n', " ");
    assert!(
        verdict.starts_with("At 72 threads ") && verdict.contains(" times the work of qspinlock"),
        "{out}"
    );
    assert!(verdict.contains("the 99th percentile of the wait is "), "{out}");
    let row = out.lines().find(|line| line.starts_with("qspinlock ")).expect("a row");
    assert_eq!(row.split_whitespace().nth(4), Some("1.00"), "the first lock against itself: {out}");
    assert!(out.contains("long holds"), "{out}");
    let other = success(&format!("{SIMULATE} --lock mcs --threads 2").replace("locktorture", "sections"));
    assert!(!other.contains("long holds") && !other.contains("times the work"), "{other}");
}

#[test]
fn the_ratio_and_the_verdict_are_of_the_work_that_the_workload_counts() {
    let quick = "--set simulation.window-ns=200us --set simulation.warm-up-ns=100us";
    let args = format!("simulate --machine westmere-ex-8s --threads 16 {quick}");
    let out = success(&format!("{args} --workload aim7-high-systime --lock linux-counter-mutex,mcs"));
    let row = out.lines().find(|line| line.starts_with("mcs ")).expect("a row");
    let ratio = row.split_whitespace().nth(4).expect("a column");
    assert!(
        out.contains(&format!("At 16 threads mcs does {ratio} times the work of linux-counter-mutex")),
        "{out}"
    );
    assert!(out.contains("ratio: jobs over those of the first lock"), "{out}");
    let plain = success(&format!("{SIMULATE} --lock mcs,ticket --threads 2"));
    assert!(plain.contains("ratio: operations over those of the first lock"), "{plain}");
    let out = success(&format!("{args} --workload exim --lock rwsem-xadd-base,rwsem-xadd"));
    assert!(out.contains("At 16 threads rwsem-xadd-base and rwsem-xadd both do no work."), "{out}");
}

#[test]
fn text_says_that_it_is_simulated_and_fits() {
    let locks = "ttas,ttas-no-preread,qspinlock-whole-word,cna-v13-no-sro";
    let out = success(&format!("{SIMULATE} --lock {locks} --threads 1,8 --seed 18446744073709551000"));
    assert!(out.starts_with("SIMULATED: locktorture on haswell-ex-4s"), "{out}");
    assert_fits(&out);
}

#[test]
fn a_wide_seed_breaks_no_cell_and_a_narrow_table_shows_all_of_it() {
    for (lock, threads, shown) in [("qspinlock", 142, "..51615"), ("mcs", 1, "18446744073709551615")] {
        let out = success(&format!("{SIMULATE} --lock {lock} --threads {threads} --seed {}", u64::MAX));
        assert_fits(&out);
        let row = out.lines().nth(2).expect("a title, a header and a row");
        let cells: Vec<_> = row.split_whitespace().collect();
        assert_eq!((cells.len(), cells[0], cells[2]), (13, lock, shown), "{out}");
        assert!(out.lines().nth(3).is_some_and(|line| line.starts_with("ratio: ")), "{out}");
    }
}

#[test]
fn two_settings_of_one_lock_have_a_row_each() {
    let out = success(
        "simulate --machine haswell-ex-4s --lock cna,cna[threshold-ns=100000],linux-counter-mutex[waiter-preread=off] \
         --threads 4 --format csv --set simulation.window-ns=1000000",
    );
    let locks: Vec<_> = out.lines().skip(1).map(|row| row.split("4,").next().unwrap_or_default()).collect();
    assert_eq!(locks.len(), 3, "{out}");
    for (row, lock) in out.lines().skip(1).zip([
        "cna",
        "cna[threshold-ns=100000]",
        "linux-counter-mutex[waiter-preread=off]",
    ]) {
        assert!(row.contains(lock), "{row}");
    }
}

/// A lock with the switches of a preset has exactly the same output as the preset.
#[test]
fn a_preset_is_its_algorithm_with_its_switches() {
    let run = |lock: &str| {
        let out = success(&format!(
            "simulate --machine haswell-ex-4s --lock {lock} --threads 8 --seed 3 --format json \
             --set simulation.window-ns=1000000"
        ));
        out.replace(lock, "")
    };
    assert_eq!(run("qspinlock-steal"), run("qspinlock[stealing=hybrid]"));
    assert_ne!(run("qspinlock-steal"), run("qspinlock"));
    assert_eq!(run("cna-v13[threshold-ns=10000000]"), run("cna-v13"));
    assert_ne!(run("cna-v13[threshold-ns=1000,shuffle-reduction=0]"), run("cna-v13"));
}

/// Each control fails as required and names its seed. The printed command repeats the failure.
fn assert_detected(lock: &str, fault: &str) {
    let run = nearlock(&format!(
        "simulate --machine haswell-ex-4s --lock {lock},mcs --threads 4 --seed 11 --format json \
         --set simulation.window-ns=1000000 --set simulation.warm-up-ns=0 \
         --set simulation.livelock-ns=200000 --set simulation.starvation-ns=400000"
    ));
    assert_eq!(run.code, 1, "{lock}: {}", run.err);
    assert!(
        run.out.contains("\"mcs\"") && !run.out.contains(lock),
        "the other lock has its row: {}",
        run.out
    );
    let (failure, rest) = run.err.split_once('\n').expect("two lines");
    assert!(failure.starts_with(&format!("FAILURE: {lock}, 4 threads, seed 11: {fault}")), "{failure}");
    let command = rest.trim_end().strip_prefix("repeat it with: nearlock ").expect("a command");
    assert!(command.contains("--seed 11"), "{command}");
    let repeated = nearlock_args(command.split(' '));
    assert_eq!(repeated.code, 1);
    assert_eq!(repeated.out, "");
    assert_eq!(repeated.err, run.err, "{lock}: the same failure");
}

#[test]
fn a_lock_without_exclusion_is_detected() {
    assert_detected("lock-busted", "exclusion violated");
}

#[test]
fn a_lost_wake_up_is_detected() {
    assert_detected("lock-lost-wakeup", "deadlock");
}

#[test]
fn a_livelock_is_detected() {
    assert_detected("lock-after-you", "livelock");
}

#[test]
fn starvation_is_detected() {
    assert_detected("lock-lifo", "starvation");
}
