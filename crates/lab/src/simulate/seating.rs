//! The placement of a workload's threads.

use std::rc::Rc;

use nearlock_sim::placement::{Placement, shuffle};
use nearlock_sim::spec::MachineSpec;
use nearlock_sim::{Machine, Placed};
use nearlock_workload::locktorture::OwnLine;
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::facts::Facts;
use super::journal::{Journal, Scribe};

/// The order in which the threads of a simulation begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// An order chosen by the seed. A first-come-first-served queue keeps an order for long. After
    /// a minute it is no longer the order of the beginning.
    #[default]
    Shuffled,
    /// The order of their numbers.
    InTurn,
}

/// A machine whose CPUs will get the threads of a workload.
pub struct Seating<'a> {
    /// The machine, for memory that the threads share.
    pub machine: &'a Machine,
    /// Its description.
    pub spec: &'a MachineSpec,
    /// The facts about the workload on this machine.
    pub facts: Facts,
    /// The number of threads.
    pub threads: usize,
    /// How the threads are spread over the machine.
    pub placement: Placement,
    /// The order in which they begin.
    pub start: Start,
    /// The random numbers for the CPUs, the order, and the seeds of the threads.
    pub seeds: &'a mut Xoshiro256PlusPlus,
    pub(super) journal: &'a Rc<Journal>,
}

/// The values with which a thread begins.
pub struct Seat<N> {
    /// The thread's number, from 0.
    pub thread: usize,
    /// The seed of the thread's random numbers.
    pub seed: u64,
    /// A queue node on a line of its own.
    pub node: Placed<OwnLine<N>>,
    /// The thread's observer.
    pub(super) scribe: Scribe,
}

impl Seating<'_> {
    /// Places the threads on CPUs chosen by the seed. If there are more threads than CPUs, they go
    /// to all CPUs one after the other. `body` makes a thread's code from its seat.
    pub(super) fn seat<N: Default, B: FnOnce() + 'static>(&mut self, body: impl FnMut(Seat<N>) -> B) {
        let cpus = self.draw_cpus_for_all();
        self.seat_on(&cpus, body);
    }

    fn draw_cpus_for_all(&mut self) -> Vec<usize> {
        let cpus = self.draw_cpus(self.spec.cpus().min(self.threads));
        cpus.iter().copied().cycle().take(self.threads).collect()
    }

    /// Chooses `n` CPUs.
    pub(super) fn draw_cpus(&mut self, n: usize) -> Vec<usize> {
        self.placement.cpus(self.spec, n, self.seeds.next_u64())
    }

    /// Places a thread on each of these CPUs.
    pub(super) fn seat_on<N: Default, B: FnOnce() + 'static>(
        &mut self,
        cpus: &[usize],
        mut body: impl FnMut(Seat<N>) -> B,
    ) {
        self.seat_boxed(cpus, &mut |seat| Box::new(body(seat)));
    }

    /// As [`seat_on`](Self::seat_on), compiled once for all bodies.
    fn seat_boxed<N: Default>(&mut self, cpus: &[usize], body: &mut dyn FnMut(Seat<N>) -> Box<dyn FnOnce()>) {
        let mut turns: Vec<usize> = (0..cpus.len()).collect();
        if self.start == Start::Shuffled {
            shuffle(&mut turns, self.seeds);
        }
        for (thread, (&cpu, turn)) in cpus.iter().zip(turns).enumerate() {
            let numa_node = self.spec.numa_node_of_cpu(cpu);
            let scribe = Scribe::new(self.journal, thread, numa_node);
            let seed = self.seeds.next_u64();
            let node = self.machine.place(numa_node, OwnLine(N::default()));
            let begins_ns = self.facts.start_ns * turn as u64;
            self.machine.spawn(cpu, begins_ns, body(Seat { thread, seed, node, scribe }));
        }
    }
}
