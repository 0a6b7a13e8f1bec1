//! The chains of the process, in which threads that wait for a lock of one of the families sleep.
//!
//! In a child made by `fork` all chains are empty and unlocked ([`forget_all`]): their waiters, and
//! the threads that had one locked, are threads of the parent. A handler that interrupts a thread
//! which has a chain locked must neither lock nor fork.

use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU32, fence};

use nearlock_core::near::Near;
use nearlock_core::parking::Room;
use nearlock_core::parking::chain::{Family, TABLES};

/// The number of chains of a family, which take 512 KiB of zero bytes. A program without such locks
/// touches none of these bytes.
///
/// The waiters of all locks of a chain are in one list. An unlock may have to search the list even
/// if no thread waits for its own lock. With 5000 threads that wait for as many mutexes, another
/// mutex takes 1.5 to 1.8 times as long as without them. With 2048 chains it takes 3.4 times as
/// long, and with 1024 chains 11 times. Threads in condition variables cost it nothing
/// (docs/guide/cargo-bench.md, "Many sleepers"). The child of a `fork` reads all chains of a table
/// that is in use.
const CHAINS: usize = 4096;

static ROOMS: [[Room; CHAINS]; TABLES] = [const { [const { Room::new() }; CHAINS] }; TABLES];

/// Which tables have chains that were locked. The child of a `fork` does not read the others:
/// reading a table takes it as long as the fork itself.
static IN_USE: [AtomicBool; TABLES] = [const { AtomicBool::new(false) }; TABLES];

/// The attention words of the chains of [`Near`]: 16 KiB.
static ATTENTION: AttentionWords = AttentionWords([const { AtomicU32::new(0) }; CHAINS]);

#[repr(align(64))]
struct AttentionWords([AtomicU32; CHAINS]);

/// The index of a lock's chain in its table.
#[inline]
fn index(lock: *const ()) -> usize {
    (hash(lock) >> (u32::BITS - CHAINS.trailing_zeros())) as usize
}

/// The room of a lock's chain.
#[inline]
pub fn room<F: Family>(lock: *const ()) -> &'static Room {
    const { assert!(F::TABLE < TABLES) };
    &ROOMS[F::TABLE][index(lock)]
}

/// The attention word of a lock's chain.
#[inline]
pub fn attention(lock: *const ()) -> &'static AtomicU32 {
    &ATTENTION.0[index(lock)]
}

/// Writes to the pages of the attention words. So the first release of a chain, which notes that
/// the light side of the fence costs nothing, does not wait for the kernel to map its page.
pub fn map_attention() {
    const PAGE: usize = 4096 / size_of::<AtomicU32>();
    let last = ATTENTION.0.last();
    for word in ATTENTION.0.iter().step_by(PAGE).chain(last) {
        // Relaxed: the word does not change. The compiler would make a load of a `fetch_or` of 0.
        _ = word.compare_exchange(0, 0, Relaxed, Relaxed);
    }
}

/// To be called before a chain of the family is locked.
///
/// The memory of the child is a copy that the kernel makes while other threads run. For that the
/// kernel makes the pages of the parent read-only. A thread that then stores to one of them waits
/// until the copy is complete. So if a store of a thread is not in the copy, no later store of that
/// thread is. A chain that is locked in the copy therefore belongs to a table that is in use there.
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
    // The upper bits of the hash are the same for all locks of the chain.
    let lower = hash(lock) << CHAINS.trailing_zeros();
    // Locks that are multiples of 4 GiB apart have the same hash.
    let upper = (lock.addr() as u64 >> u32::BITS) as u32;
    lower.wrapping_add(upper.wrapping_mul(GOLDEN))
}

/// Empties all chains, in a child made by `fork`.
///
/// # Safety
///
/// The process has one thread. It has just forked, and not in a handler that has interrupted a slow
/// path.
pub unsafe fn forget_all() {
    for (rooms, in_use) in ROOMS.iter().zip(&IN_USE) {
        if in_use.load(Relaxed) {
            // SAFETY: that thread is in no chain, and has no chain locked.
            rooms.iter().for_each(|room| unsafe { room.forget() });
        }
    }
    if IN_USE[Near::TABLE].load(Relaxed) {
        ATTENTION.0.iter().for_each(|word| word.store(0, Relaxed));
    }
}

/// 2^32 divided by the golden ratio.
const GOLDEN: u32 = 0x9e37_79b9;

/// Fibonacci hashing: neighbouring locks have different chains, and so have locks at the same place
/// of equal objects. FreeBSD shifts the address by 8 bits, so that the locks of a small object
/// share one. Source: Knuth, "The Art of Computer Programming", volume 3, section 6.4.
///
/// Only the lower 32 bits of the address count, because each release computes the hash. A product
/// of 32 bits with a constant takes one instruction on x86-64. One of 64 bits takes three. With
/// fewer instructions between two mutexes, the processor fetches the line of the second one
/// earlier: docs/internals/tuning-mutex.md has the figures of two threads and a million mutexes.
///
/// The price: locks that are a multiple of 2^n bytes apart have 2^(32 - n) chains at most. For n =
/// 26, the distance of arenas in the GNU C library, these are 64.
#[inline]
fn hash(lock: *const ()) -> u32 {
    (lock.addr() as u32).wrapping_mul(GOLDEN)
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

    /// Addresses of locks with this many bytes between them, as many as there are.
    fn row(stride: usize) -> impl Iterator<Item = *const ()> {
        let first = ptr::without_provenance(0x7f12_5678);
        iter::successors(Some(first), move |lock: &*const ()| {
            Some(ptr::without_provenance(lock.addr().checked_add(stride)?))
        })
    }

    #[test]
    #[cfg_attr(miri, ignore = "millions of addresses, which nothing accesses")]
    fn locks_of_one_chain_that_lie_in_rows_are_spread_in_it() {
        let four_gib = 1_usize.checked_shl(32);
        for stride in [8, 16, 64, 4096].into_iter().chain(four_gib) {
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
