use std::collections::BTreeSet;

use super::super::candidate::Candidate;
use super::super::condvar::CONDVAR_CASES;
use super::super::long::LONG_CASES;
use super::super::many::MANY_CASES;
use super::super::uncontended::STORES_CASES;
use super::*;

fn spec(measure: Measure, fold: Fold, gate: f64, target: f64) -> Spec {
    let (gate, target) = (Some(gate), Some(target));
    Spec { name: "a gate", is_in: |_, _| true, baseline: Some("std"), measure, fold, gate, target }
}

fn result(spec: &Spec, figures: &[f64]) -> Gate {
    spec.result(&[figures.to_vec()]).expect("there are figures")
}

#[test]
fn a_gate_fails_if_the_better_quartile_misses_it() {
    let more = spec(Measure::Throughput, Fold::One, 0.9, 1.1);
    for (figures, verdict, target) in [
        ([0.5, 0.6, 0.7, 0.8, 0.8, 0.8, 0.8], Verdict::Fails, Verdict::Fails),
        ([0.7, 0.7, 0.8, 0.8, 1.0, 1.0, 1.0], Verdict::Undecided, Verdict::Fails),
        ([0.7, 1.0, 1.0, 1.0, 1.0, 1.3, 1.3], Verdict::Holds, Verdict::Undecided),
        ([1.2; 7], Verdict::Holds, Verdict::Holds),
    ] {
        let gate = result(&more, &figures);
        assert_eq!((gate.verdict, gate.target_verdict), (Some(verdict), Some(target)), "{figures:?}");
    }
    let less = spec(Measure::Cpu, Fold::One, 1.2, 0.8);
    assert_eq!(result(&less, &[1.3; 7]).verdict, Some(Verdict::Fails));
    let gate = result(&less, &[1.0; 7]);
    assert_eq!((gate.verdict, gate.target_verdict), (Some(Verdict::Holds), Some(Verdict::Fails)));
    assert!((gate.target_distance.unwrap() - 0.25).abs() < 1e-9, "{gate:?}");
    assert_eq!(result(&less, &[0.5; 7]).target_distance, Some(0.0));
}

#[test]
fn six_rounds_are_too_few() {
    let spec = spec(Measure::Throughput, Fold::One, 0.9, 1.1);
    assert_eq!(result(&spec, &[2.0; 6]).verdict, Some(Verdict::TooFewRounds));
    assert!(spec.result(&[]).is_none());
}

#[test]
fn situations_are_folded_in_each_round() {
    let mean = spec(Measure::Throughput, Fold::Mean(2), 0.9, 1.1);
    let situations = [vec![0.5; 8], vec![2.0; 7]];
    let gate = mean.result(&situations).expect("there are two situations");
    assert_eq!((gate.situations, gate.rounds), (2, 7));
    assert!((gate.value - 1.0).abs() < 1e-9, "{gate:?}");
    assert!(mean.result(&situations[..1]).is_none());
    let share = spec(Measure::WaitMax, Fold::Share { within: 2.0, of: 2 }, 0.82, 1.0);
    let gate = share.result(&[vec![2.0; 7], vec![2.1; 7]]).expect("there are two situations");
    assert_eq!((gate.value, gate.verdict), (0.5, Some(Verdict::Fails)));
}

#[test]
fn figures_are_compared_within_a_round() {
    let locks = [LOCK, "std"].map(|name| Candidate::named(name).expect("is in a list")).to_vec();
    let cell = Cell { mode: Mode::Free, point: Point::ALONE, locks, own: None };
    let sample = |ns| Sample { ns_per_op: Some(ns), ..Sample::default() };
    let samples = [Some(vec![sample(10.0), sample(30.0)]), Some(vec![sample(20.0), sample(30.0)])];
    let throughput = spec(Measure::Throughput, Fold::One, 0.9, 1.1);
    assert_eq!(throughput.figures(&cell, &samples), Some(vec![2.0, 1.0]));
    let time = Spec { baseline: None, ..spec(Measure::Time, Fold::One, 20.0, 5.0) };
    assert_eq!(time.figures(&cell, &samples), Some(vec![10.0, 30.0]));
    // A lock that failed has no figures.
    let [own, _] = samples;
    assert_eq!(throughput.figures(&cell, &[own, None]), None);
}

/// All modes with a situation of their own, and the grid as two CPUs have it.
fn situations() -> Vec<(Mode, Point)> {
    let cases = CONDVAR_CASES.iter().map(Mode::Condvar).chain(LONG_CASES.iter().map(Mode::Long));
    let cases = cases.chain(MANY_CASES.iter().map(Mode::Many)).chain(STORES_CASES.iter().map(Mode::Stores));
    let alone = cases.chain([Mode::Uncontended, Mode::Away, Mode::Start]);
    let mut all: Vec<_> = alone.map(|mode| (mode, mode.point().expect("it has its own"))).collect();
    all.extend([16, 64].map(|threads| (Mode::Beside, Point { threads, ..Point::ALONE })));
    for (mode, threads) in [
        (Mode::Parallel, 2),
        (Mode::Free, 1),
        (Mode::Free, 2),
        (Mode::Oversubscribed, 4),
        (Mode::Oversubscribed, 8),
        (Mode::Oversubscribed, 16),
        (Mode::Oversubscribed, 32),
        (Mode::Oversubscribed, 64),
    ] {
        for section_ns in super::super::Grid::SECTION_NS {
            for think_ns in super::super::Grid::THINK_NS {
                all.push((mode, Point { threads, section_ns, think_ns, read_percent: None }));
            }
        }
    }
    all
}

#[test]
fn every_gate_has_its_situations() {
    let situations = situations();
    let mut names = BTreeSet::new();
    for spec in &GATES {
        let of = situations.iter().filter(|(mode, point)| (spec.is_in)(*mode, *point)).count();
        assert_eq!(of, spec.fold.least(), "{}", spec.name);
        assert!(spec.gate.is_some() || spec.target.is_some(), "{}", spec.name);
        assert!(names.insert((spec.name, spec.measure.name())), "{} twice", spec.name);
        let known = |name: &str| Candidate::named(name).is_ok();
        assert!(spec.baseline.is_none_or(known), "{}", spec.name);
    }
}
