//! For every lock of the list, and the parts of core that are no locks: the models hold, each
//! ordering is exercised, and each ordering is needed.

#![cfg(target_pointer_width = "64")]

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use nearlock_collection::subjects::Subject;
use nearlock_model::document::{difference, findings, hash_in, render};
use nearlock_model::evidence::Evidence;
use nearlock_model::hash;
use nearlock_model::model::Depth;
use nearlock_model::source;
use nearlock_model::subjects::{all_models, models_of, whole_models_of};

/// The evidence of all models, within their own bounds.
static EVIDENCE: LazyLock<Evidence> =
    LazyLock::new(|| Evidence::gather(&all_models(), Depth::default(), |_| ()));

#[test]
fn the_models_hold_and_no_ordering_is_there_for_nothing() {
    EVIDENCE.runs.iter().for_each(|run| println!("{run}"));
    EVIDENCE.mutants.iter().for_each(|mutant| println!("{mutant}"));
    let (places, strays) = source::places().expect("the sources can be read");
    let findings = findings(&EVIDENCE, &places, &strays);
    assert!(findings.is_empty(), "{findings:#?}");
    assert!(EVIDENCE.mutants.len() >= 60, "{} halves: the sources were found", EVIDENCE.mutants.len());
}

#[test]
fn every_working_lock_has_models() {
    for subject in Subject::working() {
        let models = models_of(subject);
        let of_lock =
            |model: &&nearlock_model::model::Model| model.name.starts_with(&format!("{}: ", subject.name));
        assert!(
            models.len() >= 5 && models.iter().filter(of_lock).count() == models.len(),
            "{}",
            subject.name
        );
        assert!(models.iter().all(|model| EVIDENCE.runs.iter().any(|run| run.model == model.name)));
    }
}

/// The other tests run presets with one preemption less.
#[test]
#[ignore = "takes longer than all other models: .ci/deep orderings"]
fn presets_hold_within_the_bounds_of_their_algorithms() {
    let presets = Subject::working().filter(|subject| !subject.positions.is_empty());
    let models: Vec<_> = presets.flat_map(whole_models_of).collect();
    let runs = Evidence::runs_of(&models);
    runs.iter().for_each(|run| println!("{run}"));
    assert!(runs.len() == models.len() && runs.iter().all(|run| !run.is_cut));
}

#[test]
fn the_document_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/orderings.md");
    let document = fs::read_to_string(path).expect("docs/internals/orderings.md");
    let hash = hash::of_sources().expect("the sources can be read");
    assert_eq!(
        hash_in(&document),
        Some(&*hash),
        "docs/internals/orderings.md was made from other sources: run `cargo xtask orderings`"
    );
    assert_eq!(
        difference(&document, &EVIDENCE).expect("the evidence is complete"),
        None,
        "docs/internals/orderings.md"
    );
}

#[test]
fn a_page_of_orderings_that_was_edited_is_found_out() {
    let made = render(&EVIDENCE, Depth::default()).expect("the evidence is complete");
    assert_eq!(difference(&made, &EVIDENCE).expect("is complete"), None);
    let lists = |lock: &str| made.contains(&format!("\n| {lock}: "));
    assert!(lists("ttas") && !lists("ttas-no-preread"), "models of presets are not listed");
    let row = made.lines().find(|line| line.contains("| Release |")).expect("something is released");
    for edited in [
        made.replacen(&format!("{row}\n"), "", 1),
        made.replacen(row, &row.replace("| Release |", "| Acquire |"), 1),
        made.replacen(row, &format!("{row}\n{row}"), 1),
        made.replacen("\n| mcs: ", "\n| mcs, ", 1),
        made.replace(" halves: ", "1 halves: "),
    ] {
        assert_ne!(difference(&edited, &EVIDENCE).expect("is complete"), None);
    }
}
