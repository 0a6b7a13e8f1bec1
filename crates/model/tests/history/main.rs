//! Bugs that the locks have had, or that their descriptions warn of. Each test reproduces one, by a
//! type that only this test has, or by dropping half of an ordering. A model catches the bug, and
//! the unchanged source passes the same model.
//!
//! `docs/internals/history.md` has a row for each bug. The tests fail if a row is missing, or
//! differs from what they see.

#![cfg(target_pointer_width = "64")]

mod cna;
mod counter_mutex;
mod lines;
mod lockmgr;
mod mcs;
mod monitor;
mod mtx;
mod mutex;
mod near_rwlock;
mod order;
mod peers;
mod phases;
mod policy;
mod pre_reads;
mod qspinlock;
mod rw;
mod rwsem;
mod starvation;
mod sx;
mod timed_word;
mod words;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use nearlock_model::engine::Engine;
use nearlock_model::model::{Depth, Model};
use nearlock_model::mutate::{Half, Site, failure_of, record};
use nearlock_model::shuttle::Shuttle;
use shuttle::scheduler::RandomScheduler;

/// How a model reports an execution without end: a deadlock, or a waiter that no thread grants.
const NO_END: &str = "an execution without end";
/// How it reports a link that leads nowhere.
const NULL: &str = "an access through a null pointer";
/// How it reports sections that overlap, or of which one does not see the writes of the other.
const SECTIONS: &str = "two sections that nothing orders";
/// How it reports two stores of which a machine could make either the last.
const STORES: &str = "two stores to one word that nothing orders";

/// The pages `docs/internals/history*.md`.
fn document() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_history = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("history") && name.ends_with(".md")
    };
    paths.filter(is_history).map(|path| fs::read_to_string(path).unwrap() + "\n").collect()
}

/// The row of the document's table for this test.
fn row_of(test: &str) -> String {
    let name = format!("`{test}`");
    let document = document();
    let row = document.lines().find(|line| line.starts_with('|') && line.contains(&name));
    row.unwrap_or_else(|| panic!("docs/internals/history*.md have no row for {test}")).to_owned()
}

/// Checks that the document says of `test` that this model catches the bug in this way.
fn is_documented<E: Engine>(test: &str, model: &Model<E>, how: &str) {
    let row = row_of(test);
    for text in [model.name.as_str(), how] {
        assert!(
            row.replace("\\|", "|").contains(text),
            "docs/internals/history*.md do not say of {test}: {text}"
        );
    }
}

/// The unchanged source passes the model `today`. With the bug, the same model fails in this way.
fn caught(test: &str, today: &Model, bug: &Model, how: &str) {
    assert_eq!(today.name, bug.name, "the same model of another type");
    is_documented(test, bug, how);
    println!("{}", today.run(Depth::default()));
    fails(test, bug, None, how);
}

/// As [`caught`], for bugs that need attempts that fail for no reason, which Shuttle has.
fn caught_by_shuttle(test: &str, today: &Model<Shuttle>, bug: &Model<Shuttle>, how: &str) {
    const SCHEDULES: usize = 500;
    let random = || RandomScheduler::new_from_seed(1, SCHEDULES);
    assert_eq!(today.name, bug.name, "the same model of another type");
    is_documented(test, bug, how);
    today.check_with(random());
    let failure = bug.failure(random()).unwrap_or_else(|| panic!("{test}: {} holds", bug.name));
    assert!(failure.message.contains(how), "{test}: {}: {}", bug.name, failure.message);
}

/// The unchanged source passes the model that the document names.
fn holds(test: &str, model: &Model) {
    is_documented(test, model, "Relaxed is enough");
    println!("{}", model.run(Depth::default()));
}

fn fails(test: &str, model: &Model, dropped: Option<Site>, how: &str) {
    let failure = failure_of(model, dropped).unwrap_or_else(|| panic!("{test}: {} holds", model.name));
    assert!(failure.contains(how), "{test}: {}: {failure}", model.name);
}

/// A place in the source of a lock, by name.
#[derive(Clone, Copy)]
struct Place {
    /// Below `crates/core/src` or `crates/collection/src`.
    file: &'static str,
    function: &'static str,
    operation: &'static str,
}

/// The unchanged source passes the model. Without this half of the ordering at this place, the
/// model fails in this way.
fn caught_without(test: &str, half: Half, place: Place, model: &Model, how: &str) {
    is_documented(test, model, how);
    assert!(
        row_of(test).contains(&format!("`{}`", place.function)),
        "docs/internals/history*.md name another place"
    );
    let there = |site: &&Site| {
        site.half == half
            && site.operation == place.operation
            && site.file.ends_with(place.file)
            && function_at(place.file, site.line) == place.function
    };
    let (_, sites) = record(model, Depth::default());
    let sites: Vec<_> = sites.iter().filter(there).collect();
    assert!(!sites.is_empty(), "{test}: {} does not exercise the place", model.name);
    for site in sites {
        fails(test, model, Some(*site), how);
    }
}

fn source(file: &str) -> String {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |locks: &str| fs::read_to_string(crates.join(locks).join(file)).ok();
    read("core/src").or_else(|| read("collection/src")).unwrap_or_else(|| panic!("there is no {file}"))
}

/// The name of the function that contains this line.
fn function_at(file: &str, line: u32) -> String {
    let source = source(file);
    let before: Vec<_> = source.lines().take(line as usize).collect();
    let name = |line: &&str| {
        let name = line.trim_start().split_once("fn ")?.1.split(['(', '<']).next()?;
        (!line.trim_start().starts_with("//")).then(|| name.to_owned())
    };
    before.iter().rev().find_map(name).expect("a line in a function")
}

#[test]
fn every_row_of_the_document_has_its_test() {
    let sources = [
        include_str!("cna.rs"),
        include_str!("counter_mutex.rs"),
        include_str!("lockmgr.rs"),
        include_str!("mcs.rs"),
        include_str!("mtx.rs"),
        include_str!("mutex.rs"),
        include_str!("near_rwlock.rs"),
        include_str!("peers.rs"),
        include_str!("pre_reads.rs"),
        include_str!("qspinlock.rs"),
        include_str!("rw.rs"),
        include_str!("rwsem.rs"),
        include_str!("starvation.rs"),
        include_str!("sx.rs"),
    ];
    let tests: BTreeSet<_> = sources
        .iter()
        .flat_map(|source| source.split("#[test]\n").skip(1))
        // Other attributes may stand between.
        .map(|text| text.split_once("fn ").unwrap().1.split_once('(').unwrap().0.to_owned())
        .collect();
    let last_column = |line: &str| {
        let column = line.strip_prefix('|')?.strip_suffix('|')?.rsplit('|').next()?.trim().to_owned();
        Some(column.strip_prefix('`')?.strip_suffix('`')?.to_owned())
    };
    let rows: Vec<_> = document().lines().filter_map(last_column).collect();
    assert_eq!(rows.len(), tests.len(), "one row for each");
    assert_eq!(rows.into_iter().collect::<BTreeSet<_>>(), tests);
}

/// The tests of bugs that no model here catches.
#[test]
fn the_tests_that_the_document_names_elsewhere_exist() {
    let files = ["freebsd/mtx/tests.rs", "freebsd/rwsx/tests/single.rs", "../../os/tests/lifetime.rs"];
    let sources = files.map(source);
    let document = document();
    let (_, elsewhere) = document.split_once("\n## FreeBSD: shown elsewhere").expect("a section of them");
    // The next page, if another one follows.
    let elsewhere = elsewhere.split("\n# ").next().unwrap_or_default();
    let is_test = |text: &&str| text.contains('_') && !text.contains(['/', '.']);
    let tests: Vec<_> = elsewhere.split('`').skip(1).step_by(2).filter(is_test).collect();
    for test in &tests {
        let name = format!("fn {test}(");
        assert!(sources.iter().any(|source| source.contains(&name)), "{test}");
    }
    assert_eq!(tests.len(), 3);
}

/// The tests of this repository's own faults that no model shows.
#[test]
fn every_fault_of_our_own_has_its_test() {
    let document = document();
    let (_, own) = document.split_once("\n## nearlock's own faults\n").expect("a section of them");
    let rows = own.lines().take_while(|line| !line.starts_with("## ")).filter(|line| line.starts_with("| "));
    let mut tests = 0;
    for row in rows.skip(1) {
        let columns: Vec<_> = row.split('|').map(str::trim).collect();
        let [_, _, _, test, file, _] = columns[..] else { panic!("four columns: {row}") };
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
        let source = fs::read_to_string(path).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(source.contains(&format!("fn {}(", test.trim_matches('`'))), "{file} has no {test}");
        tests += 1;
    }
    assert_ne!(tests, 0);
}
