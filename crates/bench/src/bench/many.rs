//! Many locks: each operation locks one of a million at random, so that most operations find lock
//! and data outside of the caches.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use nearlock_core::native::Wait;
use nearlock_core::raw::RawLock;
use nearlock_workload::Observer;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::crew::Members;
use super::sample::Outcome;
use super::throughput::{Done, Life, Witness, with};

/// A case of [`Mode::Many`](super::Mode::Many).
#[derive(Debug, PartialEq, Eq)]
pub struct ManyCase {
    /// Its name on the command line.
    pub name: &'static str,
    /// Number of threads.
    pub threads: usize,
    /// Each thread has this many slots of its own, or all threads have all slots.
    slots_each: usize,
}

/// Number of locks: a power of two, so that no draw needs a division.
const SLOTS: usize = 1 << 20;

/// All cases of [`Mode::Many`](super::Mode::Many).
pub static MANY_CASES: [ManyCase; 3] = [
    ManyCase { name: "one", threads: 1, slots_each: SLOTS },
    ManyCase { name: "shared", threads: 2, slots_each: SLOTS },
    ManyCase { name: "own", threads: 2, slots_each: SLOTS / 2 },
];

/// A lock and its data, as in a program: 16 bytes for locks of up to 8 bytes.
#[repr(C)]
struct Slot<L> {
    lock: L,
    /// Number of sections; only the holder of the lock accesses it.
    data: AtomicU64,
}

/// Returns the number of sections.
fn work<W: Wait, L: RawLock>(slots: &[Slot<L>], seed: u64, witness: &mut Witness<'_, W>) -> u64 {
    let node = L::Node::default();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mask = slots.len() - 1;
    let mut sections = 0;
    loop {
        let Slot { lock, data } = &slots[rng.next_u64() as usize & mask];
        witness.waiting();
        // SAFETY: the node is this thread's own, and it is used for one lock at a time.
        unsafe { lock.lock(&node) };
        witness.acquired();
        data.store(data.load(Relaxed) + 1, Relaxed);
        witness.releasing();
        // SAFETY: locked above with this node.
        unsafe { lock.unlock(&node) };
        sections += 1;
        if !witness.goes_on() {
            return sections;
        }
    }
}

/// One run of one lock.
pub fn measure<W: Wait, L: RawLock>(case: &ManyCase, window: Duration) -> Outcome {
    let slots: Arc<[Slot<L>]> =
        (0..SLOTS).map(|_| Slot { lock: L::default(), data: AtomicU64::new(0) }).collect();
    let (worked, each) = (Arc::clone(&slots), case.slots_each);
    let life: Life<W> = Box::new(move |run, thread| {
        // The slots after the last thread's are those of the first one again.
        let first = thread * each % SLOTS;
        let slots = &worked[first..first + each];
        run.witnessed(thread, &mut |witness| Done {
            counted: work(slots, thread as u64, witness),
            ..Done::default()
        });
    });
    let sections = || slots.iter().map(|slot| slot.data.load(Relaxed)).sum();
    with(Members::Anywhere(case.threads), window, life, &sections)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_lock_and_its_data_take_16_bytes() {
        assert_eq!(size_of::<Slot<u8>>(), 16);
        assert_eq!(size_of::<Slot<u64>>(), 16);
    }
}
