//! A reader-writer lock with a second word for the phase, at which readers sleep. It is for two
//! bugs of the C library (glibc), and was written from their descriptions, without the source.
//!
//! ```text
//! readers  bit 0 WRITER | bits 1-31 number of readers
//! phase    bit 0 WRITES: as WRITER, a little later | bit 1 ASLEEP: readers may sleep here
//!
//!  readers  0 -> WRITER, WRITER -> 0   a writer, which spins
//!           n -> n+1, n -> n-1         readers, without a writer
//!  phase    + WRITES                   a writer that has come in; it keeps ASLEEP
//!           * -> 0                     a writer that has left; it wakes all if ASLEEP
//!           WRITES -> + ASLEEP         a reader that is about to sleep
//! ```

use std::marker::PhantomData;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use nearlock_core::platform::{Atomic, AtomicInt, Park, Platform};
use nearlock_core::raw::{RawLock, RawRwLock, RawTryLock};
use nearlock_model::loom::{Loom, LoomU32};

const WRITER: u32 = 1;
const READER: u32 = 2;

const WRITES: u32 = 1;
const ASLEEP: u32 = 2;

/// The faults of the forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhasesFault {
    None,
    /// A reader that has waited still believes what it saw before.
    OldLook,
    /// A writer that only tries stores the phase, and so clears the mark.
    MarkLost,
}

/// One form of the lock.
pub trait PhasesForm: Send + Sync + 'static {
    const FAULT: PhasesFault;
}

/// Without a bug.
pub struct Mended;
impl PhasesForm for Mended {
    const FAULT: PhasesFault = PhasesFault::None;
}

pub struct OldLook;
impl PhasesForm for OldLook {
    const FAULT: PhasesFault = PhasesFault::OldLook;
}

pub struct MarkLost;
impl PhasesForm for MarkLost {
    const FAULT: PhasesFault = PhasesFault::MarkLost;
}

/// See the module.
pub struct Phases<F> {
    readers: LoomU32,
    phase: LoomU32,
    form: PhantomData<F>,
}

impl<F> Default for Phases<F> {
    fn default() -> Self {
        Self { readers: LoomU32::new(0), phase: LoomU32::new(0), form: PhantomData }
    }
}

impl<F: PhasesForm> Phases<F> {
    fn enters(&self, seen: u32, new: u32) -> Result<u32, u32> {
        // Ordering: Acquire, pairs with the Releases of the threads that leave.
        self.readers.compare_exchange(seen, new, Acquire, Relaxed)
    }

    /// Sleeps while a writer is in, as far as the phase says.
    fn sleep(&self, turn: u32) {
        let phase = self.phase.load(Relaxed);
        if phase & WRITES == 0 {
            return Loom::cpu_relax(turn);
        }
        let asleep = WRITES | ASLEEP;
        if phase == asleep || self.phase.compare_exchange(phase, asleep, Relaxed, Relaxed).is_ok() {
            Loom::park(&self.phase, asleep);
        }
    }
}

// SAFETY: a writer comes in only from 0, and a reader only without a writer. `enters` and the
// releases order the sections. This holds for all forms: the bugs concern sleepers.
unsafe impl<F: PhasesForm> RawLock for Phases<F> {
    type Node = ();
    unsafe fn lock(&self, _node: &()) {
        let mut turn = 0;
        while self.enters(0, WRITER).is_err() {
            Loom::cpu_relax(turn);
            turn += 1;
        }
        self.phase.fetch_or(WRITES, Relaxed);
    }
    unsafe fn unlock(&self, _node: &()) {
        // Ordering: Release, pairs with the Acquire in `enters`.
        self.readers.fetch_sub(WRITER, Release);
        if self.phase.swap(0, Relaxed) & ASLEEP != 0 {
            Loom::unpark(&self.phase, u32::MAX);
        }
    }
}

// SAFETY: as above.
unsafe impl<F: PhasesForm> RawTryLock for Phases<F> {
    unsafe fn try_lock(&self, _node: &()) -> bool {
        let is_in = self.enters(0, WRITER).is_ok();
        if is_in && F::FAULT == PhasesFault::MarkLost {
            self.phase.store(WRITES, Relaxed);
        } else if is_in {
            self.phase.fetch_or(WRITES, Relaxed);
        }
        is_in
    }
}

// SAFETY: as above.
unsafe impl<F: PhasesForm> RawRwLock for Phases<F> {
    unsafe fn lock_shared(&self, _node: &()) {
        let (mut readers, mut turn) = (self.readers.load(Relaxed), 0);
        loop {
            if readers & WRITER == 0 {
                match self.enters(readers, readers + READER) {
                    Ok(_) => return,
                    Err(seen) => readers = seen,
                }
                continue;
            }
            self.sleep(turn);
            turn += 1;
            if F::FAULT != PhasesFault::OldLook {
                readers = self.readers.load(Relaxed);
            }
        }
    }
    unsafe fn try_lock_shared(&self, _node: &()) -> bool {
        let readers = self.readers.load(Relaxed);
        readers & WRITER == 0 && self.enters(readers, readers + READER).is_ok()
    }
    unsafe fn unlock_shared(&self, _node: &()) {
        // Ordering: Release, as above.
        self.readers.fetch_sub(READER, Release);
    }
    unsafe fn downgrade(&self, _node: &()) {
        // Ordering: Release, as above.
        self.readers.fetch_add(READER - WRITER, Release);
        if self.phase.swap(0, Relaxed) & ASLEEP != 0 {
            Loom::unpark(&self.phase, u32::MAX);
        }
    }
}
