//! Every lock of core's list: its models hold, each of its orderings is exercised, and each is needed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use nearlock_core::events::LockEvent;
use nearlock_core::subjects::Subject;
use nearlock_model::mutate::{mutants, sites_of};
use nearlock_model::subjects::models_of;

/// All models of these locks, which share their source, and all mutants of it. None may survive: some model of one
/// of the locks fails with it.
fn are_proven(names: &[&str]) {
    let models: Vec<_> = names.iter().flat_map(|name| models_of(name)).collect();
    let survivors: Vec<_> = mutants(&models)
        .into_iter()
        .filter(|mutant| mutant.caught.is_none())
        .map(|mutant| mutant.to_string())
        .collect();
    assert!(survivors.is_empty(), "{survivors:#?}");
}

macro_rules! proven {
    ($($test:ident $($name:literal)+;)*) => {
        $(#[test]
        fn $test() {
            are_proven(&[$($name),+]);
        })*

        #[test]
        fn every_working_lock_is_here() {
            let here = [$($($name),+),*];
            for subject in Subject::working() {
                assert!(here.contains(&subject.name), "{} has no test", subject.name);
                assert!(!models_of(subject.name).is_empty(), "{} has no models", subject.name);
            }
        }
    };
}

proven! {
    tas "tas";
    ttas "ttas";
    ttas_no_preread "ttas-no-preread";
    ticket "ticket";
    clh "clh";
    hmcs "hmcs";
    // What MCS publishes when it leaves no queue matters to MCS alone: as a part of cohort, the global lock does it.
    mcs_and_cohort "mcs" "cohort";
    // What a head that competes says of the queue when it grants matters to CNA only.
    qspinlock_and_cna
        "qspinlock" "qspinlock-steal-once" "qspinlock-steal" "qspinlock-park" "qspinlock-preemptible"
        "qspinlock-preemptible-late" "qspinlock-preemptible-head"
        "cna" "cna-preemptible";
    qspinlock_whole_word "qspinlock-whole-word";
    cna_v13 "cna-v13";
    cna_v13_no_sro "cna-v13-no-sro";
}

/// The lines of a source file, numbered from 1, that name an ordering other than Relaxed in code before the
/// unit tests.
fn lines_with_an_ordering(source: &str) -> Vec<u32> {
    let code = source.lines().take_while(|line| *line != "#[cfg(test)]");
    let names = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        !code.starts_with("use ")
            && code
                .split(|c: char| !c.is_alphanumeric())
                .any(|word| ["Acquire", "Release", "AcqRel", "SeqCst"].contains(&word))
    };
    (1..).zip(code).filter(|(_, line)| names(line)).map(|(number, _)| number).collect()
}

/// The source files of a family of locks, but for unit tests.
fn sources_of(family: &str) -> Vec<String> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src").join(family)];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().unwrap() != "tests.rs" {
                files.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    files
}

/// A call is known by the line of its name; its orderings may follow on further lines.
const LINES_OF_A_CALL: u32 = 6;

#[test]
fn every_ordering_in_the_source_of_a_lock_is_exercised() {
    let mut sites = BTreeSet::new();
    for mut model in Subject::working().flat_map(|subject| models_of(subject.name)) {
        // To see which places there are, few executions will do; but a head goes to sleep only if the holder loses
        // its processor twice.
        let sleeps = model.reaches.contains(&LockEvent::WaitHead);
        model.preemptions = Some(if sleeps { 2 } else { 1 });
        model.reaches = &[];
        sites.extend(sites_of(&model));
    }
    let mut files = 0;
    for family in ["classic", "linux"] {
        for path in sources_of(family) {
            let name = path.rsplit_once("core/src/").unwrap().1.to_owned();
            let exercised: BTreeSet<u32> =
                sites.iter().filter(|site| site.file.ends_with(&name)).map(|site| site.line).collect();
            let lines = lines_with_an_ordering(&fs::read_to_string(&path).unwrap());
            let missing = |line: &&u32| {
                let call = (line.saturating_sub(LINES_OF_A_CALL)..**line)
                    .rev()
                    .find(|line| exercised.contains(line));
                !exercised.contains(line) && call.is_none_or(|call| lines.contains(&call))
            };
            let missing: Vec<_> = lines.iter().filter(missing).collect();
            assert!(missing.is_empty(), "{name}: no model exercises the orderings in lines {missing:?}");
            files += usize::from(!lines.is_empty());
        }
    }
    assert!(files >= 4, "the sources of the locks were found");
}
