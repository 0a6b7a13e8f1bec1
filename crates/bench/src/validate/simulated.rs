//! Simulation of cells.

use std::ops::ControlFlow;

use nearlock_core::settings::Setting;
use nearlock_sim::spec::{MachineSpec, NodeCount};
use nearlock_workload::sections::Overhead;

use super::overhead::Overheads;
use super::{Cell, Effort, Step};
use crate::bench::statistics::median;
use nearlock_lab::simulate::{Failure, Limits, Placement, Sections, Simulated, Simulation, Start, simulate};
use nearlock_lab::sweep;

/// Approximate time of a section in addition to its work, in ns. It determines the window's length.
const SECTION_ABOUT_NS: u64 = 50;
/// The warm-up as a part of the window, and its least length in ns. It loads the lines from memory.
const WARM_UP_PART: u64 = 10;
const WARM_UP_NS: u64 = 2_000;

fn simulation(
    machine: &MachineSpec,
    cell: &Cell,
    overhead: Overhead,
    seed: u64,
    sections: u64,
) -> Simulation {
    let window_ns = sections * (cell.section_ns + cell.think_ns + SECTION_ABOUT_NS);
    let mut machine = machine.clone();
    // As in native runs, where a thread's count has its own cache line (`nearlock-os`), which no
    // other thread writes.
    machine.model.node_count = NodeCount::Free;
    Simulation {
        machine,
        workload: Box::new(Sections {
            section_ns: cell.section_ns,
            think_ns: cell.think_ns,
            section_overhead_ps: overhead.section_ps,
            think_overhead_ps: overhead.think_ps,
        }),
        lock: cell.lock,
        placement: Placement::Near,
        start: Start::default(),
        threads: cell.threads,
        seed,
        settings: Setting::DEFAULTS,
        lockstat: false,
        limits: Limits {
            warm_up_ns: WARM_UP_NS.max(window_ns / WARM_UP_PART),
            window_ns,
            ..Limits::default()
        },
    }
}

/// Number of sections of one run.
const SECTIONS: u64 = 2_000;

/// Simulates a cell once.
pub fn once(machine: &MachineSpec, cell: &Cell, overhead: Overhead, seed: u64) -> Result<Simulated, Failure> {
    simulate(&simulation(machine, cell, overhead, seed, SECTIONS))
}

/// Simulates all cells until `done` breaks. Returns sections per microsecond by all threads: the
/// median over the seeds. `None` for a cell that was not finished.
pub fn throughputs(
    machine: &MachineSpec,
    cells: &[Cell],
    overheads: &Overheads,
    effort: Effort,
    mut done: impl FnMut(Step) -> ControlFlow<()> + Send,
) -> Result<Vec<Option<f64>>, Failure> {
    let mut simulations = Vec::with_capacity(cells.len() * effort.seeds as usize);
    for cell in cells {
        let overhead = overheads[&(cell.section_ns, cell.think_ns)];
        let of_seed = |seed| simulation(machine, cell, overhead, seed, effort.sections);
        simulations.extend((1..=effort.seeds).map(of_seed));
    }
    let mut ops = vec![None; simulations.len()];
    let outcomes = sweep::run(&simulations, |index, outcome| {
        ops[index] = outcome.as_ref().ok().map(|simulated| simulated.ops_per_us);
        done(Step::Planned)
    });
    outcomes.into_iter().collect::<Result<Vec<_>, Failure>>()?;
    let of_cell = |ops: &[Option<f64>]| {
        let ops = ops.iter().copied().collect::<Option<Vec<_>>>()?;
        Some(median(ops).unwrap_or(f64::NAN))
    };
    Ok(ops.chunks(effort.seeds as usize).map(of_cell).collect())
}
