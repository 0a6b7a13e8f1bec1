//! How many groups of locks lack processors.
//!
//! ```text
//! SHORTAGES  bits 32-63 a period | 16-31 how many groups noted a shortage in the period before
//!            0-15 how many did in this period
//! ```
//! The counts stop at 65535. All operations are relaxed: this is a hint.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

static SHORTAGES: AtomicU64 = AtomicU64::new(0);

/// See [`Schedule::note_shortage`](nearlock_core::schedule::Schedule::note_shortage).
pub fn note(period: u32) -> u32 {
    note_in(&SHORTAGES, period)
}

fn note_in(shortages: &AtomicU64, period: u32) -> u32 {
    let next = |word: u64| {
        let (at, before, now) = ((word >> 32) as u32, (word >> 16) as u16, word as u16);
        match period.wrapping_sub(at) {
            0 => (at, before, now.saturating_add(1)),
            1 => (period, now, 1),
            // Another thread has begun a later period meanwhile.
            u32::MAX => (at, before, now),
            _ => (period, 0, 1),
        }
    };
    let word_of =
        |(at, before, now): (u32, u16, u16)| u64::from(at) << 32 | u64::from(before) << 16 | u64::from(now);
    let mut word = shortages.load(Relaxed);
    loop {
        let (at, before, now) = next(word);
        match shortages.compare_exchange_weak(word, word_of((at, before, now)), Relaxed, Relaxed) {
            Ok(_) => return u32::from(before.max(now)),
            Err(current) => word = current,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_this_period_and_of_the_one_before_count() {
        let shortages = AtomicU64::new(0);
        let note = |period, times: u32| (0..times).map(|_| note_in(&shortages, period)).last().unwrap();
        assert_eq!(note(7, 5), 5);
        assert_eq!((note(8, 1), note(8, 5)), (5, 6));
        assert_eq!(note(7, 1), 6, "the period is over");
        assert_eq!(note(9, 1), 6);
        assert_eq!(note(11, 1), 1, "none noted it in the period before");
        assert_eq!((note(u32::MAX, 3), note(0, 1)), (3, 3));
    }

    #[test]
    fn counts_do_not_overflow() {
        let shortages = AtomicU64::new(u64::from(u16::MAX));
        assert_eq!(note_in(&shortages, 0), u32::from(u16::MAX));
        assert_eq!(note_in(&shortages, 1), u32::from(u16::MAX));
    }
}
