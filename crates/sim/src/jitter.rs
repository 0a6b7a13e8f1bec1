//! Random variation of times, and fractions in integers, since floating point would be slow.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::spec::ModelParameters;
use crate::task::Sibling;

/// A factor, in units of 2^-32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor(u64);

impl Factor {
    pub fn new(value: f64) -> Self {
        Self((value * 2_f64.powi(32)) as u64)
    }

    /// The product of this factor and `ps`, rounded down.
    pub fn of(self, ps: u64) -> u64 {
        ((u128::from(ps) * u128::from(self.0)) >> 32) as u64
    }
}

/// The random numbers of a machine.
pub struct Jitter {
    random: Xoshiro256PlusPlus,
    /// The smallest factor on a transfer's time, and the width of the range above it, indexed by
    /// what the core's other hardware thread does.
    transfers: [(Factor, Factor); 2],
    varies: bool,
}

impl Jitter {
    pub fn new(model: &ModelParameters, seed: u64) -> Self {
        let factors =
            |scale: f64| (Factor::new(scale * (1.0 - model.jitter)), Factor::new(scale * 2.0 * model.jitter));
        Self {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            transfers: [1.0, model.smt_miss_scale].map(factors),
            varies: model.jitter != 0.0 || model.smt_miss_scale != 1.0,
        }
    }

    /// A random factor on the time of a transfer. Real transfers vary, and take longer while the
    /// core's other hardware thread is busy.
    pub fn of_transfer(&mut self, sibling: Sibling) -> Option<Factor> {
        if !self.varies {
            return None;
        }
        let (least, spread) = self.transfers[sibling as usize];
        Some(Factor(least.0 + spread.of(self.random.next_u64() >> 32)))
    }

    /// A random number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.random.next_u64() % n
    }

    /// A random number.
    pub fn number(&mut self) -> u64 {
        self.random.next_u64()
    }

    /// A seed for a task's own random numbers, not zero.
    pub fn seed(&mut self) -> u32 {
        self.random.next_u32() | 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::MachineSpec;

    #[test]
    fn a_factor_rounds_down() {
        assert_eq!(Factor::new(0.5).of(7), 3);
        assert_eq!(Factor::new(1.0).of(u64::MAX >> 32), u64::MAX >> 32);
        assert_eq!(Factor::new(1.1).of(1_000), 1_099);
    }

    #[test]
    fn transfers_vary_by_the_width_around_the_scale() {
        let mut model = MachineSpec::builtin("haswell-ex-4s").unwrap().model;
        (model.jitter, model.smt_miss_scale) = (0.1, 2.0);
        let mut jitter = Jitter::new(&model, 1);
        for (sibling, range) in [(Sibling::Idle, 900..1_100), (Sibling::Busy, 1_800..2_200)] {
            let drawn: Vec<_> = (0..1000).map(|_| jitter.of_transfer(sibling).unwrap().of(1_000)).collect();
            assert!(drawn.iter().all(|ps| range.contains(ps)));
            let (least, most) = (drawn.iter().min().unwrap(), drawn.iter().max().unwrap());
            assert!(most - least > (range.end - range.start) * 9 / 10);
        }
        (model.jitter, model.smt_miss_scale) = (0.0, 1.0);
        assert_eq!(Jitter::new(&model, 1).of_transfer(Sibling::Busy), None);
    }
}
