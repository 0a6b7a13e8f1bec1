//! Text that the repository must not contain: marks of unfinished work, and paths outside it.
//!
//! The patterns are made from two halves, so that this file does not break its own rule.

use crate::Finding;
use crate::files::TextFile;

/// Marks of unfinished work, as whole words.
const WORDS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Macros that stand for unwritten code.
const MACROS: &[&str] = &[concat!("to", "do!("), concat!("unimpl", "emented!(")];

/// Prefixes of paths that exist only on the machine of the person who wrote them.
const OUTSIDE: &[&str] = &[concat!("/wo", "rk/"), concat!("/tmp/", "target"), concat!("../", "shared")];

/// Marks of unfinished work.
pub fn marks(file: &TextFile) -> Vec<Finding> {
    find(file, "unfinished", |line| {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.find(|word| WORDS.contains(word)).or_else(|| contained(line, MACROS))
    })
}

/// Paths outside the repository.
pub fn paths_outside(file: &TextFile) -> Vec<Finding> {
    find(file, "a path outside the repository", |line| contained(line, OUTSIDE))
}

fn find(file: &TextFile, what: &str, wrong: impl for<'a> Fn(&'a str) -> Option<&'a str>) -> Vec<Finding> {
    let lines = (1..).zip(file.text.lines());
    lines.filter_map(|(n, line)| Some(file.finding_at(n, format!("{what}: `{}`", wrong(line)?)))).collect()
}

fn contained(line: &str, patterns: &[&'static str]) -> Option<&'static str> {
    patterns.iter().copied().find(|pattern| line.contains(pattern))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: String) -> TextFile {
        TextFile { path: "docs/a.md".to_owned(), text }
    }

    #[test]
    fn finds_each_mark() {
        for mark in WORDS.iter().chain(MACROS) {
            let findings = marks(&file(format!("first\n// {mark}: second\n")));
            assert_eq!(findings, [Finding::new("docs/a.md:2", format!("unfinished: `{mark}`"))]);
        }
    }

    #[test]
    fn finds_marks_as_whole_words_only() {
        for mark in WORDS {
            assert_eq!(marks(&file(format!("A{mark} {mark}S {mark}_LIST {}", mark.to_lowercase()))), []);
        }
    }

    #[test]
    fn finds_each_path() {
        for path in OUTSIDE {
            let findings = paths_outside(&file(format!("see {path}/x")));
            let what = format!("a path outside the repository: `{path}`");
            assert_eq!(findings, [Finding::new("docs/a.md:1", what)]);
        }
        assert_eq!(paths_outside(&file("crates/os/src/work.rs, /tmp/x, ../core".to_owned())), []);
    }
}
