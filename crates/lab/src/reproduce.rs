//! The simulation of a published table.

mod constants;
mod plan;
mod progress;
mod result;
mod run;

use std::ops::ControlFlow;

use crate::band::{PARAMETERS, Parameter};
use crate::locks::LockError;
use crate::mechanisms::MECHANISMS;
use crate::names::{self, MachineError, UnknownName};
use crate::published::Table;
use crate::settings::{Assignment, SettingError, Value};
use crate::simulate::Failure;
use nearlock_sim::spec::MachineSpec;

pub use crate::published::{KeyValue, RowKey};
pub use constants::constants;
pub use result::{
    Cell, EffectRow, HeadlineRow, MeanError, Reproduced, Varied, Verdict, figure, keeps_bound, largest_error,
    mean_error, within_band,
};
pub use run::{TableResult, run};

/// How much is simulated for a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Few seeds and short windows. All tables take less than four minutes on two processors.
    Quick,
    /// The effort for reports.
    Full,
}

impl Effort {
    /// The number of seeds of a cell, which is their mean. With fewer threads the result depends
    /// more on their random placement, and a seed costs less.
    pub fn seeds(self, threads: usize) -> usize {
        match (self, threads) {
            (Effort::Quick, ..=8) => 8,
            (Effort::Quick, 9..=36) => 3,
            (Effort::Quick, _) => 2,
            (Effort::Full, ..=8) => 32,
            (Effort::Full, 9..=36) => 16,
            (Effort::Full, _) => 8,
        }
    }

    /// The number of seeds if a workload is simulated to its end. Such a run is long, and runs
    /// differ little.
    fn seeds_of_whole_runs(self) -> usize {
        match self {
            Effort::Quick => 1,
            Effort::Full => 3,
        }
    }

    /// The divisor of a user's list if a workload is simulated to its end: 1 or 2.
    fn part_of_list(self) -> u64 {
        match self {
            Effort::Quick => 2,
            Effort::Full => 1,
        }
    }

    /// The divisor of the number of seeds for a variation of a cell's band.
    fn seeds_per_varied(self) -> usize {
        match self {
            Effort::Quick => 4,
            Effort::Full => 16,
        }
    }

    /// The settings of a simulation that differ from the defaults.
    fn settings(self) -> &'static [Assignment] {
        match self {
            Effort::Quick => &[SHORT_WINDOW],
            Effort::Full => &[],
        }
    }
}

/// The window contains three thresholds of 10 ms.
const SHORT_WINDOW: Assignment =
    Assignment { setting: "simulation.window-ns", value: Value::Integer(30_000_000) };

/// The changes with which a table is simulated again, one change at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vary {
    /// No changes.
    Nothing,
    /// The sensitive parameters. Each cell gets a band.
    Band,
    /// All mechanisms of the model.
    Mechanisms,
}

impl Vary {
    /// The parameters that are changed.
    pub fn parameters(self) -> &'static [Parameter] {
        match self {
            Vary::Nothing => &[],
            Vary::Band => PARAMETERS,
            Vary::Mechanisms => MECHANISMS,
        }
    }
}

/// A table to reproduce, and the way to do it.
#[derive(Clone, Copy, Debug)]
pub struct Reproduction<'a> {
    /// The published table.
    pub table: &'static Table,
    /// The length of the window, and the number of seeds if `seeds` is `None`.
    pub effort: Effort,
    /// The number of seeds for every cell.
    pub seeds: Option<usize>,
    /// Settings that differ from the defaults in all cells.
    pub set: &'a [Assignment],
    /// The changes.
    pub vary: Vary,
}

/// Why a table could not be simulated.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// The table names a workload that does not exist.
    #[error(transparent)]
    Name(#[from] UnknownName),
    /// The table names a lock that does not exist.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The table's machine is not available.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// A setting of the user or of the effort is wrong.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The machine with its settings has too few CPUs for a row.
    #[error("{table} has a row of {threads} threads, and {machine} as set has {cpus} CPUs")]
    TooFewCpus {
        /// The name of the table.
        table: &'static str,
        /// The number of threads of the row.
        threads: usize,
        /// The name of the machine.
        machine: &'static str,
        /// The number of its CPUs.
        cpus: usize,
    },
    /// A checker found that a lock is wrong.
    #[error("{failure}")]
    Failed {
        /// The failure.
        failure: Failure,
        /// The command that repeats it.
        command: String,
    },
}

/// Receives the progress of reproductions, in their order. [`run`] returns their results.
pub trait Watcher: Send {
    /// `done` of `total` simulations of all reproductions are done. `Break` skips the simulations
    /// that have not begun.
    fn simulated(&mut self, done: usize, total: usize) -> ControlFlow<()>;
    /// The following rows belong to the reproduction with this index.
    fn begin(&mut self, index: usize) -> ControlFlow<()>;
    /// The next row of the reproduction is complete. `Break` skips the simulations that have not
    /// begun.
    fn row(&mut self, index: usize, cells: &[Cell]) -> ControlFlow<()>;
    /// The reproduction is complete or has failed. `Break` is as in [`row`](Self::row).
    fn end(&mut self, index: usize, result: &TableResult) -> ControlFlow<()>;
}

impl Reproduction<'_> {
    /// Checks the settings before anything is simulated.
    ///
    /// # Errors
    ///
    /// If a setting is refused, or leaves too few CPUs. (The other errors are errors in the table's
    /// description.)
    pub fn check(&self) -> Result<(), ReproduceError> {
        self.plan(self.table.rows()).map(drop)
    }

    /// The machine with its settings, except settings of single rows.
    ///
    /// # Errors
    ///
    /// As for [`check`](Self::check).
    pub fn machine(&self) -> Result<MachineSpec, ReproduceError> {
        let mut machine = names::machine(self.table.machine)?;
        self.configuration(&[])?.configure_machine(&mut machine)?;
        Ok(machine)
    }
}

/// The arithmetic mean, which publications also use over their runs. If figures fall into two
/// groups, such as few threads with or without a common socket, a median would be arbitrary. The
/// result does not depend on the order of the figures.
pub(crate) fn mean(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.iter().sum::<f64>() / figures.len() as f64
}

#[cfg(test)]
mod tests;
