//! The chains of the process, where those sleep who wait for one of FreeBSD's locks or of ours.
//!
//! After `fork` a chain whose lock another thread held stays locked in the child, and keeps the waiters of that thread, which
//! are gone. Locks that share it cannot be waited for there, nor released. So it is in a handler that interrupts a thread which has a chain locked. No hook sets them right: one that takes all
//! chains at each fork would cost those who use none, and a child of a program with threads may do little before it execs.

use nearlock_core::freebsd::chain::Chain;

use crate::Os;

/// Chains: 16 KiB of zero bytes, of which a program without such locks touches none. With fewer, locks have a chain in common
/// more often, and wait for its lock; FreeBSD has 128 of one kind and 256 of the other.
const CHAINS: usize = 256;

static TABLE: [Chain<Os>; CHAINS] = [const { Chain::new() }; CHAINS];

/// The chain of a lock.
#[inline]
pub fn chain(lock: *const ()) -> &'static Chain<Os> {
    &TABLE[index(lock.addr() as u64)]
}

/// Fibonacci hashing: neighbours, and locks at the same place of equal objects, have different chains. FreeBSD shifts the
/// address by 8 bits, so that the locks of a small object share one.
/// Source: Knuth, "The Art of Computer Programming", volume 3, section 6.4.
#[inline]
const fn index(address: u64) -> usize {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    (address.wrapping_mul(GOLDEN) >> (u64::BITS - CHAINS.trailing_zeros())) as usize
}

const _: () = assert!(CHAINS.is_power_of_two());

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn locks_that_lie_in_rows_are_spread() {
        for stride in [8, 16, 64, 4096] {
            let chains: HashSet<_> = (0..64).map(|i| index(0x7f00_1234_5678 + i * stride)).collect();
            assert!(chains.len() >= 48, "{} of 64 with {stride} bytes between", chains.len());
        }
    }

    #[test]
    fn a_lock_has_one_chain() {
        let lock = 0_u32;
        let address = std::ptr::from_ref(&lock).cast();
        assert!(std::ptr::eq(chain(address), chain(address)));
    }
}
