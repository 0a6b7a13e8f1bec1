//! Threads that start together, and their end.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::wait::Ending;
use super::{BenchError, Failure, machine};

/// Stack of a thread. The locks keep no large data on it.
const STACK_BYTES: usize = 256 * 1024;
/// Interval of checks whether the threads have started or ended.
const LOOK: Duration = Duration::from_micros(200);
/// Time without an acquisition after which the threads count as hung. A busy machine keeps all
/// threads off its CPUs for much less.
const HANG: Duration = Duration::from_secs(20);

/// The number of threads, and where they run.
#[derive(Clone, Copy, Debug)]
pub enum Members<'a> {
    /// This many threads, where the scheduler puts them.
    Anywhere(usize),
    /// One thread on each of these CPUs.
    On(&'a [u32]),
}

impl Members<'_> {
    /// The number of threads.
    pub fn threads(self) -> usize {
        match self {
            Members::Anywhere(threads) => threads,
            Members::On(cpus) => cpus.len(),
        }
    }

    /// The CPU to which this thread is pinned.
    fn cpu(self, thread: usize) -> Option<u32> {
        match self {
            Members::Anywhere(_) => None,
            Members::On(cpus) => Some(cpus[thread]),
        }
    }
}

/// The body of a thread, which gets the thread's number.
type Life = Arc<dyn Fn(usize) + Send + Sync>;

#[derive(Default)]
struct Gate {
    arrived: AtomicUsize,
    /// `true`: begin; `false`: leave at once.
    open: OnceLock<bool>,
    /// The error of a thread that could not be pinned to its CPU.
    unpinned: Mutex<Option<BenchError>>,
}

impl Gate {
    fn unpinned(&self) -> MutexGuard<'_, Option<BenchError>> {
        self.unpinned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Threads that wait for the start.
pub struct Crew {
    handles: Vec<JoinHandle<()>>,
    gate: Arc<Gate>,
    /// Time without progress after which the threads count as hung.
    patience: Duration,
}

impl Crew {
    /// Starts the threads, and returns when all of them wait at the gate. Each thread then runs
    /// `life` with its number.
    pub fn gather(
        members: Members,
        life: impl Fn(usize) + Send + Sync + 'static,
    ) -> Result<Self, BenchError> {
        Self::of(members, &(Arc::new(life) as Life))
    }

    fn of(members: Members, life: &Life) -> Result<Self, BenchError> {
        let threads = members.threads();
        let gate = Arc::new(Gate::default());
        let mut handles = Vec::with_capacity(threads);
        for thread in 0..threads {
            let (at_gate, life) = (Arc::clone(&gate), Arc::clone(life));
            let builder = std::thread::Builder::new().name(format!("bench {thread}")).stack_size(STACK_BYTES);
            let cpu = members.cpu(thread);
            let started = builder.spawn(move || {
                if let Some((cpu, source)) = cpu.and_then(|cpu| Some((cpu, machine::pin(cpu).err()?))) {
                    *at_gate.unpinned() = Some(BenchError::Pin { cpu, source });
                }
                at_gate.arrived.fetch_add(1, Relaxed);
                if *at_gate.open.wait() {
                    life(thread);
                }
            });
            match started {
                Ok(handle) => handles.push(handle),
                Err(source) => {
                    let _ = gate.open.set(false);
                    return Err(BenchError::Spawn { threads, source });
                }
            }
        }
        while gate.arrived.load(Relaxed) < threads {
            std::thread::sleep(LOOK);
        }
        if let Some(unpinned) = gate.unpinned().take() {
            let _ = gate.open.set(false);
            return Err(unpinned);
        }
        Ok(Self { handles, gate, patience: HANG })
    }

    /// Opens the gate.
    pub fn start(&self) {
        let _ = self.gate.open.set(true);
    }

    /// Waits until all threads have ended, after they were told to. `progress` changes as long as
    /// they acquire the lock. After a hang, the threads are left behind.
    pub fn end(self, progress: &dyn Fn() -> u64) -> Result<(), Failure> {
        let _ending = Ending::begin();
        let (mut seen, mut since) = (None, Instant::now());
        loop {
            let running = self.handles.iter().filter(|handle| !handle.is_finished()).count();
            if running == 0 {
                break;
            }
            let now = Some((progress(), running));
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
            if since.elapsed() >= self.patience {
                return Err(Failure::Hang { idle: since.elapsed(), waiting: running });
            }
            std::thread::sleep(LOOK);
        }
        for handle in self.handles {
            if let Err(panic) = handle.join() {
                std::panic::resume_unwind(panic);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    /// Threads that end once the number is at least `least`.
    fn until(number: &Arc<AtomicU64>, least: u64) -> Crew {
        let number = Arc::clone(number);
        let life = move |_| {
            while number.load(Relaxed) < least {
                std::thread::sleep(LOOK);
            }
        };
        let crew = Crew::gather(Members::Anywhere(2), life).expect("threads can be had");
        crew.start();
        crew
    }

    #[test]
    fn threads_that_do_nothing_are_left_behind() {
        let number = Arc::new(AtomicU64::new(0));
        let crew = Crew { patience: Duration::from_millis(20), ..until(&number, 1) };
        let hang = crew.end(&|| 0);
        assert!(matches!(hang, Err(Failure::Hang { waiting: 2, .. })), "{hang:?}");
        number.store(1, Relaxed);
    }

    #[test]
    fn threads_that_get_on_are_waited_for() {
        let number = Arc::new(AtomicU64::new(0));
        let crew = Crew { patience: Duration::from_secs(10), ..until(&number, 100) };
        assert_eq!(crew.end(&|| number.fetch_add(1, Relaxed)), Ok(()));
        assert!(number.load(Relaxed) >= 100);
    }
}
