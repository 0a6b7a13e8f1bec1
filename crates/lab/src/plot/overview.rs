//! An overview of all tables: a line for each headline figure of a table, published beside
//! simulated.

use plotters::element::Rectangle;
use plotters::style::{Color, RGBColor, WHITE};

use super::marks;
use super::panel::{self, Axis, Frame, Panel};
use super::reproduced::{look, published};
use super::{Area, DARK, GREY, Hints, LINE, MARGIN, PlotError, Size, letters, picture, text_width};
use crate::published::Class;
use crate::reproduce::HeadlineRow;

/// A form of the picture. Lengths are pixels.
struct Form {
    width: u32,
    /// The lines of the heading.
    heading: &'static [&'static str],
    legend: Legend,
    /// The left end of the heading, of the legend and of the titles.
    left: i32,
    /// The left end of the panel, and the space for the labels of its y axis.
    panel: (i32, i32),
    /// The height of the part above the panel.
    top: u32,
    /// The height of a line.
    row: u32,
    /// The positions of a title, of words and of marks, relative to the middle of their line.
    title_down: i32,
    words_down: i32,
    marks_down: i32,
    words: Words,
}

/// The place of a row's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Words {
    BesidePanel,
    AboveMarks,
}

/// The lines of the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Legend {
    OneLine,
    TwoLines,
}

/// For a file, and for a window of at least this width.
const WIDE: Form = Form {
    width: 560,
    heading: &["How many times as fast is the new lock?"],
    legend: Legend::OneLine,
    left: MARGIN,
    panel: (236, panel::Y_LABELS),
    top: 62,
    row: 24,
    title_down: 2,
    words_down: 0,
    marks_down: 0,
    words: Words::BesidePanel,
};

/// For a phone. Letters remain legible if the picture is shown at 0.85 of its width.
const NARROW: Form = Form {
    width: 350,
    heading: &["How many times as fast", "is the new lock?"],
    legend: Legend::TwoLines,
    left: 4,
    panel: (panel::EDGE, 0),
    top: 102,
    row: 36,
    title_down: 5,
    words_down: -7,
    marks_down: 8,
    words: Words::AboveMarks,
};

/// The height of the part below the panel, in pixels.
const BELOW: u32 = 58;
/// Distance of two lines of the heading, and of its last line from the legend, in pixels.
const HEADING_LINE: i32 = 20;
const HEADING_LEGEND: i32 = LINE + 10;
/// The indentation of words.
const INDENT: i32 = 8;

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

/// The same picture in two forms.
#[derive(Debug)]
pub struct Overview {
    /// For a file, and for a page in a window of usual width.
    pub wide: String,
    /// For a page on a phone.
    pub narrow: String,
}

/// Draws the figures, by document. A broad line behind the simulated figure spans the minimum and
/// the maximum over the variations. `None` if there are no figures.
///
/// # Errors
///
/// If the picture cannot be laid out.
pub fn overview(documents: &[Effects]) -> Result<Option<Overview>, PlotError> {
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
    Ok(Some(Overview { wide: WIDE.draw(&lines)?, narrow: NARROW.draw(&lines)? }))
}

/// The colour of simulated figures.
const COLOR: RGBColor = RGBColor(0xd5, 0x5e, 0x00);

impl Form {
    fn draw(&self, lines: &[Line]) -> Result<String, PlotError> {
        let rows = || {
            lines.iter().filter_map(|line| match line {
                Line::Title(_) => None,
                Line::Row(row) => Some(*row),
            })
        };
        let size = (self.width, self.top + self.row * lines.len() as u32 + BELOW);
        picture(size, &instead(rows()), |area, hints| {
            for (line, y) in self.heading.iter().zip((MARGIN + 6..).step_by(HEADING_LINE as usize)) {
                area.draw_text(line, &letters(Size::Title, DARK), (self.left, y))?;
            }
            self.samples(area)?;
            let figures = rows().flat_map(|row| [row.published, row.simulated, row.low, row.high]);
            let below = area.split_vertically(self.top - panel::HEADING as u32).1;
            let (panel_left, y_labels) = self.panel;
            let part = below.split_horizontally((panel_left - y_labels - panel::EDGE) as u32).1;
            let frame = Frame {
                heading: "",
                x_name: "times as fast as the old lock",
                y_name: "",
                y_labels,
                right: MARGIN,
            };
            let panel = Panel::draw(&part, &frame, Axis::times(figures), Axis::lines(lines.len()))?;
            let (top, bottom) = panel.down();
            let one = panel.pixel(1.0, 0.0).0;
            marks::line(area, &[(one, top), (one, bottom)], GREY.stroke_width(2))?;
            for (index, line) in lines.iter().enumerate() {
                let at = |value: f64| panel.pixel(value, (lines.len() - 1 - index) as f64);
                match line {
                    Line::Title(title) => self.title(area, title, at(1.0).1)?,
                    Line::Row(row) => self.row(area, hints, row, at)?,
                }
            }
            Ok(())
        })
    }

    /// Draws the title of a document, for a line with its middle at this height.
    fn title(&self, area: &Area, title: &str, y: i32) -> Result<(), PlotError> {
        let y = y + self.title_down;
        // The title may be longer than the names, and would then be drawn over the grid.
        let end = self.left + text_width(title) * 5 / 4;
        area.draw(&Rectangle::new([(self.left, y - 11), (end, y + 9)], WHITE.filled()))?;
        Ok(area.draw_text(title, &letters(Size::Heading, DARK), (self.left, y))?)
    }

    /// Draws a figure. `at` gives the point of a value.
    fn row(
        &self,
        area: &Area,
        hints: &Hints,
        row: &HeadlineRow,
        at: impl Fn(f64) -> (i32, i32),
    ) -> Result<(), PlotError> {
        let words_at = (self.left + INDENT, at(1.0).1 + self.words_down);
        if self.words == Words::AboveMarks {
            let (x, y) = words_at;
            let end = x + text_width(row.words);
            area.draw(&Rectangle::new([(x - INDENT, y - 8), (end, y + 8)], WHITE.filled()))?;
        }
        area.draw_text(row.words, &letters(Size::Body, DARK), words_at)?;
        let at = |value: f64| {
            let (x, y) = at(value);
            (x, y + self.marks_down)
        };
        if row.low < row.high {
            marks::span(area, at(row.low), at(row.high), COLOR)?;
        }
        let (shape, inside) = look(row.class);
        marks::marker(area, at(row.simulated), shape, inside, COLOR)?;
        published(area, at(row.published), None)?;
        hints.add(at(row.simulated), hint(row));
        Ok(())
    }

    /// Draws the legend.
    fn samples(&self, area: &Area) -> Result<(), PlotError> {
        let heading = HEADING_LINE * (self.heading.len() as i32 - 1);
        let (mut x, mut y) = (self.left + 6, MARGIN + 6 + heading + HEADING_LEGEND);
        published(area, (x, y), None)?;
        sample_name(area, "published", (&mut x, y))?;
        match self.legend {
            Legend::OneLine => x -= SAMPLE,
            Legend::TwoLines => (x, y) = (self.left - SAMPLE, y + LINE + 2),
        }
        sample_name(area, "simulated:", (&mut x, y))?;
        for class in [Class::Predicted, Class::Seen, Class::Fitted] {
            let (shape, inside) = look(class);
            marks::marker(area, (x, y), shape, inside, COLOR)?;
            sample_name(area, class.name(), (&mut x, y))?;
        }
        Ok(())
    }
}

/// The distance of a sample's name from the middle of the sample, in pixels.
const SAMPLE: i32 = 12;

/// Draws the name of the sample at this point, and moves on to the next sample.
fn sample_name(area: &Area, name: &str, (x, y): (&mut i32, i32)) -> Result<(), PlotError> {
    area.draw_text(name, &letters(Size::Body, DARK), (*x + SAMPLE, y))?;
    *x += SAMPLE + text_width(name) + 16;
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
    use crate::published::DOCUMENTS;

    /// The approximate width of bold text, in pixels.
    fn bold_width(text: &str, size: Size) -> i32 {
        text_width(text) * size as i32 / Size::Body as i32 * 11 / 10
    }

    #[test]
    fn headings_and_words_fit() {
        for form in [WIDE, NARROW] {
            let room = form.width as i32 - form.left;
            for line in form.heading {
                assert!(bold_width(line, Size::Title) < room - MARGIN, "{line}");
            }
            assert_eq!(form.heading.join(" "), "How many times as fast is the new lock?");
            for document in DOCUMENTS {
                assert!(bold_width(document.title, Size::Heading) <= room, "{}", document.title);
                for headline in document.tables.iter().flat_map(|claim| claim.headlines) {
                    let words = INDENT + text_width(headline.words);
                    let room = match form.words {
                        Words::BesidePanel => form.panel.0 - form.left,
                        Words::AboveMarks => room,
                    };
                    assert!(words < room, "{}", headline.words);
                }
            }
        }
    }

    #[test]
    fn each_figure_has_a_line_in_both_forms_and_is_said() {
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
        let Overview { wide, narrow } = overview(&documents).unwrap().unwrap();
        for svg in [&wide, &narrow] {
            assert!(svg.contains("one document") && !svg.contains("without figures"));
            assert!(svg.contains("\nfirst\n") && svg.contains("\nsecond\n"), "{svg}");
            let hint = "second: published 4.02 times, simulated 1.50 (1.20 to 1.75), seen";
            assert_eq!(svg.matches(hint).count(), 2, "at the figure, and for the whole: {svg}");
            assert_eq!(svg.matches("<title>").count(), 3, "{svg}");
        }
        assert!(wide.contains(" width=\"560\"") && narrow.contains(" width=\"350\""));
        assert!(overview(&documents[1..]).unwrap().is_none());
    }
}
