//! `docs/internals/orderings.md`: the evidence for every ordering, made by the models.
//!
//! The models are run by a program of their own crate (`crates/model/src/bin/orderings`). Nothing
//! here depends on that crate.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::{Finding, Misuse, files};

/// The document.
const DOCUMENT: &str = "docs/internals/orderings.md";

/// Makes the document again and writes it. Returns a message.
///
/// # Errors
///
/// If a model fails, or an ordering is not exercised, or not needed.
pub fn write() -> Result<String> {
    let document = evidence(&[])?;
    let path = files::root().join(DOCUMENT);
    fs::write(&path, document).with_context(|| path.display().to_string())?;
    Ok(format!("{DOCUMENT} is written\n"))
}

/// Makes the document again, and returns where the present one differs.
///
/// # Errors
///
/// As [`write()`].
pub fn check() -> Result<Vec<Finding>> {
    let document = evidence(&[])?;
    let there = fs::read_to_string(files::root().join(DOCUMENT)).unwrap_or_default();
    Ok(difference(&there, &document).into_iter().collect())
}

/// Shows the models of these locks, and the result of each without an ordering.
///
/// # Errors
///
/// If the models cannot be run, or there is no such lock.
pub fn show(locks: &str) -> Result<Vec<Finding>> {
    let status = program(&["--locks", locks]).status().context("cargo")?;
    ensure!(status.code() != Some(2), Misuse("these locks cannot be shown: see above".to_owned()));
    let holds = status.success();
    let finding = || Finding::new(locks, "a model fails, or an ordering is not needed by these locks alone");
    Ok((!holds).then(finding).into_iter().collect())
}

fn difference(there: &str, made: &str) -> Option<Finding> {
    if there == made {
        return None;
    }
    let same = there.lines().zip(made.lines()).take_while(|(a, b)| a == b).count();
    let line = made.lines().nth(same).unwrap_or("(its end)");
    let what = format!("is not what `cargo xtask orderings` makes; this line would be: {line}");
    Some(Finding::new(format!("{DOCUMENT}:{}", same + 1), what))
}

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(["run", "--quiet", "--package", "nearlock-model", "--bin", "orderings", "--"]);
    command.args(arguments).current_dir(files::root());
    command
}

fn evidence(arguments: &[&str]) -> Result<String> {
    let output = program(arguments).stderr(Stdio::inherit()).output().context("cargo")?;
    ensure!(output.status.success(), "the evidence is not complete: see above");
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_named() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        let place = |there, made| difference(there, made).expect("they differ").to_string();
        assert!(place("a\nb\n", "a\nc\nd\n").starts_with("docs/internals/orderings.md:2: "));
        assert!(place("a\nb\n", "a\nc\nd\n").ends_with("this line would be: c"));
        assert!(place("a\nb\n", "a\n").ends_with("(its end)"));
    }
}
