//! Threads that are pinned to CPUs, with priority over other threads where the system permits it.
//!
//! They are never in a real-time class. Otherwise two programs on the same two CPUs could block
//! each other for ever. Each program would have one running thread, which waits for a thread that
//! the other program keeps from running.

use std::fmt;
use std::io;
use std::sync::{OnceLock, mpsc};
use std::thread;

use super::MeasureError;
use crate::bench::pin;

/// Scheduling of a thread that measures. Both ranks have priority over ordinary threads, as far as
/// the system permits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// A thread that is woken up takes the CPU at once, even from another thread that measures. For
    /// operations inside processors.
    Foremost,
    /// A thread that is woken up lets another thread that measures continue. For operations of the
    /// scheduler.
    Batch,
}

/// The priority of threads that measure: the one that is asked for, or the one that the system
/// permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// The highest priority of the ordinary scheduler: nice -20.
    Nice,
    /// The priority with which the process was started.
    AsStarted,
}

impl Priority {
    /// The priority that the system permits where this one is asked for.
    pub fn permitted(self) -> Self {
        thread::spawn(move || system::raise(Rank::Foremost, self)).join().unwrap_or(Self::AsStarted)
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Nice => "nice -20",
            Self::AsStarted => "as started",
        })
    }
}

/// What holds for each sample of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// Time that one look at the clock takes, in ns.
    pub clock_ns: f64,
    /// The priority that is asked for.
    pub priority: Priority,
}

/// Calls `work` at the same time in one thread on each of these CPUs, with the thread's place in
/// the list. Returns the results in the order of the list.
pub fn on_cpus<T: Send>(
    cpus: &[u32],
    rank: Rank,
    priority: Priority,
    work: &(dyn Fn(usize) -> T + Sync),
) -> Result<Vec<T>, MeasureError> {
    let (ready, arrivals) = mpsc::channel();
    // Whether all threads are pinned.
    let gate: OnceLock<bool> = OnceLock::new();
    thread::scope(|scope| {
        let mut threads = Vec::with_capacity(cpus.len());
        for (place, &cpu) in cpus.iter().enumerate() {
            let (ready, gate, work) = (ready.clone(), &gate, work);
            let life = move || {
                let pinned = pin(cpu);
                system::raise(rank, priority);
                // The receiver waits for this message from all threads.
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

/// As [`on_cpus`], on one CPU.
pub fn on_cpu<T: Send>(
    cpu: u32,
    rank: Rank,
    priority: Priority,
    work: impl Fn() -> T + Sync,
) -> Result<T, MeasureError> {
    let mut results = on_cpus(&[cpu], rank, priority, &|_| work())?;
    results.pop().ok_or_else(|| MeasureError::Spawn { source: io::ErrorKind::Other.into() })
}

#[cfg(target_os = "linux")]
mod system {
    use super::{Priority, Rank};

    /// Gives the calling thread the permitted part of this rank and this priority.
    pub fn raise(rank: Rank, priority: Priority) -> Priority {
        let policy = match rank {
            // Set it even if the process was started in another class.
            Rank::Foremost => libc::SCHED_OTHER,
            Rank::Batch => libc::SCHED_BATCH,
        };
        let parameters = libc::sched_param { sched_priority: 0 };
        // If this call or the next is refused, figures are less exact.
        // SAFETY: the parameters are live during the call; 0 is the calling thread.
        unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
        if priority == Priority::AsStarted {
            return priority;
        }
        // SAFETY: the call has no conditions; 0 is the calling thread.
        match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) } {
            0 => Priority::Nice,
            _ => Priority::AsStarted,
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::{Priority, Rank};

    pub fn raise(_rank: Rank, _priority: Priority) -> Priority {
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
        let found = on_cpus(&cpus, Rank::Batch, Priority::Nice, &|place| (place, TestBed::this().allowed))
            .expect("allowed");
        let expected: Vec<_> = cpus.iter().enumerate().map(|(place, &cpu)| (place, vec![cpu])).collect();
        assert_eq!(found, expected);
        assert_eq!(on_cpu(cpus[0], Rank::Foremost, Priority::AsStarted, || 7).expect("allowed"), 7);
    }

    /// Lets two threads on two CPUs wait for each other repeatedly.
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
        on_cpus(cpus, Rank::Foremost, Priority::Nice, &play).expect("allowed");
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
    fn a_cpu_that_does_not_exist_is_an_error_and_no_hang() {
        let error = on_cpus(&[TestBed::this().allowed[0], 1_000_000], Rank::Batch, Priority::Nice, &|_| ());
        assert!(matches!(error, Err(MeasureError::Pin { cpu: 1_000_000, .. })), "{error:?}");
    }
}
