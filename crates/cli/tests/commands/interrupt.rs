//! Ctrl-C ends a command with what is done so far, marked as partial, and exit status 130.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::{csv_file, json_file};
use assert_cmd::cargo::cargo_bin;

fn started(args: &str) -> Child {
    Command::new(cargo_bin!("nearlock"))
        .args(args.split_whitespace())
        .env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("interrupted-cache"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command can be run")
}

/// Starts a command, sends it SIGINT after a while, and waits for its end.
fn interrupted(args: &str, after: Duration) -> Output {
    let child = started(args);
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
    let html = read(&directory, "bench.html");
    assert!(html.contains("<td>partial</td><td>true</td>") && html.contains("<p><b>PARTIAL: "), "{html}");
    assert!(read(&directory, "bench-free-mcs.svg").contains("PARTIAL: "));
    let out = String::from_utf8_lossy(&run.stdout);
    assert!(
        out.starts_with("PARTIAL: ") && out.contains(" of 1600 runs\n") && out.contains("MEASURED"),
        "{out}"
    );
}

/// The processes of this group of processes: a helper leads its own group.
fn helpers_of(child: u32) -> Vec<String> {
    let all = Command::new("ps").args(["-eo", "args"]).output().expect("there is a ps").stdout;
    let of_child = |line: &&str| line.ends_with(&format!(" bench-helper compute {child}"));
    String::from_utf8_lossy(&all).lines().filter(of_child).map(str::to_owned).collect()
}

/// Starts a benchmark beside a process that computes, and waits until that process runs.
fn started_beside() -> Child {
    let child = started("bench --mode beside --lock mcs,ticket --threads 2 --rounds 1000 --duration-ms 20");
    while helpers_of(child.id()).is_empty() {
        thread::sleep(Duration::from_millis(5));
    }
    child
}

#[test]
fn no_helper_is_left_behind_by_an_interruption() {
    let child = started_beside();
    let id = child.id();
    send_interrupt(&child);
    let run = child.wait_with_output().expect("it ends");
    assert_eq!(run.status.code(), Some(130), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(helpers_of(id), [""; 0]);
    let run = interrupted("bench --mode start --lock mcs,ticket --rounds 10000", Duration::from_secs(1));
    let out = String::from_utf8_lossy(&run.stdout);
    assert_eq!(run.status.code(), Some(130), "{out}");
    assert!(out.starts_with("PARTIAL: "), "{out}");
}

#[test]
fn a_helper_ends_with_a_process_that_is_killed() {
    let mut child = started_beside();
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    // The system ends it. Only a hang of the test would show that it does not.
    while !helpers_of(child.id()).is_empty() {
        thread::sleep(Duration::from_millis(5));
    }
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
    let out = String::from_utf8_lossy(&run.stdout);
    let mark = format!("PARTIAL: {} of 10000 cells", rows.len());
    assert!(out.starts_with(&format!("{mark}\nSIMULATED")), "{out}");
    assert!(read(&directory, "simulate-haswell-ex-4s-locktorture.svg").contains(&mark));
}

#[test]
fn torture_shows_what_was_tortured() {
    let run = interrupted("torture mcs,ticket --shutdown-secs 600", Duration::from_secs(2));
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert_eq!(run.status.code(), Some(130), "{out}{err}");
    assert!(out.contains("mcs-torture: Writes:") && !out.contains("ticket-torture"), "{out}");
    assert!(err.contains("interrupted: 1 of 2 locks were tortured"), "{err}");
    assert!(out.contains("\nPARTIAL: 0 of 2 locks\n--- End of test: INTERRUPTED: "), "{out}");
    let run = interrupted("torture mcs --shutdown-secs 600 --format json", Duration::from_secs(2));
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&run.stdout).expect("JSON");
    assert_eq!((&rows[0]["partial"], rows.len()), (&true.into(), 1));
}

#[test]
fn a_failure_is_not_hidden_by_an_interruption() {
    let run = interrupted("torture lock-busted,mcs --nwriters 8 --shutdown-secs 600", Duration::from_secs(4));
    let out = String::from_utf8_lossy(&run.stdout);
    assert_eq!(run.status.code(), Some(1), "{out}");
    assert!(out.contains("\nPARTIAL: 0 of 2 locks\n--- End of test: FAILURE: "), "{out}");
}

/// Starts `reproduce`, and sends SIGINT when a line begins with `at`. Returns standard error.
fn reproduced_until(at: &str, args: &str) -> String {
    let mut child = started(&format!("reproduce {args}"));
    let mut lines =
        BufReader::new(child.stdout.take().expect("a pipe")).lines().map(|line| line.expect("text"));
    assert!(lines.any(|line| line.starts_with(at)), "no {at}");
    send_interrupt(&child);
    let rest: Vec<String> = lines.collect();
    let run = child.wait_with_output().expect("it ends");
    let err = String::from_utf8(run.stderr).expect("messages are text");
    assert_eq!(run.status.code(), Some(130), "{err}");
    assert!(rest.last().is_some_and(|line| line.starts_with("PARTIAL: ")), "{rest:?}");
    err
}

#[test]
fn reproduce_says_how_it_can_be_continued() {
    let fresh = reproduced_until("cna-locktorture:", "cna-locktorture --fresh");
    assert!(fresh.contains("the same command without --fresh continues from there"), "{fresh}");
    let kept = reproduced_until("cna-locktorture:", "cna-locktorture --seeds 33");
    assert!(
        kept.contains("0 of 1 tables are finished; ") && kept.contains("the same command continues"),
        "{kept}"
    );
}

#[test]
fn reproduce_leaves_the_finished_tables() {
    let directory = directory("interrupted-reproduce");
    let short = "--set simulation.warm-up-ns=20000 --seeds 4 --fresh";
    let args = format!("cna-context1 cna-locktorture {short} --out {}", directory.display());
    let err = reproduced_until("cna-locktorture:", &args);
    assert!(err.contains("1 of 2 tables are finished; only these are written"), "{err}");
    let (provenance, rows) = json_file(&read(&directory, "reproduce-cna-context1.json"));
    assert!(provenance["partial"] == true && !rows.is_empty(), "{provenance:?}");
    assert!(csv_file(&read(&directory, "reproduce-cna-context1.csv")).0.contains(&"# partial: true"));
    for file in ["reproduce-cna-context1.svg", "headline-cna-context1.svg", "evidence.svg"] {
        let path = directory.join(file);
        assert!(!path.exists() || read(&directory, file).contains("PARTIAL: 1 of 2 tables"), "{file}");
    }
    assert!(directory.join("reproduce-cna-context1.svg").exists() && directory.join("evidence.svg").exists());
    for file in ["report.html", "evidence.md"] {
        let text = read(&directory, file);
        assert!(
            text.contains("PARTIAL: 1 of 2 tables") && text.contains("Not in it: cna-locktorture"),
            "{file}"
        );
    }
    assert!(!directory.join("reproduce-cna-locktorture.json").exists());
}

#[test]
fn measurements_that_are_not_complete_are_not_written() {
    let directory = directory("interrupted-measure");
    fs::create_dir_all(&directory).expect("it can be made");
    let file = directory.join("mine.toml");
    for args in [
        "measure".to_owned(),
        format!("measure --out {}", file.display()),
        "validate".to_owned(),
        format!("validate --out {}", directory.display()),
    ] {
        let run = interrupted(&args, Duration::from_secs(1));
        let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        assert_eq!((run.status.code(), &*out), (Some(130), ""), "{args}: {err}");
        assert!(err.contains("interrupted: ") && err.contains("nothing is written"), "{args}: {err}");
        assert_eq!(fs::read_dir(&directory).expect("it is there").count(), 0, "{args}");
    }
}
