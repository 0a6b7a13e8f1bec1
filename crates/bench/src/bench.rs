//! The native benchmark: locks against each other on this machine.
//!
//! Three questions, kept apart ([`Mode`]): what a lock costs when nobody else wants it, how long it
//! takes from one thread to another, and how many sections, or calls, many threads get through:
//! with a processor each, wherever the scheduler puts them, and with more threads than processors.
//! Locks are compared within a *round*, in which each runs once, in an order that is drawn anew; a
//! lock's *ratio* is how many times as fast it is as the baseline in the same round. What disturbs
//! a machine for longer than a round disturbs all locks alike, so that ratios are worth more than
//! nanoseconds. Reported are medians over rounds, and quartiles of the ratio.
//!
//! | file | what |
//! |---|---|
//! | `mode.rs`, `plan.rs`, `rows.rs` | situations, what is asked for, and what it comes to |
//! | `candidate.rs`, `peers.rs` | what can be measured: the locks of the list, and those of others |
//! | `run.rs`, `sample.rs` | one run of one lock, and what it comes to |
//! | `throughput.rs`, `uncontended.rs`, `handover.rs`, `calls.rs` | the same in each mode |
//! | `stepping.rs`, `atomics.rs` | instructions and atomic read-modify-writes, counted: natively, and in the simulator |
//! | `summary.rs` | means over situations |
//! | `crew.rs`, `wait.rs` | threads that begin together, and that a run ends in time |
//! | `machine.rs` | the machine: what it is, CPUs, the cost of the clock, the length of work |
//! | `statistics.rs` | quartiles, Jain's index, histograms of waits |

mod atomics;
mod calls;
mod candidate;
mod crew;
mod handover;
mod machine;
mod mode;
mod peers;
mod plan;
mod rows;
mod run;
mod sample;
pub(crate) mod statistics;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod stepping;
mod summary;
mod throughput;
mod uncontended;
mod wait;

use std::time::Duration;

use nearlock_core::settings::Setting;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub use candidate::Candidate;
pub(crate) use machine::pin;
pub use machine::{Calibration, TestBed};
pub use mode::{Grid, HANDOVER_SECTION_NS, Mode, Point, THREADS_MAX};
pub use nearlock_workload::will_it_scale::Calls;
pub use peers::{MissingPeer, PEERS, Peer, Waiters};
pub use plan::{Cell, Plan};
pub use rows::{Failed, Report, Row, Spread};
use run::Run;
pub(crate) use statistics::{Quartiles, median};

/// Something that a working lock does not do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Failure {
    /// The counter that every section increments is too small.
    #[error("exclusion violated: {lost} of {total} increments under the lock were lost")]
    LostUpdates {
        /// How many increments.
        lost: u64,
        /// How many there were.
        total: u64,
    },
    /// A reader saw what a writer does.
    #[error("exclusion violated: {times} readers saw the counter change while they held the lock")]
    TornReads {
        /// How often.
        times: u64,
    },
    /// Something that the lock protects was not as its holder had left it.
    #[error("exclusion violated: {times} times somebody else had changed what the lock protects")]
    Faults {
        /// How often.
        times: u64,
    },
    /// The lock was acquired while another thread had it.
    #[error("exclusion violated: {times} times the lock was acquired before it was released")]
    Overlaps {
        /// How often.
        times: u64,
    },
    /// Nobody gets the lock.
    #[error("hang: no acquisition for {idle:.1?}, and {waiting} threads have not ended")]
    Hang {
        /// For how long.
        idle: Duration,
        /// How many threads are left.
        waiting: usize,
    },
}

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// No more threads.
    #[error("cannot start {threads} threads: {source}; try fewer with --threads")]
    Spawn {
        /// How many were asked for.
        threads: usize,
        /// Why.
        source: std::io::Error,
    },
    /// No second CPU.
    #[error("a hand-over is from one CPU to another, and this process may use one only: give it two")]
    OneCpu,
    /// A thread cannot be kept on its CPU.
    #[error("cannot keep a thread on CPU {cpu}: {source}")]
    Pin {
        /// The CPU.
        cpu: u32,
        /// Why.
        source: std::io::Error,
    },
    /// A setting has a value that it cannot have.
    #[error(transparent)]
    Setting(#[from] nearlock_os::OutOfRange),
}

/// Measures what is planned on this machine; `done` is called after each run of a lock. Sets the
/// process' lock settings.
///
/// # Errors
///
/// If threads cannot be started or kept on their CPUs, or a setting is out of its limits.
pub fn run(
    plan: &Plan,
    machine: &TestBed,
    calibration: &Calibration,
    mut done: impl FnMut(),
) -> Result<Report, BenchError> {
    for &setting in Setting::ALL {
        nearlock_os::set_setting(setting, plan.settings[setting as usize])?;
    }
    let mut report = Report::default();
    for cell in &plan.cells {
        let mut order = Order::new(cell.locks.len());
        // Of each lock; `None` once it has failed.
        let mut samples = vec![Some(Vec::with_capacity(plan.rounds)); cell.locks.len()];
        for _round in 0..plan.rounds {
            for &index in order.draw() {
                if let Some(of_lock) = &mut samples[index] {
                    let lock = cell.locks[index];
                    match lock.measure(Run {
                        window: plan.window,
                        waiting: plan.waiting,
                        machine,
                        calibration,
                        mode: cell.mode,
                        point: cell.point,
                    })? {
                        Ok(sample) => of_lock.push(sample),
                        Err(failure) => {
                            let is_hang = matches!(failure, Failure::Hang { .. });
                            report.failed.push(Failed { lock: lock.name(), point: cell.point, failure });
                            if is_hang {
                                return Ok(report);
                            }
                            samples[index] = None;
                        }
                    }
                }
                done();
            }
        }
        report.add(plan, cell, &samples);
    }
    report.rows.extend(summary::of(&report.rows, plan));
    Ok(report)
}

/// In which order the locks run in a round: each time another, and the same in each process.
pub(crate) struct Order {
    indices: Vec<usize>,
    rng: Xoshiro256PlusPlus,
}

impl Order {
    pub fn new(locks: usize) -> Self {
        Self { indices: (0..locks).collect(), rng: Xoshiro256PlusPlus::seed_from_u64(1) }
    }

    pub fn draw(&mut self) -> &[usize] {
        // Fisher and Yates.
        for last in (1..self.indices.len()).rev() {
            let other = self.rng.next_u64() % (last as u64 + 1);
            self.indices.swap(last, other as usize);
        }
        &self.indices
    }
}

/// The two CPUs of a hand-over.
fn two_cpus(machine: &TestBed) -> Result<[u32; mode::HANDOVER_THREADS], BenchError> {
    machine.allowed.first_chunk().copied().ok_or(BenchError::OneCpu)
}

#[cfg(test)]
mod tests;
