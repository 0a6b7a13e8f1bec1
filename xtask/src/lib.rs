//! Checks of the repository itself, beyond the compiler and clippy. Each check is a function that
//! gets text or data and returns findings. `tests/repository.rs` applies all of them to this
//! repository:
//!
//! ```text
//! cargo test -p xtask --test repository
//! ```
//!
//! `tests/add_a_lock.rs` follows `docs/guide/add-a-lock.md` and `add-a-lock-run.md` in a copy of
//! the repository. This takes minutes, most of them for building, so only `.ci/deep` runs it.
//!
//! | file | rules |
//! |---|---|
//! | `dependencies.rs` | which of nearlock's crates may use which |
//! | `manifests.rs` | every crate inherits the workspace's version, edition, licence and lints |
//! | `sources.rs` | lengths of files, `bool` parameters, explained orderings, locks without `cfg` |
//! | `structure.rs` | the largest crate, and circles of files that use each other |
//! | `documents.rs` | locks, settings and constants that a document must name |
//! | `guide.rs` | no rule: reads documents that a test follows |
//! | `texts.rs` | no mark of unfinished work, no path outside the repository |
//!
//! Longer checks are commands:
//!
//! | command | file | what |
//! |---|---|---|
//! | `cargo xtask asm` | `asm.rs` | compares machine code |
//! | `cargo xtask coverage` | `coverage.rs` | shows which lines of locks tests miss, and why |
//! | `cargo xtask locks` | `locks.rs` | writes the page of all locks |
//! | `cargo xtask orderings` | `orderings.rs` | makes the evidence for every ordering |
//! | `cargo xtask mutants` | `mutants.rs` | checks whether tests detect a weakened ordering |
//! | `cargo xtask compile-time` | `compile_time.rs` | compares compile time with parking_lot's |
//! | `cargo xtask programs` | `programs.rs` | runs the tests of programs that use parking_lot |
//! | `cargo xtask same` | `same.rs` | compares the command's output with its earlier output |
//! | `cargo xtask suites` | `programs/suite.rs` | runs parking_lot's own tests |

use std::fmt;

pub mod asm;
pub mod compile_time;
pub mod coverage;
pub mod dependencies;
pub mod documents;
pub mod files;
pub mod guide;
pub mod locks;
pub mod manifests;
pub mod mutants;
pub mod orderings;
pub mod programs;
pub mod same;
pub mod sources;
pub mod structure;
pub mod texts;

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where: a crate, a file, or `file:line`.
    pub place: String,
    /// The rule, and how it is broken.
    pub what: String,
}

impl Finding {
    fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// The requested item does not exist: exit status 2. The text names those that exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misuse(String);

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misuse {}
