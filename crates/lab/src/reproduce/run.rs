//! Several tables, simulated as one: over all processors, and each simulation once.

use std::collections::HashMap;
use std::mem;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::plan::{Place, Planned, Repeat};
use super::progress::Progress;
use super::{ReproduceError, Reproduced, Reproduction, Varied, Watcher};
use crate::cache::{Cache, Figures, key};
use crate::published::Row;
use crate::simulate::{Failure, Simulation};
use crate::sweep::{self, Outcome};

/// Simulates the tables, on all processors. What the cache has is not simulated again, and what is simulated is added to it. Cells come
/// row by row and table by table, to the watcher.
///
/// # Errors
///
/// As [`Reproduction::check`], before anything is simulated. A lock at fault is the end of its own table, and told to the
/// watcher.
pub fn run(
    reproductions: &[Reproduction],
    cache: Option<&Cache>,
    watcher: &mut impl Watcher,
) -> Result<(), ReproduceError> {
    let rows = reproductions.iter().map(|reproduction| (reproduction, reproduction.table.rows()));
    run_rows(rows.collect(), cache, watcher)
}

/// Simulates these rows of each.
pub(super) fn run_rows(
    reproductions: Vec<(&Reproduction, Vec<Row>)>,
    cache: Option<&Cache>,
    watcher: &mut impl Watcher,
) -> Result<(), ReproduceError> {
    let Planning { mut tables, simulations, belongs, total } = Planning::of(reproductions, cache)?;
    let mut done = total - belongs.iter().map(Vec::len).sum::<usize>();
    watcher.simulated(done, total);
    if tables.show(watcher).is_break() {
        return Ok(());
    }
    sweep::run(&simulations, |simulation, outcome| {
        done += belongs[simulation].len();
        watcher.simulated(done, total);
        if let (Some(cache), Ok(simulated)) = (cache, outcome) {
            cache.add(&simulations[simulation], &simulated.into());
        }
        for &(table, index) in &belongs[simulation] {
            tables.all[table].take(index, outcome);
        }
        tables.show(watcher)
    });
    Ok(())
}

/// What is to be simulated for some tables.
#[derive(Default)]
struct Planning {
    /// With what the cache has.
    tables: Tables,
    /// What it has not.
    simulations: Vec<Simulation>,
    /// Of each of these: tables, and the simulations of theirs that it is.
    belongs: Vec<Vec<(usize, usize)>>,
    /// Simulations of all tables.
    total: usize,
}

impl Planning {
    fn of(
        reproductions: Vec<(&Reproduction, Vec<Row>)>,
        cache: Option<&Cache>,
    ) -> Result<Self, ReproduceError> {
        let mut planning = Self::default();
        let mut places = HashMap::new();
        for (table, (reproduction, rows)) in reproductions.into_iter().enumerate() {
            let mut planned = reproduction.plan(&rows)?;
            let simulations = mem::take(&mut planned.simulations);
            planning.total += simulations.len();
            let mut one = One::new(reproduction, rows, planned);
            for (index, simulation) in simulations.into_iter().enumerate() {
                if let Some(figures) = cache.and_then(|cache| cache.get(&simulation)) {
                    one.progress.take(one.places[index], figures);
                    one.to_come -= 1;
                    continue;
                }
                let place = *places.entry(key(&simulation)).or_insert(planning.simulations.len());
                if place == planning.simulations.len() {
                    planning.simulations.push(simulation);
                    planning.belongs.push(Vec::new());
                }
                planning.belongs[place].push((table, index));
            }
            planning.tables.all.push(one);
        }
        Ok(planning)
    }
}

/// All tables of a run.
#[derive(Default)]
struct Tables {
    all: Vec<One>,
    /// The first that is not complete.
    current: usize,
    /// Whether the watcher knows of it.
    has_begun: bool,
}

impl Tables {
    /// Tells the watcher what is complete and has its turn.
    fn show(&mut self, watcher: &mut impl Watcher) -> ControlFlow<()> {
        while let Some(table) = self.all.get_mut(self.current) {
            if !mem::replace(&mut self.has_begun, true) {
                watcher.begin(self.current)?;
            }
            while let Some(cells) = table.progress.next_row() {
                watcher.row(self.current, cells)?;
            }
            if table.to_come > 0 {
                break;
            }
            watcher.end(self.current, table.result())?;
            self.current += 1;
            self.has_begun = false;
        }
        ControlFlow::Continue(())
    }
}

/// A table of a run.
struct One {
    progress: Progress,
    /// By variation.
    varied: Vec<String>,
    /// Of each simulation.
    places: Vec<Place>,
    /// Of each simulation.
    commands: Vec<Arc<Repeat>>,
    /// How many simulations are still to come.
    to_come: usize,
    /// The failure in the first place, with its simulation.
    failed: Option<(Place, Failure, usize)>,
}

impl One {
    fn new(reproduction: &Reproduction, rows: Vec<Row>, planned: Planned) -> Self {
        let Planned { varied, places, commands, .. } = planned;
        let progress = Progress::new(reproduction.table, rows, reproduction.vary, &places);
        Self { progress, varied, to_come: places.len(), places, commands, failed: None }
    }

    /// Takes what a simulation came to.
    fn take(&mut self, index: usize, outcome: &Outcome) {
        self.to_come -= 1;
        let place = self.places[index];
        match outcome {
            Ok(simulated) => self.progress.take(place, Figures::from(simulated)),
            // Its cell stays open, so that no row from there on is shown.
            Err(failure) => {
                if self.failed.as_ref().is_none_or(|(first, _, _)| place < *first) {
                    self.failed = Some((place, failure.clone(), index));
                }
            }
        }
    }

    fn result(&mut self) -> Result<Reproduced, ReproduceError> {
        if let Some((_, failure, index)) = self.failed.take() {
            let command = self.commands[index].of(&failure);
            return Err(ReproduceError::Failed { failure, command });
        }
        let variations = mem::take(&mut self.varied).into_iter().zip(1..);
        let varied =
            variations.map(|(setting, at)| Varied { setting, cells: self.progress.varied(at) }).collect();
        let (table, cells) = (self.progress.table, mem::take(&mut self.progress.cells));
        Ok(Reproduced { table, cells, varied })
    }
}
