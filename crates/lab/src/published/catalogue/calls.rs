//! Tables of will-it-scale: threads of one process that call the system in loops.

use super::super::{Cells, RowKey, Rows, Scale, SeenCells, Setup, THREADS, Table, statements};
use super::{NEAR, STOCK_AND_CNA};

const SOURCE: &str =
    "Kogan, \"Add NUMA-awareness to qspinlock\", patch series v13, cover letter, December 2020";

const FITTED: &[Cells] = &[Cells { variant: "stock", rows: Rows::Threads(&[1, 8, 142]) }];

const STOCK_ELSEWHERE: Rows = Rows::Threads(&[2, 4, 16, 32, 36, 72, 108]);

/// The suite binds its threads to cores one after the other, and starts again when every core has
/// one.
fn bound(_row: &RowKey, setup: &mut Setup) {
    setup.settings.push(NEAR);
}

pub(super) static OPEN1: Table = Table {
    name: "cna-open1",
    source: SOURCE,
    machine: "haswell-ex-4s",
    workload: "open1",
    metric: "ops",
    unit: "ops/us",
    // Opening and closing a file takes two acquisitions.
    scale: Scale::Times(1.0 / 2.0),
    keys: &[THREADS],
    adjust: bound,
    variants: STOCK_AND_CNA,
    statements: statements::CALLS,
    mean_error_max: 0.10,
    fitted: FITTED,
    seen: &[
        SeenCells {
            variants: &["stock"],
            rows: STOCK_ELSEWHERE,
            choice: "that open1.lines is left at 0; how often a lockref is tried, and that threads begin as they are \
                     woken (16 threads)",
        },
        SeenCells {
            variants: &["cna-wo-sro", "cna"],
            rows: Rows::Threads(&[16]),
            choice: "how often a lockref is tried, and that threads begin as they are woken",
        },
    ],
    file: published!("cna_open1.csv"),
};

pub(super) static LOCK2: Table = Table {
    name: "cna-lock2",
    workload: "lock2",
    // Locking and unlocking a record are two operations, with three acquisitions.
    scale: Scale::Times(2.0 / 3.0),
    seen: &[SeenCells {
        variants: &["stock", "cna-wo-sro", "cna"],
        rows: Rows::ALL,
        choice: "that lock2.lines is left at 0",
    }],
    file: published!("cna_lock2.csv"),
    ..OPEN1
};
