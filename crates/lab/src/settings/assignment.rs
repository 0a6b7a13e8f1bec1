//! One setting with its value.

use std::fmt;

use nearlock_core::settings::Setting;
use nearlock_sim::spec::{MachineSpec, Value};
use serde::{Serialize, Serializer};

use super::known::CHOICES;
use super::{Choice, Configuration, Group, Number, SettingError, any_of, lock_range, names, numbers, range};

/// `NAME.KEY=VALUE`. What a user writes is read once, into this. What is known beforehand is a
/// constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assignment {
    /// `NAME.KEY`, one of those that [`all`](super::all) lists.
    pub setting: &'static str,
    /// What it is set to.
    pub value: Value,
}

impl Assignment {
    /// Reads what a user wrote. That a machine cannot have the value is found when the machine is
    /// configured.
    ///
    /// # Errors
    ///
    /// If it is of another form, if these groups have no such setting, or if the setting cannot
    /// have this value.
    pub fn parse(text: &str, groups: &[Group]) -> Result<Self, SettingError> {
        let form = || SettingError::Form { text: text.to_owned() };
        let (name, value) = text.split_once('=').ok_or_else(form)?;
        let (name, value) = (name.trim(), value.trim());
        if !name.contains('.') {
            return Err(form());
        }
        if groups.contains(&Group::Machine)
            && let Some(key) = name.strip_prefix(MACHINE)
        {
            let (setting, value) = MachineSpec::read_setting(key, value)?;
            return Ok(Self { setting, value });
        }
        let setting = Known::named(name, groups)?;
        let read = setting.read(value).filter(|&value| setting.number(value).is_some());
        Ok(Self { setting: setting.name(), value: read.ok_or_else(|| setting.refused(value))? })
    }

    /// Of the setting of this name, which need not be known when this is compiled.
    ///
    /// # Errors
    ///
    /// If there is none. Those of machines are not looked for.
    pub fn of(name: &str, value: Value) -> Result<Self, SettingError> {
        Ok(Self { setting: Known::named(name, Group::ALL)?.name(), value })
    }

    /// Whether it is of the simulated machine.
    pub(super) fn is_of_machine(&self) -> bool {
        self.setting.starts_with(MACHINE)
    }
}

impl fmt::Display for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.setting, self.value)
    }
}

impl Serialize for Assignment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What the names of a machine's settings begin with.
const MACHINE: &str = "machine.";

/// A setting that there is, but for those of machines.
#[derive(Clone, Copy)]
pub(super) enum Known {
    Lock(Setting),
    Choice(&'static Choice),
    Number(&'static Number),
}

impl Known {
    /// The setting of this name.
    pub(super) fn named(name: &str, groups: &[Group]) -> Result<Self, SettingError> {
        let locks = Setting::ALL.iter().map(|&setting| Self::Lock(setting));
        let all = locks.chain(CHOICES.iter().map(Self::Choice)).chain(numbers().map(Self::Number));
        let mut here = all.filter(|known| groups.contains(&known.group()));
        here.find(|known| known.name() == name)
            .ok_or_else(|| SettingError::Unknown { name: name.to_owned(), known: names(groups) })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Lock(setting) => setting.info().name,
            Self::Choice(choice) => choice.name,
            Self::Number(number) => number.name,
        }
    }

    fn group(self) -> Group {
        match self {
            Self::Lock(_) => Group::Lock,
            Self::Choice(choice) => choice.group,
            Self::Number(number) => number.group,
        }
    }

    /// The words that it takes, if it takes words.
    fn words(self) -> Option<Vec<&'static str>> {
        match self {
            Self::Lock(setting) => setting.info().words().map(Iterator::collect),
            Self::Choice(choice) => Some(choice.words()),
            Self::Number(_) => None,
        }
    }

    /// A value of its kind.
    fn read(self, text: &str) -> Option<Value> {
        match self.words() {
            Some(words) => words.into_iter().find(|word| *word == text).map(Value::Word),
            None => text.replace('_', "").parse().ok().map(Value::Integer),
        }
    }

    /// The number that stands for this value: the number itself, or which of the words it is.
    /// `None` if the setting cannot have it.
    fn number(self, value: Value) -> Option<u64> {
        let limits = match self {
            Self::Lock(setting) => setting.info().min..=setting.info().max,
            Self::Choice(choice) => 0..=choice.words.len() as u64 - 1,
            Self::Number(number) => number.min..=number.max,
        };
        let number = match (self.words(), value) {
            (None, Value::Integer(number)) => number,
            (Some(words), Value::Word(word)) => {
                limits.start() + words.iter().position(|known| *known == word)? as u64
            }
            _ => return None,
        };
        limits.contains(&number).then_some(number)
    }

    /// Sets it to this value.
    pub(super) fn set(self, configuration: &mut Configuration, value: Value) -> Result<(), SettingError> {
        let number = self.number(value).ok_or_else(|| self.refused(value))?;
        match self {
            Self::Lock(setting) => configuration.locks[setting as usize] = number,
            Self::Choice(choice) => (choice.words[number as usize].1)(configuration),
            Self::Number(of) => *(of.field)(configuration) = number,
        }
        Ok(())
    }

    fn refused(self, value: impl ToString) -> SettingError {
        let range = match self {
            Self::Lock(setting) => lock_range(&setting.info()),
            Self::Choice(choice) => any_of(&choice.words()),
            Self::Number(number) => range(number.min, number.max, number.unit),
        };
        SettingError::Value { name: self.name(), range, value: value.to_string() }
    }
}
