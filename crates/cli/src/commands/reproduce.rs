//! `nearlock reproduce`.

use std::io::{self, Write};
use std::ops::ControlFlow;

use indicatif::ProgressBar;
use nearlock_lab::cache::{Cache, CacheError};
use nearlock_lab::evidence::{EvidenceRun, Page};
use nearlock_lab::plot;
use nearlock_lab::published::{TABLES, Table};
use nearlock_lab::reproduce::{
    Cell, Effort, ReproduceError, Reproduced, Reproduction, TableResult, Vary, Watcher, keeps_bound, run,
};
use nearlock_lab::settings::{Assignment, Group};

use crate::Ending;
use crate::args::{Format, ReproduceArgs};
use crate::out::OutDir;
use crate::report::Extent;
use crate::report::provenance::Provenance;
use crate::{interrupt, progress, report};

/// Reproduces the requested tables.
pub fn reproduce(args: &ReproduceArgs) -> anyhow::Result<Ending> {
    let tables = match args.tables.as_slice() {
        [] => TABLES.to_vec(),
        names => once_each(names).map(Table::named).collect::<Result<Vec<_>, _>>()?,
    };
    let set =
        args.set.iter().map(|text| Assignment::parse(text, Group::ALL)).collect::<Result<Vec<_>, _>>()?;
    let effort = if args.quick { Effort::Quick } else { Effort::Full };
    let vary = args.vary();
    let reproductions: Vec<_> = tables
        .into_iter()
        .map(|table| Reproduction { table, effort, seeds: args.seeds, set: &set, vary })
        .collect();
    for reproduction in &reproductions {
        reproduction.check()?;
    }
    let out = args.out.as_deref().map(OutDir::make).transpose()?;
    let cache = args.cache().and_then(|path| Cache::open(&path).inspect_err(not_kept).ok());
    let cache = if args.fresh { cache.map(Cache::fresh) } else { cache };
    interrupt::watch()?;
    let results = simulate(&reproductions, cache.as_ref(), args.format)?;
    let extent = Extent { done: results.len(), of: reproductions.len(), unit: "tables" };
    if let Some(failure) = cache.as_ref().and_then(Cache::failure) {
        not_kept(failure);
    }
    if extent.is_partial() {
        report::say(interrupted(args, cache.filter(|cache| cache.failure().is_none()), extent));
    }
    let mut ending = match ending(&results) {
        Ending::Success if extent.is_partial() => Ending::Interrupted,
        ending => ending,
    };
    for (reproduction, result) in reproductions.iter().zip(&results) {
        if let Ok(Reproduced { cells, .. }) = result
            && args.check
            && !keeps_bound(reproduction.table, cells)
        {
            report::misses_bound(reproduction.table, cells);
            ending = Ending::CheckFailed;
        }
    }
    // The watcher has reported the failures.
    let (mut all, mut failures) = (Vec::new(), Vec::new());
    for (reproduction, result) in reproductions.iter().zip(results) {
        match result {
            Ok(reproduced) => all.push(reproduced),
            Err(error) => failures.push(failed(reproduction.table, &error)),
        }
    }
    if let Some(out) = out.filter(|_| extent.done > 0) {
        let provenance = Provenance::now("simulated", extent, failures);
        write_files(&out, &reproductions[..extent.done], &all, &provenance)?;
        if vary != Vary::Mechanisms {
            write_page(&out, &args.command(), &all, vary, &provenance)?;
        }
    }
    let mut stdout = io::stdout().lock();
    if let (Some(mark), Format::Text) = (extent.mark(), args.format) {
        writeln!(stdout, "\n{mark}")?;
    }
    write(&mut stdout, &all, vary, args.format)?;
    Ok(ending)
}

/// The failure of a table, for files.
fn failed(table: &Table, error: &ReproduceError) -> String {
    match error {
        ReproduceError::Failed { failure, command } => {
            format!("{}: {}", table.name, report::failed(failure, command))
        }
        error => format!("{}: {error}", table.name),
    }
}

/// A warning after Ctrl-C: the results that are kept, and how to continue.
fn interrupted(args: &ReproduceArgs, cache: Option<Cache>, Extent { done, of, .. }: Extent) -> String {
    let kept = match (cache, args.cache(), args.fresh) {
        (Some(_), _, false) => "all simulations are kept, and the same command continues from there",
        (Some(_), _, true) => {
            "all simulations are kept, and the same command without --fresh continues from there"
        }
        (None, Some(_), _) => "no simulation is kept, since the cache cannot be used",
        (None, None, _) => "no simulation is kept, since there is no directory for a cache (set HOME)",
    };
    let files = match (&args.out, done) {
        (None, _) => "",
        (Some(_), 0) => "; no file is written",
        (Some(_), _) => "; only these are written as files",
    };
    format!("warning: interrupted: {done} of {of} tables are finished{files}; {kept}")
}

/// Names in their order, each once.
fn once_each(names: &[String]) -> impl Iterator<Item = &str> {
    let first = |&(index, name): &(usize, &String)| !names[..index].contains(name);
    names.iter().enumerate().filter(first).map(|(_, name)| name.as_str())
}

/// Warns that results are not kept.
fn not_kept(error: &CacheError) {
    report::say(format_args!("warning: {error}; until then results are not kept"));
}

/// Writes the cells. As text, they have already been written, row by row.
fn write(out: &mut impl Write, all: &[Reproduced], vary: Vary, format: Format) -> io::Result<()> {
    let cells = || all.iter().flat_map(|reproduced| &reproduced.cells).collect::<Vec<_>>();
    match (format, vary) {
        (Format::Text, _) => Ok(()),
        (Format::Json, Vary::Mechanisms) => report::variations::json(out, all),
        (Format::Csv, Vary::Mechanisms) => report::variations::csv(out, all),
        (Format::Json, _) => report::json::array(out, &cells()),
        (Format::Csv, _) => report::csv::cells(out, &cells()),
    }
}

/// Writes the picture and the cells of each table. A table that failed has no cells.
fn write_files(
    out: &OutDir,
    reproductions: &[Reproduction],
    all: &[Reproduced],
    provenance: &Provenance,
) -> anyhow::Result<()> {
    for reproduction in reproductions {
        let Reproduction { table, set, vary, .. } = *reproduction;
        let stem = match vary {
            Vary::Mechanisms => format!("reproduce-{}-mechanisms", table.name),
            Vary::Nothing | Vary::Band => format!("reproduce-{}", table.name),
        };
        let reproduced = all.iter().find(|reproduced| reproduced.table.name == table.name);
        let cells = reproduced.map_or(&[][..], |reproduced| &reproduced.cells);
        let mut notes = provenance.notes();
        notes.extend(report::set(set));
        let picture = plot::reproduced(table, cells, &reproduction.machine()?, &notes)?;
        if let Some(svg) = plot::headline(table, cells)? {
            let svg = plot::marked(svg, provenance.mark());
            out.write(&format!("headline-{}.svg", table.name), svg.as_bytes())?;
        }
        out.write_results(&stem, provenance, picture.as_deref(), |contents, format| {
            write(contents, reproduced.map_or(&[], std::slice::from_ref), vary, format)
        })?;
    }
    Ok(())
}

/// Writes all tables on one page.
fn write_page(
    out: &OutDir,
    command: &str,
    reproduced: &[Reproduced],
    vary: Vary,
    provenance: &Provenance,
) -> anyhow::Result<()> {
    let made = provenance.fields();
    let page = Page::new(EvidenceRun { command, vary, reproduced, made: &made, mark: provenance.mark() })?;
    if let Some(svg) = page.overview() {
        let svg = plot::marked(svg.to_owned(), provenance.mark());
        out.write("evidence.svg", svg.as_bytes())?;
    }
    out.write("evidence.md", page.markdown()?.as_bytes())?;
    out.write("report.html", page.html()?.as_bytes())?;
    Ok(())
}

/// Simulates tables. Failures are shown as they occur, and if the format is text, rows too.
pub fn simulate(
    reproductions: &[Reproduction],
    cache: Option<&Cache>,
    format: Format,
) -> anyhow::Result<Vec<TableResult>> {
    let mut view = View { reproductions, format, bar: progress::tables(), shown: Ok(()) };
    let results = run(reproductions, cache, &mut view);
    view.bar.finish_and_clear();
    view.shown?;
    Ok(results?)
}

/// Whether all tables could be simulated.
pub fn ending(results: &[TableResult]) -> Ending {
    if results.iter().all(Result::is_ok) { Ending::Success } else { Ending::CheckFailed }
}

/// Shows progress, and in text the rows.
struct View<'a> {
    reproductions: &'a [Reproduction<'a>],
    format: Format,
    bar: ProgressBar,
    shown: io::Result<()>,
}

impl View<'_> {
    /// Shows a part of the report, if the format is text.
    fn show(&mut self, part: impl FnOnce(&mut io::StdoutLock) -> io::Result<()>) -> ControlFlow<()> {
        if self.format == Format::Text {
            self.shown = self.bar.suspend(|| {
                let mut out = io::stdout().lock();
                part(&mut out)?;
                out.flush()
            });
        }
        // The reader has closed the pipe, so the other tables are not simulated.
        if self.shown.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Watcher for View<'_> {
    fn simulated(&mut self, done: usize, total: usize) -> ControlFlow<()> {
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
        interrupt::check()
    }

    fn begin(&mut self, index: usize) -> ControlFlow<()> {
        let reproduction = &self.reproductions[index];
        self.bar.set_message(reproduction.table.name);
        self.show(|out| {
            if index > 0 {
                writeln!(out)?;
            }
            report::reproduced::table_head(out, reproduction)
        })
    }

    fn row(&mut self, index: usize, cells: &[Cell]) -> ControlFlow<()> {
        let table = self.reproductions[index].table;
        self.show(|out| report::reproduced::table_row(out, table, cells))
    }

    fn end(&mut self, index: usize, result: &TableResult) -> ControlFlow<()> {
        match result {
            Ok(reproduced) => self.show(|out| summary(out, &self.reproductions[index], reproduced)),
            Err(error) => {
                self.bar.suspend(|| match error {
                    ReproduceError::Failed { failure, command } => report::failure(failure, command),
                    error => report::say(format_args!("error: {error}")),
                });
                ControlFlow::Continue(())
            }
        }
    }
}

/// The text below the rows.
fn summary(out: &mut impl Write, reproduction: &Reproduction, reproduced: &Reproduced) -> io::Result<()> {
    report::reproduced::table_summary(out, reproduction.table, &reproduced.cells)?;
    if let Some(headline) = plot::Headline::of(reproduction.table, &reproduced.cells) {
        report::text::paragraph(out, &headline.sentence())?;
    }
    report::reproduced::effects(out, reproduced)?;
    report::variations::statements(out, reproduced, reproduction.vary)?;
    if reproduction.vary == Vary::Mechanisms {
        report::variations::mechanisms(out, reproduced)?;
    }
    Ok(())
}
