//! All simulations of a table.

use std::sync::Arc;

use nearlock_sim::spec::MachineSpec;

use super::{ReproduceError, Reproduction, Vary};
use crate::band;
use crate::published::{Column, Row, Setup};
use crate::reproduce::Effort;
use crate::settings::{Assignment, Configuration, Group, SettingError, Value};
use crate::simulate::{Facts, Failure, Simulation};
use crate::sweep;
use crate::{locks, names};

/// The simulations, and the cell of each.
pub(super) struct Planned {
    /// The changes, one at a time.
    pub varied: Vec<Assignment>,
    pub simulations: Vec<Simulation>,
    /// The place of each simulation.
    pub places: Vec<Place>,
    /// The command of each simulation.
    pub commands: Vec<Arc<Repeat>>,
}

/// The figure of a table that a simulation belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub row: usize,
    pub column: Column,
    pub variation: usize,
}

/// Variations: the cell itself, the reference that changes are compared with, and the first change.
/// The reference may be simulated with less effort than the cell.
pub(super) const CELL: usize = 0;
pub(super) const REFERENCE: usize = 1;
pub(super) const FIRST_CHANGE: usize = 2;

/// How much is simulated for a figure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Amount {
    /// As much as the effort requires.
    Cell,
    /// A part of this, the same for all variations. Only their differences matter.
    Variation,
}

/// How to repeat a simulation alone.
pub(super) struct Repeat {
    machine: &'static str,
    workload: &'static str,
    settings: Vec<Assignment>,
}

impl Repeat {
    /// The command that repeats it.
    pub fn of(&self, failure: &Failure) -> String {
        sweep::command(self.machine, self.workload, failure, &self.settings)
    }
}

impl Reproduction<'_> {
    /// The settings: first those of the effort, then those of the row, then those of the user.
    pub(super) fn configuration(&self, row: &[Assignment]) -> Result<Configuration, SettingError> {
        let mut configuration = Configuration::new(Group::ALL);
        for &assignment in self.effort.settings().iter().chain(row).chain(self.set) {
            configuration.assign(assignment)?;
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
                let variations = match self.vary {
                    Vary::Nothing => FIRST_CHANGE - 1,
                    Vary::Band | Vary::Mechanisms => FIRST_CHANGE + planned.varied.len(),
                };
                for variation in CELL..variations {
                    self.figure(&mut planned, Place { row, column, variation }, &setup)?;
                }
            }
        }
        Ok(planned)
    }

    /// The changes, for all rows and columns. A change without effect in some of them has an effect
    /// in others.
    fn variations(&self, rows: &[Row]) -> Result<Vec<Assignment>, ReproduceError> {
        let mut all = Vec::new();
        for Row { key, .. } in rows {
            for column in self.table.columns() {
                let setup = self.table.setup(key, column);
                let central = self.configuration(&setup.settings)?;
                let mut machine = names::machine(setup.machine)?;
                central.configure_machine(&mut machine)?;
                let of_row = band::variations(self.vary.parameters(), setup.workload, &central, &machine)?;
                let new: Vec<_> = of_row.into_iter().filter(|change| !all.contains(change)).collect();
                all.extend(new);
            }
        }
        Ok(all)
    }

    /// Adds the simulations of one figure.
    fn figure(&self, planned: &mut Planned, place: Place, setup: &Setup) -> Result<(), ReproduceError> {
        let is_part = self.vary == Vary::Band && place.variation != CELL;
        let amount = if is_part { Amount::Variation } else { Amount::Cell };
        let mut configuration = self.configuration(&setup.settings)?;
        if let Some(change) = place.variation.checked_sub(FIRST_CHANGE) {
            configuration.assign(planned.varied[change])?;
        }
        let mut machine = names::machine(setup.machine)?;
        configuration.configure_machine(&mut machine)?;
        self.shorten(&mut configuration, setup.workload, &machine, amount)?;
        let workload = configuration.workload(setup.workload)?;
        let facts = workload.facts(&machine);
        let lock = locks::lock(setup.lock)?;
        let numbers = match (amount, self.effort) {
            (Amount::Variation, _) => setup.one_number(),
            (Amount::Cell, Effort::Quick) => setup.few_threads(),
            (Amount::Cell, Effort::Full) => setup.threads.clone(),
        };
        let repeat = Arc::new(Repeat {
            machine: setup.machine,
            workload: setup.workload,
            settings: configuration.assigned().to_vec(),
        });
        for &threads in &numbers {
            if threads > facts.threads_max {
                let (table, cpus) = (self.table.name, machine.cpus());
                return Err(ReproduceError::TooFewCpus { table, threads, machine: setup.machine, cpus });
            }
            for seed in 1..=self.seeds_of(&facts, threads, numbers.len(), amount) as u64 {
                planned.places.push(place);
                planned.commands.push(Arc::clone(&repeat));
                let (machine, workload) = (machine.clone(), workload.clone());
                planned.simulations.push(configuration.simulation(machine, workload, lock, threads, seed));
            }
        }
        Ok(())
    }

    /// Shortens the list of users if the workload is simulated to its end, unless its length was
    /// set.
    fn shorten(
        &self,
        configuration: &mut Configuration,
        workload: &'static str,
        machine: &MachineSpec,
        amount: Amount,
    ) -> Result<(), ReproduceError> {
        let part = match amount {
            Amount::Cell => self.effort.part_of_list(),
            Amount::Variation => VARIED_PART_OF_LIST,
        };
        let facts = configuration.workload(workload)?.facts(machine);
        if let Some(jobs) = facts.jobs.filter(|jobs| *jobs > 0)
            && part > 1
        {
            let jobs = Value::Integer(jobs.div_ceil(part));
            let jobs = Assignment::of(&format!("{workload}.jobs"), jobs)?;
            if !configuration.assigned().iter().any(|assigned| assigned.setting == jobs.setting) {
                configuration.assign(jobs)?;
            }
        }
        Ok(())
    }

    /// The number of seeds for each of `numbers` numbers of threads.
    fn seeds_of(&self, facts: &Facts, threads: usize, numbers: usize, amount: Amount) -> usize {
        let seeds = self.seeds.unwrap_or_else(|| {
            if facts.ends() {
                self.effort.seeds_of_whole_runs()
            } else {
                self.effort.seeds(threads).div_ceil(numbers)
            }
        });
        match amount {
            Amount::Cell => seeds,
            Amount::Variation => seeds.div_ceil(self.effort.seeds_per_varied()),
        }
    }
}

/// The divisor of a user's list in a variation of a band.
const VARIED_PART_OF_LIST: u64 = 4;
