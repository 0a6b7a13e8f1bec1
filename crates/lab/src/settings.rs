//! `NAME.KEY=VALUE`: what can be set of locks, machine, workload and simulation.

mod calls;
mod jobs;
mod known;
mod mutex_section;
mod readrandom;

use nearlock_collection::subjects::Subject;
use nearlock_core::settings::{Setting, SettingInfo};
use nearlock_sim::spec::{MachineSpec, SpecError};
use nearlock_workload::jobs::profiles::{Constants, Profile};
use nearlock_workload::will_it_scale::{CallConstants, Calls};

use crate::names::suggestion;
use crate::simulate::{
    Context1, Limits, Locktorture, MutexSection, Placement, ReadRandom, Sections, Simulation, Start, Workload,
};

use known::{CHOICES, NUMBERS};

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
        known: Vec<&'static str>,
    },
    /// Out of its limits, or no number.
    #[error("{name} must be {range}, not `{value}`")]
    Value {
        /// `NAME.KEY`.
        name: &'static str,
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
    /// Parameters of locktorture.
    pub locktorture: Locktorture,
    /// Parameters of sections.
    pub sections: Sections,
    /// Parameters of a mutex's sections.
    pub mutex_section: MutexSection,
    /// Parameters of context1.
    pub context1: Context1,
    /// Constants of open1.
    pub open1: CallConstants,
    /// Constants of lock2.
    pub lock2: CallConstants,
    /// Parameters of readrandom.
    pub readrandom: ReadRandom,
    /// Parameters of users with jobs, by [`Profile`].
    pub jobs: [Constants; Profile::ALL.len()],
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

/// A number of [`Configuration`], in its unit.
struct Number {
    name: &'static str,
    group: Group,
    unit: &'static str,
    min: u64,
    max: u64,
    summary: &'static str,
    field: fn(&mut Configuration) -> &mut u64,
}

const SECOND_NS: u64 = 1_000_000_000;
/// Longer sections would be taken for a livelock.
const MILLISECOND_NS: u64 = 1_000_000;

type Set = fn(&mut Configuration);

/// A setting of [`Configuration`] that takes one of a few words, the first unless set.
struct Choice {
    name: &'static str,
    group: Group,
    summary: &'static str,
    words: &'static [(&'static str, Set)],
}

/// All numbers of [`Configuration`].
fn numbers() -> impl Iterator<Item = &'static Number> {
    NUMBERS
        .iter()
        .chain(mutex_section::NUMBERS)
        .chain(calls::NUMBERS)
        .chain(readrandom::NUMBERS)
        .chain(jobs::numbers())
}

impl Configuration {
    /// All defaults. Only settings of these groups can then be set.
    pub fn new(groups: &'static [Group]) -> Self {
        Self {
            locks: Setting::DEFAULTS,
            locktorture: Locktorture::default(),
            sections: Sections::default(),
            mutex_section: MutexSection::default(),
            context1: Context1::default(),
            open1: Calls::Open1.constants(),
            lock2: Calls::Lock2.constants(),
            readrandom: ReadRandom::default(),
            jobs: Profile::ALL.map(Profile::constants),
            limits: Limits::default(),
            placement: Placement::default(),
            start: Start::default(),
            groups,
            machine: Vec::new(),
            texts: Vec::new(),
        }
    }

    /// A simulation of this machine and workload, which have been made with these settings.
    pub fn simulation(
        &self,
        machine: MachineSpec,
        workload: Workload,
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
        if let Some(choice) = CHOICES.iter().find(|c| c.name == name && self.groups.contains(&c.group)) {
            choice.word(value)?(self);
            return Ok(());
        }
        let known = numbers().find(|n| n.name == name && self.groups.contains(&n.group));
        let Some(known) = known else {
            return Err(SettingError::Unknown { name: name.to_owned(), known: self.names() });
        };
        *(known.field)(self) = number(known.name, value, known.min, known.max, known.unit)?;
        Ok(())
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
    fn names(&self) -> Vec<&'static str> {
        let locks = Setting::ALL.iter().map(|setting| (Group::Lock, setting.info().name));
        let machine = [(Group::Machine, "machine.KEY (see `nearlock list settings`)")];
        let choices = CHOICES.iter().map(|choice| (choice.group, choice.name));
        let numbers = numbers().map(|number| (number.group, number.name));
        let all = locks.chain(machine).chain(choices).chain(numbers);
        all.filter(|(group, _)| self.groups.contains(group)).map(|(_, name)| name).collect()
    }
}

fn number(name: &'static str, value: &str, min: u64, max: u64, unit: &str) -> Result<u64, SettingError> {
    let parsed = value.replace('_', "").parse().ok().filter(|parsed| (min..=max).contains(parsed));
    parsed.ok_or_else(|| SettingError::Value { name, range: range(min, max, unit), value: value.to_owned() })
}

/// The value of a lock's setting that is a number, or one of a few words.
pub(crate) fn lock_value(info: &SettingInfo, value: &str) -> Result<u64, SettingError> {
    let Some(mut words) = info.words() else {
        return number(info.name, value, info.min, info.max, info.unit);
    };
    let refused =
        || SettingError::Value { name: info.name, range: lock_range(info), value: value.to_owned() };
    Ok(info.min + words.position(|word| word == value).ok_or_else(refused)? as u64)
}

fn range(min: u64, max: u64, unit: &str) -> String {
    format!("{min} to {max} {unit}")
}

pub(crate) fn lock_range(info: &SettingInfo) -> String {
    match info.words() {
        Some(words) => any_of(&words.collect::<Vec<_>>()),
        None => range(info.min, info.max, info.unit),
    }
}

/// `off, on or auto`
pub(crate) fn any_of(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => words.concat(),
    }
}

impl Choice {
    fn word(&self, value: &str) -> Result<Set, SettingError> {
        let found = self.words.iter().find(|(word, _)| *word == value);
        found.map(|(_, set)| *set).ok_or_else(|| SettingError::Value {
            name: self.name,
            range: any_of(&self.words.iter().map(|(word, _)| *word).collect::<Vec<_>>()),
            value: value.to_owned(),
        })
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

/// All settings; those of machines as they are on `machine`.
pub fn all(machine: &MachineSpec) -> Vec<SettingRow> {
    let locks = Setting::ALL.iter().map(|setting| {
        let info = setting.info();
        let word = info.words().and_then(|mut words| words.nth((info.default - info.min) as usize));
        SettingRow {
            name: info.name.to_owned(),
            default: word.map_or_else(|| info.default.to_string(), str::to_owned),
            range: lock_range(&info),
            summary: info.summary,
        }
    });
    let machine = machine.settings().into_iter().map(|setting| SettingRow {
        name: format!("machine.{}", setting.name),
        default: setting.value,
        range: setting.range,
        summary: setting.summary,
    });
    let mut defaults = Configuration::new(Group::ALL);
    let numbers: Vec<_> = numbers()
        .map(|number| SettingRow {
            name: number.name.to_owned(),
            default: (number.field)(&mut defaults).to_string(),
            range: range(number.min, number.max, number.unit),
            summary: number.summary,
        })
        .collect();
    let choices = CHOICES.iter().map(|choice| {
        let words: Vec<_> = choice.words.iter().map(|(word, _)| *word).collect();
        SettingRow {
            name: choice.name.to_owned(),
            default: words[0].to_owned(),
            range: words.join(", "),
            summary: choice.summary,
        }
    });
    locks.chain(machine).chain(choices).chain(numbers).collect()
}

#[cfg(test)]
mod tests;
