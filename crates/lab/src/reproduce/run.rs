//! Simulates several tables as one run: on all processors, and each distinct simulation once.

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

/// The result of a table. If a lock fails, only its own table ends.
pub type TableResult = Result<Reproduced, ReproduceError>;

/// Simulates the tables on all processors, and returns their results in their order. Figures in the
/// cache are not simulated again. New figures are added to it. The watcher receives the cells row
/// by row and table by table, as soon as they are ready. If it breaks, only the tables that are
/// complete by then are returned.
///
/// # Errors
///
/// As for [`Reproduction::check`], before anything is simulated.
pub fn run(
    reproductions: &[Reproduction],
    cache: Option<&Cache>,
    watcher: &mut impl Watcher,
) -> Result<Vec<TableResult>, ReproduceError> {
    let rows = reproductions.iter().map(|reproduction| (reproduction, reproduction.table.rows()));
    run_rows(rows.collect(), cache, watcher)
}

/// Simulates these rows of each table.
pub(super) fn run_rows(
    reproductions: Vec<(&Reproduction, &'static [Row])>,
    cache: Option<&Cache>,
    watcher: &mut impl Watcher,
) -> Result<Vec<TableResult>, ReproduceError> {
    let Planning { mut tables, simulations, belongs, total } = Planning::of(reproductions, cache)?;
    let mut done = total - belongs.iter().map(Vec::len).sum::<usize>();
    if watcher.simulated(done, total).is_break() || tables.show(watcher).is_break() {
        return Ok(tables.results);
    }
    sweep::run(&simulations, |simulation, outcome| {
        done += belongs[simulation].len();
        let goes_on = watcher.simulated(done, total);
        if let (Some(cache), Ok(simulated)) = (cache, outcome) {
            cache.add(&simulations[simulation], &simulated.into());
        }
        for &(table, index) in &belongs[simulation] {
            tables.all[table].take(index, outcome);
        }
        tables.show(watcher)?;
        goes_on
    });
    Ok(tables.results)
}

/// The simulations for some tables.
#[derive(Default)]
struct Planning {
    /// The tables, with the figures from the cache.
    tables: Tables,
    /// Simulations that are not in the cache.
    simulations: Vec<Simulation>,
    /// For each simulation, the tables that use it and its indices in them.
    belongs: Vec<Vec<(usize, usize)>>,
    /// The number of simulations of all tables.
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
    /// The results of the first tables, which are complete.
    results: Vec<TableResult>,
    /// Whether the watcher has been told about the next table.
    has_begun: bool,
}

impl Tables {
    /// Shows the watcher the rows and tables that are complete and next in order.
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
    /// The change of each variation.
    varied: Vec<Assignment>,
    /// The place of each simulation.
    places: Vec<Place>,
    /// The command of each simulation.
    commands: Vec<Arc<Repeat>>,
    /// The number of simulations to come.
    to_come: usize,
    /// The failure with the first place, and the index of its simulation.
    failed: Option<(Place, Failure, usize)>,
}

impl One {
    fn new(reproduction: &Reproduction, rows: &'static [Row], planned: Planned) -> Self {
        let Planned { varied, places, commands, .. } = planned;
        let progress = Progress::new(reproduction.table, rows, reproduction.vary, &places);
        Self { progress, varied, to_come: places.len(), places, commands, failed: None }
    }

    /// Takes the result of a simulation.
    fn take(&mut self, index: usize, outcome: &Outcome) {
        self.to_come -= 1;
        let place = self.places[index];
        match outcome {
            Ok(simulated) => self.progress.take(place, Figures::from(simulated)),
            // The cell remains incomplete, so that neither its row nor a later one is shown.
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
