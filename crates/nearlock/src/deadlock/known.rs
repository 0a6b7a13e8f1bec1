//! The holders of locks, and the reads of threads. Written without the list of waits.
//!
//! ```text
//! owner  0          no thread has the lock exclusively or upgradably
//!        otherwise  bit 0      1: exclusively, 0: upgradably
//!                   bits 1-63  the number of the thread
//!
//!  0 -> thread   the thread, after it has acquired the lock
//!  thread -> 0   that thread, before it releases the lock
//! ```
//! The number of a thread and the id of a lock are used once. So an old number or id never names a
//! later thread or lock.

use std::cell::{Cell, RefCell};
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The number of a thread: not 0.
pub(super) type Number = u64;
/// The id of a lock that was read: not 0.
pub(super) type Id = u64;

const EXCLUSIVE: u64 = 1;

/// The facts about a lock that detection needs. Accesses are Relaxed: a thread enters the list of
/// waits, which a mutex protects, after what it has written here.
#[derive(Default)]
pub(super) struct Known {
    owner: AtomicU64,
    /// 0 before the first read.
    id: AtomicU64,
}

/// The thread that has a lock exclusively or upgradably.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Exclusive(Number),
    Upgradable(Number),
}

impl Owner {
    pub(super) fn number(self) -> Number {
        match self {
            Self::Exclusive(number) | Self::Upgradable(number) => number,
        }
    }
}

impl Known {
    pub(super) const fn new() -> Self {
        Self { owner: AtomicU64::new(0), id: AtomicU64::new(0) }
    }

    /// 0 -> thread. The caller has acquired the lock.
    #[inline]
    pub(super) fn note_exclusive(&self) {
        self.owner.store(own_number() << 1 | EXCLUSIVE, Relaxed);
    }

    /// The same, upgradably.
    pub(super) fn note_upgradable(&self) {
        self.owner.store(own_number() << 1, Relaxed);
    }

    /// thread -> 0. The caller is about to release the lock.
    #[inline]
    pub(super) fn note_release(&self) {
        self.owner.store(0, Relaxed);
    }

    pub(super) fn owner(&self) -> Option<Owner> {
        match self.owner.load(Relaxed) {
            0 => None,
            owner if owner & EXCLUSIVE != 0 => Some(Owner::Exclusive(owner >> 1)),
            owner => Some(Owner::Upgradable(owner >> 1)),
        }
    }

    /// The id of the lock, if it was ever read.
    pub(super) fn id(&self) -> Option<Id> {
        Some(self.id.load(Relaxed)).filter(|id| *id != 0)
    }

    fn known_id(&self) -> Id {
        static IDS: AtomicU64 = AtomicU64::new(1);
        self.id().unwrap_or_else(|| {
            let new = IDS.fetch_add(1, Relaxed);
            // Relaxed: nothing is read through the value.
            self.id.compare_exchange(0, new, Relaxed, Relaxed).map_or_else(|first| first, |_| new)
        })
    }

    /// Notes that the caller reads the lock. After the destructors of thread-local data it is not
    /// noted, so a deadlock may not be found.
    #[inline]
    pub(super) fn note_read(&self) {
        let id = self.known_id();
        _ = READS.try_with(|reads| {
            let reads = &mut *reads.borrow_mut();
            match reads.iter_mut().rfind(|(read, _)| *read == id) {
                Some((_, times)) => *times += 1,
                None => reads.push((id, 1)),
            }
        });
    }

    /// Notes that the caller is about to end a read of the lock.
    #[inline]
    pub(super) fn note_end_of_read(&self) {
        let id = self.known_id();
        _ = READS.try_with(|reads| {
            let reads = &mut *reads.borrow_mut();
            let Some(index) = reads.iter().rposition(|(read, _)| *read == id) else { return };
            reads[index].1 -= 1;
            if reads[index].1 == 0 {
                reads.swap_remove(index);
            }
        });
    }
}

thread_local! {
    /// 0: none yet. It needs no destructor, so it is there as long as the thread.
    static NUMBER: Cell<Number> = const { Cell::new(0) };
    /// The locks that the thread reads, and how often.
    static READS: RefCell<Vec<(Id, u64)>> = const { RefCell::new(Vec::new()) };
}

/// The number of the caller.
#[inline]
pub(super) fn own_number() -> Number {
    NUMBER.with(|number| match number.get() {
        0 => first_number(number),
        known => known,
    })
}

#[cold]
fn first_number(number: &Cell<Number>) -> Number {
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    number.set(NUMBERS.fetch_add(1, Relaxed));
    number.get()
}

/// The locks that the caller reads.
pub(super) fn own_reads() -> Vec<Id> {
    READS.try_with(|reads| reads.borrow().iter().map(|(id, _)| *id).collect()).unwrap_or_default()
}

/// Where the number of the caller is.
pub(super) fn address_of_thread() -> NonZeroUsize {
    NUMBER.with(|number| NonZeroUsize::from(std::ptr::NonNull::from(number).addr()))
}
