//! The speed of the simulator: `cargo bench -p nearlock-lab --bench simulator [-- LOCK...]`.
//!
//! Each point is a lock under locktorture on one processor of this machine. Its time is that of the
//! fastest of several runs, and includes the creation and the drop of machine and tasks. The points
//! are run alternately, so that a busy moment of the machine does not affect one of them only.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use nearlock_collection::subjects::{LockVisitor, SUBJECTS};
use nearlock_core::raw::RawTryLock;
use nearlock_sim::placement::Placement;
use nearlock_sim::spec::MachineSpec;
use nearlock_sim::{Counters, Machine, Pause, Sim};
use nearlock_workload::Observer;
use nearlock_workload::locktorture::{LongHolds, OwnLine, Params, ShortHolds, Stats, TortureState, Writer};

/// The number of runs of each point.
const ROUNDS: usize = 5;

/// Lock, threads, acquisitions.
const POINTS: [(&str, usize, u64); 6] = [
    ("qspinlock", 142, 100_000),
    ("cna-v13", 142, 100_000),
    ("qspinlock", 8, 100_000),
    ("ttas", 142, 1_000),
    ("ticket", 142, 2_000),
    ("mcs", 142, 100_000),
];

fn main() {
    let machine = MachineSpec::builtin("haswell-ex-4s").expect("a machine of the list");
    // `cargo bench` adds a flag of its own.
    let asked: Vec<_> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_asked =
        |(lock, ..): &(&str, usize, u64)| asked.is_empty() || asked.iter().any(|name| name == lock);
    let points: Vec<_> = POINTS.into_iter().filter(is_asked).collect();
    let mut fastest = vec![(Duration::MAX, Counters::default()); points.len()];
    for _ in 0..ROUNDS {
        for (fastest, &(lock, threads, acquisitions)) in fastest.iter_mut().zip(&points) {
            let subject = SUBJECTS.iter().find(|subject| subject.name == lock).expect("a listed lock");
            let begin = Instant::now();
            let counters = subject.visit::<Sim, _>(SimulatorBench { spec: &machine, threads, acquisitions });
            let took = begin.elapsed();
            if took < fastest.0 {
                *fastest = (took, counters);
            }
        }
    }
    println!("machine {}, locktorture, fastest of {ROUNDS} runs", machine.name);
    println!("lock       threads  acquisitions  line transfers  events      s  M transfers/s");
    for ((took, counters), (lock, threads, acquisitions)) in fastest.into_iter().zip(points) {
        let (transfers, events, s) = (counters.line_transfers, counters.events, took.as_secs_f64());
        let rate = transfers as f64 / s / 1e6;
        println!("{lock:10} {threads:7} {acquisitions:13} {transfers:15} {events:7} {s:6.3} {rate:14.2}");
    }
}

struct SimulatorBench<'a> {
    spec: &'a MachineSpec,
    threads: usize,
    acquisitions: u64,
}

impl LockVisitor<Sim> for SimulatorBench<'_> {
    type Output = Counters;

    fn visit<L: RawTryLock>(self) -> Counters {
        let machine = Machine::new(self.spec, 1);
        let shared = Rc::new(machine.place(0, TortureState::<Sim, L>::default()));
        let stats = Rc::new(machine.place_slice(0, self.threads, Stats::<Sim>::default));
        let left = Rc::new(Cell::new(self.acquisitions));
        for (thread, cpu) in Placement::Random.cpus(self.spec, self.threads, 1).into_iter().enumerate() {
            let mut node = machine.place(self.spec.numa_node_of_cpu(cpu), OwnLine(L::Node::default()));
            let (shared, stats, left) = (Rc::clone(&shared), Rc::clone(&stats), Rc::clone(&left));
            let params = Params {
                writers: self.threads as u64,
                short_holds: ShortHolds::V5_10,
                long_holds: LongHolds::LeftOut,
                section_ns: 75,
                think_ns: 15,
                tick_ns: 1_000_000,
                priority_percent: 0,
            };
            machine.spawn(cpu, 50 * thread as u64, move || {
                let seed = thread as u64;
                Writer::<Sim, L>::new(&shared, &stats[thread], &mut node.0, &params, seed)
                    .run(&mut Countdown(left));
            });
        }
        assert_eq!(machine.run_until(u64::MAX / 1000), Pause::Time, "the countdown halts the machine");
        machine.counters()
    }
}

/// Halts the machine after a given number of acquisitions.
struct Countdown(Rc<Cell<u64>>);

impl Observer for Countdown {
    fn acquired(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
        if self.0.get() == 0 {
            Machine::halt();
        }
    }
    fn goes_on(&mut self) -> bool {
        true
    }
}
