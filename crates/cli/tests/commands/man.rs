//! Manual pages.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use crate::support::{Finished, assert_refused, commands, nearlock, nearlock_args};
use assert_cmd::Command;

/// A directory of this test that does not exist.
fn absent(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    if dir.exists() {
        fs::remove_dir_all(&dir).expect("the directory is ours");
    }
    dir
}

/// Names and texts of all pages.
fn pages(name: &str) -> Vec<(String, String)> {
    let dir = absent(name).join("man1");
    let Finished { code, out, err } = nearlock_args(["man", "--out", dir.to_str().expect("text")]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "", ""));
    let mut pages: Vec<_> = fs::read_dir(&dir)
        .expect("the directory was made")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a page is text");
            (path.file_name().expect("a name").to_str().expect("text").to_owned(), text)
        })
        .collect();
    pages.sort();
    pages
}

#[test]
fn each_command_has_a_page_with_its_sections() {
    let pages = pages("sections");
    let names: Vec<_> = pages.iter().map(|(name, _)| name.clone()).collect();
    let mut expected: Vec<_> = commands().iter().map(|command| format!("nearlock-{command}.1")).collect();
    expected.push("nearlock.1".to_owned());
    expected.sort();
    assert_eq!(names, expected);
    for (name, text) in &pages {
        assert!(text.starts_with(&format!(".TH {} 1", name.trim_end_matches(".1"))), "{name}: {text}");
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "\"EXIT STATUS\""] {
            assert_eq!(text.matches(&format!("\n.SH {section}\n")).count(), 1, "{name}: {section}: {text}");
        }
        let main = name == "nearlock.1";
        assert_eq!(text.contains("\n.SH COMMANDS\n"), main, "{name}: {text}");
        assert_eq!(text.ends_with("\n.SH \"SEE ALSO\"\n\\fBnearlock\\fR(1)\n"), !main, "{name}: {text}");
        assert!(text.contains("2  the command line was not understood"), "{name}: {text}");
    }
}

#[test]
fn examples_are_those_of_the_help() {
    for (name, text) in pages("examples") {
        let command = name.trim_start_matches("nearlock").trim_start_matches('-').trim_end_matches(".1");
        let command = command.trim_end_matches('1').trim_end_matches('.');
        let help = nearlock(&format!("{command} --help")).out;
        let example = help.split_once("Examples:\n").map(|(_, end)| end.lines().next().expect("an example"));
        assert_eq!(text.contains("\n.SH EXAMPLES\n.nf\n"), example.is_some(), "{name}: {text}");
        if let Some(example) = example {
            let line = example.trim().replace('-', "\\-");
            assert!(text.lines().any(|of_page| of_page == line), "{name}: no `{line}` in {text}");
        }
    }
}

#[test]
fn without_a_directory_the_main_page_is_written_to_standard_output() {
    let Finished { code, out, err } = nearlock("man");
    assert_eq!((code, err.as_str()), (0, ""));
    let pages = pages("main");
    assert_eq!(pages.iter().find(|(name, _)| name == "nearlock.1").map(|(_, text)| text), Some(&out));
    for command in commands() {
        assert!(out.contains(&format!("nearlock\\-{command}(1)")), "no {command} in {out}");
    }
}

#[test]
fn pages_render_without_warnings() {
    for (name, text) in pages("rendered") {
        let groff = Command::new("groff").args(["-man", "-ww", "-z", "-Tutf8"]).write_stdin(text).output();
        let output = match groff {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                eprintln!("skipped: there is no groff");
                return;
            }
            output => output.expect("groff can be run"),
        };
        let warnings = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && warnings.is_empty(), "{name}: {warnings}");
    }
}

#[test]
fn a_directory_that_cannot_be_created() {
    let file = absent("file");
    fs::write(&file, "").expect("the file is ours");
    for dir in [file.clone(), file.join("man1"), PathBuf::from("/proc/nearlock")] {
        let dir = dir.to_str().expect("text");
        assert_refused(&format!("man --out {dir}"), &["--out", dir, "must be a directory"]);
    }
    fs::remove_file(file).expect("the file is ours");
}
