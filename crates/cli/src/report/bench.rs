//! The benchmark's figures, for people.

mod gates;
mod html;
mod summary;

use std::io::{self, Write};

use nearlock_bench::bench::{Calibration, Calls, Cell, Gate, Mode, Plan, Point, Row, TestBed};
use nearlock_bench::torture::Waiting;

use super::text::{figures, paragraph};
use super::verdict;
pub use html::html;

/// The results, and where and how they were measured.
pub struct Measured<'a> {
    pub machine: &'a TestBed,
    pub calibration: &'a Calibration,
    pub plan: &'a Plan,
    pub rows: &'a [Row],
    pub gates: &'a [Gate],
    /// Whether other programs ran meanwhile, or the rounds differ much.
    pub is_noisy: bool,
}

/// The conditions, a table for each situation, the means, the verdict and the gates.
pub fn text(out: &mut impl Write, result: &Measured) -> io::Result<()> {
    let Measured { plan, rows, .. } = *result;
    paragraph(out, &conditions(result))?;
    for Cell { mode, point, .. } in &plan.cells {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.is_of(*mode, *point)).collect();
        if !rows.is_empty() {
            writeln!(out, "\n{}", heading(*mode, *point))?;
            table(out, plan, *mode, &rows)?;
        }
    }
    if rows.is_empty() {
        return Ok(());
    }
    summary::text(out, result)?;
    writeln!(out)?;
    legend(out, plan)?;
    for baseline in &plan.baselines {
        if let Some(verdict) = verdict(result, baseline.name()) {
            paragraph(out, &format!("\n{verdict}"))?;
        }
    }
    gates::text(out, result.gates)
}

/// The heading of a situation.
fn heading(mode: Mode, point: Point) -> String {
    match mode.case() {
        Some(case) if point.threads == 1 => format!("{} {case}: 1 thread", mode.name()),
        Some(case) => format!("{} {case}: {} threads", mode.name(), point.threads),
        None if matches!(mode, Mode::Away | Mode::Start) => {
            format!("{}: {} threads", mode.name(), point.threads)
        }
        None => format!("{}: {point}", mode.name()),
    }
}

/// The conclusion from the comparison with a baseline, and whether to trust it.
fn verdict(result: &Measured, baseline: &str) -> Option<String> {
    let verdict = verdict::measured(result.rows, baseline)?;
    let doubt =
        if result.is_noisy { " Other programs ran meanwhile: repeat it on an idle machine." } else { "" };
    Some(verdict + doubt)
}

/// What was measured, where and how, in a line.
pub fn conditions(Measured { machine, calibration, plan, .. }: &Measured) -> String {
    let wait = match plan.waiting {
        Waiting::Spin => "spin",
        Waiting::Yield => "yield",
    };
    let cpus = if machine.cpus == 1 { "CPU" } else { "CPUs" };
    let rounds = if plan.rounds == 1 { "round" } else { "rounds" };
    format!(
        "MEASURED: {} on {}{}, {} {cpus}, governor {}; {}, {}; wait {wait}; clock {:.0} ns; {} {rounds} of \
         {} ms each",
        modes(plan).iter().map(|mode| mode.name()).collect::<Vec<_>>().join(", "),
        machine.model.as_deref().unwrap_or("an unknown processor"),
        if machine.is_virtual { " (virtual)" } else { "" },
        machine.cpus,
        machine.governor.as_deref().unwrap_or("unknown"),
        machine.compiler,
        if machine.optimised { "optimised" } else { "NOT OPTIMISED" },
        calibration.clock_ns,
        plan.rounds,
        plan.window.as_millis(),
    )
}

/// The modes, in their order, each in one of its cases.
fn modes(plan: &Plan) -> Vec<Mode> {
    let mut modes: Vec<_> = plan.cells.iter().map(|cell| cell.mode).collect();
    modes.dedup_by_key(|mode| mode.name());
    modes
}

/// The table of a situation: a line for each lock, with the ratios to all baselines.
fn table(out: &mut impl Write, plan: &Plan, mode: Mode, rows: &[&Row]) -> io::Result<()> {
    let baselines = plan.baselines.len();
    let ratios = ratio_names(plan);
    let mut headers = vec!["lock", "ns/op"];
    let is_rate = mode.is_rate();
    if is_rate {
        headers.push("ops/us");
    }
    headers.extend(ratios.iter().map(String::as_str));
    headers.extend(columns_of(mode).iter().map(|(name, _)| name));
    let locks = rows.len() / baselines;
    let cells_of = |index: usize| {
        let row = rows[index];
        let mut cells = vec![row.lock.to_owned(), figure(row.ns_per_op)];
        if is_rate {
            cells.push(figure(row.ops_per_us));
        }
        cells.extend(rows[index..].iter().step_by(locks).map(|row| figure(row.ratio)));
        if baselines == 1 {
            let (low, high) = (figure(row.ratio_low_quartile), figure(row.ratio_high_quartile));
            cells.push(format!("{low}-{high}"));
        }
        cells.extend(columns_of(mode).iter().map(|(_, cell)| cell(row)));
        cells
    };
    writeln!(out, "{}", figures(&headers, 1, (0..locks).map(cells_of).collect()))
}

/// The names of the columns of ratios.
fn ratio_names(plan: &Plan) -> Vec<String> {
    match plan.baselines.len() {
        1 => ["ratio", "quartiles"].map(str::to_owned).to_vec(),
        several => (1..=several).map(|number| format!("ratio {number}")).collect(),
    }
}

/// The name of a column, and its cell in a row.
type Column = (&'static str, fn(&Row) -> String);

const JAIN: Column = ("jain", |row| figure(row.jain));
const CPU: Column = ("cpu ns/op", |row| figure(row.cpu_ns_per_op));
const WAIT: Column = ("p99.9 us", |row| us(row.wait_ns_p99_9));
const LONGEST: Column = ("max us", |row| us(row.wait_ns_max));
const RMW: Column = ("rmw/op", |row| count(row.rmw_per_op));
const INSTRUCTIONS: Column = ("ins/op", |row| count(row.instructions_per_op));
const BYTES: Column = ("bytes", |row| row.size_bytes.to_string());

/// The columns after the ratios.
fn columns_of(mode: Mode) -> &'static [Column] {
    match mode {
        Mode::Parallel
        | Mode::Free
        | Mode::Oversubscribed
        | Mode::Calls(_)
        | Mode::Condvar(_)
        | Mode::Long(_)
        | Mode::Many(_)
        | Mode::Beside => &[JAIN, CPU, WAIT, LONGEST, BYTES],
        Mode::Uncontended | Mode::Stores(_) => &[RMW, INSTRUCTIONS, BYTES],
        Mode::Handover | Mode::Start => &[WAIT, LONGEST, BYTES],
        Mode::Away | Mode::Wake(_) | Mode::Writer => &[CPU, WAIT, LONGEST, BYTES],
    }
}

/// A time in us.
fn us(ns: Option<u64>) -> String {
    figure(ns.map(|ns| ns as f64 / 1e3))
}

/// A count; `-` if it was not counted.
fn count(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |count| count.to_string())
}

/// A figure with three or four digits, or to the unit; `-` if it was not measured.
pub(super) fn figure(value: Option<f64>) -> String {
    let Some(value) = value else { return "-".to_owned() };
    let digits = match value.abs() {
        1000.0.. => 0,
        100.0.. => 1,
        10.0.. => 2,
        0.1.. | 0.0 => 3,
        0.001.. => 5,
        _ => return format!("{value:.1e}"),
    };
    format!("{value:.digits$}")
}

/// The meaning of a mode's figures.
fn meaning(mode: Mode) -> &'static str {
    match mode {
        Mode::Parallel | Mode::Free | Mode::Oversubscribed => {
            "ns/op: wall time per section, all threads together; jain: 1 is equal shares; p99.9, max: waits, \
             each of them timed, in a separate window after the counted one"
        }
        Mode::Calls(Calls::Open1) => {
            "ns/op: wall time per open and close, all threads together; jain: 1 is equal shares; p99.9, max: \
             waits for the table of descriptors, each of them timed, in a separate window after the counted \
             one"
        }
        Mode::Calls(Calls::Lock2) => {
            "ns/op: wall time per lock or unlock of the record, all threads together; jain: 1 is equal \
             shares; p99.9, max: waits for the list of records and for the table of descriptors, each of \
             them timed, in a separate window after the counted one"
        }
        Mode::Condvar(_) => {
            "ns/op: wall time per message, or per broadcast, all threads together; jain: of the threads whose \
             messages are counted; p99.9, max: from before the lock until the thread holds it and may \
             proceed, in a separate window after the counted one"
        }
        Mode::Long(_) => {
            "ns/op: wall time per section, all threads together; a section sleeps 50 us, or yields, or touches \
             4 fresh pages"
        }
        Mode::Many(_) => "ns/op: wall time per section of a lock that is drawn from a million",
        Mode::Away => {
            "ns/op: wall time of a round, in which a holder sleeps for 20 ms, and then each of 8 waiters gets the \
             lock; cpu ns/op: CPU time of a round; p99.9, max: waits of the waiters, the sleep included"
        }
        Mode::Wake(_) => {
            "ns/op: the median from before the unlock to the return of a waiter that has waited for 1 ms, less \
             one read of the clock; cpu ns/op: CPU time of a round; p99.9, max: as ns/op, with the read"
        }
        Mode::Start => {
            "ns/op: the first lock and unlock of a process whose 16 other threads sleep, the median of some \
             processes; p99.9, max: of all processes"
        }
        Mode::Beside => {
            "ns/op: wall time per section of 4 cache lines, all threads together, while another process \
             computes; cpu ns/op: without that process"
        }
        Mode::Uncontended | Mode::Stores(_) => {
            "ns/op: lock and unlock by one thread, without the loop around them, but with the writes to the \
             lines, if any; ins/op, rmw/op: their \
             instructions, and atomic read-modify-writes among them, counted one by one"
        }
        Mode::Writer => {
            "ns/op: wall time per section of the one thread that writes; the others only read; cpu ns/op: CPU \
             time of all threads for such a section; p99.9, max: waits of the writer, each of them timed, in a \
             separate window after the counted one"
        }
        Mode::Handover => {
            "ns/op: from before the unlock to the waiter's return from lock, less one read of the clock; \
             p99.9, max: the same, with the read"
        }
    }
}

fn legend(out: &mut impl Write, plan: &Plan) -> io::Result<()> {
    let ratios = match &plan.baselines[..] {
        [one] => format!(
            "ratio: times as fast as {} in the same round, median and quartiles over the rounds",
            one.name()
        ),
        several => {
            let each = several.iter().zip(ratio_names(plan)).map(|(baseline, name)| {
                format!("{name}: times as fast as {} in the same round", baseline.name())
            });
            format!(
                "{}; medians over the rounds; JSON and CSV have the quartiles",
                each.collect::<Vec<_>>().join("; ")
            )
        }
    };
    paragraph(out, &ratios)?;
    let mut before = "";
    for mode in modes(plan) {
        let meaning = meaning(mode);
        if meaning != before {
            paragraph(out, &format!("{}: {meaning}", mode.name()))?;
        }
        before = meaning;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::text::WIDTH;
    use nearlock_bench::bench::{CONDVAR_CASES, Candidate, LONG_CASES, WAKE_CASES};
    use std::time::Duration;

    /// Results of a quiet machine.
    fn quiet<'a>(
        (machine, calibration): (&'a TestBed, &'a Calibration),
        plan: &'a Plan,
        rows: &'a [Row],
    ) -> Measured<'a> {
        Measured { machine, calibration, plan, rows, gates: &[], is_noisy: false }
    }

    #[test]
    fn figures_keep_their_digits() {
        for (value, expected) in [
            (123_456.7, "123457"),
            (123.456, "123.5"),
            (12.345_6, "12.35"),
            (1.234_56, "1.235"),
            (0.0, "0.000"),
            (0.012_345, "0.01235"),
            (0.000_012_3, "1.2e-5"),
        ] {
            assert_eq!(figure(Some(value)), expected);
        }
        assert_eq!(figure(None), "-");
    }

    fn widest_row(mode: Mode, lock: Candidate, point: Point) -> Row {
        Row {
            mode: mode.name(),
            case: mode.case(),
            lock: lock.name(),
            baseline: lock.name(),
            summary: None,
            situations: 1,
            threads: Some(point.threads),
            section_ns: Some(point.section_ns),
            think_ns: Some(point.think_ns),
            read_percent: point.read_percent,
            ns_per_op: Some(123_456_789.0),
            ops_per_us: Some(1234.567),
            ratio: Some(1234.56),
            ratio_low_quartile: Some(0.001_234),
            ratio_high_quartile: None,
            rounds: 9,
            jain: Some(1.0),
            wait_ns_p99_9: Some(1_234_567_890),
            wait_ns_max: Some(12_345_678_901),
            cpu_ns_per_op: Some(123_456_789.0),
            cpu_ratio: Some(1234.5),
            instructions_per_op: Some(1234.25),
            rmw_per_op: Some(12.5),
            membarriers_per_s: Some(123_456.7),
            size_bytes: 8,
        }
    }

    #[test]
    fn the_widest_figures_fit() {
        let lock = Candidate::named("qspinlock-whole-word").expect("is in the list");
        let machine = TestBed {
            model: Some("Some Very Long Name of a Processor(R) With Many Cores @ 2.00GHz".to_owned()),
            is_virtual: true,
            cpus: 2,
            allowed: vec![0, 1],
            cores: vec![0, 1],
            governor: None,
            compiler: "rustc 1.95.0 (59807616e 2026-04-14)",
            optimised: false,
            load: None,
        };
        let case = |mode: Mode| (mode, mode.point().expect("the case has its own"));
        for (mode, point) in [
            (
                Mode::Oversubscribed,
                Point {
                    threads: 8192,
                    section_ns: 100_000_000,
                    think_ns: 100_000_000,
                    read_percent: Some(100),
                },
            ),
            (
                Mode::Calls(Calls::Lock2),
                Point { threads: 8192, section_ns: 100_000_000, think_ns: 100_000_000, read_percent: None },
            ),
            (Mode::Uncontended, Point::ALONE),
            (Mode::Handover, Point::handover(7)),
            case(Mode::Condvar(&CONDVAR_CASES[0])),
            case(Mode::Long(&LONG_CASES[0])),
            case(Mode::Wake(&WAKE_CASES[0])),
            case(Mode::Away),
            case(Mode::Start),
        ] {
            let plan = Plan {
                cells: vec![Cell { mode, point, locks: vec![lock], own: None }],
                baselines: vec![lock],
                rounds: 10_000,
                window: Duration::from_secs(60),
                waiting: Waiting::Yield,
                helper: crate::helper::command().expect("this program has a path"),
                settings: nearlock_lab::Setting::DEFAULTS,
            };
            let row = widest_row(mode, lock, point);
            let mut shown = Vec::new();
            let calibration = Calibration::measure();
            let rows = std::slice::from_ref(&row);
            let of = (&machine, &calibration);
            text(&mut shown, &quiet(of, &plan, rows)).expect("memory can be written");
            let plan = Plan { baselines: vec![lock; 2], ..plan };
            let mut of_two = Vec::new();
            let rows = &[row.clone(), Row { ratio: Some(0.25), ..row }];
            text(&mut of_two, &quiet(of, &plan, rows)).expect("memory can be written");
            let [shown, of_two] = [shown, of_two].map(|shown| String::from_utf8(shown).expect("text"));
            for line in shown.lines().chain(of_two.lines()) {
                assert!(line.chars().count() <= WIDTH, "{} columns: {line}", line.chars().count());
            }
            assert!(
                of_two.contains(" 1235   0.250 ") && of_two.contains("ratio 2: times as fast"),
                "{of_two}"
            );
            assert_eq!(shown.contains(" 12.5 "), mode == Mode::Uncontended, "{shown}");
            assert!(shown.contains("NOT OPTIMISED") && shown.contains("0.00123--"), "{shown}");
            assert!(shown.contains("\nqspinlock-whole-word "), "{shown}");
            assert!(shown.contains(" 123456789 ") && shown.contains(&heading(mode, point)), "{shown}");
        }
    }
}
