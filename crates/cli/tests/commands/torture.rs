//! Torture on the machine that runs the tests.

use crate::support::{assert_fits, keys, nearlock, sorted};

#[test]
fn working_locks_pass() {
    let run = nearlock("torture ttas,mcs --shutdown-secs 1s --stat-interval 1000ms --hang-secs 120");
    assert_eq!(run.code, 0, "{}", run.err);
    assert_fits(&run.out);
    let lines: Vec<_> = run.out.lines().filter(|line| line.contains("-torture: ")).collect();
    assert_eq!(lines.len(), 2, "{}", run.out);
    for (line, lock) in lines.iter().zip(["ttas", "mcs"]) {
        assert!(line.starts_with(&format!("{lock}-torture: Writes:  Total: ")), "{line}");
        assert!(line.contains("  Max/Min: ") && line.contains("  Fail: 0  SUCCESS"), "{line}");
    }
    assert!(run.out.contains("--- End of test: SUCCESS: nwriters_stress="), "{}", run.out);
}

#[test]
fn a_lock_is_tortured_as_it_is_switched() {
    let run = nearlock(
        "torture linux-mutex[handoff=off],linux-mutex --shutdown-secs 1 --nwriters 8 --hang-secs 120",
    );
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("linux-mutex[handoff=off]-torture: Writes:  Total: "), "{}", run.out);
    assert!(run.out.contains("\nlinux-mutex-torture: Writes:  Total: "), "{}", run.out);
}

#[test]
fn cna_reports_its_paths_even_if_they_were_not_taken() {
    let run = nearlock("torture cna-v13 --shutdown-secs 1 --nwriters 1 --hang-secs 120");
    assert_eq!(run.code, 0, "{}", run.err);
    let words: Vec<_> = run.out.split_whitespace().collect();
    let expected = "NOT TAKEN: cna_splice, cna_flush, cna_tail_splice, cna_tail_update_failed";
    assert!(words.join(" ").contains(expected), "{}", run.out);
    assert!(run.out.contains("SUCCESS"), "{}", run.out);
}

#[test]
fn settings_say_how_many_numa_nodes_there_are() {
    let run = |settings: &str| {
        let run = nearlock(&format!("torture cna-v13 --shutdown-secs 1 --hang-secs 120 {settings}"));
        assert_eq!(run.code, 0, "{}", run.err);
        run.out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let off = run("--set numa.mode=off");
    assert!(off.contains("NOT TAKEN: cna_splice, cna_flush") && off.contains(" numa_nodes=1 "), "{off}");
    let made_up = run("--set numa.locality=synthetic --set numa.synthetic-nodes=3");
    assert!(made_up.contains(" numa_nodes=3(synthetic) "), "{made_up}");
}

#[test]
fn there_are_four_writers_at_least() {
    let run = nearlock("torture mcs --shutdown-secs 1 --hang-secs 120 --format json");
    assert_eq!(run.code, 0, "{}", run.err);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&run.out).expect("JSON");
    assert!(rows[0]["nwriters"].as_u64() >= Some(4), "{}", run.out);
}

#[test]
fn lockstat_has_waits_and_holds() {
    let torture =
        "torture freebsd-sx,mcs --lockstat --shutdown-secs 1 --nwriters 3 --nreaders 2 --hang-secs 120";
    let run = nearlock(torture);
    assert_eq!(run.code, 0, "{}", run.err);
    assert_fits(&run.out);
    assert_eq!(run.out.matches("LOCKSTAT: times in us\n").count(), 2, "{}", run.out);
    for name in ["writer (sx:freebsd-sx)", "reader (sx:freebsd-sx)", "writer (spin:mcs)"] {
        assert!(run.out.contains(name), "no {name}: {}", run.out);
    }
    assert!(
        run.out.contains("sx-hold, reader freebsd-sx: ") && run.out.contains(" Time Distribution "),
        "{}",
        run.out
    );
    let run = nearlock(&format!("{torture} --format json"));
    assert_eq!(run.code, 0, "{}", run.err);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&run.out).expect("JSON");
    for row in &rows {
        let modes = row["lockstat"].as_array().expect("an array");
        let counted: u64 = modes.iter().map(|mode| mode["count"].as_u64().unwrap()).sum();
        let total = |of: &str| row[of].as_u64().unwrap_or(0);
        assert_eq!(counted, total("total") + total("reads_total"), "every acquisition: {row}");
        for mode in modes {
            let hold = &mode["events"][2];
            assert_eq!(hold["count"], mode["count"], "and every release: {mode}");
            let sum: u64 =
                hold["distribution"].as_array().unwrap().iter().map(|b| b["count"].as_u64().unwrap()).sum();
            assert_eq!(Some(sum), hold["count"].as_u64(), "{mode}");
        }
    }
}

#[test]
fn the_greatest_number_of_writers_is_possible() {
    let run = nearlock("torture qspinlock --nwriters 8192 --shutdown-secs 1 --hang-secs 300 --long-hold 0");
    assert_eq!(run.code, 0, "{}", run.err);
}

#[test]
fn many_writers_stop_promptly() {
    let run = nearlock(
        "torture qspinlock,cna-v13 --shutdown-secs 1 --nwriters 64 --hang-secs 120 --priority-percent 5",
    );
    assert_eq!(run.code, 0, "{}", run.err);
}

#[test]
fn a_lock_without_exclusion_is_detected() {
    let run = nearlock("torture lock-busted --shutdown-secs 2");
    assert_eq!(run.code, 1, "{}", run.out);
    // Great counts make the line longer than the terminal, so it may be broken before any word.
    let (counts, _) = run.out.split_once("longest wait").expect("the detail follows the counts");
    let words: Vec<_> = counts.split_whitespace().collect();
    assert!(words.ends_with(&["!!!", "FAILURE"]), "{counts}");
    assert!(run.out.contains("--- End of test: FAILURE"), "{}", run.out);
    assert!(run.err.contains("lock-busted-torture: "), "{}", run.err);
}

#[test]
fn a_hang_is_a_failure_and_does_not_delay_the_end() {
    let run = nearlock("torture lock-lost-wakeup --shutdown-secs 1 --hang-secs 2");
    assert_eq!(run.code, 1, "{}", run.out);
    assert!(run.err.contains("hang: no acquisition for "), "{}", run.err);
    assert!(run.out.contains("FAILURE"), "{}", run.out);
}

#[test]
fn json_and_csv_have_every_event() {
    let run = nearlock("torture cna-v13,ttas --shutdown-secs 1 --hang-secs 120 --format json");
    assert_eq!(run.code, 0, "{}", run.err);
    let documented = "lock verdict partial nwriters nreaders numa_nodes wait seconds total max min fail reads_total reads_max reads_min \
         reads_fail refused timed_out cancelled downgraded wait_ns_max events problems";
    assert_eq!(keys(&run.out), sorted(documented));
    let rows: Vec<serde_json::Value> = serde_json::from_str(&run.out).expect("JSON");
    assert!(rows[0]["events"]["lock_slowpath"].is_u64() && rows[1]["events"]["cna_flush"] == 0);
    assert!(rows.iter().all(|row| row["verdict"] == "SUCCESS" && row["fail"] == 0));

    let run = nearlock("torture mcs --shutdown-secs 1 --hang-secs 120 --format csv");
    assert_eq!(run.code, 0, "{}", run.err);
    let lines: Vec<_> = run.out.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(
        lines[0].starts_with("lock,verdict,") && lines[0].contains(",cna_tail_update_failed"),
        "{}",
        lines[0]
    );
    assert_eq!(lines[0].split(',').count(), lines[1].split(',').count());
}

#[test]
fn readers_have_a_line_of_their_own() {
    // On a busy machine a reader and a writer may not meet within a second.
    let mut runs = (0..10).map(|_| {
        nearlock("torture lock-busted-rw,mcs --shutdown-secs 1 --nwriters 3 --nreaders 2 --hang-secs 120")
    });
    let run = runs.find(|run| run.code == 1).expect("a reader and a writer meet");
    assert_fits(&run.out);
    // Lines with long counts are broken.
    let out = run.out.replace("\n    Fail: ", "  Fail: ").replace("\n    FAILURE\n", "  FAILURE\n");
    let lines: Vec<_> = out.lines().filter(|line| line.contains("-torture: ")).collect();
    let [writes, reads, mcs] = lines[..] else { panic!("{}", run.out) };
    assert!(
        writes.starts_with("lock-busted-rw-torture: Writes:  Total: ") && writes.ends_with("  FAILURE"),
        "{writes}"
    );
    assert!(
        reads.starts_with("lock-busted-rw-torture: Reads :  Total: ") && reads.contains("Max/Min: "),
        "{reads}"
    );
    assert!(mcs.ends_with("  SUCCESS"), "{mcs}");
    assert!(run.out.contains(" nwriters_stress=3 nreaders_stress=0..2 "), "{}", run.out);
    assert!(run.out.contains(", downgraded "), "{}", run.out);
}

#[test]
fn a_wake_up_lost_in_a_storm_of_cancellations_is_detected() {
    let run =
        nearlock("torture lock-lost-cancel --nwriters 8 --cancellations 1000000 --hang-secs 2 --format json");
    assert_eq!(run.code, 1, "{}", run.out);
    assert!(run.err.contains("hang: no acquisition for "), "{}", run.err);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&run.out).expect("JSON");
    assert!(rows[0]["cancelled"].as_u64() > Some(0) && rows[0]["nreaders"] == 0, "{}", run.out);
}

/// The run ends long before the hang. Otherwise the error would be the hang.
#[test]
fn a_lost_wake_up_is_named_and_reported_with_its_threads() {
    let run = nearlock(
        "torture lock-lost-cancel --nwriters 8 --cancellations 1000000 --long-hold 0 --hang-secs 600 \
         --watch-progress 50ms",
    );
    assert_eq!(run.code, 1, "{}", run.out);
    assert!(run.err.contains("lock-lost-cancel-torture: lost wake-up: no acquisition for "), "{}", run.err);
    assert!(run.err.contains("  writer 7: ") && run.err.contains("  canceller: cancels; "), "{}", run.err);
    assert!(run.err.contains("conclusion: a lost wake-up: all threads that wait"), "{}", run.err);
    let words = run.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("lost wake-up 1") && words.contains(" watch_progress=50ms"), "{}", run.out);
}

#[test]
fn a_watched_lock_has_its_stalls_counted() {
    let torture = "torture near-mutex --shutdown-secs 1 --long-hold 0 --hang-secs 120 --watch-progress 1s";
    let run = nearlock(torture);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("    stalls: ") && run.out.contains("watched with"), "{}", run.out);
    let run = nearlock(&format!("{torture} --format json"));
    assert_eq!(run.code, 0, "{}", run.err);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&run.out).expect("JSON");
    let stalls = &rows[0]["stalls"];
    assert!(
        stalls["count"].is_u64() && stalls["policy"].is_string() && stalls["causes"].is_object(),
        "{stalls}"
    );
}

#[test]
fn a_notification_lost_in_a_storm_of_cancellations_is_detected() {
    let run = nearlock("torture lock-lost-notification --nwriters 8 --cancellations 1000000 --hang-secs 2");
    assert_eq!(run.code, 1, "{}", run.out);
    assert!(run.err.contains("hang: ") || run.err.contains("lost: "), "{}", run.err);
}

#[test]
fn waits_for_a_condition_are_cancelled_so_many_times() {
    let run =
        nearlock("torture near-condvar,near-condvar-all --cancellations 500 --hang-secs 120 --format json");
    assert_eq!(run.code, 0, "{}", run.err);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&run.out).expect("JSON");
    for row in rows {
        assert!(row["cancelled"].as_u64() >= Some(500), "{row}");
        assert_eq!(row["events"]["condvar_sent"], row["events"]["condvar_return"], "{row}");
    }
}

/// `crates/bench/tests/churn.rs`, which has more time, judges the memory use.
#[test]
fn churn_is_reported() {
    let run =
        nearlock("torture near-condvar --churn --nwriters 8 --shutdown-secs 2 --hang-secs 120 --format json");
    let rows: Vec<serde_json::Value> = serde_json::from_str(&run.out).expect("JSON");
    let churn = &rows[0]["churn"];
    assert!(churn["lives"].as_u64() >= Some(8) && churn["locks"].as_u64() > Some(8), "{}", run.out);
    assert_eq!(rows[0]["nwriters"], 8);
    let problems = rows[0]["problems"].as_array().expect("an array");
    assert_eq!(run.code, i32::from(!problems.is_empty()), "{}", run.err);
    assert!(problems.iter().all(|problem| problem.as_str().unwrap().starts_with("memory: ")), "{}", run.out);
}
