//! `docs/guide/files.md` and `docs/guide/benchmark.md` have each field of each JSON.

use std::fs;

use crate::support::{PROVENANCE, keys, nearlock};
use serde_json::Value;

fn page(name: &str) -> String {
    let path = format!("{}/../../docs/guide/{name}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The text below this heading, up to the next one.
fn section(page: &str, heading: &str) -> String {
    let (_, below) = page.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    below.split("\n## ").next().unwrap_or_default().to_owned()
}

fn assert_named(text: &str, fields: &[String]) {
    for field in fields {
        assert!(text.contains(&format!("`{field}`")), "no `{field}` in {text}");
    }
}

/// The keys of the objects within `lockstat`, `churn` and `stalls` of each row.
fn inner_keys(json: &str) -> Vec<String> {
    let rows: Vec<Value> = serde_json::from_str(json).expect("an array");
    let mut found = Vec::new();
    let mut values: Vec<&Value> =
        rows.iter().flat_map(|row| [&row["lockstat"], &row["churn"], &row["stalls"]]).collect();
    while let Some(value) = values.pop() {
        match value {
            Value::Object(object) => {
                found.extend(object.keys().cloned());
                values.extend(object.values());
            }
            Value::Array(array) => values.extend(array),
            _ => {}
        }
    }
    found
}

#[test]
fn every_field_is_in_the_documents() {
    let files = page("files.md");
    let words: Vec<String> = PROVENANCE.split(' ').map(str::to_owned).collect();
    assert_named(&section(&files, "Provenance"), &words);
    let quick = "--set simulation.warm-up-ns=0 --set simulation.window-ns=10us";
    for (heading, command) in [
        ("`simulate`", format!("simulate --machine haswell-ex-4s --lock mcs --threads 2 {quick} --lockstat")),
        ("`torture`", "torture mcs --shutdown-secs 1 --lockstat".to_owned()),
        ("`torture`", "torture near-mutex --shutdown-secs 1 --churn".to_owned()),
        ("`torture`", "torture near-mutex --shutdown-secs 1 --watch-progress 1s --long-hold 0".to_owned()),
        ("`reproduce`", format!("reproduce cna-context1 --seeds 1 {quick}")),
        ("`reproduce`", format!("reproduce cna-context1 --seeds 1 {quick} --mechanisms")),
        ("`validate`", "validate --quick".to_owned()),
    ] {
        let run = nearlock(&format!("{command} --format json"));
        assert_eq!(run.code, 0, "{command}: {}", run.err);
        assert_named(&section(&files, heading), &keys(&run.out));
        assert_named(&files, &inner_keys(&run.out));
    }
    let csv = nearlock("torture mcs --shutdown-secs 1 --format csv").out;
    let columns: Vec<String> = csv.lines().next().expect("a header").split(',').map(str::to_owned).collect();
    assert!(columns.len() > 50, "{csv}");
    assert_named(&files, &columns);
    let bench =
        "bench --mode free --lock mcs --threads 2 --section-ns 0 --think-ns 0 --rounds 1 --duration-ms 1";
    let run = nearlock(&format!("{bench} --format json"));
    assert_named(&section(&page("benchmark.md"), "Figures"), &keys(&run.out));
}
