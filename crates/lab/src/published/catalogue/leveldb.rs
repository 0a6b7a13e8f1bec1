//! The table of LevelDB's readrandom, whose threads contend for a lock of the kernel's futex.

use super::super::{Cells, RowKey, Rows, Scale, SeenCells, Setup, THREADS, Table, statements};
use super::{NEAR, STOCK_AND_CNA};

/// Places the threads near each other. If 8 or 16 threads are spread over two sockets, like new
/// threads in other tables, they reach half of the published figures.
fn near(_row: &RowKey, setup: &mut Setup) {
    setup.settings.push(NEAR);
}

const CHOICE: &str = "simulation.placement, readrandom.search-ns, section-ns and lines: fitted to the fitted cells, with the whole \
    table in view";

pub(super) static READRANDOM: Table = Table {
    name: "cna-readrandom",
    source: "Kogan, \"Add NUMA-awareness to qspinlock\", patch series v13, cover letter, December 2020",
    machine: "haswell-ex-4s",
    workload: "readrandom",
    metric: "ops",
    unit: "ops/us",
    // A get acquires the database's mutex twice.
    scale: Scale::Times(1.0 / 2.0),
    keys: &[THREADS],
    adjust: near,
    variants: STOCK_AND_CNA,
    statements: statements::READRANDOM,
    mean_error_max: 0.10,
    fitted: &[Cells { variant: "stock", rows: Rows::Threads(&[1, 8, 142]) }],
    seen: &[
        SeenCells { variants: &["stock"], rows: Rows::Threads(&[2, 4, 16, 32, 36, 72, 108]), choice: CHOICE },
        SeenCells { variants: &["cna-wo-sro", "cna"], rows: Rows::ALL, choice: CHOICE },
    ],
    file: published!("cna_readrandom.csv"),
};
