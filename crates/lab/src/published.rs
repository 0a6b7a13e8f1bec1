//! Published tables: measurements by others, on machines that are not at hand.
//!
//! A table consists of a compiled-in file of comma-separated values in `published/`, and of a
//! description in `catalogue.rs`. The description gives the keys of its rows, the simulations for
//! each row and column, and the conversion of their figures to those of the table. It also tells
//! which cells were used to choose the simulator's parameters. The class of a cell is decided there
//! and nowhere else. Cells that the publication does not have are empty in the file. They are
//! simulated, but not compared.

mod catalogue;
mod documents;
mod effect;
mod row;
mod setup;
mod statements;

use std::sync::OnceLock;

use crate::names::{self, UnknownName};
use serde::{Serialize, Serializer};

pub use catalogue::TABLES;
pub use documents::{Claim, DOCUMENTS, Document, Headline};
pub use effect::{Effect, insignificant};
pub use row::{KeyValue, RowKey, Rows, THREADS};
pub use setup::{Column, Setup};
pub use statements::Statement;

/// To what degree a cell is a test of the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A parameter was chosen to fit this cell. The cell was named before the first fit.
    Fitted,
    /// The cell was looked at while a structural choice was made.
    Seen,
    /// Neither: the simulator was built without knowledge of the cell.
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

/// A lock that a table compares.
#[derive(Debug)]
pub struct Variant {
    /// The name in reports.
    pub name: &'static str,
    /// The lock of this project that is simulated for it.
    pub lock: &'static str,
    /// The column of the file. The standard deviation is in the column with this name and `_sd`.
    column: &'static str,
}

/// Some cells of a variant.
#[derive(Debug)]
struct Cells {
    /// The name of the variant.
    variant: &'static str,
    /// The rows.
    rows: Rows,
}

/// Cells that were looked at while a structural choice was made.
#[derive(Debug)]
pub struct SeenCells {
    /// The names of the variants.
    pub variants: &'static [&'static str],
    /// The rows of each variant.
    pub rows: Rows,
    /// The choice that was made.
    pub choice: &'static str,
}

/// The conversion of a simulated figure to one of the table.
#[derive(Clone, Copy, Debug)]
pub enum Scale {
    /// Multiplied by this constant: the table's value for one operation per microsecond.
    Times(f64),
    /// Divided by the figure of the first variant. That variant is 1 by definition and counts in no
    /// mean error.
    RelativeToFirst,
    /// The time in seconds. The first variant takes this long by definition. The time of another
    /// variant is shorter by the factor by which its throughput is higher.
    SecondsOfFirst(f64),
    /// Jobs per minute, without conversion.
    JobsPerMinute,
    /// The share of CPU time in slow paths, in per cent. Errors are differences of shares: 3 %
    /// instead of 1 % is an error of 0.02.
    SlowPathPercent,
    /// The gain in per cent over a base lock, which the function gives for the row. Only the lock
    /// differs between the two.
    PercentOver(fn(&RowKey) -> &'static str),
}

/// A published table, with a row for each number of threads or other case, and a column for each
/// variant.
#[derive(Debug)]
pub struct Table {
    /// The name on the command line.
    pub name: &'static str,
    /// The publication.
    pub source: &'static str,
    /// The machine description for the machine of the measurements, unless a row names another.
    pub machine: &'static str,
    /// The workload, unless a row names another.
    pub workload: &'static str,
    /// The measured quantity.
    pub metric: &'static str,
    /// The unit.
    pub unit: &'static str,
    /// The conversion of a simulated figure to one of the table.
    pub scale: Scale,
    /// The variants. The others are compared with the first.
    pub variants: &'static [Variant],
    /// Statements of the publication about its figures.
    pub statements: &'static [Statement],
    /// The largest mean absolute error of the cells with which the table counts as reproduced. 0.1
    /// is 10 %.
    pub mean_error_max: f64,
    /// The columns of the file that name a row.
    pub keys: &'static [&'static str],
    /// Sets what a row needs in addition to the table's machine and workload, and the variant's
    /// lock.
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
    /// The rows of the file. They are parsed on first use.
    rows: OnceLock<Vec<Row>>,
}

impl File {
    const fn new(text: &'static str) -> Self {
        Self { text, rows: OnceLock::new() }
    }
}

/// The contents of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// The mean.
    pub mean: f64,
    /// The standard deviation, if the publication gives one.
    pub sd: Option<f64>,
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The name of the row.
    pub key: RowKey,
    /// The values by variant. `None` is not in the document.
    pub values: Vec<Option<Published>>,
}

impl Table {
    /// The table with this name.
    ///
    /// # Errors
    ///
    /// If it does not exist.
    pub fn named(name: &str) -> Result<&'static Table, UnknownName> {
        let named = TABLES.iter().copied().find(|table| names::is_same(table.name, name));
        named.ok_or_else(|| UnknownName {
            kind: "table",
            name: name.to_owned(),
            known: TABLES.iter().map(|table| table.name).collect(),
        })
    }

    /// Whether the figures of this variant are fixed by definition, because the other variants are
    /// measured relative to them.
    pub fn is_by_definition(&self, variant: &str) -> bool {
        matches!(self.scale, Scale::RelativeToFirst | Scale::SecondsOfFirst(_))
            && self.variants[0].name == variant
    }

    /// The class of the cell in this row and column. A cell that is fixed by definition counts as
    /// fitted, since it always fits.
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

    /// The cells that were seen, with the reasons.
    pub fn seen(&self) -> &'static [SeenCells] {
        self.seen
    }

    /// The figures that a row needs.
    pub fn columns(&self) -> Vec<Column> {
        let variants = (0..self.variants.len()).map(Column::Variant);
        variants.chain(matches!(self.scale, Scale::PercentOver(_)).then_some(Column::Base)).collect()
    }

    /// The simulations for one of these figures.
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

    /// The names of the table's machines.
    pub fn machines(&self) -> String {
        self.names(|setup| setup.machine)
    }

    /// The names of the table's workloads.
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

    /// The performance of figure `of` relative to figure `to`. Usually this is their ratio. Figures
    /// that are a gain in per cent are first converted to multiples of the base. Of times, the
    /// shorter is the better.
    pub fn ratio(&self, of: f64, to: f64) -> f64 {
        match self.scale {
            Scale::Times(_) | Scale::JobsPerMinute | Scale::SlowPathPercent | Scale::RelativeToFirst => {
                of / to
            }
            Scale::PercentOver(_) => (100.0 + of) / (100.0 + to),
            Scale::SecondsOfFirst(_) => to / of,
        }
    }

    /// The relative error of a simulated figure. Of shares, the error is their difference. Of a
    /// gain in per cent, the error is relative to the multiple of the base.
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

    /// The unit of an error times 100: points if figures are shares, otherwise per cent of the
    /// figure.
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
