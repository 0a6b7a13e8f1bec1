//! Threads that are kept on CPUs, ahead of others where that is permitted.
//!
//! Never in a real-time class: two programs whose threads wait for each other on the same two CPUs
//! would then wait for ever, each with one thread that runs and one that the other keeps from
//! running.

use std::fmt;
use std::io;
use std::sync::{OnceLock, mpsc};
use std::thread;

use super::MeasureError;
use crate::bench::pin;

/// How a thread that measures is scheduled: ahead of ordinary ones in any case, as far as that is
/// permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// Takes the CPU at once when it is woken, also from another that measures: for what happens
    /// inside processors.
    Foremost,
    /// Lets another that measures run on when it is woken: for what the scheduler has a part in.
    Batch,
}

/// What was permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// The highest of the ordinary scheduler's: nice -20.
    Nice,
    /// What the process was started with.
    AsStarted,
}

impl Priority {
    /// That of `Rank::Foremost` here.
    pub fn available() -> Self {
        thread::spawn(|| system::raise(Rank::Foremost)).join().unwrap_or(Self::AsStarted)
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Nice => "nice -20",
            Self::AsStarted => "as started: no higher one is permitted",
        })
    }
}

/// Does `work` at the same time in a thread on each of these CPUs, which is told its place in the
/// list, and returns the results in its order.
pub fn on_cpus<T: Send>(
    cpus: &[u32],
    rank: Rank,
    work: &(dyn Fn(usize) -> T + Sync),
) -> Result<Vec<T>, MeasureError> {
    let (ready, arrivals) = mpsc::channel();
    // Whether all threads are where they should be.
    let gate: OnceLock<bool> = OnceLock::new();
    thread::scope(|scope| {
        let mut threads = Vec::with_capacity(cpus.len());
        for (place, &cpu) in cpus.iter().enumerate() {
            let (ready, gate, work) = (ready.clone(), &gate, work);
            let life = move || {
                let pinned = pin(cpu);
                system::raise(rank);
                // The other end waits until all have said so.
                let _ = ready.send(pinned.map_err(|source| MeasureError::Pin { cpu, source }));
                gate.wait().then(|| work(place))
            };
            match thread::Builder::new().name(format!("measure {cpu}")).spawn_scoped(scope, life) {
                Ok(thread) => threads.push(thread),
                Err(source) => {
                    let _ = gate.set(false);
                    return Err(MeasureError::Spawn { source });
                }
            }
        }
        let arrived: Result<(), MeasureError> = arrivals.iter().take(cpus.len()).collect();
        let _ = gate.set(arrived.is_ok());
        let results = threads.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let results: Vec<T> = results.flatten().collect();
        arrived.map(|()| results)
    })
}

/// As [`on_cpus`], on one.
pub fn on_cpu<T: Send>(cpu: u32, rank: Rank, work: impl Fn() -> T + Sync) -> Result<T, MeasureError> {
    let mut results = on_cpus(&[cpu], rank, &|_| work())?;
    results.pop().ok_or_else(|| MeasureError::Spawn { source: io::ErrorKind::Other.into() })
}

#[cfg(target_os = "linux")]
mod system {
    use super::{Priority, Rank};

    /// Gives the calling thread what is permitted of this rank.
    pub fn raise(rank: Rank) -> Priority {
        let policy = match rank {
            // Also if the process was started in another class.
            Rank::Foremost => libc::SCHED_OTHER,
            Rank::Batch => libc::SCHED_BATCH,
        };
        let parameters = libc::sched_param { sched_priority: 0 };
        // Where this or the next is refused, figures are less exact.
        // SAFETY: the parameters are live during the call; 0 is the calling thread.
        unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
        // SAFETY: has no conditions; 0 is the calling thread.
        match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) } {
            0 => Priority::Nice,
            _ => Priority::AsStarted,
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::{Priority, Rank};

    pub fn raise(_rank: Rank) -> Priority {
        Priority::AsStarted
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::SeqCst;

    use super::*;
    use crate::bench::TestBed;

    #[test]
    fn work_is_done_on_each_cpu_in_order() {
        let cpus = TestBed::this().allowed;
        let found = on_cpus(&cpus, Rank::Batch, &|place| (place, TestBed::this().allowed)).expect("allowed");
        let expected: Vec<_> = cpus.iter().enumerate().map(|(place, &cpu)| (place, vec![cpu])).collect();
        assert_eq!(found, expected);
        assert_eq!(on_cpu(cpus[0], Rank::Foremost, || 7).expect("allowed"), 7);
    }

    /// Lets two threads on two CPUs wait for each other, again and again.
    fn take_turns(cpus: &[u32]) {
        let turn = AtomicUsize::new(0);
        let play = |place| {
            for round in 0..200 {
                while turn.load(SeqCst) < 2 * round + place {
                    std::hint::spin_loop();
                }
                turn.fetch_add(1, SeqCst);
            }
        };
        on_cpus(cpus, Rank::Foremost, &play).expect("allowed");
    }

    #[test]
    fn two_programs_that_measure_at_once_both_end() {
        let cpus = TestBed::this().allowed;
        let Some(two) = cpus.get(..2) else { return };
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..20).for_each(|_| take_turns(two)));
            }
        });
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error_and_no_hang() {
        let error = on_cpus(&[TestBed::this().allowed[0], 1_000_000], Rank::Batch, &|_| ());
        assert!(matches!(error, Err(MeasureError::Pin { cpu: 1_000_000, .. })), "{error:?}");
    }
}
