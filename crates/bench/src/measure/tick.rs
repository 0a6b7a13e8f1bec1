//! The timer tick: how often it interrupts a busy CPU, and for how long.
//!
//! A thread reads the clock repeatedly. A reading that takes far longer than the median shows a
//! gap, in which the CPU did something else. Systems are built with one of a few tick periods. Gaps
//! at a fixed point of such a period are ticks. Other gaps (other interrupts, a hypervisor, other
//! threads) are at any point.

use std::collections::BTreeMap;
use std::time::Duration;

use nearlock_core::platform::Clock;
use nearlock_os::Os;
use nearlock_sim::spec::LATENCY_MAX_NS;

use super::MeasureError;
use super::threads::{Priority, Rank, on_cpu};

/// Tick rates of systems, in 1/s. The highest is first, because the gaps of a rate match its
/// divisors too.
const RATES_HZ: [u64; 6] = [1000, 500, 300, 250, 200, 100];
/// Least length of a gap. Interrupts are longer: entering and leaving the kernel alone takes half
/// of it.
const GAP_MIN_NS: u64 = 500;
/// Least length of a gap as a multiple of the median clock reading.
const GAP_LOOKS: u64 = 8;
/// Largest length of a tick, which is also the largest in a machine file. In a longer gap, another
/// thread or the hypervisor had the CPU.
const GAP_MAX_NS: u64 = LATENCY_MAX_NS as u64;
/// Number of parts of a period. Ticks are late by less than two parts.
const PARTS: u64 = 16;
/// Least share of the expected ticks. Some ticks are late, and some are hidden in longer gaps.
const PRESENT_MIN: f64 = 0.75;

/// A time in which the CPU did something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Its beginning, in ns since the beginning of the watch.
    pub at_ns: u64,
    /// Its length, in ns.
    pub ns: u64,
}

/// The timer tick, as found among the gaps.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Its rate, in 1/s.
    pub hz: u64,
    /// Lengths of the ticks, in ns.
    pub lengths_ns: Vec<f64>,
}

/// Watches the clock on this CPU for this long.
pub fn watch(cpu: u32, window: Duration, priority: Priority) -> Result<Vec<Gap>, MeasureError> {
    let window_ns = window.as_nanos() as u64;
    on_cpu(cpu, Rank::Foremost, priority, || {
        let look = median_look_ns();
        // Limit of the number of gaps. The memory must not be allocated during the watch.
        let mut gaps = Vec::with_capacity(100_000);
        let began = <Os>::now_ns();
        let mut before = began;
        while before - began < window_ns && gaps.len() < gaps.capacity() {
            let now = <Os>::now_ns();
            if now - before >= (GAP_LOOKS * look).max(GAP_MIN_NS + look) {
                gaps.push(Gap { at_ns: before - began, ns: now - before - look });
            }
            before = now;
        }
        gaps
    })
}

fn median_look_ns() -> u64 {
    let mut before = <Os>::now_ns();
    let mut looks: Vec<u64> = (0..1001)
        .map(|_| {
            let now = <Os>::now_ns();
            now - std::mem::replace(&mut before, now)
        })
        .collect();
    looks.sort_unstable();
    looks[looks.len() / 2].max(1)
}

/// The tick among these gaps; `None` if no rate stands out.
pub fn find(gaps: &[Gap], window: Duration) -> Option<Tick> {
    RATES_HZ.into_iter().find_map(|hz| of_rate(gaps, window.as_nanos() as u64, hz))
}

fn of_rate(gaps: &[Gap], window_ns: u64, hz: u64) -> Option<Tick> {
    let period_ns = 1_000_000_000 / hz;
    let expected = window_ns / period_ns;
    let part = |gap: &Gap| gap.at_ns % period_ns * PARTS / period_ns;
    // Ticks near the border between two parts fall into both.
    let near = |gap: &&Gap, first: u64| part(gap) == first || part(gap) == (first + 1) % PARTS;
    // The longest gap in each period, which begins with part `first`. A tick is longer than other
    // gaps.
    let longest = |first: u64| {
        let mut longest = BTreeMap::<u64, u64>::new();
        for gap in gaps.iter().filter(|gap| gap.ns <= GAP_MAX_NS && near(gap, first)) {
            let period = (gap.at_ns + period_ns - first * period_ns / PARTS) / period_ns;
            let ns = longest.entry(period).or_default();
            *ns = gap.ns.max(*ns);
        }
        longest
    };
    let ticks = (0..PARTS).map(longest).max_by_key(BTreeMap::len)?;
    // With fewer periods, gaps could match by chance.
    const PERIODS_MIN: u64 = 10;
    if expected < PERIODS_MIN || (ticks.len() as f64) < PRESENT_MIN * expected as f64 {
        return None;
    }
    Some(Tick { hz, lengths_ns: ticks.into_values().map(|ns| ns as f64).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_millis(500);

    fn gaps(moments: impl Iterator<Item = u64>) -> Vec<Gap> {
        moments.map(|at_ns| Gap { at_ns, ns: 1500 }).collect()
    }

    #[test]
    fn ticks_are_found_at_their_rate_whatever_the_phase() {
        for hz in RATES_HZ {
            let period_ns = 1_000_000_000 / hz;
            for phase in [0, period_ns / 3, period_ns - 1000] {
                let late = |n: u64| n % 7 * period_ns / 200;
                let ticks =
                    gaps((0..WINDOW.as_nanos() as u64 / period_ns).map(|n| n * period_ns + phase + late(n)));
                let found = find(&ticks, WINDOW).unwrap_or_else(|| panic!("{hz} at {phase}"));
                assert_eq!((found.hz, found.lengths_ns.len()), (hz, ticks.len()));
            }
        }
    }

    #[test]
    fn a_tick_stands_out_among_other_gaps() {
        let mut all =
            gaps((0..125).map(|n| n * 4_000_000 + 700_000).filter(|at| at % 36_000_000 > 4_000_000));
        all.extend((0..160).map(|n| Gap { at_ns: n * 3_123_457, ns: 600 }));
        all.sort_unstable_by_key(|gap| gap.at_ns);
        let tick = find(&all, WINDOW).expect("it stands out");
        let others = tick.lengths_ns.iter().filter(|&&ns| ns < 1500.0).count();
        assert!(tick.hz == 250 && others * 4 < tick.lengths_ns.len(), "{tick:?}");
    }

    #[test]
    fn turns_of_other_threads_are_no_ticks() {
        let window = Duration::from_millis(100);
        let gaps =
            |ns| -> Vec<Gap> { (0..100).map(|period| Gap { at_ns: period * 1_000_000, ns }).collect() };
        assert!(find(&gaps(GAP_MAX_NS + 1), window).is_none());
        assert_eq!(find(&gaps(GAP_MAX_NS), window).map(|tick| tick.hz), Some(1000));
    }

    #[test]
    fn gaps_at_any_moment_are_no_tick() {
        assert_eq!(find(&[], WINDOW), None);
        assert_eq!(find(&gaps((0..160).map(|n| n * 3_123_457)), WINDOW), None);
        assert_eq!(find(&gaps((0..8).map(|n| n * 10_000_000)), Duration::from_millis(80)), None, "too few");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn gaps_of_a_watch_are_in_order() {
        let cpu = crate::bench::TestBed::this().allowed[0];
        let gaps = watch(cpu, Duration::from_millis(20), Priority::AsStarted).expect("allowed");
        assert!(gaps.is_sorted_by_key(|gap| gap.at_ns) && gaps.iter().all(|gap| gap.ns > 0));
    }
}
