//! `docs/guide/locks.md`: the page of all locks, made of their descriptions.
//!
//! An example program of the crate `nearlock-lab` prints the page. A test of that crate compares it
//! with the file. Nothing here depends on that crate.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::files;

/// The page.
const PAGE: &str = "docs/guide/locks.md";

/// Writes the page. Returns a message.
///
/// # Errors
///
/// If the crate cannot be built, or the page not be written.
pub fn write() -> Result<String> {
    let mut command = Command::new("cargo");
    command.args(["run", "--quiet", "--package", "nearlock-lab", "--example", "locks_page"]);
    let output = command.current_dir(files::root()).stderr(Stdio::inherit()).output().context("cargo")?;
    ensure!(output.status.success(), "the page cannot be made: see above");
    let path = files::root().join(PAGE);
    fs::write(&path, output.stdout).with_context(|| path.display().to_string())?;
    Ok(format!("{PAGE} is written\n"))
}
