//! A run and the digest of what it prints.

use std::fmt;

use anyhow::{Context, Result};

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// In hexadecimal digits.
    pub digest: String,
    /// The arguments of the command, separated by spaces. No argument contains a space.
    pub arguments: String,
}

impl Line {
    pub(super) fn new(digest: String, arguments: &str) -> Self {
        Self { digest, arguments: arguments.to_owned() }
    }

    /// Whether each of the words is part of the command line.
    pub(super) fn has_all(&self, words: &[String]) -> bool {
        words.iter().all(|word| self.arguments.contains(word))
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.digest, self.arguments)
    }
}

/// The lines, with their numbers from 1. Comments begin with `#`.
///
/// # Errors
///
/// If a line is not a digest and a command line. The error names `file`.
pub(super) fn parse(text: &str, file: &str) -> Result<Vec<(usize, Line)>> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.starts_with('#'));
    let parse = |(number, line): (usize, &str)| {
        let halves = line.split_once(' ').filter(|(digest, arguments)| {
            digest.len() == super::program::DIGITS && !arguments.trim().is_empty()
        });
        let (digest, arguments) = halves.with_context(|| format!("{file}:{number}: no digest and run"))?;
        Ok((number, Line::new(digest.to_owned(), arguments)))
    };
    lines.map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_lines_are_read_back() {
        let line = Line::new("0123456789abcdef".into(), "simulate --lock mcs");
        let text = format!("# A comment.\n{line}\n");
        assert_eq!(text, "# A comment.\n0123456789abcdef simulate --lock mcs\n");
        assert_eq!(parse(&text, "f").expect("is well formed"), [(2, line)]);
    }

    #[test]
    fn other_lines_are_refused() {
        for text in ["", "simulate", "0123456789abcdef", "0123456789abcdef  ", "0123 simulate"] {
            let error = parse(&format!("# A comment.\n{text}\n"), "f").expect_err(text);
            assert_eq!(error.to_string(), "f:2: no digest and run");
        }
    }

    #[test]
    fn runs_are_chosen_by_parts_of_their_command_lines() {
        let line = Line::new(String::new(), "simulate --lock mcs --threads 2");
        let has = |words: &[&str]| line.has_all(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
        assert!(has(&[]) && has(&["simulate"]) && has(&["lock mcs", "threads"]));
        assert!(!has(&["reproduce"]) && !has(&["simulate", "qspinlock"]));
    }
}
