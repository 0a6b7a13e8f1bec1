//! The existing settings, except those of machines.

use std::sync::LazyLock;

use nearlock_core::settings::Setting;
use nearlock_sim::spec::MachineSpec;

use super::fields::{self, FieldRow, Values};
use super::{
    Configuration, Group, OF_SIMULATION, SIMULATION, SettingError, SettingRow, Value, lock_number,
    lock_values,
};
use crate::simulate::{AnyWorkload, WORKLOADS};

/// An existing setting.
#[derive(Clone, Copy)]
pub(super) enum Known {
    Lock(Setting),
    Field(&'static KnownField),
}

/// A setting of the simulation or of a workload.
pub(super) struct KnownField {
    /// `NAME.KEY`.
    name: String,
    /// The workload, or `None` for settings of the simulation.
    workload: Option<&'static dyn AnyWorkload>,
    /// The row of the field, with its default.
    row: FieldRow,
}

/// All fields, in the order of listings.
static FIELDS: LazyLock<Vec<KnownField>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for row in fields::rows(OF_SIMULATION, &Configuration::new(&[])) {
        all.push(KnownField { name: format!("{SIMULATION}.{}", row.key), workload: None, row });
    }
    for &family in WORKLOADS {
        all.extend(of_family(family));
    }
    all
});

/// The settings of a family of workloads, ordered by key.
fn of_family(family: &'static [&'static dyn AnyWorkload]) -> Vec<KnownField> {
    let of_workload = |&workload: &&'static dyn AnyWorkload| {
        let rows = workload.fields().into_iter().enumerate();
        rows.map(move |(place, row)| {
            let name = format!("{}.{}", workload.name(), row.key);
            (place, KnownField { name, workload: Some(workload), row })
        })
    };
    let mut fields: Vec<_> = family.iter().flat_map(of_workload).collect();
    // The sort is stable: settings with the same key keep the order of the family.
    fields.sort_by_key(|(place, _)| *place);
    fields.into_iter().map(|(_, field)| field).collect()
}

impl KnownField {
    fn group(&self) -> Group {
        if self.workload.is_some() { Group::Workload } else { Group::Simulation }
    }
}

fn fields_of(group: Group) -> impl Iterator<Item = &'static KnownField> {
    FIELDS.iter().filter(move |field| field.group() == group)
}

/// The settings of the simulation or of workloads, for listings.
pub(super) fn rows_of(group: Group) -> Vec<SettingRow> {
    let row = |field: &'static KnownField| SettingRow {
        name: &field.name,
        default: field.row.value,
        range: field.row.values.to_string(),
        summary: field.row.summary,
    };
    fields_of(group).map(row).collect()
}

/// The names of the settings in these groups.
pub(super) fn names(groups: &[Group]) -> Vec<&'static str> {
    let of_group = |group: &Group| match group {
        Group::Lock => Setting::ALL.iter().map(|setting| setting.info().name).collect(),
        Group::Machine => MachineSpec::setting_names(),
        Group::Simulation | Group::Workload => {
            fields_of(*group).map(|field| field.name.as_str()).collect::<Vec<_>>()
        }
    };
    groups.iter().flat_map(of_group).collect()
}

impl Known {
    /// The setting with this name, if it is in one of these groups.
    pub(super) fn named(name: &str, groups: &[Group]) -> Result<Self, SettingError> {
        let locks = Setting::ALL.iter().map(|&setting| Self::Lock(setting));
        let mut all = locks.chain(FIELDS.iter().map(Self::Field));
        let found = all.find(|known| known.name() == name && groups.contains(&known.group()));
        found.ok_or_else(|| SettingError::unknown(name, groups))
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Lock(setting) => setting.info().name,
            Self::Field(field) => &field.name,
        }
    }

    fn group(self) -> Group {
        match self {
            Self::Lock(_) => Group::Lock,
            Self::Field(field) => field.group(),
        }
    }

    fn values(self) -> Values {
        match self {
            Self::Lock(setting) => lock_values(&setting.info()),
            Self::Field(field) => field.row.values.clone(),
        }
    }

    /// Parses a user's value.
    pub(super) fn read(self, text: &str) -> Result<Value, SettingError> {
        self.values().read(text).ok_or_else(|| self.refused(text))
    }

    /// Sets the setting to this value.
    pub(super) fn set(self, configuration: &mut Configuration, value: Value) -> Result<(), SettingError> {
        let is_set = match self {
            Self::Lock(setting) => lock_number(&setting.info(), value)
                .map(|number| configuration.locks[setting as usize] = number)
                .is_some(),
            Self::Field(field) => field.set(configuration, value),
        };
        if is_set { Ok(()) } else { Err(self.refused(value)) }
    }

    fn refused(self, value: impl ToString) -> SettingError {
        let (values, value) = (self.values(), value.to_string());
        let forms = values.forms_instead_of(&value);
        SettingError::Value { name: self.name(), range: values.to_string(), value, forms }
    }
}

impl KnownField {
    /// Sets the field. Returns `false` if it cannot have this value.
    fn set(&self, configuration: &mut Configuration, value: Value) -> bool {
        let key = self.row.key;
        let Some(workload) = self.workload else {
            return fields::set(OF_SIMULATION, configuration, key, value).is_ok();
        };
        let mut all = configuration.workloads.iter_mut();
        let found = all.find(|other| other.name() == workload.name());
        found.is_some_and(|found| found.set(key, value).is_ok())
    }
}
