//! A measured machine, for people.

use nearlock_bench::measure::Measurement;

use super::say;
use super::text::{list_table, wrapped};

/// Prints the figures and the notes to standard error.
pub fn table(measurement: &Measurement) {
    let rows = measurement.rows.iter().map(|row| {
        let figure = row.figure;
        [
            row.key.clone(),
            format!("{} {}", figure.median, row.unit),
            format!("{} - {}", figure.low, figure.high),
            row.meaning.to_owned(),
        ]
    });
    let machine = &measurement.machine;
    say(format_args!("{}: {}", machine.name, machine.description));
    say(list_table(&["figure", "median", "quartiles", "what it is"], 3, rows));
    for note in machine.measured.iter().flat_map(|measured| &measured.notes) {
        say(wrapped(&format!("note: {note}"), ""));
    }
}
