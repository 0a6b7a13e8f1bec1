//! `NAME.KEY=VALUE`: what can be set of locks, machine, workload and simulation.

pub(crate) mod fields;

use nearlock_collection::subjects::Subject;
use nearlock_core::settings::{Setting, SettingInfo};
use nearlock_sim::spec::{MachineSpec, SpecError};

use crate::names::{self, UnknownName, suggestion};
use crate::simulate::{AnyWorkload, Limits, Placement, Simulation, Start, WORKLOADS, workloads};
pub(crate) use fields::any_of;
use fields::{Field, FieldRow, Refused, SECOND_NS, Words, number, range};

/// Whose settings.
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
    /// All groups: what a simulation takes.
    pub const ALL: &[Group] = &[Group::Lock, Group::Machine, Group::Workload, Group::Simulation];
}

/// What is wrong with a `NAME.KEY=VALUE`.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// Not of that form.
    #[error("`{text}` sets nothing: write NAME.KEY=VALUE, as in cna-v13.threshold-ns=1000000")]
    Form {
        /// What was given.
        text: String,
    },
    /// No such setting, or not of a group that counts here.
    #[error("there is no setting `{name}` here{}; there are: {}", suggestion(name, known), known.join(", "))]
    Unknown {
        /// `NAME.KEY`.
        name: String,
        /// The settings that there are.
        known: Vec<String>,
    },
    /// Out of its limits, or no number.
    #[error("{name} must be {range}, not `{value}`")]
    Value {
        /// `NAME.KEY`.
        name: String,
        /// The values that there are.
        range: String,
        /// What was given.
        value: String,
    },
    /// The machine refuses.
    #[error(transparent)]
    Machine(#[from] SpecError),
}

/// Everything that can be set, at its default or as set.
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
    /// In which order the threads begin.
    pub start: Start,
    groups: &'static [Group],
    machine: Vec<(String, String)>,
    texts: Vec<String>,
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

/// The name of what belongs to no workload: [`Group::Simulation`].
const SIMULATION: &str = "simulation";

const OF_SIMULATION: &[Field<Configuration>] = &[
    Field::word(
        "start",
        |c| &mut c.start,
        "In which order the threads begin, 50 ns apart: one drawn at random, or that of their numbers.",
    ),
    Field::word(
        "placement",
        |c| &mut c.placement,
        "CPUs of the threads: on as few sockets as have a hardware thread for each, and on one more, one \
         socket after the other; on as few as give each a core, but two at least; over all cores alike; or \
         on the first cores, near each other.",
    ),
    Field::number(
        "warm-up-ns",
        "ns",
        0..=100 * SECOND_NS,
        |c| &mut c.limits.warm_up_ns,
        "Virtual time before counting begins; users that end are counted from the beginning.",
    ),
    Field::number(
        "window-ns",
        "ns",
        1_000..=100 * SECOND_NS,
        |c| &mut c.limits.window_ns,
        "Virtual time that is counted. Should hold several thresholds of the lock. Users that end \
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
        "Wait after which a waiter counts as starved; 0: a bound that follows from what the lock \
         promises. Not held against locks that promise none.",
    ),
];

impl Configuration {
    /// All defaults. Only settings of these groups can then be set.
    pub fn new(groups: &'static [Group]) -> Self {
        Self {
            locks: Setting::DEFAULTS,
            workloads: workloads().map(|workload| workload.copy()).collect(),
            limits: Limits::default(),
            placement: Placement::default(),
            start: Start::default(),
            groups,
            machine: Vec::new(),
            texts: Vec::new(),
        }
    }

    /// The workload of this name, with its settings.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn workload(&self, name: &str) -> Result<Box<dyn AnyWorkload>, UnknownName> {
        let found = self.workloads.iter().find(|workload| workload.name() == name);
        found.cloned().ok_or_else(|| names::no_workload(name))
    }

    /// A simulation of this machine and workload, which have been made with these settings.
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

    /// Sets what `NAME.KEY=VALUE` says. Keys of machines are looked at only by
    /// [`machine`](Self::configure_machine).
    ///
    /// # Errors
    ///
    /// If there is no such setting in this configuration's groups, or it cannot have this value.
    pub fn set(&mut self, text: &str) -> Result<(), SettingError> {
        let form = || SettingError::Form { text: text.to_owned() };
        let (name, value) = text.split_once('=').ok_or_else(form)?;
        let (name, value) = (name.trim(), value.trim());
        if !name.contains('.') {
            return Err(form());
        }
        self.assign(name, value)?;
        self.texts.push(format!("{name}={value}"));
        Ok(())
    }

    fn assign(&mut self, name: &str, value: &str) -> Result<(), SettingError> {
        if self.groups.contains(&Group::Machine)
            && let Some(key) = name.strip_prefix("machine.")
        {
            self.machine.push((key.to_owned(), value.to_owned()));
            return Ok(());
        }
        if self.groups.contains(&Group::Lock)
            && let Some(&setting) = Setting::ALL.iter().find(|setting| setting.info().name == name)
        {
            self.locks[setting as usize] = lock_value(&setting.info(), value)?;
            return Ok(());
        }
        let (of, key) = name.split_once('.').unwrap_or((name, ""));
        let is_set = if of == SIMULATION && self.groups.contains(&Group::Simulation) {
            fields::set(OF_SIMULATION, self, key, value)
        } else if self.groups.contains(&Group::Workload) {
            let workload = self.workloads.iter_mut().find(|workload| workload.name() == of);
            workload.map_or(Err(Refused::Key), |workload| workload.set(key, value))
        } else {
            Err(Refused::Key)
        };
        is_set.map_err(|refused| match refused {
            Refused::Key => SettingError::Unknown { name: name.to_owned(), known: self.names() },
            Refused::Value { range } => {
                SettingError::Value { name: name.to_owned(), range, value: value.to_owned() }
            }
        })
    }

    /// Sets on `machine` whatever of it was set here.
    ///
    /// # Errors
    ///
    /// If a machine has no such setting, or this machine cannot have that value.
    pub fn configure_machine(&self, machine: &mut MachineSpec) -> Result<(), SettingError> {
        for (key, value) in &self.machine {
            machine.set(key, value)?;
        }
        Ok(())
    }

    /// The value of the setting `name`, if there is one: as set, or its default. `machine` is as
    /// [`configure_machine`](Self::configure_machine) has left it.
    pub fn value(&self, name: &str, machine: &MachineSpec) -> Option<String> {
        let set = self.texts.iter().rev().filter_map(|text| text.split_once('='));
        let set = set.filter(|(name, _)| !name.starts_with("machine.")).find(|(set, _)| *set == name);
        set.map(|(_, value)| value.to_owned())
            .or_else(|| all(machine).into_iter().find(|row| row.name == name).map(|row| row.default))
    }

    /// What was set, as `NAME.KEY=VALUE`, in the order given.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// The settings that can be set here.
    fn names(&self) -> Vec<String> {
        let names = |rows: Vec<SettingRow>| rows.into_iter().map(|row| row.name).collect();
        let of_group = |group: &Group| match group {
            Group::Lock => names(of_locks()),
            Group::Machine => vec!["machine.KEY (see `nearlock list settings`)".to_owned()],
            Group::Simulation => names(of_simulation()),
            Group::Workload => names(of_workloads()),
        };
        self.groups.iter().flat_map(of_group).collect()
    }
}

/// The value of a lock's setting that is a number, or one of a few words.
pub(crate) fn lock_value(info: &SettingInfo, value: &str) -> Result<u64, SettingError> {
    let found = match info.words() {
        Some(mut words) => words.position(|word| word == value).map(|index| info.min + index as u64),
        None => number(value, info.min, info.max),
    };
    found.ok_or_else(|| SettingError::Value {
        name: info.name.to_owned(),
        range: lock_range(info),
        value: value.to_owned(),
    })
}

pub(crate) fn lock_range(info: &SettingInfo) -> String {
    match info.words() {
        Some(words) => any_of(&words.collect::<Vec<_>>()),
        None => range(info.min, info.max, info.unit),
    }
}

/// A setting, for lists.
#[derive(Clone, Debug)]
pub struct SettingRow {
    /// `NAME.KEY`.
    pub name: String,
    /// Value unless set.
    pub default: String,
    /// Values that it can have, with their unit.
    pub range: String,
    /// What it does.
    pub summary: &'static str,
}

impl SettingRow {
    fn of(name: &str, field: FieldRow) -> Self {
        let FieldRow { key, value, range, summary } = field;
        Self { name: format!("{name}.{key}"), default: value, range, summary }
    }
}

/// All settings; those of machines as they are on `machine`.
pub fn all(machine: &MachineSpec) -> Vec<SettingRow> {
    [of_locks(), of_machine(machine), of_simulation(), of_workloads()].concat()
}

fn of_locks() -> Vec<SettingRow> {
    let row = |setting: &Setting| {
        let info = setting.info();
        let word = info.words().and_then(|mut words| words.nth((info.default - info.min) as usize));
        SettingRow {
            name: info.name.to_owned(),
            default: word.map_or_else(|| info.default.to_string(), str::to_owned),
            range: lock_range(&info),
            summary: info.summary,
        }
    };
    Setting::ALL.iter().map(row).collect()
}

fn of_machine(machine: &MachineSpec) -> Vec<SettingRow> {
    let settings = machine.settings().into_iter().map(|setting| SettingRow {
        name: format!("machine.{}", setting.name),
        default: setting.value,
        range: setting.range,
        summary: setting.summary,
    });
    settings.collect()
}

fn of_simulation() -> Vec<SettingRow> {
    let rows = fields::rows(OF_SIMULATION, &Configuration::new(&[]));
    rows.into_iter().map(|row| SettingRow::of(SIMULATION, row)).collect()
}

/// Family by family, and in each key by key.
fn of_workloads() -> Vec<SettingRow> {
    let of_family = |family: &&[&dyn AnyWorkload]| {
        let mut rows: Vec<_> = family
            .iter()
            .flat_map(|workload| {
                let fields = workload.fields().into_iter().enumerate();
                fields.map(|(index, field)| (index, SettingRow::of(workload.name(), field)))
            })
            .collect();
        // Stable: of one key they stay in the order of the family.
        rows.sort_by_key(|(index, _)| *index);
        rows.into_iter().map(|(_, row)| row).collect::<Vec<_>>()
    };
    WORKLOADS.iter().flat_map(of_family).collect()
}

#[cfg(test)]
mod tests;
