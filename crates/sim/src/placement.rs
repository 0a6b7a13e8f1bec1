//! Which CPUs the threads run on.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::spec::MachineSpec;

/// CPUs for `threads` threads, drawn by `seed`: a random choice of cores, one thread to a core for as long
/// as there are free ones, as a scheduler that balances load would do.
///
/// # Panics
///
/// If there are more threads than CPUs.
pub fn random(spec: &MachineSpec, threads: usize, seed: u64) -> Vec<usize> {
    assert!(threads <= spec.cpus(), "{threads} threads, but {} CPUs", spec.cpus());
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut cpus = Vec::with_capacity(spec.cpus());
    for thread in 0..spec.smt {
        let mut round: Vec<usize> =
            (0..spec.cpus()).filter(|cpu| spec.thread_of_cpu(*cpu) == thread).collect();
        shuffle(&mut round, &mut rng);
        cpus.append(&mut round);
    }
    cpus.truncate(threads);
    cpus
}

/// Fisher and Yates.
fn shuffle(items: &mut [usize], rng: &mut impl Rng) {
    for i in (1..items.len()).rev() {
        items.swap(i, (rng.next_u64() % (i as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_fill_before_their_second_threads_and_seeds_differ() {
        let spec = MachineSpec::builtin("haswell-ex-4s").unwrap();
        let cpus = random(&spec, 100, 7);
        let first: Vec<_> = cpus[..72].iter().map(|cpu| spec.core_of_cpu(*cpu)).collect();
        let mut cores = first.clone();
        cores.sort_unstable();
        cores.dedup();
        assert_eq!(cores.len(), 72, "a core each");
        assert_eq!(random(&spec, 100, 7), cpus);
        assert_ne!(random(&spec, 100, 8), cpus);
    }
}
