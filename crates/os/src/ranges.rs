//! Lists of numbers as the kernel writes them: `0-3,8`.

use core::ops::RangeInclusive;

use crate::text::number;

/// Numbers of CPUs or NUMA nodes that are not below this limit are rejected as garbage. The kernel
/// supports up to 8192 CPUs (x86-64).
const NUMBERS_MAX: u64 = 1 << 16;

/// Returns the ranges of a list as the kernel writes it. Where the text is no such list, the
/// iterator gives `None`, and ends. Empty text has no range. Does not allocate.
pub fn ranges(text: &str) -> impl Iterator<Item = Option<RangeInclusive<u32>>> + '_ {
    let text = text.trim_ascii().as_bytes();
    Ranges { rest: if text.is_empty() { None } else { Some(text) } }
}

/// The ranges at the beginning of this text; `None` at the end.
struct Ranges<'a> {
    rest: Option<&'a [u8]>,
}

impl Iterator for Ranges<'_> {
    type Item = Option<RangeInclusive<u32>>;

    fn next(&mut self) -> Option<Self::Item> {
        let (range, rest) = match range(self.rest?) {
            Some((range, [])) => (Some(range), None),
            Some((range, [b',', rest @ ..])) => (Some(range), Some(rest)),
            _ => (None, None),
        };
        self.rest = rest;
        Some(range)
    }
}

/// The range at the beginning of a text, and the text after it.
fn range(text: &[u8]) -> Option<(RangeInclusive<u32>, &[u8])> {
    let (first, rest) = number(text)?;
    let (last, rest) = if let [b'-', rest @ ..] = rest { number(rest)? } else { (first, rest) };
    (first <= last && last < NUMBERS_MAX).then_some((first as u32..=last as u32, rest))
}
