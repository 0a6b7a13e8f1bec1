//! `--out`: results as files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Finished, csv_file, json_file, nearlock, nearlock_args};

const SIMULATE: &str = "simulate --machine haswell-ex-4s --workload locktorture --set simulation.warm-up-ns=20000 \
                        --set simulation.window-ns=200000 --lock qspinlock,hmcs --threads 1,8,36 --seeds 2";

/// A path that only this test uses, at which nothing exists.
fn nothing_at(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
    path
}

fn read(directory: &Path, file: &str) -> String {
    fs::read_to_string(directory.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn simulate_into(directory: &Path, format: &str) -> String {
    let out = directory.to_str().expect("a path of letters");
    let arguments = SIMULATE.split_whitespace().chain(["--format", format, "--out", out]);
    let Finished { code, out, err } = nearlock_args(arguments);
    assert_eq!(code, 0, "{err}");
    assert_eq!(err.matches("wrote ").count(), 3, "{err}");
    out
}

#[test]
fn the_files_say_what_standard_output_says() {
    let directory = nothing_at("out/within");
    let json = simulate_into(&directory, "json");
    let (provenance, rows) = json_file(&read(&directory, "simulate-haswell-ex-4s-locktorture.json"));
    assert_eq!(rows, serde_json::from_str::<Vec<serde_json::Value>>(&json).expect("JSON"));
    assert_eq!((&provenance["figures"], &provenance["partial"]), (&"simulated".into(), &false.into()));
    let picture = read(&directory, "simulate-haswell-ex-4s-locktorture.svg");
    assert!(picture.starts_with("<svg "));
    for text in
        ["SIMULATED: locktorture on haswell-ex-4s", "qspinlock", "hmcs", "acquisitions per us", "threads"]
    {
        assert!(picture.contains(text), "no `{text}` in the picture");
    }
    assert!(picture.contains("Shaded"), "two seeds have a range");
    let csv = simulate_into(&directory, "csv");
    let file = read(&directory, "simulate-haswell-ex-4s-locktorture.csv");
    let (head, rows) = csv_file(&file);
    assert_eq!(rows, csv);
    assert!(head.contains(&"# figures: simulated") && head.contains(&"# partial: false"), "{head:?}");
    assert_eq!(read(&directory, "simulate-haswell-ex-4s-locktorture.svg"), picture, "the same once more");
    let files = fs::read_dir(&directory).expect("is there").count();
    assert_eq!(files, 3, "and nothing else");
}

#[test]
fn a_path_that_is_no_directory_is_refused_before_anything_is_simulated() {
    let file = nothing_at("no-directory");
    fs::write(&file, "kept").expect("can be written");
    let Finished { code, out, err } = nearlock(&format!("{SIMULATE} --out {}", file.display()));
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    // The length of the path determines where lines are broken.
    let message = err.replace('\n', " ");
    assert!(message.contains("no-directory") && message.contains("must be a directory"), "{err}");
    assert_eq!(fs::read_to_string(&file).expect("is still there"), "kept");
}

/// Locks that fail in the simulator, and one that works.
const FAILING: &str = "simulate --machine haswell-ex-4s --threads 4 --seed 11 --set simulation.window-ns=1000000 \
                       --set simulation.warm-up-ns=0 --set simulation.livelock-ns=200000";

/// Asserts that the files with this name have this number of rows, and name a failure that begins
/// with `failure`.
fn assert_failure(directory: &Path, stem: &str, rows: usize, failure: &str) {
    let (provenance, of_json) = json_file(&read(directory, &format!("{stem}.json")));
    let failures = provenance["failures"].as_array().expect("an array");
    assert!(failures[0].as_str().is_some_and(|text| text.starts_with(failure)), "{failures:?}");
    assert_eq!((of_json.len(), failures.len()), (rows, 1));
    let csv = read(directory, &format!("{stem}.csv"));
    let (head, of_csv) = csv_file(&csv);
    assert!(head.iter().any(|line| line.starts_with(&format!("# failure: {failure}"))), "{csv}");
    assert_eq!(of_csv.lines().count(), rows + 1, "{csv}");
}

#[test]
fn the_files_name_the_locks_that_failed() {
    let directory = nothing_at("out/failed");
    let out = directory.display();
    let run = nearlock(&format!("{FAILING} --lock lock-busted,mcs --out {out}"));
    assert_eq!(run.code, 1, "{}", run.err);
    let failure = "lock-busted, 4 threads, seed 11: exclusion violated";
    assert_failure(&directory, "simulate-haswell-ex-4s-locktorture", 1, failure);
    let picture = read(&directory, "simulate-haswell-ex-4s-locktorture.svg");
    assert!(picture.contains("FAILURE: lock-busted, 4 threads"), "{picture}");
    assert!(run.out.contains("\nAt 4 threads lock-busted failed."), "{}", run.out);
    let one = "--threads 4 --section-ns 50000 --think-ns 0 --rounds 1 --duration-ms 500";
    let run = nearlock(&format!("bench --mode free --lock mcs,lock-busted {one} --out {out}"));
    assert_eq!(run.code, 1, "{}", run.err);
    let rows = json_file(&read(&directory, "bench.json")).1.len();
    assert_failure(&directory, "bench", rows, "lock-busted with 4 threads");
    assert!(read(&directory, "bench.html").contains("<td>failure</td><td>lock-busted with 4 threads"));
}

#[test]
fn files_without_rows_keep_their_header() {
    let directory = nothing_at("out/all-failed");
    let out = directory.display();
    let header = |args: &str| {
        let run = nearlock(&format!("{args} --format csv"));
        (run.code, run.out.lines().next().map(str::to_owned), run.out.lines().count())
    };
    let simulate = |lock: &str| header(&format!("{FAILING} --lock {lock} --out {out}"));
    let (_, expected, _) = simulate("mcs");
    assert_eq!(simulate("lock-busted"), (1, expected, 1));
    assert_failure(&directory, "simulate-haswell-ex-4s-locktorture", 0, "lock-busted, 4 threads");
    let one = "--threads 4 --section-ns 50000 --think-ns 0 --rounds 1 --duration-ms 500";
    let bench =
        |lock: &str| header(&format!("bench --mode free --lock {lock} --baseline {lock} {one} --out {out}"));
    let (_, expected, _) = bench("mcs");
    assert_eq!(bench("lock-busted"), (1, expected, 1));
    assert_failure(&directory, "bench", 0, "lock-busted with 4 threads");
    let short = "--quick --seeds 1 --set simulation.warm-up-ns=20000 --set simulation.window-ns=100000";
    for kind in ["", " --mechanisms"] {
        let (stem, reproduce) = (kind.replace(" -", ""), format!("reproduce cna-context1 {short}{kind}"));
        let (_, expected, _) = header(&reproduce);
        let failing = format!(
            "{reproduce} --set simulation.livelock-ns=1000 --set context1.section-ns=1ms --out {out}"
        );
        assert_eq!(header(&failing), (1, expected, 1), "{failing}");
        assert_failure(&directory, &format!("reproduce-cna-context1{stem}"), 0, "cna-context1: ");
    }
    assert!(read(&directory, "report.html").contains("<tr><td>failure</td><td>cna-context1: "));
    assert!(read(&directory, "evidence.md").contains("\n- failure: cna-context1: "));
}

#[cfg(target_os = "linux")]
#[test]
fn results_that_cannot_be_written_are_a_failure() {
    let full = || fs::File::options().write(true).open("/dev/full").expect("is there");
    for args in ["--help", "--version", "list locks", "help bench"] {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("nearlock"));
        let run = command.args(args.split(' ')).stdout(full()).output().expect("the command can be run");
        let err = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(1), "{args}: {err}");
        assert!(err.contains("cannot write the results: "), "{args}: {err}");
    }
    let run = nearlock("measure --quick --out /dev/full");
    assert_eq!(run.code, 1, "{}", run.err);
    assert!(run.err.contains("cannot write the results: /dev/full: "), "{}", run.err);
    let help = nearlock("--help").out;
    assert!(
        help.contains("\n  1  a lock or a requested check failed") && help.contains("could not be written")
    );
}
