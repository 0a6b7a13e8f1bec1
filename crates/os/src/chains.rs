//! The chains of the process, where those sleep who wait for one of FreeBSD's locks or of ours.
//!
//! In a child made by `fork` all chains are empty and unlocked ([`forget_all`]): their waiters, and
//! those that had one locked, are threads of the parent. A handler that interrupts a thread which
//! has a chain locked must not lock, nor fork.

use nearlock_core::parking::chain::Chain;

use crate::Os;

/// Chains: 512 KiB of zero bytes, of which a program without such locks touches none. The waiters
/// of all locks of a chain are in one list, and a release may have to look through it though none
/// of them waits for its own lock. With 5000 threads that wait for as many mutexes, another mutex
/// takes 1.5 times as long as without them, 3.4 times with 2048 chains, and 11 times with 1024.
/// Threads in condition variables cost it nothing (docs/benchmark.md, "Many sleepers"). The child
/// of a `fork` reads all chains.
const CHAINS: usize = 4096;

static TABLE: [Chain<Os>; CHAINS] = [const { Chain::new() }; CHAINS];

/// The chain of a lock.
#[inline]
pub fn chain(lock: *const ()) -> &'static Chain<Os> {
    &TABLE[(hash(lock) >> (u64::BITS - CHAINS.trailing_zeros())) as usize]
}

/// Where a lock is in the filter of its chain.
#[inline]
pub fn place_in_filter(lock: *const ()) -> u32 {
    let hash = hash(lock);
    // The upper bits are the same for all locks of the chain. The lower ones without the upper
    // would be those of another product, which takes another multiplication.
    ((hash ^ (hash << 16)) >> 32) as u32
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
fn hash(lock: *const ()) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    (lock.addr() as u64).wrapping_mul(GOLDEN)
}

const _: () = assert!(CHAINS.is_power_of_two());

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::{iter, ptr};

    #[test]
    fn locks_that_lie_in_rows_are_spread() {
        for stride in [8, 16, 64, 4096] {
            let chains: HashSet<_> = row(stride).take(64).map(|lock| ptr::from_ref(chain(lock))).collect();
            assert!(chains.len() >= 48, "{} of 64 with {stride} bytes between", chains.len());
        }
    }

    /// Addresses of locks with so many bytes between, as many as there are.
    fn row(stride: usize) -> impl Iterator<Item = *const ()> {
        let first = ptr::without_provenance(0x7f12_5678);
        iter::successors(Some(first), move |lock: &*const ()| {
            Some(ptr::without_provenance(lock.addr().checked_add(stride)?))
        })
    }

    #[test]
    #[cfg_attr(miri, ignore = "millions of addresses, which nothing accesses")]
    fn locks_of_one_chain_that_lie_in_rows_are_spread_in_its_filter() {
        for stride in [8, 16, 64, 4096] {
            let first = row(stride).next().expect("there is one");
            let same = row(stride).filter(|lock| ptr::eq(chain(*lock), chain(first)));
            let mut eighths = [0_usize; 8];
            for lock in same.take(400) {
                eighths[(place_in_filter(lock) >> 29) as usize] += 1;
            }
            let fair = eighths.iter().sum::<usize>() / 8;
            assert!(fair >= 10, "{stride}: {eighths:?}");
            let is_fair = |count: &usize| (fair / 2..fair * 2).contains(count);
            assert!(eighths.iter().all(is_fair), "{stride}: {eighths:?}");
        }
    }

    #[test]
    fn a_lock_has_one_chain() {
        let lock = 0_u32;
        let address = ptr::from_ref(&lock).cast();
        assert!(ptr::eq(chain(address), chain(address)));
    }
}
