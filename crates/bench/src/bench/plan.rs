//! What is to be measured.

use std::time::Duration;

use nearlock_core::settings::Setting;

use super::candidate::Candidate;
use super::machine::TestBed;
use super::mode::{Mode, Point};
use super::{BenchError, two_cpus};
use crate::torture::Waiting;

/// A situation, and the locks that are measured in it.
#[derive(Clone, Debug)]
pub struct Cell {
    /// What is measured.
    pub mode: Mode,
    /// In which situation.
    pub point: Point,
    /// Of which locks; peers among them have been [obtained](super::Peer::obtain).
    pub locks: Vec<Candidate>,
}

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The situations, one after the other.
    pub cells: Vec<Cell>,
    /// Locks that all are compared with, with one after the other, in the situations in which they
    /// are measured.
    pub baselines: Vec<Candidate>,
    /// How often, 1 or more.
    pub rounds: usize,
    /// For how long a run counts. It takes about 1.6 times as long where there are many threads.
    pub window: Duration,
    /// How waiting threads pass the time.
    pub waiting: Waiting,
    /// Values of the locks' settings, indexed by [`Setting`].
    pub settings: [u64; Setting::COUNT],
}

impl Plan {
    /// How many runs of a lock it takes.
    pub fn runs(&self) -> usize {
        self.rounds * self.cells.iter().map(|cell| cell.locks.len()).sum::<usize>()
    }

    /// How long it takes, about, if no lock takes long to end a run.
    pub fn takes(&self) -> Duration {
        let of_cell = |cell: &Cell| self.run_of(cell) * cell.locks.len() as u32;
        self.cells.iter().map(of_cell).sum::<Duration>() * self.rounds as u32
    }

    fn run_of(&self, cell: &Cell) -> Duration {
        /// To begin a run and to end it, with all of its threads: seen with two CPUs.
        const RUN: Duration = Duration::from_millis(1);
        const THREAD: Duration = Duration::from_micros(150);
        match cell.mode {
            Mode::Uncontended | Mode::Handover => self.window + RUN,
            _ => super::throughput::takes(self.window) + RUN + THREAD * cell.point.threads as u32,
        }
    }

    /// The same with a window such that it takes no longer than this, about: the longest of those
    /// from `least` to `most`, in whole ms; the least if none is short enough.
    pub fn within(mut self, limit: Duration, least: Duration, most: Duration) -> Self {
        self.window = most;
        while self.takes() > limit && self.window > least {
            self.window -= Duration::from_millis(1);
        }
        self
    }

    /// Whether this machine can do it at all.
    ///
    /// # Errors
    ///
    /// If it has too few CPUs for a mode.
    pub fn suits(&self, machine: &TestBed) -> Result<(), BenchError> {
        let hands_over = self.cells.iter().any(|cell| cell.mode == Mode::Handover);
        if hands_over { two_cpus(machine).map(drop) } else { Ok(()) }
    }
}
