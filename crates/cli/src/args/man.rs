//! Flags of `nearlock man`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

const EXAMPLES: &str = "\
Examples:
  nearlock man | man -l -
  nearlock man --out ~/.local/share/man/man1";

/// Writes the manual page to standard output, or all pages into a directory.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ManArgs {
    /// Write a page for `nearlock` and one for each of its commands (`nearlock.1`,
    /// `nearlock-simulate.1`, ...) into this directory. It is created if necessary; files of the
    /// same name are replaced.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
}
