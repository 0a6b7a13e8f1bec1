//! All reproduced tables on one page. The page shows the claims of each document, and published
//! beside simulated figures. It shows which cells were used to choose the model, which cells do not
//! fit, and which conclusions depend on which parameter.
//!
//! The page comes as HTML, which needs no network and no script, and as Markdown. Both are made
//! from [`Page`] with the templates in `templates/`.

mod view;

use askama::Template;
use jiff::Timestamp;

use crate::plot::{self, Effects, Overview, PlotError};
use crate::published::{DOCUMENTS, Document, TABLES};
use crate::reproduce::{ReproduceError, Reproduced, Vary, constants, mean_error};
use view::{DocumentView, Flip, Summary};

/// The simulations of the page.
#[derive(Clone, Copy, Debug)]
pub struct EvidenceRun<'a> {
    /// The command that makes the page.
    pub command: &'a str,
    /// The changes with which the tables were simulated.
    pub vary: Vary,
    /// The results.
    pub reproduced: &'a [Reproduced],
    /// Where, when and how they were made: names and values.
    pub made: &'a [(&'static str, String)],
    /// The mark of a page on which tables are missing, since the command was ended.
    pub mark: Option<&'a str>,
}

/// The page cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// A picture failed.
    #[error(transparent)]
    Plot(#[from] PlotError),
    /// The digest of the tables' constants failed.
    #[error(transparent)]
    Tables(#[from] ReproduceError),
    /// A template failed.
    #[error("cannot write the page: {0}")]
    Template(#[from] askama::Error),
}

/// The contents of the page, for the templates.
pub struct Page<'a> {
    run: EvidenceRun<'a>,
    /// The date in UTC.
    date: String,
    version: &'static str,
    /// Digest of the constants of the tables, unless the page tells otherwise.
    constants: String,
    /// The picture at the top.
    overview: Option<Overview>,
    /// One entry for each table.
    summaries: Vec<Summary>,
    documents: Vec<DocumentView>,
    /// The conclusions that each change reverses.
    flips: Vec<Flip>,
}

#[derive(Template)]
#[template(path = "report.html")]
struct Html<'a>(&'a Page<'a>);

#[derive(Template)]
#[template(path = "evidence.md", escape = "none")]
struct Markdown<'a>(&'a Page<'a>);

impl<'a> Page<'a> {
    /// The page of this run, with today's date.
    ///
    /// # Errors
    ///
    /// If a picture cannot be laid out.
    pub fn new(run: EvidenceRun<'a>) -> Result<Self, PageError> {
        let documents = DOCUMENTS.iter().map(|document| DocumentView::new(document, run));
        let documents = documents.collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            run,
            date: Timestamp::now().strftime("%F").to_string(),
            version: env!("CARGO_PKG_VERSION"),
            constants: constants()?,
            overview: plot::overview(&effects(run.reproduced))?,
            summaries: run.reproduced.iter().map(Summary::new).collect(),
            documents: documents.into_iter().filter(|document| !document.tables.is_empty()).collect(),
            flips: Flip::all(run.reproduced),
        })
    }

    /// The picture at the top of the Markdown, as SVG. `None` if no table of the run has a headline
    /// figure.
    pub fn overview(&self) -> Option<&str> {
        self.overview.as_ref().map(|overview| overview.wide.as_str())
    }

    /// The page as HTML.
    ///
    /// # Errors
    ///
    /// If the template fails.
    pub fn html(&self) -> Result<String, PageError> {
        Ok(Html(self).render()?)
    }

    /// The page as Markdown. The picture at the top is the file `evidence.svg` in the same
    /// directory.
    ///
    /// # Errors
    ///
    /// If the template fails.
    pub fn markdown(&self) -> Result<String, PageError> {
        Ok(Markdown(self).render()?)
    }

    fn has_bands(&self) -> bool {
        self.run.vary == Vary::Band
    }

    /// The number of cells with a published figure.
    fn published_count(&self) -> usize {
        let counted = self.run.reproduced.iter().filter_map(|table| mean_error(&table.cells, |_| true));
        counted.map(|error| error.cells).sum()
    }

    /// How many conclusions hold in the simulation.
    fn hold(&self) -> usize {
        self.summaries.iter().map(|summary| summary.hold).sum()
    }

    /// How many conclusions the documents draw.
    fn conclusions(&self) -> usize {
        self.summaries.iter().map(|summary| summary.statements).sum()
    }

    /// How many conclusions some change reverses.
    fn hang(&self) -> usize {
        self.summaries.iter().map(|summary| summary.hang).sum()
    }

    /// The conclusions that do not hold, each with its table.
    fn fails(&self) -> Vec<(&'static str, &str)> {
        let mut fails = Vec::new();
        for table in self.documents.iter().flat_map(|document| &document.tables) {
            let failed = table.statements.iter().filter(|statement| statement.kind == "fails");
            fails.extend(failed.map(|statement| (table.name, statement.text.as_str())));
        }
        fails
    }

    /// The number of all tables.
    fn tables(&self) -> usize {
        TABLES.len()
    }

    /// The tables that are not in this run.
    fn missing(&self) -> Vec<&'static str> {
        let is_here =
            |name: &&str| self.run.reproduced.iter().any(|reproduced| reproduced.table.name == *name);
        TABLES.iter().map(|table| table.name).filter(|name| !is_here(name)).collect()
    }
}

/// The headline figures of the tables, by document.
fn effects(reproduced: &[Reproduced]) -> Vec<Effects> {
    let of = |document: &'static Document| {
        let claims = document.tables.iter().flat_map(|claim| {
            let of_table = reproduced.iter().find(|reproduced| reproduced.table.name == claim.table);
            claim.headlines.iter().filter_map(move |headline| of_table?.headline(headline))
        });
        Effects { title: document.title, rows: claims.collect() }
    };
    DOCUMENTS.iter().map(of).collect()
}

#[cfg(test)]
mod tests;
