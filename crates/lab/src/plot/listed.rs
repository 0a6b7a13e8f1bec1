//! A published table beside its simulation, for tables whose rows are not numbers of threads: a
//! line for each row, and a panel for each variant.

use std::ops::Range;

use plotters::style::Color;

use super::marks;
use super::panel::{Axis, Frame, Panel, Y_LABELS};
use super::reproduced::{On, hint, look, published};
use super::{Area, DARK, GREY, LINE, MARGIN, PlotError, Size, letters, text_width};
use crate::published::{RowKey, Table};
use crate::reproduce::Cell;

/// Width of a variant's panel, and height of the parts above and below its rows, in pixels.
const PANEL_WIDTH: u32 = 260;
const AROUND: u32 = 68;

/// The size of the panels, in pixels.
pub(super) fn size(table: &Table, cells: &[Cell]) -> (u32, u32) {
    size_of(cells, table.variants.len())
}

/// The same for `panels` panels.
pub(super) fn size_of(cells: &[Cell], panels: usize) -> (u32, u32) {
    let rows = rows(cells);
    let names = names_width(&rows);
    let width = names + panels as u32 * PANEL_WIDTH + MARGIN as u32;
    (width, AROUND + rows.len() as u32 * LINE as u32)
}

/// The rows, in their order.
fn rows(cells: &[Cell]) -> Vec<&RowKey> {
    let mut rows: Vec<&RowKey> = cells.iter().map(|cell| &cell.row).collect();
    rows.dedup();
    rows
}

fn names_width(rows: &[&RowKey]) -> u32 {
    let widest = rows.iter().map(|row| text_width(&row.label())).max().unwrap_or(0);
    (widest + 2 * MARGIN) as u32
}

/// Draws the panels of some variants into `part` of the whole.
pub(super) fn draw(
    &On { whole, hints }: &On,
    part: &Area<'_>,
    table: &Table,
    cells: &[Cell],
    variants: Range<usize>,
) -> Result<(), PlotError> {
    let rows = rows(cells);
    let ends = cells.iter().flat_map(|cell| {
        [cell.published.unwrap_or(0.0), cell.simulated, cell.low.unwrap_or(0.0), cell.high.unwrap_or(0.0)]
    });
    let (low, high) = ends.fold((0.0, 0.0), |(low, high): (f64, f64), end| (low.min(end), high.max(end)));
    let (_, mut rest) = part.split_horizontally(names_width(&rows));
    let first = variants.start;
    for (index, variant) in table.variants.iter().enumerate().take(variants.end).skip(first) {
        let (area, right) = rest.split_horizontally(PANEL_WIDTH);
        let frame = Frame {
            heading: variant.name,
            x_name: table.unit,
            y_name: "",
            y_labels: Y_LABELS,
            right: MARGIN,
        };
        let panel = Panel::draw(&area, &frame, Axis::between(low, high), Axis::lines(rows.len()))?;
        let at = |row: usize, value: f64| panel.pixel(value, (rows.len() - 1 - row) as f64);
        if index == first {
            let (_, y) = at(0, 0.0);
            whole.draw_text(&table.keys.join("/"), &letters(Size::Body, GREY), (MARGIN, y - LINE))?;
            for (row, key) in rows.iter().enumerate() {
                let (_, y) = at(row, 0.0);
                whole.draw_text(&key.label(), &letters(Size::Body, DARK), (MARGIN, y))?;
            }
        }
        let color = marks::color(index);
        for (row, key) in rows.iter().enumerate() {
            let Some(cell) = cells.iter().find(|cell| cell.variant == variant.name && cell.row == **key)
            else {
                continue;
            };
            if let Some((low, high)) = cell.low.zip(cell.high) {
                marks::span(whole, at(row, low), at(row, high), color)?;
            }
            if let Some(mean) = cell.published {
                marks::line(whole, &[at(row, mean), at(row, cell.simulated)], GREY.stroke_width(1))?;
            }
            let (shape, inside) = look(cell.class);
            marks::marker(whole, at(row, cell.simulated), shape, inside, color)?;
            hints.add(at(row, cell.simulated), hint(cell));
            if let Some(mean) = cell.published {
                published(whole, at(row, mean), None)?;
            }
        }
        rest = right;
    }
    Ok(())
}
