//! A published table, simulated.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde::Serialize;

use crate::band::{self, Parameter};
use crate::names::{self, MachineError, UnknownName};
use crate::published::{Class, Row, Table};
use crate::settings::{Configuration, Group, SettingError};
use crate::simulate::{Failure, Simulation};
use crate::sweep::{self, Outcome};

/// How much simulating goes into a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Few seeds and a short window: the whole table within a minute on two processors.
    Quick,
    /// As reports are made.
    Full,
}

/// Up to so many threads, placement is a lottery, and more seeds are needed.
const FEW_THREADS_MAX: usize = 36;

impl Effort {
    /// How many seeds a cell gets; the cell is their median.
    pub fn seeds(self, threads: usize) -> usize {
        match self {
            Effort::Quick if threads <= 8 => 12,
            Effort::Quick if threads <= FEW_THREADS_MAX => 6,
            Effort::Quick => 3,
            Effort::Full if threads <= FEW_THREADS_MAX => 16,
            Effort::Full => 8,
        }
    }

    /// How many of a cell's seeds each variation of its band gets.
    fn variation_seeds(self, seeds: usize) -> usize {
        match self {
            Effort::Quick => seeds.div_ceil(2),
            Effort::Full => seeds,
        }
    }

    /// What of a simulation differs from its defaults.
    fn settings(self) -> &'static [&'static str] {
        match self {
            // The window holds three thresholds of 10 ms.
            Effort::Quick => &["simulation.window-ns=30000000"],
            Effort::Full => &[],
        }
    }
}

/// What to reproduce, and how.
#[derive(Clone, Copy, Debug)]
pub struct Reproduction {
    /// The published table.
    pub table: &'static Table,
    /// Length of the window, and number of seeds unless given.
    pub effort: Effort,
    /// Number of seeds for every cell.
    pub seeds: Option<usize>,
    /// The parameters over which each cell gets a band; none if there are none.
    pub band: &'static [Parameter],
}

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
    /// The median over the seeds.
    pub simulated: f64,
    /// Lower end of the band over the simulator's sensitive parameters, if one was made: the least of
    /// `simulated` and the medians with each parameter moved alone.
    pub low: Option<f64>,
    /// Its upper end, the greatest of them.
    pub high: Option<f64>,
    /// (simulated - published) / published.
    pub error: f64,
    /// How far the cell is a test.
    pub class: Class,
}

/// Why a table could not be simulated.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// The table names a lock or a workload that does not exist.
    #[error(transparent)]
    Name(#[from] UnknownName),
    /// The table's machine.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The effort's settings.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A checker found a lock at fault.
    #[error("{failure}")]
    Failed {
        /// What it found.
        failure: Failure,
        /// The command that repeats it.
        command: String,
    },
}

/// Told of a reproduction's progress.
pub trait Watcher: Send {
    /// So many of so many simulations are done.
    fn simulated(&mut self, done: usize, total: usize);
    /// The next row is complete. To break is to leave out what has not been begun.
    fn row(&mut self, cells: &[Cell]) -> ControlFlow<()>;
}

impl Reproduction {
    /// Simulates the table, on all processors. The cells come row by row; all of them, unless the watcher
    /// breaks.
    ///
    /// # Errors
    ///
    /// If a checker finds fault with a lock. (The other errors are faults of the table's description.)
    pub fn run(&self, watcher: &mut impl Watcher) -> Result<Vec<Cell>, ReproduceError> {
        let mut central = Configuration::new(Group::ALL);
        for setting in self.effort.settings() {
            central.set(setting)?;
        }
        self.rows(&self.table.rows(), central, watcher)
    }

    /// Simulates these rows. All but the parameters of the band is as in `central`.
    fn rows(
        &self,
        rows: &[Row],
        central: Configuration,
        watcher: &mut impl Watcher,
    ) -> Result<Vec<Cell>, ReproduceError> {
        let table = self.table;
        let Planned { configurations, simulations, places } = self.plan(rows, central)?;
        let mut progress = Progress { table, rows, values: BTreeMap::new(), row: 0, cells: Vec::new() };
        for &place in &places {
            progress.values.entry(place).or_insert((0, Vec::new())).0 += 1;
        }
        let mut done = 0;
        let mut failed: Option<(Place, Failure)> = None;
        sweep::run(&simulations, |index, outcome| {
            done += 1;
            watcher.simulated(done, simulations.len());
            let place = places[index];
            if let Err(failure) = outcome
                && failed.as_ref().is_none_or(|(first, _)| place < *first)
            {
                failed = Some((place, failure.clone()));
            }
            progress.take(place, outcome, watcher)
        });
        if let Some((place, failure)) = failed {
            let settings = configurations[place.variation].texts();
            let command = sweep::command(table.machine, table.workload, &failure, settings);
            return Err(ReproduceError::Failed { failure, command });
        }
        Ok(progress.cells)
    }

    /// All simulations, row by row.
    fn plan(&self, rows: &[Row], central: Configuration) -> Result<Planned, ReproduceError> {
        let workload = names::workload(self.table.workload)?;
        let machine = names::machine(self.table.machine)?;
        let varied = band::variations(self.band, &machine)?;
        let mut configurations = vec![central; 1 + varied.len()];
        let mut machines = vec![machine; 1 + varied.len()];
        for (index, setting) in varied.iter().enumerate() {
            configurations[index + 1].set(setting)?;
            configurations[index + 1].configure_machine(&mut machines[index + 1])?;
        }
        let mut simulations = Vec::new();
        let mut places = Vec::new();
        for (row_index, row) in rows.iter().enumerate() {
            let seeds = self.seeds.unwrap_or_else(|| self.effort.seeds(row.threads));
            for (variant_index, variant) in self.table.variants.iter().enumerate() {
                for (variation, configuration) in configurations.iter().enumerate() {
                    let seeds = if variation == 0 { seeds } else { self.effort.variation_seeds(seeds) };
                    for seed in 1..=seeds as u64 {
                        places.push(Place { row: row_index, variant: variant_index, variation });
                        simulations.push(Simulation {
                            machine: machines[variation].clone(),
                            workload: (workload.of)(configuration),
                            lock: names::lock(variant.lock)?,
                            threads: row.threads,
                            seed,
                            settings: configuration.locks,
                            limits: configuration.limits,
                            placement: configuration.placement,
                        });
                    }
                }
            }
        }
        Ok(Planned { configurations, simulations, places })
    }
}

/// What is to be simulated, and for which cell.
struct Planned {
    /// By variation.
    configurations: Vec<Configuration>,
    simulations: Vec<Simulation>,
    /// Of each.
    places: Vec<Place>,
}

/// To which figure of a table a simulation belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    row: usize,
    variant: usize,
    /// 0 is the cell itself; then those of its band.
    variation: usize,
}

/// What has been simulated so far.
struct Progress<'a> {
    table: &'static Table,
    rows: &'a [Row],
    /// How many seeds are still to come, and the others' figures.
    values: BTreeMap<Place, (usize, Vec<f64>)>,
    /// The first row that is not complete.
    row: usize,
    cells: Vec<Cell>,
}

impl Progress<'_> {
    fn take(&mut self, place: Place, outcome: &Outcome, watcher: &mut impl Watcher) -> ControlFlow<()> {
        // A failure leaves its cell open, so that no row from there on is shown.
        let (Ok(simulated), Some((missing, figures))) = (outcome, self.values.get_mut(&place)) else {
            return ControlFlow::Continue(());
        };
        *missing -= 1;
        figures.push(simulated.ops_per_us * self.table.per_op_per_us);
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
        let first = |row| Place { row, variant: 0, variation: 0 };
        self.values.range(first(row)..first(row + 1)).all(|(_, &(missing, _))| missing == 0)
    }

    fn cell(&self, row: usize, variant: usize) -> Cell {
        let first = |variant| Place { row, variant, variation: 0 };
        let of_cell = self.values.range(first(variant)..first(variant + 1));
        let medians: Vec<f64> = of_cell.map(|(_, (_, figures))| median(figures)).collect();
        let simulated = medians.first().copied().unwrap_or(f64::NAN);
        let band = |end: fn(f64, f64) -> f64| {
            (medians.len() > 1).then(|| medians.iter().copied().fold(simulated, end))
        };
        let (low, high) = (band(f64::min), band(f64::max));
        let Row { threads, ref values } = self.rows[row];
        let published = values[variant];
        let variant = self.table.variants[variant].name;
        Cell {
            table: self.table.name,
            row: RowKey { threads },
            variant,
            metric: self.table.metric,
            unit: self.table.unit,
            published: published.mean,
            published_sd: published.sd,
            simulated,
            low,
            high,
            error: (simulated - published.mean) / published.mean,
            class: self.table.class(variant, threads),
        }
    }
}

/// The middle value, or the mean of the middle two.
pub(crate) fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let upper = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[upper] } else { (sorted[upper - 1] + sorted[upper]) / 2.0 }
}

/// The mean of the absolute errors of some cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanError {
    /// How many cells.
    pub cells: usize,
    /// The mean; 0.1 is 10 %.
    pub mean: f64,
}

/// The mean absolute error of the cells for which `of` holds; `None` if there are none.
pub fn mean_error(cells: &[Cell], of: impl Fn(&Cell) -> bool) -> Option<MeanError> {
    let errors: Vec<f64> = cells.iter().filter(|cell| of(cell)).map(|cell| cell.error.abs()).collect();
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    (!errors.is_empty()).then_some(MeanError { cells: errors.len(), mean })
}

/// Of the cells with a band, how many have the published figure within it, and how many there are.
pub fn within_band(cells: &[Cell]) -> (usize, usize) {
    let bands = cells.iter().filter_map(|cell| Some((cell.low?..=cell.high?).contains(&cell.published)));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::band::PARAMETERS;
    use crate::published::TABLES;
    use crate::simulate::Simulated;

    fn simulated(ops_per_us: f64) -> Outcome {
        Ok(Simulated {
            machine: String::new(),
            workload: String::new(),
            lock: String::new(),
            threads: 1,
            seed: 1,
            ops_per_us,
            jain: 1.0,
            wait_ns_p50: 0,
            wait_ns_p99: 0,
            wait_ns_max: 0,
            line_transfers_per_op: 0.0,
            remote_transfers_per_op: 0.0,
            local_handover_share: 0.0,
        })
    }

    #[derive(Default)]
    struct Rows(Vec<usize>);
    impl Watcher for Rows {
        fn simulated(&mut self, _done: usize, _total: usize) {}
        fn row(&mut self, cells: &[Cell]) -> ControlFlow<()> {
            self.0.push(cells[0].row.threads);
            ControlFlow::Continue(())
        }
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn rows_come_in_order_and_complete() {
        let table = &TABLES[0];
        let rows = &table.rows()[..2];
        let places = [(0, 0), (0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)].map(|(row, variant)| Place {
            row,
            variant,
            variation: 0,
        });
        let mut progress = Progress { table, rows, values: BTreeMap::new(), row: 0, cells: Vec::new() };
        for place in places {
            progress.values.entry(place).or_insert((0, Vec::new())).0 += 1;
        }
        let mut shown = Rows::default();
        for index in [4, 5, 6, 0, 2, 3] {
            assert!(progress.take(places[index], &simulated(1.0), &mut shown).is_continue());
            assert!(shown.0.is_empty());
        }
        assert!(progress.take(places[1], &simulated(2.0), &mut shown).is_continue());
        assert_eq!(shown.0, [1, 2]);
        assert_eq!(progress.cells.len(), 6);
        let cell = &progress.cells[0];
        assert_eq!((cell.variant, cell.simulated, cell.class), ("stock", 4.5, Class::Fitted));
        assert!((cell.error - (4.5 - 2.707) / 2.707).abs() < 1e-12);
        let fitted = mean_error(&progress.cells, |cell| cell.class == Class::Fitted).unwrap();
        assert_eq!(fitted, MeanError { cells: 1, mean: cell.error });
        assert_eq!(mean_error(&progress.cells, |_| false), None);
        assert_eq!((cell.low, cell.high, within_band(&progress.cells)), (None, None, (0, 0)));
        let largest = largest_error(&progress.cells).unwrap();
        assert_eq!((largest.variant, largest.row.threads), ("stock", 1));
    }

    #[test]
    fn a_simulation_of_the_table_takes_each_seed_once() {
        let reproduction =
            Reproduction { table: &TABLES[0], effort: Effort::Quick, seeds: Some(2), band: &[] };
        let rows = TABLES[0].rows();
        let Planned { simulations, places, .. } =
            reproduction.plan(&rows, Configuration::new(Group::ALL)).unwrap();
        assert_eq!(simulations.len(), 10 * 3 * 2);
        assert!(places.is_sorted());
        assert_eq!(simulations[1].seed, 2);
        assert_eq!(simulations[2].lock.name, "cna-v13-no-sro");
    }
    #[test]
    fn variations_move_one_parameter_each_and_take_fewer_seeds() {
        let reproduction =
            Reproduction { table: &TABLES[0], effort: Effort::Quick, seeds: None, band: PARAMETERS };
        let rows = &TABLES[0].rows()[..1];
        let planned = reproduction.plan(rows, Configuration::new(Group::ALL)).unwrap();
        assert_eq!(planned.configurations.len(), 9);
        assert_eq!(planned.simulations.len(), 3 * (12 + 8 * 6));
        assert!(planned.configurations[0].texts().is_empty());
        assert_eq!(planned.configurations[3].texts(), ["machine.grab-fraction=0.3"]);
        let varied = planned.places.iter().position(|place| place.variation == 3).unwrap();
        let models = [0, varied].map(|index| &planned.simulations[index].machine.model);
        assert_eq!(models.map(|model| model.grab_fraction), [0.5, 0.3]);
        assert_eq!(models[0].cross_socket_scale, models[1].cross_socket_scale);
    }

    #[test]
    fn a_band_holds_its_cell_and_is_wider() {
        let reproduction =
            Reproduction { table: &TABLES[0], effort: Effort::Quick, seeds: Some(1), band: PARAMETERS };
        let mut central = Configuration::new(Group::ALL);
        central.set("simulation.warm-up-ns=50000").unwrap();
        central.set("simulation.window-ns=200000").unwrap();
        let mut shown = Rows::default();
        let cells = reproduction.rows(&TABLES[0].rows()[..4], central, &mut shown).unwrap();
        assert_eq!((cells.len(), shown.0), (12, vec![1, 2, 4, 8]));
        for cell in &cells {
            let (low, high) = (cell.low.unwrap(), cell.high.unwrap());
            assert!(low <= cell.simulated && cell.simulated <= high, "{cell:?}");
        }
        let last = &cells[11];
        assert!(last.low < Some(last.simulated) || last.high > Some(last.simulated), "{last:?}");
        assert_eq!(within_band(&cells).1, 12);
    }

    #[test]
    fn a_published_figure_is_within_the_band_or_not() {
        let table = &TABLES[0];
        let rows = &table.rows()[..1];
        let mut progress = Progress { table, rows, values: BTreeMap::new(), row: 0, cells: Vec::new() };
        // Published are 2.707, 2.693 and 2.718.
        for (variant, figures) in [[0.91, 0.8, 0.9], [0.8, 0.7, 0.85], [0.9, 0.95, 0.91]].iter().enumerate() {
            for (variation, &figure) in figures.iter().enumerate() {
                progress.values.insert(Place { row: 0, variant, variation }, (0, vec![figure * 3.0]));
            }
        }
        let cells: Vec<_> = (0..3).map(|variant| progress.cell(0, variant)).collect();
        let close = |figure: Option<f64>, expected: f64| (figure.unwrap() - expected).abs() < 1e-9;
        assert!(close(cells[0].low, 2.4) && close(cells[0].high, 2.73), "{:?}", cells[0]);
        assert!(close(cells[1].low, 2.1) && close(cells[1].high, 2.55), "{:?}", cells[1]);
        assert!(close(cells[2].low, 2.7) && close(cells[2].high, 2.85), "{:?}", cells[2]);
        assert_eq!(within_band(&cells), (2, 3));
    }
}
