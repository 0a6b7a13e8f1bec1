//! JSON: one array of objects, one object to a line.

use std::collections::BTreeMap;
use std::io::{self, Write};

use nearlock_bench::torture::churn::Churn;
use nearlock_bench::torture::stalls::Stalls;
use nearlock_bench::torture::{Plan, Tortured};
use nearlock_lab::LockEvent;
use nearlock_lab::lockstat::LockStatistics;
use nearlock_lab::simulate::Simulated;
use serde::Serialize;

use super::Extent;
use super::csv::TortureRow;

/// An array of these.
pub fn array<T: Serialize>(out: &mut impl Write, rows: &[T]) -> io::Result<()> {
    writeln!(out, "[")?;
    for (index, row) in rows.iter().enumerate() {
        let comma = if index + 1 < rows.len() { "," } else { "" };
        writeln!(out, "  {}{comma}", serde_json::to_string(row)?)?;
    }
    writeln!(out, "]")
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    row: TortureRow,
    events: BTreeMap<&'static str, u64>,
    problems: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lockstat: Option<&'a [LockStatistics]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    churn: Option<Churn>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stalls: Option<&'a Stalls>,
}

#[derive(Serialize)]
struct Cell<'a> {
    #[serde(flatten)]
    cell: &'a Simulated,
    events: BTreeMap<&'static str, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lockstat: Option<&'a [LockStatistics]>,
}

/// One object per cell, with the events that occurred, and with lockstat if it was recorded.
pub fn simulated(out: &mut impl Write, cells: &[Simulated]) -> io::Result<()> {
    let events = |cell: &Simulated| cell.events_seen().map(|(event, count)| (event.name(), count)).collect();
    let rows: Vec<_> = cells
        .iter()
        .map(|cell| Cell { cell, events: events(cell), lockstat: cell.lockstat.as_deref() })
        .collect();
    array(out, &rows)
}

/// One object per lock, with all events, with lockstat if it was recorded, and with the counts of
/// churn if there was churn.
pub fn tortured(out: &mut impl Write, plan: &Plan, all: &[Tortured], extent: Extent) -> io::Result<()> {
    let problems: Vec<Vec<String>> =
        all.iter().map(|tortured| tortured.problems.iter().map(ToString::to_string).collect()).collect();
    let rows: Vec<_> = all
        .iter()
        .zip(&problems)
        .zip(TortureRow::all(plan, all, extent))
        .map(|((tortured, problems), row)| Row {
            row,
            events: LockEvent::ALL.iter().map(|&e| (e.name(), tortured.events[e as usize])).collect(),
            problems: problems.iter().map(String::as_str).collect(),
            lockstat: tortured.lockstat.as_deref(),
            churn: tortured.churn,
            stalls: tortured.stalls.as_ref(),
        })
        .collect();
    array(out, &rows)
}

#[cfg(test)]
mod tests {
    use nearlock_lab::published::Table;

    #[test]
    fn a_row_is_an_object_of_numbers_and_words() {
        let table = Table::named("mutex-high-systime").expect("a table");
        let row = serde_json::to_string(&table.rows()[0].key).expect("JSON");
        assert_eq!(row, r#"{"users":"1100-2000","nodes":8,"smt":"on"}"#);
    }
}
