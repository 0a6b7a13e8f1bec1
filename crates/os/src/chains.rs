//! The chains of the process, where threads sleep that wait for a lock of one of the families.
//!
//! In a child made by `fork` all chains are empty and unlocked ([`forget_all`]): their waiters, and
//! the threads that had one locked, are threads of the parent. A handler that interrupts a thread
//! which has a chain locked must not lock, nor fork.

use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, fence};

use nearlock_core::parking::Room;
use nearlock_core::parking::chain::{Family, TABLES};

/// Chains of a family: 512 KiB of zero bytes, of which a program without such locks touches none.
/// The waiters of all locks of a chain are in one list, and a release may have to look through it
/// though none of them waits for its own lock. With 5000 threads that wait for as many mutexes,
/// another mutex takes 1.5 times as long as without them, 3.4 times with 2048 chains, and 11 times
/// with 1024. Threads in condition variables cost it nothing (docs/benchmark.md, "Many sleepers").
/// The child of a `fork` reads all chains of a table that is in use.
const CHAINS: usize = 4096;

static ROOMS: [[Room; CHAINS]; TABLES] = [const { [const { Room::new() }; CHAINS] }; TABLES];

/// Which tables have chains that were locked. The child of a `fork` leaves the others alone:
/// reading a table takes it as long as the fork itself.
static IN_USE: [AtomicBool; TABLES] = [const { AtomicBool::new(false) }; TABLES];

/// The room of a lock's chain.
#[inline]
pub fn room<F: Family>(lock: *const ()) -> &'static Room {
    const { assert!(F::TABLE < TABLES) };
    &ROOMS[F::TABLE][(hash(lock) >> (u64::BITS - CHAINS.trailing_zeros())) as usize]
}

/// A chain of the family is about to be locked.
///
/// The memory of the child is a copy that the kernel makes while other threads run. It makes the
/// pages of the parent read-only for that, and a thread that then stores to one of them waits until
/// the copy is complete. So if a store of a thread is not in the copy, no later one of it is. A
/// chain that is locked in the copy therefore belongs to a table that is in use there.
#[inline]
pub fn note_use<F: Family>() {
    // Ordering: Acquire, pairs with the fence below: the chain is locked after the store.
    if !IN_USE[F::TABLE].load(Acquire) {
        begin_use(&IN_USE[F::TABLE]);
    }
}

#[cold]
fn begin_use(table: &AtomicBool) {
    table.store(true, Relaxed);
    // Ordering: SeqCst: the chain is locked after the store.
    fence(SeqCst);
}

/// The place of a lock in its chain.
#[inline]
pub fn place_in_chain(lock: *const ()) -> u32 {
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
    for (rooms, in_use) in ROOMS.iter().zip(&IN_USE) {
        if in_use.load(Relaxed) {
            // SAFETY: that thread is in no chain, and has none locked.
            rooms.iter().for_each(|room| unsafe { room.forget() });
        }
    }
}

/// Fibonacci hashing: neighbours, and locks at the same place of equal objects, have different
/// chains. FreeBSD shifts the address by 8 bits, so that the locks of a small object share one.
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
    use nearlock_core::near::Near;
    use std::collections::HashSet;
    use std::{iter, ptr};

    fn chain(lock: *const ()) -> *const Room {
        room::<Near>(lock)
    }

    #[test]
    fn locks_that_lie_in_rows_are_spread() {
        for stride in [8, 16, 64, 4096] {
            let chains: HashSet<_> = row(stride).take(64).map(chain).collect();
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
    fn locks_of_one_chain_that_lie_in_rows_are_spread_in_it() {
        for stride in [8, 16, 64, 4096] {
            let first = row(stride).next().expect("there is one");
            let same = row(stride).filter(|lock| ptr::eq(chain(*lock), chain(first)));
            let mut eighths = [0_usize; 8];
            for lock in same.take(400) {
                eighths[(place_in_chain(lock) >> 29) as usize] += 1;
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
