//! Published statements, and the effects of mechanisms: text, JSON and comma-separated values.

use std::io::{self, Write};

use nearlock_lab::published::{RowKey, Table};
use nearlock_lab::reproduce::{Cell, Reproduced, Vary, mean_error};
use nearlock_lab::settings::Assignment;
use serde::Serialize;

use super::csv::Flat;
use super::text::{width as text_width, wrapped};

/// Each statement of the publication, and whether it is true of the simulated figures.
pub fn statements(out: &mut impl Write, reproduced: &Reproduced, vary: Vary) -> io::Result<()> {
    let verdicts = reproduced.verdicts();
    if verdicts.is_empty() {
        return Ok(());
    }
    writeln!(out, "\npublished statements, checked with the simulated figures:")?;
    for verdict in verdicts {
        let line = format!("{}: {}", verdict.statement, verdict.says(vary));
        writeln!(out, "{}", wrapped(&line, "    ").replacen("    ", "  - ", 1))?;
    }
    Ok(())
}

/// Columns of an error.
const ERROR_WIDTH: usize = 6;
/// The first line of each table of mechanisms.
const AS_IT_IS: &str = "as it is";

/// A table for each variant: the errors of its cells as they are, and with each mechanism changed
/// alone.
pub fn mechanisms(out: &mut impl Write, reproduced: &Reproduced) -> io::Result<()> {
    let Reproduced { table, cells, varied } = reproduced;
    writeln!(
        out,
        "\none mechanism changed at a time; errors in %, simulated against published; mean: of absolute errors"
    )?;
    let changes: Vec<_> = varied.iter().map(|varied| varied.change.to_string()).collect();
    let names = || [AS_IT_IS].into_iter().chain(changes.iter().map(String::as_str));
    let name_width = names().map(str::len).max().unwrap_or(0);
    let width = label_width(table);
    let room = (text_width() - name_width - ERROR_WIDTH) / width;
    for variant in table.variants.iter().filter(|variant| !table.is_by_definition(variant.name)) {
        let rows = shown(table, room);
        let head: String =
            rows.iter().map(|row| format!(" {:>width$}", row.label(), width = width - 1)).collect();
        writeln!(out, "\n{:<name_width$}{:>ERROR_WIDTH$}{head}", variant.name, "mean")?;
        let all = [cells].into_iter().chain(varied.iter().map(|varied| &varied.cells));
        for (name, cells) in names().zip(all) {
            writeln!(out, "{name:<name_width$}{}", errors(cells, variant.name, &rows, width))?;
        }
    }
    Ok(())
}

/// Columns of a row's errors: of an error, or of the row's name and a space.
fn label_width(table: &Table) -> usize {
    table.rows().iter().map(|row| row.key.label().len() + 1).fold(ERROR_WIDTH, usize::max)
}

/// As many rows of the table as there is room for, the last among them.
fn shown(table: &Table, room: usize) -> Vec<&'static RowKey> {
    let rows = table.rows();
    let step = rows.len().div_ceil(room.max(1)).max(1);
    let mut shown: Vec<_> = rows.iter().rev().step_by(step).map(|row| &row.key).collect();
    shown.reverse();
    shown
}

/// Mean and single errors of a variant.
fn errors(cells: &[Cell], variant: &str, rows: &[&RowKey], width: usize) -> String {
    let mean = mean_error(cells, |cell| cell.variant == variant).map_or(f64::NAN, |error| error.mean);
    let mut line = format!("{:>ERROR_WIDTH$.1}", mean * 100.0);
    for row in rows {
        let cell = cells.iter().find(|cell| cell.variant == variant && cell.row == **row);
        line += &match cell.and_then(|cell| cell.error).map(|error| error * 100.0) {
            None => format!("{:>width$}", "-"),
            Some(error) if error.abs() < 99.95 => format!("{error:>+width$.1}"),
            Some(error) => format!("{error:>+width$.0}"),
        };
    }
    line
}

/// A [`Cell`], and the change with which it was simulated; `None` is none.
#[derive(Serialize)]
struct VariedCell<'a> {
    #[serde(flatten)]
    cell: &'a Cell,
    variation: Option<Assignment>,
}

/// Cells with their changes, the table as it is first.
fn all(reproduced: &Reproduced) -> impl Iterator<Item = VariedCell<'_>> {
    let central = reproduced.cells.iter().map(|cell| VariedCell { cell, variation: None });
    let varied = reproduced.varied.iter().flat_map(|varied| {
        varied.cells.iter().map(|cell| VariedCell { cell, variation: Some(varied.change) })
    });
    central.chain(varied)
}

/// All cells with all changes, as an array of objects.
pub fn json(out: &mut impl Write, results: &[Reproduced]) -> io::Result<()> {
    super::json::array(out, &results.iter().flat_map(all).collect::<Vec<_>>())
}

#[derive(Serialize)]
struct FlatRow<'a> {
    table: &'a str,
    variation: Option<Assignment>,
    variant: &'a str,
    /// Empty where the row is not a number of threads.
    threads: Option<usize>,
    simulated: f64,
    published: Option<f64>,
    error: Option<f64>,
    row: String,
}

impl Flat for FlatRow<'_> {
    const HEADER: &'static str = "table,variation,variant,threads,simulated,published,error,row";
}

/// All cells with all changes, a row each. The change is empty for the table without changes.
pub fn csv(out: &mut impl Write, results: &[Reproduced]) -> io::Result<()> {
    let rows = results.iter().flat_map(all).map(|VariedCell { cell, variation }| FlatRow {
        table: cell.table,
        variation,
        variant: cell.variant,
        threads: cell.row.threads(),
        row: cell.row.key_values(),
        simulated: cell.simulated,
        published: cell.published,
        error: cell.error,
    });
    super::csv::rows(out, &rows.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearlock_lab::published::Row;
    use nearlock_lab::reproduce::Varied;
    use nearlock_lab::settings::Value;

    /// The published figures, those of `stock` times `factor`, as if simulated.
    fn cells(table: &'static Table, factor: f64) -> Vec<Cell> {
        let cell = |row: &Row, variant: usize| {
            let factor = if table.variants[variant].name == "stock" { factor } else { 1.0 };
            let mean = row.values[variant].expect("a figure").mean;
            Cell { error: Some(factor - 1.0), ..Cell::new(table, row, variant, mean * factor) }
        };
        let rows = table.rows();
        rows.iter().flat_map(|row| (0..table.variants.len()).map(move |variant| cell(row, variant))).collect()
    }

    fn reproduced(table: &str, factor: f64, varied: &[(Assignment, f64)]) -> Reproduced {
        let table = Table::named(table).expect("a table");
        let of = |&(change, factor): &(Assignment, f64)| Varied { change, cells: cells(table, factor) };
        Reproduced { table, cells: cells(table, factor), varied: varied.iter().map(of).collect() }
    }

    fn text(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).expect("memory can be written to");
        let text = String::from_utf8(out).expect("text");
        assert!(text.lines().all(|line| line.chars().count() <= crate::report::text::WIDTH), "{text}");
        text
    }

    #[test]
    fn a_statement_holds_or_not_and_changes_that_reverse_it_are_named() {
        let says = |factor, varied: &[(Assignment, f64)], vary| {
            let reproduced = reproduced("cna-locktorture", factor, varied);
            let text = text(|out| statements(out, &reproduced, vary));
            assert_eq!(text.lines().filter(|line| line.starts_with("  - ")).count(), 6, "{text}");
            let start = "  - CNA is ahead of stock from 8 threads up (by more than 2 %): ";
            let (_, rest) = text.split_once(start).expect("the statement");
            rest.split("\n  - ").next().expect("its end").replace("\n    ", " ")
        };
        let [one, two, three] =
            [1, 2, 3].map(|value| Assignment { setting: "a.b", value: Value::Integer(value) });
        assert_eq!(says(1.0, &[], Vary::Nothing), "holds");
        assert_eq!(says(1.4, &[], Vary::Nothing), "DOES NOT HOLD");
        assert_eq!(says(1.0, &[(one, 1.1)], Vary::Band), "holds with each parameter moved alone");
        assert_eq!(says(1.0, &[(one, 1.1)], Vary::Mechanisms), "holds with every change");
        let varied = [(one, 1.4), (two, 1.0), (three, 1.5)];
        assert_eq!(says(1.0, &varied, Vary::Band), "holds, but not with a.b=1, a.b=3");
        assert_eq!(says(1.4, &varied, Vary::Band), "DOES NOT HOLD, but does with a.b=2");
        assert_eq!(says(1.4, &[(one, 1.4)], Vary::Band), "DOES NOT HOLD, nor with any parameter moved alone");
    }

    #[test]
    fn each_mechanism_has_a_line_for_each_variant() {
        let occupancy = Assignment { setting: "machine.read-occupancy-modified", value: Value::Float(1.0) };
        let jitter = Assignment { setting: "machine.jitter", value: Value::Float(0.0) };
        let found = reproduced("cna-locktorture", 1.5, &[(occupancy, 2.25), (jitter, 0.98)]);
        let shown = text(|out| mechanisms(out, &found));
        let lines: Vec<_> = shown.lines().collect();
        let stock = lines.iter().position(|line| line.starts_with("stock ")).expect("stock");
        let figures = |line: &str| line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>();
        assert!(lines[stock].ends_with("mean     1     2     4     8    16    32    36    72   108   142"));
        assert!(lines[stock + 1].starts_with("as it is "));
        assert_eq!(figures(lines[stock + 2]), [&["125.0"][..], &["+125"; 10]].concat());
        assert_eq!(figures(lines[stock + 3]), [&["2.0"][..], &["-2.0"; 10]].concat());
        assert_eq!(shown.matches("machine.jitter=0").count(), 3, "one for each variant: {shown}");
        // The variant that the others are relative to has no errors.
        let relative = text(|out| mechanisms(out, &reproduced("cna-context1", 1.0, &[(jitter, 1.0)])));
        assert_eq!(relative.matches("machine.jitter=0").count(), 2, "{relative}");
    }

    #[test]
    fn rows_without_room_are_left_out_except_the_last() {
        let table = Table::named("cna-locktorture").expect("a table");
        assert_eq!(shown(table, 10).len(), 10);
        let threads = |room| shown(table, room).into_iter().filter_map(RowKey::threads).collect::<Vec<_>>();
        assert_eq!(threads(9), [2, 8, 32, 72, 142]);
        assert_eq!(threads(0), [142]);
        let setting = "machine.a-setting-whose-name-is-as-long-as-no-other-one-is";
        let long = Assignment { setting, value: Value::Integer(1) };
        text(|out| mechanisms(out, &reproduced("cna-locktorture", 1.0, &[(long, 1.0)])));
    }
}
