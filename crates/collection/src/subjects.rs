//! The one list of locks. It feeds the model checkers, the torture test, the simulator and the
//! benchmark: a lock that is listed here is in all of them.
//!
//! A lock of the list is an algorithm (`algorithms.rs`) with its switches in some position: all in
//! the recommended one, or as a preset says (`presets.rs`), or as a user asks for. The type of an
//! algorithm has its tuning from the platform instance ([`Switched`](crate::tuning::Switched)), so
//! that it is compiled once.

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

/// Where a lock comes from, and whether it means to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// From the literature.
    Classic,
    /// From the Linux kernel.
    Linux,
    /// From the FreeBSD kernel.
    FreeBsd,
    /// This project's own.
    Near,
    /// Broken on purpose: must be named to be used, and must then be found out.
    Control,
}

/// What a lock promises to a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fairness {
    /// Nothing: others may overtake it for ever.
    Unbounded,
    /// First come, first served.
    Fifo,
    /// Overtaken only for a threshold in ns at a time (0: for ever), by waiters of one NUMA node; a
    /// few times where there are several others.
    Threshold(Setting),
    /// Overtaken only for so many hand-overs at a time, within one NUMA node: as many times as
    /// there are others.
    PassLimit(Setting),
}

impl Fairness {
    /// In a word or two.
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
    /// Its name on the command line: that of the lock with all switches in the recommended
    /// position.
    pub name: &'static str,
    /// Its family.
    pub family: Family,
    /// One sentence.
    pub summary: &'static str,
    /// The switches that it asks for.
    pub switches: &'static [&'static SwitchInfo],
    /// What it promises to a waiter, as it is switched. (What a control promises, it breaks.)
    fairness: fn(&Subject) -> Fairness,
    /// The run-time settings that it obeys, as it is switched.
    settings: fn(&Subject) -> &'static [Setting],
    /// Whether readers may hold it together.
    pub is_rw: bool,
    /// Whether its waiters may give up.
    pub is_timed: bool,
    /// Its place in the list.
    index: usize,
}

/// A lock of the list: an algorithm, and how it is switched and set.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Its name on the command line.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// Its switches that are not in the recommended position.
    pub positions: &'static [Position],
    /// Its run-time settings that are not at what is set for all locks.
    pub set: &'static [(Setting, u64)],
}

/// Something to be done with a lock whose type is chosen by name. Of the four functions the one is
/// called that says the most of what the lock can do.
pub trait LockVisitor<P: Platform>: Sized {
    /// What it comes to.
    type Output;
    /// Does it with lock type `L`.
    fn visit<L: RawTryLock>(self) -> Self::Output;
    /// Does it with a lock whose waiters may give up.
    fn visit_timed<L: RawTimedLock<Platform = P>>(self) -> Self::Output {
        self.visit::<L>()
    }
    /// Does it with a lock that has readers.
    fn visit_rw<L: RawRwLock>(self) -> Self::Output {
        self.visit::<L>()
    }
    /// Does it with a lock that has readers, and whose waiters may give up.
    fn visit_timed_rw<L: RawTimedRwLock<Platform = P>>(self) -> Self::Output {
        self.visit_rw::<L>()
    }
}

/// All locks: each algorithm, then its presets; those that mean to work first, in the order of the
/// documentation.
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
    /// An algorithm as it is recommended.
    const fn of(algorithm: &'static Algorithm) -> Self {
        Self { name: algorithm.name, summary: algorithm.summary, algorithm, positions: &[], set: &[] }
    }

    /// The lock of this name.
    pub fn named(name: &str) -> Option<&'static Subject> {
        SUBJECTS.iter().find(|subject| subject.name == name)
    }

    /// The locks that mean to work.
    pub fn working() -> impl Iterator<Item = &'static Subject> {
        SUBJECTS.iter().filter(|subject| subject.family() != Family::Control)
    }

    /// Where it comes from.
    pub const fn family(&self) -> Family {
        self.algorithm.family
    }

    /// Whether readers may hold it together.
    pub const fn is_rw(&self) -> bool {
        self.algorithm.is_rw
    }

    /// Whether its waiters may give up.
    pub const fn is_timed(&self) -> bool {
        self.algorithm.is_timed
    }

    /// What it promises to a waiter. (What a control promises, it breaks.)
    pub fn fairness(&self) -> Fairness {
        (self.algorithm.fairness)(self)
    }

    /// The run-time settings that it obeys.
    pub fn settings(&self) -> &'static [Setting] {
        (self.algorithm.settings)(self)
    }

    /// Whether the switch of this key is in this position.
    ///
    /// # Panics
    ///
    /// If the algorithm has no such switch, or the switch no such position.
    pub fn is_switched(&self, key: &str, to: &str) -> bool {
        let switch = self.algorithm.switch(key).expect("it has this switch");
        Some(self.value(switch)) == switch.values.parse(to)
    }

    /// The value of one of its switches.
    pub fn value(&self, switch: &SwitchInfo) -> u64 {
        let position = self.positions.iter().find(|position| position.switch.index == switch.index);
        position.map_or(switch.default, |position| position.value)
    }

    /// These values of all settings, but for those that the lock has set for itself.
    pub fn settings_over(&self, mut settings: [u64; Setting::COUNT]) -> [u64; Setting::COUNT] {
        for &(setting, value) in self.set {
            settings[setting as usize] = value;
        }
        settings
    }

    /// What a platform instance is to store for its switches.
    ///
    /// # Panics
    ///
    /// If a switch has a value that it cannot have.
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
    /// Its switch of this key.
    pub const fn switch(&self, key: &str) -> Option<&'static SwitchInfo> {
        crate::tuning::named(self.switches, key)
    }
}

#[cfg(test)]
mod tests;
