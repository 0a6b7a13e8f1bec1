//! Throughput of measured locks as a multiple of the baseline's, against the number of threads.
//! There is a panel for each combination of section length and think time.

use plotters::style::Color;

use super::marks::{self, Inside, Label, Shape};
use super::panel::{Axis, Frame, Panel};
use super::{Area, Head, MARGIN, PlotError, picture, text_width};

const PANEL: (u32, u32) = (330, 240);
/// The minimum distance of two labels on the axis of threads, in doublings.
const TICK_ROOM: f64 = 0.7;
/// Space between the frame and the labels of the locks, and for their markers, in pixels.
const LABEL_LEFT: i32 = 22;
const LABEL_MARK: i32 = 20;

/// The speed of a lock in one situation, as a multiple of the baseline.
#[derive(Clone, Copy, Debug)]
pub struct Speed {
    /// The name of the lock.
    pub lock: &'static str,
    /// The number of threads.
    pub threads: usize,
    /// The length of their sections, in ns.
    pub section_ns: u64,
    /// The think time between sections, in ns.
    pub think_ns: u64,
    /// Median over the rounds.
    pub ratio: f64,
    /// The lower and the upper quartile of the ratio.
    pub quartiles: (f64, f64),
}

/// Draws the measurements in these modes: medians over the rounds, with the quartiles shaded.
/// `notes` are shown beneath the title. `None` if there are no measurements.
///
/// # Errors
///
/// If the picture cannot be laid out.
pub fn measured(
    speeds: &[Speed],
    modes: &[&str],
    baseline: &str,
    notes: &[String],
) -> Result<Option<String>, PlotError> {
    if speeds.is_empty() {
        return Ok(None);
    }
    let (sections, thinks) =
        (distinct(speeds, |speed| speed.section_ns), distinct(speeds, |speed| speed.think_ns));
    let locks = distinct(speeds, |speed| speed.lock);
    let names = locks.iter().map(|lock| text_width(lock)).max().unwrap_or(0);
    let side = (LABEL_LEFT + LABEL_MARK + names + MARGIN) as u32;
    let width = PANEL.0 * thinks.len() as u32 + side;
    let title = format!("MEASURED: {}, times as fast as {baseline}", modes.join(" and "));
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
                let of_panel = |speed: &&Speed| (speed.section_ns, speed.think_ns) == (section, think);
                let shown: Vec<Speed> = speeds.iter().filter(of_panel).copied().collect();
                let heading = format!("section {section} ns, think {think} ns");
                let right = if is_last { side as i32 } else { MARGIN };
                let labelled = panel(
                    area,
                    &part,
                    &Frame { heading: &heading, x_name: "", y_name: "", right },
                    &shown,
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

/// The distinct values, in the order of their first occurrence.
fn distinct<T: PartialEq>(speeds: &[Speed], of: impl Fn(&Speed) -> T) -> Vec<T> {
    let mut values = Vec::new();
    for value in speeds.iter().map(of) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// The labels of the lines, where they may begin, and the range of their heights.
type Labelled<'a> = (Vec<Label<'a>>, i32, (i32, i32));

fn panel<'a>(
    whole: &Area,
    part: &Area<'_>,
    frame: &Frame,
    speeds: &[Speed],
    locks: &[&'a str],
) -> Result<Option<Labelled<'a>>, PlotError> {
    let threads: Vec<usize> = speeds.iter().map(|speed| speed.threads).collect();
    if threads.is_empty() {
        return Ok(None);
    }
    let most = speeds.iter().map(|speed| speed.quartiles.1).fold(1.0, f64::max);
    let panel = Panel::draw(part, frame, Axis::threads(&threads, TICK_ROOM), Axis::from_zero(most))?;
    let mut labels = Vec::new();
    for (index, &lock) in locks.iter().enumerate() {
        let mut of_lock: Vec<&Speed> = speeds.iter().filter(|speed| speed.lock == lock).collect();
        of_lock.sort_by_key(|speed| speed.threads);
        let at = |of: fn(&Speed) -> f64| -> Vec<(i32, i32)> {
            of_lock.iter().map(|speed| panel.pixel(speed.threads as f64, of(speed))).collect()
        };
        let color = marks::color(index);
        let (low, high) = (at(|speed| speed.quartiles.0), at(|speed| speed.quartiles.1));
        if low != high {
            marks::band(whole, &low, &high, color)?;
        }
        let middle = at(|speed| speed.ratio);
        marks::line(whole, &middle, color.stroke_width(2))?;
        for &point in &middle {
            marks::marker(whole, point, Shape::of_series(index), Inside::Filled, color)?;
        }
        labels.extend(middle.last().map(|&end| Label { name: lock, series: index, end }));
    }
    Ok(Some((labels, panel.across().1 + LABEL_LEFT, panel.down())))
}
