//! Runs the real command.

use std::process::Output;

use assert_cmd::cargo::cargo_bin_cmd;

/// Exit status, standard output and standard error of one run.
pub struct Finished {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// Runs `nearlock` with these arguments, split at spaces.
pub fn nearlock(args: &str) -> Finished {
    nearlock_args(args.split_whitespace())
}

/// Runs `nearlock` with these arguments.
pub fn nearlock_args<'a>(args: impl IntoIterator<Item = &'a str>) -> Finished {
    let mut command = cargo_bin_cmd!("nearlock");
    // Other runs need not reuse the results that are simulated here.
    command.args(args).env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    let Output { status, stdout, stderr } = command.output().expect("the command can be run");
    Finished {
        code: status.code().expect("the command was not killed"),
        out: String::from_utf8(stdout).expect("results are text"),
        err: String::from_utf8(stderr).expect("messages are text"),
    }
}

/// The commands in the help.
pub fn commands() -> Vec<String> {
    let help = nearlock("--help").out;
    let (_, listed) = help.split_once("\nCommands:\n").expect("the help lists commands");
    let (listed, _) = listed.split_once("\n\n").expect("the list ends");
    let lines = listed.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// Asserts that this is a usage error that names the mistake and the valid choices.
pub fn assert_refused(args: &str, expected: &[&str]) {
    let Finished { code, out, err } = nearlock(args);
    assert_eq!(code, 2, "{args}: {err}");
    assert_eq!(out, "", "{args}: nothing on standard output");
    assert!(err.starts_with("error: "), "{args}: {err}");
    assert!(err.lines().count() <= 10, "{args}: too long: {err}");
    let err = err.replace('\n', " ");
    for expected in expected {
        assert!(err.contains(expected), "{args}: no `{expected}` in: {err}");
    }
}

/// Asserts that text fits a terminal.
pub fn assert_fits(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
    }
}

/// The keys of the objects of a JSON array. All objects must have the same keys.
pub fn keys(json: &str) -> Vec<String> {
    let rows: Vec<serde_json::Map<String, serde_json::Value>> =
        serde_json::from_str(json).expect("an array of objects");
    let keys: Vec<Vec<String>> = rows.iter().map(|row| row.keys().cloned().collect()).collect();
    assert!(keys.windows(2).all(|pair| pair[0] == pair[1]), "{keys:?}");
    keys.into_iter().next().expect("at least one object")
}

/// These names, in the order of [`keys`].
pub fn sorted(names: &str) -> Vec<String> {
    let mut names: Vec<String> = names.split_whitespace().map(str::to_owned).collect();
    names.sort_unstable();
    names
}

/// The documented fields of the head of a file of results.
pub const PROVENANCE: &str =
    "figures nearlock compiler command date processor cpus is_virtual partial warnings failures";

/// The head and the rows of a JSON file of results.
pub fn json_file(text: &str) -> (serde_json::Map<String, serde_json::Value>, Vec<serde_json::Value>) {
    let file: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let provenance = file["provenance"].as_object().expect("an object").clone();
    let keys: Vec<String> = provenance.keys().cloned().collect();
    assert_eq!(keys, sorted(PROVENANCE), "{text}");
    assert!(provenance["command"].as_str().is_some_and(|command| command.starts_with("nearlock ")), "{text}");
    (provenance, file["rows"].as_array().expect("an array").clone())
}

/// The head of a CSV file of results, and the lines below it.
pub fn csv_file(text: &str) -> (Vec<&str>, String) {
    let (head, rows): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with("# "));
    assert!(head.iter().any(|line| line.starts_with("# command: nearlock ")), "{text}");
    (head, rows.iter().map(|row| format!("{row}\n")).collect())
}
