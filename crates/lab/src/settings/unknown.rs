//! Settings that do not exist, and those that were meant.

use nearlock_core::settings::Setting;

use super::known::names;
use super::{Group, MACHINE, SettingError};
use crate::names::{Known, did_you_mean, is_same, nearest};

/// Other words for settings of the machine.
const OTHER_KEYS: [(&str, &str); 6] = [
    ("sockets", "machine.nodes"),
    ("cpus", "machine.cores-per-socket"),
    ("cpus", "machine.nodes"),
    ("cpus", "machine.smt"),
    ("threads", "machine.smt"),
    ("hyperthreading", "machine.smt"),
];

impl SettingError {
    /// The text is not of the form `NAME.KEY=VALUE`.
    pub(super) fn form(text: &str, groups: &[Group]) -> Self {
        let name = text.split_once('=').map_or(text, |(name, _)| name).trim();
        let known = names(groups);
        let near = if name.contains('.') { Vec::new() } else { with_key(name, &known) };
        let near = match did_you_mean(&near) {
            none if none.is_empty() => ", as in cna-v13.threshold-ns=1000000".to_owned(),
            near => format!("{near} {}", list(groups)),
        };
        Self::Form { text: text.to_owned(), near }
    }

    /// There is no such setting in these groups.
    pub(super) fn unknown(name: &str, groups: &[Group]) -> Self {
        let known = names(groups);
        // A setting of another group is no slip.
        let is_elsewhere = names(Group::ALL).contains(&name);
        let near = match name.rsplit_once('.') {
            _ if is_elsewhere => Vec::new(),
            // All settings of the machine have the same first part.
            Some((_, key)) if name.starts_with(MACHINE) => with_key(key, &known),
            _ => quoted(&nearest(name, known.iter().copied().map(Known::name))),
        };
        let near = match did_you_mean(&near) {
            none if none.is_empty() => format!("; {}", list(groups)),
            near => format!("{near} {}", list(groups)),
        };
        Self::Unknown { name: name.to_owned(), near }
    }
}

/// The settings whose last part is this key; without such settings, those whose last part is near
/// to it.
fn with_key(key: &str, known: &[&'static str]) -> Vec<String> {
    let others = OTHER_KEYS.into_iter().filter(|(_, name)| known.contains(name));
    let others = others.map(|(spelling, name)| Known::spelled(name, spelling));
    let last =
        |name: &&'static str| Known::spelled(name, name.rsplit_once('.').map_or(*name, |(_, key)| key));
    let all: Vec<_> = others.chain(known.iter().map(last)).collect();
    let (same, other): (Vec<_>, Vec<_>) = all.into_iter().partition(|known| is_same(known.spelling, key));
    quoted(&nearest(key, if same.is_empty() { other } else { same }))
}

fn quoted(near: &[Known]) -> Vec<String> {
    near.iter().map(|known| format!("`{}`", known.name)).collect()
}

/// The command that lists the settings of these groups.
fn list(groups: &[Group]) -> String {
    match groups {
        [Group::Lock] => format!(
            "only locks have settings here: `nearlock list settings {}` shows them",
            words_of_locks().join(" ")
        ),
        [Group::Machine] => "`nearlock list settings machine` shows all of the machine".to_owned(),
        _ => "`nearlock list settings` shows all".to_owned(),
    }
}

/// The words for which `list settings` shows the settings of locks: their first parts. Where only
/// one setting has the first part, its whole name.
fn words_of_locks() -> Vec<&'static str> {
    let first = |name: &'static str| name.split_once('.').map_or(name, |(first, _)| first);
    let locks: Vec<_> = Setting::ALL.iter().map(|setting| setting.info().name).collect();
    let mut words: Vec<&'static str> = Vec::new();
    for name in &locks {
        let others = locks.iter().filter(|other| first(other) == first(name)).count();
        let word = if others == 1 { *name } else { first(name) };
        if !words.iter().any(|shorter| word.starts_with(shorter)) {
            words.push(word);
        }
    }
    words
}
