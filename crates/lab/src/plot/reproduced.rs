//! A published table beside its simulation.

use nearlock_sim::spec::MachineSpec;
use plotters::style::{Color, RGBColor};

use super::listed;
use super::marks::{self, Inside, Shape};
use super::panel::{Axis, Frame, Panel, Y_LABELS};
use super::{
    Area, DARK, GREY, Head, Hints, LINE, MARGIN, PlotError, Size, letters, machine_line, picture, text_width,
};
use crate::published::{Class, Table};
use crate::reproduce::{Cell, figure, mean_error};

/// Width of a variant's panel, height of all panels, and width of the y axis' name, in pixels.
const PANEL_WIDTH: u32 = 292;
const PANEL_HEIGHT: u32 = 340;
const Y_NAME_WIDTH: u32 = 22;
/// The minimum distance of two labels on the axis of threads, in doublings.
const TICK_ROOM: f64 = 0.6;

/// Draws a panel for each variant, with the published figures and their standard deviation, and the
/// simulated figures by class. If there is a band over the sensitive parameters, it is shaded.
/// `notes` are shown beneath the title. `None` if there are no cells.
///
/// # Errors
///
/// If the picture cannot be laid out.
pub fn reproduced(
    table: &Table,
    cells: &[Cell],
    machine: &MachineSpec,
    notes: &[String],
) -> Result<Option<String>, PlotError> {
    if cells.is_empty() {
        return Ok(None);
    }
    let title =
        format!("{}: PUBLISHED and SIMULATED, {} on {}", table.name, table.workloads(), table.machines());
    let mut paragraphs = vec![machine_line(machine), format!("Published: {}.", table.source)];
    paragraphs.extend_from_slice(notes);
    let by_threads = cells[0].row.threads().is_some();
    let (width, panels_height) = if by_threads {
        (Y_NAME_WIDTH + table.variants.len() as u32 * PANEL_WIDTH + MARGIN as u32, PANEL_HEIGHT)
    } else {
        listed::size(table, cells)
    };
    let head = Head::new(title, &paragraphs, width);
    let legend = legend(cells, table.variants[0].name);
    let height = head.height() + (LINE * 3) as u32 + panels_height + MARGIN as u32;
    let svg = picture((width, height), &instead(table, cells), |area, hints| {
        head.draw(area)?;
        draw_legend(area, &legend, head.height() as i32 + LINE)?;
        let mut rest = area.split_vertically(head.height() + (LINE * 3) as u32).1;
        if !by_threads {
            return listed::draw(&On { whole: area, hints }, &rest, table, cells, 0..table.variants.len());
        }
        for index in 0..table.variants.len() {
            let wide = PANEL_WIDTH + if index == 0 { Y_NAME_WIDTH } else { 0 };
            let (part, right) = rest.split_horizontally(wide);
            let y_name = if index == 0 { table.unit } else { "" };
            panel(&On { whole: area, hints }, &part, table, cells, (index, y_name))?;
            rest = right;
        }
        Ok(())
    })?;
    Ok(Some(svg))
}

/// The same panels as one picture each, without title and legend. A page that explains them can
/// place as many of them side by side as it has room for. There is no picture for a variant whose
/// figures are fixed by definition.
///
/// # Errors
///
/// If a picture cannot be laid out.
pub fn panels(table: &Table, cells: &[Cell]) -> Result<Vec<String>, PlotError> {
    let by_threads = cells.first().is_some_and(|cell| cell.row.threads().is_some());
    let shown = (0..table.variants.len()).filter(|&index| {
        let name = table.variants[index].name;
        !table.is_by_definition(name) && cells.iter().any(|cell| cell.variant == name)
    });
    let draw = |index: usize| {
        let own: Vec<Cell> =
            cells.iter().filter(|c| c.variant == table.variants[index].name).cloned().collect();
        let size =
            if by_threads { (Y_NAME_WIDTH + PANEL_WIDTH, PANEL_HEIGHT) } else { listed::size_of(cells, 1) };
        picture(size, &instead(table, &own), |whole, hints| {
            let on = On { whole, hints };
            if by_threads {
                panel(&on, whole, table, cells, (index, table.unit))
            } else {
                listed::draw(&on, whole, table, cells, index..index + 1)
            }
        })
    };
    shown.map(draw).collect()
}

/// The picture and the hints to draw to.
pub(super) struct On<'a, 'b> {
    pub(super) whole: &'a Area<'b>,
    pub(super) hints: &'a Hints,
}

/// A description of a cell.
pub(super) fn hint(cell: &Cell) -> String {
    let published = cell.published.map_or_else(|| "not in the document".to_owned(), figure);
    let band = cell.low.zip(cell.high).map(|(low, high)| format!(" ({} to {})", figure(low), figure(high)));
    format!(
        "{} at {}: published {published}, simulated {}{} {}, {}",
        cell.variant,
        cell.row,
        figure(cell.simulated),
        band.unwrap_or_default(),
        cell.unit,
        cell.class.name()
    )
}

/// The text for readers who cannot see the picture.
fn instead(table: &Table, cells: &[Cell]) -> String {
    let ends = cells.first().into_iter().chain(cells.last()).map(hint);
    let error = mean_error(cells, |_| true).map(|error| {
        let (mean, unit) = (error.mean * 100.0, table.error_unit());
        format!(" Mean absolute error over {} cells: {mean:.1} {unit}.", error.cells)
    });
    format!(
        "{}: published and simulated. {}.{}",
        table.name,
        ends.collect::<Vec<_>>().join("; "),
        error.unwrap_or_default()
    )
}

/// The marker of a simulated cell.
pub(super) fn look(class: Class) -> (Shape, Inside) {
    match class {
        Class::Fitted => (Shape::Square, Inside::Filled),
        Class::Seen => (Shape::Diamond, Inside::Hollow),
        Class::Predicted => (Shape::Diamond, Inside::Filled),
    }
}

/// The samples that the legend explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sample {
    Published,
    Simulated(Class),
    Band,
    First,
}

/// The samples that occur, with their names. `first` is the variant with which the others are
/// compared.
fn legend(cells: &[Cell], first: &str) -> Vec<(Sample, String)> {
    let deviation = cells.iter().any(|cell| cell.published_sd.is_some());
    let published = if deviation { "published, with its standard deviation" } else { "published" };
    let mut samples = vec![(Sample::Published, published.to_owned())];
    for class in Class::ALL.into_iter().filter(|&class| cells.iter().any(|cell| cell.class == class)) {
        samples.push((Sample::Simulated(class), format!("simulated, {}", class.name())));
    }
    if cells.iter().any(|cell| cell.low.is_some()) {
        samples.push((Sample::Band, "simulated, sensitive parameters varied".to_owned()));
    }
    if cells.iter().any(|cell| cell.variant != first && cell.row.threads().is_some()) {
        samples.push((Sample::First, format!("{first}, simulated")));
    }
    samples
}

/// Space for a sample, and between two samples, in pixels.
const SAMPLE: i32 = 30;
const BETWEEN: i32 = 18;

fn draw_legend(area: &Area, samples: &[(Sample, String)], top: i32) -> Result<(), PlotError> {
    let right = area.dim_in_pixel().0 as i32 - MARGIN;
    let (mut x, mut y) = (MARGIN, top);
    for (sample, name) in samples {
        let end = x + SAMPLE + text_width(name);
        if end > right && x > MARGIN {
            (x, y) = (MARGIN, y + LINE + 4);
        }
        let middle = (x + SAMPLE / 2 - 3, y);
        let line = [(x, y), (x + SAMPLE - 6, y)];
        match sample {
            Sample::Published => published(area, middle, Some((y - 6, y + 6)))?,
            Sample::Simulated(class) => {
                let (shape, inside) = look(*class);
                marks::line(area, &line, GREY.stroke_width(2))?;
                marks::marker(area, middle, shape, inside, GREY)?;
            }
            Sample::Band => {
                let moved = |by: i32| line.map(|(x, y)| (x, y + by));
                marks::band(area, &moved(-6), &moved(6), GREY)?;
            }
            Sample::First => marks::line(area, &line, FIRST.stroke_width(1))?,
        }
        area.draw_text(name, &letters(Size::Body, DARK), (x + SAMPLE, y))?;
        x += SAMPLE + text_width(name) + BETWEEN;
    }
    Ok(())
}

/// Draws a published figure, with a bar if its deviation is known.
pub(super) fn published(area: &Area, at: (i32, i32), deviation: Option<(i32, i32)>) -> Result<(), PlotError> {
    if let Some(ends) = deviation {
        marks::bar(area, at.0, ends, DARK)?;
    }
    marks::dot(area, at, DARK)
}

/// The colour of the first variant's line in the panels of the others.
const FIRST: RGBColor = RGBColor(0x77, 0x77, 0x77);

/// Draws the panel of a variant.
fn panel(
    &On { whole, hints }: &On,
    part: &Area<'_>,
    table: &Table,
    cells: &[Cell],
    (variant, y_name): (usize, &str),
) -> Result<(), PlotError> {
    let name = table.variants[variant].name;
    let frame = Frame { heading: name, x_name: "threads", y_name, y_labels: Y_LABELS, right: MARGIN };
    let threads: Vec<usize> = cells.iter().filter_map(|cell| cell.row.threads()).collect();
    let greatest = cells.iter().flat_map(|cell| {
        let published = cell.published.unwrap_or(0.0) + cell.published_sd.unwrap_or(0.0);
        [published, cell.simulated, cell.high.unwrap_or(0.0)]
    });
    let y = Axis::from_zero(greatest.fold(0.0, f64::max));
    let panel = Panel::draw(part, &frame, Axis::threads(&threads, TICK_ROOM), y)?;
    let at = |cell: &Cell, y: f64| panel.pixel(cell.row.threads().unwrap_or(0) as f64, y);
    let of = |name: &'static str| cells.iter().filter(move |cell| cell.variant == name);
    let color = marks::color(variant);
    let ends = |end: fn(&Cell) -> Option<f64>| -> Vec<(i32, i32)> {
        of(name).filter_map(|cell| end(cell).map(|y| at(cell, y))).collect()
    };
    let (low, high) = (ends(|cell| cell.low), ends(|cell| cell.high));
    if !low.is_empty() {
        marks::band(whole, &low, &high, color)?;
    }
    let simulated = |name| of(name).map(|cell| at(cell, cell.simulated)).collect::<Vec<_>>();
    if variant > 0 {
        marks::line(whole, &simulated(table.variants[0].name), FIRST.stroke_width(1))?;
    }
    marks::line(whole, &simulated(name), color.stroke_width(2))?;
    for cell in of(name) {
        let (shape, inside) = look(cell.class);
        marks::marker(whole, at(cell, cell.simulated), shape, inside, color)?;
        hints.add(at(cell, cell.simulated), hint(cell));
    }
    for cell in of(name) {
        let Some(mean) = cell.published else { continue };
        let deviation = cell.published_sd.map(|sd| (at(cell, mean - sd).1, at(cell, mean + sd).1));
        published(whole, at(cell, mean), deviation)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;
    use crate::reproduce::RowKey;

    /// Cells of each variant, with or without bands.
    fn cells(table: &'static Table, band: Option<f64>) -> Vec<Cell> {
        let cell = |variant, threads: usize| Cell {
            table: table.name,
            row: RowKey::of_threads(threads),
            variant,
            metric: table.metric,
            unit: table.unit,
            published: Some(5.0),
            published_sd: Some(0.2),
            simulated: 5.5,
            low: band.map(|width| 5.5 - width),
            high: band.map(|width| 5.5 + width),
            error: Some(0.1),
            class: if threads == 1 { Class::Fitted } else { Class::Seen },
        };
        table.variants.iter().flat_map(|variant| [1, 8, 142].map(|n| cell(variant.name, n))).collect()
    }

    fn draw(band: Option<f64>) -> String {
        let table = Table::named("cna-locktorture").unwrap();
        let machine = names::machine(table.machine).unwrap();
        reproduced(table, &cells(table, band), &machine, &[]).unwrap().unwrap()
    }

    #[test]
    fn the_picture_names_published_and_simulated_figures_and_their_classes() {
        let picture = draw(None);
        for text in ["PUBLISHED and SIMULATED", "published, with its standard deviation", "simulated, fitted"]
        {
            assert!(picture.contains(text), "no `{text}`");
        }
        assert!(picture.contains("simulated, seen") && !picture.contains("simulated, predicted"));
        assert!(!picture.contains("sensitive parameters varied"));
    }

    #[test]
    fn rows_that_are_no_numbers_of_threads_have_a_line_each() {
        let table = Table::named("rwsem-series").unwrap();
        let rows = table.rows();
        let cells: Vec<Cell> = rows
            .iter()
            .flat_map(|row| (0..table.variants.len()).map(move |variant| Cell::new(table, row, variant, 3.0)))
            .collect();
        let machine = names::machine(table.machine).unwrap();
        let picture = reproduced(table, &cells, &machine, &[]).unwrap().unwrap();
        for row in rows {
            assert!(picture.contains(&format!("\n{}\n", row.key.label())), "{}: {picture}", row.key);
        }
        assert!(picture.contains("% more than before") && !picture.contains(">threads<"));
    }

    #[test]
    fn figures_have_hints_and_the_picture_has_a_description() {
        let picture = draw(Some(1.0));
        assert_eq!(picture.matches("class=\"hint\"").count(), 9);
        let hint =
            "cna at 142 threads: published 5.000, simulated 5.500 (4.500 to 6.500) 1e7 ops in 30 s, seen";
        assert!(picture.contains(hint), "{picture}");
        assert!(picture.contains("<title>cna-locktorture: published and simulated. stock at 1 threads: "));
        assert!(picture.contains("Mean absolute error over 9 cells: 10.0 %.</title>"));
    }

    #[test]
    fn a_panel_alone_has_the_hints_of_its_variant() {
        let table = Table::named("cna-locktorture").unwrap();
        let alone = panels(table, &cells(table, None)).unwrap();
        assert_eq!(alone.len(), 3);
        for (panel, variant) in alone.iter().zip(table.variants) {
            assert_eq!(panel.matches("class=\"hint\"").count(), 3);
            assert_eq!(panel.matches(&format!("<title>{} at ", variant.name)).count(), 3);
        }
        let table = Table::named("freebsd-find").unwrap();
        let rows = table.rows();
        let all = rows.iter().flat_map(|row| (0..5).map(move |variant| Cell::new(table, row, variant, 1.2)));
        let alone = panels(table, &all.collect::<Vec<_>>()).unwrap();
        assert_eq!(alone.len(), 4, "what others are measured by is left out");
        assert!(alone.iter().all(|panel| panel.contains("\nspin-mtx\n")), "each has the names of its rows");
    }

    #[test]
    fn a_band_is_shaded_where_there_is_one() {
        let shaded = |picture: &str| picture.matches("<polygon").count();
        let (without, with) = (draw(None), draw(Some(1.0)));
        assert!(with.contains("sensitive parameters varied"));
        // One band for each variant, and one for the sample in the legend.
        assert_eq!(shaded(&with) - shaded(&without), 3 + 1);
    }
}
