//! A mutex of a program, as simulated.

use std::rc::Rc;

use nearlock_sim::Sim;
use nearlock_sim::spec::{MachineSpec, Preemption};
use nearlock_workload::mutex_section::{Away, LongSections, Params, Worker};
use nearlock_workload::sections::WorkLength;
use nearlock_workload::{Gate, LINES_MAX, LockedLines};

use crate::settings::fields::{Field, MILLISECOND_NS, Words};
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
    /// Share of long sections, in a thousand.
    pub long_permille: u64,
    /// The time for which the holder is away in a long section, in ns.
    pub long_ns: u64,
    /// What the holder does in this time.
    pub away: Away,
}

impl MutexSection {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        section_ns: 200,
        lines: 2,
        think_ns: 1000,
        long_permille: 0,
        long_ns: 100_000,
        away: Away::Sleep,
    };

    /// The longest time for which a holder is away, in ns.
    fn away_ns_max(&self) -> u64 {
        if self.long_permille > 0 { self.long_ns } else { 0 }
    }
}

impl Words for Away {
    const WORDS: &'static [(&'static str, Self)] = &[("sleep", Away::Sleep), ("compute", Away::Compute)];
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
        Field::number(
            "long-permille",
            "permille",
            0..=1000,
            |mutex| &mut mutex.long_permille,
            "Long sections in a thousand, chosen at random; 0: none. In a long section the holder is away after \
             its work.",
        ),
        Field::number(
            "long-ns",
            "ns",
            0..=100 * MILLISECOND_NS,
            |mutex| &mut mutex.long_ns,
            "The time for which the holder is away in a long section.",
        ),
        Field::word(
            "away",
            |mutex| &mut mutex.away,
            "What the holder does in this time: it sleeps, and its CPU is free; or it computes.",
        ),
    ];

    fn name(&self) -> &'static str {
        "mutex-section"
    }

    fn summary(&self) -> &'static str {
        "tasks share one mutex of a program: they think for an exponential time, lock, touch a few lines, \
         work, and release; some may sleep while they hold it; they can lose their CPU anywhere, and there \
         may be more of them than CPUs"
    }

    fn facts(&self, machine: &MachineSpec) -> Facts {
        let slow_ns = asleep_ns(machine) + self.lines as f64 * farthest_ns(machine);
        Facts {
            threads_max: TASKS_MAX,
            // A think time of 20 times the mean occurs once in 10^9 times.
            section_ns_max: self.section_ns + self.away_ns_max() + 20 * self.think_ns + slow_ns as u64,
            away_ns_max: self.away_ns_max(),
            preemption: Preemption::Anywhere,
            ..Facts::on(machine)
        }
    }

    /// There may be fewer CPUs than tasks.
    fn start<L: Gate>(&self, seating: &mut Seating<'_>) {
        let params = Params {
            section: WorkLength::of_ns(self.section_ns),
            lines: self.lines as usize,
            long: LongSections { permille: self.long_permille, ns: self.long_ns, away: self.away },
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

    fn with_long(lock: &str, threads: usize, long_permille: u64, away: Away) -> Simulation {
        let workload = MutexSection { long_permille, long_ns: 20_000, away, ..MutexSection::DEFAULT };
        Simulation { workload: Box::new(workload), ..cell(lock, threads) }
    }

    #[test]
    fn the_holder_may_be_away_with_every_algorithm() {
        for lock in Subject::working().filter(|lock| lock.positions.is_empty()) {
            for (threads, away) in [(9, Away::Sleep), (9, Away::Compute), (150, Away::Sleep)] {
                // A holder that has lost its CPU may be away for longer than the default limit.
                let mut cell = with_long(lock.name, threads, 100, away);
                cell.limits.livelock_ns = 100_000_000;
                let first = simulate(&cell).unwrap();
                assert_eq!(simulate(&cell).unwrap(), first);
                assert!(first.workload == "mutex-section", "{first:?}");
            }
        }
    }

    #[test]
    fn long_sections_take_their_time() {
        let ops = |permille, away| simulate(&with_long("near-mutex", 36, permille, away)).unwrap().ops_per_us;
        for away in [Away::Sleep, Away::Compute] {
            // With all sections long, the lock is free for a few us of 20 at most.
            let all = ops(1000, away);
            assert!((1.0 / 30.0..1.0 / 20.0).contains(&all), "{all} {away:?}");
            // A tenth of the sections take 20 us: at least 2 us for each on average.
            let tenth = ops(100, away);
            assert!((5.0 * all..0.5).contains(&tenth), "{tenth} {away:?}");
        }
    }

    /// Alone, a thread whose sections are all long is away for 20 us of 21.2.
    #[test]
    fn a_holder_that_sleeps_uses_no_cpu() {
        let cpu_ns = |away| simulate(&with_long("near-mutex", 1, 1000, away)).unwrap().cpu_ns_per_op;
        let (asleep, awake) = (cpu_ns(Away::Sleep), cpu_ns(Away::Compute));
        assert!((1_000.0..2_000.0).contains(&asleep), "{asleep}");
        assert!((awake - asleep - 20_000.0).abs() < 1_000.0, "{asleep} {awake}");
    }

    /// Waiters that only spin use the CPU for as long as the holder is away, and those that sleep
    /// leave it.
    #[test]
    fn spinning_waiters_use_cpu_while_the_holder_is_away() {
        let cpu_ns = |lock| simulate(&with_long(lock, 8, 1000, Away::Sleep)).unwrap().cpu_ns_per_op;
        let (spinning, sleeping) = (cpu_ns("mcs"), cpu_ns("std-mutex-protocol"));
        assert!(spinning > 6.0 * 20_000.0 && sleeping < 0.5 * spinning, "{spinning} {sleeping}");
    }

    /// A thread may be away for longer than the livelock checker waits for an acquisition.
    #[test]
    fn a_long_section_is_no_livelock() {
        for away in [Away::Sleep, Away::Compute] {
            let mut cell = with_long("near-mutex", 4, 1000, away);
            cell.limits.livelock_ns = 10_000;
            simulate(&cell).unwrap();
        }
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
