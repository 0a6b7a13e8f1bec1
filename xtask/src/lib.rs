//! Checks of the repository itself: what the compiler and clippy do not see. Each check is a
//! function from what was read to what is wrong; `tests/repository.rs` applies them all to this
//! repository:
//!
//! ```text
//! cargo test -p xtask --test repository
//! ```
//!
//! `tests/add_a_lock.rs` follows `docs/guide/add-a-lock.md` in a copy of the repository: minutes, most of
//! them building, so that only `.ci/deep` runs it.
//!
//! | file | rules |
//! |---|---|
//! | `dependencies.rs` | which of our crates may use which |
//! | `manifests.rs` | every crate inherits the workspace's version, edition, licence and lints |
//! | `sources.rs` | lengths of files, `bool` parameters, explained orderings, locks without `cfg` |
//! | `structure.rs` | the largest crate, and circles of files that use each other |
//! | `documents.rs` | locks, settings and constants that a document must name |
//! | `guide.rs` | no rule: reads documents that a test follows |
//! | `texts.rs` | no mark of unfinished work, no path outside the repository |
//!
//! What takes longer is a command:
//!
//! | command | file | what |
//! |---|---|---|
//! | `cargo xtask asm` | `asm.rs` | compares machine code |
//! | `cargo xtask coverage` | `coverage.rs` | says which lines of the locks their tests reach, and why not the others |
//! | `cargo xtask orderings` | `orderings.rs` | makes the evidence for every ordering |
//! | `cargo xtask mutants` | `mutants.rs` | tries whether tests notice an ordering that was weakened by hand |
//! | `cargo xtask compile-time` | `compile_time.rs` | compiles an empty program that uses nearlock beside one that uses parking_lot |
//! | `cargo xtask same` | `same.rs` | compares what the command prints with what it printed |

use std::fmt;

pub mod asm;
pub mod compile_time;
pub mod coverage;
pub mod dependencies;
pub mod documents;
pub mod files;
pub mod guide;
pub mod manifests;
pub mod mutants;
pub mod orderings;
pub mod same;
pub mod sources;
pub mod structure;
pub mod texts;

/// Something that breaks a rule.
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

/// What was asked for is not there: exit status 2. It says what there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misuse(String);

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misuse {}
