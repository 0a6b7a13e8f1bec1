//! How long a cache line takes from one processor to another.
//!
//! A thread that reads a lock takes its cache line from the thread that uses the lock. Whether that
//! thread uses the lock again at once is seen only when it has the line again. So a thread that
//! wants to know looks for as long as a line takes. That is some 20 ns between two cores with a
//! shared cache, and 100 to 300 ns between others (`nearlock measure`). A virtual machine may move
//! from one to the other while a program runs. So the time is measured again and again, by threads
//! that have to wait in any case.
//!
//! Source: own.

use super::NearPlatform;

/// A load takes at least so long if the line comes from another processor, in ns. The value was
/// chosen: processors get a line from their own caches in less (docs/laboratory/measure.md), except
/// from the last-level cache. No comparison with others is kept. At 0 loads of lines that no thread
/// has taken make the mean too low. At 100 the short times are not found.
const LEAST_NS: u64 = 8;
/// A load that takes longer was interrupted, in ns. The value was chosen; no comparison with others
/// is kept. At 100 the long times are not found. With a millisecond, the mean is too great after an
/// interrupt.
const MOST_NS: u64 = 1000;
/// The part by which the mean follows a shorter and a longer time. Interrupts only make times
/// longer, so it follows those more slowly. The values were chosen; no comparison with others is
/// kept. At 1 the mean is the last value. At great values it is out of date for long after the
/// threads have moved.
const FOLLOWS_SHORTER: u32 = 4;
const FOLLOWS_LONGER: u32 = 16;

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
    if (LEAST_NS..=MOST_NS).contains(&ns) {
        let ns = ns as u32;
        P::set_transfer_ns(match P::transfer_ns() {
            0 => ns,
            mean if mean > ns => mean - (mean - ns).div_ceil(FOLLOWS_SHORTER),
            mean => mean + (ns - mean) / FOLLOWS_LONGER,
        });
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
    fn the_first_time_is_known_at_once_and_later_ones_change_the_mean() {
        assert_eq!(notes(&[130]), 130);
        assert!((22..30).contains(&notes(&[22; 12])));
        assert!((80..130).contains(&notes(&[130; 24])));
        assert!(notes(&[1000]) < 200, "an interrupt");
    }

    #[test]
    fn loads_from_the_own_cache_and_interrupted_ones_do_not_count() {
        assert_eq!(notes(&[130, 0, 7, 1001, 4_000_000, u64::MAX]), 130);
    }
}
