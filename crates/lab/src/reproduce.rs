//! A published table, simulated.

mod result;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::band::{self, PARAMETERS, Parameter};
use crate::mechanisms::MECHANISMS;
use crate::names::{self, MachineError, UnknownName};
use crate::published::{Row, Scale, Table};
use crate::settings::{Configuration, Group, SettingError};
use crate::simulate::{Failure, Simulation};
use crate::sweep::{self, Outcome};
use nearlock_sim::spec::MachineSpec;

pub use result::{
    Cell, MeanError, Reproduced, RowKey, Varied, Verdict, keeps_bound, largest_error, mean_error, within_band,
};

/// How much simulating goes into a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Few seeds and a short window: the whole table within a minute on two processors.
    Quick,
    /// As reports are made.
    Full,
}

impl Effort {
    /// How many seeds a cell gets; the cell is their mean. The fewer the threads, the more of a lottery is
    /// their placement, and the less a seed costs.
    pub fn seeds(self, threads: usize) -> usize {
        match (self, threads) {
            (Effort::Quick, ..=8) => 16,
            (Effort::Quick, 9..=36) => 6,
            (Effort::Quick, _) => 3,
            (Effort::Full, ..=8) => 32,
            (Effort::Full, 9..=36) => 16,
            (Effort::Full, _) => 8,
        }
    }

    /// How many of a cell's seeds each variation gets.
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

/// With which changes a table is simulated again, each alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vary {
    /// None.
    Nothing,
    /// The sensitive parameters: each cell gets a band.
    Band,
    /// All mechanisms of the model.
    Mechanisms,
}

impl Vary {
    /// What is changed.
    pub fn parameters(self) -> &'static [Parameter] {
        match self {
            Vary::Nothing => &[],
            Vary::Band => PARAMETERS,
            Vary::Mechanisms => MECHANISMS,
        }
    }
}

/// What to reproduce, and how.
#[derive(Clone, Copy, Debug)]
pub struct Reproduction<'a> {
    /// The published table.
    pub table: &'static Table,
    /// Length of the window, and number of seeds unless given.
    pub effort: Effort,
    /// Number of seeds for every cell.
    pub seeds: Option<usize>,
    /// What differs from the defaults in all cells, each as `NAME.KEY=VALUE`.
    pub set: &'a [String],
    /// The changes.
    pub vary: Vary,
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
    /// What was set, or the effort's settings.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A row for which the machine, as it was set, has too few CPUs.
    #[error("{table} has a row of {threads} threads, and {machine} as set has {cpus} CPUs")]
    TooFewCpus {
        /// Name of the table.
        table: &'static str,
        /// Number of threads of the row.
        threads: usize,
        /// Name of the machine.
        machine: &'static str,
        /// What is left of it.
        cpus: usize,
    },
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

impl Reproduction<'_> {
    /// Finds fault with what is set, before anything is simulated.
    ///
    /// # Errors
    ///
    /// If a setting is refused, or leaves the machine too few CPUs. (The other errors are faults of the table's
    /// description.)
    pub fn check(&self) -> Result<(), ReproduceError> {
        self.plan(&self.table.rows(), self.central()?).map(drop)
    }

    /// The machine, as it was set.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub fn machine(&self) -> Result<MachineSpec, ReproduceError> {
        let mut machine = names::machine(self.table.machine)?;
        self.central()?.configure_machine(&mut machine)?;
        Ok(machine)
    }

    /// Simulates the table, on all processors. The cells come row by row; all of them, unless the watcher
    /// breaks.
    ///
    /// # Errors
    ///
    /// If a checker finds fault with a lock, and as [`check`](Self::check).
    pub fn run(&self, watcher: &mut impl Watcher) -> Result<Reproduced, ReproduceError> {
        self.rows(&self.table.rows(), self.central()?, watcher)
    }

    /// What is set in all cells: by the effort, then by the user.
    fn central(&self) -> Result<Configuration, SettingError> {
        let mut central = Configuration::new(Group::ALL);
        for setting in self.effort.settings() {
            central.set(setting)?;
        }
        for setting in self.set {
            central.set(setting)?;
        }
        Ok(central)
    }

    /// Simulates these rows. All but what is varied is as in `central`.
    fn rows(
        &self,
        rows: &[Row],
        central: Configuration,
        watcher: &mut impl Watcher,
    ) -> Result<Reproduced, ReproduceError> {
        let table = self.table;
        let Planned { configurations, varied, simulations, places } = self.plan(rows, central)?;
        let mut progress = Progress::new(table, rows, self.vary);
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
        let variations = varied.into_iter().zip(1..);
        let varied = variations
            .map(|(setting, variation)| Varied { setting, cells: progress.varied(variation) })
            .collect();
        Ok(Reproduced { table, cells: progress.cells, varied })
    }

    /// All simulations, row by row.
    fn plan(&self, rows: &[Row], central: Configuration) -> Result<Planned, ReproduceError> {
        let workload = names::workload(self.table.workload)?;
        let mut machine = names::machine(self.table.machine)?;
        central.configure_machine(&mut machine)?;
        let cpus = machine.cpus();
        if let Some(&Row { threads, .. }) = rows.iter().find(|row| row.threads > cpus) {
            let Table { name: table, machine, .. } = *self.table;
            return Err(ReproduceError::TooFewCpus { table, threads, machine, cpus });
        }
        let varied = band::variations(self.vary.parameters(), self.table.workload, &central, &machine)?;
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
                    // Mechanisms are compared with the table as it is, so that both take the same seeds.
                    let all = variation == 0 && self.vary != Vary::Mechanisms;
                    let seeds = if all { seeds } else { self.effort.variation_seeds(seeds) };
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
                            start: configuration.start,
                        });
                    }
                }
            }
        }
        Ok(Planned { configurations, varied, simulations, places })
    }
}

/// What is to be simulated, and for which cell.
struct Planned {
    /// By variation.
    configurations: Vec<Configuration>,
    /// By variation, but for the first, which varies nothing.
    varied: Vec<String>,
    simulations: Vec<Simulation>,
    /// Of each.
    places: Vec<Place>,
}

/// To which figure of a table a simulation belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    row: usize,
    variant: usize,
    /// 0 is the cell itself.
    variation: usize,
}

/// What has been simulated so far.
struct Progress<'a> {
    table: &'static Table,
    rows: &'a [Row],
    vary: Vary,
    /// How many seeds are still to come, and the others' figures.
    values: BTreeMap<Place, (usize, Vec<f64>)>,
    /// The first row that is not complete.
    row: usize,
    cells: Vec<Cell>,
}

impl<'a> Progress<'a> {
    fn new(table: &'static Table, rows: &'a [Row], vary: Vary) -> Self {
        Self { table, rows, vary, values: BTreeMap::new(), row: 0, cells: Vec::new() }
    }

    fn take(&mut self, place: Place, outcome: &Outcome, watcher: &mut impl Watcher) -> ControlFlow<()> {
        // A failure leaves its cell open, so that no row from there on is shown.
        let (Ok(simulated), Some((missing, figures))) = (outcome, self.values.get_mut(&place)) else {
            return ControlFlow::Continue(());
        };
        *missing -= 1;
        figures.push(match self.table.scale {
            Scale::PerOpPerUs(worth) => simulated.ops_per_us * worth,
            Scale::RelativeToFirst => simulated.ops_per_us,
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
        let first = |row| Place { row, variant: 0, variation: 0 };
        self.values.range(first(row)..first(row + 1)).all(|(_, &(missing, _))| missing == 0)
    }

    /// The figures of a cell: first its own, then those with each variation.
    fn figures(&self, row: usize, variant: usize) -> Vec<f64> {
        let first = |variant| Place { row, variant, variation: 0 };
        let means = |variant| {
            self.values.range(first(variant)..first(variant + 1)).map(|(_, (_, figures))| mean(figures))
        };
        match self.table.scale {
            Scale::PerOpPerUs(_) => means(variant).collect(),
            Scale::RelativeToFirst => means(variant).zip(means(0)).map(|(this, base)| this / base).collect(),
        }
    }

    fn cell(&self, row: usize, variant: usize) -> Cell {
        let means = self.figures(row, variant);
        let simulated = means.first().copied().unwrap_or(f64::NAN);
        let end = |end: fn(f64, f64) -> f64| {
            (self.vary == Vary::Band).then(|| means.iter().copied().fold(simulated, end))
        };
        Cell { low: end(f64::min), high: end(f64::max), ..self.cell_of(row, variant, simulated) }
    }

    /// The cells of the rows that are complete, with this variation.
    fn varied(&self, variation: usize) -> Vec<Cell> {
        let places =
            (0..self.row).flat_map(|row| (0..self.table.variants.len()).map(move |variant| (row, variant)));
        places
            .map(|(row, variant)| self.cell_of(row, variant, self.figures(row, variant)[variation]))
            .collect()
    }

    /// A cell with this figure, without a band.
    fn cell_of(&self, row: usize, variant: usize, simulated: f64) -> Cell {
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
            low: None,
            high: None,
            error: (simulated - published.mean) / published.mean,
            class: self.table.class(variant, threads),
        }
    }
}

/// The arithmetic mean, as publications give it over their runs. Where the figures come in two kinds, as with
/// few threads that share a socket or do not, a median would be an accident.
pub(crate) fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len() as f64
}

#[cfg(test)]
mod tests;
