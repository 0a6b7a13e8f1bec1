//! A reader-writer lock of a program, as simulated.

use std::rc::Rc;

use nearlock_sim::Sim;
use nearlock_sim::spec::{MachineSpec, Preemption};
use nearlock_workload::rw_section::{Params, Worker};
use nearlock_workload::sections::WorkLength;
use nearlock_workload::{Gate, LINES_MAX, LockedLines};

use crate::settings::fields::Field;
use crate::simulate::facts::{Facts, asleep_ns, farthest_ns};
use crate::simulate::seating::{Seat, Seating};
use crate::simulate::workload::Workload;

/// The maximum number of tasks: as many as a qspinlock can name.
const TASKS_MAX: usize = 10_000;

/// Threads that share one reader-writer lock of a program.
#[derive(Clone, Debug)]
pub struct RwSection {
    /// Sections in 100 that only read.
    pub read_percent: u64,
    /// Work inside a section, in ns.
    pub section_ns: u64,
    /// Lines that a reading section reads.
    pub read_lines: u64,
    /// Lines that a writing section reads and writes.
    pub write_lines: u64,
    /// Mean work between two sections, in ns.
    pub think_ns: u64,
}

impl RwSection {
    /// The defaults. Except for the share of reads, they are those of `mutex-section`.
    pub const DEFAULT: Self =
        Self { read_percent: 99, section_ns: 200, read_lines: 2, write_lines: 2, think_ns: 1000 };
}

impl Workload for RwSection {
    const FIELDS: &'static [Field<Self>] = &[
        Field::percent(
            "read-percent",
            |section| &mut section.read_percent,
            "Percentage of sections that only read, chosen at random. For a lock without readers, reading \
             sections lock it exclusively.",
        ),
        Field::ns(
            "section-ns",
            |section| &mut section.section_ns,
            "Work inside a section, without its memory accesses.",
        ),
        Field::number(
            "read-lines",
            "lines",
            1..=LINES_MAX as u64,
            |section| &mut section.read_lines,
            "Lines that a reading section reads.",
        ),
        Field::number(
            "write-lines",
            "lines",
            1..=LINES_MAX as u64,
            |section| &mut section.write_lines,
            "Lines that a writing section reads and writes. The first ones are those that are read.",
        ),
        Field::ns(
            "think-ns",
            |section| &mut section.think_ns,
            "Mean work between two sections, exponentially distributed.",
        ),
    ];

    fn name(&self) -> &'static str {
        "rw-section"
    }

    fn summary(&self) -> &'static str {
        "tasks share one reader-writer lock of a program: they think for an exponential time, lock to read \
         or to write, access a few lines, work, and release; they can lose their CPU anywhere, and there \
         may be more of them than CPUs"
    }

    fn facts(&self, machine: &MachineSpec) -> Facts {
        let lines = self.read_lines.max(self.write_lines);
        let slow_ns = asleep_ns(machine) + lines as f64 * farthest_ns(machine);
        Facts {
            threads_max: TASKS_MAX,
            // A think time of 20 times the mean occurs once in 10^9 times.
            section_ns_max: self.section_ns + 20 * self.think_ns + slow_ns as u64,
            preemption: Preemption::Anywhere,
            ..Facts::on(machine)
        }
    }

    /// There may be fewer CPUs than tasks.
    fn start<L: Gate>(&self, seating: &mut Seating<'_>) {
        let params = Params {
            read_percent: self.read_percent,
            section: WorkLength::of_ns(self.section_ns),
            read_lines: self.read_lines as usize,
            write_lines: self.write_lines as usize,
            think: WorkLength::of_ns(self.think_ns),
        };
        let shared = Rc::new(seating.machine.place(0, LockedLines::<Sim, L>::default()));
        seating.seat(|Seat { seed, mut node, mut scribe, .. }| {
            let shared = Rc::clone(&shared);
            move || {
                let tally = Worker::new(&shared, &mut node.0, params, seed).run(&mut scribe);
                scribe.note_torn(tally.torn);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{Fault, Limits, Placement, Simulated, Simulation, Start, simulate};
    use nearlock_collection::subjects::Subject;
    use nearlock_core::settings::Setting;

    fn cell(lock: &str, threads: usize, read_percent: u64) -> Simulation {
        Simulation {
            machine: MachineSpec::builtin("haswell-ex-4s").unwrap(),
            workload: Box::new(RwSection { read_percent, ..RwSection::DEFAULT }),
            lock: Subject::named(lock).unwrap(),
            placement: Placement::default(),
            start: Start::default(),
            threads,
            seed: 5,
            settings: Setting::DEFAULTS,
            limits: Limits { warm_up_ns: 500_000, window_ns: 1_000_000, ..Limits::default() },
            lockstat: false,
        }
    }

    fn run(lock: &str, threads: usize, read_percent: u64) -> Simulated {
        simulate(&cell(lock, threads, read_percent)).unwrap()
    }

    #[test]
    fn every_algorithm_has_its_sections() {
        for lock in Subject::working().filter(|lock| lock.positions.is_empty()) {
            for (threads, read_percent) in [(1, 99), (9, 50), (40, 90)] {
                let first = run(lock.name, threads, read_percent);
                assert_eq!(run(lock.name, threads, read_percent), first);
                assert!(first.ops_per_us > 0.0 && first.workload == "rw-section", "{first:?}");
            }
        }
    }

    /// The sections that only read cost the same without a lock, and with readers that share no
    /// cache line. With readers that write to the lock they cost more.
    #[test]
    fn sections_that_only_read_are_compared_with_no_lock() {
        for threads in [1, 36, 144] {
            let of = |lock| {
                let limits = Limits { warm_up_ns: 2_000_000, ..cell(lock, threads, 100).limits };
                simulate(&Simulation { limits, ..cell(lock, threads, 100) }).unwrap().ops_per_us
            };
            let (none, near, counting) = (of("lock-none"), of("near-rwlock"), of("glibc-rwlock"));
            assert!((0.95 * none..=none).contains(&near), "{threads}: {near} {none}");
            assert!(threads == 1 || counting < 0.5 * none, "{threads}: {counting} {none}");
        }
    }

    #[test]
    fn readers_of_a_lock_without_readers_exclude_each_other() {
        let [mutex, rwlock] = ["mcs", "rwsem"].map(|lock| run(lock, 8, 100).ops_per_us);
        assert!(mutex < 0.7 * rwlock, "{mutex} {rwlock}");
    }

    /// Without a lock, or with one that does not keep readers out, sections that write are found to
    /// overlap.
    #[test]
    fn sections_that_write_need_a_lock() {
        let fault = |lock, read_percent| simulate(&cell(lock, 8, read_percent)).unwrap_err().fault;
        let is_exclusion = |fault| matches!(fault, Fault::Exclusion { .. } | Fault::TornRead);
        for lock in ["lock-none", "lock-busted-rw", "lock-busted"] {
            assert!(is_exclusion(fault(lock, 50)), "{lock}");
        }
    }

    #[test]
    fn what_a_section_consists_of_shows() {
        const PLAIN: RwSection = RwSection { read_percent: 90, ..RwSection::DEFAULT };
        let ops = |threads, workload: RwSection| {
            let workload = Box::new(workload);
            simulate(&Simulation { workload, ..cell("rwsem", threads, 90) }).unwrap().ops_per_us
        };
        assert!(ops(1, RwSection { think_ns: 4 * PLAIN.think_ns, ..PLAIN }) < 0.4 * ops(1, PLAIN));
        for changed in [
            RwSection { section_ns: 1000, ..PLAIN },
            RwSection { read_lines: 12, write_lines: 12, ..PLAIN },
            RwSection { write_lines: 16, ..PLAIN },
            RwSection { read_percent: 50, ..PLAIN },
        ] {
            assert!(ops(8, changed.clone()) < 0.95 * ops(8, PLAIN), "{changed:?}");
        }
    }

    #[test]
    fn tasks_may_be_more_than_processors() {
        let peers = ["glibc-rwlock", "std-rwlock-protocol", "parking-lot-0.13-rwlock-protocol"];
        for lock in ["near-rwlock", "rwsem"].iter().chain(&peers) {
            for read_percent in [99, 100] {
                let mut cell = cell(lock, 300, read_percent);
                // A writer may have lost its CPU for longer than the default limit.
                cell.limits = Limits { livelock_ns: 100_000_000, window_ns: 10_000_000, ..cell.limits };
                let row = simulate(&cell).unwrap();
                assert!(row.ops_per_us > 0.1, "{row:?}");
            }
        }
    }
}
