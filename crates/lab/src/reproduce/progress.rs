//! What has been simulated so far.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::plan::Place;
use super::{Cell, Vary, Watcher, mean};
use crate::published::{Column, Row, Scale, Table};
use crate::sweep::Outcome;

/// What has been simulated so far.
pub(super) struct Progress<'a> {
    table: &'static Table,
    rows: &'a [Row],
    vary: Vary,
    /// How many simulations are still to come, and the others' figures.
    pub(super) values: BTreeMap<Place, (usize, Vec<f64>)>,
    /// The first row that is not complete.
    row: usize,
    pub(super) cells: Vec<Cell>,
}

impl<'a> Progress<'a> {
    /// Of nothing yet; these are to come.
    pub(super) fn new(table: &'static Table, rows: &'a [Row], vary: Vary, to_come: &[Place]) -> Self {
        let mut values = BTreeMap::new();
        for &place in to_come {
            values.entry(place).or_insert((0, Vec::new())).0 += 1;
        }
        Self { table, rows, vary, values, row: 0, cells: Vec::new() }
    }

    pub(super) fn take(
        &mut self,
        place: Place,
        outcome: &Outcome,
        watcher: &mut impl Watcher,
    ) -> ControlFlow<()> {
        // A failure leaves its cell open, so that no row from there on is shown.
        let (Ok(simulated), Some((missing, figures))) = (outcome, self.values.get_mut(&place)) else {
            return ControlFlow::Continue(());
        };
        *missing -= 1;
        figures.push(match self.table.scale {
            Scale::Times(worth) => simulated.ops_per_us * worth,
            Scale::JobsPerMinute => simulated.jobs_per_minute.unwrap_or(f64::NAN),
            Scale::SlowPathPercent => 100.0 * simulated.slow_path_share,
            Scale::RelativeToFirst | Scale::SecondsOfFirst(_) | Scale::PercentOver(_) => {
                simulated.jobs_per_minute.unwrap_or(simulated.ops_per_us)
            }
        });
        while self.row < self.rows.len() && self.is_complete(self.row) {
            let cells: Vec<Cell> =
                (0..self.table.variants.len()).map(|variant| self.cell(self.row, variant)).collect();
            let flow = watcher.row(&cells);
            self.cells.extend(cells);
            self.row += 1;
            if flow.is_break() {
                return flow;
            }
        }
        ControlFlow::Continue(())
    }

    fn is_complete(&self, row: usize) -> bool {
        let first = |row| Place { row, column: Column::Variant(0), variation: 0 };
        self.values.range(first(row)..first(row + 1)).all(|(_, &(missing, _))| missing == 0)
    }

    /// The figures of a cell: first its own, then those with each variation.
    fn figures(&self, row: usize, variant: usize) -> Vec<f64> {
        let means = |column| {
            let variations = (0..).map(move |variation| self.values.get(&Place { row, column, variation }));
            variations.map_while(|found| found.map(|(_, figures)| mean(figures)))
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

    /// The cells of the rows that are complete, with this variation.
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
