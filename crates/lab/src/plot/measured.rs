//! Throughput of measured locks as a multiple of the baseline's, against the number of threads.
//! There is a panel for each combination of section length and think time.

use plotters::style::Color;

use super::marks::{self, Inside, LABEL_GAP, Label, Shape};
use super::panel::{self, Axis, Frame, Panel};
use super::{Area, Head, MARGIN, PlotError, picture, text_width};

/// The size of a panel in the whole picture, in pixels.
const PANEL: (u32, u32) = (330, 240);
/// The minimum distance of two labels on the axis of threads, in doublings.
const TICK_ROOM: f64 = 0.7;
/// Space between the frame and the labels of the locks, and for their markers, in pixels.
const LABEL_LEFT: i32 = 22;
const LABEL_MARK: i32 = 20;

/// The usual width of the picture of one panel, in pixels. A phone has this room, so letters are
/// not scaled down.
const ALONE_WIDTH: i32 = 358;
/// The range of the width between its axes, which wins over the width of the picture.
const ALONE_ACROSS: (i32, i32) = (130, 240);
/// Space for the labels of its y axis, and to the right of the labels of the locks.
const ALONE_Y_LABELS: i32 = 34;
const ALONE_RIGHT: i32 = 6;
/// The height of the parts above and below the axes.
const ALONE_AROUND: i32 = 68;
/// The minimum distance of two labels on its axis of threads, in pixels.
const ALONE_TICK_ROOM: f64 = 30.0;

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

/// Pictures of the measurements against a baseline.
#[derive(Debug)]
pub struct Comparison {
    /// The title.
    pub title: String,
    /// All panels in one picture, with the title.
    pub whole: String,
    /// The same panels as one picture each, with the names of the locks. A page can place as many
    /// of them side by side as it has room for.
    pub panels: Vec<String>,
}

/// Draws the measurements in these `situations`, which the title names: medians over the rounds,
/// with the quartiles shaded. `notes` are shown beneath the title of the whole. `None` if there are
/// no measurements.
///
/// # Errors
///
/// If the picture cannot be laid out.
pub fn measured(
    speeds: &[Speed],
    situations: &str,
    baseline: &str,
    notes: &[String],
) -> Result<Option<Comparison>, PlotError> {
    if speeds.is_empty() {
        return Ok(None);
    }
    let title = format!("MEASURED: {situations}, times as fast as {baseline}");
    let locks = distinct(speeds, |speed| speed.lock);
    let alone = |situation| {
        let shown: Vec<Speed> =
            speeds.iter().filter(|&speed| situation_of(speed) == situation).copied().collect();
        alone(&shown, situation, &locks, &title)
    };
    let panels = distinct(speeds, situation_of).into_iter().map(alone).collect::<Result<_, _>>()?;
    Ok(Some(Comparison { whole: whole(speeds, &locks, &title, notes)?, panels, title }))
}

/// The length of the sections and the think time, in ns.
fn situation_of(speed: &Speed) -> (u64, u64) {
    (speed.section_ns, speed.think_ns)
}

/// The heading of a panel.
fn heading((section, think): (u64, u64)) -> String {
    format!("section {section} ns, think {think} ns")
}

/// The width of the labels of the locks without their margin, in pixels.
fn labels_width(locks: &[&str]) -> i32 {
    LABEL_LEFT + LABEL_MARK + locks.iter().map(|lock| text_width(lock)).max().unwrap_or(0)
}

/// Draws all panels in one picture.
fn whole(speeds: &[Speed], locks: &[&str], title: &str, notes: &[String]) -> Result<String, PlotError> {
    let (sections, thinks) =
        (distinct(speeds, |speed| speed.section_ns), distinct(speeds, |speed| speed.think_ns));
    let side = (labels_width(locks) + MARGIN) as u32;
    let width = PANEL.0 * thinks.len() as u32 + side;
    let instead = format!("{title}: {} locks against the number of threads", locks.len());
    let head = Head::new(title.to_owned(), notes, width);
    let height = head.height() + PANEL.1 * sections.len() as u32 + MARGIN as u32;
    picture((width, height), &instead, |area, _| {
        head.draw(area)?;
        let mut rest = area.split_vertically(head.height()).1;
        for &section in &sections {
            let (line, below) = rest.split_vertically(PANEL.1);
            let mut line = line;
            for (index, &think) in thinks.iter().enumerate() {
                let is_last = index + 1 == thinks.len();
                let (part, beside) = line.split_horizontally(PANEL.0 + if is_last { side } else { 0 });
                let situation = (section, think);
                let shown: Vec<Speed> =
                    speeds.iter().filter(|&speed| situation_of(speed) == situation).copied().collect();
                let right = if is_last { side as i32 } else { MARGIN };
                let frame = Frame {
                    heading: &heading(situation),
                    x_name: "",
                    y_name: "",
                    y_labels: panel::Y_LABELS,
                    right,
                };
                let labelled = panel(area, &part, &frame, &shown, locks, TICK_ROOM)?;
                if let Some((labels, x, within)) = labelled.filter(|_| is_last) {
                    marks::labels(area, &labels, x, within)?;
                }
                line = beside;
            }
            rest = below;
        }
        Ok(())
    })
}

/// Draws one panel in a picture of its own.
fn alone(speeds: &[Speed], situation: (u64, u64), locks: &[&str], title: &str) -> Result<String, PlotError> {
    let right = labels_width(locks) + ALONE_RIGHT;
    let around = panel::EDGE + ALONE_Y_LABELS + right;
    let across = (ALONE_WIDTH - around).clamp(ALONE_ACROSS.0, ALONE_ACROSS.1);
    let height = (ALONE_AROUND + LABEL_GAP * locks.len() as i32).max(PANEL.1 as i32);
    let threads = speeds.iter().map(|speed| speed.threads);
    let (least, most) = (threads.clone().min().unwrap_or(1), threads.max().unwrap_or(1));
    let doublings = (most as f64 / least as f64).log2();
    let tick_room = (ALONE_TICK_ROOM * doublings / f64::from(across)).max(TICK_ROOM);
    let heading = heading(situation);
    let at_most: Vec<String> = speeds
        .iter()
        .filter(|speed| speed.threads == most)
        .map(|speed| format!("{} {:.2}", speed.lock, speed.ratio))
        .collect();
    let instead = format!("{title}, {heading}. With {most} threads: {}", at_most.join(", "));
    let size = ((around + across) as u32, height as u32);
    picture(size, &instead, |area, _| {
        let frame =
            Frame { heading: &heading, x_name: "threads", y_name: "", y_labels: ALONE_Y_LABELS, right };
        if let Some((labels, x, within)) = panel(area, area, &frame, speeds, locks, tick_room)? {
            marks::labels(area, &labels, x, within)?;
        }
        Ok(())
    })
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

/// Draws a panel into `part` of the whole. `tick_room` is the minimum distance of two labels on the
/// axis of threads, in doublings.
fn panel<'a>(
    whole: &Area,
    part: &Area<'_>,
    frame: &Frame,
    speeds: &[Speed],
    locks: &[&'a str],
    tick_room: f64,
) -> Result<Option<Labelled<'a>>, PlotError> {
    let threads: Vec<usize> = speeds.iter().map(|speed| speed.threads).collect();
    if threads.is_empty() {
        return Ok(None);
    }
    let most = speeds.iter().map(|speed| speed.quartiles.1).fold(1.0, f64::max);
    let panel = Panel::draw(part, frame, Axis::threads(&threads, tick_room), Axis::from_zero(most))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Two situations with two numbers of threads.
    fn speeds(locks: &[&'static str]) -> Vec<Speed> {
        let speed = |lock, (think_ns, threads)| Speed {
            lock,
            threads,
            section_ns: 100,
            think_ns,
            ratio: 1.25,
            quartiles: (1.0, 1.5),
        };
        let points = [(0, 1), (0, 256), (500, 1), (500, 256)];
        locks.iter().flat_map(|&lock| points.map(|point| speed(lock, point))).collect()
    }

    fn draw(locks: &[&'static str]) -> Comparison {
        measured(&speeds(locks), "free", "std", &[]).unwrap().expect("there are measurements")
    }

    /// An attribute of the picture.
    fn attribute(svg: &str, name: &str) -> i32 {
        let (_, value) = svg.split_once(&format!(" {name}=\"")).unwrap();
        value.split_once('"').unwrap().0.parse().unwrap()
    }

    #[test]
    fn a_situation_has_a_picture_with_the_labels_of_its_locks() {
        let Comparison { title, whole, panels } = draw(&["near-mutex", "std"]);
        assert_eq!(title, "MEASURED: free, times as fast as std");
        assert_eq!(panels.len(), 2);
        for (panel, heading) in
            panels.iter().zip(["section 100 ns, think 0 ns", "section 100 ns, think 500 ns"])
        {
            let instead =
                format!("<title>{title}, {heading}. With 256 threads: near-mutex 1.25, std 1.25</title>");
            assert!(panel.contains(&instead), "{panel}");
            for text in [heading, "near-mutex", "std", "threads", "1", "256"] {
                assert!(panel.contains(&format!("\n{text}\n")), "{text}: {panel}");
            }
            assert!(whole.contains(heading) && !panel.contains(&format!("\n{title}\n")));
        }
        assert!(measured(&[], "free", "std", &[]).unwrap().is_none());
    }

    #[test]
    fn a_picture_of_one_situation_suits_a_phone() {
        for locks in [&["std"][..], &["std", "parking-lot-0.13"], &["rwsem-xadd-preread-spin-queued"]] {
            for panel in draw(locks).panels {
                let width = attribute(&panel, "width");
                assert!((300..=430).contains(&width), "{locks:?}: {width}");
            }
        }
        let height = |locks: &[&'static str]| attribute(&draw(locks).panels[0], "height");
        assert_eq!(height(&["std"; 2]), PANEL.1 as i32);
        let many = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"];
        assert!(height(&many) > many.len() as i32 * LABEL_GAP, "the labels have room");
    }
}
