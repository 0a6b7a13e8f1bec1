//! Switches: choices about an algorithm that are made before a lock of it exists.
//!
//! An algorithm reads its switches through the functions of a tuning trait. A tuning trait is
//! implemented by types:
//!
//! | type | its functions return |
//! |---|---|
//! | [`Standard`] | the recommended values: constants |
//! | a type that [`tuning!`](crate::tuning!) declares | other constants |
//! | [`Switched`] | the values of the platform instance: one form of the code has all positions |
//!
//! Programs use types with constants, so that the compiler removes code that is switched off. A
//! laboratory compiles each algorithm once, with [`Switched`], and sets its switches by name
//! ([`SwitchInfo`]). Numbers that may change while a lock is in use are
//! [`settings`](crate::settings) instead.

#[macro_use]
mod macros;

use core::fmt;
use core::marker::PhantomData;

use crate::platform::Switches;

/// An argument of a function that only the traits of `switches!` have.
#[doc(hidden)]
#[derive(Debug)]
pub struct DeclaredBySwitches;

/// All recommended values, for every tuning trait.
#[derive(Debug)]
pub struct Standard;

/// The values that the platform instance has ([`Switches`]), for every tuning trait.
#[derive(Debug)]
pub struct Switched<P>(PhantomData<fn() -> P>);

/// The name of a switch, and its possible values.
#[derive(Debug)]
pub struct SwitchInfo {
    /// Its name, for instance `preread`.
    pub key: &'static str,
    /// The possible values.
    pub values: Values,
    /// The recommended value.
    pub default: u64,
    /// A short description.
    pub summary: &'static str,
    /// Its index among the switches of a platform instance.
    pub index: usize,
}

/// The possible values of a switch. They are stored as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Words for the numbers from 0 on.
    Words(&'static [&'static str]),
    /// A number within limits.
    Number {
        /// The least value.
        min: u64,
        /// The greatest value.
        max: u64,
    },
    /// The word `off`, or a number up to a limit.
    OffOrNumber {
        /// The greatest number.
        max: u64,
    },
}

/// How [`Values::OffOrNumber`] stores `off`.
pub const OFF: u64 = u64::MAX;

/// The words of a switch that is on or off.
pub const OFF_ON: &[&str] = &["off", "on"];

/// A switch, and one of its values.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// The switch.
    pub switch: &'static SwitchInfo,
    /// The value.
    pub value: u64,
}

impl Values {
    /// The value of a text, if the text is one of these values.
    #[inline]
    pub const fn parse(self, text: &str) -> Option<u64> {
        match self {
            Self::Words(words) => {
                let mut i = 0;
                while i < words.len() {
                    if is_same(words[i], text) {
                        return Some(i as u64);
                    }
                    i += 1;
                }
                None
            }
            Self::Number { min, max } => match u64::from_str_radix(text, 10) {
                Ok(number) if min <= number && number <= max => Some(number),
                _ => None,
            },
            Self::OffOrNumber { .. } if is_same(text, "off") => Some(OFF),
            Self::OffOrNumber { max } => Self::Number { min: 0, max }.parse(text),
        }
    }
}

impl Values {
    /// Whether a value is one of these.
    #[inline]
    pub const fn contain(self, value: u64) -> bool {
        match self {
            Self::Words(words) => value < words.len() as u64,
            Self::Number { min, max } => min <= value && value <= max,
            Self::OffOrNumber { max } => value == OFF || value <= max,
        }
    }

    /// The text of a value.
    #[inline]
    pub fn show(self, value: u64) -> impl fmt::Display {
        fmt::from_fn(move |f| match self {
            Self::Words(words) => f.write_str(words.get(value as usize).unwrap_or(&"?")),
            Self::OffOrNumber { .. } if value == OFF => f.write_str("off"),
            Self::Number { .. } | Self::OffOrNumber { .. } => write!(f, "{value}"),
        })
    }
}

impl fmt::Display for Values {
    /// Writes all values: `off, on`, or `1 to 20`.
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(words) => words.iter().enumerate().try_for_each(|(i, word)| {
                let before = if i == 0 { "" } else { ", " };
                write!(f, "{before}{word}")
            }),
            Self::Number { min, max } => write!(f, "{min} to {max}"),
            Self::OffOrNumber { max } => write!(f, "off, or 0 to {max}"),
        }
    }
}

impl SwitchInfo {
    /// The value of the switch on the present platform instance.
    #[inline(always)]
    pub fn of<P: Switches>(&self) -> u64 {
        P::switch(self.index) ^ self.default
    }

    /// The number that the platform instance stores for a value. It is 0 for the default, so that
    /// an instance need not know the default.
    pub const fn stored(&self, value: u64) -> u64 {
        value ^ self.default
    }
}

impl Position {
    /// The index in the platform instance, and the number that is stored there.
    pub const fn stored(&self) -> (usize, u64) {
        (self.switch.index, self.switch.stored(self.value))
    }
}

/// Whether two texts are equal, in `const`.
pub const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// The switch with this key among these switches.
pub const fn named(switches: &'static [&'static SwitchInfo], key: &str) -> Option<&'static SwitchInfo> {
    let mut i = 0;
    while i < switches.len() {
        if is_same(switches[i].key, key) {
            return Some(switches[i]);
        }
        i += 1;
    }
    None
}

words! {
    /// How a lock writes a part of its word.
    pub enum WordAccess {
        /// By a narrow store or swap ([`SplitWord`](crate::platform::SplitWord)), as the kernel
        /// does. A release costs no locked instruction.
        Split "split",
        /// By a read-modify-write of the whole word, which model checkers, Miri and sanitizers can
        /// see.
        Whole "whole",
    }
}
