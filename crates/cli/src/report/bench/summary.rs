//! All situations together: means, and the situations in which a lock is slow.

use std::io::{self, Write};

use nearlock_bench::bench::Row;
use nearlock_lab::Subject;

use super::super::text::figures;
use super::super::verdict::{BEHIND, Share, shares};
use super::{Measured, figure};

/// One of our locks with less than this share of a baseline's throughput is named.
const SLOW: f64 = 0.9;

/// The table of means and that of slow situations, where there are any.
pub fn text(out: &mut impl Write, result: &Measured) -> io::Result<()> {
    for baseline in &result.plan.baselines {
        let (headers, means) = means(result.rows, baseline.name());
        if !means.is_empty() {
            writeln!(out, "\nmeans over situations with two threads or more, against {}", baseline.name())?;
            writeln!(out, "{}", figures(&headers, 2, means))?;
        }
        let (headers, slow) = slow(result.rows, baseline.name());
        if !slow.is_empty() {
            writeln!(out, "\nunder {SLOW} of the throughput of {}", baseline.name())?;
            writeln!(out, "{}", figures(&headers, 2, slow))?;
        }
        let (headers, behind) = behind(result.rows, baseline.name());
        if !behind.is_empty() {
            writeln!(out, "\nunder {BEHIND} of the throughput of the fastest of all locks")?;
            writeln!(out, "{}", figures(&headers, 2, behind))?;
        }
    }
    Ok(())
}

/// The heads of the columns, and the rows.
pub type Table = (Vec<&'static str>, Vec<Vec<String>>);

/// The percentage of sections that only read.
pub fn reads(percent: Option<u64>) -> String {
    percent.map_or("-".to_owned(), |percent| format!("{percent} %"))
}

/// The table, without its column `reads` if no section only reads.
pub fn with_reads_if_any(mut headers: Vec<&'static str>, mut rows: Vec<Vec<String>>) -> Table {
    if let Some(column) = headers.iter().position(|header| *header == "reads")
        && rows.iter().all(|row| row[column] == reads(None))
    {
        headers.remove(column);
        rows.iter_mut().for_each(|row| _ = row.remove(column));
    }
    (headers, rows)
}

/// Means against a baseline.
pub fn means(rows: &[Row], baseline: &str) -> Table {
    let headers = vec!["situations", "lock", "reads", "of", "ratio", "cpu ratio", "max us", "membarriers/s"];
    let of = |row: &Row| {
        let summary = row.summary.filter(|_| row.baseline == baseline)?;
        let max_us = row.wait_ns_max.map(|ns| ns as f64 / 1e3);
        Some(vec![
            format!("{}, {summary}", row.mode),
            row.lock.to_owned(),
            reads(row.read_percent),
            row.situations.to_string(),
            figure(row.ratio),
            figure(row.cpu_ratio),
            figure(max_us),
            figure(row.membarriers_per_s),
        ])
    };
    with_reads_if_any(headers, rows.iter().filter_map(of).collect())
}

/// The mode, and the case if there is one.
fn situation(row: &Row) -> String {
    row.case.map_or(row.mode.to_owned(), |case| format!("{} {case}", row.mode))
}

/// The situations in which our locks are behind the fastest of all measured locks, if that is not
/// the baseline.
pub fn behind(rows: &[Row], baseline: &str) -> Table {
    let headers = vec!["mode", "lock", "thr.", "section", "think", "reads", "fastest", "ratio"];
    let all: Vec<&Row> =
        rows.iter().filter(|row| row.baseline == baseline && row.summary.is_none()).collect();
    let own: Vec<&Row> = all.iter().copied().filter(|row| Subject::named(row.lock).is_some()).collect();
    let of = |Share { row, fastest, share }: Share| {
        if share >= BEHIND || fastest.lock == baseline {
            return None;
        }
        Some(vec![
            situation(row),
            row.lock.to_owned(),
            row.threads?.to_string(),
            row.section_ns?.to_string(),
            row.think_ns?.to_string(),
            reads(row.read_percent),
            fastest.lock.to_owned(),
            figure(Some(share)),
        ])
    };
    with_reads_if_any(headers, shares(&own, &all).into_iter().filter_map(of).collect())
}

/// The situations in which our locks are slow.
pub fn slow(rows: &[Row], baseline: &str) -> Table {
    let headers = vec!["mode", "lock", "thr.", "section", "think", "reads", "ratio", "quartiles", "cpu"];
    let of = |row: &Row| {
        let is_slow = row.ratio.is_some_and(|ratio| ratio < SLOW) && row.summary.is_none();
        if !is_slow || row.baseline != baseline || Subject::named(row.lock).is_none() {
            return None;
        }
        Some(vec![
            situation(row),
            row.lock.to_owned(),
            row.threads?.to_string(),
            row.section_ns?.to_string(),
            row.think_ns?.to_string(),
            reads(row.read_percent),
            figure(row.ratio),
            format!("{}-{}", figure(row.ratio_low_quartile), figure(row.ratio_high_quartile)),
            figure(row.cpu_ratio),
        ])
    };
    with_reads_if_any(headers, rows.iter().filter_map(of).collect())
}
