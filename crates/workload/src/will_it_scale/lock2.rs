//! lock2: each thread locks and unlocks the same record of the same file, by a descriptor of its
//! own.
//!
//! ```text
//! lock     work
//!          lock                             (of the file's list of record locks)
//!          the list is empty: own record linked, else whose it is is looked at
//!          unlock
//!          lock                             (of the table of descriptors)
//!          the descriptor's slot read
//!          unlock
//! unlock   work
//!          lock                             (of the list)
//!          the list is not empty: the record unlinked
//!          unlock
//!
//!  lock, first | lock | slots | record | record | ...          (| begins another line)
//! ```
//! Record locks belong to processes, so that threads of one never wait for each other's: who finds
//! the record locked by another has it, too, and any of them unlocks it. What is contended is the
//! lock of the list, `file_lock_context.flc_lock`. After a record has been locked the call looks,
//! under `files_struct.file_lock`, whether another has closed the descriptor meanwhile: Dice and
//! Kogan name that call site for lock1, where the list is nobody else's. That lists and locks lie
//! so is as recalled.
//!
//! *Faults*: a record that is linked twice, or named by the list and not linked, or that changes
//! while the lock is held.

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

/// What the threads share.
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
    /// Locks the record, and returns the word of the one that is linked. The caller has the list's
    /// lock, which orders all that is read here: Relaxed.
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

    /// Unlocks it, and returns the word of one that is not linked. The caller has the list's lock.
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
