//! `machine.KEY=VALUE`: what of a machine can be changed without another file.

mod numbers;
mod words;

use super::error::Problem;
use super::resolve::{self, Counts, SMT_MAX};
use super::{MachineSpec, ModelParameters, Provenance, SpecError};
use numbers::{NUMBERS, Number};
use words::WORDS;

/// A setting of a machine, for lists: `machine.NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineSetting {
    /// Key, in lower case with hyphens.
    pub name: &'static str,
    /// Unit of the value; empty for pure numbers and words.
    pub unit: &'static str,
    /// Value on this machine.
    pub value: String,
    /// Values that this machine can have.
    pub range: String,
    /// One sentence.
    pub summary: &'static str,
}

const STORE_BUFFER_ENTRIES_MAX: usize = 1024;
/// Many more would leave other sockets without the line for good.
const BYPASSES_MAX: usize = 1000;

/// Settings that are counts, with their summaries.
const OTHERS: &[(&str, &str)] = &[
    ("nodes", "Use only the first sockets (NUMA nodes); also called `sockets`."),
    ("cores-per-socket", "Cores of each socket: whole cache domains, or part of one."),
    ("smt", "Hardware threads of each core."),
    (
        "store-buffer-entries",
        "Stores that a hardware thread can hold back; 1 blocks at each until it is done.",
    ),
    (
        "same-socket-bypasses",
        "Requests for a line from the socket that had it last, served in a row ahead of older ones.",
    ),
];

/// Checks the numbers that a file's `[model]` and `[local_ns]` give.
pub(super) fn check_model(spec: &MachineSpec) -> Result<(), Problem> {
    let mut spec = spec.clone();
    for number in NUMBERS {
        let value = *(number.field)(&mut spec);
        if !(number.low..=number.high).contains(&value) {
            return Err(Problem::new(number.file_key, format!("is {value}, must be {}", range_of(number))));
        }
    }
    check_ticks(&spec)?;
    let bypasses = spec.model.same_socket_bypasses;
    if bypasses > BYPASSES_MAX {
        let problem = format!("is {bypasses}, must be 0 to {BYPASSES_MAX}");
        return Err(Problem::new("model.same_socket_bypasses", problem));
    }
    let entries = spec.model.store_buffer_entries;
    if !(1..=STORE_BUFFER_ENTRIES_MAX).contains(&entries) {
        let problem = format!("is {entries}, must be 1 to {STORE_BUFFER_ENTRIES_MAX}");
        return Err(Problem::new("model.store_buffer_entries", problem));
    }
    Ok(())
}

/// The keys of `[model]` whose values are not the default, with these values as TOML.
pub(super) fn changed_model_keys(spec: &MachineSpec) -> Vec<(&'static str, String)> {
    let mut spec = spec.clone();
    let mut plain = spec.clone();
    plain.model = ModelParameters::default();
    let mut changed = Vec::new();
    for number in NUMBERS {
        let Some(key) = number.file_key.strip_prefix("model.") else { continue };
        let value = *(number.field)(&mut spec);
        if value != *(number.field)(&mut plain) {
            changed.push((key, format!("{value:?}")));
        }
    }
    for word in WORDS {
        let value = word.of(&spec.model);
        if value != word.of(&plain.model) {
            changed.push((word.file_key, format!("\"{value}\"")));
        }
    }
    if spec.model.store_buffer_entries != plain.model.store_buffer_entries {
        changed.push(("store_buffer_entries", spec.model.store_buffer_entries.to_string()));
    }
    if spec.model.same_socket_bypasses != plain.model.same_socket_bypasses {
        changed.push(("same_socket_bypasses", spec.model.same_socket_bypasses.to_string()));
    }
    changed
}

impl MachineSpec {
    /// Changes one setting: `machine.KEY=VALUE` on the command line, with `key` without its `machine.`.
    ///
    /// After an error the machine is as before.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SpecError> {
        let name = key.replace('_', "-");
        let mut changed = self.clone();
        let result = match name.as_str() {
            "nodes" | "sockets" => changed.set_sockets(value),
            "cores-per-socket" => changed.set_cores_per_socket(value),
            "smt" => changed.set_smt(value),
            "store-buffer-entries" => changed.set_store_buffer_entries(value),
            "same-socket-bypasses" => changed.set_same_socket_bypasses(value),
            _ => match changed.set_listed(&name, value) {
                Some(result) => result,
                None => {
                    return Err(SpecError::UnknownSetting { key: key.to_owned(), known: setting_names() });
                }
            },
        };
        let key = key.to_owned();
        result.map_err(|problem| SpecError::Setting { key, value: value.to_owned(), problem })?;
        *self = changed;
        Ok(())
    }

    /// All settings, with their values on this machine.
    pub fn settings(&self) -> Vec<MachineSetting> {
        let mut spec = self.clone();
        let others = OTHERS.iter().map(|&(name, summary)| {
            let (value, range) = self.describe(name);
            MachineSetting { name, unit: "", value, range, summary }
        });
        let numbers = NUMBERS.iter().map(|number| MachineSetting {
            name: number.name,
            unit: number.unit,
            value: (number.field)(&mut spec).to_string(),
            range: range_of(number),
            summary: number.summary,
        });
        let words = WORDS.iter().map(|word| MachineSetting {
            name: word.name,
            unit: "",
            value: word.of(&self.model).to_owned(),
            range: word.words.join(", "),
            summary: word.summary,
        });
        others.chain(words).chain(numbers).collect()
    }

    /// Value and range of a setting that is not one number.
    fn describe(&self, name: &str) -> (String, String) {
        match name {
            "nodes" => (self.sockets.to_string(), format!("1 to {}", self.sockets)),
            "cores-per-socket" => (self.cores_per_socket.to_string(), self.cores_per_socket_range()),
            "smt" => (self.smt.to_string(), format!("1 to {SMT_MAX}")),
            "same-socket-bypasses" => {
                (self.model.same_socket_bypasses.to_string(), format!("0 to {BYPASSES_MAX}"))
            }
            _ => {
                let entries = self.model.store_buffer_entries;
                (entries.to_string(), format!("1 to {STORE_BUFFER_ENTRIES_MAX}"))
            }
        }
    }

    fn cores_per_socket_range(&self) -> String {
        if self.latency_ns.provenance == Provenance::MemoryOnly {
            return "1: the file has no latencies between cores".to_owned();
        }
        if self.cores_per_domain == self.cores_per_socket {
            return format!("1 to {}", resolve::CORES_MAX / self.sockets);
        }
        format!("up to {0}, or a multiple of {0}", self.cores_per_domain)
    }

    fn set_sockets(&mut self, value: &str) -> Result<(), String> {
        let sockets = count(value, 1, self.sockets)?;
        self.sockets = sockets;
        self.hops.truncate(sockets);
        self.hops.iter_mut().for_each(|row| row.truncate(sockets));
        Ok(())
    }

    fn set_cores_per_socket(&mut self, value: &str) -> Result<(), String> {
        let cores = count(value, 1, resolve::CORES_MAX)?;
        if cores > 1 && self.latency_ns.provenance == Provenance::MemoryOnly {
            return Err("must be 1: the machine file has no latencies between cores".to_owned());
        }
        if self.cores_per_domain == self.cores_per_socket || cores < self.cores_per_domain {
            self.cores_per_domain = cores;
        }
        self.cores_per_socket = cores;
        self.check_counts()
    }

    fn set_smt(&mut self, value: &str) -> Result<(), String> {
        self.smt = count(value, 1, SMT_MAX)?;
        self.check_counts()
    }

    /// Changes a setting that is a word or a number; `None` if there is none of that name.
    fn set_listed(&mut self, name: &str, value: &str) -> Option<Result<(), String>> {
        if let Some(word) = WORDS.iter().find(|word| word.name == name) {
            return Some(word.parse(&mut self.model, value));
        }
        let number = NUMBERS.iter().find(|number| number.name == name)?;
        Some(self.set_number(number, value))
    }

    fn set_store_buffer_entries(&mut self, value: &str) -> Result<(), String> {
        self.model.store_buffer_entries = count(value, 1, STORE_BUFFER_ENTRIES_MAX)?;
        Ok(())
    }

    fn set_same_socket_bypasses(&mut self, value: &str) -> Result<(), String> {
        self.model.same_socket_bypasses = count(value, 0, BYPASSES_MAX)?;
        Ok(())
    }

    fn set_number(&mut self, number: &Number, value: &str) -> Result<(), String> {
        let parsed = value.parse::<f64>().ok().filter(|parsed| (number.low..=number.high).contains(parsed));
        let parsed = parsed.ok_or_else(|| format!("must be {}", range_of(number)))?;
        *(number.field)(self) = parsed;
        check_ticks(self).map_err(|Problem { problem, .. }| problem)?;
        resolve::check_local(&self.local_ns, &self.latency_ns).map_err(|Problem { problem, .. }| problem)
    }

    fn check_counts(&self) -> Result<(), String> {
        resolve::check_counts(&Counts {
            sockets: self.sockets,
            cores_per_socket: self.cores_per_socket,
            cores_per_domain: self.cores_per_domain,
            smt: self.smt,
        })
        .map_err(|Problem { key, problem }| format!("{key} {problem}"))
    }
}

/// Interrupts must leave time to work.
fn check_ticks(spec: &MachineSpec) -> Result<(), Problem> {
    let ModelParameters { tick_hz, tick_ns, .. } = spec.model;
    if tick_hz * tick_ns <= 5e8 {
        return Ok(());
    }
    let problem =
        format!("is {tick_ns} ns, must be at most half of the time between ticks, {tick_hz} a second");
    Err(Problem::new("model.tick_ns", problem))
}

/// Names of all settings.
fn setting_names() -> Vec<&'static str> {
    let others = OTHERS.iter().map(|&(name, _)| name);
    let words = WORDS.iter().map(|word| word.name);
    others.chain(words).chain(NUMBERS.iter().map(|number| number.name)).collect()
}

fn range_of(number: &Number) -> String {
    let Number { low, high, unit, .. } = number;
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    format!("{low} to {high}{unit}")
}

fn count(value: &str, low: usize, high: usize) -> Result<usize, String> {
    let parsed = value.parse().ok().filter(|parsed| (low..=high).contains(parsed));
    parsed.ok_or_else(|| format!("must be a whole number from {low} to {high}"))
}
