//! `machine.KEY=VALUE`: the properties of a machine that can be changed without another file.

mod counts;
mod numbers;
mod value;
mod words;

use super::error::Problem;
use super::resolve;
use super::{MachineSpec, ModelParameters, SpecError};
use counts::{BYPASSES_MAX, COUNTS, Count, STORE_BUFFER_ENTRIES_MAX, whole_number};
use numbers::{NUMBERS, Number};
pub use value::Value;
use words::{WORDS, Word};

/// A setting of a machine, for lists.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineSetting {
    /// `machine.KEY`, in lower case with hyphens.
    pub name: &'static str,
    /// Unit of the value; empty for pure numbers and words.
    pub unit: &'static str,
    /// Value on this machine.
    pub value: Value,
    /// Values that this machine can have.
    pub range: String,
    /// One sentence.
    pub summary: &'static str,
}

/// Checks the numbers in a file's `[model]` and `[local_ns]`.
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

/// The keys of `[model]` whose values are not the default, with their values as TOML.
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

/// The prefix of every setting's name.
const PREFIX: &str = "machine.";

impl MachineSpec {
    /// Reads `machine.KEY=VALUE`. `key` lacks the `machine.`. Returns the name and the value that
    /// [`assign`](Self::assign) takes.
    ///
    /// # Errors
    ///
    /// If no machine has such a setting, or the value is of another kind. Limits may depend on the
    /// machine and are not checked.
    pub fn read_setting(key: &str, value: &str) -> Result<(&'static str, Value), SpecError> {
        let name = match key.replace('_', "-").as_str() {
            "sockets" => "nodes".to_owned(),
            name => name.to_owned(),
        };
        let setting = Known::all().find(|setting| setting.key() == name);
        let setting = setting.ok_or_else(|| unknown(key))?;
        let value = setting.read(value).map_err(|problem| setting.refused(value, problem))?;
        Ok((setting.name(), value))
    }

    /// The names of all settings: `machine.KEY`.
    pub fn setting_names() -> Vec<&'static str> {
        Known::all().map(Known::name).collect()
    }

    /// Changes the setting with this name: `machine.KEY`.
    ///
    /// # Errors
    ///
    /// If the setting does not exist, or this machine cannot have the value. The machine is
    /// unchanged then.
    pub fn assign(&mut self, name: &str, value: Value) -> Result<(), SpecError> {
        let setting = Known::all().find(|setting| setting.name() == name);
        let setting = setting.ok_or_else(|| unknown(name.strip_prefix(PREFIX).unwrap_or(name)))?;
        let mut changed = self.clone();
        setting.set(&mut changed, value).map_err(|problem| setting.refused(value, problem))?;
        *self = changed;
        Ok(())
    }

    /// [Reads](Self::read_setting) a value and [assigns](Self::assign) it.
    ///
    /// # Errors
    ///
    /// As for these two functions.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SpecError> {
        let (name, value) = Self::read_setting(key, value)?;
        self.assign(name, value)
    }

    /// All settings, with their values on this machine.
    pub fn settings(&self) -> Vec<MachineSetting> {
        let mut spec = self.clone();
        let of = |setting: Known| MachineSetting {
            name: setting.name(),
            unit: setting.unit(),
            value: setting.get(&mut spec),
            range: setting.range(self),
            summary: setting.summary(),
        };
        Known::all().map(of).collect()
    }
}

/// A setting that exists.
#[derive(Clone, Copy)]
enum Known {
    Count(&'static Count),
    Word(&'static Word),
    Number(&'static Number),
}

impl Known {
    /// All settings, in the order of listings.
    fn all() -> impl Iterator<Item = Self> {
        let words = WORDS.iter().map(Self::Word);
        COUNTS.iter().map(Self::Count).chain(words).chain(NUMBERS.iter().map(Self::Number))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Count(Count { name, .. })
            | Self::Word(Word { name, .. })
            | Self::Number(Number { name, .. }) => name,
        }
    }

    /// The name without the common prefix.
    fn key(self) -> &'static str {
        &self.name()[PREFIX.len()..]
    }

    fn summary(self) -> &'static str {
        match self {
            Self::Count(Count { summary, .. })
            | Self::Word(Word { summary, .. })
            | Self::Number(Number { summary, .. }) => summary,
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Number(number) => number.unit,
            Self::Count(_) | Self::Word(_) => "",
        }
    }

    /// The values that this machine can have.
    fn range(self, spec: &MachineSpec) -> String {
        match self {
            Self::Count(count) => (count.range)(spec),
            Self::Word(word) => word.words.join(", "),
            Self::Number(number) => range_of(number),
        }
    }

    /// Reads a value of the setting's kind. An error tells what would be right.
    fn read(self, text: &str) -> Result<Value, String> {
        let read = match self {
            Self::Count(_) => text.parse().ok().map(Value::Integer),
            Self::Word(word) => word.place(text).map(|place| Value::Word(word.words[place])),
            Self::Number(_) => text.parse().ok().map(Value::Float),
        };
        read.ok_or_else(|| self.right())
    }

    fn get(self, spec: &mut MachineSpec) -> Value {
        match self {
            Self::Count(count) => Value::Integer((count.get)(spec) as u64),
            Self::Word(word) => Value::Word(word.of(&spec.model)),
            Self::Number(number) => Value::Float(*(number.field)(spec)),
        }
    }

    /// Sets the value. An error tells what would be right, and leaves the machine in any state.
    fn set(self, spec: &mut MachineSpec, value: Value) -> Result<(), String> {
        match (self, value) {
            (Self::Count(count), Value::Integer(value)) => {
                let value = count.within(spec, value)?;
                (count.set)(spec, value)
            }
            (Self::Word(word), Value::Word(value)) => {
                (word.set)(&mut spec.model, word.place(value).ok_or_else(|| self.right())?);
                Ok(())
            }
            (Self::Number(number), Value::Float(value)) if (number.low..=number.high).contains(&value) => {
                *(number.field)(spec) = value;
                check_ticks(spec).map_err(|Problem { problem, .. }| problem)?;
                resolve::check_local(&spec.local_ns, &spec.latency_ns)
                    .map_err(|Problem { problem, .. }| problem)
            }
            _ => Err(self.right()),
        }
    }

    /// What would be right on some machine.
    fn right(self) -> String {
        match self {
            Self::Count(count) => whole_number(count.low, count.high),
            Self::Word(Word { words: [first, second], .. }) => format!("must be {first} or {second}"),
            Self::Number(number) => format!("must be {}", range_of(number)),
        }
    }

    fn refused(self, value: impl ToString, problem: String) -> SpecError {
        SpecError::Setting { name: self.name(), value: value.to_string(), problem }
    }
}

fn unknown(key: &str) -> SpecError {
    SpecError::UnknownSetting { key: key.to_owned(), known: Known::all().map(Known::key).collect() }
}

/// Checks that interrupts leave time to work.
fn check_ticks(spec: &MachineSpec) -> Result<(), Problem> {
    let ModelParameters { tick_hz, tick_ns, .. } = spec.model;
    if tick_hz * tick_ns <= 5e8 {
        return Ok(());
    }
    let problem =
        format!("is {tick_ns} ns, must be at most half of the time between ticks, {tick_hz} a second");
    Err(Problem::new("model.tick_ns", problem))
}

fn range_of(number: &Number) -> String {
    let Number { low, high, unit, .. } = number;
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    format!("{low} to {high}{unit}")
}
