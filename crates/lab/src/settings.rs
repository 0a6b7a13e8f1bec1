//! `NAME.KEY=VALUE`: the settings of locks, machine, workload and simulation.

mod assignment;
pub(crate) mod fields;
mod known;
mod unknown;

use nearlock_collection::subjects::Subject;
use nearlock_core::settings::{Setting, SettingInfo};
pub use nearlock_sim::spec::Value;
use nearlock_sim::spec::{MachineSpec, SpecError};

use crate::names::{self, UnknownName, echoed};
use crate::quantity;
use crate::simulate::{AnyWorkload, Limits, Placement, Simulation, Start, workloads};
pub use assignment::Assignment;
pub(crate) use fields::any_of;
use fields::{Field, SECOND_NS, Values, Words};
use known::Known;

/// A group of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Run-time settings of locks: `cna-v13.threshold-ns`.
    Lock,
    /// The simulated machine: `machine.smt`.
    Machine,
    /// The workload: `locktorture.think-ns`.
    Workload,
    /// Length and bounds of a simulation: `simulation.window-ns`.
    Simulation,
}

impl Group {
    /// All groups. A simulation takes these.
    pub const ALL: &[Group] = &[Group::Lock, Group::Machine, Group::Workload, Group::Simulation];
}

/// Why a `NAME.KEY=VALUE` is wrong.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// The text does not have this form.
    #[error("`{}` is no setting: write NAME.KEY=VALUE{near}", echoed(text))]
    Form {
        /// The given text.
        text: String,
        /// The settings with this key, or an example.
        near: String,
    },
    /// The setting does not exist, or is not in an allowed group.
    #[error("there is no setting `{}` here{near}", echoed(name))]
    Unknown {
        /// `NAME.KEY`.
        name: String,
        /// The nearest settings, and the list of all.
        near: String,
    },
    /// The value is outside the limits or not a number.
    #[error(
        "{name} must be {range}, not `{}`{}",
        echoed(value),
        forms.as_ref().map_or_else(String::new, |forms| format!(": write {forms}"))
    )]
    Value {
        /// `NAME.KEY`.
        name: &'static str,
        /// The possible values.
        range: String,
        /// The given value.
        value: String,
        /// How values are written, if this one cannot be read.
        forms: Option<String>,
    },
    /// The machine refuses the setting.
    #[error(transparent)]
    Machine(SpecError),
}

impl From<SpecError> for SettingError {
    fn from(error: SpecError) -> Self {
        match error {
            SpecError::UnknownSetting { key, .. } => {
                Self::unknown(&format!("{MACHINE}{key}"), &[Group::Machine])
            }
            SpecError::Setting { name, value, mut problem } => {
                let is_time = name.ends_with("-ns") && value.parse::<f64>().is_err();
                if let Some(forms) = quantity::forms("ns").filter(|_| is_time) {
                    problem = format!("{problem}: write {forms}");
                }
                Self::Machine(SpecError::Setting { name, value: echoed(&value), problem })
            }
            error => Self::Machine(error),
        }
    }
}

/// All settings, with their defaults or with the values that were set.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Settings of locks, indexed by [`Setting`].
    pub locks: [u64; Setting::COUNT],
    /// All workloads.
    workloads: Vec<Box<dyn AnyWorkload>>,
    /// Length and bounds of a simulation.
    pub limits: Limits,
    /// How the threads are spread over a simulated machine.
    pub placement: Placement,
    /// The order in which the threads begin.
    pub start: Start,
    groups: &'static [Group],
    assigned: Vec<Assignment>,
}

impl Words for Start {
    const WORDS: &'static [(&'static str, Self)] =
        &[("shuffled", Start::Shuffled), ("in-turn", Start::InTurn)];
}

impl Words for Placement {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("filled", Placement::Filled),
        ("gathered", Placement::Gathered),
        ("random", Placement::Random),
        ("near", Placement::Near),
    ];
}

/// The prefix of the machine's settings.
const MACHINE: &str = "machine.";

/// The name of the settings that belong to no workload: [`Group::Simulation`].
const SIMULATION: &str = "simulation";

const OF_SIMULATION: &[Field<Configuration>] = &[
    Field::word(
        "start",
        |c| &mut c.start,
        "The order in which the threads begin, 50 ns apart: a random one, or that of their numbers.",
    ),
    Field::word(
        "placement",
        |c| &mut c.placement,
        "CPUs of the threads: on one socket more than the fewest with a hardware thread for each, one \
         socket after the other; on the fewest sockets with a core for each, but at least two; on all cores \
         alike; or on the first cores, near each other.",
    ),
    Field::number(
        "warm-up-ns",
        "ns",
        0..=100 * SECOND_NS,
        |c| &mut c.limits.warm_up_ns,
        "Virtual time before counting begins. Users that end are counted from the beginning.",
    ),
    Field::number(
        "window-ns",
        "ns",
        1_000..=100 * SECOND_NS,
        |c| &mut c.limits.window_ns,
        "Virtual time that is counted. It should contain several thresholds of the lock. Users that end \
         are counted until the last has ended.",
    ),
    Field::number(
        "livelock-ns",
        "ns",
        1_000..=100 * SECOND_NS,
        |c| &mut c.limits.livelock_ns,
        "Virtual time without any acquisition after which the run is a livelock.",
    ),
    Field::number(
        "starvation-ns",
        "ns",
        0..=100 * SECOND_NS,
        |c| &mut c.limits.starvation_ns,
        "Wait after which a waiter counts as starved; 0: a bound that follows from the guarantee of the \
         lock. Not checked for locks without a guarantee.",
    ),
];

impl Configuration {
    /// All defaults. Only settings of these groups can be set.
    pub fn new(groups: &'static [Group]) -> Self {
        Self {
            locks: Setting::DEFAULTS,
            workloads: workloads().map(|workload| workload.copy()).collect(),
            limits: Limits::default(),
            placement: Placement::default(),
            start: Start::default(),
            groups,
            assigned: Vec::new(),
        }
    }

    /// The workload with this name, with its settings.
    ///
    /// # Errors
    ///
    /// If it does not exist.
    pub fn workload(&self, name: &str) -> Result<Box<dyn AnyWorkload>, UnknownName> {
        let found = self.workloads.iter().find(|workload| names::is_same(workload.name(), name));
        found.cloned().ok_or_else(|| names::no_workload(name))
    }

    /// A simulation of this machine and workload, which were made with these settings.
    pub fn simulation(
        &self,
        machine: MachineSpec,
        workload: Box<dyn AnyWorkload>,
        lock: &'static Subject,
        threads: usize,
        seed: u64,
    ) -> Simulation {
        Simulation {
            machine,
            workload,
            lock,
            threads,
            seed,
            settings: self.locks,
            limits: self.limits,
            placement: self.placement,
            start: self.start,
            lockstat: false,
        }
    }

    /// Applies a `NAME.KEY=VALUE`.
    ///
    /// # Errors
    ///
    /// As for [`Assignment::parse`].
    pub fn set(&mut self, text: &str) -> Result<(), SettingError> {
        self.assign(Assignment::parse(text, self.groups)?)
    }

    /// Applies an assignment. Settings of machines are checked only by
    /// [`configure_machine`](Self::configure_machine).
    ///
    /// # Errors
    ///
    /// If these groups have no such setting, or it cannot have this value.
    pub fn assign(&mut self, assignment: Assignment) -> Result<(), SettingError> {
        if !(assignment.is_of_machine() && self.groups.contains(&Group::Machine)) {
            Known::named(assignment.setting, self.groups)?.set(self, assignment.value)?;
        }
        self.assigned.push(assignment);
        Ok(())
    }

    /// Applies the machine's settings to `machine`.
    ///
    /// # Errors
    ///
    /// If a machine has no such setting, or this machine cannot have the value.
    pub fn configure_machine(&self, machine: &mut MachineSpec) -> Result<(), SettingError> {
        for assignment in self.assigned.iter().filter(|assignment| assignment.is_of_machine()) {
            machine.assign(assignment.setting, assignment.value)?;
        }
        Ok(())
    }

    /// The value of the setting `name`, set or default, if the setting exists.
    /// [`configure_machine`](Self::configure_machine) must have been applied to `machine`.
    pub fn value(&self, name: &str, machine: &MachineSpec) -> Option<Value> {
        let mut set = self.assigned.iter().rev().filter(|assignment| !assignment.is_of_machine());
        set.find(|assignment| assignment.setting == name)
            .map(|assignment| assignment.value)
            .or_else(|| all(machine).into_iter().find(|row| row.name == name).map(|row| row.default))
    }

    /// The assignments, in the given order.
    pub fn assigned(&self) -> &[Assignment] {
        &self.assigned
    }
}

/// The possible values of a lock's setting.
pub(crate) fn lock_values(info: &SettingInfo) -> Values {
    match info.words() {
        Some(words) => Values::Words(words.collect()),
        None => Values::Numbers { min: info.min, max: info.max, unit: info.unit },
    }
}

/// The number for this value of a lock's setting. `None` if the setting cannot have the value.
pub(crate) fn lock_number(info: &SettingInfo, value: Value) -> Option<u64> {
    let number = match (info.words(), value) {
        (None, Value::Integer(number)) => number,
        (Some(mut words), Value::Word(word)) => info.min + words.position(|known| known == word)? as u64,
        _ => return None,
    };
    (info.min..=info.max).contains(&number).then_some(number)
}

/// A setting, for listings.
#[derive(Clone, Debug)]
pub struct SettingRow {
    /// `NAME.KEY`.
    pub name: &'static str,
    /// The default value.
    pub default: Value,
    /// The possible values, with their unit.
    pub range: String,
    /// The effect of the setting.
    pub summary: &'static str,
}

/// All settings. Settings of machines have their values on `machine`.
pub fn all(machine: &MachineSpec) -> Vec<SettingRow> {
    [of_locks(), of_machine(machine), known::rows_of(Group::Simulation), known::rows_of(Group::Workload)]
        .concat()
}

fn of_locks() -> Vec<SettingRow> {
    let row = |setting: &Setting| {
        let info = setting.info();
        let word = info.words().and_then(|mut words| words.nth((info.default - info.min) as usize));
        SettingRow {
            name: info.name,
            default: word.map_or(Value::Integer(info.default), Value::Word),
            range: lock_values(&info).to_string(),
            summary: info.summary,
        }
    };
    Setting::ALL.iter().map(row).collect()
}

fn of_machine(machine: &MachineSpec) -> Vec<SettingRow> {
    let settings = machine.settings().into_iter().map(|setting| SettingRow {
        name: setting.name,
        default: setting.value,
        range: setting.range,
        summary: setting.summary,
    });
    settings.collect()
}

#[cfg(test)]
mod tests;
