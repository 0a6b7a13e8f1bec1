//! Timer ticks: each CPU is interrupted at a fixed rate, whatever its thread does. Each CPU has its
//! own phase.
//!
//! An interrupt delays a thread that computes by the length of the interrupt. A thread may also
//! wait for memory, for its stores or for a line to change. It is delayed only if the interrupt is
//! still in progress when its wait ends, and then continues at the end of the interrupt. Lines are
//! served meanwhile.
//!
//! Ticks are rare, but they decide in which order threads follow one another. Without ticks, a
//! small number of threads keeps the order in which they began for ever.

use crate::spec::ModelParameters;

/// The ticks of a machine.
pub struct Ticks {
    period_ps: u64,
    length_ps: u64,
}

/// The moment of a tick that never happens.
pub const NEVER: u64 = u64::MAX;

impl Ticks {
    pub fn new(model: &ModelParameters) -> Self {
        let length_ps = (model.tick_ns * 1000.0) as u64;
        let period_ps = if model.tick_hz > 0.0 { (1e12 / model.tick_hz) as u64 } else { NEVER };
        debug_assert!(length_ps <= period_ps / 2, "a machine that ticks take more than half of");
        Self { period_ps, length_ps }
    }

    /// The first tick of a CPU, from a random number.
    pub fn first_ps(&self, drawn: u64) -> u64 {
        if self.period_ps == NEVER { NEVER } else { drawn % self.period_ps }
    }

    /// The moment at which a thread finishes computing that would finish at `then_ps` without
    /// interrupts. `next_ps` is the next tick of its CPU.
    pub fn computed_ps(&self, next_ps: &mut u64, mut then_ps: u64) -> u64 {
        while *next_ps <= then_ps {
            then_ps += self.length_ps;
            *next_ps += self.period_ps;
        }
        then_ps
    }

    /// The moment at which a thread continues whose wait is over at `now_ps`. `None` if it
    /// continues at once, because its CPU is not interrupted.
    pub fn interrupted_until_ps(&self, next_ps: &mut u64, now_ps: u64) -> Option<u64> {
        if *next_ps > now_ps {
            return None;
        }
        let since_ps = (now_ps - *next_ps) % self.period_ps;
        *next_ps = now_ps - since_ps + self.period_ps;
        (since_ps < self.length_ps).then(|| now_ps - since_ps + self.length_ps)
    }

    /// The last tick up to `now_ps` of a CPU whose first is `first_ps`, or the first if none has
    /// happened.
    pub fn last_ps(&self, first_ps: u64, now_ps: u64) -> u64 {
        match now_ps.checked_sub(first_ps) {
            Some(since_ps) => now_ps - since_ps % self.period_ps,
            // This case also covers a tick that never happens.
            None => first_ps,
        }
    }

    /// The next tick after `now_ps` of a CPU whose first is `first_ps`.
    pub fn after_ps(&self, first_ps: u64, now_ps: u64) -> u64 {
        let last_ps = self.last_ps(first_ps, now_ps);
        if last_ps > now_ps { last_ps } else { last_ps.saturating_add(self.period_ps) }
    }

    /// The end of the current interrupt of a CPU, or `None` if the CPU is not interrupted at
    /// `now_ps`. The CPU's first tick is `first_ps`.
    pub fn end_of_interrupt_ps(&self, first_ps: u64, now_ps: u64) -> Option<u64> {
        let last_ps = self.last_ps(first_ps, now_ps);
        let is_within = last_ps <= now_ps && now_ps - last_ps < self.length_ps;
        is_within.then(|| last_ps + self.length_ps)
    }

    /// The time left to compute at `now_ps` for a computation that would end at `then_ps`.
    /// `next_ps` is the CPU's next tick after `then_ps`.
    pub fn left_ps(&self, first_ps: u64, next_ps: u64, now_ps: u64, then_ps: u64) -> u64 {
        let interrupts = next_ps.saturating_sub(self.after_ps(first_ps, now_ps)) / self.period_ps;
        (then_ps - now_ps).saturating_sub(interrupts * self.length_ps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(hz: f64, ns: f64) -> Ticks {
        Ticks::new(&ModelParameters { tick_hz: hz, tick_ns: ns, ..ModelParameters::default() })
    }

    #[test]
    fn computing_takes_longer_by_each_tick_that_falls_into_it() {
        let (ticks, mut next_ps) = (ticks(1e6, 100.0), 500_000);
        assert_eq!(ticks.computed_ps(&mut next_ps, 499_999), 499_999);
        assert_eq!(ticks.computed_ps(&mut next_ps, 600_000), 700_000);
        assert_eq!(next_ps, 1_500_000);
        assert_eq!(
            ticks.computed_ps(&mut next_ps, 2_450_000),
            2_650_000,
            "the first makes room for the second"
        );
    }

    #[test]
    fn a_wait_is_prolonged_only_by_an_interrupt_at_its_end() {
        let (ticks, mut next_ps) = (ticks(1e6, 100.0), 500_000);
        assert_eq!(ticks.interrupted_until_ps(&mut next_ps, 499_999), None);
        assert_eq!(ticks.interrupted_until_ps(&mut next_ps, 550_000), Some(600_000));
        assert_eq!(next_ps, 1_500_000);
        assert_eq!(ticks.interrupted_until_ps(&mut next_ps, 4_700_000), None, "three were over");
        assert_eq!(next_ps, 5_500_000);
        assert_eq!(ticks.interrupted_until_ps(&mut next_ps, 5_599_999), Some(5_600_000));
        assert_eq!(ticks.interrupted_until_ps(&mut next_ps, 6_600_000), None, "the end is outside");
    }

    #[test]
    fn a_tick_is_found_from_the_first_one() {
        let ticks = ticks(1e6, 100.0);
        assert_eq!((ticks.last_ps(500_000, 499_999), ticks.after_ps(500_000, 499_999)), (500_000, 500_000));
        assert_eq!((ticks.last_ps(500_000, 500_000), ticks.after_ps(500_000, 500_000)), (500_000, 1_500_000));
        assert_eq!(
            (ticks.last_ps(500_000, 2_499_999), ticks.after_ps(500_000, 2_499_999)),
            (1_500_000, 2_500_000)
        );
        let end_ps = |now_ps| ticks.end_of_interrupt_ps(500_000, now_ps);
        assert_eq!((end_ps(499_999), end_ps(500_000), end_ps(600_000)), (None, Some(600_000), None));
    }

    #[test]
    fn the_time_left_to_compute_excludes_later_interrupts() {
        let ticks = ticks(1e6, 100.0);
        let mut next_ps = 500_000;
        let then_ps = ticks.computed_ps(&mut next_ps, 2_000_000);
        assert_eq!((then_ps, next_ps), (2_200_000, 2_500_000));
        assert_eq!(ticks.left_ps(500_000, next_ps, 600_000, then_ps), 1_500_000, "one interrupt is over");
        assert_eq!(ticks.left_ps(500_000, next_ps, 400_000, then_ps), 1_600_000, "none is");
        assert_eq!(ticks.left_ps(500_000, next_ps, 2_200_000, then_ps), 0);
    }

    #[test]
    fn without_a_rate_there_is_no_tick() {
        let none = ticks(0.0, 2000.0);
        assert_eq!(none.first_ps(7), NEVER);
        assert_eq!(none.computed_ps(&mut none.first_ps(7), 1 << 60), 1 << 60);
        assert_eq!((none.last_ps(NEVER, 7), none.after_ps(NEVER, 7)), (NEVER, NEVER));
        assert_eq!(none.left_ps(NEVER, NEVER, 7, 9), 2);
    }
}
