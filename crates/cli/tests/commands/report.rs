//! All tables on one page, and the stored results of a run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::{assert_fits, nearlock};
use assert_cmd::cargo::cargo_bin;

const SHORT: &str = "--quick --seeds 1 --set simulation.warm-up-ns=20000 --set simulation.window-ns=100000";

/// An empty directory that only this test uses.
fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    _ = fs::remove_dir_all(&directory);
    directory
}

/// The command, with this directory for stored results.
fn command(args: &str, kept: &Path) -> Command {
    let mut command = Command::new(cargo_bin!("nearlock"));
    command.args(args.split_whitespace()).env("XDG_CACHE_HOME", kept);
    command
}

fn run(args: &str, kept: &Path) -> Output {
    command(args, kept).output().expect("the command can be run")
}

fn lines(file: &Path) -> usize {
    fs::read_to_string(file).map_or(0, |text| text.lines().count())
}

#[test]
fn a_run_that_was_killed_continues_where_it_was() {
    let kept = directory("killed");
    let file = kept.join("nearlock/simulations");
    let reproduce = format!("reproduce cna-locktorture cna-lock2 {SHORT} --seeds 25 --format csv");
    let reproduce = reproduce.replacen("--seeds 1 ", "", 1);
    let mut killed =
        command(&reproduce, &kept).stdout(Stdio::null()).spawn().expect("the command can be run");
    while lines(&file) < 30 && killed.try_wait().expect("it is our child").is_none() {
        thread::sleep(Duration::from_millis(1));
    }
    _ = killed.kill();
    _ = killed.wait();
    let before = lines(&file);
    assert!((30..2 * 30 * 25).contains(&before), "{before}: it is to be killed before it ends");
    let gone_on = run(&reproduce, &kept);
    assert!(gone_on.status.success());
    // The last line may have been incomplete.
    let all = 2 * 30 * 25;
    assert!((all..=all + 1).contains(&lines(&file)), "no simulation was made twice: {}", lines(&file));
    let fresh = run(&format!("{reproduce} --fresh"), &kept);
    let text = |run: Output| String::from_utf8(run.stdout).expect("results are text");
    assert!(text(gone_on) == text(fresh), "the same figures, whichever came first");
    assert!(lines(&file) >= 2 * all, "new results are kept too");
}

#[test]
fn without_a_cache_the_run_continues_and_warns() {
    let out = directory("no-cache");
    let run = run(&format!("reproduce cna-context1 {SHORT} --out {}", out.display()), Path::new("/dev/null"));
    let said = String::from_utf8(run.stderr).expect("messages are text");
    assert!(
        run.status.success() && said.starts_with("warning: cache /dev/null/nearlock/simulations: "),
        "{said}"
    );
    assert!(String::from_utf8_lossy(&run.stdout).contains("cna-context1"));
    let report = fs::read_to_string(out.join("report.html")).expect("was written");
    assert!(report.contains("<tr><td>warning</td><td>cache /dev/null/nearlock/simulations: "), "{report}");
}

#[test]
fn without_a_table_all_are_on_one_page() {
    let out = directory("page");
    let users = ["alltests", "custom", "high-systime-forks", "shared", "disk", "short"];
    let users = users.map(|profile| format!("aim7-{profile}")).into_iter().chain(["exim".to_owned()]);
    let short: Vec<_> = users
        .map(|users| format!("--set {users}.jobs=1 --set {users}.rounds=1 --set {users}.sections=2"))
        .collect();
    let run = nearlock(&format!("reproduce {SHORT} {} --out {}", short.join(" "), out.display()));
    assert_eq!(run.code, 0, "{}", run.err);
    assert_fits(&run.out);
    let read = |file: &str| fs::read_to_string(out.join(file)).expect("was written");
    let (html, markdown) = (read("report.html"), read("evidence.md"));
    assert!(read("evidence.svg").contains("How many times as fast"));
    for table in nearlock_lab::published::TABLES {
        assert!(run.out.contains(&format!("{}: ", table.name)), "{}", table.name);
        assert!(html.contains(&format!("id=\"{}\"", table.name)), "{}", table.name);
        assert!(markdown.contains(&format!("\n### {}\n", table.name)), "{}", table.name);
        for extension in ["svg", "json", "csv"] {
            assert!(!read(&format!("reproduce-{}.{extension}", table.name)).is_empty());
        }
    }
    let command = "nearlock reproduce --quick --seeds 1 --set simulation.warm-up-ns=20000 ";
    assert!(html.contains(command) && markdown.contains(command));
    for field in ["processor", "compiler", "command", "partial"] {
        assert!(html.contains(&format!("<tr><td>{field}</td><td>")), "{field}");
        assert!(markdown.contains(&format!("\n- {field}: ")), "{field}");
    }
}
