//! Phases: who takes part at present, and how long writers think between acquisitions.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Length of a phase. Short enough for a few dozen in the shortest run, and long enough for a writer that
/// has to wait for a processor to take part.
pub const PHASE: Duration = Duration::from_millis(50);

/// Between two acquisitions a writer thinks for at most 2^8 to 2^18 ns: from a section's length to that of
/// many hand-overs.
const THINK_SHIFTS: std::ops::RangeInclusive<u32> = 8..=18;

/// One phase. Writers are numbered from 0 to one less than [`WRITERS_MAX`](super::WRITERS_MAX).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// The first writer that takes part; the others follow it, round the last.
    first: u16,
    /// How many do.
    active: u16,
    /// How long they think at most, in ns.
    think_ns_max: u32,
}

const _: () = assert!(super::WRITERS_MAX <= u16::MAX as usize);

impl Phase {
    /// Everybody takes part, without thinking.
    pub fn full(writers: usize) -> Self {
        Self { first: 0, active: writers as u16, think_ns_max: 0 }
    }

    /// Nobody takes part.
    pub fn pause() -> Self {
        Self { first: 0, active: 0, think_ns_max: 0 }
    }

    /// One of three kinds: full; everybody, thinking; or only some, thinking or not.
    pub fn draw(writers: usize, mut random: impl FnMut() -> u32) -> Self {
        let mut below = |n: u32| random() % n;
        let kind = below(4);
        let (shifts_min, shifts_max) = (*THINK_SHIFTS.start(), *THINK_SHIFTS.end());
        let think_ns_max = 1 << (shifts_min + below(shifts_max - shifts_min + 1));
        let full = Self::full(writers);
        if kind <= 1 || writers < 2 {
            full
        } else if kind == 2 {
            Self { think_ns_max, ..full }
        } else {
            Self {
                first: below(writers as u32) as u16,
                active: 2 + below(writers as u32 - 1) as u16,
                think_ns_max: if below(2) == 0 { 0 } else { think_ns_max },
            }
        }
    }

    fn takes_part(self, writer: usize, writers: usize) -> bool {
        (writer + writers - usize::from(self.first)) % writers < usize::from(self.active)
    }

    fn pack(self) -> u64 {
        u64::from(self.first) << 48 | u64::from(self.active) << 32 | u64::from(self.think_ns_max)
    }

    fn unpack(word: u64) -> Self {
        Self { first: (word >> 48) as u16, active: (word >> 32) as u16, think_ns_max: word as u32 }
    }
}

/// What [`Pace::next`] tells a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Think for at most so many ns, then acquire again.
    Go {
        /// How long.
        think_ns_max: u64,
    },
    /// The run is over.
    Stop,
}

/// A value of `phase` that no phase has.
const STOPPED: u64 = u64::MAX;

/// The present phase. All writers look at it between two acquisitions.
pub struct Pace {
    writers: usize,
    /// A [`Phase`], packed, or [`STOPPED`]. Changed with `gate` held.
    phase: AtomicU64,
    gate: Mutex<()>,
    changed: Condvar,
}

impl Pace {
    /// A pause, until something else is [`set`](Self::set).
    pub fn new(writers: usize) -> Self {
        Self {
            writers,
            phase: AtomicU64::new(Phase::pause().pack()),
            gate: Mutex::new(()),
            changed: Condvar::new(),
        }
    }

    /// Begins another phase.
    pub fn set(&self, phase: Phase) {
        self.change(phase.pack());
    }

    /// Ends the run.
    pub fn stop(&self) {
        self.change(STOPPED);
    }

    fn change(&self, word: u64) {
        let _gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        self.phase.store(word, Relaxed);
        self.changed.notify_all();
    }

    /// What a writer is to do next; waits while it does not take part.
    pub fn next(&self, writer: usize) -> Next {
        match self.look(writer) {
            Some(next) => next,
            None => self.wait(writer),
        }
    }

    #[cold]
    fn wait(&self, writer: usize) -> Next {
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(next) = self.look(writer) {
                return next;
            }
            gate = self.changed.wait(gate).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn look(&self, writer: usize) -> Option<Next> {
        // Relaxed: a phase says nothing about other memory.
        let word = self.phase.load(Relaxed);
        if word == STOPPED {
            return Some(Next::Stop);
        }
        let phase = Phase::unpack(word);
        let think_ns_max = u64::from(phase.think_ns_max);
        phase.takes_part(writer, self.writers).then_some(Next::Go { think_ns_max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_pack_and_differ_from_stopped() {
        let phase = Phase { first: 3, active: 16_000, think_ns_max: 1 << 18 };
        assert_eq!(Phase::unpack(phase.pack()), phase);
        assert_ne!(phase.pack(), STOPPED);
    }

    #[test]
    fn as_many_take_part_as_the_phase_says() {
        for first in 0..5 {
            let phase = Phase { first, active: 3, think_ns_max: 0 };
            assert_eq!((0..5).filter(|&writer| phase.takes_part(writer, 5)).count(), 3);
            assert!(phase.takes_part(usize::from(first), 5));
        }
        assert!(!Phase::pause().takes_part(0, 1));
    }

    #[test]
    fn every_kind_is_drawn_and_somebody_always_takes_part() {
        let mut state = 1u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8
        };
        for writers in [1, 2, 64] {
            let phases: Vec<_> = (0..200).map(|_| Phase::draw(writers, &mut random)).collect();
            assert!(phases.iter().all(|p| (1..=writers).contains(&p.active.into())));
            assert!(phases.contains(&Phase::full(writers)));
            assert_eq!(phases.iter().any(|p| p.think_ns_max > 0), writers > 1);
            assert_eq!(phases.iter().any(|p| usize::from(p.active) < writers), writers > 2);
        }
    }

    #[test]
    fn writers_pause_until_told() {
        let pace = Pace::new(2);
        std::thread::scope(|scope| {
            let paused = scope.spawn(|| pace.next(1));
            pace.set(Phase { first: 0, active: 1, think_ns_max: 5 });
            assert_eq!(pace.next(0), Next::Go { think_ns_max: 5 });
            pace.stop();
            assert_eq!(paused.join().unwrap(), Next::Stop);
        });
    }
}
