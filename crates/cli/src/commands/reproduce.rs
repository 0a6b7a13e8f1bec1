//! `nearlock reproduce`.

use std::io::{self, Write};
use std::ops::ControlFlow;

use indicatif::ProgressBar;
use nearlock_lab::plot;
use nearlock_lab::published::{TABLES, Table};
use nearlock_lab::reproduce::{
    Cell, Effort, ReproduceError, Reproduced, Reproduction, Vary, Watcher, keeps_bound,
};

use crate::Ending;
use crate::args::{Format, ReproduceArgs};
use crate::out::OutDir;
use crate::{progress, report};

/// Reproduces what was asked for.
pub fn run(args: &ReproduceArgs) -> anyhow::Result<Ending> {
    let tables = match args.tables.as_slice() {
        [] => TABLES.iter().collect(),
        names => names.iter().map(|name| Table::named(name)).collect::<Result<Vec<_>, _>>()?,
    };
    let effort = if args.quick { Effort::Quick } else { Effort::Full };
    let vary = args.vary();
    let reproductions: Vec<_> = tables
        .into_iter()
        .map(|table| Reproduction { table, effort, seeds: args.seeds, set: &args.set, vary })
        .collect();
    for reproduction in &reproductions {
        reproduction.check()?;
    }
    let out = args.out.as_deref().map(OutDir::make).transpose()?;
    let mut ending = Ending::Success;
    let mut all = Vec::new();
    for reproduction in &reproductions {
        let Some(reproduced) = one(reproduction, args.format)? else {
            ending = Ending::CheckFailed;
            continue;
        };
        if args.check && !keeps_bound(reproduction.table, &reproduced.cells) {
            report::misses_bound(reproduction.table, &reproduced.cells);
            ending = Ending::CheckFailed;
        }
        if let Some(out) = &out {
            write_files(out, reproduction, &reproduced)?;
        }
        all.push(reproduced);
    }
    write(&mut io::stdout().lock(), &all, vary, args.format)?;
    Ok(ending)
}

/// Writes the cells, unless as text: that has been written as they came.
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

/// Writes the picture of a table and its cells.
fn write_files(out: &OutDir, reproduction: &Reproduction, reproduced: &Reproduced) -> anyhow::Result<()> {
    let Reproduction { table, set, vary, .. } = *reproduction;
    let machine = reproduction.machine()?;
    let picture = plot::reproduced(table, &reproduced.cells, &machine, report::set(set).as_slice())?;
    let stem = match vary {
        Vary::Mechanisms => format!("reproduce-{}-mechanisms", table.name),
        Vary::Nothing | Vary::Band => format!("reproduce-{}", table.name),
    };
    let reproduced = std::slice::from_ref(reproduced);
    out.write_results(&stem, picture.as_deref(), |contents, format| {
        write(contents, reproduced, vary, format)
    })?;
    Ok(())
}

/// Reproduces one table, showing its rows as they come if the format is text. `None` if a lock failed,
/// which has then been reported.
pub fn one(reproduction: &Reproduction, format: Format) -> anyhow::Result<Option<Reproduced>> {
    let mut view = View { table: reproduction.table, format, bar: progress::simulations(0), written: Ok(()) };
    if format == Format::Text {
        report::reproduced::table_head(&mut io::stdout().lock(), reproduction)?;
    }
    let reproduced = reproduction.run(&mut view);
    view.bar.finish_and_clear();
    view.written?;
    match reproduced {
        Ok(reproduced) => {
            if format == Format::Text {
                let mut out = io::stdout().lock();
                report::reproduced::table_summary(&mut out, reproduction.table, &reproduced.cells)?;
                report::reproduced::effects(&mut out, &reproduced)?;
                report::variations::statements(&mut out, &reproduced, reproduction.vary)?;
                if reproduction.vary == Vary::Mechanisms {
                    report::variations::mechanisms(&mut out, &reproduced)?;
                }
            }
            Ok(Some(reproduced))
        }
        Err(ReproduceError::Failed { failure, command }) => {
            report::failure(&failure, &command);
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Shows progress, and in text the rows.
struct View {
    table: &'static Table,
    format: Format,
    bar: ProgressBar,
    written: io::Result<()>,
}

impl Watcher for View {
    fn simulated(&mut self, done: usize, total: usize) {
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
    }

    fn row(&mut self, cells: &[Cell]) -> ControlFlow<()> {
        if self.format == Format::Text {
            self.written = self.bar.suspend(|| {
                let mut out = io::stdout().lock();
                report::reproduced::table_row(&mut out, self.table, cells)?;
                out.flush()
            });
        }
        // Nobody reads on, so there is nobody to simulate for.
        if self.written.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
