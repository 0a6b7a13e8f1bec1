//! The results of the simulations so far.

use std::collections::BTreeMap;

use super::plan::{CELL, FIRST_CHANGE, Place, REFERENCE};
use super::{Cell, Vary, mean};
use crate::cache::Figures;
use crate::published::{Column, Row, Scale, Table};

/// The results of the simulations so far.
pub(super) struct Progress {
    pub(super) table: &'static Table,
    rows: &'static [Row],
    vary: Vary,
    /// The number of simulations to come, and the figures of those that are done.
    pub(super) values: BTreeMap<Place, (usize, Vec<f64>)>,
    /// The first row that has not been shown.
    row: usize,
    /// The cells of the rows before `row`.
    pub(super) cells: Vec<Cell>,
}

impl Progress {
    /// Progress without results. `to_come` are the places of the simulations to come.
    pub(super) fn new(table: &'static Table, rows: &'static [Row], vary: Vary, to_come: &[Place]) -> Self {
        let mut values = BTreeMap::new();
        for &place in to_come {
            values.entry(place).or_insert((0, Vec::new())).0 += 1;
        }
        Self { table, rows, vary, values, row: 0, cells: Vec::new() }
    }

    pub(super) fn take(&mut self, place: Place, figures: Figures) {
        let Some((missing, taken)) = self.values.get_mut(&place) else { return };
        *missing -= 1;
        taken.push(match self.table.scale {
            Scale::Times(worth) => figures.ops_per_us * worth,
            Scale::JobsPerMinute => figures.jobs_per_minute.unwrap_or(f64::NAN),
            Scale::SlowPathPercent => 100.0 * figures.slow_path_share,
            Scale::RelativeToFirst | Scale::SecondsOfFirst(_) | Scale::PercentOver(_) => {
                figures.jobs_per_minute.unwrap_or(figures.ops_per_us)
            }
        });
    }

    /// The cells of the next row, once it is complete.
    pub(super) fn next_row(&mut self) -> Option<&[Cell]> {
        if self.row == self.rows.len() || !self.is_complete(self.row) {
            return None;
        }
        let cells: Vec<Cell> =
            (0..self.table.variants.len()).map(|variant| self.cell(self.row, variant)).collect();
        let first = self.cells.len();
        self.cells.extend(cells);
        self.row += 1;
        Some(&self.cells[first..])
    }

    fn is_complete(&self, row: usize) -> bool {
        let first = |row| Place { row, column: Column::Variant(0), variation: 0 };
        self.values.range(first(row)..first(row + 1)).all(|(_, &(missing, _))| missing == 0)
    }

    /// The figures of a cell: first its own, then those with each change. A change is compared with
    /// a reference of the same effort, so that a difference in effort does not count as an effect.
    fn figures(&self, row: usize, variant: usize) -> Vec<f64> {
        let means = |column| {
            let at = move |variation| self.values.get(&Place { row, column, variation });
            let of = |found: &(usize, Vec<f64>)| mean(&found.1);
            let cell = at(CELL).map_or(f64::NAN, of);
            let reference = at(REFERENCE).map_or(f64::NAN, of);
            let changes = (FIRST_CHANGE..).map_while(move |variation| at(variation).map(of));
            let scale = self.table.scale;
            let moved = move |change: f64| match scale {
                // If a share is almost zero, a multiple of it means nothing.
                Scale::SlowPathPercent => (cell + change - reference).clamp(0.0, 100.0),
                _ => cell * change / reference,
            };
            [cell].into_iter().chain(changes.map(moved))
        };
        let this = means(Column::Variant(variant));
        match self.table.scale {
            Scale::Times(_) | Scale::JobsPerMinute | Scale::SlowPathPercent => this.collect(),
            Scale::RelativeToFirst => {
                this.zip(means(Column::Variant(0))).map(|(this, base)| this / base).collect()
            }
            Scale::SecondsOfFirst(seconds) => {
                this.zip(means(Column::Variant(0))).map(|(this, base)| seconds * base / this).collect()
            }
            Scale::PercentOver(_) => {
                this.zip(means(Column::Base)).map(|(this, base)| 100.0 * (this / base - 1.0)).collect()
            }
        }
    }

    pub(super) fn cell(&self, row: usize, variant: usize) -> Cell {
        let means = self.figures(row, variant);
        let simulated = means.first().copied().unwrap_or(f64::NAN);
        let end = |end: fn(f64, f64) -> f64| {
            (self.vary == Vary::Band).then(|| means.iter().copied().fold(simulated, end))
        };
        Cell { low: end(f64::min), high: end(f64::max), ..self.cell_of(row, variant, simulated) }
    }

    /// The cells of the complete rows, with this variation.
    pub(super) fn varied(&self, variation: usize) -> Vec<Cell> {
        let places =
            (0..self.row).flat_map(|row| (0..self.table.variants.len()).map(move |variant| (row, variant)));
        places
            .map(|(row, variant)| self.cell_of(row, variant, self.figures(row, variant)[variation]))
            .collect()
    }

    /// A cell with this figure, without a band.
    pub(super) fn cell_of(&self, row: usize, variant: usize, simulated: f64) -> Cell {
        Cell::new(self.table, &self.rows[row], variant, simulated)
    }
}
