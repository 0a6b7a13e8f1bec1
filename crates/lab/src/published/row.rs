//! What names a row of a table: one key or several, each with a value.

use std::fmt;

use serde::{Serialize, Serializer};

/// The key of rows that are numbers of threads.
pub const THREADS: &str = "threads";

/// One value of a row's name. In JSON a number or a string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyValue {
    /// A count: of threads, of nodes.
    Number(usize),
    /// Counts from the one to the other: `1100-2000`.
    Range(usize, usize),
    /// A word.
    Text(String),
}

impl fmt::Display for KeyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyValue::Number(number) => write!(f, "{number}"),
            KeyValue::Range(from, to) => write!(f, "{from}-{to}"),
            KeyValue::Text(text) => f.write_str(text),
        }
    }
}

impl Serialize for KeyValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            KeyValue::Number(number) => number.serialize(serializer),
            KeyValue::Range(..) | KeyValue::Text(_) => serializer.collect_str(self),
        }
    }
}

impl KeyValue {
    /// A count or a range of counts if it can be read as one, else a word.
    pub(super) fn of(text: &str) -> Self {
        let range = || {
            let (from, to) = text.split_once('-')?;
            Some(KeyValue::Range(from.parse().ok()?, to.parse().ok()?))
        };
        let number = text.parse().ok().map(KeyValue::Number);
        number.or_else(range).unwrap_or_else(|| KeyValue::Text(text.to_owned()))
    }
}

/// Names a row. In JSON an object: `{"threads":142}`, or `{"users":"1100-2000","nodes":8}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowKey(Vec<(&'static str, KeyValue)>);

impl RowKey {
    /// Of these keys, in their order.
    pub fn new(keys: Vec<(&'static str, KeyValue)>) -> Self {
        Self(keys)
    }

    /// Of a row that is a number of threads.
    pub fn of_threads(threads: usize) -> Self {
        Self(vec![(THREADS, KeyValue::Number(threads))])
    }

    /// The number of threads, where that is what the row is.
    pub fn threads(&self) -> Option<usize> {
        match self.get(THREADS) {
            Some(KeyValue::Number(threads)) => Some(*threads),
            _ => None,
        }
    }

    /// The value of this key.
    pub fn get(&self, key: &str) -> Option<&KeyValue> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// The count that this key has, or 0.
    pub fn number(&self, key: &str) -> usize {
        match self.get(key) {
            Some(KeyValue::Number(number)) => *number,
            _ => 0,
        }
    }

    /// The word that this key has, or none.
    pub fn word(&self, key: &str) -> &str {
        match self.get(key) {
            Some(KeyValue::Text(word)) => word,
            _ => "",
        }
    }

    /// Whether this key has this value, as it is written.
    pub fn is(&self, key: &str, value: &str) -> bool {
        self.get(key).is_some_and(|found| found.to_string() == value)
    }

    /// Keys and values, in the order of the table.
    pub fn parts(&self) -> &[(&'static str, KeyValue)] {
        &self.0
    }

    /// The values alone: `142`, `1100-2000/8/on`.
    pub fn label(&self) -> String {
        let values: Vec<_> = self.0.iter().map(|(_, value)| value.to_string()).collect();
        values.join("/")
    }

    /// Keys and values as one word for each key: `threads=142`, `users=1100-2000 nodes=8`.
    pub fn key_values(&self) -> String {
        let parts: Vec<_> = self.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
        parts.join(" ")
    }
}

/// `142 threads`, or `users 1100-2000, nodes 8`.
impl fmt::Display for RowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [(THREADS, threads)] = self.0.as_slice() {
            return write!(f, "{threads} threads");
        }
        let parts: Vec<_> = self.0.iter().map(|(key, value)| format!("{key} {value}")).collect();
        f.write_str(&parts.join(", "))
    }
}

impl Serialize for RowKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// Some rows of a table.
#[derive(Clone, Copy, Debug)]
pub enum Rows {
    /// Those of these numbers of threads.
    Threads(&'static [usize]),
    /// Those that have all the values of one of these lists, as they are written. An empty list is
    /// every row.
    With(&'static [&'static [(&'static str, &'static str)]]),
}

impl Rows {
    /// Every row of a table.
    pub const ALL: Rows = Rows::With(&[&[]]);

    /// Whether this row is one of them.
    pub fn contain(self, row: &RowKey) -> bool {
        match self {
            Rows::Threads(threads) => row.threads().is_some_and(|n| threads.contains(&n)),
            Rows::With(lists) => lists.iter().any(|list| list.iter().all(|(key, value)| row.is(key, value))),
        }
    }

    /// How many rows it names at least: each number, and each list, must name one.
    #[cfg(test)]
    pub(super) fn all_name_one_of(self, rows: &[RowKey]) -> bool {
        match self {
            Rows::Threads(threads) => {
                threads.iter().all(|&n| rows.iter().any(|row| row.threads() == Some(n)))
            }
            Rows::With(lists) => lists
                .iter()
                .all(|list| rows.iter().any(|row| list.iter().all(|(key, value)| row.is(key, value)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_users() -> RowKey {
        RowKey::new(vec![
            ("users", KeyValue::of("1100-2000")),
            ("nodes", KeyValue::of("8")),
            ("smt", KeyValue::of("on")),
        ])
    }

    #[test]
    fn a_row_is_written_as_it_was_where_it_is_a_number_of_threads() {
        let row = RowKey::of_threads(142);
        assert_eq!(
            (row.to_string(), row.label(), row.key_values()),
            ("142 threads".to_owned(), "142".to_owned(), "threads=142".to_owned())
        );
        assert_eq!(row.threads(), Some(142));
    }

    #[test]
    fn several_keys_are_all_said_in_their_order() {
        let row = of_users();
        assert_eq!(row.to_string(), "users 1100-2000, nodes 8, smt on");
        assert_eq!(row.label(), "1100-2000/8/on");
        assert_eq!(row.key_values(), "users=1100-2000 nodes=8 smt=on");
        assert_eq!((row.threads(), row.number("nodes"), row.number("users")), (None, 8, 0));
        assert_eq!((row.word("smt"), row.word("nodes"), row.word("lock")), ("on", "", ""));
        assert_eq!(row.get("users"), Some(&KeyValue::Range(1100, 2000)));
    }

    #[test]
    fn rows_are_picked_by_their_values() {
        let row = of_users();
        assert!(Rows::ALL.contain(&row) && !Rows::With(&[]).contain(&row));
        assert!(Rows::With(&[&[("nodes", "4")], &[("nodes", "8"), ("smt", "on")]]).contain(&row));
        assert!(!Rows::With(&[&[("nodes", "8"), ("smt", "off")]]).contain(&row));
        assert!(!Rows::Threads(&[8]).contain(&row));
        assert!(Rows::Threads(&[1, 8]).contain(&RowKey::of_threads(8)));
        assert!(!Rows::With(&[&[("nodes", "8")], &[("nodes", "3")]]).all_name_one_of(&[row]));
    }
}
