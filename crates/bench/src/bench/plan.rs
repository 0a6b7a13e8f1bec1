//! The plan of a benchmark.

use std::time::Duration;

use nearlock_core::settings::Setting;

use super::candidate::Candidate;
use super::helper::Helper;
use super::machine::TestBed;
use super::mode::{Mode, Point};
use super::{BenchError, gates, two_cpus};
use crate::torture::Waiting;

/// A situation, and the locks to measure in it.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The operation.
    pub mode: Mode,
    /// The situation.
    pub point: Point,
    /// The locks, which all [suit](Candidate::suits) the mode. Peers among them have been
    /// [obtained](super::Peer::obtain).
    pub locks: Vec<Candidate>,
    /// The window, and the number of rounds, if they are not those of the plan.
    pub own: Option<(Duration, usize)>,
}

/// The plan of a benchmark.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The situations, one after the other.
    pub cells: Vec<Cell>,
    /// Baselines. All locks are compared with each of them, in the situations in which the baseline
    /// is measured.
    pub baselines: Vec<Candidate>,
    /// Number of rounds, 1 or more.
    pub rounds: usize,
    /// Length of the counted part of a run. With many threads the whole run takes about 1.6 times
    /// as long.
    pub window: Duration,
    /// How threads wait.
    pub waiting: Waiting,
    /// How to start processes that help.
    pub helper: Helper,
    /// Values of the locks' settings, indexed by [`Setting`].
    pub settings: [u64; Setting::COUNT],
}

impl Plan {
    /// Number of runs of a lock.
    pub fn runs(&self) -> usize {
        self.cells.iter().map(|cell| self.rounds_of(cell) * cell.locks.len()).sum()
    }

    /// Approximate duration, if no lock takes long to end a run.
    pub fn takes(&self) -> Duration {
        let of_cell = |cell: &Cell| self.run_of(cell) * cell.locks.len() as u32 * self.rounds_of(cell) as u32;
        self.cells.iter().map(of_cell).sum()
    }

    /// Number of rounds of a situation.
    pub(super) fn rounds_of(&self, cell: &Cell) -> usize {
        cell.own.map_or(self.rounds, |(_, rounds)| rounds.min(self.rounds))
    }

    /// The window of a situation.
    pub(super) fn window_of(&self, cell: &Cell) -> Duration {
        cell.own.map_or(self.window, |(window, _)| window.max(self.window))
    }

    fn run_of(&self, cell: &Cell) -> Duration {
        /// Time to begin and to end a run, and the same for each thread: observed with two CPUs.
        const RUN: Duration = Duration::from_millis(1);
        const THREAD: Duration = Duration::from_micros(150);
        /// Time to make and to check a million locks.
        const MANY: Duration = Duration::from_millis(30);
        let window = self.window_of(cell);
        match cell.mode {
            Mode::Uncontended | Mode::Stores(_) | Mode::Handover | Mode::Wake(_) | Mode::Start => {
                window + RUN
            }
            mode => {
                let setup = if matches!(mode, Mode::Many(_)) { MANY } else { RUN };
                super::throughput::takes(window) + setup + THREAD * cell.point.threads as u32
            }
        }
    }

    /// Chooses the window so that the plan takes about `limit` at most. It is the longest suitable
    /// one from `least` to `most`, in whole ms, or `least` if none is short enough.
    pub fn within(mut self, limit: Duration, least: Duration, most: Duration) -> Self {
        self.window = most;
        while self.takes() > limit && self.window > least {
            self.window -= Duration::from_millis(1);
        }
        self
    }

    /// Gives situations with a gate of their own longer windows.
    pub fn for_gates(mut self) -> Self {
        for cell in self.cells.iter_mut().filter(|cell| gates::has_own(cell.mode, cell.point)) {
            let (window, rounds) = cell.own.unwrap_or((Duration::ZERO, usize::MAX));
            cell.own = Some((window.max(gates::window(cell.point)), rounds));
        }
        self
    }

    /// Checks that this machine can run the plan.
    ///
    /// # Errors
    ///
    /// If the machine has too few CPUs for a mode.
    pub fn suits(&self, machine: &TestBed) -> Result<(), BenchError> {
        let need_two = self.cells.iter().any(|cell| cell.mode.needs_two_cpus());
        if need_two { two_cpus(machine).map(drop) } else { Ok(()) }
    }
}
