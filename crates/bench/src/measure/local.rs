//! Operations inside a core.

use std::array;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use nearlock_core::platform::Clock;
use nearlock_os::Os;

use super::MeasureError;
use super::threads::{Conditions, Rank, on_cpu};

/// Samples of one core. All are floors: interference only adds to them.
#[derive(Clone, Debug, Default)]
pub struct Local {
    /// A load that needs the previous load's value, in ns.
    pub l1: Vec<f64>,
    /// An atomic addition to the same word as the previous one, in ns.
    pub atomic_owned: Vec<f64>,
    /// A pause instruction, in ns.
    pub pause: Vec<f64>,
    /// A clock cycle, in ns.
    pub cycle: Vec<f64>,
}

/// Operations of a sample. They take some microseconds, far more than reading the clock and far
/// less than a time slice.
const OPERATIONS: usize = 4096;
const PAUSES: usize = 256;
/// Words of the chain of loads: 2 KiB.
const WORDS: usize = 256;

/// Takes `samples` samples on this CPU.
pub fn measure(cpu: u32, samples: usize, conditions: Conditions) -> Result<Local, MeasureError> {
    let Conditions { clock_ns, priority } = conditions;
    on_cpu(cpu, Rank::Foremost, priority, || {
        let mut local = Local::default();
        let chain: [AtomicUsize; WORDS] = array::from_fn(|word| AtomicUsize::new((word + 37) % WORDS));
        let word = AtomicUsize::new(0);
        for _ in 0..samples {
            local.cycle.push(time(clock_ns, OPERATIONS, cycles));
            local.l1.push(time(clock_ns, OPERATIONS, |n| chase(&chain, n)));
            local.atomic_owned.push(time(clock_ns, OPERATIONS, |n| add(&word, n)));
            local.pause.push(time(clock_ns, PAUSES, |n| (0..n).for_each(|_| spin_loop())));
        }
        local
    })
}

/// Time of one of `n` operations, in ns.
fn time(clock_ns: f64, n: usize, operations: impl Fn(usize)) -> f64 {
    let began = <Os>::now_ns();
    operations(black_box(n));
    ((<Os>::now_ns() - began) as f64 - clock_ns) / n as f64
}

/// Takes `n` cycles. Each turn is an exclusive or and a rotation of one cycle each. Each depends on
/// the previous one.
fn cycles(n: usize) {
    let other = black_box(0x9e37_79b9_7f4a_7c15_u64);
    let end = (0..n / 2).fold(other, |value, _| (value ^ other).rotate_left(7));
    black_box(end);
}

fn chase(chain: &[AtomicUsize; WORDS], n: usize) {
    let base = chain.as_ptr();
    let end = (0..n).fold(0, |word, _| {
        debug_assert!(word < WORDS);
        // SAFETY: each word of the chain holds the number of a word of the chain, and the chain is
        // not written.
        unsafe { (*base.add(word)).load(Relaxed) }
    });
    black_box(end);
}

fn add(word: &AtomicUsize, n: usize) {
    // Add the previous value, so that an addition cannot begin before the previous one has ended.
    let end = (0..n).fold(1, |value, _| word.fetch_add(value, Relaxed));
    black_box(end);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::TestBed;
    use crate::measure::Priority;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_core_takes_time_for_everything() {
        let conditions = Conditions { clock_ns: 0.0, priority: Priority::Nice };
        let local = measure(TestBed::this().allowed[0], 3, conditions).expect("allowed");
        for samples in [&local.l1, &local.atomic_owned, &local.pause, &local.cycle] {
            assert!(samples.len() == 3 && samples.iter().all(|&ns| ns > 0.0), "{local:?}");
        }
    }
}
