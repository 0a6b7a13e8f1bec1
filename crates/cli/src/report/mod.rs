//! The form of results.

pub mod bench;
pub mod csv;
mod extent;
pub mod json;
pub mod lockstat;
pub mod measure;
pub mod provenance;
pub mod reproduced;
pub mod text;
pub mod validate;
pub mod variations;
pub mod verdict;

pub use extent::Extent;

use std::fmt::Display;
use std::io::{self, Write};

use nearlock_lab::published::Table;
use nearlock_lab::reproduce::{Cell, mean_error};
use nearlock_lab::settings::Assignment;
use nearlock_lab::simulate::Failure;

/// Writes a message to standard error. A warning is also kept for the files of results. An error of
/// writing there is ignored, since the exit status says enough.
pub fn say(message: impl Display) {
    let message = message.to_string();
    if let Some(warning) = message.strip_prefix("warning: ") {
        provenance::warned(warning);
    }
    let _ = writeln!(io::stderr(), "{message}");
}

/// Prints an error to standard error, in lines as wide as the terminal.
pub fn error(error: &anyhow::Error) {
    let text = format!("error: {error}");
    let lines: Vec<_> = text.lines().map(text::wrapped_line).collect();
    say(lines.join("\n"));
}

/// The settings, for the head of a report; `None` if there are none.
pub fn set(assigned: &[Assignment]) -> Option<String> {
    let texts: Vec<_> = assigned.iter().map(Assignment::to_string).collect();
    (!texts.is_empty()).then(|| format!("Set: {}.", texts.join(", ")))
}

/// Prints to standard error that a checker found a fault in a lock.
pub fn failure(failure: &Failure, command: &str) {
    say(format_args!("FAILURE: {failure}\nrepeat it with: {command}"));
}

/// The sentence for files that a checker found a fault in a lock.
pub fn failed(failure: &Failure, command: &str) -> String {
    format!("{failure}; repeat it with: {command}")
}

/// Prints to standard error that a table exceeds its bound.
pub fn misses_bound(table: &Table, cells: &[Cell]) {
    let mean = mean_error(cells, |_| true).map_or(f64::NAN, |error| error.mean);
    let (mean, bound) = (mean * 100.0, table.mean_error_max * 100.0);
    say(format_args!("CHECK FAILED: {}: mean absolute error {mean:.1} %, bound {bound:.1} %", table.name));
}
