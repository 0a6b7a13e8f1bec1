//! All simulations of a table.

use std::sync::Arc;

use super::{ReproduceError, Reproduction, Vary};
use crate::band;
use crate::names;
use crate::published::{Column, Row, Setup};
use crate::reproduce::Effort;
use crate::settings::{Configuration, Group, SettingError};
use crate::simulate::{Failure, Simulation, Workload};
use crate::sweep;

/// What is to be simulated, and for which cell.
pub(super) struct Planned {
    /// By variation, but for the first, which varies nothing.
    pub varied: Vec<String>,
    pub simulations: Vec<Simulation>,
    /// Of each.
    pub places: Vec<Place>,
    /// Of each.
    pub commands: Vec<Arc<Repeat>>,
}

/// To which figure of a table a simulation belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub row: usize,
    pub column: Column,
    /// 0 is the cell itself.
    pub variation: usize,
}

/// How a simulation is repeated alone.
pub(super) struct Repeat {
    machine: &'static str,
    workload: &'static str,
    settings: Vec<String>,
}

impl Repeat {
    /// The command.
    pub fn of(&self, failure: &Failure) -> String {
        sweep::command(self.machine, self.workload, failure, &self.settings)
    }
}

impl Reproduction<'_> {
    /// What is set: by the effort, by the row, then by the user.
    pub(super) fn configuration(&self, row: &[String]) -> Result<Configuration, SettingError> {
        let mut configuration = Configuration::new(Group::ALL);
        for &setting in self.effort.settings() {
            configuration.set(setting)?;
        }
        for setting in row.iter().chain(self.set) {
            configuration.set(setting)?;
        }
        Ok(configuration)
    }

    /// All simulations, row by row.
    pub(super) fn plan(&self, rows: &[Row]) -> Result<Planned, ReproduceError> {
        let varied = self.variations(rows)?;
        let mut planned = Planned { varied, simulations: vec![], places: vec![], commands: vec![] };
        for (row, Row { key, .. }) in rows.iter().enumerate() {
            for column in self.table.columns() {
                let setup = self.table.setup(key, column);
                for variation in 0..=planned.varied.len() {
                    self.figure(&mut planned, Place { row, column, variation }, &setup)?;
                }
            }
        }
        Ok(planned)
    }

    /// The changes, of all rows and columns. What changes nothing in some of them changes it in others.
    fn variations(&self, rows: &[Row]) -> Result<Vec<String>, ReproduceError> {
        let mut all = Vec::new();
        for Row { key, .. } in rows {
            for column in self.table.columns() {
                let setup = self.table.setup(key, column);
                let central = self.configuration(&setup.settings)?;
                let mut machine = names::machine(setup.machine)?;
                central.configure_machine(&mut machine)?;
                let of_row = band::variations(self.vary.parameters(), setup.workload, &central, &machine)?;
                let new: Vec<_> = of_row.into_iter().filter(|setting| !all.contains(setting)).collect();
                all.extend(new);
            }
        }
        Ok(all)
    }

    /// The simulations of one figure.
    fn figure(&self, planned: &mut Planned, place: Place, setup: &Setup) -> Result<(), ReproduceError> {
        let mut configuration = self.configuration(&setup.settings)?;
        if let Some(change) = place.variation.checked_sub(1) {
            configuration.set(&planned.varied[change])?;
        }
        let mut machine = names::machine(setup.machine)?;
        configuration.configure_machine(&mut machine)?;
        let workload = (names::workload(setup.workload)?.of)(&configuration);
        let lock = names::lock(setup.lock)?;
        let numbers = match self.effort {
            Effort::Quick => setup.few_threads(),
            Effort::Full => setup.threads.clone(),
        };
        let repeat = Arc::new(Repeat {
            machine: setup.machine,
            workload: setup.workload,
            settings: configuration.texts().to_vec(),
        });
        for &threads in &numbers {
            if threads > workload.threads_max(&machine) {
                let (table, cpus) = (self.table.name, machine.cpus());
                return Err(ReproduceError::TooFewCpus { table, threads, machine: setup.machine, cpus });
            }
            for seed in 1..=self.seeds_of(&workload, threads, numbers.len(), place.variation) as u64 {
                planned.places.push(place);
                planned.commands.push(Arc::clone(&repeat));
                let (machine, workload) = (machine.clone(), workload.clone());
                planned.simulations.push(configuration.simulation(machine, workload, lock, threads, seed));
            }
        }
        Ok(())
    }

    /// How many seeds each of `numbers` numbers of threads gets.
    fn seeds_of(&self, workload: &Workload, threads: usize, numbers: usize, variation: usize) -> usize {
        let seeds = self.seeds.unwrap_or_else(|| {
            if workload.ends() {
                self.effort.seeds_of_whole_runs()
            } else {
                self.effort.seeds(threads).div_ceil(numbers)
            }
        });
        // Mechanisms are compared with the table as it is, so that both take the same seeds.
        let all = variation == 0 && self.vary != Vary::Mechanisms;
        if all { seeds } else { self.effort.variation_seeds(seeds) }
    }
}
