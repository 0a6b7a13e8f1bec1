//! Threads that look up keys of a database, as a simulation makes them.

use std::rc::Rc;

use nearlock_core::raw::RawLock;
use nearlock_sim::spec::{Access, MachineSpec};
use nearlock_sim::{Machine, Sim};
use nearlock_workload::readrandom::{Params, Reader, Shared};
use nearlock_workload::sections::Spell;
use rand_core::Rng;

use super::Simulation;
use super::journal::Journal;
use super::workload::{queue_node, seat};

/// The parameters of readrandom that a simulation may vary.
///
/// Counted in LevelDB 1.23 (`benchmarks/leveldb/run`): the sections. Fitted to the published figures of stock at 1, 8 and 142 threads:
/// the search, the section and its lines, and that threads are near each other. Estimated: the call.
#[derive(Clone, Debug)]
pub struct ReadRandom {
    /// Work of a get outside of its sections, on average, in ns.
    pub search_ns: u64,
    /// Sections of the database's mutex in a get.
    pub sections: u64,
    /// Work inside a section, beside its lines, in ns.
    pub section_ns: u64,
    /// Lines that a section reads and writes.
    pub lines: u64,
    /// What a call of the kernel takes, beside its section of the bucket's lock, sleeping and waking, in ns.
    pub call_ns: u64,
}

impl Default for ReadRandom {
    fn default() -> Self {
        Self { search_ns: 1660, sections: 2, section_ns: 80, lines: 1, call_ns: 200 }
    }
}

impl ReadRandom {
    /// What a section, a sleep and the way to the next section take at most, in ns, but for a score of transfers.
    pub(super) fn section_ns_max(&self, machine: &MachineSpec) -> u64 {
        let farthest_ns = machine.latency(Access::LoadMemory, machine.distances.len() - 1);
        let model = &machine.model;
        let asleep_ns = 2.0 * model.futex_call_ns + model.wake_latency_ns;
        let awake_ns = self.section_ns + 2 * self.search_ns / self.sections + 2 * self.call_ns;
        awake_ns + (asleep_ns + self.lines as f64 * farthest_ns) as u64
    }

    /// Puts it on the machine, a thread to each CPU that the seed draws.
    pub(super) fn spawn<L: RawLock>(
        &self,
        machine: &Machine,
        simulation: &Simulation,
        journal: &Rc<Journal>,
        seeds: &mut impl Rng,
    ) {
        let spell = |ns| Spell { ns, turns: 0 };
        let params = Params {
            search: spell(self.search_ns),
            sections: self.sections,
            section: spell(self.section_ns),
            lines: self.lines as usize,
            call: spell(self.call_ns),
        };
        let shared = Rc::new(machine.place(0, Shared::<Sim, L>::default()));
        seat(machine, simulation, journal, seeds, &mut |mut seat| {
            let shared = Rc::clone(&shared);
            let mut node = queue_node::<L::Node>(machine, &seat);
            Box::new(move || {
                let node = &mut node.0;
                Reader::<Sim, L>::new(&shared, node, params, seat.seed).run(&mut seat.scribe);
            })
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{Limits, Placement, Simulated, Start, Workload, simulate};
    use nearlock_collection::subjects::Subject;
    use nearlock_core::settings::Setting;

    fn cell(lock: &str, threads: usize) -> Simulation {
        Simulation {
            machine: MachineSpec::builtin("haswell-ex-4s").unwrap(),
            workload: Workload::ReadRandom(ReadRandom::default()),
            lock: Subject::named(lock).unwrap(),
            placement: Placement::Near,
            start: Start::default(),
            threads,
            seed: 5,
            settings: Setting::DEFAULTS,
            limits: Limits { warm_up_ns: 200_000, window_ns: 1_000_000, ..Limits::default() },
            lockstat: false,
        }
    }

    #[test]
    fn keys_are_looked_up_whichever_lock_guards_the_futex() {
        for lock in Subject::working() {
            for threads in [1, 8, 40] {
                let cell = cell(lock.name, threads);
                let first = simulate(&cell).unwrap();
                assert_eq!(simulate(&cell).unwrap(), first);
                assert!(first.ops_per_us > 0.1 && first.workload == "readrandom", "{first:?}");
            }
        }
    }

    /// Only who sleeps in the futex, or wakes somebody there, meets the lock.
    #[test]
    fn the_lock_matters_to_many_threads_only() {
        let ops = |lock, threads| {
            let limits = Limits { warm_up_ns: 1_000_000, window_ns: 4_000_000, ..Limits::default() };
            simulate(&Simulation { limits, ..cell(lock, threads) }).unwrap().ops_per_us
        };
        assert_eq!(ops("qspinlock", 1), ops("cna-v13", 1));
        assert!(ops("cna-v13", 72) > 1.3 * ops("qspinlock", 72));
    }

    #[test]
    fn the_mutex_of_the_database_is_what_lockstat_shows() {
        let cell = Simulation { lockstat: true, ..cell("qspinlock", 16) };
        let Simulated { lockstat, .. } = simulate(&cell).unwrap();
        assert_eq!(lockstat.unwrap()[0].name, "database");
    }

    #[test]
    fn what_a_get_consists_of_shows() {
        let ops = |threads, read| {
            let workload = Workload::ReadRandom(read);
            simulate(&Simulation { workload, ..cell("qspinlock", threads) }).unwrap().ops_per_us
        };
        let plain = ReadRandom::default;
        let slower = ops(1, ReadRandom { search_ns: 2 * plain().search_ns, ..plain() });
        assert!((0.45..0.65).contains(&(slower / ops(1, plain()))));
        for changed in [
            ReadRandom { section_ns: 400, ..plain() },
            ReadRandom { lines: 6, ..plain() },
            ReadRandom { sections: 4, search_ns: 2 * plain().search_ns, call_ns: 9000, ..plain() },
        ] {
            assert!(ops(8, changed.clone()) < 0.95 * ops(8, plain()), "{changed:?}");
        }
    }
}
