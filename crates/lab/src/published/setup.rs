//! Which simulations a cell stands for.

use crate::settings::Assignment;

/// A figure that a row needs: that of a variant, or that of what all variants are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    /// The variant of this index.
    Variant(usize),
    /// What [`Scale::PercentOver`](super::Scale::PercentOver) compares with.
    Base,
}

/// The simulations whose mean is one figure: for each of several numbers of threads, each with some
/// seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Name of the machine.
    pub machine: &'static str,
    /// Name of the workload.
    pub workload: &'static str,
    /// Name of the lock.
    pub lock: &'static str,
    /// What differs from the defaults.
    pub settings: Vec<Assignment>,
    /// The numbers of threads.
    pub threads: Vec<usize>,
}

impl Setup {
    /// Two of the numbers of threads, with the same mean if they are evenly spaced, or all if there
    /// are no more.
    pub fn few_threads(&self) -> Vec<usize> {
        let n = self.threads.len();
        if n <= 2 {
            return self.threads.clone();
        }
        vec![self.threads[n / 4], self.threads[n - 1 - n / 4]]
    }

    /// The middle one of the numbers of threads.
    pub fn one_number(&self) -> Vec<usize> {
        self.threads.get(self.threads.len() / 2).copied().into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_numbers_of_threads_have_the_mean_of_all() {
        let mean = |threads: &[usize]| threads.iter().sum::<usize>() as f64 / threads.len() as f64;
        for threads in [vec![7], vec![7, 8], (2..11).collect(), (11..21).collect::<Vec<_>>()] {
            let setup = Setup { machine: "", workload: "", lock: "", settings: vec![], threads };
            let few = setup.few_threads();
            assert!(few.len() <= 2);
            assert_eq!(mean(&few), mean(&setup.threads));
        }
    }
}
