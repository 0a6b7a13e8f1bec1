//! The values of settings.

use std::fmt;

/// A value of a setting. Its text is the one that `NAME.KEY=VALUE` takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Integer(u64),
    /// A number that need not be whole.
    Float(f64),
    /// One of the words of the setting.
    Word(&'static str),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
            Self::Word(value) => value.fmt(f),
        }
    }
}
