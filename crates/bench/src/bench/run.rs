//! One run of one lock.

use std::time::Duration;

use nearlock_collection::subjects::LockVisitor;
use nearlock_core::native::Wait;
use nearlock_core::raw::{RawLock, RawRwLock, RawTryLock};
use nearlock_os::Os;
use nearlock_workload::sections::Params;

use super::condvar::{CondvarCase, Kind, Place, WithCondvar};
use super::crew::Members;
use super::helper::Helper;
use super::machine::{Calibration, TestBed};
use super::mode::{Mode, Point};
use super::sample::Outcome;
use super::{
    away, beside, calls, condvar, handover, long, many, throughput, two_cpus, uncontended, wake, writer,
};
use crate::torture::Waiting;

/// One run of one candidate.
pub(super) struct Run<'a> {
    /// Length of the counted part.
    pub window: Duration,
    /// How threads wait.
    pub waiting: Waiting,
    pub machine: &'a TestBed,
    pub calibration: &'a Calibration,
    pub helper: &'a Helper,
    pub mode: Mode,
    pub point: Point,
}

impl<W: Wait> LockVisitor<Os<W>> for Run<'_> {
    type Output = Outcome;
    fn visit<L: RawTryLock>(self) -> Outcome {
        self.of::<W, L>()
    }
    fn visit_rw<L: RawRwLock>(self) -> Outcome {
        if self.has_readers() { self.of_mixed::<W, L>() } else { self.of::<W, L>() }
    }
}

impl Run<'_> {
    /// Whether some sections only read.
    pub fn has_readers(&self) -> bool {
        self.point.read_percent.is_some() || self.mode == Mode::Writer
    }

    /// Runs with this lock, whose waiters wait as `W` does.
    pub fn of<W: Wait, L: RawLock>(self) -> Outcome {
        let Self { window, machine, calibration, mode, point, .. } = self;
        let (section, think) =
            (calibration.work_length(point.section_ns), calibration.work_length(point.think_ns));
        match mode {
            Mode::Parallel | Mode::Free | Mode::Oversubscribed => {
                let params = Params { section, think, ..Params::default() };
                throughput::measure::<W, L>(self.crew(), params, window)
            }
            Mode::Calls(calls) => calls::measure::<W, L>(calls, self.crew(), (section, think), window),
            Mode::Long(case) => long::measure::<W, L>(case, window),
            Mode::Many(case) => many::measure::<W, L>(case, window),
            Mode::Away => away::measure::<W, L>(window),
            Mode::Wake(case) => wake::measure::<W, L>(case, calibration, window),
            Mode::Beside => beside::measure::<W, L>(self.helper, point.threads, (section, think), window),
            Mode::Start => unreachable!("it is measured by `Candidate::measure`"),
            Mode::Condvar(_) => unreachable!("it is measured by `of_condvar`"),
            Mode::Writer => unreachable!("it is measured by `of_mixed`, with locks that have readers"),
            Mode::Uncontended => Ok(Ok(uncontended::measure::<L>(window))),
            Mode::Stores(case) => Ok(Ok(uncontended::measure_stores::<L>(case, window))),
            Mode::Handover => {
                handover::measure::<W, L>(two_cpus(machine)?, section, calibration.clock_ns, window)
            }
        }
    }

    /// Runs with readers.
    pub fn of_mixed<W: Wait, L: RawRwLock>(self) -> Outcome {
        let Self { window, calibration, mode, point, .. } = self;
        let read_percent = point.read_percent.unwrap_or(0);
        let (section, think) =
            (calibration.work_length(point.section_ns), calibration.work_length(point.think_ns));
        match mode {
            Mode::Parallel | Mode::Free | Mode::Oversubscribed => {
                let params = Params { section, think, ..Params::default() };
                throughput::measure_mixed::<W, L>(self.crew(), params, read_percent, window)
            }
            Mode::Writer => {
                let params = Params { section, think, ..Params::default() };
                writer::measure::<W, L>(self.crew(), params, window)
            }
            Mode::Uncontended if read_percent == 100 => Ok(Ok(uncontended::measure_shared::<L>(window))),
            _ => self.of::<W, L>(),
        }
    }

    /// Runs a case of condition variables.
    pub fn of_condvar<W: Wait, L: WithCondvar>(self, case: &CondvarCase) -> Outcome {
        let allowed = &self.machine.allowed;
        let cpus = match case.kind {
            Kind::PingPong(_, Place::OneCpu) => Some([allowed[0]; 2]),
            Kind::PingPong(_, Place::TwoCpus) => Some(two_cpus(self.machine)?),
            _ => None,
        };
        let members = cpus.as_ref().map_or(Members::Anywhere(case.threads), |cpus| Members::On(cpus));
        condvar::measure::<W, L>(case, members, self.window)
    }

    /// The threads, and where they run.
    fn crew(&self) -> Members<'_> {
        let threads = self.point.threads;
        match self.mode {
            Mode::Parallel => Members::On(&self.machine.cores[..threads]),
            _ => Members::Anywhere(threads),
        }
    }
}
