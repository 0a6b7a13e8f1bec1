//! The modes of the lock, and when they change. The terms are those of the [lock](super).

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::lines::ReaderLine;
use super::{NearRwLock, RwLockPlatform};
use crate::platform::{Atomic, AtomicInt};
use crate::raw::RawTryLock;

pub(super) const COUNTED_MODE: u32 = 0;
pub(super) const FENCED: u32 = 1;
pub(super) const BIASED: u32 = 2;
pub(super) const MODE: u32 = 3;
pub(super) const OPEN: u32 = 4;
pub(super) const DRAINING: u32 = 8;

/// How long ago the last revocation must be for the mode to become biased, in units of 1024 ns:
/// 0.1 ms. So there are at most 10,000 of them a second for each lock.
const REVOKED_UNITS: u32 = 100;
pub(super) const UNIT_SHIFT: u32 = 10;

impl<P: RwLockPlatform> NearRwLock<P> {
    /// To be called by the holder of the mutex, from whom no thread can take it over.
    pub(super) fn set_mode(&self, mode: u32) {
        // Ordering: Release, pairs with the Acquire in `is_free_in` and `lets_in`.
        self.mode.store(mode, Release);
    }

    /// Lets readers in while the caller holds the mutex.
    pub(super) fn open(&self) {
        self.set_mode(self.mode.load(Relaxed) | OPEN);
    }

    /// Lets no more readers in.
    pub(super) fn close(&self) {
        self.set_mode(self.mode.load(Relaxed) & !OPEN);
    }

    /// Whether the holder of the mutex lets a reader in whose line this is. A reader that may hold
    /// the lock already does not wait for a writer that waits for readers.
    pub(super) fn lets_in(&self, line: &ReaderLine<P>) -> bool {
        // Ordering: Acquire, pairs with the Release in `set_mode`: the sections of the writers
        // before the one that has opened the lock happen before ours.
        let mode = self.mode.load(Acquire);
        mode & OPEN != 0 || mode & DRAINING != 0 && line.may_hold_others()
    }

    /// Whether the holder of the mutex lets all readers in. For the holder; nothing is read through
    /// it.
    pub(super) fn is_open(&self) -> bool {
        self.mode.load(Relaxed) & OPEN != 0
    }

    /// Lets readers in that may hold the lock already.
    pub(super) fn begin_draining(&self) {
        let mode = self.mode.load(Relaxed);
        if mode & DRAINING == 0 {
            self.set_mode(mode | DRAINING);
        }
    }

    /// Returns false if it let none in.
    pub(super) fn end_draining(&self) -> bool {
        let mode = self.mode.load(Relaxed);
        if mode & DRAINING != 0 {
            self.set_mode(mode & !DRAINING);
        }
        mode & DRAINING != 0
    }

    /// Notes a read of the caller, whose line this is.
    pub(super) fn note_read(&self, line: &ReaderLine<P>) {
        if line.is_full() {
            return;
        }
        if let Some(number) = line.spare_read(Self::batch() as u32) {
            self.note_reads(number);
        }
    }

    /// Notes a read of the caller, who still has the mutex.
    #[inline(always)]
    pub(super) fn note_read_alone(&self) {
        let reads = Self::with_read_alone(self.reads.load_hint());
        self.reads.store_hint(reads);
        if self.are_many(reads) && self.mode.load(Relaxed) & MODE == COUNTED_MODE {
            self.set_mode(FENCED);
        }
    }

    fn note_reads(&self, number: u32) {
        let reads = self.reads.fetch_add(number, Relaxed).wrapping_add(number);
        let next = match self.mode.load(Relaxed) & MODE {
            COUNTED_MODE if self.are_many(reads) => FENCED,
            FENCED if self.may_become_biased(reads) => BIASED,
            _ => return,
        };
        // SAFETY: unlocked below.
        if unsafe { self.mutex.try_lock(&()) } {
            // Another thread may have changed it meanwhile. A mode is never skipped.
            if next - 1 == self.mode.load(Relaxed) & MODE {
                self.set_mode(next);
            }
            // SAFETY: locked above.
            unsafe { self.release() };
        }
    }

    fn may_become_biased(&self, reads: u32) -> bool {
        self.are_very_many(reads) && P::is_light_free() && !self.was_revoked_lately()
    }

    fn was_revoked_lately(&self) -> bool {
        let now = (P::now_ns() >> UNIT_SHIFT) as u32;
        now.wrapping_sub(self.revoked.load_hint()) < REVOKED_UNITS
    }
}
