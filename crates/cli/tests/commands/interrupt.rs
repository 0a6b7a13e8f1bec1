//! Ctrl-C ends a command with what is done so far, marked as partial, and exit status 130.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::{csv_file, json_file};
use assert_cmd::cargo::cargo_bin;

/// Starts a command, sends it SIGINT after a while, and waits for its end.
fn interrupted(args: &str, after: Duration) -> Output {
    let child = Command::new(cargo_bin!("nearlock"))
        .args(args.split_whitespace())
        .env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("interrupted-cache"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command can be run");
    thread::sleep(after);
    send_interrupt(&child);
    child.wait_with_output().expect("it ends")
}

fn send_interrupt(child: &Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.expect("there is a kill").success(), "the command had ended before");
}

fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    path
}

fn read(directory: &Path, file: &str) -> String {
    fs::read_to_string(directory.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The wait before the signal gets longer until there is a result, since a machine may be busy.
fn with_results(name: &str, args: &str, file: &str) -> (PathBuf, Output) {
    let mut after = Duration::from_secs(1);
    loop {
        let directory = directory(name);
        let run = interrupted(&format!("{args} --out {}", directory.display()), after);
        let err = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(130), "{err}");
        assert!(err.contains("interrupted: "), "{err}");
        if directory.join(file).exists() && !json_file(&read(&directory, file)).1.is_empty() {
            return (directory, run);
        }
        after *= 2;
        assert!(after < Duration::from_secs(100), "no result in all that time: {err}");
    }
}

#[test]
fn bench_leaves_valid_files_that_say_that_they_are_partial() {
    let args = "bench --mode free --lock mcs,ticket --threads 2 --section-ns 0 --think-ns 0,100,200,300 \
                --rounds 200 --duration-ms 20";
    let (directory, run) = with_results("interrupted-bench", args, "bench.json");
    let (provenance, rows) = json_file(&read(&directory, "bench.json"));
    assert_eq!(provenance["partial"], true);
    assert!(rows.iter().all(|row| row["rounds"].as_u64().is_some_and(|rounds| rounds >= 1)), "{rows:?}");
    assert!(rows.len() < 2 * 4, "{rows:?}");
    let csv = read(&directory, "bench.csv");
    assert!(csv_file(&csv).0.contains(&"# partial: true"), "{csv}");
    assert!(read(&directory, "bench.html").contains("<td>partial</td><td>true</td>"));
    assert!(String::from_utf8_lossy(&run.stdout).contains("MEASURED"));
}

#[test]
fn simulate_leaves_valid_files_that_say_that_they_are_partial() {
    let args = "simulate --machine haswell-ex-4s --lock mcs --threads 4 --seeds 10000";
    let (directory, run) =
        with_results("interrupted-simulate", args, "simulate-haswell-ex-4s-locktorture.json");
    let (provenance, rows) = json_file(&read(&directory, "simulate-haswell-ex-4s-locktorture.json"));
    assert_eq!(provenance["partial"], true);
    assert!(provenance["warnings"].to_string().contains("of 10000 cells are simulated"), "{provenance:?}");
    assert!((1..10_000).contains(&rows.len()));
    let csv = read(&directory, "simulate-haswell-ex-4s-locktorture.csv");
    assert_eq!(csv_file(&csv).1.lines().count(), rows.len() + 1);
    assert!(String::from_utf8_lossy(&run.stdout).contains("SIMULATED"));
}

#[test]
fn torture_shows_what_was_tortured() {
    let run = interrupted("torture mcs,ticket --shutdown-secs 600", Duration::from_secs(2));
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert_eq!(run.status.code(), Some(130), "{out}{err}");
    assert!(out.contains("mcs-torture: Writes:") && !out.contains("ticket-torture"), "{out}");
    assert!(err.contains("interrupted: 1 of 2 locks were tortured"), "{err}");
}

#[test]
fn reproduce_says_that_it_can_be_continued() {
    let run = interrupted("reproduce cna-locktorture --fresh", Duration::from_secs(2));
    let err = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(130), "{err}");
    assert!(err.contains("the same command continues from there"), "{err}");
}
