//! Phases: who takes part at present, and what writers do between acquisitions.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Length of a phase that is not scant. Short enough for a dozen in the shortest run, and long
/// enough for a writer that has to wait for a processor to take part.
pub const PHASE: Duration = Duration::from_millis(50);

/// What a writer does between two acquisitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Think {
    /// Nothing.
    Not,
    /// It keeps its processor busy, for a random time of at most 2^`shift` ns.
    Busy {
        /// See above.
        shift: u8,
    },
    /// It sleeps once in [`SLEEP_ONE_IN`] times, for a random time of at most 2^`shift` ns. So
    /// queues run empty where processors are few or taken by others, and waking preempts others
    /// at any place.
    Sleep {
        /// See above.
        shift: u8,
    },
}

/// See [`Think::Sleep`].
pub const SLEEP_ONE_IN: u32 = 4;

/// How many take part in a scant phase, if there are so many.
///
/// The fewest that a lock can sort: a head, a waiter to be moved, and one behind it. Two of them
/// thinking for a section's length or less, the queue runs empty again and again while the moved
/// one is left, and whoever comes next races with the head for the tail. With four, or longer
/// thinking, that is rarer by an order where other programs take the processors.
const SCANT: u16 = 3;
/// Limits of `shift` in a scant phase.
const SCANT_SHIFTS: Range<u32> = 0..9;
/// One phase in so many is scant.
const SCANT_ONE_IN: u32 = 4;
/// Length of a scant phase. Longer, as all who wait from the phase before must have had their turn
/// first.
const SCANT_PHASE: Duration = Duration::from_millis(150);
/// Limits of `shift`: from a section's length to that of many hand-overs.
const BUSY_SHIFTS: Range<u32> = 7..15;
/// From what a timer can do to a few rounds of many writers.
const SLEEP_SHIFTS: Range<u32> = 14..20;

fn pick(shifts: Range<u32>, below: &mut impl FnMut(u32) -> u32) -> u8 {
    (shifts.start + below(shifts.len() as u32)) as u8
}

/// One phase. Writers are numbered from 0 to one less than [`THREADS_MAX`](super::WRITERS_MAX).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// The first writer that takes part; the others follow it, round the last.
    first: u16,
    /// How many do.
    active: u16,
    /// What they do between acquisitions.
    think: Think,
}

const _: () = assert!(super::THREADS_MAX <= u16::MAX as usize);

impl Phase {
    /// Everybody takes part, without thinking.
    pub fn full(writers: usize) -> Self {
        Self { first: 0, active: writers as u16, think: Think::Not }
    }

    /// Nobody takes part.
    pub fn pause() -> Self {
        Self { first: 0, active: 0, think: Think::Not }
    }

    /// Scant, or else everybody or only some, each with any way to think; and for how long.
    pub fn draw(writers: usize, mut random: impl FnMut() -> u32) -> (Self, Duration) {
        let mut below = |n: u32| random() % n;
        let mut phase = Self::full(writers);
        if writers < 2 {
            return (phase, PHASE);
        }
        if below(SCANT_ONE_IN) == 0 {
            phase.active = phase.active.min(SCANT);
            phase.first = below(writers as u32) as u16;
            phase.think = Think::Busy { shift: pick(SCANT_SHIFTS, &mut below) };
            return (phase, SCANT_PHASE);
        }
        if below(2) == 0 {
            // Small numbers as often as large ones: with each, the queue has another length.
            let doublings = below(writers.ilog2() + 1);
            let extra = (1 << doublings) - 1 + below(1 << doublings);
            phase.active = (2 + extra).min(writers as u32) as u16;
            phase.first = below(writers as u32) as u16;
        }
        phase.think = match below(3) {
            0 => Think::Not,
            1 => Think::Busy { shift: pick(BUSY_SHIFTS, &mut below) },
            _ => Think::Sleep { shift: pick(SLEEP_SHIFTS, &mut below) },
        };
        (phase, PHASE)
    }

    fn takes_part(self, writer: usize, writers: usize) -> bool {
        (writer + writers - usize::from(self.first)) % writers < usize::from(self.active)
    }

    fn pack(self) -> u64 {
        let (kind, shift) = match self.think {
            Think::Not => (0, 0),
            Think::Busy { shift } => (1, shift),
            Think::Sleep { shift } => (2, shift),
        };
        let [first_low, first_high] = self.first.to_le_bytes();
        let [active_low, active_high] = self.active.to_le_bytes();
        u64::from_le_bytes([kind, shift, first_low, first_high, active_low, active_high, 0, 0])
    }

    fn unpack(word: u64) -> Self {
        let [kind, shift, first_low, first_high, active_low, active_high, ..] = word.to_le_bytes();
        Self {
            first: u16::from_le_bytes([first_low, first_high]),
            active: u16::from_le_bytes([active_low, active_high]),
            think: match kind {
                0 => Think::Not,
                1 => Think::Busy { shift },
                _ => Think::Sleep { shift },
            },
        }
    }
}

/// What [`Pace::next`] tells a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Think, then acquire again.
    Go(Think),
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
        phase.takes_part(writer, self.writers).then_some(Next::Go(phase.think))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_pack_and_differ_from_stopped() {
        for think in [Think::Not, Think::Busy { shift: 7 }, Think::Sleep { shift: 19 }] {
            let phase = Phase { first: 0x3fff, active: 0x3f80, think };
            assert_eq!(Phase::unpack(phase.pack()), phase);
            assert_ne!(phase.pack(), STOPPED);
        }
    }

    #[test]
    fn as_many_take_part_as_the_phase_says() {
        for first in 0..5 {
            let phase = Phase { first, active: 3, think: Think::Not };
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
            let (phases, lengths): (Vec<_>, Vec<_>) =
                (0..200).map(|_| Phase::draw(writers, &mut random)).unzip();
            assert!(phases.iter().all(|p| (1..=writers).contains(&p.active.into())));
            assert!(phases.contains(&Phase::full(writers)));
            assert_eq!(phases.iter().any(|p| p.think != Think::Not), writers > 1);
            assert_eq!(phases.iter().any(|p| usize::from(p.active) < writers), writers > 2);
            assert_eq!(lengths.contains(&SCANT_PHASE), writers > 1);
        }
    }

    #[test]
    fn writers_pause_until_told() {
        let pace = Pace::new(2);
        std::thread::scope(|scope| {
            let paused = scope.spawn(|| pace.next(1));
            pace.set(Phase { first: 0, active: 1, think: Think::Busy { shift: 9 } });
            assert_eq!(pace.next(0), Next::Go(Think::Busy { shift: 9 }));
            pace.stop();
            assert_eq!(paused.join().unwrap(), Next::Stop);
        });
    }
}
