//! `docs/guide/files.md` and `docs/guide/benchmark.md` have each field of each JSON.

use std::fs;

use crate::support::{PROVENANCE, keys, nearlock};

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
        ("`reproduce`", format!("reproduce cna-context1 --seeds 1 {quick}")),
        ("`validate`", "validate --quick".to_owned()),
    ] {
        let run = nearlock(&format!("{command} --format json"));
        assert_eq!(run.code, 0, "{command}: {}", run.err);
        assert_named(&section(&files, heading), &keys(&run.out));
    }
    let bench =
        "bench --mode free --lock mcs --threads 2 --section-ns 0 --think-ns 0 --rounds 1 --duration-ms 1";
    let run = nearlock(&format!("{bench} --format json"));
    assert_named(&section(&page("benchmark.md"), "Figures"), &keys(&run.out));
}
