//! Text for people, as wide as the terminal.

use std::env;
use std::io::{self, Write};
use std::mem;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table as Grid, presets};
use nearlock_bench::torture::churn::Churn;
use nearlock_bench::torture::{Counts, GivenUp, NumaNodes, Plan, Storm, Threads, Tortured, Totals, Waiting};
use nearlock_lab::simulate::Simulated;
use nearlock_lab::{LockEvent, Subject};

use super::lockstat::{self, Clock};
use super::verdict;

/// Columns of a line, unless the terminal says otherwise.
pub const WIDTH: usize = 100;
/// Narrower lines would be broken at each word, and wider ones are hard to read.
const WIDTHS: RangeInclusive<usize> = 60..=200;

/// Columns of a line: those of the terminal that standard output is, or those that the variable
/// `COLUMNS` says, from 60 to 200; otherwise [`WIDTH`].
pub fn width() -> usize {
    static COLUMNS: LazyLock<usize> = LazyLock::new(|| {
        let terminal = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
        let variable = || env::var("COLUMNS").ok()?.parse().ok();
        columns(terminal.or_else(variable))
    });
    *COLUMNS
}

fn columns(known: Option<usize>) -> usize {
    known.map_or(WIDTH, |columns| columns.clamp(*WIDTHS.start(), *WIDTHS.end()))
}

/// Writes a paragraph, broken into lines.
pub fn paragraph(out: &mut impl Write, text: &str) -> io::Result<()> {
    let indented = text.trim_start_matches('\n');
    let blank_lines = text.len() - indented.len();
    writeln!(out, "{}{}", "\n".repeat(blank_lines), wrapped(indented, ""))
}

/// The words in lines that begin with `indent`.
pub fn wrapped(text: &str, indent: &str) -> String {
    let width = width();
    let mut lines = vec![indent.to_owned()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("begins with one line, and grows");
        if line.chars().count() + 1 + word.chars().count() > width && line.len() > indent.len() {
            lines.push(format!("{indent}{word}"));
        } else {
            if line.len() > indent.len() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// The line, broken if it is long and not indented. Indented lines are part of a drawing.
pub fn wrapped_line(line: &str) -> String {
    if line.chars().count() <= width() || line.starts_with(' ') { line.to_owned() } else { wrapped(line, "") }
}

/// Fields that are separated by two spaces, in lines. Lines after the first are indented.
fn fields(text: &str) -> String {
    const INDENT: &str = "    ";
    let mut lines = vec![String::new()];
    for field in text.split("  ") {
        let line = lines.last_mut().expect("begins with one line, and grows");
        if line.is_empty() {
            line.push_str(field);
        } else if line.len() + 2 + field.len() > width() {
            lines.push(format!("{INDENT}{field}"));
        } else {
            line.push_str("  ");
            line.push_str(field);
        }
    }
    lines.join("\n")
}

/// A grid without lines.
pub(super) fn grid(headers: &[&str]) -> Grid {
    let mut grid = Grid::new();
    grid.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    grid.set_width(width() as u16).set_header(headers);
    for column in grid.column_iter_mut() {
        column.set_padding((0, 2));
    }
    grid
}

/// Its lines.
pub(super) fn render(grid: &Grid) -> String {
    let lines: Vec<_> = grid.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// The least room for a column whose cells are broken into lines.
const BROKEN_ROOM: usize = 20;

/// A table of names. Only the column `broken` is broken into lines if the table is too wide. If
/// there is little room for it, the cells of a row are below its name instead.
pub fn list_table<const COLUMNS: usize>(
    headers: &[&str; COLUMNS],
    broken: usize,
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> String {
    let rows: Vec<_> = rows.into_iter().collect();
    let width_of = |column: usize| {
        let cells = rows.iter().flat_map(|row| row[column].lines()).map(|line| line.chars().count());
        2 + cells.chain([headers[column].chars().count()]).max().unwrap_or(0)
    };
    let fixed: usize = (0..COLUMNS).filter(|&column| column != broken).map(width_of).sum();
    if fixed + BROKEN_ROOM.min(width_of(broken)) > width() {
        return rows.iter().map(|row| record(headers, row)).collect::<Vec<_>>().join("\n");
    }
    let mut grid = grid(headers);
    grid.add_rows(rows);
    for (index, column) in grid.column_iter_mut().enumerate() {
        if index != broken {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    render(&grid)
}

/// A row as lines: its name, and each other cell that is not empty, with its header.
fn record<const COLUMNS: usize>(headers: &[&str; COLUMNS], row: &[String; COLUMNS]) -> String {
    let mut lines = vec![row[0].clone()];
    for (header, cell) in headers.iter().zip(row).skip(1).filter(|(_, cell)| !cell.is_empty()) {
        let header = if header.is_empty() { String::new() } else { format!("{header}: ") };
        lines.push(wrapped(&format!("{header}{}", cell.replace('\n', " ")), "    "));
    }
    lines.join("\n")
}

/// A table of figures, named by the first `keys` columns. No cell is broken into lines. If there is
/// no room for all columns, there are several blocks, each of which begins with the keys. A name
/// for which there is no room has its own line.
pub(super) fn figures(headers: &[&str], keys: usize, rows: Vec<Vec<String>>) -> String {
    let widths: Vec<usize> = (0..headers.len())
        .map(|column| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            1 + cells.chain([headers[column].chars().count()]).max().unwrap_or(0)
        })
        .collect();
    let mut blocks = vec![];
    let mut first = keys;
    // A name may have its own line, so that its width does not count.
    let room = width().saturating_sub(widths[1..keys].iter().sum::<usize>() + NAME_ROOM.min(widths[0]));
    while first < headers.len() || blocks.is_empty() {
        let mut last = first + 1;
        while last < headers.len() && widths[first..=last].iter().sum::<usize>() <= room {
            last += 1;
        }
        let columns: Vec<usize> = (0..keys).chain(first..last.min(headers.len())).collect();
        let of = |row: &Vec<String>| columns.iter().map(|&column| row[column].clone()).collect();
        let heads: Vec<&str> = columns.iter().map(|&column| headers[column]).collect();
        blocks.push(block(&heads, rows.iter().map(of).collect()));
        first = last;
    }
    blocks.join("\n\n")
}

/// The least room for a name if there are many columns.
const NAME_ROOM: usize = 12;

fn block(headers: &[&str], mut rows: Vec<Vec<String>>) -> String {
    let column_width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([headers[column].chars().count()]).max().unwrap_or(0)
    };
    let room = width().saturating_sub((1..headers.len()).map(|column| column_width(column) + 1).sum());
    let too_long = |row: &mut Vec<String>| (row[0].chars().count() > room).then(|| mem::take(&mut row[0]));
    let names: Vec<Option<String>> = rows.iter_mut().map(too_long).collect();
    let mut grid = grid(headers);
    grid.set_content_arrangement(ContentArrangement::Disabled);
    grid.add_rows(rows);
    for column in grid.column_iter_mut() {
        column.set_padding((0, 1));
    }
    for column in grid.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let figures = render(&grid);
    let names = std::iter::once(None).chain(names);
    let lines = figures.lines().zip(names).flat_map(|(line, name)| name.into_iter().chain([line.to_owned()]));
    lines.collect::<Vec<_>>().join("\n")
}

/// The number of digits that are shown of a seed that is too long for its column. They distinguish
/// as many seeds as a run can have.
const SEED_DIGITS: usize = 5;

/// Simulated cells. No cell is broken into lines.
pub fn simulated(out: &mut impl Write, rows: &[Simulated]) -> io::Result<()> {
    let Some(first) = rows.first() else { return Ok(()) };
    writeln!(out, "SIMULATED: {} on {}; times in ns", first.workload, first.machine)?;
    let whole = simulated_grid(rows, |seed| seed);
    if whole.lines().count() == 1 + rows.len() {
        writeln!(out, "{whole}")?;
    } else {
        let short = simulated_grid(rows, |seed| match seed.len().checked_sub(SEED_DIGITS) {
            None | Some(0) => seed,
            Some(left_out) => format!("..{}", &seed[left_out..]),
        });
        writeln!(out, "{short}")?;
    }
    let work = if rows.iter().any(|row| row.jobs_per_minute.is_some()) { "jobs" } else { "operations" };
    let mut notes = format!(
        "ratio: {work} over those of the first lock, same threads and seed; jain: 1 is equal shares; \
         CPU/op: CPU time of all threads per acquisition; lines/op, remote: line transfers per acquisition, \
         and those between sockets; local: share of acquisitions whose predecessor ran on the same NUMA node, \
         or was the same thread"
    );
    if first.workload == LONG_HOLDS_IN {
        notes += "; ops/us: the rare long holds, which are not simulated, are included with their mean, 500 \
                  ns / threads";
    }
    paragraph(out, &notes)?;
    for row in rows {
        if let Some(statistics) = &row.lockstat {
            let Simulated { lock, threads, seed, .. } = row;
            writeln!(out, "\n{lock}, {threads} threads, seed {seed}:")?;
            lockstat::text(out, statistics, Clock::Virtual, row.window_s)?;
        }
    }
    Ok(())
}

/// The workload with rare long holds.
const LONG_HOLDS_IN: &str = "locktorture";

fn simulated_grid(rows: &[Simulated], seed: impl Fn(String) -> String) -> String {
    let with_jobs = rows.iter().any(|row| row.jobs_per_minute.is_some());
    let mut heads = vec![
        "lock", "threads", "seed", "ops/us", "ratio", "jain", "wait p50", "p99", "max", "CPU/op", "lines/op",
        "remote", "local",
    ];
    if with_jobs {
        heads.push("jobs/min");
    }
    let ratio = |row: &Simulated| {
        let is_base = |base: &&Simulated| {
            base.lock == rows[0].lock && base.threads == row.threads && base.seed == row.seed
        };
        rows.iter().find(is_base).map_or("-".to_owned(), |base| verdict::ratio(row, base))
    };
    let figures_of = |row: &Simulated| {
        let mut cells = vec![
            row.lock.clone(),
            row.threads.to_string(),
            seed(row.seed.to_string()),
            format!("{:.3}", row.ops_per_us),
            ratio(row),
            format!("{:.3}", row.jain),
            row.wait_ns_p50.to_string(),
            row.wait_ns_p99.to_string(),
            row.wait_ns_max.to_string(),
            format!("{:.0}", row.cpu_ns_per_op),
            format!("{:.2}", row.line_transfers_per_op),
            format!("{:.2}", row.remote_transfers_per_op),
            format!("{:.2}", row.local_handover_share),
        ];
        if with_jobs {
            cells.push(row.jobs_per_minute.map_or_else(|| "-".to_owned(), |jobs| format!("{jobs:.0}")));
        }
        cells
    };
    figures(&heads, 3, rows.iter().map(figures_of).collect())
}

/// The counts of the writers or of the readers, in the words of locktorture.
fn counts(lock: &Subject, whose: &str, counts: &Counts) -> String {
    format!(
        "{}-torture: {whose}:  Total: {}  Max/Min: {}/{}{}  Fail: {}{}",
        lock.name,
        counts.total,
        counts.max,
        counts.min,
        if counts.is_uneven() { " ???" } else { "" },
        counts.failures,
        if counts.failures > 0 { " !!!" } else { "" },
    )
}

/// The counts of a lock under torture: those of writers, and those of readers if it has any.
pub fn totals(lock: &Subject, totals: &Totals) -> String {
    let writes = fields(&counts(lock, "Writes", &totals.writes));
    let reads = || fields(&counts(lock, "Reads ", &totals.reads));
    if lock.is_rw() { format!("{writes}\n{}", reads()) } else { writes }
}

/// The lines of a lock: the counts of writers with the verdict, those of readers, and below them
/// the other counts.
pub fn tortured(out: &mut impl Write, tortured: &Tortured) -> io::Result<()> {
    let Totals { writes, reads } = &tortured.totals;
    // As in the original, every failure is marked, not only those that a thread saw.
    let mark = if tortured.problems.is_empty() || writes.failures > 0 { "" } else { " !!!" };
    let (lock, verdict) = (tortured.lock, tortured.verdict().name());
    writeln!(out, "{}", fields(&format!("{}{mark}  {verdict}", counts(lock, "Writes", writes))))?;
    if lock.is_rw() {
        writeln!(out, "{}", fields(&counts(lock, "Reads ", reads)))?;
    }
    let mut detail = format!("longest wait {:.1} ms", tortured.wait_ns_max as f64 / 1e6);
    let GivenUp { refused, timed_out, cancelled } = tortured.given_up;
    let ways = [
        ("refused", refused),
        ("timed out", timed_out),
        ("cancelled", cancelled),
        ("downgraded", tortured.downgraded),
    ];
    let ways = ways.into_iter().filter(|(_, count)| *count > 0);
    let events = tortured.events_seen().map(|(event, count)| (event.name(), count));
    detail.extend(ways.chain(events).map(|(name, count)| format!(", {name} {count}")));
    let not_taken: Vec<_> = tortured.paths_not_taken().map(LockEvent::name).collect();
    if !not_taken.is_empty() {
        detail += &format!(", NOT TAKEN: {}", not_taken.join(", "));
    }
    writeln!(out, "{}", wrapped(&detail, "    "))?;
    if let Some(stalls) = &tortured.stalls {
        writeln!(out, "{}", wrapped(&stalls.to_string(), "    "))?;
    }
    if let Some(Churn { lives, locks, memory }) = &tortured.churn {
        let memory =
            memory.map_or_else(|| "not measured often enough".to_owned(), |memory| memory.to_string());
        let churn = format!(
            "{lives} threads and {locks} locks were created and ended; memory, from the warm-up to the end: \
             {memory}"
        );
        writeln!(out, "{}", wrapped(&churn, "    "))?;
    }
    Ok(())
}

/// The number, if it is the same for all locks, or else the range from the least to the greatest.
fn span(numbers: impl Iterator<Item = usize>) -> String {
    let (least, greatest) =
        numbers.fold((usize::MAX, 0), |(least, greatest), n| (least.min(n), greatest.max(n)));
    if least >= greatest { greatest.to_string() } else { format!("{least}..{greatest}") }
}

/// The last line of a torture test, with the word for how it ended.
pub fn torture_end(out: &mut impl Write, plan: &Plan, all: &[Tortured], ended: &str) -> io::Result<()> {
    let numa_nodes = match plan.numa_nodes {
        NumaNodes::Real(nodes) => format!("{nodes}"),
        NumaNodes::Synthetic(nodes) | NumaNodes::Slots(nodes) => format!("{nodes}(synthetic)"),
    };
    let wait = match plan.waiting {
        Waiting::Spin => "spin",
        Waiting::Yield => "yield",
    };
    let storm = match plan.storm {
        None => "off".to_owned(),
        Some(Storm { cancellations: None }) => "on".to_owned(),
        Some(Storm { cancellations: Some(wanted) }) => wanted.to_string(),
    };
    let churn = match plan.threads {
        Threads::Stay => "",
        Threads::ComeAndGo => " churn=on",
    };
    let watch = plan
        .watch_progress
        .map_or_else(String::new, |patience| format!(" watch_progress={}ms", patience.as_millis()));
    let text = format!(
        "--- End of test: {}: nwriters_stress={} nreaders_stress={} numa_nodes={numa_nodes} wait={wait} \
         shutdown_secs={} stat_interval={} stutter={} long_hold={} priority_percent={} \
         cancel_storm={storm}{churn}{watch}",
        ended,
        span(all.iter().map(|tortured| tortured.crew.writers)),
        span(all.iter().map(|tortured| tortured.crew.readers)),
        plan.duration.as_secs(),
        plan.stat_interval.as_secs(),
        plan.stutter.as_secs(),
        plan.long_hold_ms,
        plan.priority_percent,
    );
    writeln!(out, "{}", wrapped(&text, "    ").trim_start())
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;

    pub fn text(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).expect("memory can be written to");
        String::from_utf8(out).expect("text")
    }

    pub fn assert_fits(text: &str) {
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{} columns: {line}", line.chars().count());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{assert_fits, text};
    use super::*;

    #[test]
    fn lines_are_as_wide_as_the_terminal_within_limits() {
        let known = [None, Some(0), Some(59), Some(80), Some(200), Some(400)];
        assert_eq!(known.map(columns), [WIDTH, 60, 60, 80, 200, 200]);
    }

    #[test]
    fn columns_without_room_are_in_blocks_with_their_keys() {
        let heads: Vec<String> = (0..20).map(|column| format!("column{column}")).collect();
        let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
        let row = |name: &str| [name].into_iter().chain(["12345"; 19]).map(str::to_owned).collect();
        let text = figures(&heads, 2, vec![row("mcs"), row("a-lock-with-a-long-name")]);
        assert_fits(&text);
        let blocks: Vec<_> = text.split("\n\n").collect();
        assert_eq!(blocks.len(), 3, "{text}");
        assert!(
            blocks.iter().all(|block| block.starts_with("column0") && block.contains(" column1 ")),
            "{text}"
        );
        assert_eq!(text.matches("column19").count(), 1, "{text}");
    }

    #[test]
    fn words_are_wrapped_and_none_is_lost() {
        let words = "waiter ".repeat(40);
        let wrapped = wrapped(words.trim_end(), "    ");
        assert_fits(&wrapped);
        assert!(wrapped.lines().count() == 4 && wrapped.lines().all(|line| line.starts_with("    waiter")));
        assert_eq!(wrapped.split_whitespace().count(), 40);
        assert_eq!(text(|out| paragraph(out, "\n\nline")), "\n\nline\n");
    }

    #[test]
    fn counts_of_a_long_torture_are_broken_between_fields() {
        let many = Counts { total: u64::MAX, max: u64::MAX, min: 1, failures: u64::MAX };
        let lock = Subject::named("lock-busted-rw").expect("is on the list");
        let text = totals(lock, &Totals { writes: many, reads: many });
        assert_fits(&text);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[0].starts_with("lock-busted-rw-torture: Writes:  Total: "), "{text}");
        assert!(lines[1].starts_with("    Fail: ") && lines[1].ends_with(" !!!"), "{text}");
        let few = Counts { total: 2, max: 1, min: 1, failures: 0 };
        let expected = "lock-busted-rw-torture: Writes:  Total: 2  Max/Min: 1/1  Fail: 0";
        assert_eq!(totals(lock, &Totals { writes: few, reads: few }).lines().next(), Some(expected));
    }

    #[test]
    fn a_name_without_room_has_its_own_line() {
        let row = |name: &str, figure: &str| vec![name.to_owned(), figure.to_owned()];
        let (long, wide) = ("n".repeat(60), "9".repeat(50));
        let text = figures(&["name", "figure"], 1, vec![row(&long, "1"), row("short", &wide)]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!((lines.len(), lines[1]), (4, &*long));
        assert!(
            lines[2].ends_with(" 1") && lines[3].starts_with("short ") && lines[3].ends_with(&wide),
            "{text}"
        );
        let text = figures(&["name", "figure"], 1, vec![row(&long, "1")]);
        assert_eq!(text.lines().nth(1).map(|line| line.split_whitespace().count()), Some(2), "{text}");
    }
}
