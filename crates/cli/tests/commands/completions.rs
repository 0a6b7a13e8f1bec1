//! Completions for shells.

use std::io::ErrorKind;

use crate::support::{Finished, assert_refused, commands, nearlock};
use assert_cmd::Command;

fn completion(shell: &str) -> String {
    let Finished { code, out, err } = nearlock(&format!("completions {shell}"));
    assert_eq!((code, err.as_str()), (0, ""), "{shell}");
    out
}

#[test]
fn every_shell_has_a_script_with_every_command_and_name() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = completion(shell);
        for command in commands() {
            assert!(script.contains(&command), "{shell}: no {command}");
        }
        // Elvish and PowerShell complete no values. Fish completes none without a preceding option.
        let options = ["qspinlock", "haswell-ex-4s", "locktorture", "uncontended"];
        let (options, positional): (&[_], &[_]) = match shell {
            "bash" | "zsh" => (&options, &["cna-locktorture", "lock-busted"]),
            "fish" => (&options, &[]),
            _ => (&[], &[]),
        };
        for name in options.iter().chain(positional) {
            assert!(script.contains(name), "{shell}: no {name}");
        }
    }
}

/// Runs a script in bash, and returns its output; `None` if there is no bash.
fn in_bash(options: &[&str], script: &str) -> Option<String> {
    let output = match Command::new("bash").args(options).write_stdin(script).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("skipped: there is no bash");
            return None;
        }
        output => output.expect("bash can be run"),
    };
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && err.is_empty(), "{err}");
    Some(String::from_utf8(output.stdout).expect("names are text"))
}

#[test]
fn bash_understands_its_script() {
    in_bash(&["-n"], &completion("bash"));
}

#[test]
fn bash_completes_commands_and_names() {
    for (words, expected) in [
        ("nearlock repr", "reproduce"),
        ("nearlock simulate --machine hasw", "haswell-ex-4s"),
        ("nearlock simulate --workload lock", "locktorture"),
        ("nearlock bench --baseline ticke", "ticket"),
        ("nearlock bench --peers parking", "parking-lot-0.13"),
        ("nearlock torture lock-b", "lock-busted"),
        ("nearlock reproduce cna-l", "cna-locktorture"),
    ] {
        let words: Vec<_> = words.split(' ').collect();
        let (last, before) = (words[words.len() - 1], words[words.len() - 2]);
        let complete = format!(
            "{}\nCOMP_WORDS=({}); COMP_CWORD={}\n_nearlock nearlock {last} {before}\necho \"${{COMPREPLY[*]}}\"\n",
            completion("bash"),
            words.join(" "),
            words.len() - 1
        );
        let Some(out) = in_bash(&["--norc"], &complete) else { return };
        assert!(out.split_whitespace().any(|name| name == expected), "{words:?}: {out}");
    }
}

#[test]
fn completion_does_not_change_the_messages_of_the_command() {
    // The shell handles completion, so the command's errors do not change.
    assert_refused(
        "simulate --machine pdp-11 --lock mcs --threads 1",
        &["or give the path of a machine file"],
    );
}

#[test]
fn unknown_shells() {
    assert_refused("completions tcsh", &["tcsh", "bash, elvish, fish, powershell, zsh"]);
    assert_refused("completions", &["SHELL"]);
}
