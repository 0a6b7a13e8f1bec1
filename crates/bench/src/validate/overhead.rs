//! The cost of the workload's own instructions.
//!
//! Instructions take time natively, but no time in the simulator, where only work of a stated
//! length takes time. So one thread runs the workload with a lock that does almost nothing, in each
//! situation of the grid. The difference between measured and simulated time is given to the
//! simulation.

use std::collections::BTreeMap;

use nearlock_collection::subjects::Subject;
use nearlock_sim::spec::MachineSpec;
use nearlock_workload::sections::Overhead;

use super::native::Measured;
use super::{Cell, SECTION_NS, THINK_NS, simulated};
use nearlock_lab::simulate::Failure;

/// The lock that does not exclude: two stores.
const BARE: &str = "lock-busted";

/// Limit of the surplus. A few instructions cannot take longer.
const SURPLUS_PS_MAX: f64 = 1e9;

/// Overheads by section and think time, in ns.
pub type Overheads = BTreeMap<(u64, u64), Overhead>;

/// The cells to measure.
pub fn cells() -> Vec<Cell> {
    let lock = Subject::named(BARE).expect("is in the list");
    let of_section = |section_ns| THINK_NS.map(|think_ns| Cell { lock, threads: 1, section_ns, think_ns });
    SECTION_NS.into_iter().flat_map(of_section).collect()
}

/// Computes the overheads from these measurements.
pub fn of(machine: &MachineSpec, cells: &[Cell], measured: &[Measured]) -> Result<Overheads, Failure> {
    let mut surplus_ps = BTreeMap::new();
    for (cell, measured) in cells.iter().zip(measured) {
        let simulated = simulated::once(machine, cell, Overhead::default(), 1)?.ops_per_us;
        let surplus = (1e6 / measured.ops_per_us.median - 1e6 / simulated).clamp(0.0, SURPLUS_PS_MAX);
        surplus_ps.insert((cell.section_ns, cell.think_ns), surplus as u64);
    }
    let alone = surplus_ps[&(0, 0)];
    let split = |(&(section_ns, think_ns), &whole): (&(u64, u64), &u64)| {
        // The difference between a section of this length and an empty section.
        let section_ps = surplus_ps[&(section_ns, 0)].saturating_sub(alone).min(whole);
        ((section_ns, think_ns), Overhead { section_ps, think_ps: whole - section_ps })
    };
    Ok(surplus_ps.iter().map(split).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::statistics::Quartiles;

    #[test]
    fn the_surplus_is_divided_between_section_and_rest() {
        let machine = MachineSpec::builtin("epyc-genoa-2s").expect("is built in");
        let cells = cells();
        // Each native operation takes this much longer than the simulated one, in ns.
        let surplus_ns = |cell: &Cell| 2.0 + cell.section_ns as f64 / 100.0 + cell.think_ns as f64 / 1000.0;
        let measured: Vec<Measured> = cells
            .iter()
            .map(|cell| {
                let simulated = simulated::once(&machine, cell, Overhead::default(), 1).expect("it works");
                let median = 1e3 / (1e3 / simulated.ops_per_us + surplus_ns(cell));
                Measured { ops_per_us: Quartiles { low: median, median, high: median }, bursts: 1 }
            })
            .collect();
        let overheads = of(&machine, &cells, &measured).expect("it works");
        let near = |a: u64, b: u64| a.abs_diff(b) <= 2;
        for (&(section_ns, think_ns), overhead) in &overheads {
            assert!(near(overhead.section_ps, section_ns * 10), "{section_ns}, {think_ns}: {overhead:?}");
            assert!(near(overhead.think_ps, 2000 + think_ns), "{section_ns}, {think_ns}: {overhead:?}");
        }
        assert_eq!(overheads.len(), SECTION_NS.len() * THINK_NS.len());
    }
}
