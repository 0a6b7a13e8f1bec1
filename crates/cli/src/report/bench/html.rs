//! A page of the benchmark's results, which needs nothing from elsewhere.

use std::fmt::Write;

use nearlock_bench::bench::Row;

use super::summary::{self, Table};
use super::{Measured, conditions, count, figure};

const STYLE: &str = "body{font:14px sans-serif;margin:2em;color:#222}table{border-collapse:collapse;margin:1em 0}\
                     td,th{padding:2px 10px;text-align:right;border-bottom:1px solid #ddd}\
                     td:first-child,th:first-child,td:nth-child(2),th:nth-child(2){text-align:left}";

/// The page, with these pictures.
pub fn html(result: &Measured, pictures: &[String]) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>nearlock bench</title>\
         <style>{STYLE}</style>\n<h1>nearlock bench</h1>\n<p>{}</p>\n",
        escaped(&conditions(result))
    );
    for baseline in &result.plan.baselines {
        let name = baseline.name();
        let tables = [
            ("Means over situations with two threads or more, against ", summary::means(result.rows, name)),
            ("Under 0.9 of the throughput of ", summary::slow(result.rows, name)),
            (
                "Under 0.9 of the throughput of the fastest lock, where it is not ",
                summary::behind(result.rows, name),
            ),
            ("All situations, against ", situations(result.rows, name)),
        ];
        for (heading, (headers, rows)) in tables.into_iter().filter(|(_, (_, rows))| !rows.is_empty()) {
            _ = writeln!(page, "<h2>{heading}{}</h2>", escaped(name));
            table(&mut page, &headers, &rows);
        }
    }
    for picture in pictures {
        _ = writeln!(page, "<p>{picture}</p>");
    }
    page.push_str("</html>\n");
    page
}

fn situations(rows: &[Row], baseline: &str) -> Table {
    let headers = vec![
        "mode",
        "lock",
        "threads",
        "section ns",
        "think ns",
        "ns/op",
        "ratio",
        "quartiles",
        "cpu ratio",
        "jain",
        "p99.9 us",
        "max us",
        "cpu ns/op",
        "rmw/op",
        "ins/op",
        "membarriers/s",
        "bytes",
    ];
    let of = |row: &&Row| {
        let number = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
        let us = |ns: Option<u64>| figure(ns.map(|ns| ns as f64 / 1e3));
        vec![
            row.mode.to_owned(),
            row.lock.to_owned(),
            number(row.threads.map(|threads| threads as u64)),
            number(row.section_ns),
            number(row.think_ns),
            figure(row.ns_per_op),
            figure(row.ratio),
            format!("{}-{}", figure(row.ratio_low_quartile), figure(row.ratio_high_quartile)),
            figure(row.cpu_ratio),
            figure(row.jain),
            us(row.wait_ns_p99_9),
            us(row.wait_ns_max),
            figure(row.cpu_ns_per_op),
            count(row.rmw_per_op),
            count(row.instructions_per_op),
            figure(row.membarriers_per_s),
            row.size_bytes.to_string(),
        ]
    };
    let shown = |row: &&Row| row.summary.is_none() && row.baseline == baseline;
    (headers, rows.iter().filter(shown).map(|row| of(&row)).collect())
}

fn table(page: &mut String, headers: &[&str], rows: &[Vec<String>]) {
    let line = |tag: &str, cells: &mut dyn Iterator<Item = &str>| {
        cells.map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect::<String>()
    };
    _ = writeln!(page, "<table><tr>{}</tr>", line("th", &mut headers.iter().copied()));
    for row in rows {
        _ = writeln!(page, "<tr>{}</tr>", line("td", &mut row.iter().map(String::as_str)));
    }
    page.push_str("</table>\n");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
