//! The results of reproductions.

use std::cmp::Ordering;

use serde::Serialize;

use super::{Vary, mean};
use crate::published::{
    Class, Effect, Headline, Published, Row, RowKey, Scale, Statement, Table, insignificant,
};
use crate::settings::Assignment;

/// Formats a figure for six columns, with at most three decimals.
pub fn figure(figure: f64) -> String {
    match figure.abs() {
        ..100.0 => format!("{figure:.3}"),
        ..1000.0 => format!("{figure:.1}"),
        _ => format!("{figure:.0}"),
    }
}

/// A cell, published beside simulated.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The name of the table.
    pub table: &'static str,
    /// The row.
    pub row: RowKey,
    /// The column.
    pub variant: &'static str,
    /// The measured quantity.
    pub metric: &'static str,
    /// The unit.
    pub unit: &'static str,
    /// The published mean. `None` is not in the document.
    pub published: Option<f64>,
    /// The standard deviation, if it is published.
    pub published_sd: Option<f64>,
    /// The mean over the seeds.
    pub simulated: f64,
    /// The lower end of the band over the simulator's sensitive parameters, if there is one: the
    /// minimum of `simulated` and of the means with each parameter moved alone.
    pub low: Option<f64>,
    /// The upper end of the band, their maximum.
    pub high: Option<f64>,
    /// (simulated - published) / published. For a gain in per cent it is relative to the multiple
    /// of the base: 10 % instead of 0 % is an error of 0.1. `None` if no figure is published.
    pub error: Option<f64>,
    /// To what degree the cell is a test.
    pub class: Class,
}

impl Cell {
    /// A cell with this simulated figure, without a band.
    pub fn new(table: &Table, row: &Row, variant: usize, simulated: f64) -> Self {
        let published = row.values[variant];
        let name = table.variants[variant].name;
        Self {
            table: table.name,
            row: row.key.clone(),
            variant: name,
            metric: table.metric,
            unit: table.unit,
            published: published.map(|value| value.mean),
            published_sd: published.and_then(|value| value.sd),
            simulated,
            low: None,
            high: None,
            error: published.map(|value| table.error(simulated, value.mean)),
            class: table.class(name, &row.key),
        }
    }

    /// The published figure.
    fn value(&self) -> Option<Published> {
        self.published.map(|mean| Published { mean, sd: self.published_sd })
    }

    /// Whether the cell is fixed by definition. It then counts in no mean.
    fn is_by_definition(&self) -> bool {
        Table::named(self.table).is_ok_and(|table| table.is_by_definition(self.variant))
    }
}

/// A simulated table.
#[derive(Debug)]
pub struct Reproduced {
    /// The table.
    pub table: &'static Table,
    /// The cells, row by row.
    pub cells: Vec<Cell>,
    /// The cells with each of the requested variations.
    pub varied: Vec<Varied>,
}

/// The cells of a table with one change.
#[derive(Debug)]
pub struct Varied {
    /// The change.
    pub change: Assignment,
    /// As in [`Reproduced::cells`], without bands.
    pub cells: Vec<Cell>,
}

/// The verdict of the simulated figures on a statement.
#[derive(Debug)]
pub struct Verdict {
    /// The published statement.
    pub statement: &'static Statement,
    /// Whether the statement holds for the cells.
    pub holds: bool,
    /// The variations with the opposite result.
    pub otherwise: Vec<Assignment>,
}

impl Verdict {
    /// The verdict as text, after these variations.
    pub fn says(&self, vary: Vary) -> String {
        let others = self.otherwise.iter().map(Assignment::to_string).collect::<Vec<_>>().join(", ");
        let (whole, nowhere) = match vary {
            Vary::Nothing => ("", ""),
            Vary::Band => (" with each parameter moved alone", ", nor with any parameter moved alone"),
            Vary::Mechanisms => (" with every change", ", nor with any change"),
        };
        match (self.holds, others.as_str()) {
            (true, "") => format!("holds{whole}"),
            (true, others) => format!("holds, but not with {others}"),
            (false, "") => format!("DOES NOT HOLD{nowhere}"),
            (false, others) => format!("DOES NOT HOLD, but does with {others}"),
        }
    }
}

impl Reproduced {
    /// The verdicts on the table's statements. Each compares cells with the same variation.
    /// Statements about cells that were not simulated are left out.
    pub fn verdicts(&self) -> Vec<Verdict> {
        let of = |statement: &'static Statement| {
            let holds = self.holds(statement, &self.cells)?;
            let differs = |varied: &&Varied| {
                self.holds(statement, &varied.cells).is_some_and(|otherwise| otherwise != holds)
            };
            let otherwise = self.varied.iter().filter(differs).map(|varied| varied.change);
            Some(Verdict { statement, holds, otherwise: otherwise.collect() })
        };
        self.table.statements.iter().filter_map(of).collect()
    }

    fn holds(&self, statement: &Statement, cells: &[Cell]) -> Option<bool> {
        statement.holds(self.table, |variant, row| {
            let cell = cells.iter().find(|cell| cell.variant == variant && cell.row == *row);
            cell.map(|cell| cell.simulated)
        })
    }

    /// The performance of the headline's variant relative to its base: published, simulated, and
    /// the minimum and the maximum over the variations, if there are any. `None` if its row was not
    /// simulated.
    pub fn headline(&self, headline: &Headline) -> Option<HeadlineRow> {
        let at = self
            .cells
            .iter()
            .position(|cell| cell.variant == headline.variant && headline.is_of(&cell.row))?;
        let (of, base) = (&self.cells[at], self.base(at));
        let to = base.map_or(Some(0.0), |base| self.cells[base].published)?;
        let simulated = |cells: &[Cell]| {
            self.table.ratio(cells[at].simulated, base.map_or(0.0, |base| cells[base].simulated))
        };
        let simulated_here = simulated(&self.cells);
        let varied = || self.varied.iter().map(|varied| simulated(&varied.cells)).chain([simulated_here]);
        Some(HeadlineRow {
            words: headline.words,
            published: self.table.ratio(of.published?, to),
            simulated: simulated_here,
            low: varied().fold(f64::INFINITY, f64::min),
            high: varied().fold(f64::NEG_INFINITY, f64::max),
            class: weaker(of, base.map(|base| &self.cells[base])),
        })
    }

    /// The index of the cell that the cell at `at` is compared with, unless it has no column.
    fn base(&self, at: usize) -> Option<usize> {
        let is_of_first = !matches!(self.table.scale, Scale::PercentOver(_));
        is_of_first.then(|| at - at % self.table.variants.len())
    }

    /// The effects of the variants, published and simulated, compared with the first variant or
    /// with the base of the gain. Rows are left out if not both figures are published.
    pub fn effects(&self) -> Vec<EffectRow> {
        let mut effects = Vec::new();
        for row in self.cells.chunks(self.table.variants.len()) {
            let (base, others) = match self.table.scale {
                Scale::PercentOver(_) => (None, row),
                _ => (Some(&row[0]), &row[1..]),
            };
            effects.extend(others.iter().filter_map(|cell| self.effect(base, cell)));
        }
        effects
    }

    fn effect(&self, base: Option<&Cell>, cell: &Cell) -> Option<EffectRow> {
        const NOTHING_MORE: Published = Published { mean: 0.0, sd: None };
        let of = cell.value()?;
        let to = base.map_or(Some(NOTHING_MORE), Cell::value)?;
        let insignificant = insignificant(of, to);
        let simulated = self.table.ratio(cell.simulated, base.map_or(0.0, |base| base.simulated));
        Some(EffectRow {
            row: cell.row.clone(),
            variant: cell.variant,
            published: Effect::of(self.table.ratio(of.mean, to.mean), insignificant),
            simulated: Effect::of(simulated, insignificant),
            class: weaker(cell, base),
        })
    }
}

/// To what degree a ratio of two cells is a test: no more than either of them. A cell that is fixed
/// by definition does not count.
fn weaker(of: &Cell, to: Option<&Cell>) -> Class {
    let base = to.filter(|base| !base.is_by_definition());
    base.map_or(of.class, |base| of.class.min(base.class))
}

/// Whether a difference is significant, published and simulated.
#[derive(Clone, Debug)]
pub struct EffectRow {
    /// The row.
    pub row: RowKey,
    /// The variant that makes the difference.
    pub variant: &'static str,
    /// The published effect.
    pub published: Effect,
    /// The simulated effect, with the same margin.
    pub simulated: Effect,
    /// The weaker of the classes of the two cells.
    pub class: Class,
}

/// A headline figure of a table, as a multiple.
#[derive(Clone, Debug, Serialize)]
pub struct HeadlineRow {
    /// The case, in a few words.
    pub words: &'static str,
    /// The published figure.
    pub published: f64,
    /// The simulated figure.
    pub simulated: f64,
    /// The minimum over the variations.
    pub low: f64,
    /// The maximum over the variations.
    pub high: f64,
    /// The weaker of the classes of the two cells.
    pub class: Class,
}

/// The mean error of some cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanError {
    /// The number of cells.
    pub cells: usize,
    /// The mean of the absolute errors. 0.1 is 10 %.
    pub mean: f64,
    /// The geometric mean of the factors between the simulated and the published figure, the larger
    /// divided by the smaller, minus 1. Half the published figure is the same error as twice the
    /// figure. Infinite if a simulated figure is zero and the published one is not.
    pub geometric: f64,
}

/// The mean absolute error of the cells for which `of` holds, without cells that are fixed by
/// definition. `None` if there are none.
pub fn mean_error(cells: &[Cell], of: impl Fn(&Cell) -> bool) -> Option<MeanError> {
    let counted = cells.iter().filter(|cell| of(cell) && !cell.is_by_definition());
    let errors: Vec<f64> = counted.filter_map(|cell| cell.error).collect();
    let mean_of = |size: fn(f64) -> f64| mean(&errors.iter().map(|&error| size(error)).collect::<Vec<_>>());
    (!errors.is_empty()).then(|| MeanError {
        cells: errors.len(),
        mean: mean_of(f64::abs),
        geometric: mean_of(|error| error.ln_1p().abs()).exp_m1(),
    })
}

/// The number of cells whose band contains the published figure, and the number of cells with a
/// band. Cells that are fixed by definition are left out.
pub fn within_band(cells: &[Cell]) -> (usize, usize) {
    let counted = cells.iter().filter(|cell| !cell.is_by_definition());
    let bands = counted.filter_map(|cell| Some((cell.low?..=cell.high?).contains(&cell.published?)));
    bands.fold((0, 0), |(within, all), is_within| (within + usize::from(is_within), all + 1))
}

/// The cell with the largest error.
pub fn largest_error(cells: &[Cell]) -> Option<&Cell> {
    let published = cells.iter().filter(|cell| cell.error.is_some());
    published
        .max_by(|a, b| a.error.map(f64::abs).partial_cmp(&b.error.map(f64::abs)).unwrap_or(Ordering::Equal))
}

/// Whether the mean error of the cells is within the table's bound.
pub fn keeps_bound(table: &Table, cells: &[Cell]) -> bool {
    mean_error(cells, |_| true).is_some_and(|error| error.mean <= table.mean_error_max)
}
