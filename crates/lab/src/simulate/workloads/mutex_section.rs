//! A mutex of a program, as simulated.

use std::rc::Rc;

use nearlock_sim::Sim;
use nearlock_sim::spec::{MachineSpec, Preemption};
use nearlock_workload::mutex_section::{Params, Worker};
use nearlock_workload::sections::WorkLength;
use nearlock_workload::{Gate, LINES_MAX, LockedLines};

use crate::settings::fields::Field;
use crate::simulate::facts::{Facts, asleep_ns, farthest_ns};
use crate::simulate::seating::{Seat, Seating};
use crate::simulate::workload::Workload;

/// The maximum number of tasks: as many as a qspinlock can name.
const TASKS_MAX: usize = 10_000;

/// Threads that share one mutex of a program.
#[derive(Clone, Debug)]
pub struct MutexSection {
    /// Work inside a section, in ns.
    pub section_ns: u64,
    /// Lines that a section reads and writes.
    pub lines: u64,
    /// Mean work between two sections, in ns.
    pub think_ns: u64,
}

impl MutexSection {
    /// The defaults.
    pub const DEFAULT: Self = Self { section_ns: 200, lines: 2, think_ns: 1000 };
}

impl Workload for MutexSection {
    const FIELDS: &'static [Field<Self>] = &[
        Field::ns(
            "section-ns",
            |mutex| &mut mutex.section_ns,
            "Work inside a section, without its memory accesses.",
        ),
        Field::number(
            "lines",
            "lines",
            1..=LINES_MAX as u64,
            |mutex| &mut mutex.lines,
            "Lines that a section reads and writes.",
        ),
        Field::ns(
            "think-ns",
            |mutex| &mut mutex.think_ns,
            "Mean work between two sections, exponentially distributed.",
        ),
    ];

    fn name(&self) -> &'static str {
        "mutex-section"
    }

    fn summary(&self) -> &'static str {
        "tasks share one mutex of a program: they think for an exponential time, lock, touch a few lines, \
         work, and release; they can lose their CPU anywhere, and there may be more of them than CPUs"
    }

    fn facts(&self, machine: &MachineSpec) -> Facts {
        let slow_ns = asleep_ns(machine) + self.lines as f64 * farthest_ns(machine);
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
            section: WorkLength::of_ns(self.section_ns),
            lines: self.lines as usize,
            think: WorkLength::of_ns(self.think_ns),
        };
        let shared = Rc::new(seating.machine.place(0, LockedLines::<Sim, L>::default()));
        seating.seat(|Seat { seed, mut node, mut scribe, .. }| {
            let shared = Rc::clone(&shared);
            move || Worker::new(&shared, &mut node.0, params, seed).run(&mut scribe)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{Limits, Placement, Simulation, Start, simulate};
    use nearlock_collection::subjects::Subject;
    use nearlock_core::settings::{NumaMode, Setting};

    fn cell(lock: &str, threads: usize) -> Simulation {
        Simulation {
            machine: MachineSpec::builtin("haswell-ex-4s").unwrap(),
            workload: Box::new(MutexSection::DEFAULT),
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
    fn every_algorithm_has_its_sections() {
        for lock in Subject::working().filter(|lock| lock.positions.is_empty()) {
            for threads in [1, 9, 40] {
                let cell = cell(lock.name, threads);
                let first = simulate(&cell).unwrap();
                assert_eq!(simulate(&cell).unwrap(), first);
                assert!(first.ops_per_us > 0.0 && first.workload == "mutex-section", "{first:?}");
            }
        }
    }

    /// One thread with a section of 200 ns and a think time of a microsecond. With several threads,
    /// sections follow one another without a gap.
    #[test]
    fn alone_a_thread_mostly_thinks() {
        let ops = simulate(&cell("near-mutex", 1)).unwrap().ops_per_us;
        assert!((0.7..0.84).contains(&ops), "{ops}");
        let ops = simulate(&cell("near-mutex", 8)).unwrap().ops_per_us;
        assert!((1.0..5.0).contains(&ops), "{ops}");
    }

    /// Above the number of tasks with the highest throughput, at least 0.7 of that throughput
    /// remains. The window is as long as that of the command, since 288 tasks that begin together
    /// are slow for some ms.
    #[test]
    fn a_programs_mutex_does_not_collapse() {
        let ops = [1, 8, 36, 72, 142, 288].map(|tasks| {
            let cell = Simulation { limits: Limits::default(), ..cell("near-mutex", tasks) };
            simulate(&cell).unwrap().ops_per_us
        });
        let (peak, most) = ops.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap();
        assert!(ops[peak..].iter().all(|ops| *ops >= 0.7 * most), "{ops:?}");
    }

    /// The lines that the sections touch then stay on a NUMA node.
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
