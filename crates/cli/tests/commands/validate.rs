//! Results of `validate`. They must exist, but their values depend on the machine.

use std::fs;

use crate::support::{assert_fits, assert_refused, csv_file, json_file, keys, nearlock, sorted};

const VALIDATE: &str = "validate --quick --machine epyc-genoa-2s";

const SLOW: &str = r#"
schema = 1
name = "slow"
description = "one core"
source = "made up"
confidence = "estimate"
[topology]
sockets = 1
cores_per_socket = 1
ghz = 0.01
distances = ["socket"]
[latency_ns]
cas = [5000.0]
[local_ns]
l1 = 2000.0
atomic_owned = 2000.0
pause = 1000.0
"#;

fn success(args: &str) -> String {
    let run = nearlock(args);
    assert_eq!(run.code, 0, "{args}: {}", run.err);
    assert!(run.err.contains("threads on CPU ") && run.err.contains("priority: "), "{args}: {}", run.err);
    run.out
}

#[test]
fn json_has_the_documented_keys_and_a_row_for_each_cell() {
    let directory = format!("{}/validate-out", env!("CARGO_TARGET_TMPDIR"));
    let out = success(&format!("{VALIDATE} --format json --out {directory}"));
    let documented = "machine lock threads section_ns think_ns measured_ops_per_us measured_low measured_high \
                      bursts simulated_ops_per_us error";
    assert_eq!(keys(&out), sorted(documented));
    let rows: Vec<serde_json::Value> = serde_json::from_str(&out).expect("JSON");
    let two = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
    assert_eq!(rows.len(), if two { 72 } else { 36 });
    for row in &rows {
        let number = |key: &str| row[key].as_f64().filter(|number| number.is_finite());
        let [low, median, high] = ["measured_low", "measured_ops_per_us", "measured_high"].map(number);
        assert!(Some(0.0) < low && low <= median && median <= high, "{row}");
        let simulated = number("simulated_ops_per_us").expect("a number");
        let (error, median) = (number("error").expect("a number"), median.expect("a number"));
        assert!(((error + 1.0) * median / simulated - 1.0).abs() < 1e-6, "{row}");
    }
    let file = fs::read_to_string(format!("{directory}/validate-epyc-genoa-2s.json"));
    let (provenance, of_file) = json_file(&file.expect("it was written"));
    assert_eq!(of_file, rows);
    assert_eq!(provenance["figures"], "measured and simulated");
    let csv = fs::read_to_string(format!("{directory}/validate-epyc-genoa-2s.csv")).expect("it was written");
    let (_, csv) = csv_file(&csv);
    assert!(csv.starts_with("machine,lock,threads,section_ns,think_ns,measured_ops_per_us,"), "{csv}");
    assert_eq!(csv.lines().count(), rows.len() + 1);
}

#[test]
fn text_says_what_is_measured_and_what_simulated() {
    let out = success(VALIDATE);
    assert!(out.starts_with("MEASURED on ") && out.contains("SIMULATED on epyc-genoa-2s"), "{out}");
    assert!(out.contains("think 5000 ns") && out.contains("mean absolute error"), "{out}");
    assert_fits(&out);
}

#[test]
fn without_a_file_the_machine_is_measured() {
    let out = success("validate --quick --format csv");
    assert!(
        out.lines().count() > 36 && out.lines().skip(1).all(|row| row.starts_with("this-machine,")),
        "{out}"
    );
}

#[test]
fn a_check_tells_by_its_exit_status() {
    // On a simulated core with accesses of microseconds, all figures differ from the measured ones.
    let slow = format!("{}/slow.toml", env!("CARGO_TARGET_TMPDIR"));
    fs::write(&slow, SLOW).expect("the directory is ours");
    let run = nearlock(&format!("validate --quick --machine {slow} --check"));
    assert_eq!(run.code, 1, "{}", run.err);
    assert!(run.err.contains("CHECK FAILED: mean absolute error "), "{}", run.err);
    assert!(run.out.starts_with("MEASURED on "), "{}", run.out);
}

#[test]
fn slips() {
    for (args, expected) in [
        ("validate --machine epyc-genoa", "did you mean `epyc-genoa-2s`"),
        ("validate --machine no/such.toml", "cannot read"),
        ("validate --machine epyc-genoa-2s --set sections.think-ns=1", "no setting `sections.think-ns` here"),
        ("validate --machine epyc-genoa-2s --set machine.l1-ns=-1", "l1"),
        ("validate --machine epyc-genoa-2s --format xml", "text, json, csv"),
        ("validate --machine epyc-genoa-2s --out /dev/null/x", "--out /dev/null/x"),
        ("validate --quik", "--quick"),
    ] {
        assert_refused(args, &[expected]);
    }
}
