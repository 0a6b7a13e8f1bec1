//! What the threads of a simulation do: workloads with the parameters that a simulation may vary, and how they
//! are put on a machine.

use std::borrow::Cow;
use std::rc::Rc;

use nearlock_collection::subjects::Subject;
use nearlock_core::raw::RawLock;
use nearlock_sim::placement::shuffle;
use nearlock_sim::spec::{Access, MachineSpec};
use nearlock_sim::{LINE, Machine, Placed, Sim};
use nearlock_workload::Exclusive;
use nearlock_workload::jobs::Root;
use nearlock_workload::jobs::profiles::{Constants, Profile};
use nearlock_workload::locktorture::{self, LongHolds, OwnLine, ShortHolds};
use nearlock_workload::sections::{self, Overhead, Spell};
use nearlock_workload::will_it_scale::{CallConstants, Calls};
use rand_core::Rng;

use super::Simulation;
pub use super::context1::{Context1, Partners};
use super::erased::{Erased, Shared};
use super::jobs;
use super::journal::{Journal, Scribe};
use super::mutex_section::{self, MutexSection};
use super::readrandom::ReadRandom;
use super::will_it_scale;
use crate::lockstat::Class;

/// A scheduler tick of the simulated kernels, in ns: 1000 Hz, the default x86-64 configuration.
const TICK_NS: u64 = 1_000_000;

/// Between the beginnings of two threads, in ns: they are started one after the other.
const START_NS: u64 = 50;

/// A workload and its parameters.
#[derive(Clone, Debug)]
pub enum Workload {
    /// The kernel's torture test.
    Locktorture(Locktorture),
    /// Sections of a stated length, that far apart.
    Sections(Sections),
    /// Threads that share one mutex of a program.
    MutexSection(MutexSection),
    /// Pairs of threads that wake each other in turn.
    Context1(Context1),
    /// Threads in loops of system calls.
    Calls(Calls, CallConstants),
    /// Threads that look up keys of a database, whose mutex sleeps in a futex that the lock guards.
    ReadRandom(ReadRandom),
    /// Users with jobs; each is a thread.
    Jobs(Profile, Constants),
}

/// In which order the threads of a simulation begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// One that the seed draws. In a first-come-first-served queue an order lasts for long, and in a run of a
    /// minute it is the order of no beginning.
    #[default]
    Shuffled,
    /// That of their numbers, as they are made.
    InTurn,
}

/// How the statistics of locktorture's writers lie in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Statistics {
    /// 16 bytes each, one after the other: four writers share a line, as in the original.
    #[default]
    Packed,
    /// A line for each.
    Padded,
}

/// The parameters of locktorture that a simulation may vary.
#[derive(Clone, Debug)]
pub struct Locktorture {
    /// Era of the short holds.
    pub short_holds: ShortHolds,
    /// Instructions inside a section, in ns.
    pub section_ns: u64,
    /// Instructions outside, in ns.
    pub think_ns: u64,
    /// Of 100 acquisitions, how many are urgent.
    pub priority_percent: u64,
    /// How the statistics lie in memory.
    pub statistics: Statistics,
}

impl Default for Locktorture {
    fn default() -> Self {
        Self {
            short_holds: ShortHolds::V5_10,
            section_ns: 75,
            think_ns: 15,
            priority_percent: 0,
            statistics: Statistics::default(),
        }
    }
}

/// The parameters of sections.
#[derive(Clone, Debug)]
pub struct Sections {
    /// Work inside a section, in ns.
    pub section_ns: u64,
    /// Work between two sections, on average, in ns.
    pub think_ns: u64,
    /// Instructions of the loop itself inside a section, in ps.
    pub section_overhead_ps: u64,
    /// Instructions of the loop itself between two sections, in ps.
    pub think_overhead_ps: u64,
}

impl Default for Sections {
    fn default() -> Self {
        Self { section_ns: 100, think_ns: 500, section_overhead_ps: 0, think_overhead_ps: 0 }
    }
}

impl Workload {
    /// Its name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Locktorture(_) => "locktorture",
            Self::Sections(_) => "sections",
            Self::MutexSection(_) => "mutex-section",
            Self::Context1(_) => "context1",
            Self::Calls(calls, _) => calls.name(),
            Self::ReadRandom(_) => "readrandom",
            Self::Jobs(profile, _) => profile.name(),
        }
    }

    /// Threads come in groups of so many: their number must be a multiple of this.
    pub fn group(&self) -> usize {
        match self {
            Self::Locktorture(_)
            | Self::Sections(_)
            | Self::MutexSection(_)
            | Self::Calls(..)
            | Self::ReadRandom(_)
            | Self::Jobs(..) => 1,
            Self::Context1(_) => 2,
        }
    }

    /// The most threads that it can have on this machine.
    pub fn threads_max(&self, machine: &MachineSpec) -> usize {
        match self {
            Self::Locktorture(_)
            | Self::Sections(_)
            | Self::Context1(_)
            | Self::Calls(..)
            | Self::ReadRandom(_) => machine.cpus(),
            Self::MutexSection(_) => mutex_section::TASKS_MAX,
            Self::Jobs(..) => jobs::USERS_MAX,
        }
    }

    /// Which of the workload's locks a thread takes, from 0: the first, unless it says which.
    pub(super) fn lock_of(&self, thread: usize) -> usize {
        match self {
            Self::Locktorture(_)
            | Self::Sections(_)
            | Self::MutexSection(_)
            | Self::Calls(..)
            | Self::ReadRandom(_)
            | Self::Jobs(..) => 0,
            Self::Context1(context1) => context1.lock_of(thread),
        }
    }

    /// What one of the workload's locks is, of which there are so many, all but the root's of this type.
    pub(super) fn lock_at(&self, index: usize, locks: usize, lock: &Subject) -> (String, Class) {
        match self {
            Self::Jobs(_, constants)
                if constants.root == Root::Rwsem && index == constants.locks as usize =>
            {
                ("root".to_owned(), Class::Rw)
            }
            Self::ReadRandom(_) => ("database".to_owned(), Class::Adaptive),
            _ if locks == 1 => (lock.name.to_owned(), Class::of(lock)),
            _ => (format!("{}#{index}", lock.name), Class::of(lock)),
        }
    }

    /// How many locks each thread takes, one after the other.
    pub(super) fn locks_of_each(&self) -> usize {
        match self {
            Self::Locktorture(_)
            | Self::Sections(_)
            | Self::MutexSection(_)
            | Self::Context1(_)
            | Self::ReadRandom(_) => 1,
            Self::Calls(calls, _) => will_it_scale::locks_of_each(*calls),
            Self::Jobs(_, constants) => jobs::locks_of_each(constants),
        }
    }

    /// Whether the locks whose acquisitions are observed are those under test.
    pub(super) fn observes_tested_locks(&self) -> bool {
        !matches!(self, Self::ReadRandom(_))
    }

    /// Whether it has readers.
    pub(super) fn has_readers(&self) -> bool {
        matches!(self, Self::Jobs(_, constants) if constants.read_percent > 0)
    }

    /// Whether its threads are users with jobs.
    pub(super) fn has_jobs(&self) -> bool {
        matches!(self, Self::Jobs(..))
    }

    /// Whether its threads end by themselves, and the whole run counts.
    pub(crate) fn ends(&self) -> bool {
        matches!(self, Self::Jobs(_, constants) if constants.jobs > 0)
    }

    /// What one section in many takes at most, in ns; 0: all are of a kind.
    pub(super) fn long_section_ns_max(&self) -> u64 {
        match self {
            Self::Jobs(_, constants) => jobs::long_section_ns_max(constants),
            Self::Locktorture(_)
            | Self::Sections(_)
            | Self::MutexSection(_)
            | Self::Context1(_)
            | Self::Calls(..)
            | Self::ReadRandom(_) => 0,
        }
    }

    /// What a section and the way to the next take at most, in ns, with a score of transfers.
    pub(super) fn section_ns_max(&self, machine: &MachineSpec) -> u64 {
        let farthest_ns = machine.latency(Access::LoadMemory, machine.distances.len() - 1);
        let work_ns = match self {
            Self::Locktorture(torture) => torture.section_ns + torture.think_ns + locktorture::SHORT_HOLD_NS,
            Self::Sections(sections) => sections.section_ns + 2 * sections.think_ns,
            Self::MutexSection(section) => section.section_ns_max(machine),
            Self::Context1(context1) => context1.section_ns_max(machine),
            Self::Calls(_, constants) => will_it_scale::section_ns_max(constants, machine),
            Self::ReadRandom(read) => read.section_ns_max(machine),
            Self::Jobs(_, constants) => jobs::section_ns_max(constants, machine),
        };
        work_ns + 20 * farthest_ns as u64
    }

    /// The machine for its threads, which differs where they are known to be a program's.
    pub(super) fn machine<'a>(&self, machine: &'a MachineSpec) -> Cow<'a, MachineSpec> {
        match self {
            Self::MutexSection(section) => Cow::Owned(section.machine(machine)),
            _ => Cow::Borrowed(machine),
        }
    }

    /// Between the beginnings of two threads, in ns.
    fn start_ns(&self, machine: &MachineSpec) -> u64 {
        match self {
            Self::Calls(..) => will_it_scale::start_ns(machine),
            _ => START_NS,
        }
    }

    /// For how long a thread may sleep that waits for no lock, in ns.
    pub(super) fn sleep_ns_max(&self) -> u64 {
        match self {
            Self::Jobs(_, constants) if constants.sleep_percent > 0 => 2 * constants.sleep_ns,
            _ => 0,
        }
    }

    /// What is not simulated and counts at its mean, in ns for each operation of all `threads` together.
    pub(super) fn left_out_ns(&self, threads: usize) -> f64 {
        match self {
            Self::Locktorture(_) => LongHolds::MEAN_NS / threads as f64,
            _ => 0.0,
        }
    }

    /// Puts it on the machine, a thread to each CPU that the seed draws.
    pub(super) fn spawn<L: RawLock>(
        &self,
        machine: &Machine,
        simulation: &Simulation,
        journal: &Rc<Journal>,
        seeds: &mut impl Rng,
    ) {
        match self {
            Self::Locktorture(torture) => torture.spawn::<L>(machine, simulation, journal, seeds),
            Self::Sections(sections) => sections.spawn::<L>(machine, simulation, journal, seeds),
            Self::MutexSection(section) => section.spawn::<L>(machine, simulation, journal, seeds),
            Self::Context1(context1) => context1.spawn::<L>(machine, simulation, journal, seeds),
            Self::Calls(calls, constants) => {
                will_it_scale::spawn::<L>(*calls, constants, machine, simulation, journal, seeds);
            }
            Self::ReadRandom(read) => read.spawn::<L>(machine, simulation, journal, seeds),
            Self::Jobs(_, constants) => {
                jobs::spawn::<Exclusive<L>>(constants, machine, simulation, journal, seeds);
            }
        }
    }

    /// The same with a lock that has readers, whom only some workloads let share it.
    pub(super) fn spawn_shared<R: 'static>(
        &self,
        machine: &Machine,
        simulation: &Simulation,
        journal: &Rc<Journal>,
        seeds: &mut impl Rng,
    ) {
        match self {
            Self::Jobs(_, constants) => {
                jobs::spawn::<Shared<R>>(constants, machine, simulation, journal, seeds);
            }
            _ => self.spawn::<Erased<R>>(machine, simulation, journal, seeds),
        }
    }
}

/// What a thread begins with.
pub(super) struct Seat {
    pub thread: usize,
    /// Its NUMA node: that of its CPU.
    pub node: usize,
    pub scribe: Scribe,
    pub seed: u64,
}

/// What a thread does, made of its seat.
pub(super) type Bodies<'a> = dyn FnMut(Seat) -> Box<dyn FnOnce()> + 'a;

/// Puts the threads on the CPUs that the seed draws, or one after the other on all CPUs if they are more.
pub(super) fn seat(
    machine: &Machine,
    simulation: &Simulation,
    journal: &Rc<Journal>,
    seeds: &mut impl Rng,
    body: &mut Bodies<'_>,
) {
    let Simulation { machine: spec, threads, placement, .. } = simulation;
    let some = placement.cpus(spec, spec.cpus().min(*threads), seeds.next_u64());
    let cpus: Vec<usize> = some.iter().copied().cycle().take(*threads).collect();
    seat_on(&cpus, machine, simulation, journal, seeds, body);
}

/// Puts a thread on each of these CPUs.
pub(super) fn seat_on(
    cpus: &[usize],
    machine: &Machine,
    simulation: &Simulation,
    journal: &Rc<Journal>,
    seeds: &mut impl Rng,
    body: &mut Bodies<'_>,
) {
    let spec = &simulation.machine;
    let start_ns = simulation.workload.start_ns(spec);
    let mut turns: Vec<usize> = (0..cpus.len()).collect();
    if simulation.start == Start::Shuffled {
        shuffle(&mut turns, seeds);
    }
    for (thread, (&cpu, turn)) in cpus.iter().zip(turns).enumerate() {
        let node = spec.numa_node_of_cpu(cpu);
        let scribe = Scribe::new(journal, thread, node);
        let body = body(Seat { thread, node, scribe, seed: seeds.next_u64() });
        machine.spawn(cpu, start_ns * turn as u64, body);
    }
}

/// A queue node on a line of its own.
pub(super) fn queue_node<N: Default>(machine: &Machine, seat: &Seat) -> Placed<OwnLine<N>> {
    machine.place(seat.node, OwnLine(N::default()))
}

impl Locktorture {
    fn spawn<L: RawLock>(
        &self,
        machine: &Machine,
        simulation: &Simulation,
        journal: &Rc<Journal>,
        seeds: &mut impl Rng,
    ) {
        let threads = simulation.threads;
        let params = locktorture::Params {
            writers: threads as u64,
            short_holds: self.short_holds,
            long_holds: LongHolds::LeftOut,
            section_ns: self.section_ns,
            think_ns: self.think_ns,
            tick_ns: TICK_NS,
            priority_percent: self.priority_percent,
        };
        let shared = Rc::new(machine.place(0, locktorture::Shared::<Sim, L>::default()));
        // Of padded statistics the first of each line is used.
        let step = match self.statistics {
            Statistics::Packed => 1,
            Statistics::Padded => LINE / size_of::<locktorture::Stats<Sim>>(),
        };
        let stats = Rc::new(machine.place_slice(0, threads * step, locktorture::Stats::<Sim>::default));
        seat(machine, simulation, journal, seeds, &mut |mut seat| {
            let (shared, stats, params) = (Rc::clone(&shared), Rc::clone(&stats), params.clone());
            let mut node = queue_node::<L::Node>(machine, &seat);
            Box::new(move || {
                let (stats, node) = (&stats[seat.thread * step], &mut node.0);
                let mut writer = locktorture::Writer::<Sim, L>::new(&shared, stats, node, &params, seat.seed);
                writer.run(&mut seat.scribe);
            })
        });
    }
}

impl Sections {
    fn spawn<L: RawLock>(
        &self,
        machine: &Machine,
        simulation: &Simulation,
        journal: &Rc<Journal>,
        seeds: &mut impl Rng,
    ) {
        let spell = |ns| Spell { ns, turns: 0 };
        let params = sections::Params {
            section: spell(self.section_ns),
            think: spell(self.think_ns),
            overhead: Overhead { section_ps: self.section_overhead_ps, think_ps: self.think_overhead_ps },
        };
        let shared = Rc::new(machine.place(0, sections::Shared::<Sim, L>::default()));
        seat(machine, simulation, journal, seeds, &mut |mut seat| {
            let shared = Rc::clone(&shared);
            let mut node = queue_node::<L::Node>(machine, &seat);
            Box::new(move || {
                let mut worker = sections::Worker::<Sim, L>::new(&shared, &mut node.0, params, seat.seed);
                worker.run(&mut seat.scribe);
            })
        });
    }
}
