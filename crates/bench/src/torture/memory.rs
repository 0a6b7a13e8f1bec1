//! Memory use of the process, and whether it stays constant.
//!
//! Memory use fluctuates: stacks and heaps are kept for the next thread, and threads end in
//! batches. So medians of many looks are compared: the second quarter of a run with its last
//! quarter. Some growth is allowed. The first quarter is the warm-up.

use std::fmt;
use std::fs;

use serde::Serialize;

use super::Problem;

/// A quantity that must not grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Memory that the system has provided (`/proc/self/statm`).
    Resident,
    /// Mapped addresses (from the same file).
    Mapped,
    /// Thread slots of the library: as many as there were threads at the same time.
    ThreadSlots,
    /// Queue nodes of guards: for each thread as many as it had guards at the same time.
    QueueNodes,
}

impl Kind {
    /// All quantities, in the order of a [`Look`].
    pub const ALL: [Kind; 4] = [Kind::Resident, Kind::Mapped, Kind::ThreadSlots, Kind::QueueNodes];

    fn name(self) -> &'static str {
        match self {
            Kind::Resident => "resident",
            Kind::Mapped => "mapped",
            Kind::ThreadSlots => "thread slots",
            Kind::QueueNodes => "queue nodes",
        }
    }

    /// Allowed difference between the two medians.
    ///
    /// - Memory, in bytes: the allocator's own use. A process gets its heaps of 64 MiB one by one,
    ///   while few of their pages are used.
    /// - Pools: depends on how many of 64 threads are just starting or ending. Other load on the
    ///   machine changes that number. Observed are 41 to 45 slots in 20 s, with 40,000 threads. A
    ///   leak would amount to hundreds.
    fn allowance(self) -> u64 {
        match self {
            Kind::Resident => 1 << 20,
            Kind::Mapped => 72 << 20,
            Kind::ThreadSlots => 16,
            Kind::QueueNodes => 32,
        }
    }

    fn amount(self, n: u64) -> String {
        match self {
            Kind::Resident | Kind::Mapped => format!("{:.2} MiB", n as f64 / f64::from(1 << 20)),
            Kind::ThreadSlots | Kind::QueueNodes => n.to_string(),
        }
    }
}

/// The quantities at one time, by [`Kind`].
pub type Look = [u64; Kind::ALL.len()];

/// The quantities now; 0 if the system does not report a quantity.
pub fn look() -> Look {
    const PAGE: u64 = 4096;
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut pages = statm.split(' ').map(|word| word.parse().unwrap_or(0_u64));
    let [mapped, resident] = [(); 2].map(|()| pages.next().unwrap_or(0) * PAGE);
    [resident, mapped, nearlock_os::thread_slots().into(), nearlock::process::queue_nodes() as u64]
}

/// Memory use after the warm-up, and at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Medians of the second quarter of the looks.
    pub from: Look,
    /// Medians of the last quarter.
    pub to: Look,
}

impl Memory {
    /// Evaluates these looks, in the order of their time. `None` if there are too few.
    pub fn of(looks: &[Look]) -> Option<Self> {
        let quarter = looks.len() / 4;
        let middle = |looks: &[Look]| {
            std::array::from_fn(|kind| {
                let mut amounts: Vec<_> = looks.iter().map(|look| look[kind]).collect();
                amounts.sort_unstable();
                amounts[amounts.len() / 2]
            })
        };
        (quarter > 0).then(|| Self {
            from: middle(&looks[quarter..2 * quarter]),
            to: middle(&looks[looks.len() - quarter..]),
        })
    }

    /// The quantities that have grown.
    pub fn problems(&self) -> impl Iterator<Item = Problem> + '_ {
        let grown = |kind: &Kind| self.to[*kind as usize] > self.from[*kind as usize] + kind.allowance();
        Kind::ALL.into_iter().filter(grown).map(|kind| Problem::Growth {
            what: kind.name(),
            from: kind.amount(self.from[kind as usize]),
            to: kind.amount(self.to[kind as usize]),
        })
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |kind: Kind| {
            let [from, to] = [self.from, self.to].map(|look| kind.amount(look[kind as usize]));
            format!("{} {from} to {to}", kind.name())
        };
        f.write_str(&Kind::ALL.map(of).join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Looks that begin with `from` and grow by `growth` each. Every third look is larger by a
    /// constant.
    fn looks(from: Look, growth: Look) -> Vec<Look> {
        let look = |n: u64| {
            std::array::from_fn(|kind| from[kind] + growth[kind] * n + 50 * u64::from(n.is_multiple_of(3)))
        };
        (0..400).map(look).collect()
    }

    #[test]
    fn a_quantity_that_goes_up_and_down_is_flat() {
        let memory = Memory::of(&looks([8 * MIB, 800 * MIB, 70, 90], [0; 4])).unwrap();
        assert_eq!((memory.from, memory.problems().next()), (memory.to, None));
        assert_eq!(Memory::of(&[[0; 4]; 3]), None);
    }

    #[test]
    fn every_quantity_that_grows_is_named() {
        for (kind, growth) in Kind::ALL.into_iter().zip([8 * 1024, MIB, 1, 1]) {
            let mut each = [0; 4];
            each[kind as usize] = growth;
            let memory = Memory::of(&looks([8 * MIB, 800 * MIB, 70, 90], each)).unwrap();
            let problems: Vec<_> = memory.problems().collect();
            assert!(
                matches!(&problems[..], [Problem::Growth { what, .. }] if *what == kind.name()),
                "{problems:?}"
            );
        }
    }

    /// Other tests of the process may give back as much memory at the same time, but not always.
    #[test]
    fn memory_that_is_used_is_seen() {
        let is_seen = || {
            let before = look();
            let block = std::hint::black_box(vec![1_u8; 64 << 20]);
            let after = look();
            drop(block);
            after[0] >= before[0] + 32 * MIB && after[1] > before[1]
        };
        assert!(!cfg!(target_os = "linux") || (0..20).any(|_| is_seen()));
    }
}
