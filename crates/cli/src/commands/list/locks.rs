//! The list of locks.

use nearlock_lab::description::Described;
use nearlock_lab::names::{self, RUST_NAMES, RustName, recommended};
use nearlock_lab::{Family, SUBJECTS, Subject};

use super::List;
use crate::report::text::{list_table, wrapped};

const FAMILIES: [Family; 5] =
    [Family::Near, Family::Classic, Family::Linux, Family::FreeBsd, Family::Control];

/// The cells of a row.
const KEYS: [&str; 10] = [
    "lock",
    "rust",
    "family",
    "summary",
    "fairness",
    "recommended",
    "word",
    "waiters",
    "overtaking",
    "source",
];

fn family_name(family: Family) -> &'static str {
    match family {
        Family::Classic => "classic",
        Family::Linux => "Linux",
        Family::FreeBsd => "FreeBSD",
        Family::Near => "nearlock",
        Family::Control => "control",
    }
}

/// All locks, the recommended ones first.
pub(super) fn list() -> List {
    let rank = |name: &str| RUST_NAMES.iter().position(|row| row.lock == name && recommended().contains(row));
    let mut subjects: Vec<_> = SUBJECTS.iter().collect();
    subjects.sort_by_key(|subject| rank(subject.name).unwrap_or(usize::MAX));
    let rows = subjects.into_iter().map(|subject| {
        let of = |part: fn(Described) -> &'static str| Described::of(subject).map_or("", part);
        [
            subject.name,
            RustName::of(subject.name).map_or("", |name| name.path),
            family_name(subject.family()),
            subject.summary,
            subject.fairness().name(),
            if rank(subject.name).is_some() { "yes" } else { "no" },
            of(|described| described.word),
            of(|described| described.waiters),
            of(|described| described.fairness),
            of(|described| described.source),
        ]
        .map(without_marks)
    });
    List::new(&KEYS, rows)
}

/// The recommended locks with their purposes, and the names of the others.
pub(super) fn overview(list: &List) -> String {
    let rows = recommended().iter().map(|row| [row.lock, row.path, row.purpose].map(str::to_owned));
    let mut parts = vec![list_table(&["recommended", "in Rust", "for"], 2, rows)];
    for family in FAMILIES.map(family_name) {
        let others = list.rows.iter().filter(|row| row[2] == family && row[5] == "no");
        let names: Vec<_> = others.map(|row| row[0].as_str()).collect();
        let head = if family == "control" { "controls, broken on purpose" } else { family };
        parts.push(format!("{head}\n{}", wrapped(&names.join(", "), "  ")));
    }
    parts.push(wrapped(
        "`nearlock list locks WORD` describes the locks whose names contain WORD, and `--all` all. Each name \
         accepts switches and settings: NAME[KEY=VALUE,...] (`nearlock list switches`).",
        "",
    ));
    parts.join("\n\n")
}

/// A table of these locks, and a description of each that is named in full.
pub(super) fn text(list: &List, named: &[String]) -> String {
    let is_named = |row: &&Vec<String>| {
        let is_name = |cell: &str| named.iter().any(|word| names::is_same(word, cell));
        list.rows.len() == 1 || is_name(&row[0]) || is_name(&row[1])
    };
    let described = list.rows.iter().filter(is_named).filter_map(|row| description(&row[0]));
    [table(list)].into_iter().chain(described).collect::<Vec<_>>().join("\n\n")
}

/// The parts of a lock's description, each under its name. Controls have none.
fn description(lock: &str) -> Option<String> {
    let Described { word, waiters, fairness, source } = Described::of(Subject::named(lock)?)?;
    let part = |(name, text): (&str, &str)| format!("  {name}\n{}", wrapped(&without_marks(text), "    "));
    let parts = [("word", word), ("state of a waiter", waiters), ("fairness", fairness), ("source", source)]
        .map(part);
    Some(format!("{lock}\n{}", parts.join("\n")))
}

/// The text without the marks of code in Markdown.
fn without_marks(text: &str) -> String {
    text.replace('`', "")
}

fn table(list: &List) -> String {
    let row = |row: &Vec<String>| {
        let rust = if row[1].is_empty() { String::new() } else { format!(" (in Rust `{}`)", row[1]) };
        [row[0].clone(), row[2].clone(), format!("{}{rust}", row[3]), row[4].clone()]
    };
    list_table(&["lock", "family", "what it is", "promise to a waiter"], 2, list.rows.iter().map(row))
}
