//! The contents of the page, as texts.

use std::collections::BTreeSet;

use super::{EvidenceRun, PageError};
use crate::plot;
use crate::published::{Claim, Class, Document, Table};
use crate::reproduce::{Cell, Reproduced, Vary, Verdict, figure, mean_error, within_band};
use crate::settings::Assignment;

/// Cells with a larger error do not fit. 0.1 is 10 %.
const FITS: f64 = 0.1;
/// The number of such cells that are named, the worst first.
const NAMED: usize = 6;

/// A row of the table of tables.
pub(super) struct Summary {
    pub name: &'static str,
    /// Mean absolute error by class, with the number of cells.
    pub errors: Vec<String>,
    /// The number of conclusions that hold, and of all.
    pub hold: usize,
    pub statements: usize,
    /// The number of conclusions that some change reverses.
    pub hang: usize,
    /// The number of cells whose band contains the published figure, and of cells with a band.
    pub within: (usize, usize),
}

impl Summary {
    pub fn new(reproduced: &Reproduced) -> Self {
        let verdicts = reproduced.verdicts();
        let unit = reproduced.table.error_unit();
        let shown = |class| match mean_error(&reproduced.cells, |cell| cell.class == class) {
            Some(error) => format!("{:.1} {unit} ({})", error.mean * 100.0, error.cells),
            None => "-".to_owned(),
        };
        Self {
            name: reproduced.table.name,
            errors: Class::ALL.map(shown).into(),
            hold: verdicts.iter().filter(|verdict| verdict.holds).count(),
            statements: verdicts.len(),
            hang: verdicts.iter().filter(|verdict| !verdict.otherwise.is_empty()).count(),
            within: within_band(&reproduced.cells),
        }
    }
}

/// A document with its simulated tables.
pub(super) struct DocumentView {
    pub title: &'static str,
    pub source: &'static str,
    pub idea: &'static str,
    pub missing: Option<&'static str>,
    pub tables: Vec<TableView>,
}

impl DocumentView {
    pub fn new(document: &'static Document, run: EvidenceRun) -> Result<Self, PageError> {
        let of = |claim: &'static Claim| {
            let found = run.reproduced.iter().find(|reproduced| reproduced.table.name == claim.table);
            found.map(|reproduced| TableView::new(claim, reproduced, run.vary))
        };
        Ok(Self {
            title: document.title,
            source: document.source,
            idea: document.idea,
            missing: document.missing,
            tables: document.tables.iter().filter_map(of).collect::<Result<_, _>>()?,
        })
    }
}

/// A table.
pub(super) struct TableView {
    pub name: &'static str,
    pub claim: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Workload, machine and unit.
    pub setting: String,
    /// A picture for each variant.
    pub panels: Vec<String>,
    /// The classes that occur.
    pub classes: Vec<&'static str>,
    pub has_deviations: bool,
    pub has_first: bool,
    pub first: &'static str,
    /// The unit of errors.
    pub error_unit: &'static str,
    /// Mean absolute error: first over all cells, then by class.
    pub errors: String,
    pub within: Option<String>,
    pub statements: Vec<StatementView>,
    /// Cells with a large error.
    pub misfits: Vec<String>,
    pub misfits_unnamed: usize,
    /// The number of compared effects, and the effects that differ from the published ones.
    pub effects: usize,
    pub otherwise: Vec<String>,
    pub fitted: Vec<String>,
    /// Choices that were made with cells in view.
    pub choices: Vec<&'static str>,
    pub rows: Vec<CellView>,
}

impl TableView {
    fn new(claim: &'static Claim, reproduced: &Reproduced, vary: Vary) -> Result<Self, PageError> {
        let Reproduced { table, cells, .. } = reproduced;
        let drawn = || cells.iter().filter(|cell| !table.is_by_definition(cell.variant));
        let classes = Class::ALL.into_iter().filter(|&class| drawn().any(|cell| cell.class == class));
        let mut misfits: Vec<&Cell> =
            cells.iter().filter(|cell| cell.error.is_some_and(|error| error.abs() > FITS)).collect();
        misfits.sort_by(|a, b| off(b).total_cmp(&off(a)));
        let effects = reproduced.effects();
        let otherwise = effects.iter().filter(|effect| effect.published != effect.simulated).map(|effect| {
            let (published, simulated) = (effect.published.name(), effect.simulated.name());
            format!("{} at {}: published {published}, simulated {simulated}", effect.variant, effect.row)
        });
        let fitted = drawn().filter(|cell| cell.class == Class::Fitted);
        let choices: BTreeSet<_> = table.seen().iter().map(|cells| cells.choice).collect();
        Ok(Self {
            name: table.name,
            claim: claim.claim,
            source: table.source,
            setting: format!("{} on {}; {}", table.workloads(), table.machines(), table.unit),
            panels: plot::panels(table, cells)?,
            classes: classes.map(Class::name).collect(),
            has_deviations: cells.iter().any(|cell| cell.published_sd.is_some()),
            has_first: cells.iter().filter(|cell| cell.row.threads().is_some()).count()
                > table.variants.len(),
            first: table.variants[0].name,
            error_unit: table.error_unit(),
            errors: errors(table, cells),
            within: match within_band(cells) {
                (_, 0) => None,
                (within, of) => Some(format!("{within} of {of}")),
            },
            statements: reproduced
                .verdicts()
                .iter()
                .map(|verdict| StatementView::new(verdict, vary))
                .collect(),
            misfits: misfits.iter().take(NAMED).map(|cell| misfit(table, cell)).collect(),
            misfits_unnamed: misfits.len().saturating_sub(NAMED),
            effects: effects.len(),
            otherwise: otherwise.collect(),
            fitted: fitted.map(|cell| format!("{} at {}", cell.variant, cell.row)).collect(),
            choices: choices.into_iter().collect(),
            rows: cells.iter().map(CellView::new).collect(),
        })
    }
}

/// A published statement, compared with the figures.
pub(super) struct StatementView {
    pub text: String,
    pub says: String,
    /// `holds`, `hangs` or `fails`.
    pub kind: &'static str,
}

impl StatementView {
    fn new(verdict: &Verdict, vary: Vary) -> Self {
        let kind = match (verdict.holds, verdict.otherwise.is_empty()) {
            (true, true) => "holds",
            (true, false) => "hangs",
            (false, _) => "fails",
        };
        Self { text: verdict.statement.to_string(), says: verdict.says(vary), kind }
    }
}

/// A cell.
pub(super) struct CellView {
    pub row: String,
    pub variant: &'static str,
    pub published: String,
    pub simulated: String,
    pub band: String,
    pub error: String,
    pub class: &'static str,
}

impl CellView {
    fn new(cell: &Cell) -> Self {
        let band = cell.low.zip(cell.high).map(|(low, high)| format!("{} to {}", figure(low), figure(high)));
        Self {
            row: cell.row.to_string(),
            variant: cell.variant,
            published: cell.published.map_or_else(|| "not in the document".to_owned(), figure),
            simulated: figure(cell.simulated),
            band: band.unwrap_or_default(),
            error: cell.error.map_or_else(String::new, |error| format!("{:+.1}", error * 100.0)),
            class: cell.class.name(),
        }
    }
}

/// A change, and the conclusions that it reverses.
pub(super) struct Flip {
    pub change: Assignment,
    /// Table, sentence and new verdict of each.
    pub conclusions: Vec<String>,
}

impl Flip {
    /// All changes of the run in their order, including those that reverse nothing.
    pub fn all(reproduced: &[Reproduced]) -> Vec<Self> {
        let mut flips: Vec<Self> = Vec::new();
        for varied in reproduced.iter().flat_map(|reproduced| &reproduced.varied) {
            if !flips.iter().any(|flip| flip.change == varied.change) {
                flips.push(Self { change: varied.change, conclusions: Vec::new() });
            }
        }
        for reproduced in reproduced {
            for verdict in reproduced.verdicts() {
                let becomes = if verdict.holds { "no longer holds" } else { "holds" };
                let conclusion = format!("{}, {}: {becomes}", reproduced.table.name, verdict.statement.text);
                for flip in flips.iter_mut().filter(|flip| verdict.otherwise.contains(&flip.change)) {
                    flip.conclusions.push(conclusion.clone());
                }
            }
        }
        flips
    }
}

fn off(cell: &Cell) -> f64 {
    cell.error.map_or(0.0, f64::abs)
}

fn misfit(table: &Table, cell: &Cell) -> String {
    let (error, unit) = (cell.error.unwrap_or(f64::NAN) * 100.0, table.error_unit());
    format!("{} at {} ({error:+.1} {unit})", cell.variant, cell.row)
}

fn errors(table: &Table, cells: &[Cell]) -> String {
    let unit = table.error_unit();
    let shown = |name: &str, of: &dyn Fn(&Cell) -> bool| {
        let error = mean_error(cells, of)?;
        Some(format!("{name} {:.1} {unit} ({} cells)", error.mean * 100.0, error.cells))
    };
    let all = shown("all", &|_| true);
    let classes = Class::ALL.map(|class| shown(class.name(), &|cell| cell.class == class));
    let texts: Vec<_> = [all].into_iter().chain(classes).flatten().collect();
    if texts.is_empty() { "nothing to compare with".to_owned() } else { texts.join(", ") }
}
