//! All tables: the lock for each column, the simulations for each row, and the class of each cell.

/// The file with this name in `published/`.
macro_rules! published {
    ($name:literal) => {{
        use crate::published::File;
        static FILE: File =
            File::new(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/published/", $name)));
        &FILE
    }};
}

mod calls;
mod freebsd;
mod kernel;
mod leveldb;

use super::row::THREADS;
use super::{Cells, RowKey, Rows, Scale, SeenCells, Setup, Table, Variant, statements};
use crate::settings::{Assignment, Value};

const LOCKTORTURE_CHOICES: &str = "simulation.placement and simulation.start, machine.smt-speed, that \
    machine.cross-socket-scale is left at 1, ticks of the timer, machine.node-count, the mean over seeds (the whole table); \
    machine.queued-grab-fraction, that an atomic may lose its line while it works, machine.same-socket-scale, and \
    how locktorture.section-ns and think-ns divide their sum (8, 36 and 142 threads)";

/// The kernel without the patch series, with the series except its last patch, and with the whole
/// series.
const STOCK_AND_CNA: &[Variant] = &[
    Variant { name: "stock", lock: "qspinlock", column: "stock" },
    Variant { name: "cna-wo-sro", lock: "cna-v13-no-sro", column: "cna_wo_sro" },
    Variant { name: "cna", lock: "cna-v13", column: "cna" },
];

/// The first CPUs, which are near each other.
const NEAR: Assignment = Assignment { setting: "simulation.placement", value: Value::Word("near") };

static LOCKTORTURE: Table = Table {
    name: "cna-locktorture",
    source: "Kogan, \"Add NUMA-awareness to qspinlock\", patch series v13, cover letter, December 2020",
    machine: "haswell-ex-4s",
    workload: "locktorture",
    metric: "ops",
    unit: "1e7 ops in 30 s",
    scale: Scale::Times(30.0 * 1e6 / 1e7),
    keys: &[THREADS],
    adjust: as_it_is,
    variants: STOCK_AND_CNA,
    statements: statements::LOCKTORTURE,
    mean_error_max: 0.08,
    fitted: &[Cells { variant: "stock", rows: Rows::Threads(&[1]) }],
    seen: &[
        SeenCells {
            variants: &["stock"],
            rows: Rows::Threads(&[2, 4, 8, 16, 32, 36, 72, 108, 142]),
            choice: LOCKTORTURE_CHOICES,
        },
        SeenCells { variants: &["cna-wo-sro", "cna"], rows: Rows::ALL, choice: LOCKTORTURE_CHOICES },
    ],
    file: published!("cna_locktorture.csv"),
};

const CONTEXT1_CHOICES: &str = "that a hop is one section, and context1.locks, section-ns, lines, think-ns and \
    partners; machine.node-count (chosen knowing that without it `cna` came out ahead of stock)";

static CONTEXT1: Table = Table {
    name: "cna-context1",
    source: "kernel test robot on v12 of the same series, November 2020; \
         with shuffle reduction: Kogan on v13",
    machine: "cascadelake-2s",
    workload: "context1",
    metric: "throughput",
    unit: "relative to stock",
    scale: Scale::RelativeToFirst,
    keys: &[THREADS],
    adjust: as_it_is,
    variants: STOCK_AND_CNA,
    statements: statements::CONTEXT1,
    mean_error_max: 0.04,
    fitted: &[],
    seen: &[SeenCells {
        variants: &["cna-wo-sro", "cna"],
        rows: Rows::Threads(&[56]),
        choice: CONTEXT1_CHOICES,
    }],
    file: published!("cna_context1.csv"),
};

/// All tables.
pub static TABLES: &[&Table] = &[
    &LOCKTORTURE,
    &CONTEXT1,
    &calls::OPEN1,
    &calls::LOCK2,
    &leveldb::READRANDOM,
    &kernel::MUTEX_HIGH_SYSTIME,
    &kernel::MUTEX_SLOWPATH_SHARE,
    &kernel::RWSEM_SERIES,
    &kernel::RWSEM_SPIN_FIRST,
    &kernel::RWSEM_SINGLE_WAKER,
    &freebsd::FIND,
    &freebsd::MAKE,
];

/// A row needs nothing in addition.
fn as_it_is(_row: &RowKey, _setup: &mut Setup) {}
