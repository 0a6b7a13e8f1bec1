//! Locks as they are written on the command line: `NAME` or `NAME[KEY=VALUE,...]`.
//!
//! A key is a switch of the lock's algorithm, or the last part of the name of a setting that the
//! lock uses. For example, `cna[threshold-ns=100000]` is `cna` with its own
//! `cna.threshold-ns=100000`. It can be used together with another `cna` in one run.

use nearlock_collection::subjects::{SUBJECTS, Subject};
use nearlock_core::settings::Setting;
use nearlock_core::tuning::{Position, Values};

use crate::names::{PEERS, UnknownName, forgiven, suggestion};
use crate::settings::{any_of, lock_number, lock_values};

/// Why a lock is not available.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// There is no lock with this name.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// A peer lock with brackets.
    #[error("`{text}`: {peer} is a peer, and peers have no switches; write {peer}")]
    Peer {
        /// The given text.
        text: String,
        /// The peer.
        peer: &'static str,
    },
    /// The text does not have this form.
    #[error("`{text}` is no lock: write NAME or NAME[KEY=VALUE,...], as in cna[threshold-ns=100000]")]
    Form {
        /// The given text.
        text: String,
    },
    /// There is no such switch.
    #[error("{lock} has no switch or setting `{key}`{} {}", suggestion_of(key, known), there_are(known))]
    Key {
        /// The lock.
        lock: &'static str,
        /// The given key.
        key: String,
        /// The existing keys and their values.
        known: Vec<(&'static str, String)>,
    },
    /// A value that the key cannot have.
    #[error("{lock}: {key} must be {range}, not `{value}`")]
    Value {
        /// The lock.
        lock: &'static str,
        /// The key.
        key: &'static str,
        /// The possible values.
        range: String,
        /// The given value.
        value: String,
    },
    /// A key that was given before.
    #[error("{lock}: {key} is given twice")]
    Twice {
        /// The lock.
        lock: &'static str,
        /// The key.
        key: &'static str,
    },
}

/// The nearest keys, or a semicolon if there are none.
fn suggestion_of(key: &str, known: &[(&str, String)]) -> String {
    let keys: Vec<_> = known.iter().map(|(key, _)| *key).collect();
    let near = suggestion(key, &keys);
    if near.is_empty() { ";".to_owned() } else { near }
}

fn there_are(known: &[(&str, String)]) -> String {
    if known.is_empty() {
        return "it has none".to_owned();
    }
    let each: Vec<_> = known.iter().map(|(key, values)| format!("{key} ({values})")).collect();
    format!("There are: {}", each.join(", "))
}

/// The entries of lists of locks, separated at commas outside brackets.
pub fn entries(lists: &[String]) -> Vec<&str> {
    let mut entries = Vec::new();
    for list in lists {
        let (mut begin, mut depth) = (0, 0_usize);
        for (at, c) in list.char_indices() {
            match c {
                '[' => depth += 1,
                ']' => depth = depth.saturating_sub(1),
                ',' if depth == 0 => {
                    entries.push(&list[begin..at]);
                    begin = at + 1;
                }
                _ => {}
            }
        }
        entries.push(&list[begin..]);
    }
    entries
}

/// The lock with this name, with the switches and settings in brackets. A lock with brackets lives
/// for the rest of the process.
///
/// # Errors
///
/// If there is no such lock, switch or value.
pub fn lock(text: &str) -> Result<&'static Subject, LockError> {
    let form = || LockError::Form { text: text.to_owned() };
    let Some((name, rest)) = text.split_once('[') else { return Ok(named(text)?) };
    if name.is_empty() {
        return Err(form());
    }
    if let Some(peer) = PEERS.iter().find(|peer| **peer == name) {
        return Err(LockError::Peer { text: text.to_owned(), peer });
    }
    let base = named(name)?;
    let assignments = rest.strip_suffix(']').filter(|inner| !inner.contains(['[', ']'])).ok_or_else(form)?;
    if assignments.is_empty() {
        return Ok(base);
    }
    let mut made = Made { base, switched: base.positions.to_vec(), set: Vec::new(), keys: Vec::new() };
    let mut written = Vec::new();
    for assignment in assignments.split(',') {
        let (key, value) = assignment.split_once('=').ok_or_else(form)?;
        let (key, value) = (key.trim(), value.trim());
        made.assign(key, value)?;
        written.push(format!("{key}={value}"));
    }
    Ok(made.subject(&format!("{}[{}]", base.name, written.join(","))))
}

fn named(name: &str) -> Result<&'static Subject, UnknownName> {
    Subject::named(name).or_else(|| forgiven(name)).ok_or_else(|| UnknownName {
        kind: "lock",
        name: name.to_owned(),
        known: SUBJECTS.iter().map(|subject| subject.name).collect(),
    })
}

/// A lock that is being derived from another.
struct Made {
    base: &'static Subject,
    switched: Vec<Position>,
    set: Vec<(Setting, u64)>,
    /// The keys given so far.
    keys: Vec<&'static str>,
}

impl Made {
    fn assign(&mut self, key: &str, value: &str) -> Result<(), LockError> {
        let lock = self.base.name;
        let (key, range, is_value) = if let Some(switch) = self.base.algorithm.switch(key) {
            let parsed = switch.values.parse(value);
            self.switched.retain(|position| position.switch.index != switch.index);
            self.switched.extend(parsed.map(|value| Position { switch, value }));
            let range = match switch.values {
                Values::Words(words) => any_of(words),
                numbers => numbers.to_string(),
            };
            (switch.key, range, parsed.is_some())
        } else if let Some(setting) = self.setting(key) {
            let (info, values) = (setting.info(), lock_values(&setting.info()));
            let parsed = values.read(value).and_then(|value| lock_number(&info, value));
            self.set.extend(parsed.map(|value| (setting, value)));
            (key_of(setting), values.to_string(), parsed.is_some())
        } else {
            return Err(LockError::Key { lock, key: key.to_owned(), known: self.known() });
        };
        if !is_value {
            return Err(LockError::Value { lock, key, range, value: value.to_owned() });
        }
        if self.keys.contains(&key) {
            return Err(LockError::Twice { lock, key });
        }
        self.keys.push(key);
        Ok(())
    }

    /// The setting with this key that the algorithm uses with some switches.
    fn setting(&self, key: &str) -> Option<Setting> {
        self.settings().find(|setting| key_of(*setting) == key)
    }

    /// The settings that the recommended form of the algorithm uses, and those that this lock uses.
    fn settings(&self) -> impl Iterator<Item = Setting> + use<> {
        let recommended = Subject::named(self.base.algorithm.name).expect("an algorithm is on the list");
        let own = self.base.settings().iter().filter(|own| !recommended.settings().contains(own));
        recommended.settings().iter().chain(own).copied()
    }

    fn known(&self) -> Vec<(&'static str, String)> {
        let switches =
            self.base.algorithm.switches.iter().map(|switch| (switch.key, switch.values.to_string()));
        switches
            .chain(self.settings().map(|setting| (key_of(setting), lock_values(&setting.info()).to_string())))
            .collect()
    }

    fn subject(self, name: &str) -> &'static Subject {
        Box::leak(Box::new(Subject {
            name: name.to_owned().leak(),
            positions: self.switched.leak(),
            set: self.set.leak(),
            ..*self.base
        }))
    }
}

/// The name of a setting in brackets: `threshold-ns`.
fn key_of(setting: Setting) -> &'static str {
    let name = setting.info().name;
    name.split_once('.').map_or(name, |(_, key)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        lock(text).expect_err(text).to_string()
    }

    #[test]
    fn a_list_is_split_at_commas_outside_of_brackets() {
        let lists = ["cna,cna[threshold-ns=1,reduction=off],mcs".to_owned(), "tas".to_owned()];
        assert_eq!(entries(&lists), ["cna", "cna[threshold-ns=1,reduction=off]", "mcs", "tas"]);
        assert_eq!(entries(&["a[b,c".to_owned(), ",".to_owned()]), ["a[b,c", "", ""]);
    }

    #[test]
    fn brackets_switch_and_set_one_lock() {
        let made = lock("linux-counter-mutex[waiter-preread=off,spinner-preread=off,budget-ns=7]").unwrap();
        let preset = named("linux-counter-mutex-no-preread").unwrap();
        assert_eq!(made.switches(), preset.switches());
        assert_eq!(made.set, [(Setting::SpinBudgetNs, 7)]);
        assert_eq!(made.name, "linux-counter-mutex[waiter-preread=off,spinner-preread=off,budget-ns=7]");
        assert_eq!(lock("cna[ threshold-ns = 1 ]").unwrap().name, "cna[threshold-ns=1]");
        assert!(std::ptr::eq(lock("cna[]").unwrap(), named("cna").unwrap()));
        // A switch that a preset has set can be set back.
        let back = lock("linux-mutex-no-handoff[handoff=on]").unwrap();
        assert_eq!(back.switches(), named("linux-mutex").unwrap().switches());
        let number = lock("qspinlock-steal[park-turns=off,head-turns=0]").unwrap();
        assert!(number.is_switched("stealing", "hybrid") && number.is_switched("head-turns", "0"));
    }

    #[test]
    fn errors_in_brackets_name_the_valid_choices() {
        assert_eq!(
            error("linux-mutex[hand-off=off]"),
            "linux-mutex has no switch or setting `hand-off`; did you mean `handoff`? There are: spinning (never, \
             unless-owner-sleeps, always), spinner-queue (off, on), waiter-spins (off, on), handoff (off, on), \
             yields-before-queue (off, on), budget-ns (0 to 1000000000 ns)"
        );
        assert_eq!(error("tas[x=1]"), "tas has no switch or setting `x`; it has none");
        assert_eq!(error("linux-mutex[handoff=of]"), "linux-mutex: handoff must be off or on, not `of`");
        assert_eq!(error("cna[reduction=off,reduction=on]"), "cna: reduction is given twice");
        let others = ["[]", "[x=1]", "cna[threshold-ns=1]]", "cna[threshold-ns=1][reduction=off]"];
        for text in
            ["cna[threshold-ns=1", "cna[threshold-ns]", "cna[threshold-ns=1]x"].into_iter().chain(others)
        {
            assert!(error(text).ends_with("as in cna[threshold-ns=100000]"), "{text}: {}", error(text));
        }
        assert_eq!(error("std[x=1]"), "`std[x=1]`: std is a peer, and peers have no switches; write std");
        assert!(error("cnn[x=1]").starts_with("there is no lock `cnn`; did you mean `cna`"));
    }
}
