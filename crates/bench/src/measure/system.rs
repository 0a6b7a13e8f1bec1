//! Operations of the operating system: futex, context switches, membarrier.

use std::hint::spin_loop;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use nearlock_core::platform::{AsymFence, Clock, Platform};
use nearlock_os::{Os, futex};
use nearlock_workload::locktorture::OwnLine;

use super::MeasureError;
use super::threads::{Conditions, Rank, on_cpu, on_cpus};
use super::transfers::LongSpin;

/// A futex call that wakes up no thread, in ns.
pub fn futex_call(cpu: u32, samples: usize, conditions: Conditions) -> Result<Vec<f64>, MeasureError> {
    let Conditions { clock_ns, priority } = conditions;
    const CALLS: u32 = 64;
    let word = AtomicU32::new(0);
    on_cpu(cpu, Rank::Batch, priority, || {
        let sample = |_| {
            let began = <Os>::now_ns();
            for _ in 0..CALLS {
                futex::wake(&word, 1);
            }
            ((<Os>::now_ns() - began) as f64 - clock_ns) / f64::from(CALLS)
        };
        (0..samples).map(sample).collect()
    })
}

/// Messages between a waker and a sleeper.
#[derive(Default)]
struct Alarm {
    /// The number of the current wake-up, from 1.
    rung: OwnLine<AtomicU32>,
    /// The last wake-up from which the sleeper has returned.
    up: OwnLine<AtomicU32>,
    /// Time at which the sleeper returned.
    up_ns: OwnLine<AtomicU64>,
}

/// Time from before the call that wakes up a sleeper on another CPU until the sleeper runs there,
/// in ns.
///
/// Only samples in which the sleeper was asleep count.
pub fn wake(cpus: [u32; 2], samples: usize, conditions: Conditions) -> Result<Vec<f64>, MeasureError> {
    let Conditions { clock_ns, priority } = conditions;
    let alarm = Alarm::default();
    let rings = u32::try_from(samples).unwrap_or(u32::MAX);
    let results = on_cpus(&cpus, Rank::Foremost, priority, &|thread| match thread {
        0 => (1..=rings).filter_map(|number| alarm.ring(number, clock_ns)).collect(),
        _ => {
            (1..=rings).for_each(|number| alarm.sleep(number));
            Vec::new()
        }
    })?;
    Ok(results.into_iter().flatten().collect())
}

impl Alarm {
    fn ring(&self, number: u32, clock_ns: f64) -> Option<f64> {
        /// Time after which the sleeper sleeps, and its CPU may sleep too.
        const ASLEEP_NS: u64 = 50_000;
        let since = <Os>::now_ns();
        while <Os>::now_ns() - since < ASLEEP_NS {
            spin_loop();
        }
        let rung_ns = <Os>::now_ns();
        self.rung.0.store(number, Relaxed);
        let was_asleep = futex::wake(&self.rung.0, 1) == 1;
        // Ordering: Acquire, pairs with the Release of `sleep`: its time has been stored.
        <Os<LongSpin>>::wait_until(&self.up.0, Acquire, |up| up == number);
        let ns = self.up_ns.0.load(Relaxed).saturating_sub(rung_ns);
        was_asleep.then_some(ns as f64 - clock_ns)
    }

    fn sleep(&self, number: u32) {
        while self.rung.0.load(Relaxed) != number {
            futex::wait(&self.rung.0, number - 1, None);
        }
        self.up_ns.0.store(<Os>::now_ns(), Relaxed);
        // Ordering: Release, pairs with the Acquire of `ring`: the time was stored before.
        self.up.0.store(number, Release);
    }
}

/// Time from a thread that wakes up another and sleeps to the other, in ns. It is half of a round
/// trip between two threads on these CPUs, which may be the same.
pub fn futex_hand_over(
    cpus: [u32; 2],
    rank: Rank,
    samples: usize,
    conditions: Conditions,
) -> Result<Vec<f64>, MeasureError> {
    let Conditions { clock_ns, priority } = conditions;
    const ROUND_TRIPS: u32 = 16;
    let word = AtomicU32::new(0);
    let results = on_cpus(&cpus, rank, priority, &|thread| {
        let sample = |sample: usize| {
            let began = <Os>::now_ns();
            for trip in 0..ROUND_TRIPS {
                let mine = 2 * (sample as u32 * ROUND_TRIPS + trip) + thread as u32;
                loop {
                    match word.load(Relaxed) {
                        now if now == mine => break,
                        now => _ = futex::wait(&word, now, None),
                    }
                }
                word.store(mine + 1, Relaxed);
                futex::wake(&word, 1);
            }
            ((<Os>::now_ns() - began) as f64 - clock_ns) / f64::from(2 * ROUND_TRIPS)
        };
        (0..samples).map(sample).collect::<Vec<_>>()
    })?;
    // The first sample includes the other thread's start.
    Ok(results.into_iter().next().unwrap_or_default().split_off(1.min(samples)))
}

/// A heavy fence while another thread of the process runs on another CPU, in ns.
pub fn heavy_fence(cpus: [u32; 2], samples: usize, conditions: Conditions) -> Result<Vec<f64>, MeasureError> {
    let Conditions { clock_ns, priority } = conditions;
    let over = AtomicU32::new(0);
    let results = on_cpus(&cpus, Rank::Foremost, priority, &|thread| {
        let mut times = Vec::new();
        if thread == 0 {
            for _ in 0..samples {
                let began = <Os>::now_ns();
                <Os as AsymFence>::heavy();
                times.push((<Os>::now_ns() - began) as f64 - clock_ns);
            }
            over.store(1, Relaxed);
        } else {
            <Os<LongSpin>>::wait_until(&over, Relaxed, |over| over == 1);
        }
        times
    })?;
    Ok(results.into_iter().flatten().collect())
}
