//! Where, when and how the contents of a file were made: the head of each file of results.

use std::env;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use nearlock_bench::bench::TestBed;
use nearlock_lab::sweep::quoted;
use serde::Serialize;

use super::Extent;
use crate::args::Format;

/// Warnings that were printed to standard error.
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps a warning for the files that are written later.
pub(super) fn warned(message: &str) {
    WARNINGS.lock().unwrap_or_else(PoisonError::into_inner).push(message.to_owned());
}

/// The head of a file.
#[derive(Debug, Serialize)]
pub struct Provenance {
    /// The kind of figures in the rows: `measured` or `simulated`, or both.
    figures: &'static str,
    /// Version of nearlock.
    nearlock: &'static str,
    /// The compiler that built it.
    compiler: &'static str,
    /// The command line.
    command: String,
    /// When the file was written, in UTC.
    date: String,
    /// Model of the processor that the command ran on.
    processor: Option<String>,
    /// Number of CPUs that the process could use.
    cpus: usize,
    /// Whether the machine is virtual.
    is_virtual: bool,
    /// Whether the command ended before all was done. Then rows are missing.
    partial: bool,
    /// The mark of partial results.
    #[serde(skip)]
    mark: Option<String>,
    /// The warnings that were printed to standard error.
    warnings: Vec<String>,
    /// Locks and cells that failed, a sentence each. They have no rows.
    failures: Vec<String>,
    /// More keys of a file, with their values as JSON.
    #[serde(skip)]
    more: Vec<(&'static str, String)>,
}

impl Provenance {
    /// The head of a file with such figures that this process writes now.
    pub fn now(figures: &'static str, extent: Extent, failures: Vec<String>) -> Self {
        let machine = TestBed::this();
        let name = env!("CARGO_BIN_NAME").to_owned();
        let arguments = env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
        Self {
            figures,
            nearlock: env!("CARGO_PKG_VERSION"),
            compiler: nearlock_lab::COMPILER,
            command: [name].into_iter().chain(arguments).collect::<Vec<_>>().join(" "),
            date: Timestamp::now().strftime("%FT%TZ").to_string(),
            processor: machine.model,
            cpus: machine.cpus,
            is_virtual: machine.is_virtual,
            partial: extent.is_partial(),
            mark: extent.mark(),
            warnings: WARNINGS.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            failures,
            more: Vec::new(),
        }
    }

    /// Adds a key and its value to files in JSON.
    ///
    /// # Errors
    ///
    /// If the value has no form in JSON.
    pub fn with(mut self, key: &'static str, value: &impl Serialize) -> serde_json::Result<Self> {
        self.more.push((key, serde_json::to_string(value)?));
        Ok(self)
    }

    /// Writes the head, and the rows, which `rows` has in this format. JSON is an object with the
    /// keys `provenance` and `rows`, and more if there are. In CSV, lines that begin with `#` come
    /// before the header.
    pub fn write(&self, out: &mut impl Write, format: Format, rows: &[u8]) -> io::Result<()> {
        match format {
            Format::Json => {
                let provenance = serde_json::to_string(self)?;
                write!(out, "{{\n\"provenance\": {provenance},\n\"rows\": ")?;
                out.write_all(rows)?;
                for (key, value) in &self.more {
                    writeln!(out, ",\n\"{key}\": {value}")?;
                }
                writeln!(out, "}}")
            }
            Format::Csv => {
                for (name, value) in self.fields() {
                    writeln!(out, "# {name}: {}", value.replace('\n', " "))?;
                }
                out.write_all(rows)
            }
            Format::Text => out.write_all(rows),
        }
    }

    /// The mark of partial results, and the failures, for pictures.
    pub fn notes(&self) -> Vec<String> {
        let failed = match &self.failures[..] {
            [] => None,
            [one] => Some(format!("FAILURE: {one}.")),
            [first, others @ ..] => Some(format!("FAILURE: {first}. And {} more.", others.len())),
        };
        self.mark.iter().cloned().chain(failed).collect()
    }

    /// The mark of partial results.
    pub fn mark(&self) -> Option<&str> {
        self.mark.as_deref()
    }

    /// The fields as text, for CSV and for pages.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = vec![
            ("figures", self.figures.to_owned()),
            ("nearlock", self.nearlock.to_owned()),
            ("compiler", self.compiler.to_owned()),
            ("command", self.command.clone()),
            ("date", self.date.clone()),
            ("processor", self.processor.clone().unwrap_or_else(|| "unknown".to_owned())),
            ("cpus", self.cpus.to_string()),
            ("is_virtual", self.is_virtual.to_string()),
            ("partial", self.partial.to_string()),
        ];
        fields.extend(self.warnings.iter().map(|warning| ("warning", warning.clone())));
        fields.extend(self.failures.iter().map(|failure| ("failure", failure.clone())));
        fields
    }
}
