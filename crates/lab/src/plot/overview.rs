//! An overview of all tables: a line for each headline figure of a table, published beside
//! simulated.

use plotters::element::Rectangle;
use plotters::style::{Color, RGBColor, WHITE};

use super::marks;
use super::panel::{Axis, Frame, Panel};
use super::reproduced::{look, published};
use super::{Area, DARK, GREY, LINE, MARGIN, PlotError, Size, letters, picture, text_width};
use crate::published::Class;
use crate::reproduce::HeadlineRow;

/// Width of the picture, width of the names of its lines, and heights of the parts above and below
/// its panel, in pixels.
const WIDTH: u32 = 560;
const NAMES: u32 = 236;
const TOP: u32 = 62;
const BELOW: u32 = 58;
/// The height of a line, in pixels.
const ROW: u32 = 24;

/// The figures of a document.
#[derive(Debug)]
pub struct Effects {
    /// The subject of the document.
    pub title: &'static str,
    /// Its figures.
    pub rows: Vec<HeadlineRow>,
}

/// The contents of a line.
enum Line<'a> {
    Title(&'a str),
    Row(&'a HeadlineRow),
}

/// Draws the figures, by document. A broad line behind the simulated figure spans the minimum and
/// the maximum over the variations. `None` if there are no figures.
///
/// # Errors
///
/// If the picture cannot be laid out.
pub fn overview(documents: &[Effects]) -> Result<Option<String>, PlotError> {
    let lines: Vec<Line> = documents
        .iter()
        .filter(|document| !document.rows.is_empty())
        .flat_map(|document| {
            [Line::Title(document.title)].into_iter().chain(document.rows.iter().map(Line::Row))
        })
        .collect();
    if lines.is_empty() {
        return Ok(None);
    }
    let rows = || documents.iter().flat_map(|document| &document.rows);
    let size = (WIDTH, TOP + ROW * lines.len() as u32 + BELOW);
    let svg = picture(size, &instead(rows()), |area, hints| {
        area.draw_text(HEADING, &letters(Size::Title, DARK), (MARGIN, MARGIN + 6))?;
        samples(area, MARGIN + 6 + LINE + 10)?;
        let figures = rows().flat_map(|row| [row.published, row.simulated, row.low, row.high]);
        let below = area.split_vertically(TOP - 26).1;
        let frame = Frame { heading: "", x_name: "times as fast as the old lock", y_name: "", right: MARGIN };
        let part = below.split_horizontally(NAMES - 58).1;
        let panel = Panel::draw(&part, &frame, Axis::times(figures), Axis::lines(lines.len()))?;
        let at = |line: usize, value: f64| panel.pixel(value, (lines.len() - 1 - line) as f64);
        let (top, bottom) = panel.down();
        let one = panel.pixel(1.0, 0.0).0;
        marks::line(area, &[(one, top), (one, bottom)], GREY.stroke_width(2))?;
        for (index, line) in lines.iter().enumerate() {
            let y = at(index, 1.0).1;
            match line {
                Line::Title(title) => {
                    // The title may be longer than the names, and would then be drawn over the
                    // grid.
                    let end = MARGIN + text_width(title) * 5 / 4;
                    area.draw(&Rectangle::new([(MARGIN, y - 9), (end, y + 11)], WHITE.filled()))?;
                    area.draw_text(title, &letters(Size::Heading, DARK), (MARGIN, y + 2))?;
                }
                Line::Row(row) => {
                    area.draw_text(row.words, &letters(Size::Body, DARK), (MARGIN + 8, y))?;
                    if row.low < row.high {
                        marks::span(area, at(index, row.low), at(index, row.high), COLOR)?;
                    }
                    let (shape, inside) = look(row.class);
                    marks::marker(area, at(index, row.simulated), shape, inside, COLOR)?;
                    published(area, at(index, row.published), None)?;
                    hints.add(at(index, row.simulated), hint(row));
                }
            }
        }
        Ok(())
    })?;
    Ok(Some(svg))
}

/// The colour of simulated figures.
const COLOR: RGBColor = RGBColor(0xd5, 0x5e, 0x00);

/// The heading above the lines.
const HEADING: &str = "How many times as fast is the new lock?";

fn samples(area: &Area, y: i32) -> Result<(), PlotError> {
    let mut x = MARGIN + 6;
    let name = |text: &str, x: &mut i32| -> Result<(), PlotError> {
        area.draw_text(text, &letters(Size::Body, DARK), (*x + 12, y))?;
        *x += 12 + text_width(text) + 16;
        Ok(())
    };
    published(area, (x, y), None)?;
    name("published", &mut x)?;
    x -= 12;
    name("simulated:", &mut x)?;
    for class in [Class::Predicted, Class::Seen, Class::Fitted] {
        let (shape, inside) = look(class);
        marks::marker(area, (x, y), shape, inside, COLOR)?;
        name(class.name(), &mut x)?;
    }
    Ok(())
}

fn hint(row: &HeadlineRow) -> String {
    let HeadlineRow { words, published, simulated, low, high, class } = row;
    let band = if low < high { format!(" ({low:.2} to {high:.2})") } else { String::new() };
    format!("{words}: published {published:.2} times, simulated {simulated:.2}{band}, {}", class.name())
}

/// The text for readers who cannot see the picture.
fn instead<'a>(rows: impl Iterator<Item = &'a HeadlineRow>) -> String {
    format!(
        "How many times as fast the new lock makes each workload, published and simulated. {}.",
        rows.map(hint).collect::<Vec<_>>().join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heading_fits() {
        let width = text_width(HEADING) * Size::Title as i32 / Size::Body as i32 * 11 / 10;
        assert!(width < WIDTH as i32 - 2 * MARGIN, "{width}");
    }

    #[test]
    fn each_figure_has_a_line_and_is_said() {
        let row = |words, published| HeadlineRow {
            words,
            published,
            simulated: 1.5,
            low: 1.2,
            high: 1.75,
            class: Class::Seen,
        };
        let documents = [
            Effects { title: "one document", rows: vec![row("first", 1.4), row("second", 4.02)] },
            Effects { title: "without figures", rows: vec![] },
        ];
        let svg = overview(&documents).unwrap().unwrap();
        assert!(svg.contains("one document") && !svg.contains("without figures"));
        let hint = "second: published 4.02 times, simulated 1.50 (1.20 to 1.75), seen";
        assert_eq!(svg.matches(hint).count(), 2, "at the figure, and for the whole: {svg}");
        assert!(overview(&documents[1..]).unwrap().is_none());
    }
}
