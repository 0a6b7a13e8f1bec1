//! The name of a row: one or several keys, each with a value.

use std::fmt;

use serde::{Serialize, Serializer};

/// The key of rows that are numbers of threads.
pub const THREADS: &str = "threads";

/// A value in the name of a row. In JSON it is a number or a string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyValue {
    /// A count, for example of threads or NUMA nodes.
    Number(usize),
    /// A range of counts: `1100-2000`.
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
    /// Reads a count or a range of counts if possible, otherwise a word.
    pub(super) fn of(text: &str) -> Self {
        let range = || {
            let (from, to) = text.split_once('-')?;
            Some(KeyValue::Range(from.parse().ok()?, to.parse().ok()?))
        };
        let number = text.parse().ok().map(KeyValue::Number);
        number.or_else(range).unwrap_or_else(|| KeyValue::Text(text.to_owned()))
    }
}

/// The name of a row. In JSON it is an object: `{"threads":142}`, or
/// `{"users":"1100-2000","nodes":8}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowKey(Vec<(&'static str, KeyValue)>);

impl RowKey {
    /// A name with these keys, in this order.
    pub fn new(keys: Vec<(&'static str, KeyValue)>) -> Self {
        Self(keys)
    }

    /// The name of a row that is a number of threads.
    pub fn of_threads(threads: usize) -> Self {
        Self(vec![(THREADS, KeyValue::Number(threads))])
    }

    /// The number of threads, if the row is one.
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

    /// The count of this key, or 0.
    pub fn number(&self, key: &str) -> usize {
        match self.get(key) {
            Some(KeyValue::Number(number)) => *number,
            _ => 0,
        }
    }

    /// The word of this key, or an empty string.
    pub fn word(&self, key: &str) -> &str {
        match self.get(key) {
            Some(KeyValue::Text(word)) => word,
            _ => "",
        }
    }

    /// Whether this key has this value, as text.
    pub fn is(&self, key: &str, value: &str) -> bool {
        self.get(key).is_some_and(|found| found.to_string() == value)
    }

    /// The keys and values, in the order of the table.
    pub fn parts(&self) -> &[(&'static str, KeyValue)] {
        &self.0
    }

    /// The values only: `142`, `1100-2000/8/on`.
    pub fn label(&self) -> String {
        let values: Vec<_> = self.0.iter().map(|(_, value)| value.to_string()).collect();
        values.join("/")
    }

    /// The keys and values, one word for each key: `threads=142`, `users=1100-2000 nodes=8`.
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

/// A selection of rows of a table.
#[derive(Clone, Copy, Debug)]
pub enum Rows {
    /// The rows with these numbers of threads.
    Threads(&'static [usize]),
    /// The rows that have all values of at least one of these lists, as texts. An empty list
    /// selects every row.
    With(&'static [&'static [(&'static str, &'static str)]]),
}

impl Rows {
    /// All rows of a table.
    pub const ALL: Rows = Rows::With(&[&[]]);

    /// Whether the selection contains this row.
    pub fn contain(self, row: &RowKey) -> bool {
        match self {
            Rows::Threads(threads) => row.threads().is_some_and(|n| threads.contains(&n)),
            Rows::With(lists) => lists.iter().any(|list| list.iter().all(|(key, value)| row.is(key, value))),
        }
    }

    /// Whether each number, or each list, selects at least one of these rows.
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
