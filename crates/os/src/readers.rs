//! What readers of the reader-writer lock share: the ids of locks, and the numbers of readers that
//! wait.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};

use nearlock_core::near::rwlock::lines::IDS;

static IDS_GIVEN: AtomicU64 = AtomicU64::new(0);

/// An id that no other lock of the process has ever had. (At a million locks a second, they last
/// for eight years.)
pub fn new_id() -> u64 {
    let id = IDS_GIVEN.fetch_add(1, Relaxed) + 1;
    assert!(id < IDS, "no id is left");
    id
}

/// The number of words. Locks whose ids have the same remainder share one. A release of a writer
/// then makes a system call for readers of another lock.
const WAITING: usize = 256;

static READERS_WAITING: [AtomicU32; WAITING] = [const { AtomicU32::new(0) }; WAITING];

/// The number of readers that wait for locks with this id.
#[inline(always)]
pub fn waiting(id: u64) -> &'static AtomicU32 {
    &READERS_WAITING[id as usize % WAITING]
}

/// To be called in a child made by `fork`, which has no waiting thread.
pub fn after_fork() {
    READERS_WAITING.iter().for_each(|number| number.store(0, Relaxed));
}
