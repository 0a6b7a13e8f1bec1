//! What a simulation has to know of its workload.

use nearlock_collection::subjects::Subject;
use nearlock_sim::spec::{Access, MachineSpec, Preemption};

use crate::lockstat::Class;

/// Between the beginnings of two threads, in ns: they are started one after the other.
const START_NS: u64 = 50;

/// What a simulation has to know of its workload on a machine. Begin with [`Facts::on`].
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// The size of a group of threads: the number of threads must be a multiple of this.
    pub group: usize,
    /// The most threads that it can have.
    pub threads_max: usize,
    /// Over how many locks the groups are spread, in turn.
    pub spread: usize,
    /// How many locks each thread takes, one after the other.
    pub locks_of_each: usize,
    /// The last of its locks, if that is of a type of its own and not of the tested one.
    pub other: Option<OtherLock>,
    /// Jobs after which a thread ends, and the whole run counts, 0: it never does; or `None` if its
    /// threads have no jobs.
    pub jobs: Option<u64>,
    /// The most that a section and the way to the next take, in ns, without about 20 transfers.
    pub section_ns_max: u64,
    /// The most that one section in many takes, in ns; 0: all are of one kind.
    pub long_section_ns_max: u64,
    /// For how long a thread may sleep that waits for no lock, in ns.
    pub sleep_ns_max: u64,
    /// Rare work that is not simulated: its mean, in ns for each operation of a thread.
    pub left_out_ns: f64,
    /// Between the beginnings of two threads, in ns.
    pub start_ns: u64,
    /// Where its threads can lose their processor.
    pub preemption: Preemption,
}

/// A lock that is not under test.
#[derive(Clone, Copy, Debug)]
pub struct OtherLock {
    /// How many locks of the tested type are before it.
    pub index: usize,
    /// Its name in statistics.
    pub name: &'static str,
    /// What kind of lock it is.
    pub class: Class,
}

impl Facts {
    /// Those of threads that have a CPU each and take one lock without end, in sections without
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
            sleep_ns_max: 0,
            left_out_ns: 0.0,
            start_ns: START_NS,
            preemption: machine.model.preemption,
        }
    }

    /// Which of the locks a thread takes, from 0: the first, unless it says which.
    pub fn lock_of(&self, thread: usize) -> usize {
        thread / self.group % self.spread
    }

    /// The name and the class of the lock of this index; `locks` is their number.
    pub fn lock_at(&self, index: usize, locks: usize, tested: &Subject) -> (String, Class) {
        match self.other {
            Some(other) if other.index == index => (other.name.to_owned(), other.class),
            _ if locks == 1 => (tested.name.to_owned(), Class::of(tested)),
            _ => (format!("{}#{index}", tested.name), Class::of(tested)),
        }
    }

    /// Whether locks whose acquisitions are observed are under test.
    pub fn observes_tested_locks(&self) -> bool {
        self.other.is_none_or(|other| other.index > 0)
    }

    /// Whether its threads end by themselves, and the whole run counts.
    pub fn ends(&self) -> bool {
        self.jobs.is_some_and(|jobs| jobs > 0)
    }
}

/// What it takes to get a line from the farthest memory, in ns.
pub(super) fn farthest_ns(machine: &MachineSpec) -> f64 {
    machine.latency(Access::LoadMemory, machine.distances.len() - 1)
}

/// What it takes to fall asleep and to be woken, in ns.
pub(super) fn asleep_ns(machine: &MachineSpec) -> f64 {
    2.0 * machine.model.futex_call_ns + machine.model.wake_latency_ns
}
