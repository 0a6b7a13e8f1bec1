//! lock2: each thread locks and unlocks the same record of the same file, with its own descriptor.
//!
//! ```text
//! lock     work
//!          lock                             (of the file's list of record locks)
//!          link the own record if the list is empty, otherwise read the linked record
//!          unlock
//!          lock                             (of the table of descriptors)
//!          read the descriptor's slot
//!          unlock
//! unlock   work
//!          lock                             (of the list)
//!          unlink the record if the list is not empty
//!          unlock
//!
//!  lock, first | lock | slots | record | record | ...          (| begins another cache line)
//! ```
//! Record locks belong to processes, so threads of one process never wait for each other's record
//! locks. A thread that finds the record locked by another thread has it too, and any of the
//! threads can unlock it. The contended lock is the lock of the list, `file_lock_context.flc_lock`.
//! After a record has been locked, the call checks whether another thread has closed the descriptor
//! meanwhile, under `files_struct.file_lock`. Dice and Kogan name that call site for lock1, where
//! each thread has its own list. The layout of lists and locks is as recalled.
//!
//! *Faults*:
//! - A record that is linked twice.
//! - A record that the list names but that is not linked.
//! - A record that changes while the lock is held.

use core::sync::atomic::Ordering::Relaxed;

use nearlock_core::platform::{Atomic, Platform, Work};
use nearlock_core::raw::RawLock;

use super::{Caller, Testcase};
use crate::Observer;
use crate::lines::Lines;
use crate::locktorture::OwnLine;

/// A list and its lock.
#[repr(C)]
struct List<P: Platform, L> {
    lock: L,
    /// 1 more than the number of the thread whose record is linked; 0: the list is empty.
    first: P::U64,
}

/// State that the threads share.
#[repr(C)]
pub struct Lock2<P: Platform, L> {
    list: OwnLine<List<P, L>>,
    lines: Lines<P>,
    files: OwnLine<L>,
    slots: OwnLine<P::U64>,
}

impl<P: Platform, L: RawLock> Default for Lock2<P, L> {
    fn default() -> Self {
        Self {
            list: OwnLine(List { lock: L::default(), first: Atomic::new(0) }),
            lines: Lines::default(),
            files: OwnLine(L::default()),
            slots: OwnLine(Atomic::new(0)),
        }
    }
}

/// The record of a thread: 1 if it is linked, or 0.
#[repr(transparent)]
pub struct Record<P: Platform>(OwnLine<P::U64>);

impl<P: Platform> Default for Record<P> {
    fn default() -> Self {
        Self(OwnLine(Atomic::new(0)))
    }
}

impl<P: Work, L: RawLock> Testcase<P, L> for Lock2<P, L> {
    type Each = Record<P>;

    fn turn(&self, records: &[Record<P>], caller: &mut Caller<'_, L>, observer: &mut impl Observer) -> bool {
        caller.work::<P>();
        observer.turns_to(0);
        caller.section(&self.list.0.lock, observer, |caller| {
            let linked = self.link(records, caller);
            caller.work_inside(&self.lines, linked);
        });
        observer.turns_to(1);
        caller.section(&self.files.0, observer, |caller| caller.expect(|| self.slots.0.load(Relaxed) == 0));
        if !observer.goes_on() {
            return false;
        }
        caller.work::<P>();
        observer.turns_to(0);
        caller.section(&self.list.0.lock, observer, |caller| {
            let unlinked = self.unlink(records, caller);
            caller.work_inside(&self.lines, unlinked);
        });
        observer.goes_on()
    }
}

impl<P: Work, L: RawLock> Lock2<P, L> {
    /// Locks the record, and returns the word of the linked record. The caller holds the list's
    /// lock, which orders all loads here: Relaxed.
    fn link<'a>(&self, records: &'a [Record<P>], caller: &mut Caller<'_, L>) -> &'a P::U64 {
        let first = &self.list.0.first;
        if let Some(other) = (first.load(Relaxed) as usize).checked_sub(1) {
            let other = &records[other].0.0;
            caller.expect(|| other.load(Relaxed) == 1);
            return other;
        }
        let own = &records[caller.number].0.0;
        caller.expect(|| own.load(Relaxed) == 0);
        own.store(1, Relaxed);
        first.store(caller.number as u64 + 1, Relaxed);
        own
    }

    /// Unlocks the record, and returns the word of a record that is not linked. The caller holds
    /// the list's lock.
    fn unlink<'a>(&self, records: &'a [Record<P>], caller: &mut Caller<'_, L>) -> &'a P::U64 {
        let first = &self.list.0.first;
        let linked = (first.load(Relaxed) as usize).checked_sub(1);
        let record = &records[linked.unwrap_or(caller.number)].0.0;
        caller.expect(|| record.load(Relaxed) == u64::from(linked.is_some()));
        if linked.is_some() {
            record.store(0, Relaxed);
            first.store(0, Relaxed);
        }
        record
    }
}
