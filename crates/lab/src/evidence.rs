//! All reproduced tables on one page: what each document claims, published beside simulated, which
//! cells were used to choose the model, what does not fit, and which conclusion hangs on which
//! parameter.
//!
//! The page comes as HTML, which needs no network and can be read without script, and as Markdown.
//! Both are made from [`Page`], by the templates in `templates/`.

mod view;

use askama::Template;
use jiff::Timestamp;

use crate::plot::{self, Effects, PlotError};
use crate::published::{DOCUMENTS, Document, TABLES};
use crate::reproduce::{ReproduceError, Reproduced, Vary, constants, mean_error};
use view::{DocumentView, Flip, Summary};

/// What was simulated, and how.
#[derive(Clone, Copy, Debug)]
pub struct EvidenceRun<'a> {
    /// The command that makes the page.
    pub command: &'a str,
    /// With which changes.
    pub vary: Vary,
    /// What came of it.
    pub reproduced: &'a [Reproduced],
}

/// The page cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// A picture.
    #[error(transparent)]
    Plot(#[from] PlotError),
    /// What the tables are made of.
    #[error(transparent)]
    Tables(#[from] ReproduceError),
    /// A template.
    #[error("cannot write the page: {0}")]
    Template(#[from] askama::Error),
}

/// What the templates show.
pub struct Page<'a> {
    run: EvidenceRun<'a>,
    /// In UTC.
    date: String,
    version: &'static str,
    /// Digest of the constants that tables are made with, unless something else is said.
    constants: String,
    /// The picture at the head.
    overview: Option<String>,
    /// A line for each table.
    summaries: Vec<Summary>,
    documents: Vec<DocumentView>,
    /// Which conclusions each change turns round.
    flips: Vec<Flip>,
}

#[derive(Template)]
#[template(path = "report.html")]
struct Html<'a>(&'a Page<'a>);

#[derive(Template)]
#[template(path = "evidence.md", escape = "none")]
struct Markdown<'a>(&'a Page<'a>);

impl<'a> Page<'a> {
    /// Of this run, made today.
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

    /// The picture at the head, as SVG. `None` if no table of the run has a figure that stands for
    /// it.
    pub fn overview(&self) -> Option<&str> {
        self.overview.as_deref()
    }

    /// As HTML.
    ///
    /// # Errors
    ///
    /// If the template cannot be filled in.
    pub fn html(&self) -> Result<String, PageError> {
        Ok(Html(self).render()?)
    }

    /// As Markdown. The picture at the head is the file `evidence.svg` beside it.
    ///
    /// # Errors
    ///
    /// If the template cannot be filled in.
    pub fn markdown(&self) -> Result<String, PageError> {
        Ok(Markdown(self).render()?)
    }

    fn has_bands(&self) -> bool {
        self.run.vary == Vary::Band
    }

    /// How many cells have a published figure.
    fn published_count(&self) -> usize {
        let counted = self.run.reproduced.iter().filter_map(|table| mean_error(&table.cells, |_| true));
        counted.map(|error| error.cells).sum()
    }

    /// All tables that there are.
    fn tables(&self) -> usize {
        TABLES.len()
    }

    /// Tables that are not in this run.
    fn missing(&self) -> Vec<&'static str> {
        let is_here =
            |name: &&str| self.run.reproduced.iter().any(|reproduced| reproduced.table.name == *name);
        TABLES.iter().map(|table| table.name).filter(|name| !is_here(name)).collect()
    }
}

/// The figures that stand for the tables, by document.
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
