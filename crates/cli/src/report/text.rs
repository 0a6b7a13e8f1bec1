//! Text for people, at most [`WIDTH`] columns wide.

use std::collections::BTreeSet;
use std::io::{self, Write};

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table as Grid, presets};
use nearlock_lab::published::{Class, Table};
use nearlock_lab::reproduce::{Cell, Reproduction, Vary, largest_error, mean_error, within_band};
use nearlock_lab::simulate::Simulated;
use nearlock_lab::torture::{Counts, NumaNodes, Plan, Tortured, Verdict, Waiting};
use nearlock_lab::{LockEvent, Subject};

/// Columns of a line.
pub const WIDTH: usize = 100;

/// Writes a paragraph, broken into lines.
pub fn paragraph(out: &mut impl Write, text: &str) -> io::Result<()> {
    let indented = text.trim_start_matches('\n');
    let blank_lines = text.len() - indented.len();
    writeln!(out, "{}{}", "\n".repeat(blank_lines), wrapped(indented, ""))
}

/// Words broken into lines, each beginning with `indent`.
pub fn wrapped(text: &str, indent: &str) -> String {
    let mut lines = vec![indent.to_owned()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("begins with one line, and grows");
        if line.len() + 1 + word.len() > WIDTH && line.len() > indent.len() {
            lines.push(format!("{indent}{word}"));
        } else {
            if line.len() > indent.len() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// A grid without lines.
pub(super) fn grid(headers: &[&str]) -> Grid {
    let mut grid = Grid::new();
    grid.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    grid.set_width(WIDTH as u16).set_header(headers);
    for column in grid.column_iter_mut() {
        column.set_padding((0, 2));
    }
    grid
}

/// Its lines.
pub(super) fn render(grid: &Grid) -> String {
    let lines: Vec<_> = grid.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// A table of names. The column `broken` is broken into lines as the width demands, the others are not.
pub fn list_table<const COLUMNS: usize>(
    headers: &[&str; COLUMNS],
    broken: usize,
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> String {
    let mut grid = grid(headers);
    grid.add_rows(rows);
    for (index, column) in grid.column_iter_mut().enumerate() {
        if index != broken {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    render(&grid)
}

/// Digits of a seed too long for its column that are shown: they tell apart as many seeds as a run can have.
const SEED_DIGITS: usize = 5;

/// Simulated cells. No cell is broken into lines.
pub fn simulated(out: &mut impl Write, rows: &[Simulated]) -> io::Result<()> {
    let Some(first) = rows.first() else { return Ok(()) };
    writeln!(out, "SIMULATED: {} on {}; waits in ns", first.workload, first.machine)?;
    let whole = simulated_grid(rows, |seed| seed);
    if whole.lines().all(|line| line.chars().count() <= WIDTH) {
        writeln!(out, "{whole}")?;
    } else {
        let short = simulated_grid(rows, |seed| match seed.len().checked_sub(SEED_DIGITS) {
            None | Some(0) => seed,
            Some(left_out) => format!("..{}", &seed[left_out..]),
        });
        writeln!(out, "{short}")?;
    }
    writeln!(out, "lines/op, remote: line transfers per acquisition, and those between sockets;")?;
    writeln!(
        out,
        "local: share of acquisitions whose predecessor ran on the same NUMA node, a thread's own included;"
    )?;
    writeln!(
        out,
        "ops/us: the rare long holds, which are not simulated, are in it at their mean, 500 ns / threads;"
    )?;
    writeln!(out, "jain: 1 is equal shares")
}

fn simulated_grid(rows: &[Simulated], seed: impl Fn(String) -> String) -> String {
    let mut grid = grid(&[
        "lock", "threads", "seed", "ops/us", "jain", "wait p50", "p99", "max", "lines/op", "remote", "local",
    ]);
    grid.set_content_arrangement(ContentArrangement::Disabled);
    for row in rows {
        grid.add_row([
            row.lock.clone(),
            row.threads.to_string(),
            seed(row.seed.to_string()),
            format!("{:.3}", row.ops_per_us),
            format!("{:.3}", row.jain),
            row.wait_ns_p50.to_string(),
            row.wait_ns_p99.to_string(),
            row.wait_ns_max.to_string(),
            format!("{:.2}", row.line_transfers_per_op),
            format!("{:.2}", row.remote_transfers_per_op),
            format!("{:.2}", row.local_handover_share),
        ]);
    }
    for column in grid.column_iter_mut() {
        column.set_padding((0, 1));
    }
    for column in grid.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    render(&grid)
}

/// Mark of a cell's class.
fn mark(class: Class) -> char {
    match class {
        Class::Fitted => '*',
        Class::Seen => '~',
        Class::Predicted => ' ',
    }
}

/// Columns of a variant's name where each has a line.
const VARIANT_WIDTH: usize = 12;

/// Title and header of a reproduced table.
pub fn table_head(out: &mut impl Write, reproduction: &Reproduction) -> io::Result<()> {
    let table = reproduction.table;
    paragraph(
        out,
        &format!(
            "{}: {} on {}, {}. PUBLISHED: {}",
            table.name, table.workload, table.machine, table.unit, table.source
        ),
    )?;
    if let Some(set) = super::set(reproduction.set) {
        paragraph(out, &set)?;
    }
    if reproduction.vary == Vary::Band {
        return writeln!(
            out,
            "\nthreads  {:<VARIANT_WIDTH$}   publ. simul.  err %     low   high  publ/sim.",
            "variant"
        );
    }
    let names = table.variants.iter().map(|variant| format!("  {:^20} ", variant.name));
    let speedups = table.variants.iter().skip(1).map(|variant| format!("  {:>9}", variant.name));
    writeln!(out, "\n{:>7}{}{}", "", names.collect::<String>(), speedups.collect::<String>())?;
    let columns = "   publ. simul.  err % ".repeat(table.variants.len());
    let speedups = "  publ/sim.".repeat(table.variants.len() - 1);
    writeln!(out, "threads{columns}{speedups}")
}

/// One row of it: published beside simulated, then how much faster than the first variant. Cells with a
/// band have a line each.
pub fn table_row(out: &mut impl Write, cells: &[Cell]) -> io::Result<()> {
    let Some(base) = cells.first() else { return Ok(()) };
    let speedup = |cell: &Cell| {
        let (published, simulated) = (cell.published / base.published, cell.simulated / base.simulated);
        format!("  {published:>4.2}/{simulated:>4.2}")
    };
    if cells.iter().any(|cell| cell.low.is_some()) {
        for cell in cells {
            let first = std::ptr::eq(cell, base);
            let threads = if first { base.row.threads.to_string() } else { String::new() };
            let speedup = if first { String::new() } else { speedup(cell) };
            writeln!(
                out,
                "{threads:>7}  {:<VARIANT_WIDTH$}{}{}{speedup}",
                cell.variant,
                figures(cell),
                band(cell)
            )?;
        }
        return Ok(());
    }
    let figures: String = cells.iter().map(figures).collect();
    let speedups: String = cells.iter().skip(1).map(speedup).collect();
    writeln!(out, "{:>7}{figures}{speedups}", base.row.threads)
}

/// Published, simulated, and the error with its mark.
fn figures(cell: &Cell) -> String {
    let (error, mark) = (cell.error * 100.0, mark(cell.class));
    format!("  {:>6.3} {:>6.3} {error:>+6.1}{mark}", cell.published, cell.simulated)
}

/// Low and high.
fn band(cell: &Cell) -> String {
    let end = |end: Option<f64>| end.map_or_else(|| "-".to_owned(), |end| format!("{end:.3}"));
    format!("  {:>6} {:>6}", end(cell.low), end(cell.high))
}

/// Mean absolute errors: of all cells, by variant, by class.
pub fn table_summary(out: &mut impl Write, table: &Table, cells: &[Cell]) -> io::Result<()> {
    let predicted =
        if cells.iter().any(|cell| cell.class == Class::Predicted) { "unmarked: predicted   " } else { "" };
    let base = table.variants[0].name;
    writeln!(out, "\n* fitted   ~ seen   {predicted}publ/sim.: times as many as {base}")?;
    let shown = |of: &dyn Fn(&Cell) -> bool| match mean_error(cells, of) {
        Some(error) => format!("{:.1} % ({} cells)", error.mean * 100.0, error.cells),
        None => "no cells".to_owned(),
    };
    writeln!(out, "mean absolute error, simulated against published: {}", shown(&|_| true))?;
    let variants =
        table.variants.iter().map(|v| format!("{} {}", v.name, shown(&|cell| cell.variant == v.name)));
    writeln!(out, "  by variant: {}", variants.collect::<Vec<_>>().join(", "))?;
    let classes = Class::ALL.map(|class| format!("{} {}", class.name(), shown(&|cell| cell.class == class)));
    writeln!(out, "  by class:   {}", classes.join(", "))?;
    let Some(worst) = largest_error(cells) else { return Ok(()) };
    let (variant, threads, error) = (worst.variant, worst.row.threads, worst.error * 100.0);
    writeln!(out, "  worst cell: {variant} at {threads} threads, {error:+.1} %")?;
    if let (within, of @ 1..) = within_band(cells) {
        writeln!(out, "  published within low to high: {within} of {of} cells")?;
    }
    let choices: BTreeSet<_> = table.seen().iter().map(|cells| cells.choice).collect();
    for choice in choices {
        writeln!(out, "{}", wrapped(&format!("seen while choosing: {choice}"), "  "))?;
    }
    Ok(())
}

/// The counts of a lock under torture, in locktorture's words.
pub fn counts(lock: &Subject, counts: &Counts) -> String {
    format!(
        "{}-torture: Writes:  Total: {}  Max/Min: {}/{}{}  Fail: {}{}",
        lock.name,
        counts.total,
        counts.max,
        counts.min,
        if counts.is_uneven() { " ???" } else { "" },
        counts.failures,
        if counts.failures > 0 { " !!!" } else { "" },
    )
}

/// The line of a lock, and beneath it what else was counted.
pub fn tortured(out: &mut impl Write, tortured: &Tortured) -> io::Result<()> {
    // As in the original, any failure is marked, not only those that a writer saw.
    let mark = if tortured.problems.is_empty() || tortured.counts.failures > 0 { "" } else { " !!!" };
    let verdict = tortured.verdict().name();
    writeln!(out, "{}{mark}  {verdict}", counts(tortured.lock, &tortured.counts))?;
    let wait_ms = tortured.wait_ns_max as f64 / 1e6;
    let events = tortured.events_seen().map(|(event, count)| format!(", {} {count}", event.name()));
    let mut detail = format!("longest wait {wait_ms:.1} ms{}", events.collect::<String>());
    let not_taken: Vec<_> = tortured.paths_not_taken().map(LockEvent::name).collect();
    if !not_taken.is_empty() {
        detail += &format!(", NOT TAKEN: {}", not_taken.join(", "));
    }
    writeln!(out, "{}", wrapped(&detail, "    "))
}

/// The last line of a torture test.
pub fn torture_end(out: &mut impl Write, plan: &Plan, verdict: Verdict) -> io::Result<()> {
    let numa_nodes = match plan.numa_nodes {
        NumaNodes::Real(nodes) => format!("{nodes}"),
        NumaNodes::Synthetic(nodes) | NumaNodes::Slots(nodes) => format!("{nodes}(synthetic)"),
    };
    let wait = match plan.waiting {
        Waiting::Spin => "spin",
        Waiting::Yield => "yield",
    };
    let text = format!(
        "--- End of test: {}: nwriters_stress={} numa_nodes={numa_nodes} wait={wait} shutdown_secs={} \
         stat_interval={} stutter={} long_hold={} priority_percent={}",
        verdict.name(),
        plan.writers,
        plan.duration.as_secs(),
        plan.stat_interval.as_secs(),
        plan.stutter.as_secs(),
        plan.long_hold_ms,
        plan.priority_percent,
    );
    writeln!(out, "{}", wrapped(&text, "    ").trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearlock_lab::published::TABLES;
    use nearlock_lab::reproduce::{Effort, RowKey};

    fn text(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).expect("memory can be written to");
        String::from_utf8(out).expect("text")
    }

    fn assert_fits(text: &str) {
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{} columns: {line}", line.chars().count());
        }
    }

    #[test]
    fn words_are_wrapped_and_none_is_lost() {
        let words = "waiter ".repeat(40);
        let wrapped = wrapped(words.trim_end(), "    ");
        assert_fits(&wrapped);
        assert!(wrapped.lines().count() == 4 && wrapped.lines().all(|line| line.starts_with("    waiter")));
        assert_eq!(wrapped.split_whitespace().count(), 40);
        assert_eq!(text(|out| paragraph(out, "\n\nline")), "\n\nline\n");
    }

    /// Every cell of a table, simulated as badly as can be.
    fn cells(table: &'static Table, band: Option<(f64, f64)>) -> Vec<Cell> {
        let mut cells = Vec::new();
        for row in table.rows() {
            cells.extend(table.variants.iter().zip(&row.values).map(|(variant, value)| Cell {
                table: table.name,
                row: RowKey { threads: row.threads },
                variant: variant.name,
                metric: table.metric,
                unit: table.unit,
                published: value.mean,
                published_sd: value.sd,
                simulated: 0.001,
                low: band.map(|(low, _)| low),
                high: band.map(|(_, high)| high),
                error: -0.9999,
                class: table.class(variant.name, row.threads),
            }));
        }
        cells
    }

    fn reproduced(reproduction: &Reproduction, cells: &[Cell]) -> String {
        let table = reproduction.table;
        let mut shown = text(|out| table_head(out, reproduction));
        for row in cells.chunks(table.variants.len()) {
            shown += &text(|out| table_row(out, row));
        }
        shown + &text(|out| table_summary(out, table, cells))
    }

    #[test]
    fn a_reproduced_table_fits_whatever_its_errors() {
        let table = &TABLES[0];
        let reproduction =
            Reproduction { table, effort: Effort::Quick, seeds: None, set: &[], vary: Vary::Nothing };
        let shown = reproduced(&reproduction, &cells(table, None));
        assert_fits(&shown);
        assert!(shown.contains("  2.707  0.001 -100.0*"), "{shown}");
        let cells = cells(table, None);
        let fitted = cells.iter().filter(|cell| cell.class == Class::Fitted).count();
        assert!(shown.contains(&format!("fitted 100.0 % ({fitted} cells)")), "{shown}");
        assert!(shown.contains("predicted no cells") && !shown.contains("unmarked"), "{shown}");
        assert_eq!(shown.matches("seen while choosing: ").count(), 1, "{shown}");
        assert!(!shown.contains("low"), "{shown}");
    }

    #[test]
    fn a_band_is_two_more_columns() {
        let table = &TABLES[0];
        let reproduction =
            Reproduction { table, effort: Effort::Quick, seeds: None, set: &[], vary: Vary::Band };
        let shown = reproduced(&reproduction, &cells(table, Some((0.001, 10.45))));
        assert_fits(&shown);
        let lines: Vec<_> = shown.lines().collect();
        let head = lines.iter().position(|line| line.starts_with("threads")).expect("a header");
        assert_eq!(lines[head], "threads  variant        publ. simul.  err %     low   high  publ/sim.");
        assert_eq!(lines[head + 1], "      1  stock          2.707  0.001 -100.0*   0.001 10.450");
        assert_eq!(lines[head + 2], "         cna-wo-sro     2.693  0.001 -100.0~   0.001 10.450  0.99/1.00");
        // Two cells are above 10.45.
        assert!(shown.contains("published within low to high: 28 of 30 cells"), "{shown}");
        for variant in table.variants {
            assert!(variant.name.len() <= VARIANT_WIDTH);
        }
    }
}
