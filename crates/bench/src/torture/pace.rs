//! Phases: the threads that take part at present, and their think time between acquisitions.
//!
//! A "writer" in this module is any thread of the run, including readers.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Length of a phase that is not scant. It is short enough for a dozen phases in the shortest run,
/// and long enough for a writer that has to wait for a CPU.
pub const PHASE: Duration = Duration::from_millis(50);

/// What a writer does between two acquisitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Think {
    /// Nothing.
    Not,
    /// It keeps its CPU busy for a random time of at most 2^`shift` ns.
    Busy {
        /// The exponent of the longest time.
        shift: u8,
    },
    /// It sleeps once in [`SLEEP_ONE_IN`] times, for a random time of at most 2^`shift` ns. So
    /// queues run empty even if there are few CPUs or other programs use them. A wake-up can
    /// preempt another thread at any place.
    Sleep {
        /// The exponent of the longest time.
        shift: u8,
    },
}

/// See [`Think::Sleep`].
pub const SLEEP_ONE_IN: u32 = 4;

/// Number of writers in a scant phase, if there are that many.
///
/// This is the smallest number that a lock can sort: a queue head, a waiter to be moved, and a
/// waiter behind it. If two of them think for a section's length or less, the queue often runs
/// empty while the moved waiter remains. The next thread to arrive then races with the head for the
/// tail. With four writers, or with longer think times, that is rarer by an order of magnitude if
/// other programs use the CPUs.
const SCANT: u16 = 3;
/// Limits of `shift` in a scant phase.
const SCANT_SHIFTS: Range<u32> = 0..9;
/// One phase in this many is scant.
const SCANT_ONE_IN: u32 = 4;
/// Length of a scant phase. It is longer, because all waiters of the previous phase must get the
/// lock first.
const SCANT_PHASE: Duration = Duration::from_millis(150);
/// Limits of `shift`: from a section's length to the length of many hand-overs.
const BUSY_SHIFTS: Range<u32> = 7..15;
/// Limits of `shift`: from a timer's resolution to a few rounds of many writers.
const SLEEP_SHIFTS: Range<u32> = 14..20;

fn pick(shifts: Range<u32>, below: &mut impl FnMut(u32) -> u32) -> u8 {
    (shifts.start + below(shifts.len() as u32)) as u8
}

/// One phase. Writers are numbered from 0 to [`THREADS_MAX`](super::THREADS_MAX) - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// The first writer that takes part. The others follow it, with wrap-around after the last.
    first: u16,
    /// Number of writers that take part.
    active: u16,
    /// What they do between acquisitions.
    think: Think,
}

const _: () = assert!(super::THREADS_MAX <= u16::MAX as usize);

impl Phase {
    /// All writers take part, without think time.
    pub fn full(writers: usize) -> Self {
        Self { first: 0, active: writers as u16, think: Think::Not }
    }

    /// No writer takes part.
    pub fn pause() -> Self {
        Self { first: 0, active: 0, think: Think::Not }
    }

    /// Draws a phase and its length. The phase is scant, or it has all or some of the writers with
    /// any kind of think time.
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
            // Small numbers are as likely as large ones, since each number gives another queue
            // length.
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

/// Result of [`Pace::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Think, then lock again.
    Go(Think),
    /// The run is over.
    Stop,
}

/// A value of `phase` that no phase has.
const STOPPED: u64 = u64::MAX;

/// The current phase. All writers check it between two acquisitions.
pub struct Pace {
    writers: usize,
    /// A packed [`Phase`], or [`STOPPED`]. Changed only while `gate` is held.
    phase: AtomicU64,
    gate: Mutex<()>,
    changed: Condvar,
}

impl Pace {
    /// A pause, until another phase is [`set`](Self::set).
    pub fn new(writers: usize) -> Self {
        Self {
            writers,
            phase: AtomicU64::new(Phase::pause().pack()),
            gate: Mutex::new(()),
            changed: Condvar::new(),
        }
    }

    /// Begins a new phase.
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

    /// The writer's next step. Waits while the writer does not take part.
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
        // Relaxed: no other memory depends on the phase.
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
    fn every_kind_is_drawn_and_some_writer_always_takes_part() {
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
