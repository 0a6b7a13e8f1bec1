//! The chains of the process, where those sleep who wait for one of FreeBSD's locks or of ours.
//!
//! In a child made by `fork` all chains are empty and unlocked ([`forget_all`]): their waiters, and
//! those that had one locked, are threads of the parent. A handler that interrupts a thread which
//! has a chain locked must not lock, nor fork.

use nearlock_core::freebsd::chain::Chain;

use crate::Os;

/// Chains: 256 KiB of zero bytes, of which a program without such locks touches none. The waiters
/// of all locks of a chain are in one list, and a release may have to look through it though none
/// of them waits for its own lock. With 5000 threads asleep and 256 chains, a mutex that no other
/// thread wants takes 15 times as long as with 4096. With 4096 it takes no longer where no thread
/// sleeps (docs/benchmark.md, "Many sleepers"). With 16384 it takes a quarter, but that is 1 MiB,
/// which the child of a `fork` reads.
const CHAINS: usize = 4096;

static TABLE: [Chain<Os>; CHAINS] = [const { Chain::new() }; CHAINS];

/// The chain of a lock.
#[inline]
pub fn chain(lock: *const ()) -> &'static Chain<Os> {
    &TABLE[index(lock.addr() as u64)]
}

/// Empties all chains, in a child made by `fork`.
///
/// # Safety
///
/// The process has one thread, which has just forked, in no handler that has interrupted a slow
/// path.
pub unsafe fn forget_all() {
    // SAFETY: that thread is in no chain, and has none locked.
    TABLE.iter().for_each(|chain| unsafe { chain.forget() });
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
