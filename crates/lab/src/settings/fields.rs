//! Tables of the settings of a type. Each row has a key, limits, a help text, and the place of the
//! value.

use std::fmt;
use std::ops::RangeInclusive;

use nearlock_sim::spec::Value;

use crate::quantity;

/// A second, in ns.
pub const SECOND_NS: u64 = 1_000_000_000;
/// A millisecond, in ns. A longer section would be taken for a livelock.
pub const MILLISECOND_NS: u64 = 1_000_000;

/// A field of `T` that can be set.
pub struct Field<T> {
    /// The last part of the name: `KEY` of `NAME.KEY`.
    pub key: &'static str,
    /// The effect of the field.
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
    /// A field that is a number, in its unit.
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

    /// A field that is the duration of some work inside or outside a section, in ns.
    pub const fn ns(key: &'static str, at: fn(&mut T) -> &mut u64, summary: &'static str) -> Self {
        Self::number(key, "ns", 0..=MILLISECOND_NS, at, summary)
    }

    /// A field that is a percentage.
    pub const fn percent(key: &'static str, at: fn(&mut T) -> &mut u64, summary: &'static str) -> Self {
        Self::number(key, "%", 0..=100, at, summary)
    }

    /// A field that is one of a few words.
    pub const fn word(key: &'static str, at: fn(&mut T) -> &mut dyn Choice, summary: &'static str) -> Self {
        Self { key, summary, kind: Kind::Word { at } }
    }

    fn set(&self, of: &mut T, value: Value) -> Result<(), Refused> {
        let is_set = match (&self.kind, value) {
            (&Kind::Number { min, max, at, .. }, Value::Integer(number)) if (min..=max).contains(&number) => {
                *at(of) = number;
                true
            }
            (Kind::Word { at }, Value::Word(word)) => at(of).choose(word),
            _ => false,
        };
        if is_set { Ok(()) } else { Err(Refused::Value { range: self.row(of).values.to_string() }) }
    }

    fn row(&self, of: &mut T) -> FieldRow {
        let (value, values) = match self.kind {
            Kind::Number { unit, min, max, at } => {
                (Value::Integer(*at(of)), Values::Numbers { min, max, unit })
            }
            Kind::Word { at } => (Value::Word(at(of).word()), Values::Words(at(of).words())),
        };
        FieldRow { key: self.key, value, values, summary: self.summary }
    }
}

/// A field, for listings.
#[derive(Clone, Debug)]
pub struct FieldRow {
    /// The last part of the name.
    pub key: &'static str,
    /// The present value.
    pub value: Value,
    /// The possible values.
    pub values: Values,
    /// The effect of the field.
    pub summary: &'static str,
}

/// The possible values of a setting. As text: `0 to 100 %`, or `off, on or auto`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// Whole numbers in a range.
    Numbers {
        /// The minimum.
        min: u64,
        /// The maximum.
        max: u64,
        /// The unit.
        unit: &'static str,
    },
    /// A few words.
    Words(Vec<&'static str>),
}

impl Values {
    /// Parses a user's value, if it is possible. A number may have underscores, and a time may have
    /// a unit: `1ms`.
    pub fn read(&self, text: &str) -> Option<Value> {
        match self {
            Self::Numbers { min, max, unit } => {
                let number = quantity::read(text, unit)?;
                (*min..=*max).contains(&number).then_some(Value::Integer(number))
            }
            Self::Words(words) => words.iter().find(|word| **word == text).copied().map(Value::Word),
        }
    }

    /// What a time looks like, if this text is none.
    pub(super) fn forms_instead_of(&self, text: &str) -> Option<String> {
        match self {
            Self::Numbers { unit, .. } if quantity::read(text, unit).is_none() => quantity::forms(unit),
            Self::Numbers { .. } | Self::Words(_) => None,
        }
    }
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Numbers { min, max, unit } => write!(f, "{min} to {max} {unit}"),
            Self::Words(words) => f.write_str(&any_of(words)),
        }
    }
}

/// Why a field cannot be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no field with this key.
    Key,
    /// The field cannot have this value.
    Value {
        /// The possible values.
        range: String,
    },
}

/// Sets the field with this key.
///
/// # Errors
///
/// If the field does not exist, or it cannot have this value.
pub fn set<T>(fields: &[Field<T>], of: &mut T, key: &str, value: Value) -> Result<(), Refused> {
    fields.iter().find(|field| field.key == key).ok_or(Refused::Key)?.set(of, value)
}

/// All fields, with their present values.
pub fn rows<T: Clone>(fields: &[Field<T>], of: &T) -> Vec<FieldRow> {
    let mut of = of.clone();
    fields.iter().map(|field| field.row(&mut of)).collect()
}

/// A type with a few values, each of which has a word.
pub trait Words: Copy + PartialEq + 'static {
    /// The words, with their values.
    const WORDS: &'static [(&'static str, Self)];
}

/// A value of a type with words.
pub trait Choice {
    /// The words of all values.
    fn words(&self) -> Vec<&'static str>;
    /// The word of this value.
    fn word(&self) -> &'static str;
    /// Sets the value with this word. Returns `false` if there is none.
    fn choose(&mut self, word: &str) -> bool;
}

impl<T: Words> Choice for T {
    fn words(&self) -> Vec<&'static str> {
        T::WORDS.iter().map(|(word, _)| *word).collect()
    }

    fn word(&self) -> &'static str {
        // A value without a word cannot be set.
        T::WORDS.iter().find(|(_, value)| value == self).map_or("", |(word, _)| word)
    }

    fn choose(&mut self, word: &str) -> bool {
        let found = T::WORDS.iter().find(|(known, _)| *known == word);
        found.map(|(_, value)| *self = *value).is_some()
    }
}

/// Formats `off, on or auto`.
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
        set(FIELDS, &mut car, "wheels", Value::Integer(10)).unwrap();
        set(FIELDS, &mut car, "colour", Value::Word("red")).unwrap();
        assert_eq!(car, Car { wheels: 10, colour: Colour::Red });
        let rows = rows(FIELDS, &car);
        let text: Vec<_> =
            rows.iter().map(|row| format!("{}={} {}", row.key, row.value, row.values)).collect();
        assert_eq!(text, ["wheels=10 3 to 18 wheels", "colour=red red or green"]);
        let refused = |range: &str| Err(Refused::Value { range: range.to_owned() });
        for value in [Value::Integer(2), Value::Integer(19), Value::Float(4.0), Value::Word("four")] {
            assert_eq!(set(FIELDS, &mut car, "wheels", value), refused("3 to 18 wheels"));
        }
        for value in [Value::Word("Red"), Value::Integer(0)] {
            assert_eq!(set(FIELDS, &mut car, "colour", value), refused("red or green"));
        }
        assert_eq!(set(FIELDS, &mut car, "doors", Value::Integer(4)), Err(Refused::Key));
        assert_eq!(car, Car { wheels: 10, colour: Colour::Red });
    }

    #[test]
    fn what_a_user_writes_is_read_as_one_of_the_values_or_not_at_all() {
        let car = Car { wheels: 4, colour: Colour::Green };
        let [wheels, colour] = [0, 1].map(|field| rows(FIELDS, &car)[field].values.clone());
        assert_eq!(wheels.read("1_0"), Some(Value::Integer(10)));
        for text in ["2", "19", "-1", "", "four", "4.5", "4ms"] {
            assert_eq!(wheels.read(text), None, "{text}");
        }
        assert_eq!(colour.read("red"), Some(Value::Word("red")));
        assert_eq!(colour.read("Red"), None);
    }

    #[test]
    fn words_are_listed_as_one_would_say_them() {
        for (words, said) in [(&["a"][..], "a"), (&["a", "b"], "a or b"), (&["a", "b", "c"], "a, b or c")] {
            assert_eq!(any_of(words), said);
        }
    }
}
