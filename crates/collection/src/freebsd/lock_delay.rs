//! How long a waiter that spins pauses between two looks at the lock.
//!
//! The pauses belong to one acquisition: a [`LockDelay`] begins with it, grows with every look that
//! finds the lock held, and ends with it. The settings bound one delay and not the whole wait.
//!
//! Source: FreeBSD's `lock_delay`: linear with a random factor in August 2016, exponential since
//! 2017, from 1 pause since April 2018. Written from a description in our own words.

use crate::platform::{Platform, Random, Settings};
use crate::schedule::Schedule;
use crate::settings::Setting;

words! {
    /// How the delays of an acquisition grow.
    pub enum Backoff {
        /// They do not grow: each delay is one pause.
        None "none",
        /// By a step, times a random factor: August 2016. Its numbers are per processor, and not
        /// settings.
        Linear "linear",
        /// By a factor of 2, from `freebsd.delay-base` to `freebsd.delay-max`.
        Exponential "exponential",
    }
}

/// The greatest delay without a setting, in pauses.
pub const DELAY_MAX: u32 = 32_767;

/// The greatest delay if `freebsd.delay-max` does not set one: 256 pauses for each processor. The
/// number of processors is rounded up to the next greater power of two.
pub const fn auto_max(processors: u32) -> u32 {
    /// Pauses per processor. With more, a lock would be free for longer before a waiter sees it.
    /// With fewer, more processors would look at it.
    const PER_PROCESSOR: u32 = 256;
    // With more processors the result is the maximum anyway. This limit prevents an overflow.
    const PROCESSORS_MAX: u32 = DELAY_MAX / PER_PROCESSOR;
    let processors = if processors < PROCESSORS_MAX { processors } else { PROCESSORS_MAX };
    let max = PER_PROCESSOR * (processors + 1).next_power_of_two();
    if max < DELAY_MAX { max } else { DELAY_MAX }
}

/// How many pauses a round of spinning for readers takes at most.
pub fn loops<P: Settings + Schedule>() -> u32 {
    /// The number if `freebsd.delay-loops` does not set one, unless a delay may be longer.
    const LEAST: u32 = 10_000;
    match P::setting(Setting::FreebsdDelayLoops) as u32 {
        0 => greatest::<P>().max(LEAST),
        loops => loops,
    }
}

/// How many such rounds a waiter spins between two sleeps.
pub fn retries<P: Settings>() -> u32 {
    P::setting(Setting::FreebsdDelayRetries) as u32
}

/// The greatest exponential delay.
fn greatest<P: Settings + Schedule>() -> u32 {
    match P::setting(Setting::FreebsdDelayMax) as u32 {
        0 => auto_max(P::processors()),
        max => max,
    }
}

/// Numbers of [`Backoff::Linear`], in pauses for one processor. They are doubled, since one of them
/// is not an integer.
mod linear {
    /// The delay before the first step.
    pub const BEGIN_X2: u32 = 50;
    /// How much the delay grows with each step.
    pub const STEP_X2: u32 = 25;
    /// The random factor makes no delay shorter than this.
    pub const LEAST_X2: u32 = 10;
    /// The delay grows up to this.
    pub const MOST_X2: u32 = 500;
}

/// The delays of one acquisition.
#[derive(Debug, Default)]
pub struct LockDelay {
    /// The last delay (linear) or the next one (exponential), in pauses; 0: there has been none.
    delay: u32,
    /// Delays so far.
    turns: u32,
    /// Pauses so far.
    total: u64,
}

impl LockDelay {
    /// How many pauses it has made so far.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// One delay, longer than the last one. Returns its pauses.
    pub fn wait<P: Settings + Schedule + Random>(&mut self, backoff: Backoff) -> u32 {
        let pauses = match backoff {
            Backoff::None => 1,
            Backoff::Linear => self.next_linear(P::processors(), P::random_u32()),
            Backoff::Exponential => {
                let base = P::setting(Setting::FreebsdDelayBase) as u32;
                self.next_exponential(base, greatest::<P>())
            }
        };
        self.pause::<P>(pauses);
        pauses
    }

    /// Waits for so many pauses.
    pub fn pause<P: Platform>(&mut self, pauses: u32) {
        self.total += u64::from(pauses);
        P::pause(pauses, self.turns);
        self.turns = self.turns.saturating_add(1);
    }

    fn next_exponential(&mut self, base: u32, max: u32) -> u32 {
        let pauses = self.delay.max(base).min(max);
        self.delay = pauses.saturating_mul(2).min(max);
        pauses
    }

    fn next_linear(&mut self, processors: u32, random: u32) -> u32 {
        // With more processors the numbers are not tuned any more, and the products would overflow.
        let processors = processors.min(DELAY_MAX);
        let of = |pauses_x2: u32| pauses_x2 * processors / 2;
        let last = self.delay.max(of(linear::BEGIN_X2));
        self.delay = (last + of(linear::STEP_X2)).min(of(linear::MOST_X2));
        (random % self.delay).max(of(linear::LEAST_X2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{OneThread, PAUSES, PROCESSORS, RANDOM, set};
    use std::vec::Vec;

    fn delays(backoff: Backoff, count: usize) -> Vec<u32> {
        PAUSES.take();
        let mut delay = LockDelay::default();
        let told: Vec<u32> = (0..count).map(|_| delay.wait::<OneThread>(backoff)).collect();
        let pauses = PAUSES.take();
        assert_eq!(told, pauses);
        assert_eq!(delay.total(), pauses.iter().copied().map(u64::from).sum());
        pauses
    }

    #[test]
    fn the_greatest_delay_follows_the_number_of_processors() {
        let of = [1, 2, 3, 7, 8, 40, 63, 64, 1 << 20, u32::MAX].map(auto_max);
        assert_eq!(of, [512, 1024, 1024, 2048, 4096, 16384, 16384, 32767, 32767, 32767]);
    }

    #[test]
    fn exponential_delays_double_up_to_the_greatest() {
        assert_eq!(delays(Backoff::Exponential, 5), [1, 2, 4, 8, 16]);
        assert_eq!(
            delays(Backoff::Exponential, 15)[11..],
            [2048, 4096, 4096, 4096],
            "{PROCESSORS} processors"
        );
        set(Setting::FreebsdDelayBase, 3);
        set(Setting::FreebsdDelayMax, 10);
        assert_eq!(delays(Backoff::Exponential, 4), [3, 6, 10, 10]);
        set(Setting::FreebsdDelayBase, 30);
        assert_eq!(delays(Backoff::Exponential, 2), [10, 10], "the greatest counts");
        set(Setting::FreebsdDelayBase, 1 << 31);
        set(Setting::FreebsdDelayMax, u32::MAX.into());
        assert_eq!(delays(Backoff::Exponential, 3), [1 << 31, u32::MAX, u32::MAX]);
    }

    #[test]
    fn linear_delays_grow_by_a_step_times_a_random_factor() {
        RANDOM.set(0);
        assert_eq!(delays(Backoff::Linear, 2), [40, 40], "the least, of 8 processors");
        // 299 is the remainder of the first three delays, which are 300, 400, 500.
        RANDOM.set(299 + 300 * 400 * 500);
        assert_eq!(delays(Backoff::Linear, 3), [299, 299, 299]);
        RANDOM.set(1999);
        let grown = delays(Backoff::Linear, 20);
        assert_eq!(grown[0], 1999 % 300);
        assert_eq!(grown[17..], [1999, 1999, 1999], "up to 2000");
    }

    #[test]
    fn rounds_of_spinning_for_readers_are_as_long_as_the_longest_delay() {
        assert_eq!((retries::<OneThread>(), loops::<OneThread>()), (10, 10_000));
        set(Setting::FreebsdDelayMax, 20_000);
        assert_eq!(loops::<OneThread>(), 20_000);
        set(Setting::FreebsdDelayLoops, 7);
        set(Setting::FreebsdDelayRetries, 0);
        assert_eq!((retries::<OneThread>(), loops::<OneThread>()), (0, 7));
    }

    #[test]
    fn without_back_off_there_is_a_pause() {
        assert_eq!(delays(Backoff::None, 3), [1, 1, 1]);
    }
}
