//! Errors in a machine that a user names, describes or changes.

use thiserror::Error;

/// An error in a machine file, a machine's name or a machine setting.
///
/// Every message tells the problem, its place (file and key), and what would be right.
#[derive(Debug, Error)]
pub enum SpecError {
    /// Neither a built-in machine nor a path.
    #[error("there is no machine `{name}`; there are: {}; or give the path of a file", known.join(", "))]
    UnknownMachine {
        /// The name that was asked for.
        name: String,
        /// The built-in machines.
        known: Vec<&'static str>,
    },
    /// The machine file cannot be read.
    #[error("cannot read the machine file {path}: {source}")]
    Unreadable {
        /// The path of the file.
        path: String,
        /// The reason.
        source: std::io::Error,
    },
    /// Not TOML, or a key that is unknown, missing or of the wrong type.
    #[error("{origin}: {message}")]
    Syntax {
        /// The file.
        origin: String,
        /// The parser's message, with line and column.
        message: String,
    },
    /// A key with an impossible value, or a missing key.
    #[error("{origin}: {key}: {problem}")]
    Invalid {
        /// The file.
        origin: String,
        /// The key with its table.
        key: String,
        /// The problem with the value, and what would be right.
        problem: String,
    },
    /// `machine.KEY=VALUE` with a key that no machine has.
    #[error("there is no machine setting `{key}`; there are: {}", known.join(", "))]
    UnknownSetting {
        /// The key.
        key: String,
        /// The settings that exist.
        known: Vec<&'static str>,
    },
    /// `machine.KEY=VALUE` with a value that this machine cannot have.
    #[error("{name}={value}: {problem}")]
    Setting {
        /// `machine.KEY`.
        name: &'static str,
        /// The value.
        value: String,
        /// What would be right.
        problem: String,
    },
}

/// A problem with the value of a key.
pub(super) struct Problem {
    pub(super) key: String,
    pub(super) problem: String,
}

impl Problem {
    pub(super) fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into() }
    }
}
