//! A frame with its axes, and the scales of the axes.

use std::ops::Range;

use plotters::chart::{ChartBuilder, ChartContext, LabelAreaPosition};
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::SVGBackend;
use plotters::style::TRANSPARENT;

use super::{Area, DARK, GREY, PALE, PlotError, Size, letters};

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Linear,
    /// Logarithmic: each doubling takes the same space.
    Log,
}

/// An axis: its limits, its ticks and their labels, in the units of the values.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    ticks: Vec<f64>,
    label: fn(f64) -> String,
}

/// The maximum number of ticks on a linear axis.
const TICKS_MAX: f64 = 6.0;

impl Axis {
    /// An axis from zero to beyond `high`, with round ticks.
    pub(super) fn from_zero(high: f64) -> Self {
        Self::between(0.0, high)
    }

    /// An axis from zero, or from below `low` if that is negative, to beyond `high`, with round
    /// ticks.
    pub(super) fn between(low: f64, high: f64) -> Self {
        let high = if high > low && high.is_finite() { high * 1.04 } else { 1.0 };
        let low = if low < 0.0 && low.is_finite() { low * 1.04 } else { 0.0 };
        let span = high - low;
        let magnitude = 10_f64.powf((span / TICKS_MAX).log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * magnitude);
        let step = steps.into_iter().find(|step| span / step <= TICKS_MAX).unwrap_or(steps[3]);
        let first = (low / step).ceil() as i32;
        let ticks = (first..).map(|n| f64::from(n) * step).take_while(|&tick| tick <= high).collect();
        Self { scale: Scale::Linear, low, high, ticks, label: short }
    }

    /// An axis for `lines` lines, of which the first is 0, without ticks.
    pub(super) fn lines(lines: usize) -> Self {
        let high = lines as f64 - 0.5;
        Self { scale: Scale::Linear, low: -0.5, high, ticks: vec![], label: |_| String::new() }
    }

    /// An axis for numbers of threads, with the same distance for each doubling. Ticks are the
    /// numbers that leave `room` for their labels, in doublings.
    pub(super) fn threads(numbers: &[usize], room: f64) -> Self {
        let mut numbers: Vec<f64> = numbers.iter().map(|&number| number as f64).collect();
        numbers.sort_by(f64::total_cmp);
        let (low, high) = (numbers.first().copied().unwrap_or(1.0), numbers.last().copied().unwrap_or(1.0));
        let far = |a: f64, b: f64| (b / a).log2() >= room;
        let mut ticks = vec![low];
        for &number in &numbers {
            if far(ticks[ticks.len() - 1], number) && (far(number, high) || number == high) {
                ticks.push(number);
            }
        }
        let margin = if high > low { (high / low).powf(0.035) } else { 2.0 };
        let (low, high) = (low / margin, high * margin);
        Self { scale: Scale::Log, low, high, ticks, label: |value| format!("{value}") }
    }

    /// An axis for multiples, which includes all figures and 1.
    pub(super) fn times(figures: impl Iterator<Item = f64> + Clone) -> Self {
        let low = figures.clone().fold(1.0, f64::min).max(0.1) / 1.08;
        let high = figures.fold(1.0, f64::max).min(100.0) * 1.08;
        let round = [0.1, 0.2, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 20.0, 50.0, 100.0];
        let ticks = round.into_iter().filter(|tick| (low..=high).contains(tick)).collect();
        Self { scale: Scale::Log, low, high, ticks, label: |value| format!("{value}x") }
    }

    /// An axis for times in ns, with the decades that include all times.
    pub(super) fn decades_ns(times: impl Iterator<Item = f64> + Clone) -> Self {
        let low = times.clone().fold(f64::INFINITY, f64::min).clamp(1.0, 1e12);
        let high = times.fold(low, f64::max);
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let ticks: Vec<f64> = (first..=last.max(first + 1)).map(|power| 10_f64.powi(power)).collect();
        let (low, high) = (ticks[0] / 1.15, ticks[ticks.len() - 1] * 1.15);
        Self { scale: Scale::Log, low, high, ticks, label: time }
    }

    /// The position of a value on the axis: 0 at its beginning, 1 at its end. A value below the
    /// axis, such as zero on a logarithmic axis, is at the beginning.
    fn share(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
        };
        share.clamp(0.0, 1.0)
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, &value: &f64, (first, last): (i32, i32)) -> i32 {
        first + (f64::from(last - first) * self.share(value)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, &value: &f64) -> String {
        (self.label)(value)
    }
}

/// A short form of a number. Large numbers are in thousands.
fn short(value: f64) -> String {
    if value.abs() >= 10_000.0 { format!("{}k", round(value / 1000.0)) } else { format!("{}", round(value)) }
}

/// Removes the rounding errors of binary fractions.
fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// A time in a unit that makes its number short.
fn time(ns: f64) -> String {
    let (unit_ns, unit) = [(1e9, "s"), (1e6, "ms"), (1e3, "us")]
        .into_iter()
        .find(|&(unit_ns, _)| ns >= unit_ns)
        .unwrap_or((1.0, "ns"));
    format!("{} {unit}", round(ns / unit_ns))
}

/// The parts around a panel.
pub(super) struct Frame<'a> {
    /// The heading above the panel.
    pub(super) heading: &'a str,
    /// The name of the x axis, or empty.
    pub(super) x_name: &'a str,
    /// The name of the y axis, or empty.
    pub(super) y_name: &'a str,
    /// Space for the labels of the y axis, in pixels.
    pub(super) y_labels: i32,
    /// Space to the right of the panel, in pixels.
    pub(super) right: i32,
}

/// Space for a panel's heading, in pixels.
pub(super) const HEADING: i32 = 26;
/// Space for the labels of the x axis, and for the name of the axis.
const X_LABELS: i32 = 24;
const X_NAME: i32 = 18;
/// Usual space for the labels of the y axis, and space for the name of the axis.
pub(super) const Y_LABELS: i32 = 50;
const Y_NAME: i32 = 22;

/// Space to the left of a vertical name, for half of its letters' height.
pub(super) const EDGE: i32 = 8;

/// A frame that has been drawn.
pub(super) struct Panel<'a>(ChartContext<'a, SVGBackend<'a>, Cartesian2d<Axis, Axis>>);

impl<'a> Panel<'a> {
    /// Draws a frame that fills this area.
    pub(super) fn draw(area: &Area<'a>, frame: &Frame, x: Axis, y: Axis) -> Result<Self, PlotError> {
        let room = |room: i32, extra: i32, name: &str| room + if name.is_empty() { 0 } else { extra };
        let (left, below) =
            (room(frame.y_labels, Y_NAME, frame.y_name), room(X_LABELS, X_NAME, frame.x_name));
        area.draw_text(frame.heading, &letters(Size::Heading, DARK), (EDGE + left, HEADING / 2))?;
        let mut chart = ChartBuilder::on(area)
            .margin_top(HEADING)
            .margin_left(EDGE)
            .margin_right(frame.right)
            .set_label_area_size(LabelAreaPosition::Left, left)
            .set_label_area_size(LabelAreaPosition::Bottom, below)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(PALE)
            .axis_style(GREY)
            .label_style(letters(Size::Body, DARK))
            .axis_desc_style(letters(Size::Body, DARK))
            .x_desc(frame.x_name)
            .y_desc(frame.y_name)
            .draw()?;
        Ok(Self(chart))
    }

    /// The position of values, in pixels of the whole picture.
    pub(super) fn pixel(&self, x: f64, y: f64) -> (i32, i32) {
        self.0.backend_coord(&(x, y))
    }

    /// The left and the right end, in pixels of the whole picture.
    pub(super) fn across(&self) -> (i32, i32) {
        let ends = self.0.plotting_area().get_x_axis_pixel_range();
        (ends.start, ends.end)
    }

    /// The upper and the lower end, in pixels of the whole picture.
    pub(super) fn down(&self) -> (i32, i32) {
        let ends = self.0.plotting_area().get_y_axis_pixel_range();
        (ends.start.min(ends.end), ends.start.max(ends.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_ticks_are_round_and_few() {
        for (high, ticks) in [
            (11.7, "0 5 10"),
            (6.5, "0 2 4 6"),
            (0.31, "0 0.1 0.2 0.3"),
            (480.0, "0 100 200 300 400"),
            (198_000.0, "0 50k 100k 150k 200k"),
            (0.0, "0 0.2 0.4 0.6 0.8 1"),
            (f64::NAN, "0 0.2 0.4 0.6 0.8 1"),
        ] {
            let axis = Axis::from_zero(high);
            let labels: Vec<_> = axis.ticks.iter().map(|tick| axis.format_ext(tick)).collect();
            assert_eq!(labels.join(" "), ticks, "{high}");
            assert!(high.is_nan() || axis.high >= high);
        }
    }

    #[test]
    fn an_axis_reaches_below_zero_where_it_must() {
        let axis = Axis::between(-8.0, 20.0);
        let labels: Vec<_> = axis.ticks.iter().map(|tick| axis.format_ext(tick)).collect();
        assert_eq!(labels.join(" "), "-5 0 5 10 15 20");
        let lines = Axis::lines(3);
        assert_eq!([0.0, 1.0, 2.0].map(|line| lines.map(&line, (0, 300))), [50, 150, 250]);
    }

    #[test]
    fn numbers_of_threads_are_labelled_where_there_is_room() {
        let axis = Axis::threads(&[142, 1, 2, 4, 8, 16, 32, 36, 72, 144], 0.4);
        assert_eq!(axis.ticks, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 72.0, 144.0]);
        let doubling = |number: f64| axis.map(&(2.0 * number), (0, 1000)) - axis.map(&number, (0, 1000));
        assert!(doubling(2.0).abs_diff(doubling(32.0)) <= 1, "except for rounding");
        let alone = Axis::threads(&[36], 0.4);
        assert_eq!(alone.ticks, [36.0]);
        assert!(alone.low < 36.0 && 36.0 < alone.high);
    }

    #[test]
    fn times_have_their_one_and_round_ticks() {
        let ticks = |figures: &[f64]| Axis::times(figures.iter().copied()).ticks;
        assert_eq!(ticks(&[0.83, 4.3]), [1.0, 1.5, 2.0, 3.0, 4.0]);
        assert_eq!(ticks(&[1.2]), [1.0]);
        assert_eq!(ticks(&[0.0]), [0.1, 0.2, 0.5, 0.7, 1.0], "what is beyond reason lies at the end");
    }

    #[test]
    fn waits_lie_between_decades() {
        let labels = |times: &[f64]| {
            let axis = Axis::decades_ns(times.iter().copied());
            axis.ticks.iter().map(|&tick| (axis.label)(tick)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(labels(&[30.0, 12_000_000.0]), "10 ns 100 ns 1 us 10 us 100 us 1 ms 10 ms 100 ms");
        assert_eq!(labels(&[0.0]), "1 ns 10 ns");
        assert_eq!(labels(&[]).matches(" s").count(), 2, "any will do");
        let axis = Axis::decades_ns([50.0].into_iter());
        assert_eq!(axis.map(&0.0, (500, 20)), 500, "no logarithm of zero");
    }
}
