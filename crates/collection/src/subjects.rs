//! The list of all locks. The model checkers, the torture test, the simulator and the benchmark
//! take their locks from it, so a lock that is listed here is in all of them.
//!
//! A lock of the list is an algorithm (`algorithms.rs`) and the positions of its switches. All
//! switches are in the recommended position, or a preset (`presets.rs`) or the user chooses the
//! positions. The type of an algorithm takes its tuning from the platform instance
//! ([`Switched`](crate::tuning::Switched)), so that each algorithm is compiled once.

mod algorithms;
mod capability;
mod presets;

use crate::parking::{RawTimedLock, RawTimedRwLock};
use crate::platform::{Platform, SWITCHES_MAX};
use crate::raw::{RawRwLock, RawTryLock};
use crate::settings::Setting;
use crate::tuning::{Position, SwitchInfo, is_same};

pub use algorithms::ALGORITHMS;
pub use capability::EveryCapability;
pub use presets::{PRESETS, Preset};

/// The origin of a lock, and whether it is meant to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// From the literature.
    Classic,
    /// From the Linux kernel.
    Linux,
    /// From the FreeBSD kernel.
    FreeBsd,
    /// This project's own locks.
    Near,
    /// Locks with a deliberate fault. They are used only if named, and the tests must then find the
    /// fault.
    Control,
}

/// The fairness that a lock promises to a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fairness {
    /// None: other threads may overtake a waiter for ever.
    Unbounded,
    /// First come, first served.
    Fifo,
    /// Waiters of one NUMA node may overtake a waiter, for at most a threshold in ns at a time (0:
    /// for ever). This may happen a few times if there are several other NUMA nodes.
    Threshold(Setting),
    /// Waiters of one NUMA node may overtake a waiter, for at most so many hand-overs at a time.
    /// This may happen as many times as there are other NUMA nodes.
    PassLimit(Setting),
}

impl Fairness {
    /// The name of the promise, in a few words.
    pub const fn name(self) -> &'static str {
        match self {
            Fairness::Unbounded => "none",
            Fairness::Fifo => "first come, first served",
            Fairness::Threshold(_) => "threshold",
            Fairness::PassLimit(_) => "pass limit",
        }
    }
}

/// An algorithm of the list.
#[derive(Debug)]
pub struct Algorithm {
    /// Its name on the command line. It is also the name of the lock with all switches in the
    /// recommended position.
    pub name: &'static str,
    /// Its family.
    pub family: Family,
    /// A summary in one sentence.
    pub summary: &'static str,
    /// The switches that it has.
    pub switches: &'static [&'static SwitchInfo],
    /// The promise to a waiter, which depends on the switches. (A control breaks its promise.)
    fairness: fn(&Subject) -> Fairness,
    /// The run-time settings that it uses, which depend on the switches.
    settings: fn(&Subject) -> &'static [Setting],
    /// Whether several readers may hold it at the same time.
    pub is_rw: bool,
    /// Whether its waiters may give up.
    pub is_timed: bool,
    /// Its place in the list.
    index: usize,
}

/// A lock of the list: an algorithm, with the positions of its switches and its own settings.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Its name on the command line.
    pub name: &'static str,
    /// A summary in one sentence.
    pub summary: &'static str,
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// Its switches that are not in the recommended position.
    pub positions: &'static [Position],
    /// The run-time settings for which it has its own value, in place of the value for all locks.
    pub set: &'static [(Setting, u64)],
}

/// An operation on a lock whose type is chosen by name. Of the four functions, the most specific
/// one that the lock's capabilities permit is called.
pub trait LockVisitor<P: Platform>: Sized {
    /// The result of the operation.
    type Output;
    /// Runs the operation with lock type `L`.
    fn visit<L: RawTryLock>(self) -> Self::Output;
    /// Runs the operation with a lock whose waiters may give up.
    fn visit_timed<L: RawTimedLock<Platform = P>>(self) -> Self::Output {
        self.visit::<L>()
    }
    /// Runs the operation with a lock that has readers.
    fn visit_rw<L: RawRwLock>(self) -> Self::Output {
        self.visit::<L>()
    }
    /// Runs the operation with a lock that has readers, and whose waiters may give up.
    fn visit_timed_rw<L: RawTimedRwLock<Platform = P>>(self) -> Self::Output {
        self.visit_rw::<L>()
    }
}

/// All locks: each algorithm, followed by its presets. The locks that are meant to work come first,
/// in the order of the documentation.
pub const SUBJECTS: &[Subject] = &{
    let mut all = [Subject::of(&ALGORITHMS[0]); ALGORITHMS.len() + PRESETS.len()];
    let (mut filled, mut algorithm) = (0, 0);
    while algorithm < ALGORITHMS.len() {
        all[filled] = Subject::of(&ALGORITHMS[algorithm]);
        filled += 1;
        let mut preset = 0;
        while preset < PRESETS.len() {
            if is_same(PRESETS[preset].algorithm, ALGORITHMS[algorithm].name) {
                all[filled] = Subject {
                    name: PRESETS[preset].name,
                    summary: PRESETS[preset].summary,
                    positions: PRESETS[preset].positions,
                    ..Subject::of(&ALGORITHMS[algorithm])
                };
                filled += 1;
            }
            preset += 1;
        }
        algorithm += 1;
    }
    assert!(filled == all.len(), "a preset of no algorithm");
    all
};

impl Subject {
    /// The algorithm with all switches in the recommended position.
    const fn of(algorithm: &'static Algorithm) -> Self {
        Self { name: algorithm.name, summary: algorithm.summary, algorithm, positions: &[], set: &[] }
    }

    /// The lock with this name.
    pub fn named(name: &str) -> Option<&'static Subject> {
        SUBJECTS.iter().find(|subject| subject.name == name)
    }

    /// The locks that are meant to work.
    pub fn working() -> impl Iterator<Item = &'static Subject> {
        SUBJECTS.iter().filter(|subject| subject.family() != Family::Control)
    }

    /// Its origin, and whether it is meant to work.
    pub const fn family(&self) -> Family {
        self.algorithm.family
    }

    /// Whether several readers may hold it at the same time.
    pub const fn is_rw(&self) -> bool {
        self.algorithm.is_rw
    }

    /// Whether its waiters may give up.
    pub const fn is_timed(&self) -> bool {
        self.algorithm.is_timed
    }

    /// The promise to a waiter. (A control breaks its promise.)
    pub fn fairness(&self) -> Fairness {
        (self.algorithm.fairness)(self)
    }

    /// The run-time settings that it uses.
    pub fn settings(&self) -> &'static [Setting] {
        (self.algorithm.settings)(self)
    }

    /// Whether the switch with this key is in this position.
    ///
    /// # Panics
    ///
    /// If the algorithm has no such switch, or the switch has no such position.
    pub fn is_switched(&self, key: &str, to: &str) -> bool {
        let switch = self.algorithm.switch(key).expect("it has this switch");
        Some(self.value(switch)) == switch.values.parse(to)
    }

    /// The value of one of its switches.
    pub fn value(&self, switch: &SwitchInfo) -> u64 {
        let position = self.positions.iter().find(|position| position.switch.index == switch.index);
        position.map_or(switch.default, |position| position.value)
    }

    /// Returns `settings` with the lock's own values in it.
    pub fn settings_over(&self, mut settings: [u64; Setting::COUNT]) -> [u64; Setting::COUNT] {
        for &(setting, value) in self.set {
            settings[setting as usize] = value;
        }
        settings
    }

    /// The values that a platform instance must store for the switches.
    ///
    /// # Panics
    ///
    /// If the value of a switch is not one of its permitted values.
    pub fn switches(&self) -> [u64; SWITCHES_MAX] {
        let mut switches = [0; SWITCHES_MAX];
        for position in self.positions {
            let Position { switch, value } = *position;
            assert!(switch.values.contain(value), "{} cannot be {value}", switch.key);
            let (index, stored) = position.stored();
            switches[index] = stored;
        }
        switches
    }
}

impl Algorithm {
    /// The switch with this key.
    pub const fn switch(&self, key: &str) -> Option<&'static SwitchInfo> {
        crate::tuning::named(self.switches, key)
    }
}

#[cfg(test)]
mod tests;
