//! The lines of the locks that the tests and the torture reach, and the reasons why others are not
//! reached.
//!
//! `cargo llvm-cov` counts (`.ci/deep coverage`), and passes on a file that lcov calls a tracefile.
//! This module has the rule: a line that nothing reaches needs a reason ([`reasons`]). All of
//! `core` and `collection` counts, including the negative controls, but not their tests
//! ([`lines`]). Lines for processors other than this one are not compiled, and so are not in the
//! tracefile.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::sources::locks;
use crate::{Finding, files};

pub mod lines;
pub mod reasons;

use lines::FileLines;

/// The smallest share of lines that must be reached, in percent.
const LEAST_PERCENT: f64 = 95.0;

/// The subject of the report.
const LOCKS: &str = "the locks";

/// Reads a tracefile. Returns the report and the findings: lines without a reason, or too many
/// missed lines.
///
/// # Errors
///
/// If the file does not exist, or is not a tracefile.
pub fn run(tracefile: &Path) -> Result<(String, Vec<Finding>)> {
    let counts = fs::read_to_string(tracefile).with_context(|| tracefile.display().to_string())?;
    let counts = lines::read(&counts, &files::root()).with_context(|| tracefile.display().to_string())?;
    let mut sources = files::sources()?;
    sources.retain(|file| locks::within(&file.path).is_some());
    let files = lines::without_tests(&sources, &counts)?;
    Ok((lines::report(&files), findings(&files, &sources)))
}

/// Too few lines, lines without a reason, and reasons without a line.
fn findings(files: &[FileLines<'_>], sources: &[files::TextFile]) -> Vec<Finding> {
    let mut findings = reasons::of_no_line(sources);
    for file in files {
        for line in &file.missed {
            if line.reason.is_none() {
                let what = format!("nothing reaches `{}`, and reasons.rs does not say why", line.text);
                findings.push(file.source.finding_at(line.number, what));
            }
        }
    }
    let percent = lines::percent(files);
    if percent < LEAST_PERCENT {
        findings.push(Finding::new(LOCKS, format!("{percent:.1} % of lines, less than {LEAST_PERCENT} %")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::files::TextFile;

    /// The findings in a file of twenty lines, of which these were not reached.
    fn found(path: &str, first: &str, missed: &[usize]) -> Vec<String> {
        // A comment, so that the lines need not be a program together.
        let text = format!("/*\n{first}\n{}*/", "fn f() {}\n".repeat(19));
        let sources = [TextFile { path: path.to_owned(), text }];
        let counts = (2..=21).map(|number| (number, u64::from(!missed.contains(&number)))).collect();
        let counts = BTreeMap::from([(path.to_owned(), counts)]);
        let files = lines::without_tests(&sources, &counts).expect("is Rust");
        let found =
            findings(&files, &[]).into_iter().filter(|finding| !finding.what.starts_with("has no line"));
        found.map(|finding| finding.place).collect()
    }

    #[test]
    fn lines_that_nothing_reaches_need_a_reason() {
        let [reason, ..] = reasons::REASONS else { panic!("no reason to try") };
        assert_eq!(found(reason.file, reason.line, &[]), [""; 0]);
        assert_eq!(found(reason.file, reason.line, &[2]), [""; 0]);
        assert_eq!(found(reason.file, reason.line, &[3]), [format!("{}:3", reason.file)]);
        assert_eq!(found("a.rs", reason.line, &[2]), ["a.rs:2"]);
    }

    #[test]
    fn a_reason_is_for_the_lines_behind_too_and_19_of_20_must_be_reached() {
        let [reason, ..] = reasons::REASONS else { panic!("no reason to try") };
        assert_eq!(found(reason.file, reason.line, &[2, 3]), [LOCKS]);
        assert_eq!(
            found(reason.file, reason.line, &[2, 4]),
            [format!("{}:4", reason.file), LOCKS.to_owned()]
        );
    }
}
