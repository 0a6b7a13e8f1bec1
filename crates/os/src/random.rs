//! Cheap random bits, from one generator per thread.
//!
//! Source: Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", ACM
//! TOMS 42(4), 2016 (xorshift64*, shifts 12, 25, 27). For the mixing of seeds: Steele, Lea and
//! Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;
use std::thread_local;

thread_local! {
    /// 0: not seeded. Atomic because signal handlers may draw too. A handler that interrupts a draw
    /// gets the same bits.
    static STATE: AtomicU64 = const { AtomicU64::new(0) };
}

/// Thirty-two bits of the calling thread's own sequence.
#[inline]
pub fn random_u32() -> u32 {
    STATE.with(|state| {
        let mut x = state.load(Relaxed);
        if x == 0 {
            x = seed();
        }
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        state.store(x, Relaxed);
        // The upper half: the lowest bits are the weakest.
        (x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    })
}

/// A different seed for each thread, never 0.
#[cold]
fn seed() -> u64 {
    static THREADS: AtomicU64 = AtomicU64::new(1);
    mix(THREADS.fetch_add(1, Relaxed)).max(1)
}

/// SplitMix64: turns neighbouring numbers into unrelated seeds.
const fn mix(n: u64) -> u64 {
    let x = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw() -> [u32; 64] {
        core::array::from_fn(|_| random_u32())
    }

    #[test]
    fn threads_draw_from_different_sequences() {
        let other = std::thread::spawn(draw).join().unwrap();
        assert_ne!(draw(), other);
    }

    #[test]
    fn every_bit_varies() {
        let (ones, zeros) = draw().iter().fold((0, 0), |(ones, zeros), x| (ones | x, zeros | !x));
        assert_eq!((ones, zeros), (u32::MAX, u32::MAX));
    }

    #[test]
    fn splitmix_gives_its_published_first_value() {
        // The generator with seed 0 first mixes one increment.
        assert_eq!(mix(1), 0xe220_a839_7b1d_cdaf);
    }
}
