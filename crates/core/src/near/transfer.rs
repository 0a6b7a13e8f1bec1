//! How long a cache line takes from one processor to another.
//!
//! A thread that reads a lock takes its cache line from the thread that uses the lock. Whether the
//! latter uses the lock again at once is seen only when it has the line back. So the former looks
//! for as long as a line takes. That is some 20 ns between two cores with a shared cache, and 100
//! to 300 ns between others (`nearlock measure`). A virtual machine may move from one to the other
//! while a program runs. So the time is measured again and again, by threads that have to wait in
//! any case. With partners near and far, the mean is nearer to the short times.
//!
//! Source: own.

use super::NearPlatform;

/// The time that counts before it was measured, in ns. It is about that between two cores that
/// share a cache (`nearlock measure`). At a great value a mutex that was used by one thread seems
/// to be monopolised for long.
pub(super) const NEAR_NS: u32 = 30;
/// A load takes at least so long if the line comes from another processor, in ns. The value was
/// chosen; no comparison with others is kept. Threads that share a first-level cache, and clocks
/// with long ticks, have shorter times. At 0 these count. At 100 the times between near cores do
/// not.
const LEAST_NS: u64 = 8;
/// A load that takes longer was interrupted, in ns. The value was chosen; no comparison with others
/// is kept. At 100 the long times do not count. With a millisecond, interrupts do.
const MOST_NS: u64 = 400;
/// The part by which the mean follows each time. The value was chosen; no comparison with others is
/// kept. At 1 the mean is the last time, and an interrupt may have made that longer. At 8 a lock
/// with few waiters has an old mean for milliseconds after the threads have moved.
const FOLLOWS: u32 = 2;

/// The time, in ns.
pub(super) fn transfer_ns<P: NearPlatform>() -> u32 {
    match P::transfer_ns() {
        0 => NEAR_NS,
        ns => ns,
    }
}

/// Loads a word that had this value before. If another processor has changed it, notes how long the
/// load takes.
pub(super) fn timed<P: NearPlatform>(before: u32, load: impl FnOnce() -> u32) -> u32 {
    // Twice, to know what a reading of the clock takes.
    let (first_ns, begin_ns) = (P::now_ns(), P::now_ns());
    let value = load();
    let passed_ns = P::now_ns().saturating_sub(begin_ns);
    if value != before {
        note::<P>(passed_ns.saturating_sub(begin_ns.saturating_sub(first_ns)));
    }
    value
}

fn note<P: NearPlatform>(ns: u64) {
    if !(LEAST_NS..=MOST_NS).contains(&ns) {
        return;
    }
    let (ns, mean) = (ns as u32, transfer_ns::<P>());
    let next = match mean.checked_sub(ns) {
        Some(less) => mean - less.div_ceil(FOLLOWS),
        None => mean + (ns - mean).div_ceil(FOLLOWS),
    };
    // All processors read the word.
    if next != P::transfer_ns() {
        P::set_transfer_ns(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{OneThread, TRANSFER_NS};

    fn notes(ns: &[u64]) -> u32 {
        ns.iter().for_each(|ns| note::<OneThread>(*ns));
        TRANSFER_NS.get()
    }

    #[test]
    fn the_mean_follows_the_times() {
        assert_eq!(transfer_ns::<OneThread>(), NEAR_NS);
        assert_eq!(notes(&[22; 4]), 22);
        assert!((100..130).contains(&notes(&[130; 3])));
        assert_eq!(notes(&[130; 8]), 130);
        assert_eq!(notes(&[22; 8]), 22);
        assert!((200..220).contains(&notes(&[400])), "an interrupt");
        assert_eq!(notes(&[22; 10]), 22);
    }

    #[test]
    fn loads_from_the_own_cache_and_interrupted_ones_do_not_count() {
        let before = notes(&[130; 100]);
        assert_eq!(notes(&[0, 7, 401, 4_000_000, u64::MAX]), before);
    }
}
