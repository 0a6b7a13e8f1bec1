//! A picture that can be read in five seconds: throughput against threads of two variants of a
//! table, published and simulated. The conclusion is the title.

use plotters::style::{Color, RGBColor};

use super::marks::{self, color};
use super::panel::{Axis, Frame, Panel, Y_LABELS};
use super::{DARK, GREY, LINE, MARGIN, PlotError, Size, letters, picture, text_width};
use crate::published::Table;
use crate::reproduce::Cell;

/// A small width, so that letters remain legible when the picture is shown at two thirds of it.
const WIDTH: u32 = 500;
const HEIGHT: u32 = 330;
/// Height of the title and of the line beneath it, in pixels.
const HEAD: u32 = 56;
/// Doublings between two labels of the axis of threads.
const TICK_ROOM: f64 = 0.9;

/// The headline of a table with rows of numbers of threads: the throughput of the last variant
/// relative to the first, at the largest number of threads.
pub struct Headline<'a> {
    /// The base of the comparison.
    pub base: &'a str,
    /// The other variant.
    pub variant: &'a str,
    /// The number of threads.
    pub threads: usize,
    /// The published ratio.
    pub published: f64,
    /// The simulated ratio.
    pub simulated: f64,
}

impl<'a> Headline<'a> {
    /// The headline of a table. `None` if its rows are not numbers of threads, if its variants are
    /// relative to one of them, or if its last row was not published.
    pub fn of(table: &Table, cells: &'a [Cell]) -> Option<Self> {
        let (first, last) = (table.variants.first()?, table.variants.last()?);
        if first.name == last.name || table.is_by_definition(first.name) {
            return None;
        }
        let threads = cells.iter().filter_map(|cell| cell.row.threads()).max()?;
        let of = |variant: &str| {
            cells.iter().find(|cell| cell.variant == variant && cell.row.threads() == Some(threads))
        };
        let (base, other) = (of(first.name)?, of(last.name)?);
        Some(Self {
            base: base.variant,
            variant: other.variant,
            threads,
            published: other.published? / base.published?,
            simulated: other.simulated / base.simulated,
        })
    }

    /// The headline as a sentence.
    pub fn sentence(&self) -> String {
        let Self { base, variant, threads, published, simulated } = self;
        format!(
            "At {threads} threads {variant} does {published:.2} times the work of {base} as published, and \
             {simulated:.2} times simulated."
        )
    }
}

/// Draws the two variants of the headline. `None` if the table has none.
///
/// # Errors
///
/// If the picture cannot be laid out.
pub fn headline(table: &Table, cells: &[Cell]) -> Result<Option<String>, PlotError> {
    let Some(line) = Headline::of(table, cells) else { return Ok(None) };
    let title = format!(
        "{} does {:.1} times the work of {} at {} threads",
        line.variant, line.published, line.base, line.threads
    );
    let mut threads: Vec<usize> = cells.iter().filter_map(|cell| cell.row.threads()).collect();
    threads.sort_unstable();
    threads.dedup();
    let shown = [line.variant, line.base];
    let greatest = cells.iter().flat_map(|cell| [cell.simulated, cell.published.unwrap_or(0.0)]);
    let y = Axis::from_zero(greatest.fold(0.0, f64::max));
    let names_width = shown.iter().map(|name| text_width(name)).max().unwrap_or(0) + MARGIN;
    let svg = picture((WIDTH, HEIGHT), &line.sentence(), |area, _| {
        area.draw_text(&title, &letters(Size::Heading, DARK), (MARGIN, MARGIN + 6))?;
        let second = MARGIN + 6 + LINE + 8;
        marks::dot(area, (MARGIN + 4, second), GREY)?;
        area.draw_text("published", &letters(Size::Body, DARK), (MARGIN + 14, second))?;
        let x = MARGIN + 14 + text_width("published") + MARGIN;
        marks::line(area, &[(x, second), (x + 22, second)], GREY.stroke_width(3))?;
        let words = "simulated, from the same lock source";
        area.draw_text(words, &letters(Size::Body, DARK), (x + 30, second))?;
        let below = area.split_vertically(HEAD).1;
        let x = Axis::threads(&threads, TICK_ROOM);
        let frame = Frame {
            heading: "",
            x_name: "threads",
            y_name: table.unit,
            y_labels: Y_LABELS,
            right: names_width,
        };
        let panel = Panel::draw(&below, &frame, x, y)?;
        for (index, variant) in shown.iter().enumerate() {
            let color: RGBColor = color(index);
            let at =
                |cell: &Cell, figure: f64| panel.pixel(cell.row.threads().unwrap_or_default() as f64, figure);
            let cells: Vec<&Cell> = cells.iter().filter(|cell| cell.variant == *variant).collect();
            let points: Vec<_> = cells.iter().map(|cell| at(cell, cell.simulated)).collect();
            marks::line(area, &points, color.stroke_width(3))?;
            for (cell, published) in cells.iter().filter_map(|cell| Some((cell, cell.published?))) {
                marks::dot(area, at(cell, published), color)?;
            }
            if let Some(&(_, y)) = points.last() {
                let x = panel.across().1 + 6;
                area.draw_text(variant, &letters(Size::Heading, color), (x, y))?;
            }
        }
        Ok(())
    })?;
    Ok(Some(svg))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::Class;
    use crate::reproduce::RowKey;

    fn cells(table: &'static Table) -> Vec<Cell> {
        let cell = |variant, threads: usize, published: f64| Cell {
            table: table.name,
            row: RowKey::of_threads(threads),
            variant,
            metric: table.metric,
            unit: table.unit,
            published: Some(published),
            published_sd: None,
            simulated: published * 1.1,
            low: None,
            high: None,
            error: None,
            class: Class::Seen,
        };
        let variants = table.variants.iter().enumerate();
        variants.flat_map(|(i, v)| [1, 142].map(|n| cell(v.name, n, 2.0 + i as f64))).collect()
    }

    #[test]
    fn the_title_fits() {
        let width = |title: &str| text_width(title) * Size::Heading as i32 / Size::Body as i32;
        let title = "cna-wo-sro does 1.8 times the work of stock at 142 threads";
        assert!(width(title) < WIDTH as i32 - 2 * MARGIN);
    }

    #[test]
    fn the_title_is_what_follows_from_the_picture() {
        let table = Table::named("cna-locktorture").unwrap();
        let cells = cells(table);
        let svg = headline(table, &cells).unwrap().expect("is by threads");
        assert!(svg.contains("cna does 2.0 times the work of stock at 142 threads"), "{svg}");
        assert!(svg.contains("published") && svg.contains("simulated, from the same lock source"), "{svg}");
        let sentence = Headline::of(table, &cells).expect("as above").sentence();
        assert_eq!(
            sentence,
            "At 142 threads cna does 2.00 times the work of stock as published, and 2.00 times simulated."
        );
    }

    #[test]
    fn other_tables_have_no_headline() {
        let table = Table::named("freebsd-find").unwrap();
        assert!(headline(table, &[]).unwrap().is_none());
    }
}
