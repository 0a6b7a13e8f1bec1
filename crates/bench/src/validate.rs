//! Validation: a fixed grid of cells, measured natively on this machine and simulated on its
//! description.
//!
//! | file | contents |
//! |---|---|
//! | `native.rs` | a cell measured, in short bursts of threads that are pinned to CPUs |
//! | `overhead.rs` | the cost of the workload's own instructions, which the simulator cannot know |
//! | `simulated.rs` | the same cell simulated |

mod native;
mod overhead;
mod simulated;

use std::ops::ControlFlow;
use std::time::Duration;

use nearlock_collection::subjects::Subject;
use nearlock_sim::spec::MachineSpec;
use nearlock_topology as topology;
use serde::Serialize;

use crate::bench::statistics::Quartiles;
use crate::bench::{self, Calibration};
use crate::measure::{MeasureError, Priority};
use nearlock_lab::simulate;

/// The locks of the grid.
pub const LOCKS: [&str; 4] = ["ttas", "ticket", "mcs", "qspinlock"];
/// Numbers of threads of the grid.
pub const THREADS: [usize; 2] = [1, 2];
/// Work in a section, in ns, of the grid.
pub const SECTION_NS: [u64; 3] = [0, 100, 1000];
/// Work between sections, in ns, of the grid.
pub const THINK_NS: [u64; 3] = [0, 500, 5000];

/// Largest acceptable mean absolute error over the grid.
pub const MEAN_ERROR_MAX: f64 = 0.25;

/// One cell: a lock in one situation.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// The lock.
    pub lock: &'static Subject,
    /// Number of threads, each on its own CPU.
    pub threads: usize,
    /// Work in a section, in ns.
    pub section_ns: u64,
    /// Work between sections, on average, in ns.
    pub think_ns: u64,
}

/// The cells of the grid that need no more CPUs than this.
pub fn grid(cpus: usize) -> Vec<Cell> {
    let mut cells = Vec::new();
    for lock in LOCKS.iter().filter_map(|name| Subject::named(name)) {
        for threads in THREADS.into_iter().filter(|&threads| threads <= cpus) {
            for section_ns in SECTION_NS {
                cells.extend(THINK_NS.map(|think_ns| Cell { lock, threads, section_ns, think_ns }));
            }
        }
    }
    cells
}

/// Effort for a cell.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Number of measured bursts of each cell.
    pub bursts: usize,
    /// Length of a burst.
    pub burst: Duration,
    /// Number of simulated seeds.
    pub seeds: u64,
    /// Approximate number of simulated sections for each seed.
    pub sections: u64,
}

impl Effort {
    /// Less than a minute on two CPUs.
    pub const FULL: Self = Self { bursts: 40, burst: Duration::from_micros(1500), seeds: 8, sections: 4_000 };
    /// A few seconds: enough for a check that it works.
    pub const QUICK: Self = Self { bursts: 3, burst: Duration::from_micros(300), seeds: 1, sections: 300 };
}

/// The figures of a cell.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Name of the machine in the machine file.
    pub machine: String,
    /// The lock.
    pub lock: &'static str,
    /// See [`Cell`].
    pub threads: usize,
    /// See [`Cell`].
    pub section_ns: u64,
    /// See [`Cell`].
    pub think_ns: u64,
    /// Measured sections per microsecond by all threads: the median over the bursts.
    pub measured_ops_per_us: f64,
    /// Lower quartile over the bursts.
    pub measured_low: f64,
    /// Upper quartile over the bursts.
    pub measured_high: f64,
    /// Number of bursts that count. In such a burst no thread was preempted, and the distance of
    /// the CPUs was that of the machine file. If no burst counts, the figures are of all bursts.
    pub bursts: usize,
    /// Simulated sections per microsecond: the median over the seeds.
    pub simulated_ops_per_us: f64,
    /// (simulated - measured) / measured.
    pub error: f64,
}

impl Row {
    /// Whether the threads think between sections. If they do not, nanoseconds decide which thread
    /// gets the lock next.
    pub fn thinks(&self) -> bool {
        self.think_ns > 0
    }
}

/// Mean absolute error of the rows that `meant` selects, and their number; `None` if there are
/// none.
pub fn mean_error(rows: &[Row], meant: impl Fn(&Row) -> bool) -> Option<(f64, usize)> {
    let errors: Vec<f64> = rows.iter().filter(|row| meant(row)).map(|row| row.error.abs()).collect();
    (!errors.is_empty()).then(|| (errors.iter().sum::<f64>() / errors.len() as f64, errors.len()))
}

/// The results of a validation.
#[derive(Clone, Debug)]
pub struct Report {
    /// A row for each cell of the grid that was finished.
    pub rows: Vec<Row>,
    /// The CPUs of the threads.
    pub cpus: Vec<u32>,
    /// Number of cells of the grid.
    pub cells: usize,
}

impl Report {
    /// Number of cells without a burst that counts.
    pub fn without_bursts(&self) -> usize {
        self.rows.iter().filter(|row| row.bursts == 0).count()
    }
}

/// A step of a validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// One of the number that [`steps`] says.
    Planned,
    /// A look for more bursts that count.
    Repeated,
}

/// Reason why the validation failed.
#[derive(Debug, thiserror::Error)]
pub enum ValidateError {
    /// Threads could not be started, or not be pinned to CPUs.
    #[error(transparent)]
    Threads(#[from] MeasureError),
    /// A lock failed natively.
    #[error("{lock}: {failure}")]
    Native {
        /// The lock.
        lock: &'static str,
        /// What went wrong.
        failure: bench::Failure,
    },
    /// It was ended before any cell was finished.
    #[error("interrupted")]
    Interrupted,
    /// A lock failed in the simulator.
    #[error(transparent)]
    Simulated(#[from] simulate::Failure),
}

/// The CPUs of the threads: two, or one if there is only one. If possible, they share a cache but
/// not a core, like the first two cores of the simulated machine.
fn cpus(machine: &topology::HostTopology) -> Vec<u32> {
    let first_of_core = |cpu: &u32| {
        let siblings = machine.cores.iter().find(|core| core.contains(*cpu));
        let first = siblings.and_then(|core| core.iter().find(|&sibling| machine.allowed.contains(sibling)));
        first.is_none_or(|first| first == *cpu)
    };
    let of_cores: Vec<u32> = machine.allowed.iter().filter(first_of_core).collect();
    let near = machine.last_level_caches.iter().map(|cache| {
        of_cores.iter().copied().filter(|&cpu| cache.cpus.contains(cpu)).take(THREADS[1]).collect::<Vec<_>>()
    });
    let pair = near.into_iter().find(|cpus| cpus.len() == THREADS[1]);
    pair.unwrap_or_else(|| if of_cores.len() > 1 { of_cores } else { machine.allowed.iter().collect() })
        .into_iter()
        .take(machine.parallelism().min(THREADS[1]))
        .collect()
}

/// Half of the time of a word's round trip between the first two cores, in ns, if the machine was
/// measured.
fn passage_ns(machine: &MachineSpec) -> Option<f64> {
    let key = format!("ping_pong_ns.{}", machine.distances.first()?);
    Some(machine.measured.as_ref()?.figures.get(&key)?.median)
}

/// Measures the grid on this machine and simulates it on `machine`. Calls `done` for each burst and
/// each simulated run. If it breaks, the report has the cells that are finished.
///
/// # Errors
///
/// If threads cannot be started or pinned to their CPUs, if a lock fails, or if `done` breaks
/// before any cell is finished.
pub fn run(
    machine: &MachineSpec,
    effort: Effort,
    priority: Priority,
    mut done: impl FnMut(Step) -> ControlFlow<()> + Send,
) -> Result<Report, ValidateError> {
    let cpus = cpus(&topology::HostTopology::of_this_process());
    let grid = grid(cpus.len().min(machine.cores()));
    let calibration = Calibration::measure();
    let bare = overhead::cells();
    let all: Vec<Cell> = bare.iter().chain(&grid).copied().collect();
    let native =
        native::measure(&all, &cpus, passage_ns(machine), &calibration, effort, priority, &mut done)?;
    let (bare_native, grid_native) = native.split_at(bare.len());
    let overheads = overhead::of(machine, &bare, bare_native)?;
    let simulated = simulated::throughputs(machine, &grid, &overheads, effort, &mut done)?;
    let rows = grid.iter().zip(grid_native).zip(simulated);
    let rows = rows.filter_map(|((cell, native), simulated)| Some(row(machine, cell, native, simulated?)));
    let rows: Vec<Row> = rows.collect();
    if rows.is_empty() {
        Err(ValidateError::Interrupted)
    } else {
        Ok(Report { rows, cpus, cells: grid.len() })
    }
}

/// Number of planned steps of [`run`]. (Bursts that do not count are repeated.)
pub fn steps(machine: &MachineSpec, effort: Effort) -> usize {
    let cells = grid(cpus(&topology::HostTopology::of_this_process()).len().min(machine.cores())).len();
    (cells + overhead::cells().len()) * effort.bursts + cells * effort.seeds as usize
}

fn row(machine: &MachineSpec, cell: &Cell, native: &native::Measured, simulated: f64) -> Row {
    let Quartiles { low, median, high } = native.ops_per_us;
    Row {
        machine: machine.name.clone(),
        lock: cell.lock.name,
        threads: cell.threads,
        section_ns: cell.section_ns,
        think_ns: cell.think_ns,
        measured_ops_per_us: median,
        measured_low: low,
        measured_high: high,
        bursts: native.bursts,
        simulated_ops_per_us: simulated,
        error: simulated / median - 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearlock_topology::{LastLevelCache, NumberList};

    #[test]
    fn the_grid_has_each_cell_once() {
        assert_eq!(grid(1).len(), 36);
        let cells: std::collections::BTreeSet<_> = grid(64)
            .iter()
            .map(|cell| (cell.lock.name, cell.threads, cell.section_ns, cell.think_ns))
            .collect();
        assert_eq!(cells.len(), 72);
        assert!(cells.contains(&("qspinlock", 2, 1000, 5000)));
    }

    fn list(text: &str) -> NumberList {
        NumberList::parse(text).expect("a list")
    }

    #[test]
    fn threads_share_a_cache_and_no_core_if_they_can() {
        let machine = |allowed: &str, cores: &[&str], caches: &[&str]| topology::HostTopology {
            possible: list("0-7"),
            online: list("0-7"),
            allowed: list(allowed),
            nodes: Vec::new(),
            cores: cores.iter().map(|cpus| list(cpus)).collect(),
            last_level_caches: caches
                .iter()
                .map(|cpus| LastLevelCache { level: 3, cpus: list(cpus) })
                .collect(),
            quota: None,
        };
        let cores = ["0,4", "1,5", "2,6", "3,7"];
        for (allowed, caches, expected) in [
            ("0-7", ["0-1,4-5", "2-3,6-7"], [0, 1].as_slice()),
            ("0,2-7", ["0-1,4-5", "2-3,6-7"], &[0, 5]),
            ("0,4,6,7", ["0-1,4-5", "2-3,6-7"], &[6, 7]),
            ("0,4,6", ["0-1,4-5", "2-3,6-7"], &[0, 6]),
            ("3,7", ["0-1,4-5", "2-3,6-7"], &[3, 7]),
            ("5", ["0-1,4-5", "2-3,6-7"], &[5]),
        ] {
            assert_eq!(cpus(&machine(allowed, &cores, &caches)), expected, "{allowed}");
        }
    }

    #[test]
    fn errors_have_a_mean_by_class() {
        let row = |think_ns, error| Row {
            machine: String::new(),
            lock: "mcs",
            threads: 1,
            section_ns: 0,
            think_ns,
            measured_ops_per_us: 1.0,
            measured_low: 1.0,
            measured_high: 1.0,
            bursts: 1,
            simulated_ops_per_us: 1.0 + error,
            error,
        };
        let rows = [row(0, -0.5), row(500, 0.25), row(500, -0.25)];
        assert_eq!(mean_error(&rows, |_| true), Some((1.0 / 3.0, 3)));
        assert_eq!(mean_error(&rows, Row::thinks), Some((0.25, 2)));
        assert_eq!(mean_error(&rows, |row| row.lock == "tas"), None);
    }

    #[test]
    fn a_run_that_is_ended_has_the_finished_cells() {
        let machine = MachineSpec::builtin("epyc-genoa-2s").expect("is built in");
        let effort = Effort { bursts: 1, burst: Duration::from_micros(50), seeds: 2, sections: 20 };
        let until = |last: usize| {
            let mut calls = 0;
            run(&machine, effort, Priority::AsStarted, move |step| {
                calls += usize::from(step == Step::Planned);
                if calls >= last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
        };
        assert!(matches!(until(2), Err(ValidateError::Interrupted)));
        let report = until(steps(&machine, effort) - 10).expect("most cells are finished");
        assert!((10..=report.cells - 5).contains(&report.rows.len()), "{report:?}");
    }

    #[test]
    fn a_run_has_a_row_for_each_cell() {
        let machine = MachineSpec::builtin("epyc-genoa-2s").expect("is built in");
        let effort = Effort { bursts: 1, burst: Duration::from_micros(50), seeds: 1, sections: 20 };
        let mut calls = 0;
        let counts = |step| {
            calls += usize::from(step == Step::Planned);
            ControlFlow::Continue(())
        };
        let report = run(&machine, effort, Priority::AsStarted, counts).expect("this machine can do it");
        assert_eq!(calls, steps(&machine, effort));
        assert_eq!(report.rows.len(), grid(report.cpus.len()).len());
        for row in &report.rows {
            let Row { measured_low, measured_ops_per_us, measured_high, simulated_ops_per_us, .. } = row;
            assert!(0.0 < *measured_low && measured_low <= measured_ops_per_us, "{row:?}");
            assert!(measured_ops_per_us <= measured_high && measured_high.is_finite(), "{row:?}");
            assert!(*simulated_ops_per_us > 0.0 && row.error.is_finite(), "{row:?}");
        }
    }
}
