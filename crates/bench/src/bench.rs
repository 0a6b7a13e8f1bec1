//! The native benchmark: locks compared on this machine.
//!
//! It answers separate questions ([`Mode`]):
//! - What does an uncontended lock cost?
//! - How long does a hand-over from one thread to another take?
//! - How many sections, or system calls, do many threads complete? They run with a CPU each,
//!   wherever the scheduler puts them, or with more threads than CPUs.
//! - What do threads exchange that wait for each other with a condition variable?
//! - How long does a writer wait among readers?
//! - What happens if a holder or a waiter sleeps, and if there are many locks?
//! - What does the first lock of a process cost, and what happens beside another process?
//!
//! Locks are compared within a *round*. Each lock runs once in a round, in an order that is drawn
//! at random for each round. A lock's *ratio* is its speed as a multiple of the baseline's speed in
//! the same round. A disturbance that lasts longer than a round affects all locks alike, so ratios
//! are more reliable than nanoseconds. The report has medians over rounds, and quartiles of the
//! ratio.
//!
//! | file | contents |
//! |---|---|
//! | `mode.rs`, `plan.rs`, `rows.rs` | situations, what is requested, and the resulting figures |
//! | `candidate.rs`, `peers.rs` | what can be measured: the locks of the list, and peers |
//! | `run.rs`, `sample.rs` | one run of one lock, and its result |
//! | `throughput.rs`, `uncontended.rs`, `handover.rs`, `calls.rs` | a run in each mode |
//! | `condvar.rs` | cases of condition variables |
//! | `long.rs`, `many.rs` | sections that wait, and many locks |
//! | `away.rs`, `wake.rs` | a holder that sleeps, and a waiter that sleeps |
//! | `writer.rs` | a writer among readers |
//! | `start.rs`, `beside.rs`, `helper.rs` | measurements that start processes |
//! | `stepping.rs`, `atomics.rs` | counts of instructions and atomic read-modify-writes |
//! | `summary.rs` | means over situations |
//! | `gates.rs` | what `near-mutex` and `near-rwlock` must reach |
//! | `crew.rs`, `wait.rs` | threads that start together, and the end of a run |
//! | `machine.rs` | the machine: description, CPUs, cost of the clock, calibrated work |
//! | `statistics.rs` | quartiles, Jain's index, histograms of waits |

mod atomics;
mod away;
mod beside;
mod calls;
mod candidate;
mod condvar;
mod crew;
mod gates;
mod handover;
mod helper;
mod long;
mod machine;
mod many;
mod mode;
mod peers;
mod plan;
mod rows;
mod run;
mod sample;
mod start;
pub(crate) mod statistics;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod stepping;
mod summary;
mod throughput;
mod uncontended;
mod wait;
mod wake;
mod writer;

use std::ops::ControlFlow;
use std::time::Duration;

use nearlock_core::settings::Setting;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub use beside::{BESIDE_THINK_NS, BESIDE_THREADS};
pub use candidate::Candidate;
pub use condvar::{CONDVAR_CASES, CondvarCase};
pub use gates::{Gate, GateCell, Verdict};
pub use helper::{Helper, compute};
pub use long::{LONG_CASES, LongCase};
pub(crate) use machine::pin;
pub use machine::{Calibration, TestBed};
pub use many::{MANY_CASES, ManyCase};
pub use mode::{Grid, HANDOVER_SECTION_NS, Mode, Point, RwGrid, THREADS_MAX};
pub use nearlock_workload::will_it_scale::Calls;
pub use peers::{MissingPeer, PEERS, Peer, Unfit, Waiters};
pub use plan::{Cell, Plan};
pub use rows::{Failed, Report, Row, Spread};
use run::Run;
use sample::Sample;
pub(crate) use statistics::{Quartiles, median};
pub use uncontended::{STORES_CASES, StoresCase};
pub use wake::{WAKE_CASES, WakeCase};
pub use writer::{WRITER_SECTION_NS, WRITER_THINK_NS, WRITER_THREADS};

/// Misbehaviour of a lock.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Failure {
    /// The counter that each section increments is too small.
    #[error("exclusion violated: {lost} of {total} increments under the lock were lost")]
    LostUpdates {
        /// Number of lost increments.
        lost: u64,
        /// Number of increments.
        total: u64,
    },
    /// A reader saw a writer's change.
    #[error("exclusion violated: {times} readers saw the counter change while they held the lock")]
    TornReads {
        /// Number of such readers.
        times: u64,
    },
    /// Messages of a queue are missing.
    #[error("messages lost: {sent} were sent, {received} received, and {left} are left")]
    LostMessages {
        /// Number of messages that were put in.
        sent: u64,
        /// Number of messages that were taken out.
        received: u64,
        /// Number of messages that are still in the queue.
        left: u64,
    },
    /// Another thread changed data that the lock protects, although it had to wait.
    #[error("exclusion violated: {times} times another thread had changed what the lock protects")]
    Faults {
        /// Number of such changes.
        times: u64,
    },
    /// A thread got the lock while another thread held it.
    #[error("exclusion violated: {times} times the lock was acquired before it was released")]
    Overlaps {
        /// Number of such acquisitions.
        times: u64,
    },
    /// No thread gets the lock.
    #[error("hang: no acquisition for {idle:.1?}, and {waiting} threads have not ended")]
    Hang {
        /// Time without an acquisition.
        idle: Duration,
        /// Number of threads that have not ended.
        waiting: usize,
    },
}

/// Reason why a measurement was not possible.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A thread could not be started.
    #[error("cannot start {threads} threads: {source}; try fewer with --threads")]
    Spawn {
        /// Number of requested threads.
        threads: usize,
        /// The system's error.
        source: std::io::Error,
    },
    /// Two threads need a CPU each.
    #[error("this needs two CPUs, and this process may use only one: allow it two")]
    OneCpu,
    /// A thread could not be pinned to its CPU.
    #[error("cannot keep a thread on CPU {cpu}: {source}")]
    Pin {
        /// The CPU.
        cpu: u32,
        /// The system's error.
        source: std::io::Error,
    },
    /// A process that helps could not be started, or failed.
    #[error("cannot start a process that helps the measurement: {0}")]
    Helper(std::io::Error),
    /// A setting is out of its limits.
    #[error(transparent)]
    Setting(#[from] nearlock_os::OutOfRange),
}

/// Runs `plan` on this machine, and calls `done` after each run of a lock. If `done` breaks, the
/// report has what was measured so far: of the last situation those rounds in which every lock ran.
/// Sets the lock settings of the process.
///
/// # Errors
///
/// If threads cannot be started or pinned to their CPUs, or if a setting is out of its limits.
pub fn run(
    plan: &Plan,
    machine: &TestBed,
    calibration: &Calibration,
    mut done: impl FnMut() -> ControlFlow<()>,
) -> Result<Report, BenchError> {
    for &setting in Setting::ALL {
        nearlock_os::set_setting(setting, plan.settings[setting as usize])?;
    }
    let mut report = Report::default();
    let mut gates = gates::Collected::new();
    for cell in &plan.cells {
        let mut order = Order::new(cell.locks.len());
        // The samples of each lock; `None` after a failure of the lock.
        let mut samples = vec![Some(Vec::with_capacity(plan.rounds)); cell.locks.len()];
        let mut rounds = 0;
        'rounds: for _round in 0..plan.rounds_of(cell) {
            for &index in order.draw() {
                if let Some(of_lock) = &mut samples[index] {
                    let lock = cell.locks[index];
                    match lock.measure(Run {
                        window: plan.window_of(cell),
                        waiting: plan.waiting,
                        machine,
                        calibration,
                        helper: &plan.helper,
                        mode: cell.mode,
                        point: cell.point,
                    })? {
                        Ok(sample) => of_lock.push(sample),
                        Err(failure) => {
                            let is_hang = matches!(failure, Failure::Hang { .. });
                            report.failed.push(Failed {
                                lock: lock.name(),
                                mode: cell.mode,
                                point: cell.point,
                                failure,
                            });
                            if is_hang {
                                return Ok(report);
                            }
                            samples[index] = None;
                        }
                    }
                }
                if done().is_break() {
                    report.is_partial = true;
                    break 'rounds;
                }
            }
            rounds += 1;
        }
        for samples in samples.iter_mut().flatten() {
            samples.truncate(rounds);
        }
        if rounds == 0 {
            break;
        }
        count_atomics(plan, cell, &mut samples);
        report.add(plan, cell, &samples);
        gates.add(cell, &samples);
        if report.is_partial {
            break;
        }
    }
    report.rows.extend(summary::of(&report.rows, plan));
    report.gates = gates.results();
    Ok(report)
}

/// Where the instructions of our locks were not counted, counts their atomics on a simulated
/// machine.
fn count_atomics(plan: &Plan, cell: &Cell, samples: &mut [Option<Vec<Sample>>]) {
    if cell.mode != Mode::Uncontended {
        return;
    }
    for (lock, samples) in cell.locks.iter().zip(samples) {
        let all = samples.iter_mut().flatten();
        let mut missing = all.filter(|sample| sample.rmw_per_op.is_none()).peekable();
        if missing.peek().is_some() {
            let simulated = lock.rmw_per_pair(cell.point, plan.settings);
            missing.for_each(|sample| sample.rmw_per_op = simulated);
        }
    }
}

/// The order of the locks in a round: random, and the same in each process.
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
