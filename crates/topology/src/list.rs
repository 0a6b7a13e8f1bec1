//! Lists of numbers as the kernel writes them: `0-3,8`.

use std::fmt;

use nearlock_os::ranges;

/// A sorted set of numbers of CPUs or NUMA nodes. Its text is that of the kernel, `0-3,8`. The text
/// of the empty set is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumberList(Vec<u32>);

impl NumberList {
    /// Parses a list as the kernel writes it. `None` if the text is not a list, or a number is out
    /// of range (65536 or more).
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = Vec::new();
        for range in ranges(text) {
            numbers.extend(range?);
        }
        Some(numbers.into_iter().collect())
    }

    /// Returns whether the set contains the number.
    pub fn contains(&self, number: u32) -> bool {
        self.0.binary_search(&number).is_ok()
    }

    /// Returns the numbers, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// Returns how many numbers there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the numbers that are in both sets.
    pub fn and(&self, other: &Self) -> Self {
        Self(self.iter().filter(|&number| other.contains(number)).collect())
    }
}

impl FromIterator<u32> for NumberList {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut numbers: Vec<u32> = numbers.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        Self(numbers)
    }
}

impl fmt::Display for NumberList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for run in self.0.chunk_by(|a, b| a + 1 == *b) {
            write!(f, "{comma}{}", run[0])?;
            if run.len() > 1 {
                write!(f, "-{}", run[run.len() - 1])?;
            }
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_kernel_are_understood_and_written_alike() {
        for text in ["", "0", "0-3", "0-1,4,6-7", "1,3,5", "65535"] {
            assert_eq!(NumberList::parse(text).unwrap().to_string(), text);
        }
        let list = NumberList::parse("6-7,0-1,1\n").unwrap();
        assert_eq!(list.iter().collect::<Vec<_>>(), [0, 1, 6, 7]);
        assert!(list.contains(6) && !list.contains(2));
        assert_eq!(list.and(&NumberList::parse("1-6").unwrap()).to_string(), "1,6");
    }

    #[test]
    fn garbage_is_no_list() {
        for text in ["x", "1,", "3-1", "-1", "1--2", "0-65536", "4294967296", "0 1", "0-"] {
            assert_eq!(NumberList::parse(text), None, "{text}");
        }
    }
}
