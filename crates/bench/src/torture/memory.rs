//! What the process has in memory, and whether that stays as it is.
//!
//! What is in memory goes up and down: stacks and heaps are kept for the next thread, threads end
//! in batches. So the middle of many looks is compared, those of the second quarter of a run with
//! those of the last, and some growth is allowed. The first quarter is for warming up.

use std::fmt;
use std::fs;

use serde::Serialize;

use super::Problem;

/// Something that must not grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What the system has given memory for (`/proc/self/statm`).
    Resident,
    /// Addresses in use (the same).
    Mapped,
    /// What the library keeps for each thread: as many as there were threads at a time.
    ThreadSlots,
    /// Queue nodes of guards: as many as there were guards at a time, for each thread.
    QueueNodes,
}

impl Kind {
    /// All of them, in the order of a [`Look`].
    pub const ALL: [Kind; 4] = [Kind::Resident, Kind::Mapped, Kind::ThreadSlots, Kind::QueueNodes];

    fn name(self) -> &'static str {
        match self {
            Kind::Resident => "resident",
            Kind::Mapped => "mapped",
            Kind::ThreadSlots => "thread slots",
            Kind::QueueNodes => "queue nodes",
        }
    }

    /// By how much two middles may differ though nothing leaks. Memory, in bytes: the allocator's
    /// own, whose heaps of 64 MiB each a process gets one by one, while few of their pages are
    /// used. Pools: who is just coming or going, of 64 threads, which other load on the machine
    /// changes (41 to 45 slots has been seen in 20 s, with 40,000 threads: a leak would be of
    /// hundreds).
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

/// What there was at a moment, by [`Kind`].
pub type Look = [u64; Kind::ALL.len()];

/// A look now. What the system does not tell is 0.
pub fn look() -> Look {
    const PAGE: u64 = 4096;
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut pages = statm.split(' ').map(|word| word.parse().unwrap_or(0_u64));
    let [mapped, resident] = [(); 2].map(|()| pages.next().unwrap_or(0) * PAGE);
    [resident, mapped, nearlock_os::thread_slots().into(), nearlock::process::queue_nodes() as u64]
}

/// What there was after warming up, and at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// The middle of the second quarter of the looks.
    pub from: Look,
    /// That of the last quarter.
    pub to: Look,
}

impl Memory {
    /// Of these looks, in the order of their time. `None` if they are too few.
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

    /// What has grown.
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

    /// Looks at something that begins like this, and grows with each by so much; every third look
    /// there is more.
    fn looks(from: Look, growth: Look) -> Vec<Look> {
        let look = |n: u64| {
            std::array::from_fn(|kind| from[kind] + growth[kind] * n + 50 * u64::from(n.is_multiple_of(3)))
        };
        (0..400).map(look).collect()
    }

    #[test]
    fn what_goes_up_and_down_is_flat() {
        let memory = Memory::of(&looks([8 * MIB, 800 * MIB, 70, 90], [0; 4])).unwrap();
        assert_eq!((memory.from, memory.problems().next()), (memory.to, None));
        assert_eq!(Memory::of(&[[0; 4]; 3]), None);
    }

    #[test]
    fn whatever_grows_is_named() {
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

    #[test]
    fn memory_that_is_used_is_seen() {
        let before = look();
        let block = std::hint::black_box(vec![1_u8; 64 << 20]);
        let after = look();
        assert!(
            !cfg!(target_os = "linux") || after[0] >= before[0] + 32 * MIB && after[1] > before[1],
            "{before:?} {after:?}"
        );
        drop(block);
    }
}
