//! Every lock of core's list: its models hold, and each of its orderings is needed.

use nearlock_core::subjects::Subject;
use nearlock_model::mutate::mutants;
use nearlock_model::subjects::models_of;

/// All models of the lock, and all mutants of it. None may survive.
fn is_proven(name: &str) {
    let survivors: Vec<_> = mutants(&models_of(name))
        .into_iter()
        .filter(|mutant| mutant.caught.is_none())
        .map(|mutant| mutant.to_string())
        .collect();
    assert!(survivors.is_empty(), "{survivors:#?}");
}

macro_rules! proven {
    ($($test:ident $name:literal)*) => {
        $(#[test]
        fn $test() {
            is_proven($name);
        })*

        #[test]
        fn every_working_lock_is_here() {
            let here = [$($name),*];
            for subject in Subject::working() {
                assert!(here.contains(&subject.name), "{} has no test", subject.name);
                assert!(!models_of(subject.name).is_empty(), "{} has no models", subject.name);
            }
        }
    };
}

proven! {
    ttas "ttas"
    ttas_no_preread "ttas-no-preread"
    mcs "mcs"
    qspinlock "qspinlock"
    qspinlock_whole_word "qspinlock-whole-word"
    cna_v13 "cna-v13"
    cna_v13_no_sro "cna-v13-no-sro"
}
