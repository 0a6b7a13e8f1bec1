//! What results look like.

pub mod csv;
pub mod json;
pub mod text;

use nearlock_lab::published::Table;
use nearlock_lab::reproduce::{Cell, mean_error};
use nearlock_lab::simulate::Failure;

/// Says to standard error that a checker found a lock at fault.
pub fn failure(failure: &Failure, command: &str) {
    eprintln!("FAILURE: {failure}");
    eprintln!("repeat it with: {command}");
}

/// Says to standard error that a table is not reproduced.
pub fn misses_bound(table: &Table, cells: &[Cell]) {
    let mean = mean_error(cells, |_| true).map_or(f64::NAN, |error| error.mean);
    let (mean, bound) = (mean * 100.0, table.mean_error_max * 100.0);
    eprintln!("CHECK FAILED: {}: mean absolute error {mean:.1} %, bound {bound:.1} %", table.name);
}
