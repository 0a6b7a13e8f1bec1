//! Facts about a workload that a simulation needs.

use nearlock_collection::subjects::Subject;
use nearlock_sim::spec::{Access, MachineSpec, Preemption};

use crate::lockstat::Class;

/// The time between the beginnings of two threads, in ns. Threads begin one after the other.
const START_NS: u64 = 50;

/// Facts about a workload on a machine that a simulation needs. [`Facts::on`] gives the defaults.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// The size of a group of threads: the number of threads must be a multiple of this.
    pub group: usize,
    /// The maximum number of threads.
    pub threads_max: usize,
    /// The number of locks over which the groups are distributed, one after the other.
    pub spread: usize,
    /// The number of locks that each thread takes, one after the other.
    pub locks_of_each: usize,
    /// The last of these locks, if it has a type of its own instead of the tested type.
    pub other: Option<OtherLock>,
    /// The number of jobs after which a thread ends, with the whole run counted. 0 means that
    /// threads do not end. `None` if the threads have no jobs.
    pub jobs: Option<u64>,
    /// The maximum time of a section and the way to the next one, in ns, without about 20 line
    /// transfers.
    pub section_ns_max: u64,
    /// The maximum time of a rare long section, in ns. 0 means that all sections are of one kind.
    pub long_section_ns_max: u64,
    /// The maximum time for which a thread sleeps without waiting for a lock, or is away while it
    /// holds one, in ns. So long a time without an acquisition is no livelock.
    pub away_ns_max: u64,
    /// Rare work that is not simulated: its mean, in ns for each operation of a thread.
    pub left_out_ns: f64,
    /// The time between the beginnings of two threads, in ns.
    pub start_ns: u64,
    /// Where threads of the workload can be preempted.
    pub preemption: Preemption,
}

/// A lock that is not under test.
#[derive(Clone, Copy, Debug)]
pub struct OtherLock {
    /// The number of locks of the tested type before it.
    pub index: usize,
    /// Its name in statistics.
    pub name: &'static str,
    /// The kind of the lock.
    pub class: Class,
}

impl Facts {
    /// Facts about threads that have a CPU each and take one lock endlessly, in sections without
    /// length.
    pub fn on(machine: &MachineSpec) -> Self {
        Self {
            group: 1,
            threads_max: machine.cpus(),
            spread: 1,
            locks_of_each: 1,
            other: None,
            jobs: None,
            section_ns_max: 0,
            long_section_ns_max: 0,
            away_ns_max: 0,
            left_out_ns: 0.0,
            start_ns: START_NS,
            preemption: machine.model.preemption,
        }
    }

    /// The index of the first lock that a thread takes. A thread may choose another one.
    pub fn lock_of(&self, thread: usize) -> usize {
        thread / self.group % self.spread
    }

    /// The name and the class of the lock with this index. `locks` is the number of locks.
    pub fn lock_at(&self, index: usize, locks: usize, tested: &Subject) -> (String, Class) {
        match self.other {
            Some(other) if other.index == index => (other.name.to_owned(), other.class),
            _ if locks == 1 => (tested.name.to_owned(), Class::of(tested)),
            _ => (format!("{}#{index}", tested.name), Class::of(tested)),
        }
    }

    /// Whether the observed locks are the locks under test.
    pub fn observes_tested_locks(&self) -> bool {
        self.other.is_none_or(|other| other.index > 0)
    }

    /// Whether the threads end by themselves, with the whole run counted.
    pub fn ends(&self) -> bool {
        self.jobs.is_some_and(|jobs| jobs > 0)
    }
}

/// The time to get a line from the farthest memory, in ns.
pub(super) fn farthest_ns(machine: &MachineSpec) -> f64 {
    machine.latency(Access::LoadMemory, machine.distances.len() - 1)
}

/// The time to fall asleep and to be woken, in ns.
pub(super) fn asleep_ns(machine: &MachineSpec) -> f64 {
    2.0 * machine.model.futex_call_ns + machine.model.wake_latency_ns
}
