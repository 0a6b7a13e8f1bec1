//! What a setting can be set to.

use std::fmt;

/// A value of a setting. As text it is as `NAME.KEY=VALUE` takes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Integer(u64),
    /// A number that need not be whole.
    Float(f64),
    /// One of the words that the setting knows.
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
