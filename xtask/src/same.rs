//! Whether the command still prints the same: digests of the results of a fixed set of simulations.
//!
//! A simulation gives the same result on every machine and in every run. So a change of the sources
//! that is not meant to change a result must not change a digest. `xtask/same.txt` has a line for
//! each run: the digest of its output, and its command line. When the file is written, the lines
//! are made from the command's own lists (`plan`). Otherwise they are read from the file. So a lock
//! that the command no longer knows is a difference and not a gap. Results contain no version, host
//! or time, so nothing is left out of a digest.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::{Finding, Misuse, files};

mod difference;
mod line;
mod plan;
mod program;

use line::Line;
use program::{Output, Program};

/// The digests, from the root of the repository.
const FILE: &str = "xtask/same.txt";

/// How many differing runs are shown in full. All are counted.
const SHOWN: usize = 20;

/// The head of the file.
const HEAD: &str = "\
# Digests of what the command prints, for `cargo xtask same`.
# Made by `cargo xtask same --write`: not edited by hand.
";

/// The subject of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// An older command, which is run to show the differences.
    pub old: Option<PathBuf>,
    /// Words that each selected run must contain; every run if there are none.
    pub words: Vec<String>,
}

/// Runs everything that the command's lists name, and writes the digests. Returns a message with
/// their number.
///
/// # Errors
///
/// If the command does not build or cannot be run, or refuses a run.
pub fn write(nearlock: Option<&Path>) -> Result<String> {
    let program = program(nearlock)?;
    let runs = plan::runs(&plan::Lists::read(|what| program.list(what))?);
    let began = Instant::now();
    let mut text = HEAD.to_owned();
    for (output, arguments) in program.outputs(&runs)?.iter().zip(&runs) {
        if let Some(refusal) = output.refusal() {
            bail!("nearlock {arguments}: {refusal}");
        }
        text += &format!("{}\n", Line::new(output.digest(), arguments));
    }
    let path = files::root().join(FILE);
    fs::write(&path, text).with_context(|| path.display().to_string())?;
    Ok(format!("{FILE}: {} runs in {} s\n", runs.len(), began.elapsed().as_secs()))
}

/// Runs the lines of the file, and finds those with another output.
///
/// # Errors
///
/// If the command does not build or cannot be run, or the file has another form; [`Misuse`] if no
/// run has all the words.
pub fn compare(nearlock: Option<&Path>, comparison: &Comparison) -> Result<(String, Vec<Finding>)> {
    let path = files::root().join(FILE);
    let text = fs::read_to_string(&path)
        .with_context(|| format!("{FILE}, which `cargo xtask same --write` writes"))?;
    let mut lines = line::parse(&text, FILE)?;
    lines.retain(|(_, line)| line.has_all(&comparison.words));
    if lines.is_empty() {
        return Err(Misuse(format!("no run of {FILE} has `{}`", comparison.words.join(" "))).into());
    }
    let program = program(nearlock)?;
    let began = Instant::now();
    let runs: Vec<_> = lines.iter().map(|(_, line)| line.arguments.clone()).collect();
    let outputs = program.outputs(&runs)?;
    let differing = lines.iter().zip(outputs).filter(|((_, line), output)| line.digest != output.digest());
    let differing: Vec<_> = differing.map(|((number, line), output)| (*number, line, output)).collect();
    let seconds = began.elapsed().as_secs();
    let report = match differing.len() {
        0 => format!("{} runs in {seconds} s: all print the same\n", runs.len()),
        count => format!("{count} of {} runs print something else, after {seconds} s\n", runs.len()),
    };
    Ok((report, findings(&differing, comparison.old.as_deref())?))
}

/// A finding for each differing run, or for the first of them, and one about the differences of all
/// of them together.
fn findings(differing: &[(usize, &Line, Output)], old: Option<&Path>) -> Result<Vec<Finding>> {
    let runs: Vec<_> = differing.iter().map(|(_, line, _)| line.arguments.clone()).collect();
    let before = old.map(|old| Program::at(old)?.outputs(&runs)).transpose()?;
    let mut findings = Vec::new();
    let mut parts = BTreeSet::new();
    for (index, (number, line, output)) in differing.iter().enumerate() {
        let mut what = format!("another result: nearlock {}", line.arguments);
        if let Some(refusal) = output.refusal() {
            what += &format!("\n    refused: {refusal}");
        } else if let Some(before) = before.as_ref().map(|before| &before[index]) {
            if before.digest() != line.digest {
                what += "\n    (the old command's is not that of the file either)";
            }
            let differences = difference::between(before, output);
            parts.extend(differences.iter().map(difference::Difference::part));
            what += &difference::listed(&differences);
        }
        if index < SHOWN {
            findings.push(Finding::new(format!("{FILE}:{number}"), what));
        }
    }
    if let Some(more) = differing.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        findings.push(Finding::new(FILE, format!("and {more} more")));
    }
    if !parts.is_empty() {
        let parts: Vec<_> = parts.into_iter().collect();
        findings.push(Finding::new(FILE, format!("in all of them together: {}", parts.join(", "))));
    }
    Ok(findings)
}

/// The command at this path, or otherwise the one that is built here.
fn program(nearlock: Option<&Path>) -> Result<Program> {
    nearlock.map_or_else(Program::build, Program::at)
}
