//! Numbers of threads, as every command takes them.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadCount {
    /// This number.
    Exactly(usize),
    /// This number for each CPU.
    PerCpu(usize),
}

impl ThreadCount {
    fn parse(text: &str) -> Option<Self> {
        let (number, count): (_, fn(usize) -> Self) = match text.strip_suffix(['x', 'X']) {
            Some(number) => (number, Self::PerCpu),
            None => (text, Self::Exactly),
        };
        number.parse().ok().filter(|&number| number > 0).map(count)
    }

    fn resolve(self, cpus: usize) -> usize {
        match self {
            Self::Exactly(threads) => threads,
            Self::PerCpu(each) => each.saturating_mul(cpus),
        }
    }
}

impl fmt::Display for ThreadCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(threads) => write!(f, "{threads}"),
            Self::PerCpu(each) => write!(f, "{each}x"),
        }
    }
}

/// A number of threads, or all numbers from one to another: `8`, `4x`, `1..8` or `1-8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadRange {
    first: ThreadCount,
    last: ThreadCount,
}

impl ThreadRange {
    /// This number of threads alone.
    pub const fn exactly(threads: usize) -> Self {
        Self { first: ThreadCount::Exactly(threads), last: ThreadCount::Exactly(threads) }
    }

    /// This number of threads for each CPU.
    pub const fn per_cpu(threads: usize) -> Self {
        Self { first: ThreadCount::PerCpu(threads), last: ThreadCount::PerCpu(threads) }
    }

    /// The numbers of threads on a machine with this many CPUs.
    fn resolve(self, cpus: usize) -> Result<RangeInclusive<usize>, EmptyRange> {
        let numbers = self.first.resolve(cpus)..=self.last.resolve(cpus);
        if numbers.is_empty() { Err(EmptyRange { range: self, cpus }) } else { Ok(numbers) }
    }
}

/// A range whose end is less than its begin on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "--threads {}..{}: empty range: {} is {} here",
    range.first, range.last, range.last, range.last.resolve(*cpus)
)]
pub struct EmptyRange {
    range: ThreadRange,
    cpus: usize,
}

/// All numbers of these ranges on a machine with this many CPUs, in their order, each once.
pub fn resolve(ranges: &[ThreadRange], cpus: usize) -> Result<Vec<usize>, EmptyRange> {
    let mut numbers = Vec::new();
    for range in ranges {
        for number in range.resolve(cpus)? {
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
    }
    Ok(numbers)
}

/// The greatest length of a range. A run with more cells would take too long.
const RANGE_MAX: usize = 4096;

impl FromStr for ThreadRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORMS: &str = "it must be a whole number, 1 or more; a multiple of the CPUs, as in 4x; or a range of \
                             these, as in 1..8";
        let ends = text.split_once("..").or_else(|| text.split_once('-'));
        let (first, last) = ends.unwrap_or((text, text));
        let last = last.strip_prefix('=').unwrap_or(last);
        let (Some(first), Some(last)) = (ThreadCount::parse(first), ThreadCount::parse(last)) else {
            return Err(FORMS.to_owned());
        };
        match (first, last) {
            (ThreadCount::Exactly(a), ThreadCount::Exactly(b))
            | (ThreadCount::PerCpu(a), ThreadCount::PerCpu(b))
                if a > b =>
            {
                Err(format!("empty range: begin with {last}, as in {last}..{first}"))
            }
            (ThreadCount::Exactly(a), ThreadCount::Exactly(b)) if b - a >= RANGE_MAX => {
                Err(format!("a range has at most {RANGE_MAX} numbers"))
            }
            (ThreadCount::PerCpu(_), ThreadCount::Exactly(_)) => {
                Err("a range that begins with a multiple of the CPUs ends with one, as in 1x..4x".to_owned())
            }
            (first, last) => Ok(Self { first, last }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(texts: &[&str]) -> Vec<usize> {
        let ranges: Vec<ThreadRange> = texts.iter().map(|text| text.parse().expect(text)).collect();
        resolve(&ranges, 4).expect("no range is empty")
    }

    #[test]
    fn ranges_have_both_ends_and_numbers_come_once() {
        assert_eq!(resolved(&["1..4"]), [1, 2, 3, 4]);
        assert_eq!(resolved(&["1..=4", "2-5"]), [1, 2, 3, 4, 5]);
        assert_eq!(resolved(&["8", "1x", "2X"]), [8, 4]);
        assert_eq!(resolved(&["3..1x"]), [3, 4]);
        let empty = resolve(&["1".parse().unwrap(), "7..1x".parse().unwrap()], 4).unwrap_err();
        assert_eq!(empty.to_string(), "--threads 7..1x: empty range: 1x is 4 here");
    }

    #[test]
    fn an_invalid_number_of_threads_is_refused_with_the_valid_forms() {
        for (text, expected) in [
            ("0", "1 or more"),
            ("x", "as in 4x"),
            ("-1", "1 or more"),
            ("1..", "as in 1..8"),
            ("8..1", "empty range: begin with 1, as in 1..8"),
            ("4x..1x", "empty range: begin with 1x, as in 1x..4x"),
            ("1..100000", "at most 4096"),
            ("1x..8", "as in 1x..4x"),
            ("1..2..3", "1 or more"),
        ] {
            let error = text.parse::<ThreadRange>().expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
