//! The assignment of threads to CPUs.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::spec::MachineSpec;

/// How threads are spread over the machine. Sockets and cores are chosen at random, except with
/// `Near`. A core gets a second thread only when all usable cores have one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// On one socket more than the fewest that have a hardware thread for each thread. Sockets are
    /// filled one after the other, so that threads with neighbouring numbers are close to each
    /// other. This models a scheduler that places new threads where they are created as long as a
    /// CPU is idle there. Later it sends some of them to an idle socket.
    #[default]
    Filled,
    /// On the fewest sockets that give each thread a core of its own, but on at least two.
    Gathered,
    /// On all cores alike.
    Random,
    /// On the first cores. Threads with a core each cannot be nearer to each other.
    Near,
}

impl Placement {
    /// CPUs for `threads` threads, chosen by `seed`. If there are more threads than CPUs, they are
    /// placed in rounds. Each CPU gets the same number of threads, except that some get one more.
    /// These are chosen at random, or are the first with [`Near`](Self::Near).
    pub fn cpus(self, spec: &MachineSpec, threads: usize, seed: u64) -> Vec<usize> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        if threads <= spec.cpus() {
            return self.round(spec, threads, &mut rng);
        }
        let mut cpus = Vec::with_capacity(threads.next_multiple_of(spec.cpus()));
        while cpus.len() < threads {
            let mut round = self.round(spec, spec.cpus(), &mut rng);
            if threads - cpus.len() < spec.cpus() && self != Self::Near {
                shuffle(&mut round, &mut rng);
            }
            cpus.append(&mut round);
        }
        cpus.truncate(threads);
        cpus
    }

    /// CPUs for threads that each get one of their own.
    fn round(self, spec: &MachineSpec, threads: usize, rng: &mut impl Rng) -> Vec<usize> {
        let mut sockets: Vec<usize> = (0..spec.sockets).collect();
        let sockets_used = match self {
            Self::Filled => threads.div_ceil(spec.cores_per_socket * spec.smt) + 1,
            Self::Gathered => threads.div_ceil(spec.cores_per_socket).max(2),
            Self::Random | Self::Near => spec.sockets,
        };
        if sockets_used < spec.sockets {
            shuffle(&mut sockets, rng);
            sockets.truncate(sockets_used);
        }
        let mut cpus = Vec::with_capacity(spec.cpus());
        for thread in 0..spec.smt {
            let usable = |cpu: &usize| {
                spec.thread_of_cpu(*cpu) == thread && sockets.contains(&spec.socket_of_cpu(*cpu))
            };
            let mut round: Vec<usize> = (0..spec.cpus()).filter(usable).collect();
            if self != Self::Near {
                shuffle(&mut round, rng);
            }
            cpus.append(&mut round);
        }
        cpus.truncate(threads);
        if self == Self::Filled {
            cpus.sort_by_key(|&cpu| spec.socket_of_cpu(cpu));
        }
        cpus
    }
}

/// Shuffles items at random. Source: Fisher and Yates.
pub fn shuffle(items: &mut [usize], rng: &mut impl Rng) {
    for i in (1..items.len()).rev() {
        items.swap(i, (rng.next_u64() % (i as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn haswell() -> MachineSpec {
        MachineSpec::builtin("haswell-ex-4s").unwrap()
    }

    fn distinct(items: impl Iterator<Item = usize>) -> usize {
        let mut items: Vec<_> = items.collect();
        items.sort_unstable();
        items.dedup();
        items.len()
    }

    #[test]
    fn cores_fill_before_their_second_threads_and_seeds_differ() {
        let spec = haswell();
        for placement in [Placement::Gathered, Placement::Random] {
            let cpus = placement.cpus(&spec, 100, 7);
            assert_eq!(distinct(cpus[..72].iter().map(|cpu| spec.core_of_cpu(*cpu))), 72, "a core each");
            assert_eq!(placement.cpus(&spec, 100, 7), cpus);
            assert_ne!(placement.cpus(&spec, 100, 8), cpus);
            assert_eq!(distinct(placement.cpus(&spec, spec.cpus(), 7).into_iter()), spec.cpus());
        }
    }

    #[test]
    fn near_threads_have_the_first_cores_whatever_the_seed() {
        let spec = haswell();
        for seed in 0..9 {
            let cpus = Placement::Near.cpus(&spec, 3, seed);
            assert_eq!(cpus, [0, spec.smt, 2 * spec.smt]);
        }
        let all = Placement::Near.cpus(&spec, spec.cpus(), 1);
        assert_eq!(distinct(all.iter().copied()), spec.cpus());
        assert_eq!(all[spec.cores()], 1, "the second thread of the first core");
    }

    #[test]
    fn more_threads_than_cpus_are_spread_evenly() {
        let spec = haswell();
        for placement in [Placement::Filled, Placement::Gathered, Placement::Random, Placement::Near] {
            let cpus = placement.cpus(&spec, 2 * 144 + 40, 7);
            let on = |cpu: usize| cpus.iter().filter(|&&other| other == cpu).count();
            assert!((0..144).all(|cpu| (2..=3).contains(&on(cpu))), "{placement:?}");
            let sockets = distinct(cpus[2 * 144..].iter().map(|&cpu| spec.socket_of_cpu(cpu)));
            let first_cores = if placement == Placement::Near { 3 } else { 4 };
            assert_eq!(sockets, first_cores, "{placement:?}");
        }
    }

    #[test]
    fn filled_sockets_come_one_after_the_other_and_cores_first_within_each() {
        let spec = haswell();
        for (threads, sockets) in [(2, 1..=2), (36, 2..=2), (72, 3..=3), (73, 4..=4), (142, 4..=4)] {
            for seed in 1..9 {
                let cpus = Placement::Filled.cpus(&spec, threads, seed);
                let places: Vec<_> = cpus.iter().map(|&cpu| spec.socket_of_cpu(cpu)).collect();
                assert!(places.is_sorted(), "{threads}: {places:?}");
                assert!(sockets.contains(&distinct(places.into_iter())), "{threads}");
                let cores = distinct(cpus.iter().map(|&cpu| spec.core_of_cpu(cpu)));
                assert_eq!(cores, threads.min(18 * (threads.div_ceil(36) + 1).min(4)), "{threads}");
            }
        }
        let both = (1..=16).filter(|&seed| {
            let cpus = Placement::Filled.cpus(&spec, 2, seed);
            spec.socket_of_cpu(cpus[0]) == spec.socket_of_cpu(cpus[1])
        });
        assert!((1..16).contains(&both.count()), "two threads share a socket in some runs");
    }

    #[test]
    fn gathered_threads_use_two_sockets_until_those_have_no_core_left() {
        let spec = haswell();
        for (threads, sockets) in [(16, 2), (36, 2), (37, 3), (54, 3), (55, 4), (144, 4)] {
            let cpus = Placement::Gathered.cpus(&spec, threads, 3);
            assert_eq!(distinct(cpus.into_iter().map(|cpu| spec.socket_of_cpu(cpu))), sockets, "{threads}");
        }
        let single = MachineSpec::builtin("graviton3").unwrap();
        assert_eq!(Placement::Gathered.cpus(&single, 64, 1).len(), 64);
    }
}
