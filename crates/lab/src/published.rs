//! Tables that others have published: measurements on machines that one does not own.
//!
//! A table is a file of comma-separated values in `published/`, compiled in, and a description here:
//! which lock stands for which column, and which of its cells were used to choose the simulator's
//! parameters. The class of a cell is decided here and nowhere else.

mod statements;

use serde::{Serialize, Serializer};

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

/// Cells that were looked at while a structural choice was made.
#[derive(Debug)]
pub struct SeenCells {
    /// Name of the variant.
    pub variant: &'static str,
    /// The rows.
    pub threads: &'static [usize],
    /// Which choice it was.
    pub choice: &'static str,
}

const LOCKTORTURE_CHOICES: &str = "simulation.placement and simulation.start, machine.smt-speed, that \
    machine.cross-socket-scale is left at 1, ticks of the timer, machine.node-count, the mean over seeds (the whole table); \
    machine.queued-grab-fraction, that an atomic may lose its line while it works, machine.same-socket-scale, and \
    how locktorture.section-ns and think-ns divide their sum (8, 36 and 142 threads)";

const LOCKTORTURE_ROWS: &[usize] = &[1, 2, 4, 8, 16, 32, 36, 72, 108, 142];

/// How a simulated figure becomes one of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// By the unit's worth: a simulated operation per microsecond is so many.
    PerOpPerUs(f64),
    /// Divided by that of the first variant, which is 1 by definition and counts in no mean error.
    RelativeToFirst,
}

/// A published table: one row per number of threads, one column per variant.
#[derive(Debug)]
pub struct Table {
    /// Its name on the command line.
    pub name: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Machine description that stands for the machine it was measured on.
    pub machine: &'static str,
    /// The workload.
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
    /// Greatest mean of the cells' absolute errors with which the table counts as reproduced; 0.1 is 10 %.
    pub mean_error_max: f64,
    /// Cells that were fitted: variant and rows.
    fitted: &'static [(&'static str, &'static [usize])],
    /// Cells that were seen.
    seen: &'static [SeenCells],
    text: &'static str,
}

/// All tables.
pub const TABLES: &[Table] = &[
    Table {
        name: "cna-locktorture",
        source: "Kogan, \"Add NUMA-awareness to qspinlock\", patch series v13, cover letter, December 2020",
        machine: "haswell-ex-4s",
        workload: "locktorture",
        metric: "ops",
        unit: "1e7 ops in 30 s",
        scale: Scale::PerOpPerUs(30.0 * 1e6 / 1e7),
        variants: &[
            Variant { name: "stock", lock: "qspinlock", column: "stock" },
            Variant { name: "cna-wo-sro", lock: "cna-v13-no-sro", column: "cna_wo_sro" },
            Variant { name: "cna", lock: "cna-v13", column: "cna" },
        ],
        statements: statements::LOCKTORTURE,
        mean_error_max: 0.08,
        fitted: &[("stock", &[1])],
        seen: &[
            SeenCells {
                variant: "stock",
                threads: &[2, 4, 8, 16, 32, 36, 72, 108, 142],
                choice: LOCKTORTURE_CHOICES,
            },
            SeenCells { variant: "cna-wo-sro", threads: LOCKTORTURE_ROWS, choice: LOCKTORTURE_CHOICES },
            SeenCells { variant: "cna", threads: LOCKTORTURE_ROWS, choice: LOCKTORTURE_CHOICES },
        ],
        text: include_str!("../published/cna_locktorture.csv"),
    },
    Table {
        name: "cna-context1",
        source: "kernel test robot on v12 of the same series, November 2020; \
             with shuffle reduction: Kogan on v13",
        machine: "cascadelake-2s",
        workload: "context1",
        metric: "throughput",
        unit: "relative to stock",
        scale: Scale::RelativeToFirst,
        variants: &[
            Variant { name: "stock", lock: "qspinlock", column: "stock" },
            Variant { name: "cna-wo-sro", lock: "cna-v13-no-sro", column: "cna_wo_sro" },
            Variant { name: "cna", lock: "cna-v13", column: "cna" },
        ],
        statements: statements::CONTEXT1,
        mean_error_max: 0.04,
        fitted: &[],
        seen: &[
            SeenCells { variant: "cna-wo-sro", threads: &[56], choice: CONTEXT1_CHOICES },
            SeenCells { variant: "cna", threads: &[56], choice: CONTEXT1_CHOICES },
        ],
        text: include_str!("../published/cna_context1.csv"),
    },
];

const CONTEXT1_CHOICES: &str = "that a hop is one section, and context1.locks, section-ns, lines, think-ns and \
    partners; machine.node-count (chosen knowing that without it `cna` came out ahead of stock)";

/// What stands in one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// The mean.
    pub mean: f64,
    /// The standard deviation, where the publication gives one.
    pub sd: Option<f64>,
}

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Number of threads.
    pub threads: usize,
    /// By variant.
    pub values: Vec<Value>,
}

impl Table {
    /// The table of this name.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn named(name: &str) -> Result<&'static Table, crate::names::UnknownName> {
        TABLES.iter().find(|table| table.name == name).ok_or_else(|| crate::names::UnknownName {
            kind: "table",
            name: name.to_owned(),
            known: TABLES.iter().map(|table| table.name).collect(),
        })
    }

    /// Whether the figures of this variant are 1 by definition.
    pub fn is_by_definition(&self, variant: &str) -> bool {
        self.scale == Scale::RelativeToFirst && self.variants[0].name == variant
    }

    /// The class of the cell in this row and column. One that is 1 by definition could not but fit.
    pub fn class(&self, variant: &str, threads: usize) -> Class {
        if self.is_by_definition(variant)
            || self.fitted.iter().any(|&(name, rows)| name == variant && rows.contains(&threads))
        {
            Class::Fitted
        } else if self.seen.iter().any(|cells| cells.variant == variant && cells.threads.contains(&threads)) {
            Class::Seen
        } else {
            Class::Predicted
        }
    }

    /// The cells that were seen, and why.
    pub fn seen(&self) -> &'static [SeenCells] {
        self.seen
    }

    /// The rows, in the order of the publication.
    pub fn rows(&self) -> Vec<Row> {
        self.parse().expect("the tables are compiled in, and a test has parsed each")
    }

    fn parse(&self) -> Result<Vec<Row>, String> {
        let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(self.text.as_bytes());
        let headers = reader.headers().map_err(|error| error.to_string())?.clone();
        let number = |record: &csv::StringRecord, column: &str| -> Result<Option<f64>, String> {
            let Some(index) = headers.iter().position(|header| header == column) else {
                return Ok(None);
            };
            record[index].parse().map(Some).map_err(|error| format!("{column}: {error}"))
        };
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| error.to_string())?;
            let threads = number(&record, "threads")?.ok_or("no column `threads`")?;
            let values = self.variants.iter().map(|variant| {
                let mean = number(&record, variant.column)?.ok_or("a variant has no column")?;
                Ok(Value { mean, sd: number(&record, &format!("{}_sd", variant.column))? })
            });
            rows.push(Row { threads: threads as usize, values: values.collect::<Result<_, String>>()? });
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;

    #[test]
    fn every_table_parses_and_names_what_exists() {
        for table in TABLES {
            let rows = table.parse().unwrap();
            assert!(!rows.is_empty());
            assert!(rows.is_sorted_by_key(|row| row.threads));
            let machine = names::machine(table.machine).unwrap();
            assert!(rows.iter().all(|row| (1..=machine.cpus()).contains(&row.threads)));
            names::workload(table.workload).unwrap();
            for variant in table.variants {
                names::lock(variant.lock).unwrap();
            }
            let exists = |variant: &str, threads: usize| {
                table.variants.iter().any(|v| v.name == variant) && rows.iter().any(|r| r.threads == threads)
            };
            for &(variant, fitted) in table.fitted {
                assert!(fitted.iter().all(|&threads| exists(variant, threads)));
            }
            for cells in table.seen {
                assert!(cells.threads.iter().all(|&threads| exists(cells.variant, threads)));
                assert!(!cells.choice.is_empty());
            }
        }
    }

    #[test]
    fn cells_are_what_the_cover_letter_says() {
        let table = Table::named("cna-locktorture").unwrap();
        let rows = table.rows();
        assert_eq!(rows.len(), 10);
        assert_eq!(rows[0].values[0], Value { mean: 2.707, sd: Some(0.127) });
        assert_eq!(rows[9].threads, 142);
        assert_eq!(rows[9].values[2], Value { mean: 10.424, sd: Some(0.222) });
    }

    #[test]
    fn the_loss_of_context1_is_what_the_robot_said() {
        let table = Table::named("cna-context1").unwrap();
        let rows = table.rows();
        let means: Vec<f64> = rows[0].values.iter().map(|value| value.mean).collect();
        assert_eq!((rows.len(), rows[0].threads, means), (1, 56, vec![1.0, 0.826, 0.99]));
        assert!((rows[0].values[1].mean - 3070.0 / 3715.0).abs() < 0.001);
        assert!(table.is_by_definition("stock") && !table.is_by_definition("cna"));
        let others = TABLES.iter().filter(|table| table.scale != Scale::RelativeToFirst);
        assert!(others.into_iter().all(|table| !table.is_by_definition(table.variants[0].name)));
    }

    #[test]
    fn only_what_was_named_beforehand_is_fitted() {
        let table = Table::named("cna-locktorture").unwrap();
        let fitted: Vec<_> = table
            .rows()
            .iter()
            .flat_map(|row| table.variants.iter().map(|variant| (variant.name, row.threads)))
            .filter(|&(variant, threads)| table.class(variant, threads) == Class::Fitted)
            .collect();
        assert_eq!(fitted, [("stock", 1)]);
    }

    #[test]
    fn an_unknown_table_is_an_error_that_lists_them() {
        assert!(Table::named("cna").unwrap_err().to_string().contains("cna-locktorture"));
    }
}
