//! Where the threads of a workload are put.

use std::rc::Rc;

use nearlock_sim::placement::{Placement, shuffle};
use nearlock_sim::spec::MachineSpec;
use nearlock_sim::{Machine, Placed};
use nearlock_workload::locktorture::OwnLine;
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::facts::Facts;
use super::journal::{Journal, Scribe};

/// In which order the threads of a simulation begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// The seed draws the order. In a first-come-first-served queue an order lasts for long, and
    /// after a minute it is no longer that of the beginning.
    #[default]
    Shuffled,
    /// The order of their numbers.
    InTurn,
}

/// A machine whose CPUs are to get the threads of a workload.
pub struct Seating<'a> {
    /// The machine, for what the threads share.
    pub machine: &'a Machine,
    /// Its description.
    pub spec: &'a MachineSpec,
    /// What there is to know of the workload on it.
    pub facts: Facts,
    /// How many threads there are to be.
    pub threads: usize,
    /// How they are spread over the machine.
    pub placement: Placement,
    /// In which order they begin.
    pub start: Start,
    /// Draws the CPUs, the order, and what the threads draw.
    pub seeds: &'a mut Xoshiro256PlusPlus,
    pub(super) journal: &'a Rc<Journal>,
}

/// What a thread begins with.
pub struct Seat<N> {
    /// Its number, from 0.
    pub thread: usize,
    /// What its draws follow from.
    pub seed: u64,
    /// A queue node on a line of its own.
    pub node: Placed<OwnLine<N>>,
    /// Observes it.
    pub(super) scribe: Scribe,
}

impl Seating<'_> {
    /// Puts the threads on the CPUs that the seed draws, or one after the other on all CPUs if they
    /// are more. What a thread does is made of its seat.
    pub(super) fn seat<N: Default, B: FnOnce() + 'static>(&mut self, body: impl FnMut(Seat<N>) -> B) {
        let cpus = self.draw_cpus_for_all();
        self.seat_on(&cpus, body);
    }

    fn draw_cpus_for_all(&mut self) -> Vec<usize> {
        let cpus = self.draw_cpus(self.spec.cpus().min(self.threads));
        cpus.iter().copied().cycle().take(self.threads).collect()
    }

    /// Draws `n` CPUs.
    pub(super) fn draw_cpus(&mut self, n: usize) -> Vec<usize> {
        self.placement.cpus(self.spec, n, self.seeds.next_u64())
    }

    /// Puts a thread on each of these CPUs.
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
