//! The ping-pong of pairs, as simulated.

use std::rc::Rc;

use nearlock_sim::Sim;
use nearlock_sim::placement::shuffle;
use nearlock_sim::spec::MachineSpec;
use nearlock_workload::context1::{Pair, Params, Partner, Side};
use nearlock_workload::sections::WorkLength;
use nearlock_workload::{Gate, LINES_MAX, LockedLines};

use crate::settings::fields::{Field, Words};
use crate::simulate::facts::{Facts, asleep_ns, farthest_ns};
use crate::simulate::seating::{Seat, Seating};
use crate::simulate::workload::Workload;

/// Where the two threads of a pair run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partners {
    /// On one socket, for as many pairs as possible.
    Socket,
    /// On any CPUs.
    Anywhere,
}

/// Pairs of threads that alternately wake each other.
///
/// The defaults are estimates that together give the published rate. The index of the stock kernel,
/// 3715, means 1.486 million round trips a second (an index of 10 is 4000). With 28 pairs this is
/// 9.4 us per hop. The part of a hop that the simulated machines do not spend asleep is think time.
/// One simulated lock could not reach this rate, but two can.
#[derive(Clone, Debug)]
pub struct Context1 {
    /// The number of locks that the pairs share. Each pair takes one of them.
    pub locks: u64,
    /// Work inside a section, without its lines, in ns.
    pub section_ns: u64,
    /// Lines that a section reads and writes.
    pub lines: u64,
    /// Mean work between wake-up and lock, in ns.
    pub think_ns: u64,
    /// Where the two threads of a pair run.
    pub partners: Partners,
}

impl Context1 {
    /// The defaults.
    pub const DEFAULT: Self =
        Self { locks: 2, section_ns: 100, lines: 2, think_ns: 4400, partners: Partners::Socket };

    /// The CPUs of the threads. Each two neighbours are a pair.
    fn cpus(&self, seating: &mut Seating<'_>) -> Vec<usize> {
        let mut cpus = seating.draw_cpus(seating.threads);
        match self.partners {
            // The sort is stable: within a socket the random order is kept.
            Partners::Socket => cpus.sort_by_key(|&cpu| seating.spec.socket_of_cpu(cpu)),
            Partners::Anywhere => shuffle(&mut cpus, seating.seeds),
        }
        cpus
    }
}

impl Words for Partners {
    const WORDS: &'static [(&'static str, Self)] =
        &[("socket", Partners::Socket), ("anywhere", Partners::Anywhere)];
}

impl Workload for Context1 {
    const FIELDS: &'static [Field<Self>] = &[
        Field::word(
            "partners",
            |context1| &mut context1.partners,
            "The threads of a pair run on one socket, since the scheduler wakes a sleeper near its waker; or \
             anywhere.",
        ),
        Field::number(
            "locks",
            "locks",
            1..=1024,
            |context1| &mut context1.locks,
            "Number of locks that the pairs share. Each pair takes one of them. Two is the least that \
             permits the published rate.",
        ),
        Field::ns(
            "section-ns",
            |context1| &mut context1.section_ns,
            "Instructions inside a section, without its memory accesses. Estimated for an insertion \
             into a list.",
        ),
        Field::number(
            "lines",
            "lines",
            1..=LINES_MAX as u64,
            |context1| &mut context1.lines,
            "Shared lines that a section reads and writes. Estimated: a list's head and a neighbour.",
        ),
        Field::ns(
            "think-ns",
            |context1| &mut context1.think_ns,
            "Mean instructions between the wake-up and the lock, drawn from half to one and a half of \
             this. From the published rate of round trips, with the machine's sleep.",
        ),
    ];

    fn name(&self) -> &'static str {
        "context1"
    }

    fn summary(&self) -> &'static str {
        "pairs of threads that wake each other in turn, and take a lock of all pairs at each hop: \
         UnixBench's pipe-based context switching"
    }

    /// The locks are assigned to the pairs one after the other.
    fn facts(&self, machine: &MachineSpec) -> Facts {
        let slow_ns = asleep_ns(machine) + self.lines as f64 * farthest_ns(machine);
        Facts {
            group: 2,
            spread: self.locks as usize,
            section_ns_max: self.section_ns + 2 * self.think_ns + slow_ns as u64,
            ..Facts::on(machine)
        }
    }

    fn start<L: Gate>(&self, seating: &mut Seating<'_>) {
        let (facts, machine, spec) = (seating.facts, seating.machine, seating.spec);
        let cpus = self.cpus(seating);
        let params = Params {
            section: WorkLength::of_ns(self.section_ns),
            lines: self.lines as usize,
            think: WorkLength::of_ns(self.think_ns),
        };
        let shared: Vec<_> = (0..self.locks as usize)
            .map(|lock| Rc::new(machine.place(lock % spec.sockets, LockedLines::<Sim, L>::default())))
            .collect();
        let pairs: Vec<_> = cpus
            .chunks(2)
            .map(|pair| Rc::new(machine.place(spec.socket_of_cpu(pair[0]), Pair::<Sim>::default())))
            .collect();
        seating.seat_on(&cpus, |Seat { thread, seed, mut node, mut scribe }| {
            let (shared, pair) = (Rc::clone(&shared[facts.lock_of(thread)]), Rc::clone(&pairs[thread / 2]));
            let side = if thread.is_multiple_of(2) { Side::First } else { Side::Second };
            move || Partner::new(&shared, &pair, side, &mut node.0, params, seed).run(&mut scribe)
        });
    }
}
