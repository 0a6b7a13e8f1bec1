//! The modes that are measured, and their cases.

use clap::ValueEnum;
use nearlock_bench::bench::{
    CONDVAR_CASES, Calls, LONG_CASES, MANY_CASES, Mode, STORES_CASES, TestBed, WAKE_CASES,
};
use nearlock_lab::names;

use crate::args::{BenchArgs, BenchMode};

/// A case that no requested mode has.
#[derive(Debug, thiserror::Error)]
#[error("--case {case}: {}", cases(.known))]
pub struct UnknownCase {
    case: String,
    known: Vec<&'static str>,
}

/// The names of the cases that there are.
fn cases(known: &[&str]) -> String {
    match known {
        [] => "the requested modes have no cases; name a mode that has, as in --mode condvar".to_owned(),
        known => format!("no such case; there are {}", known.join(", ")),
    }
}

/// The default modes.
const MODES: [BenchMode; 4] =
    [BenchMode::Uncontended, BenchMode::Parallel, BenchMode::Free, BenchMode::Oversubscribed];

/// What a benchmark without flags measures in addition: a case of each kind, where it takes little
/// time.
const CHOICE: [(BenchMode, Option<&str>); 8] = [
    (BenchMode::Condvar, Some("ping-pong-under-one-cpu")),
    (BenchMode::Condvar, Some("channel-4-4-slots-4")),
    (BenchMode::Condvar, Some("queue-all-10-10-slots-1")),
    (BenchMode::Long, Some("yield")),
    (BenchMode::Many, Some("shared")),
    (BenchMode::Away, None),
    (BenchMode::Wake, Some("busy")),
    (BenchMode::Start, None),
];
/// The case of uncontended locks in a benchmark without flags.
const LINES: &str = "lines-4";

/// The mode, in all its cases.
fn with_cases(mode: BenchMode) -> Vec<Mode> {
    match mode {
        BenchMode::Uncontended => {
            [Mode::Uncontended].into_iter().chain(STORES_CASES.iter().map(Mode::Stores)).collect()
        }
        BenchMode::Parallel => vec![Mode::Parallel],
        BenchMode::Free => vec![Mode::Free],
        BenchMode::Oversubscribed => vec![Mode::Oversubscribed],
        BenchMode::Handover => vec![Mode::Handover],
        BenchMode::Open1 => vec![Mode::Calls(Calls::Open1)],
        BenchMode::Lock2 => vec![Mode::Calls(Calls::Lock2)],
        BenchMode::Condvar => CONDVAR_CASES.iter().map(Mode::Condvar).collect(),
        BenchMode::Long => LONG_CASES.iter().map(Mode::Long).collect(),
        BenchMode::Many => MANY_CASES.iter().map(Mode::Many).collect(),
        BenchMode::Away => vec![Mode::Away],
        BenchMode::Wake => WAKE_CASES.iter().map(Mode::Wake).collect(),
        BenchMode::Start => vec![Mode::Start],
        BenchMode::Beside => vec![Mode::Beside],
        BenchMode::Writer => vec![Mode::Writer],
    }
}

/// Whether the mode is measured without `--case`.
fn is_default(mode: &Mode) -> bool {
    !matches!(mode, Mode::Stores(_))
}

/// The requested modes, in the requested cases. A mode that has none of these is measured as
/// without `--case`.
///
/// # Errors
///
/// If no requested mode has a requested case.
pub fn of(args: &BenchArgs, machine: &TestBed) -> Result<Vec<Mode>, UnknownCase> {
    if args.is_full_with_readers() {
        return Ok(super::readers::MODES.to_vec());
    }
    if args.full {
        let all = BenchMode::value_variants().iter().copied().flat_map(with_cases);
        // The default lock has no readers.
        let all = all.filter(|mode| *mode != Mode::Writer);
        return Ok(all.filter(|mode| machine.allowed.len() >= 2 || !mode.needs_two_cpus()).collect());
    }
    let asked = if args.mode.is_empty() { &MODES[..] } else { &args.mode };
    let all: Vec<Vec<Mode>> = asked.iter().copied().map(with_cases).collect();
    let is = |mode: &Mode, name: &str| mode.case() == Some(name);
    let unknown = |name: &&String| !all.iter().flatten().any(|mode| is(mode, name));
    if let Some(case) = args.case.iter().find(unknown) {
        let known = all.iter().flatten().filter_map(|mode| mode.case()).collect();
        return Err(UnknownCase { case: names::escaped(case), known });
    }
    let named = |mode: &Mode| args.case.iter().any(|name| is(mode, name));
    let of_plain = |mode: &Mode| is_default(mode) || args.is_plain() && is(mode, LINES);
    let selected = |cases: Vec<Mode>| -> Vec<Mode> {
        match cases.iter().any(named) {
            true => cases.into_iter().filter(named).collect(),
            false => cases.into_iter().filter(of_plain).collect(),
        }
    };
    let mut modes: Vec<Mode> = all.into_iter().flat_map(selected).collect();
    if args.is_plain() {
        let chosen = |(mode, case): &(BenchMode, Option<&str>)| {
            with_cases(*mode).into_iter().find(|mode| mode.case() == *case)
        };
        modes.extend(CHOICE.iter().filter_map(chosen));
    }
    Ok(modes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_is_a_case() {
        for (mode, case) in CHOICE {
            assert!(with_cases(mode).iter().any(|mode| mode.case() == case), "{case:?}");
        }
        assert!(STORES_CASES.iter().any(|case| case.name == LINES));
    }
}
