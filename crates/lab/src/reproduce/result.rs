//! What a reproduction came to.

use serde::Serialize;

use super::mean;
use crate::published::{Class, Statement, Table};

/// Names a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RowKey {
    /// Number of threads.
    pub threads: usize,
}

/// One cell, published beside simulated.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// Name of the table.
    pub table: &'static str,
    /// Its row.
    pub row: RowKey,
    /// Its column.
    pub variant: &'static str,
    /// What was measured.
    pub metric: &'static str,
    /// In which unit.
    pub unit: &'static str,
    /// The published mean.
    pub published: f64,
    /// Its standard deviation, where published.
    pub published_sd: Option<f64>,
    /// The mean over the seeds.
    pub simulated: f64,
    /// Lower end of the band over the simulator's sensitive parameters, if one was made: the least of
    /// `simulated` and the means with each parameter moved alone.
    pub low: Option<f64>,
    /// Its upper end, the greatest of them.
    pub high: Option<f64>,
    /// (simulated - published) / published.
    pub error: f64,
    /// How far the cell is a test.
    pub class: Class,
}

impl Cell {
    /// Whether it is 1 because all others are measured by it. Then it counts in no mean.
    fn is_by_definition(&self) -> bool {
        Table::named(self.table).is_ok_and(|table| table.is_by_definition(self.variant))
    }
}

/// A table, simulated.
#[derive(Debug)]
pub struct Reproduced {
    /// Which.
    pub table: &'static Table,
    /// Row by row; all of them, unless the watcher broke.
    pub cells: Vec<Cell>,
    /// The same with each of the variations that were asked for.
    pub varied: Vec<Varied>,
}

/// The cells of a table with one thing changed.
#[derive(Debug)]
pub struct Varied {
    /// What: `NAME.KEY=VALUE`.
    pub setting: String,
    /// As in [`Reproduced::cells`], without bands.
    pub cells: Vec<Cell>,
}

/// What the simulated figures say of a statement.
#[derive(Debug)]
pub struct Verdict<'a> {
    /// What was published.
    pub statement: &'static Statement,
    /// Whether it holds of the cells.
    pub holds: bool,
    /// The variations with which it is the other way round.
    pub otherwise: Vec<&'a str>,
}

impl Reproduced {
    /// What was published of the table, held against the simulated figures: all cells with the same variation.
    /// Statements about cells that were not simulated are left out.
    pub fn verdicts(&self) -> Vec<Verdict<'_>> {
        let of = |statement: &'static Statement| {
            let holds = holds(statement, &self.cells)?;
            let differs = |varied: &&Varied| holds_otherwise(statement, holds, &varied.cells);
            let otherwise = self.varied.iter().filter(differs).map(|varied| varied.setting.as_str());
            Some(Verdict { statement, holds, otherwise: otherwise.collect() })
        };
        self.table.statements.iter().filter_map(of).collect()
    }
}

fn holds(statement: &Statement, cells: &[Cell]) -> Option<bool> {
    statement.holds(|variant, threads| {
        let cell = cells.iter().find(|cell| cell.variant == variant && cell.row.threads == threads);
        cell.map(|cell| cell.simulated)
    })
}

fn holds_otherwise(statement: &Statement, central: bool, cells: &[Cell]) -> bool {
    holds(statement, cells).is_some_and(|holds| holds != central)
}

/// The mean of the absolute errors of some cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanError {
    /// How many cells.
    pub cells: usize,
    /// The mean; 0.1 is 10 %.
    pub mean: f64,
}

/// The mean absolute error of the cells for which `of` holds, but for those that are 1 by definition; `None`
/// if there are none.
pub fn mean_error(cells: &[Cell], of: impl Fn(&Cell) -> bool) -> Option<MeanError> {
    let counted = cells.iter().filter(|cell| of(cell) && !cell.is_by_definition());
    let errors: Vec<f64> = counted.map(|cell| cell.error.abs()).collect();
    (!errors.is_empty()).then(|| MeanError { cells: errors.len(), mean: mean(&errors) })
}

/// Of the cells with a band, how many have the published figure within it, and how many there are. Those that
/// are 1 by definition are left out.
pub fn within_band(cells: &[Cell]) -> (usize, usize) {
    let counted = cells.iter().filter(|cell| !cell.is_by_definition());
    let bands = counted.filter_map(|cell| Some((cell.low?..=cell.high?).contains(&cell.published)));
    bands.fold((0, 0), |(within, all), is_within| (within + usize::from(is_within), all + 1))
}

/// The cell that fits worst.
pub fn largest_error(cells: &[Cell]) -> Option<&Cell> {
    cells.iter().max_by(|a, b| a.error.abs().total_cmp(&b.error.abs()))
}

/// Whether the cells keep to the table's bound.
pub fn keeps_bound(table: &Table, cells: &[Cell]) -> bool {
    mean_error(cells, |_| true).is_some_and(|error| error.mean <= table.mean_error_max)
}
