//! The table of gates.

use std::io::{self, Write};

use nearlock_bench::bench::{Gate, GateCell, Verdict};

use super::super::text::{figures, paragraph};
use super::figure;
use super::summary::{Table, reads};

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
    let has_cells = gates.iter().any(|gate| !gate.cells.is_empty());
    let (headers, cells) = cells(gates);
    if !cells.is_empty() {
        writeln!(out, "\n{CELLS}")?;
        writeln!(out, "{}\n", figures(&headers, 2, cells))?;
    }
    let count = |verdict: Verdict| gates.iter().filter(|gate| gate.verdict == Some(verdict)).count();
    let (holds, fails) = (count(Verdict::Holds), count(Verdict::Fails));
    let all = gates.iter().filter(|gate| gate.gate.is_some()).count();
    paragraph(
        out,
        &format!(
            "{holds} of {all} gates hold, and {fails} fail. A gate holds if both quartiles over the rounds meet \
             the bound, and fails if neither does. Times, CPU times and waits are better if they are less.{}",
            if has_cells { EACH } else { "" },
        ),
    )
}

/// The rule of gates about each situation.
const EACH: &str = " A gate about each situation fails if one of them does, and holds if at most one in twenty is \
                    undecided; its value is that of the worst one.";

/// The heading of [`cells`].
pub const CELLS: &str = "situations of the gates about each: the worst one, and all others that do not hold";

/// The situations of the gates about each situation. Each such gate has a figure of its own.
pub fn cells(gates: &[Gate]) -> Table {
    let headers =
        vec!["figure", "mode", "thr.", "section", "think", "reads", "value", "quartiles", "verdict"];
    let of = |gate: &Gate, cell: &GateCell| {
        vec![
            gate.measure.to_owned(),
            cell.mode.to_owned(),
            cell.threads.to_string(),
            cell.section_ns.to_string(),
            cell.think_ns.to_string(),
            reads(cell.read_percent),
            figure(Some(cell.value)),
            format!("{} to {}", figure(Some(cell.low_quartile)), figure(Some(cell.high_quartile))),
            cell.verdict.name().to_owned(),
        ]
    };
    let of_gate = |gate: &Gate| gate.cells.iter().map(|cell| of(gate, cell)).collect::<Vec<_>>();
    (headers, gates.iter().flat_map(of_gate).collect())
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

    /// The text, which must fit.
    fn shown(gates: &[Gate]) -> String {
        let mut shown = Vec::new();
        text(&mut shown, gates).expect("memory can be written");
        let shown = String::from_utf8(shown).expect("text");
        for line in shown.lines() {
            assert!(line.chars().count() <= WIDTH, "{} columns: {line}", line.chars().count());
        }
        shown
    }

    #[test]
    fn situations_of_a_gate_are_listed() {
        let cell = |threads, value: f64, verdict| GateCell {
            mode: "oversubscribed",
            threads,
            section_ns: 1000,
            think_ns: 500,
            read_percent: Some(99),
            value,
            low_quartile: value - 0.0123,
            high_quartile: value + 0.01,
            verdict,
        };
        let gate = Gate {
            name: "read, uncontended",
            lock: "near-rwlock",
            baseline: Some("parking-lot-0.13-rwlock"),
            measure: "Jain difference",
            situations: 108,
            rounds: 7,
            value: -0.123_45,
            low_quartile: -0.2,
            high_quartile: -0.1,
            gate: Some(-0.05),
            verdict: Some(Verdict::Fails),
            target: Some(-0.01),
            target_verdict: Some(Verdict::Fails),
            target_distance: Some(12.34),
            cells: vec![cell(64, -0.123_45, Verdict::Fails), cell(8, -0.051, Verdict::Undecided)],
        };
        let shown = shown(&[gate]);
        for expected in ["gates of near-rwlock\n", CELLS, " -0.123 ", " 99 % ", " undecided\n", EACH.trim()] {
            let expected = expected.split_whitespace().collect::<Vec<_>>().join(" ");
            let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(&expected), "{expected}: {shown}");
        }
        assert_eq!(shown.matches(" oversubscribed ").count(), 2, "{shown}");
    }

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
            cells: Vec::new(),
        };
        let fails = Gate { verdict: Some(Verdict::Fails), target_distance: Some(0.0), ..gate.clone() };
        let shown = shown(&[gate, fails]);
        assert!(!shown.contains("about each"), "{shown}");
        assert!(shown.contains("0 of 2 gates hold, and 1 fail"), "{shown}");
        assert!(shown.contains(" 1234 %\n") && shown.contains(" reached\n"), "{shown}");
    }
}
