//! One mutex of a program, as a simulation makes it.

use std::rc::Rc;

use nearlock_core::raw::RawLock;
use nearlock_sim::spec::{Access, MachineSpec, Preemption};
use nearlock_sim::{Machine, Sim};
use nearlock_workload::LockedLines;
use nearlock_workload::mutex_section::{Params, Worker};
use nearlock_workload::sections::Spell;
use rand_core::Rng;

use super::Simulation;
use super::journal::Journal;
use super::workload::{queue_node, seat};

/// The most tasks: as many as a qspinlock can name.
pub(super) const TASKS_MAX: usize = 10_000;

/// The parameters of a mutex's sections that a simulation may vary.
#[derive(Clone, Debug)]
pub struct MutexSection {
    /// Work inside a section, in ns.
    pub section_ns: u64,
    /// Lines that a section reads and writes.
    pub lines: u64,
    /// Work between two sections, on average, in ns.
    pub think_ns: u64,
}

impl Default for MutexSection {
    fn default() -> Self {
        Self { section_ns: 200, lines: 2, think_ns: 1000 }
    }
}

impl MutexSection {
    /// What a section and the way to the next take at most, in ns, but for a score of transfers: thoughts of 20 times the mean
    /// come once in 10^9.
    pub(super) fn section_ns_max(&self, machine: &MachineSpec) -> u64 {
        let farthest_ns = machine.latency(Access::LoadMemory, machine.distances.len() - 1);
        let asleep_ns = 2.0 * machine.model.futex_call_ns + machine.model.wake_latency_ns;
        self.section_ns + 20 * self.think_ns + (asleep_ns + self.lines as f64 * farthest_ns) as u64
    }

    /// The machine as programs see it, which can lose their processor anywhere.
    pub(super) fn machine(&self, machine: &MachineSpec) -> MachineSpec {
        let mut machine = machine.clone();
        machine.model.preemption = Preemption::Anywhere;
        machine
    }

    /// Puts it on the machine, whose CPUs may be fewer than the tasks.
    pub(super) fn spawn<L: RawLock>(
        &self,
        machine: &Machine,
        simulation: &Simulation,
        journal: &Rc<Journal>,
        seeds: &mut impl Rng,
    ) {
        let spell = |ns| Spell { ns, turns: 0 };
        let params = Params {
            section: spell(self.section_ns),
            lines: self.lines as usize,
            think: spell(self.think_ns),
        };
        let shared = Rc::new(machine.place(0, LockedLines::<Sim, L>::default()));
        seat(machine, simulation, journal, seeds, &mut |mut seat| {
            let shared = Rc::clone(&shared);
            let mut node = queue_node::<L::Node>(machine, &seat);
            Box::new(move || {
                Worker::<Sim, L>::new(&shared, &mut node.0, params, seat.seed).run(&mut seat.scribe);
            })
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{Limits, Placement, Start, Workload, simulate};
    use nearlock_collection::subjects::Subject;
    use nearlock_core::settings::{NumaMode, Setting};

    fn cell(lock: &str, threads: usize) -> Simulation {
        Simulation {
            machine: MachineSpec::builtin("haswell-ex-4s").unwrap(),
            workload: Workload::MutexSection(MutexSection::default()),
            lock: Subject::named(lock).unwrap(),
            placement: Placement::default(),
            start: Start::default(),
            threads,
            seed: 5,
            settings: Setting::DEFAULTS,
            limits: Limits { warm_up_ns: 500_000, window_ns: 2_000_000, ..Limits::default() },
            lockstat: false,
        }
    }

    #[test]
    fn every_working_lock_has_its_sections() {
        for lock in Subject::working() {
            for threads in [1, 9, 40] {
                let cell = cell(lock.name, threads);
                let first = simulate(&cell).unwrap();
                assert_eq!(simulate(&cell).unwrap(), first);
                assert!(first.ops_per_us > 0.0 && first.workload == "mutex-section", "{first:?}");
            }
        }
    }

    /// A section of 200 ns and a think time of a microsecond, and one section after the other of many threads.
    #[test]
    fn alone_a_thread_mostly_thinks() {
        let ops = simulate(&cell("near-mutex", 1)).unwrap().ops_per_us;
        assert!((0.7..0.84).contains(&ops), "{ops}");
        let ops = simulate(&cell("near-mutex", 8)).unwrap().ops_per_us;
        assert!((1.0..5.0).contains(&ops), "{ops}");
    }

    /// From where it does most on, it goes on doing 0.7 of that at least. In as long a window as the command's: 288 tasks that begin together are
    /// slow for some ms.
    #[test]
    fn a_programs_mutex_does_not_collapse() {
        let ops = [1, 8, 36, 72, 142, 288].map(|tasks| {
            let cell = Simulation { limits: Limits::default(), ..cell("near-mutex", tasks) };
            simulate(&cell).unwrap().ops_per_us
        });
        let (peak, most) = ops.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap();
        assert!(ops[peak..].iter().all(|ops| *ops >= 0.7 * most), "{ops:?}");
    }

    /// What is touched in the sections stays on a node then.
    #[test]
    fn a_programs_mutex_prefers_waiters_of_its_numa_node() {
        let [off, on] = [NumaMode::Off, NumaMode::Auto].map(|mode| {
            let mut cell = Simulation { limits: Limits::default(), ..cell("near-mutex", 72) };
            cell.settings[Setting::NumaMode as usize] = mode as u64;
            simulate(&cell).unwrap()
        });
        assert!(on.ops_per_us > 1.3 * off.ops_per_us, "{on:?}, {off:?}");
        assert!(on.remote_transfers_per_op < 0.5 * off.remote_transfers_per_op, "{on:?}, {off:?}");
    }

    #[test]
    fn tasks_may_be_more_than_processors() {
        let kernels = ["linux-mutex", "linux-counter-mutex"];
        let peers =
            ["glibc-mutex", "std-mutex-protocol", "parking-lot-0.12-protocol", "parking-lot-0.13-protocol"];
        for lock in ["near-mutex"].iter().chain(&kernels).chain(&peers) {
            let mut cell = cell(lock, 300);
            cell.limits.window_ns = 10_000_000;
            let row = simulate(&cell).unwrap();
            assert!(row.ops_per_us > 0.1, "{row:?}");
        }
    }
}
