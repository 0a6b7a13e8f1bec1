//! The simulations for a cell.

use crate::settings::Assignment;

/// A figure that a row needs: that of a variant, or that of the common base.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    /// The variant with this index.
    Variant(usize),
    /// The base of [`Scale::PercentOver`](super::Scale::PercentOver).
    Base,
}

/// The simulations whose mean is a figure: for each of several numbers of threads, some seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The name of the machine.
    pub machine: &'static str,
    /// The name of the workload.
    pub workload: &'static str,
    /// The name of the lock.
    pub lock: &'static str,
    /// Settings that differ from the defaults.
    pub settings: Vec<Assignment>,
    /// The numbers of threads.
    pub threads: Vec<usize>,
}

impl Setup {
    /// At most two of the numbers of threads. If the numbers are evenly spaced, the two have the
    /// same mean as all.
    pub fn few_threads(&self) -> Vec<usize> {
        let n = self.threads.len();
        if n <= 2 {
            return self.threads.clone();
        }
        vec![self.threads[n / 4], self.threads[n - 1 - n / 4]]
    }

    /// The middle number of threads.
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
