//! A setting with its value.

use std::fmt;

use nearlock_sim::spec::{MachineSpec, Value};
use serde::{Serialize, Serializer};

use super::known::Known;
use super::{Group, MACHINE, SettingError};
use crate::quantity;

/// `NAME.KEY=VALUE`. A user's text is parsed into this once. The catalogue has constants of this
/// type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assignment {
    /// `NAME.KEY`, as listed by [`all`](super::all).
    pub setting: &'static str,
    /// The value.
    pub value: Value,
}

impl Assignment {
    /// Parses a user's text. A value that is impossible on one machine is refused when that machine
    /// is configured.
    ///
    /// # Errors
    ///
    /// If the text has another form, if these groups have no such setting, or if the setting cannot
    /// have this value.
    pub fn parse(text: &str, groups: &[Group]) -> Result<Self, SettingError> {
        let form = || SettingError::form(text, groups);
        let (name, value) = text.split_once('=').ok_or_else(form)?;
        let (name, value) = (name.trim(), value.trim());
        if !name.contains('.') {
            return Err(form());
        }
        if groups.contains(&Group::Machine)
            && let Some(key) = name.strip_prefix(MACHINE)
        {
            let number = if key.ends_with("-ns") { quantity::read(value, "ns") } else { None };
            let value = number.map_or_else(|| value.to_owned(), |number| number.to_string());
            let (setting, value) = MachineSpec::read_setting(key, &value)?;
            return Ok(Self { setting, value });
        }
        let setting = Known::named(name, groups)?;
        Ok(Self { setting: setting.name(), value: setting.read(value)? })
    }

    /// An assignment to the setting with this name.
    ///
    /// # Errors
    ///
    /// If the setting does not exist. Settings of machines are not found.
    pub fn of(name: &str, value: Value) -> Result<Self, SettingError> {
        Ok(Self { setting: Known::named(name, Group::ALL)?.name(), value })
    }

    /// Whether it is a setting of the simulated machine.
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
