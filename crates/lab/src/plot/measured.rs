//! Throughput of measured locks as a multiple of a baseline's, against the number of threads: a panel for each length of
//! sections and of thinking.

use plotters::style::Color;

use super::marks::{self, Inside, Label, Shape};
use super::panel::{Axis, Frame, Panel};
use super::{Area, Head, MARGIN, PlotError, picture, text_width};
use crate::bench::{Mode, Row};

const PANEL: (u32, u32) = (330, 240);
/// Doublings between two labels of the axis of threads.
const TICK_ROOM: f64 = 0.7;
/// Room between the frame and the labels of the locks, and for their markers, in pixels.
const LABEL_LEFT: i32 = 22;
const LABEL_MARK: i32 = 20;

/// Draws the situations of these modes: medians over the rounds, with the quartiles shaded. `notes` stand beneath the title. `None` if
/// there are none.
///
/// # Errors
///
/// If the picture cannot be laid out.
pub fn measured(
    rows: &[Row],
    modes: &[Mode],
    baseline: &str,
    notes: &[String],
) -> Result<Option<String>, PlotError> {
    let shown = |row: &&Row| {
        row.summary.is_none() && row.baseline == baseline && modes.iter().any(|mode| mode.name() == row.mode)
    };
    let rows: Vec<&Row> = rows.iter().filter(shown).collect();
    if rows.is_empty() {
        return Ok(None);
    }
    let (sections, thinks) = (distinct(&rows, |row| row.section_ns), distinct(&rows, |row| row.think_ns));
    let locks = distinct(&rows, |row| Some(row.lock));
    let names = locks.iter().map(|lock| text_width(lock)).max().unwrap_or(0);
    let side = (LABEL_LEFT + LABEL_MARK + names + MARGIN) as u32;
    let width = PANEL.0 * thinks.len() as u32 + side;
    let title = format!("MEASURED: {}, times as fast as {baseline}", joined(modes));
    let instead = format!("{title}: {} locks against the number of threads", locks.len());
    let head = Head::new(title, notes, width);
    let height = head.height() + PANEL.1 * sections.len() as u32 + MARGIN as u32;
    let svg = picture((width, height), &instead, |area, _| {
        head.draw(area)?;
        let mut rest = area.split_vertically(head.height()).1;
        for &section in &sections {
            let (line, below) = rest.split_vertically(PANEL.1);
            let mut line = line;
            for (index, &think) in thinks.iter().enumerate() {
                let is_last = index + 1 == thinks.len();
                let (part, beside) = line.split_horizontally(PANEL.0 + if is_last { side } else { 0 });
                let of_panel = |row: &&&Row| (row.section_ns, row.think_ns) == (Some(section), Some(think));
                let rows: Vec<&Row> = rows.iter().filter(of_panel).copied().collect();
                let heading = format!("section {section} ns, think {think} ns");
                let right = if is_last { side as i32 } else { MARGIN };
                let labelled = panel(
                    area,
                    &part,
                    &Frame { heading: &heading, x_name: "", y_name: "", right },
                    &rows,
                    &locks,
                )?;
                if let Some((labels, x, within)) = labelled.filter(|_| is_last) {
                    marks::labels(area, &labels, x, within)?;
                }
                line = beside;
            }
            rest = below;
        }
        Ok(())
    })?;
    Ok(Some(svg))
}

fn joined(modes: &[Mode]) -> String {
    modes.iter().map(|mode| mode.name()).collect::<Vec<_>>().join(" and ")
}

/// The values, each once, in the order of their rows.
fn distinct<T: PartialEq>(rows: &[&Row], of: impl Fn(&Row) -> Option<T>) -> Vec<T> {
    let mut values = Vec::new();
    for value in rows.iter().filter_map(|row| of(row)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// Where its lines end, where their labels may begin, and between which heights.
type Labelled<'a> = (Vec<Label<'a>>, i32, (i32, i32));

fn panel<'a>(
    whole: &Area,
    part: &Area<'_>,
    frame: &Frame,
    rows: &[&Row],
    locks: &[&'a str],
) -> Result<Option<Labelled<'a>>, PlotError> {
    let threads: Vec<usize> = rows.iter().filter_map(|row| row.threads).collect();
    if threads.is_empty() {
        return Ok(None);
    }
    let most = rows.iter().filter_map(|row| row.ratio_high_quartile).fold(1.0, f64::max);
    let panel = Panel::draw(part, frame, Axis::threads(&threads, TICK_ROOM), Axis::from_zero(most))?;
    let mut labels = Vec::new();
    for (index, &lock) in locks.iter().enumerate() {
        let mut of_lock: Vec<&Row> = rows.iter().copied().filter(|row| row.lock == lock).collect();
        of_lock.sort_by_key(|row| row.threads);
        let at = |of: fn(&Row) -> Option<f64>| -> Vec<(i32, i32)> {
            let point = |row: &&Row| Some(panel.pixel(row.threads? as f64, of(row)?));
            of_lock.iter().filter_map(point).collect()
        };
        let color = marks::color(index);
        let (low, high) = (at(|row| row.ratio_low_quartile), at(|row| row.ratio_high_quartile));
        if low != high {
            marks::band(whole, &low, &high, color)?;
        }
        let middle = at(|row| row.ratio);
        marks::line(whole, &middle, color.stroke_width(2))?;
        for &point in &middle {
            marks::marker(whole, point, Shape::of_series(index), Inside::Filled, color)?;
        }
        labels.extend(middle.last().map(|&end| Label { name: lock, series: index, end }));
    }
    Ok(Some((labels, panel.across().1 + LABEL_LEFT, panel.down())))
}
