//! Throughput and waits of simulated locks, against the number of threads.

use std::collections::BTreeMap;

use nearlock_sim::spec::MachineSpec;
use plotters::style::Color;

use super::marks::{self, Inside, Label, Shape};
use super::panel::{Axis, Frame, Panel, Y_LABELS};
use super::{Area, Head, MARGIN, PlotError, machine_line, picture, text_width};
use crate::reproduce::mean;
use crate::simulate::Simulated;

/// The figures of a lock.
struct Series<'a> {
    lock: &'a str,
    /// The rows by number of threads, one per seed.
    rows: BTreeMap<usize, Vec<&'a Simulated>>,
}

/// The contents of a panel.
struct Shown {
    heading: &'static str,
    y_name: &'static str,
    x_name: &'static str,
    figure: fn(&Simulated) -> f64,
    /// Whether the figures are times that differ by orders of magnitude.
    decades: bool,
    height: u32,
}

/// The panels from top to bottom.
const PANELS: [Shown; 3] = [
    Shown {
        heading: "Throughput of all threads together",
        y_name: "acquisitions per us",
        x_name: "",
        figure: |row| row.ops_per_us,
        decades: false,
        height: 310,
    },
    Shown {
        heading: "Wait for the lock, 99th percentile",
        y_name: "virtual time",
        x_name: "",
        figure: |row| row.wait_ns_p99 as f64,
        decades: true,
        height: 230,
    },
    Shown {
        heading: "Longest wait for the lock",
        y_name: "virtual time",
        x_name: "threads",
        figure: |row| row.wait_ns_max as f64,
        decades: true,
        height: 248,
    },
];

/// The minimum distance of two labels on the axis of threads, in doublings.
const TICK_ROOM: f64 = 0.3;
/// Space between the frame and the labels of the locks, and for their markers, in pixels.
const LABEL_LEFT: i32 = 26;
const LABEL_MARK: i32 = 20;

const WIDTH: u32 = 900;

/// Draws throughput, 99th percentile of the wait and longest wait of each lock against the number
/// of threads. It shows the mean over seeds, with their range shaded. `notes` are shown beneath the
/// title. `None` if there are no rows.
///
/// # Errors
///
/// If the picture cannot be laid out.
pub fn simulated(
    rows: &[Simulated],
    machine: &MachineSpec,
    notes: &[String],
) -> Result<Option<String>, PlotError> {
    let Some(first) = rows.first() else { return Ok(None) };
    let title = format!("SIMULATED: {} on {}", first.workload, first.machine);
    let all = series(rows);
    let seeds = all.iter().flat_map(|series| series.rows.values()).map(Vec::len).max().unwrap_or(1);
    let mut paragraphs = vec![machine_line(machine)];
    if seeds > 1 {
        paragraphs.push(format!("Lines: mean over {seeds} seeds. Shaded: from the least to the greatest."));
    }
    paragraphs.extend_from_slice(notes);
    let locks: Vec<_> = all.iter().map(|series| series.lock).collect();
    let instead = format!("{title}: throughput and waits of {}", locks.join(", "));
    let head = Head::new(title, &paragraphs, WIDTH);
    let height = head.height() + PANELS.iter().map(|panel| panel.height).sum::<u32>() + MARGIN as u32;
    let svg = picture((WIDTH, height), &instead, |area, _| {
        head.draw(area)?;
        let mut rest = area.split_vertically(head.height()).1;
        for shown in &PANELS {
            let (part, below) = rest.split_vertically(shown.height);
            panel(area, &part, shown, &all)?;
            rest = below;
        }
        Ok(())
    })?;
    Ok(Some(svg))
}

/// The locks in the order of their first rows.
fn series(rows: &[Simulated]) -> Vec<Series<'_>> {
    let mut all: Vec<Series> = Vec::new();
    for row in rows {
        let index = all.iter().position(|series| series.lock == row.lock).unwrap_or_else(|| {
            all.push(Series { lock: &row.lock, rows: BTreeMap::new() });
            all.len() - 1
        });
        all[index].rows.entry(row.threads).or_default().push(row);
    }
    all
}

/// Draws one panel.
fn panel(whole: &Area, part: &Area<'_>, shown: &Shown, all: &[Series]) -> Result<(), PlotError> {
    let rows = || all.iter().flat_map(|series| series.rows.values()).flatten();
    let threads: Vec<usize> = rows().map(|row| row.threads).collect();
    let figures = rows().map(|row| (shown.figure)(row));
    let y =
        if shown.decades { Axis::decades_ns(figures) } else { Axis::from_zero(figures.fold(0.0, f64::max)) };
    let names = all.iter().map(|series| text_width(series.lock));
    let frame = Frame {
        heading: shown.heading,
        x_name: shown.x_name,
        y_name: shown.y_name,
        y_labels: Y_LABELS,
        right: LABEL_LEFT + LABEL_MARK + names.max().unwrap_or(0) + MARGIN,
    };
    let panel = Panel::draw(part, &frame, Axis::threads(&threads, TICK_ROOM), y)?;
    let mut labels = Vec::new();
    for (index, series) in all.iter().enumerate() {
        let color = marks::color(index);
        let at = |of: fn(&[f64]) -> f64| -> Vec<(i32, i32)> {
            let figure =
                |rows: &Vec<&Simulated>| of(&rows.iter().map(|row| (shown.figure)(row)).collect::<Vec<_>>());
            series.rows.iter().map(|(&threads, rows)| panel.pixel(threads as f64, figure(rows))).collect()
        };
        let (low, high) = (
            at(|figures| figures.iter().copied().fold(f64::INFINITY, f64::min)),
            at(|figures| figures.iter().copied().fold(0.0, f64::max)),
        );
        let middle = at(mean);
        if low != high {
            marks::band(whole, &low, &high, color)?;
        }
        marks::line(whole, &middle, color.stroke_width(2))?;
        for &point in &middle {
            marks::marker(whole, point, Shape::of_series(index), Inside::Filled, color)?;
        }
        labels.extend(middle.last().map(|&end| Label { name: series.lock, series: index, end }));
    }
    marks::labels(whole, &labels, panel.across().1 + LABEL_LEFT, panel.down())
}
