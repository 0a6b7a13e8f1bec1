//! A reproduced table as text: published beside simulated, row by row, and a summary.

use std::collections::BTreeSet;
use std::io::{self, Write};

use nearlock_lab::published::{Class, KeyValue, RowKey, Scale, Table};
use nearlock_lab::reproduce::{
    Cell, Reproduced, Reproduction, Vary, figure, largest_error, mean_error, within_band,
};

use super::text::{WIDTH, paragraph, width, wrapped};

/// Mark of a cell's class.
fn mark(class: Class) -> char {
    match class {
        Class::Fitted => '*',
        Class::Seen => '~',
        Class::Predicted => ' ',
    }
}

/// Columns of a variant's name if each variant has a line.
const VARIANT_WIDTH: usize = 12;

/// Title and header of a reproduced table.
pub fn table_head(out: &mut impl Write, reproduction: &Reproduction) -> io::Result<()> {
    let table = reproduction.table;
    paragraph(
        out,
        &format!(
            "{}: {} on {}, {}. PUBLISHED: {}",
            table.name,
            table.workloads(),
            table.machines(),
            table.unit,
            table.source
        ),
    )?;
    if let Some(set) = super::set(reproduction.set) {
        paragraph(out, &set)?;
    }
    let head = row_head(table);
    let is_banded = reproduction.vary == Vary::Band;
    if is_banded || has_lines(table) {
        let band = if is_banded { "     low   high" } else { " " };
        let relative = if has_speedups(table) { "  publ/sim." } else { "" };
        return writeln!(
            out,
            "\n{head}  {:<VARIANT_WIDTH$}   publ. simul. {:>6}{band}{relative}",
            "variant",
            error_head(table)
        );
    }
    let names = table.variants.iter().map(|variant| format!("  {:^20} ", variant.name));
    let compared = if has_speedups(table) { &table.variants[1..] } else { &[] };
    let speedups = compared.iter().map(|variant| format!("  {:>9}", variant.name));
    writeln!(
        out,
        "\n{:>width$}{}{}",
        "",
        names.collect::<String>(),
        speedups.collect::<String>(),
        width = head.len()
    )?;
    let columns = format!("   publ. simul. {:>6} ", error_head(table)).repeat(table.variants.len());
    let speedups = "  publ/sim.".repeat(compared.len());
    writeln!(out, "{head}{columns}{speedups}")
}

/// The head of the column of errors.
fn error_head(table: &Table) -> &'static str {
    if table.error_unit() == "%" { "err %" } else { table.error_unit() }
}

/// Whether there are too many variants for one line.
fn has_lines(table: &Table) -> bool {
    table.variants.len() > 3 || width() < WIDTH
}

/// Whether variants are shown as multiples of the first.
fn has_speedups(table: &Table) -> bool {
    !matches!(table.scale, Scale::PercentOver(_))
}

/// The width of each column that names a row.
fn key_widths(table: &Table) -> Vec<usize> {
    let rows = table.rows();
    let widest = |(index, key): (usize, &&str)| {
        let values = rows.iter().map(|row| row.key.parts()[index].1.to_string().len());
        values.chain([key.len()]).max().unwrap_or(0)
    };
    table.keys.iter().enumerate().map(widest).collect()
}

/// The heads of the columns that name a row.
fn row_head(table: &Table) -> String {
    let heads = table.keys.iter().zip(key_widths(table)).map(|(key, width)| format!("{key:<width$}"));
    heads.collect::<Vec<_>>().join("  ")
}

/// A row's name: words on the left of their columns, counts on the right.
fn row_name(table: &Table, row: &RowKey) -> String {
    let named = row.parts().iter().zip(key_widths(table)).map(|((_, value), width)| match value {
        KeyValue::Number(number) => format!("{number:>width$}"),
        KeyValue::Range(..) | KeyValue::Text(_) => format!("{:<width$}", value.to_string()),
    });
    named.collect::<Vec<_>>().join("  ")
}

/// One row of the table: published and simulated, then how many times as fast as the first variant.
/// Cells with a band have a line each, and so have those of many variants.
pub fn table_row(out: &mut impl Write, table: &Table, cells: &[Cell]) -> io::Result<()> {
    let Some(base) = cells.first() else { return Ok(()) };
    let name = row_name(table, &base.row);
    let speedup = |cell: &Cell| {
        if !has_speedups(table) || std::ptr::eq(cell, base) {
            return String::new();
        }
        let published = cell.published.zip(base.published);
        let published =
            published.map_or_else(|| "-".to_owned(), |(of, to)| format!("{:.2}", table.ratio(of, to)));
        format!("  {published:>4}/{:>4.2}", table.ratio(cell.simulated, base.simulated))
    };
    let is_banded = cells.iter().any(|cell| cell.low.is_some());
    if is_banded || has_lines(table) {
        for cell in cells {
            let name = if std::ptr::eq(cell, base) { name.as_str() } else { "" };
            let (columns, variant) = (row_head(table).len(), cell.variant);
            let figures = figures(cell);
            let band = if is_banded { band(cell) } else { String::new() };
            writeln!(out, "{name:>columns$}  {variant:<VARIANT_WIDTH$}{figures}{band}{}", speedup(cell))?;
        }
        return Ok(());
    }
    let figures: String = cells.iter().map(figures).collect();
    let speedups: String = cells.iter().map(speedup).collect();
    writeln!(out, "{name}{}", format!("{figures}{speedups}").trim_end())
}

/// Shown instead of a figure that is not in the document.
const NO_FIGURE: &str = "n.i.d.";

/// Published, simulated, and the error with its mark.
fn figures(cell: &Cell) -> String {
    let published = cell.published.map_or_else(|| NO_FIGURE.to_owned(), figure);
    let error = cell.error.map_or_else(|| "-".to_owned(), |error| format!("{:+.1}", error * 100.0));
    format!("  {published:>6} {:>6} {error:>6}{}", figure(cell.simulated), mark(cell.class))
}

/// Low and high.
fn band(cell: &Cell) -> String {
    let end = |end: Option<f64>| end.map_or_else(|| "-".to_owned(), figure);
    format!("  {:>6} {:>6}", end(cell.low), end(cell.high))
}

/// Mean absolute errors: of all cells, by variant, by class.
pub fn table_summary(out: &mut impl Write, table: &Table, cells: &[Cell]) -> io::Result<()> {
    let predicted =
        if cells.iter().any(|cell| cell.class == Class::Predicted) { "unmarked: predicted   " } else { "" };
    let base = table.variants[0].name;
    let relative =
        if has_speedups(table) { format!("publ/sim.: times as many as {base}") } else { String::new() };
    writeln!(out, "\n{}", format!("* fitted   ~ seen   {predicted}{relative}").trim_end())?;
    if cells.iter().any(|cell| cell.published.is_none()) {
        writeln!(out, "{NO_FIGURE}: not in the document")?;
    }
    let unit = table.error_unit();
    let shown = |of: &dyn Fn(&Cell) -> bool| match mean_error(cells, of) {
        Some(error) => format!("{:.1} {unit} ({} cells)", error.mean * 100.0, error.cells),
        None => "no cells".to_owned(),
    };
    writeln!(out, "mean absolute error, simulated against published: {}", shown(&|_| true))?;
    let variants =
        table.variants.iter().map(|v| format!("{} {}", v.name, shown(&|cell| cell.variant == v.name)));
    let variants = format!("by variant: {}", variants.collect::<Vec<_>>().join(", "));
    writeln!(out, "{}", wrapped(&variants, "  "))?;
    let classes = Class::ALL.map(|class| format!("{} {}", class.name(), shown(&|cell| cell.class == class)));
    writeln!(out, "  by class:   {}", classes.join(", "))?;
    if let Some(error) = mean_error(cells, |cell| cell.class != Class::Fitted).filter(|_| unit == "%") {
        writeln!(out, "  geometric mean, without the fitted: {:.1} %", error.geometric * 100.0)?;
    }
    let Some(worst) = largest_error(cells) else { return Ok(()) };
    let (variant, row, error) = (worst.variant, &worst.row, worst.error.unwrap_or(f64::NAN) * 100.0);
    writeln!(out, "  worst cell: {variant} at {row}, {error:+.1} {unit}")?;
    if let (within, of @ 1..) = within_band(cells) {
        writeln!(out, "  published within low to high: {within} of {of} cells")?;
    }
    let choices: BTreeSet<_> = table.seen().iter().map(|cells| cells.choice).collect();
    for choice in choices {
        writeln!(out, "{}", wrapped(&format!("seen while choosing: {choice}"), "  "))?;
    }
    match table.document().missing {
        Some(missing) => writeln!(out, "{}", wrapped(&format!("not here: {missing}"), "  ")),
        None => Ok(()),
    }
}

/// The number of effects that are as published, and the effects that are not.
pub fn effects(out: &mut impl Write, reproduced: &Reproduced) -> io::Result<()> {
    let effects = reproduced.effects();
    if effects.is_empty() {
        return Ok(());
    }
    let (alike, otherwise): (Vec<_>, Vec<_>) =
        effects.iter().partition(|effect| effect.published == effect.simulated);
    writeln!(out, "  effects (gain, none or loss) as published: {} of {}", alike.len(), effects.len())?;
    for effect in otherwise {
        let (published, simulated) = (effect.published.name(), effect.simulated.name());
        let line =
            format!("{} at {}: published {published}, simulated {simulated}", effect.variant, effect.row);
        writeln!(out, "{}", wrapped(&line, "    "))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::text::testing::{assert_fits, text};
    use super::*;
    use nearlock_lab::published::TABLES;
    use nearlock_lab::reproduce::Effort;

    /// Every cell of a table, simulated as badly as can be.
    fn cells(table: &'static Table, band: Option<(f64, f64)>) -> Vec<Cell> {
        let cell = |row, variant| {
            let (low, high) = (band.map(|(low, _)| low), band.map(|(_, high)| high));
            Cell { low, high, ..Cell::new(table, row, variant, 0.001) }
        };
        let rows = table.rows();
        rows.iter().flat_map(|row| (0..table.variants.len()).map(move |variant| cell(row, variant))).collect()
    }

    fn reproduced(reproduction: &Reproduction, cells: &[Cell]) -> String {
        let table = reproduction.table;
        let mut shown = text(|out| table_head(out, reproduction));
        for row in cells.chunks(table.variants.len()) {
            shown += &text(|out| table_row(out, table, row));
        }
        shown + &text(|out| table_summary(out, table, cells))
    }

    #[test]
    fn a_reproduced_table_fits_whatever_its_errors() {
        for &table in TABLES {
            for vary in [Vary::Nothing, Vary::Band] {
                let reproduction = Reproduction { table, effort: Effort::Quick, seeds: None, set: &[], vary };
                let band = (vary == Vary::Band).then_some((-99.999, 99.999));
                assert_fits(&reproduced(&reproduction, &cells(table, band)));
            }
        }
        let table = TABLES[0];
        let reproduction =
            Reproduction { table, effort: Effort::Quick, seeds: None, set: &[], vary: Vary::Nothing };
        let shown = reproduced(&reproduction, &cells(table, None));
        assert!(shown.contains("  2.707  0.001 -100.0*"), "{shown}");
        let cells = cells(table, None);
        let fitted = cells.iter().filter(|cell| cell.class == Class::Fitted).count();
        assert!(shown.contains(&format!("fitted 100.0 % ({fitted} cells)")), "{shown}");
        assert!(shown.contains("predicted no cells") && !shown.contains("unmarked"), "{shown}");
        assert_eq!(shown.matches("seen while choosing: ").count(), 1, "{shown}");
        assert!(!shown.contains("low"), "{shown}");
    }

    #[test]
    fn errors_of_shares_are_points_and_missing_results_are_named() {
        let shown = |name: &str| {
            let table = Table::named(name).expect("a table");
            let reproduction =
                Reproduction { table, effort: Effort::Quick, seeds: None, set: &[], vary: Vary::Nothing };
            reproduced(&reproduction, &cells(table, None))
        };
        let share = shown("mutex-slowpath-share");
        assert!(share.contains(" points ") && !share.contains("err %"), "{share}");
        assert!(share.contains("worst cell: without at nodes 8, -65.3 points"), "{share}");
        let jobs = shown("mutex-high-systime");
        assert!(
            jobs.contains("geometric mean, without the fitted: ") && !share.contains("geometric"),
            "{jobs}"
        );
        for text in [&share, &jobs] {
            assert_eq!(text.matches("  not here: the message's last table").count(), 1, "{text}");
        }
        assert!(!shown("cna-open1").contains("not here"));
    }

    #[test]
    fn a_band_is_two_more_columns() {
        let table = TABLES[0];
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

    #[test]
    fn effects_that_differ_are_named() {
        let table = Table::named("cna-locktorture").expect("a table");
        let rows = table.rows();
        let figure = |row: usize, variant: usize| rows[row].values[variant].expect("a figure").mean;
        let cells = |factor: f64| -> Vec<Cell> {
            let places = (0..rows.len()).flat_map(|row| (0..3).map(move |variant| (row, variant)));
            let factor = |variant| if variant == 0 { factor } else { 1.0 };
            places
                .map(|(row, variant)| {
                    Cell::new(table, &rows[row], variant, figure(row, variant) * factor(variant))
                })
                .collect()
        };
        let shown = |factor| {
            let reproduced = Reproduced { table, cells: cells(factor), varied: vec![] };
            text(|out| effects(out, &reproduced))
        };
        assert_eq!(shown(1.0), "  effects (gain, none or loss) as published: 20 of 20\n");
        let otherwise = shown(1.2);
        assert_fits(&otherwise);
        assert!(otherwise.contains("    cna at 1 threads: published none, simulated loss\n"), "{otherwise}");
    }
}
