//! Lockstat: the columns of LOCK_PROFILING(9), and the events of lockstat(1).

use std::io::{self, Write};

use comfy_table::{CellAlignment, ContentArrangement};
use nearlock_lab::lockstat::{Bucket, Event, LockStatistics};

use super::text::{figures, grid, render, width, wrapped};
use crate::args::Format;

/// The clock of the times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The clock of this machine.
    Native,
    /// The clock of the simulated machine.
    Virtual,
}

/// A format without room for lock statistics.
#[derive(Debug, thiserror::Error)]
#[error(
    "--lockstat: CSV has one row for each result, and no room for distributions; use --format text or json"
)]
pub struct NoRoom;

/// Checks that this format has room for lock statistics.
pub fn check(format: Format) -> Result<(), NoRoom> {
    if format == Format::Csv { Err(NoRoom) } else { Ok(()) }
}

/// Columns of a bar.
const BAR: u64 = 36;

/// Microseconds, with decimals if there are fewer than 1000.
fn us(ns: u64) -> String {
    match ns / 1000 {
        few @ 0..1000 => format!("{few}.{:03}", ns % 1000),
        many => many.to_string(),
    }
}

/// The columns of LOCK_PROFILING, with the name at the end. Without room, it is at the beginning,
/// on its own line.
fn profiling(rows: &[LockStatistics]) -> String {
    let heads = [
        "max",
        "wait_max",
        "total",
        "wait_total",
        "count",
        "avg",
        "wait_avg",
        "cnt_hold",
        "cnt_lock",
        "name",
    ];
    let mut cells: Vec<Vec<String>> = rows.iter().map(profile).collect();
    let mut grid = grid(&heads);
    grid.set_content_arrangement(ContentArrangement::Disabled).add_rows(&cells);
    for column in grid.column_iter_mut() {
        column.set_padding((0, 1));
    }
    for column in grid.column_iter_mut().take(heads.len() - 1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let table = render(&grid);
    if table.lines().all(|line| line.chars().count() <= width()) {
        return table;
    }
    cells.iter_mut().for_each(|row| row.rotate_right(1));
    let [figures_of @ .., name] = heads;
    let mut heads = vec![name];
    heads.extend(figures_of);
    figures(&heads, 1, cells)
}

fn profile(row: &LockStatistics) -> Vec<String> {
    vec![
        us(row.max_ns),
        us(row.wait_max_ns),
        us(row.total_ns),
        us(row.wait_total_ns),
        row.count.to_string(),
        us(row.total_ns / row.count.max(1)),
        us(row.wait_total_ns / row.count.max(1)),
        "0".to_owned(),
        row.cnt_lock.to_string(),
        format!("{} ({}:{})", row.mode.name(), row.class.name(), row.name),
    ]
}

/// A row for each lock and mode, and the events of each. They occurred within `seconds`.
pub fn text(out: &mut impl Write, rows: &[LockStatistics], clock: Clock, seconds: f64) -> io::Result<()> {
    let (whose, unit) = match clock {
        Clock::Native => ("LOCKSTAT: times in us", "us"),
        Clock::Virtual => ("LOCKSTAT, SIMULATED: times in us of virtual time", "virtual us"),
    };
    writeln!(out, "{whose}")?;
    if rows.is_empty() {
        return writeln!(out, "no acquisition in {seconds:.3} s");
    }
    writeln!(out, "{}", profiling(rows))?;
    for row in rows {
        for event in row.events.iter().filter(|event| event.count > 0) {
            show(out, row, event, (unit, seconds))?;
        }
    }
    let notes = "max, total, avg: holds; wait_*: from the request to the acquisition; cnt_lock: acquisitions \
                 that had to wait; cnt_hold: always 0, as in FreeBSD; spin: wait without its sleeps; block: \
                 all sleeps of an acquisition";
    writeln!(out, "{}", wrapped(notes, ""))
}

fn show(
    out: &mut impl Write,
    row: &LockStatistics,
    event: &Event,
    (unit, seconds): (&str, f64),
) -> io::Result<()> {
    let Event { event: name, count, total_ns, distribution, .. } = event;
    let per_second = if seconds > 0.0 { *count as f64 / seconds } else { 0.0 };
    writeln!(
        out,
        "\n{name}, {} {}: {count} events in {seconds:.3} s ({per_second:.0} events/s), {} {unit} each",
        row.mode.name(),
        row.name,
        us(total_ns / count),
    )?;
    writeln!(
        out,
        "{:>14} {:-^width$} {:>10}",
        "nsec",
        " Time Distribution ",
        "count",
        width = BAR as usize + 1
    )?;
    let most = distribution.iter().map(|bucket| bucket.count).max().unwrap_or(1);
    for Bucket { from_ns, count } in distribution {
        // Rounded up, so that every count has a bar.
        let bar = "@".repeat((count * BAR).div_ceil(most) as usize);
        writeln!(out, "{from_ns:>14} |{bar:<width$} {count:>10}", width = BAR as usize)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::text::testing::{assert_fits, text as written};
    use super::*;
    use nearlock_lab::lockstat::{Class, Mode};

    fn row(count: u64, events: Vec<Event>) -> LockStatistics {
        LockStatistics {
            name: "freebsd-sx#12".to_owned(),
            class: Class::Sx,
            mode: Mode::Reader,
            max_ns: 100_000_001,
            wait_max_ns: 2500,
            total_ns: 200_000_000,
            wait_total_ns: 5000,
            count,
            cnt_lock: 1,
            events,
        }
    }

    #[test]
    fn columns_and_events_are_those_of_freebsd() {
        let distribution =
            vec![Bucket { from_ns: 1024, count: 1 }, Bucket { from_ns: 1 << 36, count: 1_000_000 }];
        let event =
            Event { event: "sx-block".to_owned(), count: 2, total_ns: 5000, max_ns: 4000, distribution };
        let nothing =
            Event { event: "sx-spin".to_owned(), count: 0, distribution: Vec::new(), ..event.clone() };
        let shown = written(|out| text(out, &[row(2, vec![event, nothing])], Clock::Virtual, 0.5));
        assert_fits(&shown);
        let mut lines = shown.lines();
        assert_eq!(lines.next(), Some("LOCKSTAT, SIMULATED: times in us of virtual time"));
        let heads: Vec<_> = lines.next().unwrap().split_whitespace().collect();
        let known = "max wait_max total wait_total count avg wait_avg cnt_hold cnt_lock name";
        assert_eq!(heads.join(" "), known);
        let figures = "100000 2.500 200000 5.000 2 100000 2.500 0 1";
        let words: Vec<_> = shown.split_whitespace().collect();
        assert!(words.join(" ").contains(&format!("{figures} reader (sx:freebsd-sx#12)")), "{shown}");
        assert!(
            shown.contains(
                "sx-block, reader freebsd-sx#12: 2 events in 0.500 s (4 events/s), 2.500 virtual us"
            )
        );
        assert!(shown.contains("  1024 |@ ") && shown.contains(&"@".repeat(BAR as usize)), "{shown}");
        assert!(!shown.contains("sx-spin"), "events that did not occur are left out");
    }

    #[test]
    fn a_name_without_room_comes_first() {
        let long = LockStatistics { name: "x".repeat(80), ..row(1 << 40, Vec::new()) };
        let shown = written(|out| text(out, &[long, row(1, Vec::new())], Clock::Native, 1.0));
        assert!(shown.lines().nth(1).is_some_and(|heads| heads.starts_with("name ")), "{shown}");
        assert_fits(&shown);
    }

    #[test]
    fn a_lock_without_acquisitions_says_so() {
        let shown = written(|out| text(out, &[], Clock::Native, 1.0));
        assert_eq!(shown, "LOCKSTAT: times in us\nno acquisition in 1.000 s\n");
        assert!(check(Format::Csv).is_err() && check(Format::Json).is_ok());
    }
}
