//! A published table, simulated.

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

/// How much simulating goes into a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Few seeds and short windows: all tables within four minutes on two processors.
    Quick,
    /// As reports are made.
    Full,
}

impl Effort {
    /// How many seeds a cell gets; the cell is their mean. The fewer the threads, the more of a
    /// lottery is their placement, and the less a seed costs.
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

    /// The same where a whole run of a workload is simulated: it is long, and differs little from
    /// the next.
    fn seeds_of_whole_runs(self) -> usize {
        match self {
            Effort::Quick => 1,
            Effort::Full => 3,
        }
    }

    /// Which part of its list a user does where a whole run is simulated: all, or a half.
    fn part_of_list(self) -> u64 {
        match self {
            Effort::Quick => 2,
            Effort::Full => 1,
        }
    }

    /// Of how many of a cell's seeds a variation of its band gets one.
    fn seeds_per_varied(self) -> usize {
        match self {
            Effort::Quick => 4,
            Effort::Full => 16,
        }
    }

    /// What of a simulation differs from its defaults.
    fn settings(self) -> &'static [Assignment] {
        match self {
            Effort::Quick => &[SHORT_WINDOW],
            Effort::Full => &[],
        }
    }
}

/// It holds three thresholds of 10 ms.
const SHORT_WINDOW: Assignment =
    Assignment { setting: "simulation.window-ns", value: Value::Integer(30_000_000) };

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
    /// What differs from the defaults in all cells.
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
    /// The same of a lock.
    #[error(transparent)]
    Lock(#[from] LockError),
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

/// Told of the progress of reproductions, which come in their order. [`run`] returns their results.
pub trait Watcher: Send {
    /// So many of so many simulations of all reproductions are done.
    fn simulated(&mut self, done: usize, total: usize);
    /// The reproduction of this index is the next whose rows come.
    fn begin(&mut self, index: usize) -> ControlFlow<()>;
    /// Its next row is complete. To break is to leave out what has not been begun.
    fn row(&mut self, index: usize, cells: &[Cell]) -> ControlFlow<()>;
    /// It is complete, or failed. To break is as in [`row`](Self::row).
    fn end(&mut self, index: usize, result: &TableResult) -> ControlFlow<()>;
}

impl Reproduction<'_> {
    /// Finds fault with what is set, before anything is simulated.
    ///
    /// # Errors
    ///
    /// If a setting is refused, or leaves the machine too few CPUs. (The other errors are faults of
    /// the table's description.)
    pub fn check(&self) -> Result<(), ReproduceError> {
        self.plan(self.table.rows()).map(drop)
    }

    /// The machine, as it was set; without what single rows set of it.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub fn machine(&self) -> Result<MachineSpec, ReproduceError> {
        let mut machine = names::machine(self.table.machine)?;
        self.configuration(&[])?.configure_machine(&mut machine)?;
        Ok(machine)
    }
}

/// The arithmetic mean, as publications give it over their runs. Where the figures come in two
/// kinds, as with few threads that share a socket or do not, a median would be an accident. In
/// whichever order they come, it is the same.
pub(crate) fn mean(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.iter().sum::<f64>() / figures.len() as f64
}

#[cfg(test)]
mod tests;
