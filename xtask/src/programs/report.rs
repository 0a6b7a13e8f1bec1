//! What the runs of a program show, and the table of all programs.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::Result;

use super::table::Program;
use super::trial::Shown;

/// A row of the table.
#[derive(Debug)]
pub struct Row {
    /// The program.
    pub program: &'static Program,
    /// What its run with nearlock has shown.
    pub shown: Shown,
    /// The versions of parking_lot in it.
    pub used: String,
    /// The result.
    pub verdict: Verdict,
}

/// The length of the reason why a program is skipped, in characters.
const REASON: usize = 160;

/// How many tests a row names at most.
const NAMED: usize = 4;

/// The result for a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It works with nearlock as with parking_lot. The text says what else there is to know.
    Good(String),
    /// The program shows nothing, for this reason.
    Skipped(String),
    /// It works with parking_lot, and not with nearlock.
    Failed(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Good(more) if more.is_empty() => f.write_str("ok"),
            Self::Good(more) => write!(f, "ok: {more}"),
            Self::Skipped(why) => write!(f, "skipped: {why}"),
            Self::Failed(what) => write!(f, "FAILED: {what}"),
        }
    }
}

impl Row {
    /// A program that has not run. The reason becomes one line of limited length.
    pub fn skipped(program: &'static Program, reason: &str) -> Self {
        let words: Vec<_> = reason.split_whitespace().collect();
        let reason = words.join(" ").chars().take(REASON).collect();
        Self { program, shown: Shown::default(), used: String::new(), verdict: Verdict::Skipped(reason) }
    }
}

/// Compares what a program shows with nearlock with what it shows with parking_lot. `baseline` runs
/// it with parking_lot, which is only needed if it fails with nearlock.
///
/// # Errors
///
/// If the baseline cannot run.
pub fn judge(program: &Program, shown: &Shown, baseline: impl FnOnce() -> Result<Shown>) -> Result<Verdict> {
    let outcome = &shown.outcome;
    if outcome.is_good() {
        return Ok(match () {
            () if !program.is_tested() => Verdict::Good("compiles".to_owned()),
            () if outcome.passed == 0 => Verdict::Skipped("it has no tests".to_owned()),
            () if shown.acquisitions == 0 => {
                Verdict::Failed("it has acquired no lock of nearlock".to_owned())
            }
            () => Verdict::Good(String::new()),
        });
    }
    let theirs = baseline()?.outcome;
    if let Some(trouble) = &theirs.trouble {
        return Ok(Verdict::Skipped(format!("with parking_lot too: {trouble}")));
    }
    if let Some(trouble) = &outcome.trouble {
        return Ok(Verdict::Failed(trouble.clone()));
    }
    let is_known = |test: &str| program.differ.iter().any(|(name, _)| *name == test);
    let ours: BTreeSet<_> = outcome.failures.difference(&theirs.failures).collect();
    let (known, new): (Vec<_>, Vec<_>) = ours.into_iter().partition(|test| is_known(test));
    if !new.is_empty() || outcome.failures.is_empty() {
        let names: Vec<_> = new.iter().map(|test| test.as_str()).collect();
        return Ok(Verdict::Failed(format!("{} tests fail: {}", outcome.failed, names.join(", "))));
    }
    let same: Vec<_> = outcome.failures.intersection(&theirs.failures).map(String::as_str).collect();
    let mut notes = Vec::new();
    match same.len() {
        0 => {}
        few if few <= NAMED => notes.push(format!("fail with parking_lot too: {}", same.join(", "))),
        many => notes.push(format!("{many} fail with parking_lot too")),
    }
    if !known.is_empty() {
        let names = program.differ.iter().filter(|(name, _)| known.iter().any(|test| test == name));
        let names: Vec<_> = names.map(|(name, reason)| format!("{name} ({reason})")).collect();
        notes.push(format!("known to fail at times: {}", names.join(", ")));
    }
    if shown.acquisitions == 0 {
        return Ok(Verdict::Failed("it has acquired no lock of nearlock".to_owned()));
    }
    Ok(Verdict::Good(notes.join(", ")))
}

/// All rows as a table in Markdown.
pub fn table(rows: &[Row]) -> String {
    let mut cells = vec![
        [
            "program",
            "version",
            "parking_lot",
            "passed",
            "failed",
            "ignored",
            "acquisitions of nearlock",
            "result",
        ]
        .map(str::to_owned),
    ];
    for Row { program, shown, used, verdict } in rows {
        let number = |number: u64| if program.is_tested() { number.to_string() } else { "-".to_owned() };
        let outcome = &shown.outcome;
        cells.push([
            program.name.to_owned(),
            program.version.to_owned(),
            used.clone(),
            number(outcome.passed),
            number(outcome.failed),
            number(outcome.ignored),
            number(shown.acquisitions),
            verdict.to_string(),
        ]);
    }
    aligned(&cells)
}

/// A table in Markdown, whose first row is the heading.
pub fn aligned<const COLUMNS: usize>(cells: &[[String; COLUMNS]]) -> String {
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..COLUMNS).map(width).collect();
    let line = |row: &[String; COLUMNS]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!(" {cell:width$} |"));
        format!("|{}\n", cells.collect::<String>())
    };
    let rule: String = widths.iter().map(|width| format!("{}|", "-".repeat(width + 2))).collect();
    let mut lines: Vec<_> = cells.iter().map(line).collect();
    lines.insert(1, format!("|{rule}\n"));
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::outcome::Outcome;

    const PROGRAM: Program =
        Program { name: "a", version: "1.0.0", arguments: &["test"], differ: &[("known", "a reason")] };

    fn shown(failures: &[&str], trouble: Option<&str>) -> Shown {
        let outcome = Outcome {
            passed: 3,
            failed: failures.len() as u64,
            failures: failures.iter().map(|name| (*name).to_owned()).collect(),
            trouble: trouble.map(str::to_owned),
            ..Outcome::default()
        };
        Shown { outcome, acquisitions: 5 }
    }

    fn verdict(with: &Shown, baseline: Shown) -> String {
        judge(&PROGRAM, with, || Ok(baseline)).unwrap().to_string()
    }

    #[test]
    fn good_programs_have_taken_locks() {
        let never = || -> Result<Shown> { panic!("there is no need for the baseline") };
        assert_eq!(judge(&PROGRAM, &shown(&[], None), never).unwrap(), Verdict::Good(String::new()));
        let none = Shown { acquisitions: 0, ..shown(&[], None) };
        assert!(matches!(judge(&PROGRAM, &none, never).unwrap(), Verdict::Failed(_)));
        let no_tests = Shown::default();
        assert!(matches!(judge(&PROGRAM, &no_tests, never).unwrap(), Verdict::Skipped(_)));
        let checked = Program { arguments: &["check"], ..PROGRAM };
        assert_eq!(judge(&checked, &no_tests, never).unwrap(), Verdict::Good("compiles".to_owned()));
    }

    #[test]
    fn failures_count_unless_parking_lot_has_them_or_they_are_known() {
        let good = || shown(&[], None);
        assert_eq!(
            verdict(&shown(&["x"], None), shown(&["x", "y"], None)),
            "ok: fail with parking_lot too: x"
        );
        assert_eq!(verdict(&shown(&["known"], None), good()), "ok: known to fail at times: known (a reason)");
        assert_eq!(verdict(&shown(&["x", "known"], None), good()), "FAILED: 2 tests fail: x");
        assert_eq!(verdict(&shown(&["x"], Some("SIGABRT")), shown(&["x"], None)), "FAILED: SIGABRT");
        assert_eq!(verdict(&shown(&[], Some("error")), good()), "FAILED: error");
        let both = shown(&[], Some("error"));
        assert_eq!(verdict(&both, both.clone()), "skipped: with parking_lot too: error");
        let none = Shown { acquisitions: 0, ..shown(&["x"], None) };
        assert!(verdict(&none, shown(&["x"], None)).starts_with("FAILED"));
    }

    #[test]
    fn the_table_has_a_line_for_each_program() {
        let program: &'static Program = &crate::programs::PROGRAMS[0];
        let row = Row {
            program,
            shown: shown(&[], None),
            used: "0.12".to_owned(),
            verdict: Verdict::Good(String::new()),
        };
        let text = table(&[row, Row::skipped(program, "no\nnetwork")]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines.iter().all(|line| line.chars().count() == lines[0].chars().count()), "{text}");
        assert!(lines[2].contains("| 0.12 ") && lines[2].contains("| ok"), "{text}");
        assert!(lines[3].contains("| skipped: no network"), "{text}");
    }
}
