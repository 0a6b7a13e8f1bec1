//! A progress bar on standard error, if that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar for this many simulations.
pub fn simulations(total: usize) -> ProgressBar {
    bar(total, "simulating [{bar:40}] {pos}/{len}, {eta} left")
}

/// A bar for the simulations of several tables. Its message is the current table.
pub fn tables() -> ProgressBar {
    bar(0, "simulating [{bar:40}] {pos}/{len}, {eta} left; {msg}")
}

/// A bar for this many runs of locks.
pub fn runs(total: usize) -> ProgressBar {
    bar(total, "measuring [{bar:40}] {pos}/{len}, {eta} left")
}

/// A spinner whose message is the current measurement.
pub fn steps() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    match ProgressStyle::with_template("measuring: {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// A bar for this many bursts and simulations.
pub fn cells(total: usize) -> ProgressBar {
    bar(total, "measuring and simulating [{bar:40}] {pos}/{len}, {eta} left")
}

fn bar(total: usize, template: &str) -> ProgressBar {
    let bar = ProgressBar::new(total as u64);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        Err(_) => bar,
    }
}
