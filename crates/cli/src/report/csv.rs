//! Comma-separated values, with a header.

use std::io::{self, Write};

use nearlock_bench::torture::{Plan, Tortured, Totals, Waiting};
use nearlock_lab::LockEvent;
use nearlock_lab::reproduce::Cell;
use serde::Serialize;

/// Rows without objects in them.
pub fn rows<T: Serialize>(out: &mut impl Write, rows: &[T]) -> io::Result<()> {
    let mut text = Vec::new();
    let mut writer = csv::Writer::from_writer(&mut text);
    for row in rows {
        writer.serialize(row).map_err(io::Error::other)?;
    }
    writer.flush()?;
    drop(writer);
    out.write_all(&text)
}

/// Records of text, the first of which is the header.
pub fn records<'a>(
    out: &mut impl Write,
    records: impl IntoIterator<Item = &'a Vec<String>>,
) -> io::Result<()> {
    let mut text = Vec::new();
    let mut writer = csv::Writer::from_writer(&mut text);
    for record in records {
        writer.write_record(record).map_err(io::Error::other)?;
    }
    writer.flush()?;
    drop(writer);
    out.write_all(&text)
}

/// A [`Cell`] whose row is one word.
#[derive(Serialize)]
struct FlatCell<'a> {
    table: &'a str,
    row: String,
    variant: &'a str,
    metric: &'a str,
    unit: &'a str,
    published: Option<f64>,
    published_sd: Option<f64>,
    simulated: f64,
    low: Option<f64>,
    high: Option<f64>,
    error: Option<f64>,
    class: &'a str,
}

/// The cells of tables; the row is written `threads=142`, or `nodes=8 users=10-100`. Figures that
/// are not in the document are empty.
pub fn cells(out: &mut impl Write, cells: &[&Cell]) -> io::Result<()> {
    let flat: Vec<_> = cells
        .iter()
        .map(|cell| FlatCell {
            table: cell.table,
            row: cell.row.key_values(),
            variant: cell.variant,
            metric: cell.metric,
            unit: cell.unit,
            published: cell.published,
            published_sd: cell.published_sd,
            simulated: cell.simulated,
            low: cell.low,
            high: cell.high,
            error: cell.error,
            class: cell.class.name(),
        })
        .collect();
    rows(out, &flat)
}

/// The result of a lock under torture, without its events and problems.
#[derive(Serialize)]
pub struct TortureRow {
    lock: &'static str,
    verdict: &'static str,
    nwriters: usize,
    nreaders: usize,
    numa_nodes: u32,
    wait: &'static str,
    seconds: f64,
    total: u64,
    max: u64,
    min: u64,
    fail: u64,
    reads_total: u64,
    reads_max: u64,
    reads_min: u64,
    reads_fail: u64,
    refused: u64,
    timed_out: u64,
    cancelled: u64,
    downgraded: u64,
    wait_ns_max: u64,
}

impl TortureRow {
    /// The row of one lock.
    pub fn new(plan: &Plan, tortured: &Tortured) -> Self {
        let (Totals { writes, reads }, given_up) = (tortured.totals, tortured.given_up);
        Self {
            lock: tortured.lock.name,
            verdict: tortured.verdict().name(),
            nwriters: tortured.crew.writers,
            nreaders: tortured.crew.readers,
            numa_nodes: plan.numa_nodes.count(),
            wait: match plan.waiting {
                Waiting::Spin => "spin",
                Waiting::Yield => "yield",
            },
            seconds: tortured.seconds,
            total: writes.total,
            max: writes.max,
            min: writes.min,
            fail: writes.failures,
            reads_total: reads.total,
            reads_max: reads.max,
            reads_min: reads.min,
            reads_fail: reads.failures,
            refused: given_up.refused,
            timed_out: given_up.timed_out,
            cancelled: given_up.cancelled,
            downgraded: tortured.downgraded,
            wait_ns_max: tortured.wait_ns_max,
        }
    }
}

/// One row per lock, with a column for each event.
pub fn tortured(out: &mut impl Write, plan: &Plan, all: &[Tortured]) -> io::Result<()> {
    let mut text = Vec::new();
    rows(&mut text, &all.iter().map(|tortured| TortureRow::new(plan, tortured)).collect::<Vec<_>>())?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default();
    let names: String = LockEvent::ALL.iter().map(|event| format!(",{}", event.name())).collect();
    writeln!(out, "{header}{names}")?;
    for (line, tortured) in lines.zip(all) {
        let counts: String = tortured.events.iter().map(|count| format!(",{count}")).collect();
        writeln!(out, "{line}{counts}")?;
    }
    Ok(())
}
