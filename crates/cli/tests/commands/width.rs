//! The width of text: that of the terminal, which the variable `COLUMNS` replaces here.

use std::process::Command;

use assert_cmd::cargo::cargo_bin;

/// The longest line, in columns, and the number of lines.
fn shape(args: &str, columns: usize) -> (usize, usize) {
    let mut command = Command::new(cargo_bin!("nearlock"));
    command.args(args.split(' ')).env("COLUMNS", columns.to_string());
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    let output = command.output().expect("the command can be run");
    assert!(output.status.success(), "{args}");
    let text = String::from_utf8(output.stdout).expect("results are text");
    (text.lines().map(|line| line.chars().count()).max().unwrap_or(0), text.lines().count())
}

#[test]
fn lists_are_as_wide_as_the_terminal() {
    for list in ["locks", "locks --all", "peers", "machines", "workloads", "tables", "topology"] {
        for columns in [60, 80, 120] {
            let (longest, _) = shape(&format!("list {list}"), columns);
            assert!(longest <= columns, "{list}: {longest} columns of {columns}");
        }
    }
}

#[test]
fn a_narrow_list_is_not_a_column_of_letters() {
    let (_, wide) = shape("list locks --all", 200);
    let (_, narrow) = shape("list locks --all", 60);
    assert!(narrow < 7 * wide, "{narrow} lines instead of {wide}");
}

#[test]
fn results_are_as_wide_as_the_terminal() {
    let quick = "--set simulation.window-ns=200000 --set simulation.warm-up-ns=100000";
    let simulate = format!("simulate --machine haswell-ex-4s --lock qspinlock,cna-v13 --threads 2,4 {quick}");
    for columns in [60, 80, 120] {
        let (longest, _) = shape(&simulate, columns);
        assert!(longest <= columns, "{longest} columns of {columns}");
    }
}
