//! Why nothing reaches some lines, or not always.

use crate::Finding;
use crate::files::TextFile;

/// A line that need not be reached, nor need those that follow it up to the next that is: all that read so in this
/// file.
#[derive(Clone, Copy, Debug)]
pub struct Reason {
    /// The file, from the root of the repository.
    pub file: &'static str,
    /// The line, without the spaces around it.
    pub line: &'static str,
    /// Why nothing reaches it.
    pub why: &'static str,
}

/// All of them.
pub const REASONS: &[Reason] = &[];

/// The reason for a line of a file.
pub fn of(path: &str, line: &str) -> Option<&'static str> {
    REASONS.iter().find(|reason| (reason.file, reason.line) == (path, line)).map(|reason| reason.why)
}

/// Reasons for lines that the files do not have.
pub fn of_no_line(files: &[TextFile]) -> Vec<Finding> {
    let has = |reason: &&Reason| {
        let mut files = files.iter().filter(|file| file.path == reason.file);
        files.any(|file| file.text.lines().any(|line| line.trim() == reason.line))
    };
    let missing = REASONS.iter().filter(|reason| !has(reason));
    let what = |line| format!("has no line `{line}`, for which reasons.rs has a reason");
    missing.map(|reason| Finding::new(reason.file, what(reason.line))).collect()
}
