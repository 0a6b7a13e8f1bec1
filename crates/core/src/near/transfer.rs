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
/// The weight of the mean against a new value is one less. The value was chosen; no comparison with
/// others is kept. At 1 the mean is the last value, whatever had happened to it. At a great value
/// it is out of date for long after the threads have moved.
const WEIGHT: u32 = 8;

/// Loads a word that another processor has most likely written, and notes how long that takes.
pub(super) fn timed<P: NearPlatform>(load: impl FnOnce() -> u32) -> u32 {
    // Twice, to know what a reading of the clock takes.
    let (first_ns, begin_ns) = (P::now_ns(), P::now_ns());
    let value = load();
    let passed_ns = P::now_ns().saturating_sub(begin_ns);
    note::<P>(passed_ns.saturating_sub(begin_ns.saturating_sub(first_ns)));
    value
}

fn note<P: NearPlatform>(ns: u64) {
    if (LEAST_NS..=MOST_NS).contains(&ns) {
        let (ns, mean) = (ns as u32, P::transfer_ns());
        P::set_transfer_ns(if mean == 0 { ns } else { (mean * (WEIGHT - 1) + ns) / WEIGHT });
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
        assert!((30..130).contains(&notes(&[22; 8])));
        assert!((20..40).contains(&notes(&[22; 24])));
    }

    #[test]
    fn loads_from_the_own_cache_and_interrupted_ones_do_not_count() {
        assert_eq!(notes(&[130, 0, 7, 1001, 4_000_000, u64::MAX]), 130);
    }
}
