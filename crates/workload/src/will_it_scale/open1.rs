//! open1: each thread opens and closes its own file, all in one directory.
//!
//! ```text
//! open    work
//!         take a reference to the directory        (a lockref)
//!         take a reference to the credentials      (a count)
//!         lock                                     (of the table of descriptors)
//!         set the bit of the lowest free descriptor
//!         unlock
//!         store the file in the slot of the descriptor
//!         drop the reference to the directory
//! close   work
//!         lock
//!         clear the slot and the bit of the descriptor
//!         unlock
//!         drop the reference to the credentials
//!
//!  lock, next | bits | slots, 8 to a line | lockref | count       (| begins another cache line)
//! ```
//! The contended lock is `files_struct.file_lock`, which all threads of a process share. The other
//! lock is the lockref of the directory. In open2, where each thread has its own directory, the
//! lockref is not contended (Dice and Kogan, Table 1). An open refers to the directory once, which
//! is an estimate. The credentials are those of the process; each open file refers to them. The
//! layout is that of a table that has been enlarged, as recalled. The lock and `next` share a line,
//! the bits have another line, and the slots are separate.
//!
//! *Faults*:
//! - A slot that is not empty when its descriptor is allocated.
//! - A slot that has another thread's file when it is closed.
//! - Bits that change while the lock is held.
//! - The lack of a free descriptor, because there are as many descriptors as threads.

use core::sync::atomic::Ordering::Relaxed;

use nearlock_core::platform::{Atomic, AtomicInt, Platform, Work};
use nearlock_core::raw::RawLock;

use super::{Caller, Testcase};
use crate::Observer;
use crate::lines::Lines;
use crate::lockref::Lockref;
use crate::locktorture::OwnLine;

/// Largest number of threads: each has at most one open file.
pub const THREADS_MAX: usize = 64 * WORDS;
const WORDS: usize = 128;

/// A lock, and the lowest descriptor that may be free: all below it are in use.
#[repr(C)]
struct Head<P: Platform, L> {
    lock: L,
    next: P::U64,
}

/// State that the threads share.
#[repr(C)]
pub struct Open1<P: Platform, L> {
    head: OwnLine<Head<P, L>>,
    bits: OwnLine<[P::U64; WORDS]>,
    lines: Lines<P>,
    directory: OwnLine<Lockref<P, L>>,
    credentials: OwnLine<P::U64>,
}

impl<P: Platform, L: RawLock> Default for Open1<P, L> {
    fn default() -> Self {
        Self {
            head: OwnLine(Head { lock: L::default(), next: Atomic::new(0) }),
            bits: OwnLine(core::array::from_fn(|_| Atomic::new(0))),
            lines: Lines::default(),
            directory: OwnLine(Lockref::default()),
            credentials: OwnLine(Atomic::new(0)),
        }
    }
}

/// The slot of a descriptor: 1 more than the number of the thread that has opened the file, or 0.
#[repr(transparent)]
pub struct Slot<P: Platform>(P::U64);

impl<P: Platform> Default for Slot<P> {
    fn default() -> Self {
        Self(Atomic::new(0))
    }
}

impl<P: Work, L: RawLock> Testcase<P, L> for Open1<P, L> {
    type Each = Slot<P>;

    fn turn(&self, slots: &[Slot<P>], caller: &mut Caller<'_, L>, observer: &mut impl Observer) -> bool {
        let descriptor = self.open(slots, caller, observer);
        if let Some(descriptor) = descriptor {
            self.close(descriptor, slots, caller, observer);
        }
        observer.goes_on()
    }
}

impl<P: Work, L: RawLock> Open1<P, L> {
    fn open(
        &self,
        slots: &[Slot<P>],
        caller: &mut Caller<'_, L>,
        observer: &mut impl Observer,
    ) -> Option<usize> {
        caller.work::<P>();
        // SAFETY: the node is the thread's own, and is used for one lock at a time, also below.
        unsafe { self.directory.0.get(caller.node) };
        self.credentials.0.fetch_add(1, Relaxed);
        let descriptor = caller.section(&self.head.0.lock, observer, |caller| {
            let descriptor = self.take_lowest(slots.len());
            caller.expect(|| descriptor.is_some_and(|n| slots[n].0.load(Relaxed) == 0));
            caller.work_inside(&self.lines, self.bits_of(descriptor.unwrap_or(0)));
            descriptor
        });
        if let Some(descriptor) = descriptor {
            slots[descriptor].0.store(caller.number as u64 + 1, Relaxed);
        }
        // SAFETY: as above.
        unsafe { self.directory.0.put(caller.node) };
        descriptor
    }

    fn close(
        &self,
        descriptor: usize,
        slots: &[Slot<P>],
        caller: &mut Caller<'_, L>,
        observer: &mut impl Observer,
    ) {
        caller.work::<P>();
        caller.section(&self.head.0.lock, observer, |caller| {
            let file = caller.number as u64 + 1;
            caller.expect(|| slots[descriptor].0.load(Relaxed) == file);
            slots[descriptor].0.store(0, Relaxed);
            self.give_back(descriptor);
            caller.work_inside(&self.lines, self.bits_of(descriptor));
        });
        self.credentials.0.fetch_sub(1, Relaxed);
    }

    /// The word with the bit of a descriptor.
    fn bits_of(&self, descriptor: usize) -> &P::U64 {
        &self.bits.0[descriptor / 64]
    }

    /// Sets the bit of the lowest free descriptor below `descriptors`. The caller holds the lock,
    /// which orders all loads here: Relaxed.
    fn take_lowest(&self, descriptors: usize) -> Option<usize> {
        let next = self.head.0.next.load(Relaxed) as usize;
        for (word, bits) in self.bits.0.iter().enumerate().skip(next / 64) {
            let used = bits.load(Relaxed);
            let descriptor = 64 * word + used.trailing_ones() as usize;
            if descriptor >= descriptors {
                return None;
            }
            if used != u64::MAX {
                bits.store(used | 1 << (descriptor % 64), Relaxed);
                self.head.0.next.store(descriptor as u64 + 1, Relaxed);
                return Some(descriptor);
            }
        }
        None
    }

    /// Clears the bit of a descriptor. The caller holds the lock.
    fn give_back(&self, descriptor: usize) {
        let bits = self.bits_of(descriptor);
        bits.store(bits.load(Relaxed) & !(1 << (descriptor % 64)), Relaxed);
        if (descriptor as u64) < self.head.0.next.load(Relaxed) {
            self.head.0.next.store(descriptor as u64, Relaxed);
        }
    }

    /// Number of references to directory and credentials, and of descriptors in use. Exact once all
    /// threads have ended: it is then 0.
    pub fn in_use(&self) -> u64 {
        let bits: u32 = self.bits.0.iter().map(|bits| bits.load(Relaxed).count_ones()).sum();
        u64::from(bits) + self.credentials.0.load(Relaxed) + u64::from(self.directory.0.count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearlock_collection::controls::Busted;
    use nearlock_os::Os;

    #[test]
    fn the_lowest_free_descriptor_is_given_out() {
        let files = Open1::<Os, Busted<Os>>::default();
        for descriptor in 0..130 {
            assert_eq!(files.take_lowest(131), Some(descriptor));
        }
        files.give_back(7);
        files.give_back(70);
        files.give_back(3);
        assert_eq!([files.take_lowest(131), files.take_lowest(131)], [Some(3), Some(7)]);
        assert_eq!([files.take_lowest(131), files.take_lowest(131)], [Some(70), Some(130)]);
        assert_eq!((files.take_lowest(131), files.in_use()), (None, 131));
        let full = Open1::<Os, Busted<Os>>::default();
        assert_eq!((0..THREADS_MAX).filter_map(|_| full.take_lowest(THREADS_MAX)).count(), THREADS_MAX);
        assert_eq!(full.take_lowest(THREADS_MAX), None);
    }
}
