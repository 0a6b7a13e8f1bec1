//! The ping-pong of pairs, as a simulation makes it.

use std::rc::Rc;

use nearlock_core::raw::RawLock;
use nearlock_sim::placement::shuffle;
use nearlock_sim::spec::{Access, MachineSpec};
use nearlock_sim::{Machine, Sim};
use nearlock_workload::LockedLines;
use nearlock_workload::context1::{Pair, Params, Partner, Side};
use nearlock_workload::sections::Spell;
use rand_core::Rng;

use super::Simulation;
use super::journal::Journal;
use super::workload::{queue_node, seat_on};

/// Where the two of a pair run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partners {
    /// On one socket, as far as the threads can be so paired.
    Socket,
    /// Wherever the threads happen to be.
    Anywhere,
}

/// The parameters of context1 that a simulation may vary.
///
/// By default they are estimates that go together to make the published rate. The index of the stock kernel, 3715,
/// stands for 1.486 million round trips a second (an index of 10 is 4000), of 28 pairs: 9.4 us a hop.
/// With the sleep of the simulated machines the rest of a hop is thinking. One simulated lock could not
/// carry that rate, two can.
#[derive(Clone, Debug)]
pub struct Context1 {
    /// How many locks the pairs share; each pair takes one of them.
    pub locks: u64,
    /// Work inside a section, beside its lines, in ns.
    pub section_ns: u64,
    /// Lines that a section reads and writes.
    pub lines: u64,
    /// Work between being woken and locking, on average, in ns.
    pub think_ns: u64,
    /// Where the two of a pair run.
    pub partners: Partners,
}

impl Default for Context1 {
    fn default() -> Self {
        Self { locks: 2, section_ns: 100, lines: 2, think_ns: 4400, partners: Partners::Socket }
    }
}

impl Context1 {
    /// The lock of a thread: the pairs take the locks in turn.
    pub(super) fn lock_of(&self, thread: usize) -> usize {
        thread / 2 % self.locks as usize
    }

    /// What a section, a sleep and the way to the next section take at most, in ns, but for a score of
    /// transfers.
    pub(super) fn section_ns_max(&self, machine: &MachineSpec) -> u64 {
        let farthest_ns = machine.latency(Access::LoadMemory, machine.distances.len() - 1);
        let model = &machine.model;
        let asleep_ns = 2.0 * model.futex_call_ns + model.wake_latency_ns;
        self.section_ns + 2 * self.think_ns + (asleep_ns + self.lines as f64 * farthest_ns) as u64
    }

    /// The CPUs of the threads, of which each two are a pair.
    fn cpus(&self, simulation: &Simulation, seeds: &mut impl Rng) -> Vec<usize> {
        let Simulation { machine: spec, threads, placement, .. } = simulation;
        let mut cpus = placement.cpus(spec, *threads, seeds.next_u64());
        match self.partners {
            // Stable: within a socket the order stays as drawn.
            Partners::Socket => cpus.sort_by_key(|&cpu| spec.socket_of_cpu(cpu)),
            Partners::Anywhere => shuffle(&mut cpus, seeds),
        }
        cpus
    }

    /// Puts it on the machine, a thread to each CPU that the seed draws.
    pub(super) fn spawn<L: RawLock>(
        &self,
        machine: &Machine,
        simulation: &Simulation,
        journal: &Rc<Journal>,
        seeds: &mut impl Rng,
    ) {
        let (spec, cpus) = (&simulation.machine, self.cpus(simulation, seeds));
        let spell = |ns| Spell { ns, turns: 0 };
        let params = Params {
            section: spell(self.section_ns),
            lines: self.lines as usize,
            think: spell(self.think_ns),
        };
        let shared: Vec<_> = (0..self.locks as usize)
            .map(|lock| Rc::new(machine.place(lock % spec.sockets, LockedLines::<Sim, L>::default())))
            .collect();
        let pairs: Vec<_> = cpus
            .chunks(2)
            .map(|pair| Rc::new(machine.place(spec.socket_of_cpu(pair[0]), Pair::<Sim>::default())))
            .collect();
        seat_on(&cpus, machine, simulation, journal, seeds, &mut |mut seat| {
            let shared = Rc::clone(&shared[self.lock_of(seat.thread)]);
            let pair = Rc::clone(&pairs[seat.thread / 2]);
            let side = if seat.thread.is_multiple_of(2) { Side::First } else { Side::Second };
            let mut node = queue_node::<L::Node>(machine, &seat);
            Box::new(move || {
                let node = &mut node.0;
                let mut partner = Partner::<Sim, L>::new(&shared, &pair, side, node, params, seat.seed);
                partner.run(&mut seat.scribe);
            })
        });
    }
}
