//! One setting with its value.

use std::fmt;

use nearlock_sim::spec::{MachineSpec, Value};
use serde::{Serialize, Serializer};

use super::known::Known;
use super::{Group, SettingError};

/// `NAME.KEY=VALUE`. A text of a user is read into this once. The catalogue has constants of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assignment {
    /// `NAME.KEY`, one of those that [`all`](super::all) lists.
    pub setting: &'static str,
    /// What it is set to.
    pub value: Value,
}

impl Assignment {
    /// Reads a text of a user. A value that one machine cannot have is refused when that machine is
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
        Ok(Self { setting: setting.name(), value: setting.read(value)? })
    }

    /// Of the setting of this name, which is looked up.
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
