//! Results of `validate`. They must exist, but their values depend on the machine.

use std::fs;

use crate::support::{assert_fits, assert_refused, csv_file, json_file, keys, nearlock, sorted};

const VALIDATE: &str = "validate --quick";

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
    let file = fs::read_to_string(format!("{directory}/validate-this-machine.json"));
    let (provenance, of_file) = json_file(&file.expect("it was written"));
    assert_eq!(of_file, rows);
    assert_eq!(provenance["figures"], "measured and simulated");
    let csv = fs::read_to_string(format!("{directory}/validate-this-machine.csv")).expect("it was written");
    let (_, csv) = csv_file(&csv);
    assert!(csv.starts_with("machine,lock,threads,section_ns,think_ns,measured_ops_per_us,"), "{csv}");
    assert_eq!(csv.lines().count(), rows.len() + 1);
}

#[test]
fn text_says_what_is_measured_and_what_simulated() {
    let out = success(VALIDATE);
    assert!(out.starts_with("MEASURED on ") && out.contains("SIMULATED on this-machine"), "{out}");
    assert!(out.contains("think 5000 ns") && out.contains("mean absolute error"), "{out}");
    assert_fits(&out);
}

/// Measures this machine, and returns the path of the description.
fn described(name: &str) -> String {
    let file = format!("{}/{name}.toml", env!("CARGO_TARGET_TMPDIR"));
    let run = nearlock(&format!("measure --quick --out {file}"));
    assert_eq!(run.code, 0, "{}", run.err);
    file
}

#[test]
fn a_file_that_was_measured_here_is_compared_with_the_machine() {
    let file = described("measured-here");
    let out = success(&format!("{VALIDATE} --machine {file} --priority as-started --format csv"));
    let mut rows = out.lines().skip(1);
    assert!(out.lines().count() > 36 && rows.all(|row| row.starts_with("measured-here,")), "{out}");
}

#[test]
fn the_description_of_another_machine_is_refused() {
    assert_refused(
        "validate --machine epyc-genoa-2s",
        &["epyc-genoa-2s was not measured", "nearlock measure --out"],
    );
    let file = described("measured-elsewhere");
    let text = fs::read_to_string(&file).expect("was written");
    let is_processor = |line: &&str| line.starts_with("processor = ");
    let line = text.lines().find(is_processor).expect("the file has it");
    fs::write(&file, text.replace(line, "processor = \"Abacus 7\"")).expect("the directory is ours");
    assert_refused(
        &format!("validate --machine {file}"),
        &["is described for Abacus 7", "this machine has "],
    );
}

#[test]
fn the_priority_is_that_of_the_command_if_asked() {
    let run = nearlock("validate --quick --priority as-started --format csv");
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.err.contains("priority: as started\n"), "{}", run.err);
}

#[test]
fn a_check_tells_by_its_exit_status() {
    // On a simulated core whose accesses take microseconds, all figures differ from the measured
    // ones.
    let file = described("slow");
    let text = fs::read_to_string(&file).expect("was written");
    let mut section = "";
    let slow = text.lines().map(|line| {
        if line.starts_with('[') {
            section = line;
        }
        match (section, line.split_once(" = ")) {
            ("[local_ns]", Some((key, _))) => format!("{key} = 2000.0\n"),
            ("[latency_ns]", Some((key, values))) => {
                let slow = vec!["5000.0"; values.split(',').count()];
                format!("{key} = [{}]\n", slow.join(", "))
            }
            _ => format!("{line}\n"),
        }
    });
    fs::write(&file, slow.collect::<String>()).expect("the directory is ours");
    let run = nearlock(&format!("validate --quick --machine {file} --check"));
    assert_eq!(run.code, 1, "{}", run.err);
    assert!(run.err.contains("CHECK FAILED: mean absolute error "), "{}", run.err);
    assert!(run.out.starts_with("MEASURED on "), "{}", run.out);
}

#[test]
fn slips() {
    for (args, expected) in [
        ("validate --machine epyc-genoa", "did you mean `epyc-genoa-2s`"),
        ("validate --machine no/such.toml", "cannot read"),
        (
            "validate --set sections.think-ns=1",
            "no setting `sections.think-ns` here; `nearlock list settings machine` shows",
        ),
        ("validate --set machine.l1-ns=-1", "l1"),
        ("validate --format xml", "text, json, csv"),
        ("validate --out /dev/null/x", "--out /dev/null/x"),
        ("validate --quik", "--quick"),
        ("validate --priority urgent", "high, as-started"),
    ] {
        assert_refused(args, &[expected]);
    }
}
