//! Threads that look up keys in a database, as simulated.

use std::rc::Rc;

use nearlock_sim::Sim;
use nearlock_sim::spec::MachineSpec;
use nearlock_workload::readrandom::{DatabaseState, Params, Reader};
use nearlock_workload::sections::WorkLength;
use nearlock_workload::{Gate, LINES_MAX};

use crate::lockstat::Class;
use crate::settings::fields::Field;
use crate::simulate::facts::{Facts, OtherLock, asleep_ns, farthest_ns};
use crate::simulate::seating::{Seat, Seating};
use crate::simulate::workload::Workload;

/// The database's mutex. The lock under test guards the futex in which its waiters sleep, and is
/// not observed itself.
const DATABASE: OtherLock = OtherLock { index: 0, name: "database", class: Class::Adaptive };

/// Threads that look up keys in a database. Waiters of the database's mutex sleep in a futex, which
/// the lock under test guards.
///
/// The sections were counted in LevelDB 1.23 (`benchmarks/leveldb/run`). The search, the section
/// and its lines are fitted to the published figures of stock at 1, 8 and 142 threads. So is the
/// placement of threads near each other. The call is estimated.
#[derive(Clone, Debug)]
pub struct ReadRandom {
    /// Mean work of a get outside its sections, in ns.
    pub search_ns: u64,
    /// Sections of the database's mutex in a get.
    pub sections: u64,
    /// Work inside a section, without its lines, in ns.
    pub section_ns: u64,
    /// Lines that a section reads and writes.
    pub lines: u64,
    /// The time of a call of the kernel, in ns, without its section of the bucket's lock, sleeping
    /// and waking.
    pub call_ns: u64,
}

impl ReadRandom {
    /// The defaults.
    pub const DEFAULT: Self = Self { search_ns: 1660, sections: 2, section_ns: 80, lines: 1, call_ns: 200 };
}

impl Workload for ReadRandom {
    const FIELDS: &'static [Field<Self>] = &[
        Field::ns(
            "search-ns",
            |read| &mut read.search_ns,
            "Mean work of a get outside of its sections. Each part is drawn from half to one and a half of \
             its mean. Fitted: published stock figure at one thread.",
        ),
        Field::number(
            "sections",
            "sections",
            1..=100,
            |read| &mut read.sections,
            "Sections of the database's mutex in a get. Counted in LevelDB.",
        ),
        Field::ns(
            "section-ns",
            |read| &mut read.section_ns,
            "Work inside a section, without its memory accesses.",
        ),
        Field::number(
            "lines",
            "lines",
            1..=LINES_MAX as u64,
            |read| &mut read.lines,
            "Lines that a section reads and writes.",
        ),
        Field::ns(
            "call-ns",
            |read| &mut read.call_ns,
            "Work of a futex call, without its section of the bucket's lock, sleeping and waking.",
        ),
    ];

    fn name(&self) -> &'static str {
        "readrandom"
    }

    fn summary(&self) -> &'static str {
        "LevelDB: threads look up keys of a database. Its mutex is that of the C library, whose waiters \
         sleep in a futex of the kernel that the lock guards"
    }

    fn facts(&self, machine: &MachineSpec) -> Facts {
        let awake_ns = self.section_ns + 2 * self.search_ns / self.sections + 2 * self.call_ns;
        let slow_ns = asleep_ns(machine) + self.lines as f64 * farthest_ns(machine);
        Facts { other: Some(DATABASE), section_ns_max: awake_ns + slow_ns as u64, ..Facts::on(machine) }
    }

    fn start<L: Gate>(&self, seating: &mut Seating<'_>) {
        let params = Params {
            search: WorkLength::of_ns(self.search_ns),
            sections: self.sections,
            section: WorkLength::of_ns(self.section_ns),
            lines: self.lines as usize,
            call: WorkLength::of_ns(self.call_ns),
        };
        let shared = Rc::new(seating.machine.place(0, DatabaseState::<Sim, L>::default()));
        seating.seat(|Seat { seed, mut node, mut scribe, .. }| {
            let shared = Rc::clone(&shared);
            move || Reader::new(&shared, &mut node.0, params, seed).run(&mut scribe)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{Limits, Placement, Simulated, Simulation, Start, simulate};
    use nearlock_collection::subjects::Subject;
    use nearlock_core::settings::Setting;

    fn cell(lock: &str, threads: usize) -> Simulation {
        Simulation {
            machine: MachineSpec::builtin("haswell-ex-4s").unwrap(),
            workload: Box::new(ReadRandom::DEFAULT),
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
        for lock in Subject::working().filter(|lock| lock.positions.is_empty()) {
            for threads in [1, 8, 40] {
                let cell = cell(lock.name, threads);
                let first = simulate(&cell).unwrap();
                assert_eq!(simulate(&cell).unwrap(), first);
                assert!(first.ops_per_us > 0.1 && first.workload == "readrandom", "{first:?}");
            }
        }
    }

    /// Only a thread that sleeps in the futex, or wakes another there, takes the lock.
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
        let ops = |threads, read: ReadRandom| {
            let workload = Box::new(read);
            simulate(&Simulation { workload, ..cell("qspinlock", threads) }).unwrap().ops_per_us
        };
        const PLAIN: ReadRandom = ReadRandom::DEFAULT;
        let slower = ops(1, ReadRandom { search_ns: 2 * PLAIN.search_ns, ..PLAIN });
        assert!((0.45..0.65).contains(&(slower / ops(1, PLAIN))));
        for changed in [
            ReadRandom { section_ns: 400, ..PLAIN },
            ReadRandom { lines: 6, ..PLAIN },
            ReadRandom { sections: 4, search_ns: 2 * PLAIN.search_ns, call_ns: 9000, ..PLAIN },
        ] {
            assert!(ops(8, changed.clone()) < 0.95 * ops(8, PLAIN), "{changed:?}");
        }
    }
}
