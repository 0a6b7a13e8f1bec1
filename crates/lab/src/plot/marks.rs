//! Colours, markers and labels.

use plotters::element::{Circle, PathElement, Polygon};
use plotters::style::{Color, RGBColor, ShapeStyle, WHITE};

use super::{Area, DARK, GREY, PlotError, Size, letters};

/// Colours that colour-blind readers can distinguish: those of Okabe and Ito without yellow, which
/// is too pale on white, and two of Tol's muted scheme.
const COLORS: [RGBColor; 9] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x00, 0x00, 0x00),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x88, 0x22, 0x55),
    RGBColor(0x99, 0x99, 0x33),
];

/// The colour of the series with this index.
pub(super) fn color(series: usize) -> RGBColor {
    COLORS[series % COLORS.len()]
}

/// The shape of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Circle,
    Square,
    Triangle,
    Diamond,
    Inverted,
    Cross,
    Plus,
    Pentagon,
}

impl Shape {
    const ALL: [Shape; 8] = [
        Shape::Circle,
        Shape::Square,
        Shape::Triangle,
        Shape::Diamond,
        Shape::Inverted,
        Shape::Cross,
        Shape::Plus,
        Shape::Pentagon,
    ];

    /// The shape of the series with this index. There is one shape less than there are colours, so
    /// that combinations repeat late.
    pub(super) fn of_series(series: usize) -> Shape {
        Self::ALL[series % Self::ALL.len()]
    }

    /// The corners relative to the centre, for shapes that have corners.
    fn corners(self) -> &'static [(i32, i32)] {
        match self {
            Shape::Square => &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
            Shape::Triangle => &[(0, -5), (5, 4), (-5, 4)],
            Shape::Diamond => &[(0, -6), (6, 0), (0, 6), (-6, 0)],
            Shape::Inverted => &[(0, 5), (5, -4), (-5, -4)],
            Shape::Pentagon => &[(0, -5), (5, -1), (3, 5), (-3, 5), (-5, -1)],
            Shape::Circle | Shape::Cross | Shape::Plus => &[],
        }
    }
}

/// The inside of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inside {
    Filled,
    Hollow,
}

const RADIUS: i32 = 4;

/// Draws a marker.
pub(super) fn marker(
    area: &Area,
    at: (i32, i32),
    shape: Shape,
    inside: Inside,
    color: RGBColor,
) -> Result<(), PlotError> {
    let moved = |corner: &(i32, i32)| (at.0 + corner.0, at.1 + corner.1);
    let fill = if inside == Inside::Filled { color } else { WHITE };
    let stroke = color.stroke_width(2);
    match shape {
        Shape::Circle => {
            area.draw(&Circle::new(at, RADIUS, fill.filled()))?;
            area.draw(&Circle::new(at, RADIUS, stroke))?;
        }
        Shape::Cross => {
            line(area, &[moved(&(-4, -4)), moved(&(4, 4))], stroke)?;
            line(area, &[moved(&(-4, 4)), moved(&(4, -4))], stroke)?;
        }
        Shape::Plus => {
            line(area, &[moved(&(-5, 0)), moved(&(5, 0))], stroke)?;
            line(area, &[moved(&(0, -5)), moved(&(0, 5))], stroke)?;
        }
        _ => {
            let corners: Vec<_> = shape.corners().iter().map(moved).collect();
            area.draw(&Polygon::new(corners.clone(), fill.filled()))?;
            let closed: Vec<_> = corners.iter().chain(&corners[..2]).copied().collect();
            line(area, &closed, stroke)?;
        }
    }
    Ok(())
}

/// Draws a dot, smaller than any marker.
pub(super) fn dot(area: &Area, at: (i32, i32), color: RGBColor) -> Result<(), PlotError> {
    // A white ring makes the dot visible on a marker.
    area.draw(&Circle::new(at, RADIUS, WHITE.filled()))?;
    Ok(area.draw(&Circle::new(at, RADIUS - 1, color.filled()))?)
}

/// Draws a line through points.
pub(super) fn line(
    area: &Area,
    points: &[(i32, i32)],
    style: impl Into<ShapeStyle>,
) -> Result<(), PlotError> {
    Ok(area.draw(&PathElement::new(points.to_vec(), style))?)
}

/// Shades the area between two lines.
pub(super) fn band(
    area: &Area,
    low: &[(i32, i32)],
    high: &[(i32, i32)],
    color: RGBColor,
) -> Result<(), PlotError> {
    let around: Vec<_> = low.iter().chain(high.iter().rev()).copied().collect();
    area.draw(&Polygon::new(around, color.mix(0.18)))?;
    line(area, low, color.stroke_width(1))?;
    line(area, high, color.stroke_width(1))
}

/// Draws a horizontal bar with ends, to be placed behind a marker.
pub(super) fn span(area: &Area, from: (i32, i32), to: (i32, i32), color: RGBColor) -> Result<(), PlotError> {
    line(area, &[from, to], color.mix(0.35).stroke_width(7))?;
    for (x, y) in [from, to] {
        line(area, &[(x, y - 5), (x, y + 5)], color.stroke_width(2))?;
    }
    Ok(())
}

/// Draws a vertical bar with ends, between two heights.
pub(super) fn bar(area: &Area, x: i32, y: (i32, i32), color: RGBColor) -> Result<(), PlotError> {
    for points in [[(x, y.0), (x, y.1)], [(x - 3, y.0), (x + 3, y.0)], [(x - 3, y.1), (x + 3, y.1)]] {
        line(area, &points, color.stroke_width(1))?;
    }
    Ok(())
}

/// The name of a series next to its last point.
pub(super) struct Label<'a> {
    pub(super) name: &'a str,
    pub(super) series: usize,
    pub(super) end: (i32, i32),
}

/// The minimum distance of two labels, in pixels.
pub(super) const LABEL_GAP: i32 = 15;

/// Writes labels at `x`, between the heights `within`. Each label is as near to the end of its line
/// as possible, and is connected to it by a thin line.
pub(super) fn labels(area: &Area, labels: &[Label], x: i32, within: (i32, i32)) -> Result<(), PlotError> {
    let wanted: Vec<i32> = labels.iter().map(|label| label.end.1).collect();
    for (label, y) in labels.iter().zip(spread(&wanted, LABEL_GAP, within)) {
        line(area, &[label.end, (x - 4, y), (x + 2, y)], GREY.mix(0.5).stroke_width(1))?;
        marker(area, (x + 9, y), Shape::of_series(label.series), Inside::Filled, color(label.series))?;
        area.draw_text(label.name, &letters(Size::Body, DARK), (x + 19, y))?;
    }
    Ok(())
}

/// Moves heights apart by at least `gap`, within the limits if there is room. Heights that are too
/// close are moved together, so that their mean is preserved.
fn spread(wanted: &[i32], gap: i32, within: (i32, i32)) -> Vec<i32> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&index| wanted[index]);
    // Runs of labels at the minimum distance. Each run has the number of its labels, and the sum of
    // the heights that they want for the first of them.
    let mut runs: Vec<(i32, i32)> = Vec::new();
    for &index in &order {
        runs.push((1, wanted[index]));
        while let [.., (before, first), (count, next)] = runs[..]
            && next / count < first / before + before * gap
        {
            runs.pop();
            runs.pop();
            runs.push((before + count, first + next - count * before * gap));
        }
    }
    let mut placed = vec![0; wanted.len()];
    let mut order = order.into_iter();
    let mut free = within.0;
    for (index, &(count, sum)) in runs.iter().enumerate() {
        let below: i32 = runs[index..].iter().map(|(count, _)| count * gap).sum();
        let top = (sum / count).min(within.1 - below + gap).max(free);
        for (turn, label) in order.by_ref().take(count as usize).enumerate() {
            placed[label] = top + turn as i32 * gap;
        }
        free = top + count * gap;
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_moved_apart_and_stay_near() {
        assert_eq!(spread(&[100, 40], 15, (0, 200)), [100, 40], "nothing is in the way");
        assert_eq!(spread(&[50, 50], 20, (0, 200)), [40, 60], "alike");
        assert_eq!(spread(&[55, 50, 52], 10, (0, 200)), [62, 42, 52]);
        assert_eq!(spread(&[1, 2], 10, (0, 200)), [0, 10], "not above the frame");
        assert_eq!(spread(&[199, 198], 10, (0, 200)), [200, 190], "nor below it");
        let crowd = spread(&[7; 9], 15, (0, 100));
        assert!(crowd.windows(2).all(|pair| pair[1] - pair[0] == 15) && crowd[0] == 0, "{crowd:?}");
        assert!(spread(&[], 15, (0, 100)).is_empty());
    }

    #[test]
    fn a_series_is_told_from_many_others() {
        let mut looks: Vec<_> = (0..COLORS.len() * Shape::ALL.len())
            .map(|n| (color(n).0, color(n).1, color(n).2, Shape::of_series(n) as u8))
            .collect();
        looks.sort_unstable();
        looks.dedup();
        assert_eq!(looks.len(), COLORS.len() * Shape::ALL.len());
    }
}
