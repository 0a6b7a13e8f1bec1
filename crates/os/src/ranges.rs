//! Lists of numbers as the kernel writes them: `0-3,8`.

use core::ops::RangeInclusive;

/// Numbers of CPUs or NUMA nodes that are not below this limit are rejected as garbage. The kernel
/// supports up to 8192 CPUs (x86-64).
const NUMBERS_MAX: u32 = 1 << 16;

/// Returns the ranges of a list as the kernel writes it. An item that is not a range gives `None`.
/// Empty text has no range. Does not allocate.
pub fn ranges(text: &str) -> impl Iterator<Item = Option<RangeInclusive<u32>>> + '_ {
    let text = text.trim();
    let count = if text.is_empty() { 0 } else { usize::MAX };
    text.split(',').take(count).map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last && last < NUMBERS_MAX).then_some(first..=last)
    })
}
