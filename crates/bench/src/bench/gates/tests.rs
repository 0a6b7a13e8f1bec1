use std::collections::BTreeSet;

use super::super::candidate::Candidate;
use super::super::condvar::CONDVAR_CASES;
use super::super::long::LONG_CASES;
use super::super::many::MANY_CASES;
use super::super::mode::RwGrid;
use super::super::uncontended::STORES_CASES;
use super::super::writer::{WRITER_SECTION_NS, WRITER_THINK_NS, WRITER_THREADS};
use super::table::LOCK;
use super::*;

fn spec(measure: Measure, fold: Fold, gate: f64, target: f64) -> Spec {
    let (gate, target) = (Some(gate), Some(target));
    let against = Against::RatioTo("std");
    Spec { name: "a gate", lock: LOCK, is_in: |_, _| true, against, measure, fold, gate, target }
}

/// Situations that differ in their numbers of threads: 1, 2 and so on.
fn situations<const N: usize>(all: [Vec<f64>; N]) -> Vec<Situation> {
    let of = |(index, figures)| Situation {
        mode: Mode::Free,
        point: Point { threads: index + 1, ..Point::ALONE },
        baseline: Some("std"),
        figures,
    };
    all.into_iter().enumerate().map(of).collect()
}

fn result(spec: &Spec, figures: &[f64]) -> Gate {
    spec.result(&situations([figures.to_vec()])).expect("there are figures")
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
    let two = situations([vec![0.5; 8], vec![2.0; 7]]);
    let gate = mean.result(&two).expect("there are two situations");
    assert_eq!((gate.situations, gate.rounds), (2, 7));
    assert!((gate.value - 1.0).abs() < 1e-9, "{gate:?}");
    assert!(mean.result(&two[..1]).is_none());
    let share = spec(Measure::WaitMax, Fold::Share { within: 2.0, of: 2 }, 0.82, 1.0);
    let gate = share.result(&situations([vec![2.0; 7], vec![2.1; 7]])).expect("there are two situations");
    assert_eq!((gate.value, gate.verdict), (0.5, Some(Verdict::Fails)));
}

/// A gate that no situation may be under 0.85 of.
fn each(of: usize) -> Spec {
    spec(Measure::Throughput, Fold::Each(of), 0.85, 0.95)
}

const FAILS: [f64; 7] = [0.8, 0.8, 0.8, 0.84, 0.84, 0.84, 0.9];
const STRADDLES: [f64; 7] = [0.8, 0.8, 0.84, 0.84, 0.86, 0.86, 0.9];
const HOLDS: [f64; 7] = [0.8, 0.86, 0.86, 0.9, 0.9, 0.9, 0.9];

#[test]
fn each_situation_has_its_own_verdict_and_the_worst_is_shown() {
    let gate = each(3).result(&situations([HOLDS, [1.2; 7], HOLDS].map(Vec::from))).expect("three");
    assert_eq!((gate.verdict, gate.target_verdict), (Some(Verdict::Holds), Some(Verdict::Fails)));
    assert_eq!((gate.value, gate.low_quartile, gate.high_quartile), (0.9, 0.86, 0.9));
    assert_eq!(gate.cells.len(), 1, "the worst is listed in any case: {gate:?}");
    assert_eq!((gate.cells[0].value, gate.cells[0].verdict), (0.9, Verdict::Holds));
    let gate = each(3).result(&situations([HOLDS, STRADDLES, FAILS].map(Vec::from))).expect("three");
    assert_eq!(gate.verdict, Some(Verdict::Fails));
    let listed: Vec<_> = gate.cells.iter().map(|cell| (cell.threads, cell.verdict)).collect();
    assert_eq!(listed.len(), 2, "{gate:?}");
    assert!(listed.contains(&(3, Verdict::Fails)) && listed.contains(&(2, Verdict::Undecided)), "{gate:?}");
    assert!(each(3).result(&situations([HOLDS, HOLDS].map(Vec::from))).is_none(), "one is missing");
    // Less is better here, so the worst has the greatest figure.
    let calls = spec(Measure::Membarriers, Fold::Each(2), 10_000.0, 1.0);
    let gate = calls.result(&situations([vec![9.0; 7], vec![20_000.0; 7]])).expect("two");
    assert_eq!((gate.value, gate.verdict, gate.cells[0].threads), (20_000.0, Some(Verdict::Fails), 2));
}

#[test]
fn one_in_twenty_situations_may_be_undecided() {
    let of = |undecided: usize| {
        let mut all = [(); 40].map(|()| HOLDS.to_vec());
        all[..undecided].fill(STRADDLES.to_vec());
        each(40).result(&situations(all)).expect("all are there")
    };
    assert_eq!((of(2).verdict, of(2).cells.len()), (Some(Verdict::Holds), 2));
    assert_eq!((of(3).verdict, of(3).cells.len()), (Some(Verdict::Undecided), 3));
    let few = each(1).result(&situations([STRADDLES.to_vec()])).expect("it is there");
    assert_eq!(few.verdict, Some(Verdict::Undecided));
    let few = each(1).result(&situations([FAILS[..6].to_vec()])).expect("it is there");
    assert_eq!((few.verdict, few.cells[0].verdict), (Some(Verdict::TooFewRounds), Verdict::TooFewRounds));
}

/// A situation of these locks, with a time of each of them in each round.
fn measured<const N: usize>(times: [(&str, &[f64]); N]) -> (Cell, Vec<Option<Vec<Sample>>>) {
    let locks = times.map(|(name, _)| Candidate::named(name).expect("is in a list")).to_vec();
    let cell = Cell { mode: Mode::Free, point: Point::ALONE, locks, own: None };
    let sample = |&ns: &f64| Sample { ns_per_op: Some(ns), jain: Some(ns / 100.0), ..Sample::default() };
    (cell, times.map(|(_, times)| Some(times.iter().map(sample).collect())).to_vec())
}

#[test]
fn figures_are_compared_within_a_round() {
    let (cell, samples) = measured([(LOCK, &[10.0, 30.0]), ("std", &[20.0, 30.0])]);
    let throughput = spec(Measure::Throughput, Fold::One, 0.9, 1.1);
    let figures = |spec: &Spec, samples: &[_]| spec.situation(&cell, samples).map(|of| of.figures);
    assert_eq!(figures(&throughput, &samples), Some(vec![2.0, 1.0]));
    let time = Spec { against: Against::Nothing, ..spec(Measure::Time, Fold::One, 20.0, 5.0) };
    assert_eq!(figures(&time, &samples), Some(vec![10.0, 30.0]));
    let jain = Spec { against: Against::DifferenceFrom("std"), ..spec(Measure::Jain, Fold::One, -0.05, 0.1) };
    let gate = jain.result(&[jain.situation(&cell, &samples).expect("both are measured")]).expect("it is");
    assert!((gate.low_quartile + 0.075).abs() < 1e-9 && gate.high_quartile < 0.0, "{gate:?}");
    assert_eq!((gate.measure, gate.baseline), ("Jain difference", Some("std")));
    let elsewhere = Spec { is_in: |_, _| false, ..spec(Measure::Time, Fold::One, 1.0, 1.0) };
    assert_eq!(figures(&elsewhere, &samples), None);
    // A lock that failed has no figures.
    let [own, _] = <[_; 2]>::try_from(samples).expect("two locks");
    assert_eq!(figures(&throughput, &[own, None]), None);
}

#[test]
fn the_fastest_peer_is_one_whose_waiters_sleep() {
    // `spin` is faster, and so is `mcs`, which is no peer. `std` is faster in one round only.
    let of_least = |std: &[f64]| {
        let (cell, samples) = measured([
            (LOCK, &[1.0, 2.0, 3.0]),
            ("mcs", &[1.0, 1.0, 1.0]),
            ("spin", &[4.0, 4.0, 4.0]),
            ("usync", &[10.0, 10.0, 10.0]),
            ("std", std),
        ]);
        let least = Spec { against: Against::RatioToLeast, ..spec(Measure::Time, Fold::One, 0.15, 0.1) };
        let Situation { baseline, figures, .. } = least.situation(&cell, &samples).expect("is measured");
        (baseline, figures)
    };
    assert_eq!(of_least(&[5.0, 20.0, 20.0]), (Some("usync"), vec![0.1, 0.2, 0.3]));
    assert_eq!(of_least(&[5.0, 5.0, 20.0]), (Some("std"), vec![0.2, 0.4, 0.15]));
    let (cell, samples) = measured([(LOCK, &[1.0]), ("spin", &[4.0])]);
    let least = Spec { against: Against::RatioToLeast, ..spec(Measure::Time, Fold::One, 0.15, 0.1) };
    assert!(least.situation(&cell, &samples).is_none(), "no waiter sleeps");
}

/// All modes with a situation of their own, and the grid as two CPUs have it.
fn measured_situations() -> Vec<(Mode, Point)> {
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
    all.extend(of_rwlocks());
    all
}

/// Those of reader-writer locks.
fn of_rwlocks() -> Vec<(Mode, Point)> {
    let pair = |percent| (Mode::Uncontended, Point { read_percent: Some(percent), ..Point::ALONE });
    let mut all = vec![pair(0), pair(100)];
    let sections = RwGrid::READERS_SECTION_NS;
    all.extend(sections.map(|section_ns| {
        let point = Point { threads: 2, section_ns, think_ns: 0, read_percent: Some(100) };
        (Mode::Parallel, point)
    }));
    let ([threads], [section_ns], [think_ns]) = (WRITER_THREADS, WRITER_SECTION_NS, WRITER_THINK_NS);
    all.push((Mode::Writer, Point { threads, section_ns, think_ns, read_percent: None }));
    for threads in RwGrid::THREADS {
        let mode = if threads <= 2 { Mode::Free } else { Mode::Oversubscribed };
        for section_ns in RwGrid::SECTION_NS {
            for think_ns in RwGrid::THINK_NS {
                for percent in RwGrid::MIXED {
                    all.push((mode, Point { threads, section_ns, think_ns, read_percent: Some(percent) }));
                }
            }
        }
    }
    all
}

#[test]
fn every_gate_has_its_situations() {
    let situations = measured_situations();
    let mut names = BTreeSet::new();
    for spec in super::all() {
        let of = situations.iter().filter(|(mode, point)| (spec.is_in)(*mode, *point)).count();
        assert_eq!(of, spec.fold.least(), "{}", spec.name);
        assert!(spec.gate.is_some() || spec.target.is_some(), "{}", spec.name);
        assert!(names.insert((spec.lock, spec.name, spec.measure.name())), "{} twice", spec.name);
        let known = |name: &str| Candidate::named(name).is_ok();
        assert!(known(spec.lock), "{}", spec.lock);
        match spec.against {
            Against::RatioTo(baseline) | Against::DifferenceFrom(baseline) => {
                assert!(known(baseline), "{}", spec.name);
            }
            Against::Nothing | Against::RatioToLeast => {}
        }
    }
}
