//! Comma-separated values, with a header.

use std::io::{self, Write};

use nearlock_bench::torture::{Plan, Tortured, Totals, Waiting};
use nearlock_bench::{bench, validate};
use nearlock_lab::LockEvent;
use nearlock_lab::reproduce::Cell;
use nearlock_lab::simulate::Simulated;
use serde::Serialize;

use super::Extent;

/// A row without objects in it.
pub trait Flat: Serialize {
    /// The header, for a file without rows. A row has the same names in this order.
    const HEADER: &'static str;
}

impl Flat for Simulated {
    const HEADER: &'static str = "machine,workload,lock,threads,seed,ops_per_us,jain,wait_ns_p50,wait_ns_p99,\
        wait_ns_max,cpu_ns_per_op,line_transfers_per_op,remote_transfers_per_op,local_handover_share,\
        slow_path_share,jobs_per_minute";
}

impl Flat for bench::Row {
    const HEADER: &'static str = "summary,situations,mode,case,lock,baseline,threads,section_ns,think_ns,\
        read_percent,ns_per_op,ops_per_us,ratio,ratio_low_quartile,ratio_high_quartile,rounds,jain,\
        wait_ns_p99_9,wait_ns_max,cpu_ns_per_op,cpu_ratio,instructions_per_op,rmw_per_op,\
        membarriers_per_s,size_bytes";
}

impl Flat for validate::Row {
    const HEADER: &'static str = "machine,lock,threads,section_ns,think_ns,measured_ops_per_us,measured_low,\
        measured_high,bursts,simulated_ops_per_us,error";
}

/// The rows below their header.
pub fn rows<T: Flat>(out: &mut impl Write, rows: &[T]) -> io::Result<()> {
    if rows.is_empty() {
        return writeln!(out, "{}", T::HEADER);
    }
    let mut text = Vec::new();
    let mut writer = csv::Writer::from_writer(&mut text);
    for row in rows {
        writer.serialize(row).map_err(io::Error::other)?;
    }
    writer.flush()?;
    drop(writer);
    debug_assert!(text.starts_with(T::HEADER.as_bytes()), "HEADER has other names: {}", T::HEADER);
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

impl Flat for FlatCell<'_> {
    const HEADER: &'static str =
        "table,row,variant,metric,unit,published,published_sd,simulated,low,high,error,class";
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
    partial: bool,
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

impl Flat for TortureRow {
    const HEADER: &'static str = "lock,verdict,partial,nwriters,nreaders,numa_nodes,wait,seconds,total,max,min,fail,\
        reads_total,reads_max,reads_min,reads_fail,refused,timed_out,cancelled,downgraded,wait_ns_max";
}

impl TortureRow {
    /// The rows of these locks. Those beyond the extent were ended early.
    pub fn all(plan: &Plan, all: &[Tortured], extent: Extent) -> Vec<Self> {
        let rows = all.iter().enumerate();
        rows.map(|(index, of)| Self { partial: index >= extent.done, ..Self::whole(plan, of) }).collect()
    }

    /// The row of a lock that was not ended early.
    fn whole(plan: &Plan, tortured: &Tortured) -> Self {
        let (Totals { writes, reads }, given_up) = (tortured.totals, tortured.given_up);
        Self {
            lock: tortured.lock.name,
            verdict: tortured.verdict().name(),
            partial: false,
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
pub fn tortured(out: &mut impl Write, plan: &Plan, all: &[Tortured], extent: Extent) -> io::Result<()> {
    let mut text = Vec::new();
    rows(&mut text, &TortureRow::all(plan, all, extent))?;
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
