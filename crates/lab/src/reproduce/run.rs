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
use crate::settings::Assignment;
use crate::simulate::{Failure, Simulation};
use crate::sweep::{self, Outcome};

/// The result of a table. A lock at fault ends its own table only.
pub type TableResult = Result<Reproduced, ReproduceError>;

/// Simulates the tables, on all processors, and returns their results, in their order. Figures of
/// the cache are not simulated again, and new figures are added to it. The watcher is shown the
/// cells row by row and table by table, as they are ready. If it breaks, only the tables that are
/// complete by then are returned.
///
/// # Errors
///
/// As [`Reproduction::check`], before anything is simulated.
pub fn run(
    reproductions: &[Reproduction],
    cache: Option<&Cache>,
    watcher: &mut impl Watcher,
) -> Result<Vec<TableResult>, ReproduceError> {
    let rows = reproductions.iter().map(|reproduction| (reproduction, reproduction.table.rows()));
    run_rows(rows.collect(), cache, watcher)
}

/// Simulates these rows of each.
pub(super) fn run_rows(
    reproductions: Vec<(&Reproduction, &'static [Row])>,
    cache: Option<&Cache>,
    watcher: &mut impl Watcher,
) -> Result<Vec<TableResult>, ReproduceError> {
    let Planning { mut tables, simulations, belongs, total } = Planning::of(reproductions, cache)?;
    let mut done = total - belongs.iter().map(Vec::len).sum::<usize>();
    watcher.simulated(done, total);
    if tables.show(watcher).is_break() {
        return Ok(tables.results);
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
    Ok(tables.results)
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
        reproductions: Vec<(&Reproduction, &'static [Row])>,
        cache: Option<&Cache>,
    ) -> Result<Self, ReproduceError> {
        let mut planning = Self::default();
        let mut places = HashMap::new();
        for (table, (reproduction, rows)) in reproductions.into_iter().enumerate() {
            let mut planned = reproduction.plan(rows)?;
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
    /// Of those that are complete: the first ones.
    results: Vec<TableResult>,
    /// Whether the watcher knows of the next.
    has_begun: bool,
}

impl Tables {
    /// Tells the watcher what is complete and has its turn.
    fn show(&mut self, watcher: &mut impl Watcher) -> ControlFlow<()> {
        loop {
            let current = self.results.len();
            let Some(table) = self.all.get_mut(current) else { break };
            if !mem::replace(&mut self.has_begun, true) {
                watcher.begin(current)?;
            }
            while let Some(cells) = table.progress.next_row() {
                watcher.row(current, cells)?;
            }
            if table.to_come > 0 {
                break;
            }
            let result = table.result();
            let shown = watcher.end(current, &result);
            self.results.push(result);
            self.has_begun = false;
            shown?;
        }
        ControlFlow::Continue(())
    }
}

/// A table of a run.
struct One {
    progress: Progress,
    /// By variation.
    varied: Vec<Assignment>,
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
    fn new(reproduction: &Reproduction, rows: &'static [Row], planned: Planned) -> Self {
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

    fn result(&mut self) -> TableResult {
        if let Some((_, failure, index)) = self.failed.take() {
            let command = self.commands[index].of(&failure);
            return Err(ReproduceError::Failed { failure, command });
        }
        let variations = mem::take(&mut self.varied).into_iter().zip(1..);
        let varied =
            variations.map(|(change, at)| Varied { change, cells: self.progress.varied(at) }).collect();
        let (table, cells) = (self.progress.table, mem::take(&mut self.progress.cells));
        Ok(Reproduced { table, cells, varied })
    }
}
