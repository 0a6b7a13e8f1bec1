//! A page of the benchmark's results, which loads no other files.

use std::fmt::Write;

use nearlock_bench::bench::Row;
use nearlock_lab::plot::Comparison;

use super::super::provenance::Provenance;
use super::summary::{self, Table};
use super::{Measured, conditions, count, figure, gates};

/// Readable on a phone and in the dark, as `report.html` is. Only tables scroll sideways.
const STYLE: &str = "\
:root{--paper:#fff;--ink:#222;--muted:#595959;--rule:#ddd;--soft:#f4f4f2}
@media(prefers-color-scheme:dark){:root{--paper:#16181d;--ink:#e8e8e6;--muted:#b4b4b0;--rule:#3c4046;--soft:#202327}}
*{box-sizing:border-box}html{-webkit-text-size-adjust:100%}
body{margin:0 auto;max-width:62rem;padding:1rem 1rem 4rem;background:var(--paper);color:var(--ink);\
font:1rem/1.5 system-ui,sans-serif;overflow-wrap:break-word}
h1{font-size:1.6rem;line-height:1.2;margin:.5rem 0}h2{font-size:1.2rem;line-height:1.25;margin:2.5rem 0 .25rem}
.verdict{border-left:4px solid var(--rule);padding-left:.75rem;font-size:1.1rem}.muted{color:var(--muted)}
figure{margin:.5rem 0}figcaption{color:var(--muted);font-size:.9rem;margin-top:.25rem}
.panels{display:flex;flex-wrap:wrap;gap:.5rem}svg{display:block;flex:0 1 auto;max-width:100%;height:auto}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem;margin:.5rem 0}
td,th{padding:.25rem .6rem .25rem 0;text-align:right;border-bottom:1px solid var(--rule);font-variant-numeric:tabular-nums}
td:first-child,th:first-child,td:nth-child(2),th:nth-child(2){text-align:left}
";

/// The page, with these pictures.
pub fn html(result: &Measured, provenance: &Provenance, comparisons: &[Comparison]) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>nearlock bench</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<h1>nearlock bench</h1>\n"
    );
    for note in provenance.notes() {
        _ = writeln!(page, "<p><b>{}</b></p>", escaped(&note));
    }
    for baseline in &result.plan.baselines {
        if let Some(verdict) = super::verdict(result, baseline.name()) {
            _ = writeln!(page, "<p class=\"verdict\">{}</p>", escaped(&verdict));
        }
    }
    _ = writeln!(page, "<p class=\"muted\">{}</p>", escaped(&conditions(result)));
    if let Some(first) = result.gates.first() {
        _ = writeln!(page, "<h2>Gates of {}</h2>", escaped(first.lock));
        let (headers, rows) = gates::table(result.gates);
        table(&mut page, &headers, &rows);
        let (headers, rows) = gates::cells(result.gates);
        if !rows.is_empty() {
            _ = writeln!(page, "<h3>{}</h3>", escaped(gates::CELLS));
            table(&mut page, &headers, &rows);
        }
    }
    for comparison in comparisons {
        pictures(&mut page, comparison);
    }
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
    let rows: Vec<Vec<String>> =
        provenance.fields().into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
    page.push_str("<h2>How this was measured</h2>\n");
    table(&mut page, &["", ""], &rows);
    page.push_str("</body>\n</html>\n");
    page
}

/// The pictures of the situations, in as many columns as the window has room for.
fn pictures(page: &mut String, Comparison { title, panels, .. }: &Comparison) {
    _ = writeln!(page, "<h2>{}</h2>\n<figure>\n<div class=\"panels\">", escaped(title));
    for panel in panels {
        page.push_str(panel);
    }
    page.push_str("</div>\n<figcaption>Shaded: the middle half of the rounds.</figcaption>\n</figure>\n");
}

fn situations(rows: &[Row], baseline: &str) -> Table {
    let headers = vec![
        "mode",
        "lock",
        "case",
        "threads",
        "section ns",
        "think ns",
        "reads",
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
            row.case.unwrap_or("-").to_owned(),
            number(row.threads.map(|threads| threads as u64)),
            number(row.section_ns),
            number(row.think_ns),
            summary::reads(row.read_percent),
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
    summary::with_reads_if_any(headers, rows.iter().filter(shown).map(|row| of(&row)).collect())
}

fn table(page: &mut String, headers: &[&str], rows: &[Vec<String>]) {
    let line = |tag: &str, cells: &mut dyn Iterator<Item = &str>| {
        cells.map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect::<String>()
    };
    _ = writeln!(page, "<div class=\"wide\"><table><tr>{}</tr>", line("th", &mut headers.iter().copied()));
    for row in rows {
        _ = writeln!(page, "<tr>{}</tr>", line("td", &mut row.iter().map(String::as_str)));
    }
    page.push_str("</table></div>\n");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_situation_has_a_picture_under_the_title() {
        let comparison = Comparison {
            title: "MEASURED: free, times as fast as <std>".to_owned(),
            whole: "<svg>whole</svg>\n".to_owned(),
            panels: ["one", "two"].map(|name| format!("<svg>{name}</svg>\n")).into(),
        };
        let mut page = String::new();
        pictures(&mut page, &comparison);
        assert!(page.starts_with("<h2>MEASURED: free, times as fast as &lt;std&gt;</h2>\n"), "{page}");
        assert!(page.contains("<div class=\"panels\">\n<svg>one</svg>\n<svg>two</svg>\n</div>"), "{page}");
        assert!(!page.contains("whole"), "{page}");
    }
}
