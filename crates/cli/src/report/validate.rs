//! Measured and simulated figures, for people.

use std::io::{self, Write};

use nearlock_bench::bench::TestBed;
use nearlock_bench::validate::{LOCKS, Report, Row, SECTION_NS, THINK_NS, THREADS, mean_error};
use nearlock_lab::MachineSpec;

use super::bench::figure;
use super::text::{paragraph, wrapped};

/// The head, the cells whose threads think, those whose threads do not, and the means.
pub fn text(out: &mut impl Write, machine: &MachineSpec, this: &TestBed, found: &Report) -> io::Result<()> {
    let model = this.model.as_deref().unwrap_or("an unknown processor");
    let head = format!(
        "MEASURED on {model}, and SIMULATED on {}: sections per microsecond by all threads, and the error of \
         the simulated figure in per cent",
        machine.name
    );
    paragraph(out, &head)?;
    paragraph(out, "iqr: width of the middle half of the bursts, in per cent of their median")?;
    let (thinking, not): (Vec<u64>, Vec<u64>) = THINK_NS.into_iter().partition(|&think_ns| think_ns > 0);
    table(out, &found.rows, &thinking)?;
    table(out, &found.rows, &not)?;
    summary(out, &found.rows)
}

/// A line for each lock, number of threads and section, a column for each of these lengths of
/// thinking.
fn table(out: &mut impl Write, rows: &[Row], thinks_ns: &[u64]) -> io::Result<()> {
    let heads: String = thinks_ns.iter().map(|ns| format!("  {:>31}", format!("think {ns} ns"))).collect();
    writeln!(out, "\n{:26}{heads}", "")?;
    let columns = format!("{:>9} {:>5} {:>8} {:>8}", "measured", "iqr %", "simul.", "err %");
    writeln!(out, "{:<10} threads section{}", "lock", columns.repeat(thinks_ns.len()))?;
    for lock in LOCKS {
        for threads in THREADS {
            for section_ns in SECTION_NS {
                let of_line =
                    |row: &&Row| (row.lock, row.threads, row.section_ns) == (lock, threads, section_ns);
                let of_line: Vec<&Row> = rows.iter().filter(of_line).collect();
                let cells = thinks_ns.iter().filter_map(|ns| of_line.iter().find(|row| row.think_ns == *ns));
                let cells: String = cells.map(|row| cell(row)).collect();
                if !cells.is_empty() {
                    writeln!(out, "{lock:<10} {threads:>7} {section_ns:>7}{cells}")?;
                }
            }
        }
    }
    Ok(())
}

/// Measured, the middle half's width, simulated, and the error.
fn cell(row: &Row) -> String {
    let Row { measured_low, measured_high, measured_ops_per_us, simulated_ops_per_us, error, .. } = row;
    let spread = 100.0 * (measured_high - measured_low) / measured_ops_per_us;
    let (measured, simulated) = (figure(Some(*measured_ops_per_us)), figure(Some(*simulated_ops_per_us)));
    format!("{measured:>9} {:>5.0} {simulated:>8} {:>+8.1}", spread.min(9999.0), (error * 100.0).min(99999.0))
}

/// Mean absolute errors: of all cells, by class, number of threads and lock.
fn summary(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    let shown = |meant: &dyn Fn(&Row) -> bool| match mean_error(rows, meant) {
        Some((mean, cells)) => format!("{:.1} % ({cells} cells)", mean * 100.0),
        None => "no cells".to_owned(),
    };
    writeln!(out, "\nmean absolute error, simulated against measured: {}", shown(&|_| true))?;
    let (thinking, not) = (shown(&Row::thinks), shown(&|row| !row.thinks()));
    writeln!(out, "  threads that think {thinking}, that do not {not}")?;
    let threads = THREADS.map(|threads| format!("{threads}: {}", shown(&|row| row.threads == threads)));
    writeln!(out, "  by threads: {}", threads.join(", "))?;
    let locks = LOCKS.map(|lock| format!("{lock} {}", shown(&|row| row.lock == lock)));
    writeln!(out, "{}", wrapped(&format!("by lock: {}", locks.join(", ")), "  "))?;
    let worst = rows.iter().max_by(|a, b| a.error.abs().total_cmp(&b.error.abs()));
    let Some(Row { lock, threads, section_ns, think_ns, error, .. }) = worst else { return Ok(()) };
    let error = error * 100.0;
    writeln!(
        out,
        "  worst cell: {lock}, threads {threads}, section {section_ns} ns, think {think_ns} ns: {error:+.1} %"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::text::WIDTH;
    use nearlock_bench::validate::grid;

    #[test]
    fn the_widest_figures_fit_and_each_cell_has_its_place() {
        let machine = MachineSpec::builtin("epyc-genoa-2s").expect("is built in");
        let row = |measured: f64, simulated: f64| {
            let machine = machine.name.clone();
            move |cell: &nearlock_bench::validate::Cell| Row {
                machine: machine.clone(),
                lock: cell.lock.name,
                threads: cell.threads,
                section_ns: cell.section_ns,
                think_ns: cell.think_ns,
                measured_ops_per_us: measured,
                measured_low: measured / 1000.0,
                measured_high: measured * 1000.0,
                bursts: 40,
                simulated_ops_per_us: simulated,
                error: simulated / measured - 1.0,
            }
        };
        for (cpus, measured, simulated, lines) in [(2, 1e-7, 12_345.6, 24), (1, 12_345.6, 1e-7, 12)] {
            let rows: Vec<Row> = grid(cpus).iter().map(row(measured, simulated)).collect();
            let found = Report { cells: rows.len(), rows, cpus: vec![0, 1] };
            let mut shown = Vec::new();
            text(&mut shown, &machine, &TestBed::this(), &found).expect("memory can be written");
            let shown = String::from_utf8(shown).expect("text");
            for line in shown.lines() {
                assert!(line.chars().count() <= WIDTH, "{} columns: {line}", line.chars().count());
            }
            let of_lock = |line: &&str| LOCKS.iter().any(|lock| line.starts_with(&format!("{lock} ")));
            assert_eq!(shown.lines().filter(of_lock).count(), 2 * lines, "{shown}");
            assert!(shown.contains(&format!("({} cells)\n  threads that think", lines * 3)), "{shown}");
        }
    }
}
