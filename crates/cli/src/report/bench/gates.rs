//! The table of gates.

use std::io::{self, Write};

use nearlock_bench::bench::{Gate, Verdict};

use super::super::text::{figures, paragraph};
use super::figure;
use super::summary::Table;

/// The table, if there are gates.
pub fn text(out: &mut impl Write, gates: &[Gate]) -> io::Result<()> {
    if gates.is_empty() {
        return Ok(());
    }
    writeln!(out, "\ngates of {}", gates[0].lock)?;
    let headers = ["gate", "figure", "against", "value", "bound", "verdict", "target", "distance"];
    let of = |gate: &Gate| {
        vec![
            gate.name.to_owned(),
            gate.measure.to_owned(),
            gate.baseline.unwrap_or("-").to_owned(),
            figure(Some(gate.value)),
            bound(gate.gate),
            verdict(gate.verdict),
            bound(gate.target),
            distance(gate),
        ]
    };
    writeln!(out, "{}", figures(&headers, 3, gates.iter().map(of).collect()))?;
    let count = |verdict: Verdict| gates.iter().filter(|gate| gate.verdict == Some(verdict)).count();
    let (holds, fails) = (count(Verdict::Holds), count(Verdict::Fails));
    let all = gates.iter().filter(|gate| gate.gate.is_some()).count();
    paragraph(
        out,
        &format!(
            "{holds} of {all} gates hold, and {fails} fail. A gate holds if both quartiles over the rounds meet \
             the bound, and fails if neither does. Times, CPU times and waits are better if they are less."
        ),
    )
}

/// All figures, for a page.
pub fn table(gates: &[Gate]) -> Table {
    let headers = vec![
        "gate",
        "figure",
        "against",
        "situations",
        "rounds",
        "value",
        "quartiles",
        "bound",
        "verdict",
        "target",
        "reached",
        "distance",
    ];
    let of = |gate: &Gate| {
        vec![
            gate.name.to_owned(),
            gate.measure.to_owned(),
            gate.baseline.unwrap_or("-").to_owned(),
            gate.situations.to_string(),
            gate.rounds.to_string(),
            figure(Some(gate.value)),
            format!("{}-{}", figure(Some(gate.low_quartile)), figure(Some(gate.high_quartile))),
            bound(gate.gate),
            verdict(gate.verdict),
            bound(gate.target),
            verdict(gate.target_verdict),
            distance(gate),
        ]
    };
    (headers, gates.iter().map(of).collect())
}

fn bound(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}

fn verdict(verdict: Option<Verdict>) -> String {
    verdict.map_or("-", Verdict::name).to_owned()
}

/// The distance of the median from the target.
fn distance(gate: &Gate) -> String {
    match gate.target_distance {
        None => "-".to_owned(),
        Some(0.0) => "reached".to_owned(),
        Some(share) => format!("{:.0} %", share * 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::text::WIDTH;

    #[test]
    fn the_widest_gate_fits_and_gates_are_counted() {
        let gate = Gate {
            name: "channel 4/4, 4 slots",
            lock: "near-mutex",
            baseline: Some("parking-lot-0.13"),
            measure: "longest wait",
            situations: 63,
            rounds: 20,
            value: 12_345.6,
            low_quartile: 12_000.0,
            high_quartile: 13_000.0,
            gate: Some(20_000.0),
            verdict: Some(Verdict::TooFewRounds),
            target: Some(5000.0),
            target_verdict: Some(Verdict::Fails),
            target_distance: Some(12.34),
        };
        let fails = Gate { verdict: Some(Verdict::Fails), target_distance: Some(0.0), ..gate.clone() };
        let mut shown = Vec::new();
        text(&mut shown, &[gate, fails]).expect("memory can be written");
        let shown = String::from_utf8(shown).expect("text");
        for line in shown.lines() {
            assert!(line.chars().count() <= WIDTH, "{} columns: {line}", line.chars().count());
        }
        assert!(shown.contains("0 of 2 gates hold, and 1 fail"), "{shown}");
        assert!(shown.contains(" 1234 %\n") && shown.contains(" reached\n"), "{shown}");
    }
}
