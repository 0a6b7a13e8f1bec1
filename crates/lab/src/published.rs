//! Tables that others have published: measurements on machines that one does not own.
//!
//! A table is a file of comma-separated values in `published/`, compiled in, and a description in
//! `catalogue.rs`: what names its rows, which simulations a row and a column stand for, how their
//! figures become the table's, and which of its cells were used to choose the simulator's
//! parameters. The class of a cell is decided there and nowhere else. Cells that the publication
//! does not have are left empty in the file: they are simulated, and held against nothing.

mod catalogue;
mod documents;
mod effect;
mod row;
mod setup;
mod statements;

use std::sync::OnceLock;

use serde::{Serialize, Serializer};

pub use catalogue::TABLES;
pub use documents::{Claim, DOCUMENTS, Document, Headline};
pub use effect::{Effect, insignificant};
pub use row::{KeyValue, RowKey, Rows, THREADS};
pub use setup::{Column, Setup};
pub use statements::Statement;

/// How far a cell is a test of the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A parameter was chosen so that this cell fits. Named before the first fit.
    Fitted,
    /// Looked at while a structural choice was made.
    Seen,
    /// Neither: the simulator could not know.
    Predicted,
}

impl Class {
    /// All classes.
    pub const ALL: [Class; 3] = [Class::Fitted, Class::Seen, Class::Predicted];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Class::Fitted => "fitted",
            Class::Seen => "seen",
            Class::Predicted => "predicted",
        }
    }
}

impl Serialize for Class {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// One of the locks that a table compares.
#[derive(Debug)]
pub struct Variant {
    /// Its name in reports.
    pub name: &'static str,
    /// The lock of ours that stands for it.
    pub lock: &'static str,
    /// Its column in the file; the standard deviation is in the column of this name and `_sd`.
    column: &'static str,
}

/// Some cells of a variant.
#[derive(Debug)]
struct Cells {
    /// Name of the variant.
    variant: &'static str,
    /// The rows.
    rows: Rows,
}

/// Cells that were looked at while a structural choice was made.
#[derive(Debug)]
pub struct SeenCells {
    /// Names of the variants.
    pub variants: &'static [&'static str],
    /// The rows of each.
    pub rows: Rows,
    /// Which choice it was.
    pub choice: &'static str,
}

/// How a simulated figure becomes one of a table.
#[derive(Clone, Copy, Debug)]
pub enum Scale {
    /// By the unit's worth: a simulated operation per microsecond is so many.
    Times(f64),
    /// Divided by that of the first variant, which is 1 by definition and counts in no mean error.
    RelativeToFirst,
    /// How long it takes, in seconds, if the first variant takes so long: as many times shorter as
    /// it does more. That of the first is so by definition.
    SecondsOfFirst(f64),
    /// As it is: jobs per minute.
    JobsPerMinute,
    /// The share of CPU time in slow paths, in per cent. Errors are differences of shares: 3 %
    /// instead of 1 % is 0.02.
    SlowPathPercent,
    /// In per cent more than the lock that this gives for the row, alone in its place.
    PercentOver(fn(&RowKey) -> &'static str),
}

/// A published table: a row for each number of threads or other case, a column for each variant.
#[derive(Debug)]
pub struct Table {
    /// Its name on the command line.
    pub name: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Machine description that stands for the machine it was measured on, unless a row names
    /// another.
    pub machine: &'static str,
    /// The workload, unless a row names another.
    pub workload: &'static str,
    /// What was measured.
    pub metric: &'static str,
    /// In which unit.
    pub unit: &'static str,
    /// How a simulated figure becomes one of the table.
    pub scale: Scale,
    /// The variants. The first is what the others are compared with.
    pub variants: &'static [Variant],
    /// What the publication says of its figures.
    pub statements: &'static [Statement],
    /// Greatest mean of the cells' absolute errors with which the table counts as reproduced; 0.1
    /// is 10 %.
    pub mean_error_max: f64,
    /// The columns of the file that name a row.
    pub keys: &'static [&'static str],
    /// What a row asks for beyond the table's machine and workload, and the variant's lock.
    adjust: fn(&RowKey, &mut Setup),
    /// Cells that were fitted.
    fitted: &'static [Cells],
    /// Cells that were seen.
    seen: &'static [SeenCells],
    file: &'static File,
}

/// A file of comma-separated values.
#[derive(Debug)]
struct File {
    text: &'static str,
    /// Its rows, which are read when they are first used.
    rows: OnceLock<Vec<Row>>,
}

impl File {
    const fn new(text: &'static str) -> Self {
        Self { text, rows: OnceLock::new() }
    }
}

/// What stands in one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// The mean.
    pub mean: f64,
    /// The standard deviation, where the publication gives one.
    pub sd: Option<f64>,
}

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What names it.
    pub key: RowKey,
    /// By variant; `None` is not in the document.
    pub values: Vec<Option<Published>>,
}

impl Table {
    /// The table of this name.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn named(name: &str) -> Result<&'static Table, crate::names::UnknownName> {
        TABLES.iter().copied().find(|table| table.name == name).ok_or_else(|| crate::names::UnknownName {
            kind: "table",
            name: name.to_owned(),
            known: TABLES.iter().map(|table| table.name).collect(),
        })
    }

    /// Whether the figures of this variant are what they are by definition, since the others are
    /// measured by them.
    pub fn is_by_definition(&self, variant: &str) -> bool {
        matches!(self.scale, Scale::RelativeToFirst | Scale::SecondsOfFirst(_))
            && self.variants[0].name == variant
    }

    /// The class of the cell in this row and column. One that is so by definition could not but
    /// fit.
    pub fn class(&self, variant: &str, row: &RowKey) -> Class {
        let is = |name: &str, rows: Rows| name == variant && rows.contain(row);
        if self.is_by_definition(variant) || self.fitted.iter().any(|cells| is(cells.variant, cells.rows)) {
            Class::Fitted
        } else if self.seen.iter().any(|cells| cells.variants.iter().any(|name| is(name, cells.rows))) {
            Class::Seen
        } else {
            Class::Predicted
        }
    }

    /// The cells that were seen, and why.
    pub fn seen(&self) -> &'static [SeenCells] {
        self.seen
    }

    /// The figures that a row needs.
    pub fn columns(&self) -> Vec<Column> {
        let variants = (0..self.variants.len()).map(Column::Variant);
        variants.chain(matches!(self.scale, Scale::PercentOver(_)).then_some(Column::Base)).collect()
    }

    /// The simulations behind one of them.
    pub fn setup(&self, row: &RowKey, column: Column) -> Setup {
        let lock = match (column, self.scale) {
            (Column::Base, Scale::PercentOver(base)) => base(row),
            (Column::Base, _) => self.variants[0].lock,
            (Column::Variant(index), _) => self.variants[index].lock,
        };
        let mut setup = Setup {
            machine: self.machine,
            workload: self.workload,
            lock,
            settings: Vec::new(),
            threads: row.threads().into_iter().collect(),
        };
        (self.adjust)(row, &mut setup);
        setup
    }

    /// The names of its machines.
    pub fn machines(&self) -> String {
        self.names(|setup| setup.machine)
    }

    /// The names of its workloads.
    pub fn workloads(&self) -> String {
        self.names(|setup| setup.workload)
    }

    fn names(&self, of: impl Fn(&Setup) -> &'static str) -> String {
        let mut names = Vec::new();
        for row in self.rows() {
            let name = of(&self.setup(&row.key, Column::Variant(0)));
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(", ")
    }

    /// How many times the one figure the other stands for: their ratio, that of what they are per
    /// cent more than, or where they are times, how many times faster the one is.
    pub fn ratio(&self, of: f64, to: f64) -> f64 {
        match self.scale {
            Scale::Times(_) | Scale::JobsPerMinute | Scale::SlowPathPercent | Scale::RelativeToFirst => {
                of / to
            }
            Scale::PercentOver(_) => (100.0 + of) / (100.0 + to),
            Scale::SecondsOfFirst(_) => to / of,
        }
    }

    /// By how much a simulated figure is off what was published: by which part of it, or where
    /// figures are per cent more than something, of what they are more.
    pub fn error(&self, simulated: f64, published: f64) -> f64 {
        let whole = match self.scale {
            Scale::Times(_) | Scale::JobsPerMinute | Scale::RelativeToFirst | Scale::SecondsOfFirst(_) => {
                published
            }
            Scale::SlowPathPercent => 100.0,
            Scale::PercentOver(_) => 100.0 + published,
        };
        (simulated - published) / whole
    }

    /// The unit of a hundred times an error: per cent of the figure, or where figures are shares,
    /// points.
    pub fn error_unit(&self) -> &'static str {
        match self.scale {
            Scale::SlowPathPercent => "points",
            _ => "%",
        }
    }

    /// The rows, in the order of the publication.
    pub fn rows(&self) -> &'static [Row] {
        let parse =
            || self.parse(self.file.text).expect("the tables are compiled in, and a test has parsed each");
        self.file.rows.get_or_init(parse)
    }

    fn parse(&self, text: &str) -> Result<Vec<Row>, String> {
        let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
        let headers = reader.headers().map_err(|error| error.to_string())?.clone();
        let column = |name: &str| headers.iter().position(|header| header == name);
        let number = |record: &csv::StringRecord, index: usize| match &record[index] {
            "" => Ok(None),
            text => text.parse::<f64>().map(Some).map_err(|error| format!("{}: {error}", &headers[index])),
        };
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| error.to_string())?;
            let key = |&key: &&'static str| {
                let index = column(key).ok_or_else(|| format!("no column `{key}`"))?;
                Ok::<_, String>((key, KeyValue::of(&record[index])))
            };
            let value = |variant: &Variant| {
                let index = column(variant.column).ok_or("a variant has no column")?;
                let sd = column(&format!("{}_sd", variant.column));
                let sd = sd.map(|index| number(&record, index)).transpose()?.flatten();
                Ok::<_, String>(number(&record, index)?.map(|mean| Published { mean, sd }))
            };
            rows.push(Row {
                key: RowKey::new(self.keys.iter().map(key).collect::<Result<_, _>>()?),
                values: self.variants.iter().map(value).collect::<Result<_, _>>()?,
            });
        }
        Ok(rows)
    }
}

#[cfg(test)]
pub(crate) mod tests;
