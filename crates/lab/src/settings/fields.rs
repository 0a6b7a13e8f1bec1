//! Tables of what can be set of a type: rows of a key, limits, help, and where the value is stored.

use std::ops::RangeInclusive;

/// A second, in ns.
pub const SECOND_NS: u64 = 1_000_000_000;
/// A millisecond, in ns. Longer sections would be taken for a livelock.
pub const MILLISECOND_NS: u64 = 1_000_000;

/// A field of `T` that can be set.
pub struct Field<T> {
    /// The last part of its name: `KEY` of `NAME.KEY`.
    pub key: &'static str,
    /// What it does.
    pub summary: &'static str,
    kind: Kind<T>,
}

enum Kind<T> {
    /// A number within limits.
    Number { unit: &'static str, min: u64, max: u64, at: fn(&mut T) -> &mut u64 },
    /// One of a few words.
    Word { at: fn(&mut T) -> &mut dyn Choice },
}

impl<T> Field<T> {
    /// A number, in its unit.
    pub const fn number(
        key: &'static str,
        unit: &'static str,
        limits: RangeInclusive<u64>,
        at: fn(&mut T) -> &mut u64,
        summary: &'static str,
    ) -> Self {
        let (min, max) = (*limits.start(), *limits.end());
        Self { key, summary, kind: Kind::Number { unit, min, max, at } }
    }

    /// The length of something in a section or between two, in ns.
    pub const fn ns(key: &'static str, at: fn(&mut T) -> &mut u64, summary: &'static str) -> Self {
        Self::number(key, "ns", 0..=MILLISECOND_NS, at, summary)
    }

    /// How many of a hundred.
    pub const fn percent(key: &'static str, at: fn(&mut T) -> &mut u64, summary: &'static str) -> Self {
        Self::number(key, "%", 0..=100, at, summary)
    }

    /// One of a few words.
    pub const fn word(key: &'static str, at: fn(&mut T) -> &mut dyn Choice, summary: &'static str) -> Self {
        Self { key, summary, kind: Kind::Word { at } }
    }

    fn set(&self, of: &mut T, value: &str) -> Result<(), Refused> {
        let is_set = match self.kind {
            Kind::Number { min, max, at, .. } => number(value, min, max).is_some_and(|number| {
                *at(of) = number;
                true
            }),
            Kind::Word { at } => at(of).choose(value),
        };
        if is_set { Ok(()) } else { Err(Refused::Value { range: self.row(of).range }) }
    }

    fn row(&self, of: &mut T) -> FieldRow {
        let (value, range) = match self.kind {
            Kind::Number { unit, min, max, at } => (at(of).to_string(), range(min, max, unit)),
            Kind::Word { at } => (at(of).word().to_owned(), any_of(&at(of).words())),
        };
        FieldRow { key: self.key, value, range, summary: self.summary }
    }
}

/// A field as it stands in a list.
#[derive(Clone, Debug)]
pub struct FieldRow {
    /// The last part of its name.
    pub key: &'static str,
    /// Its present value.
    pub value: String,
    /// Values that it can have, with their unit.
    pub range: String,
    /// What it does.
    pub summary: &'static str,
}

/// Why a field cannot be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is none of that key.
    Key,
    /// It cannot have that value.
    Value {
        /// The values that it can have.
        range: String,
    },
}

/// Sets the field of this key.
///
/// # Errors
///
/// If there is none, or it cannot have this value.
pub fn set<T>(fields: &[Field<T>], of: &mut T, key: &str, value: &str) -> Result<(), Refused> {
    fields.iter().find(|field| field.key == key).ok_or(Refused::Key)?.set(of, value)
}

/// All fields, with their present values.
pub fn rows<T: Clone>(fields: &[Field<T>], of: &T) -> Vec<FieldRow> {
    let mut of = of.clone();
    fields.iter().map(|field| field.row(&mut of)).collect()
}

/// A type of a few values, each of which has a word.
pub trait Words: Copy + PartialEq + 'static {
    /// The words, and what they stand for.
    const WORDS: &'static [(&'static str, Self)];
}

/// A value of a type of few.
pub trait Choice {
    /// The words for all of them.
    fn words(&self) -> Vec<&'static str>;
    /// The word for this one.
    fn word(&self) -> &'static str;
    /// Makes it the value of this word, if there is one. Whether there is.
    fn choose(&mut self, word: &str) -> bool;
}

impl<T: Words> Choice for T {
    fn words(&self) -> Vec<&'static str> {
        T::WORDS.iter().map(|(word, _)| *word).collect()
    }

    fn word(&self) -> &'static str {
        // A value that has no word is one that nobody can ask for.
        T::WORDS.iter().find(|(_, value)| value == self).map_or("", |(word, _)| word)
    }

    fn choose(&mut self, word: &str) -> bool {
        let found = T::WORDS.iter().find(|(known, _)| *known == word);
        found.map(|(_, value)| *self = *value).is_some()
    }
}

/// A number within these limits. It may have underscores.
pub(super) fn number(value: &str, min: u64, max: u64) -> Option<u64> {
    value.replace('_', "").parse().ok().filter(|number| (min..=max).contains(number))
}

/// `0 to 100 %`
pub(super) fn range(min: u64, max: u64, unit: &str) -> String {
    format!("{min} to {max} {unit}")
}

/// `off, on or auto`
pub(crate) fn any_of(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Colour {
        Red,
        Green,
    }

    impl Words for Colour {
        const WORDS: &'static [(&'static str, Self)] = &[("red", Colour::Red), ("green", Colour::Green)];
    }

    #[derive(Clone, Debug, PartialEq)]
    struct Car {
        wheels: u64,
        colour: Colour,
    }

    const FIELDS: &[Field<Car>] = &[
        Field::number("wheels", "wheels", 3..=18, |car| &mut car.wheels, "On how many it rolls."),
        Field::word("colour", |car| &mut car.colour, "Of its body."),
    ];

    #[test]
    fn fields_are_set_within_their_limits_and_listed_as_they_stand() {
        let mut car = Car { wheels: 4, colour: Colour::Green };
        set(FIELDS, &mut car, "wheels", "1_0").unwrap();
        set(FIELDS, &mut car, "colour", "red").unwrap();
        assert_eq!(car, Car { wheels: 10, colour: Colour::Red });
        let rows = rows(FIELDS, &car);
        let text: Vec<_> =
            rows.iter().map(|row| format!("{}={} {}", row.key, row.value, row.range)).collect();
        assert_eq!(text, ["wheels=10 3 to 18 wheels", "colour=red red or green"]);
        let refused = |range: &str| Err(Refused::Value { range: range.to_owned() });
        for value in ["2", "19", "-1", "", "four", "4.0"] {
            assert_eq!(set(FIELDS, &mut car, "wheels", value), refused("3 to 18 wheels"));
        }
        assert_eq!(set(FIELDS, &mut car, "colour", "Red"), refused("red or green"));
        assert_eq!(set(FIELDS, &mut car, "doors", "4"), Err(Refused::Key));
        assert_eq!(car.wheels, 10);
    }

    #[test]
    fn words_are_listed_as_one_would_say_them() {
        for (words, said) in [(&["a"][..], "a"), (&["a", "b"], "a or b"), (&["a", "b", "c"], "a, b or c")] {
            assert_eq!(any_of(words), said);
        }
    }
}
