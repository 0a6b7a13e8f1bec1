//! A reader-writer lock in one word, whose writer waits for readers within a limit: for a bug of
//! parking_lot.
//!
//! ```text
//! word  bit 0 WRITER: a writer is in, or waits for readers | bit 1 AWAITED: it sleeps
//!       bits 2-31 number of readers
//!
//!  + WRITER                 a writer; no more readers come in
//!  + AWAITED                it is about to sleep until the readers have left
//!  - READER                 a reader that leaves
//!  - AWAITED                then, the last one if the writer sleeps; it wakes the writer
//!  - WRITER, AWAITED        a writer that gives up
//! ```

use std::marker::PhantomData;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use nearlock_core::parking::{GaveUp, Limit, RawTimedLock, RawTimedRwLock};
use nearlock_core::platform::{Atomic, AtomicInt, Park, ParkTimeout, Platform};
use nearlock_core::raw::{RawLock, RawRwLock, RawTryLock};
use nearlock_model::loom::{Loom, LoomU32};

const WRITER: u32 = 1;
const AWAITED: u32 = 2;
const READER: u32 = 4;

/// How a writer that gives up clears its bits.
pub trait Clears: Send + Sync + 'static {
    /// `awaited` is the bit as the writer has set it, which a reader may have cleared since.
    fn clear(word: &LoomU32, awaited: u32);
}

/// Those bits that are set.
pub struct IfSet;
impl Clears for IfSet {
    fn clear(word: &LoomU32, _awaited: u32) {
        word.fetch_and(!(WRITER | AWAITED), Relaxed);
    }
}

/// It subtracts what it has set.
pub struct AsSetBefore;
impl Clears for AsSetBefore {
    fn clear(word: &LoomU32, awaited: u32) {
        word.fetch_sub(WRITER | awaited, Relaxed);
    }
}

/// See the module.
pub struct TimedWord<C> {
    word: LoomU32,
    clears: PhantomData<C>,
}

impl<C> Default for TimedWord<C> {
    fn default() -> Self {
        Self { word: LoomU32::new(0), clears: PhantomData }
    }
}

impl<C: Clears> TimedWord<C> {
    /// Adds a reader or a writer, unless there is a writer.
    fn takes(&self, what: u32) -> bool {
        let word = self.word.load(Relaxed);
        // Ordering: Acquire, pairs with the Releases of the threads that leave.
        word & WRITER == 0 && self.word.compare_exchange(word, word + what, Acquire, Relaxed).is_ok()
    }

    fn take(&self, what: u32) {
        let mut turn = 0;
        while !self.takes(what) {
            Loom::cpu_relax(turn);
            turn += 1;
        }
    }

    fn wait_for_readers(&self, limit: &Limit<'_, Loom>) -> Result<(), GaveUp> {
        let mut awaited = 0;
        loop {
            // Ordering: Acquire, as above.
            let word = self.word.load(Acquire);
            if word < READER {
                return Ok(());
            }
            if let Some(why) = limit.is_reached() {
                C::clear(&self.word, awaited);
                return Err(why);
            }
            let asleep = word | AWAITED;
            if self.word.compare_exchange(word, asleep, Relaxed, Relaxed).is_ok() {
                awaited = AWAITED;
                match limit.until_ns {
                    Some(until_ns) => Loom::park_until(&self.word, asleep, until_ns),
                    None => Loom::park(&self.word, asleep),
                }
            }
        }
    }
}

// SAFETY: a writer is in after it has set WRITER and has seen no reader. A reader comes in only
// without WRITER. With the bug, none.
unsafe impl<C: Clears> RawLock for TimedWord<C> {
    type Node = ();
    unsafe fn lock(&self, _node: &()) {
        self.take(WRITER);
        assert!(self.wait_for_readers(&Limit::NONE).is_ok(), "no limit");
    }
    unsafe fn unlock(&self, _node: &()) {
        // Ordering: Release, pairs with the Acquire in `takes`. A mark that a woken writer has left
        // goes as well.
        self.word.fetch_and(!(WRITER | AWAITED), Release);
    }
}

// SAFETY: as above.
unsafe impl<C: Clears> RawTryLock for TimedWord<C> {
    unsafe fn try_lock(&self, _node: &()) -> bool {
        // Ordering: Acquire, as above.
        self.word.compare_exchange(0, WRITER, Acquire, Relaxed).is_ok()
    }
}

// SAFETY: as above.
unsafe impl<C: Clears> RawRwLock for TimedWord<C> {
    unsafe fn lock_shared(&self, _node: &()) {
        self.take(READER);
    }
    unsafe fn try_lock_shared(&self, _node: &()) -> bool {
        self.takes(READER)
    }
    unsafe fn unlock_shared(&self, _node: &()) {
        // Ordering: Release, pairs with the Acquires of writers.
        let before = self.word.fetch_sub(READER, Release);
        if before & !WRITER == READER | AWAITED {
            self.word.fetch_and(!AWAITED, Relaxed);
            Loom::unpark(&self.word, u32::MAX);
        }
    }
    unsafe fn downgrade(&self, _node: &()) {
        // Ordering: Release, as above.
        self.word.fetch_add(READER - WRITER, Release);
    }
}

// SAFETY: as above.
unsafe impl<C: Clears> RawTimedLock for TimedWord<C> {
    type Platform = Loom;
    unsafe fn lock_within(&self, _node: &(), limit: &Limit<'_, Loom>) -> Result<(), GaveUp> {
        self.take(WRITER);
        self.wait_for_readers(limit)
    }
}

// SAFETY: as above. A reader waits without a limit.
unsafe impl<C: Clears> RawTimedRwLock for TimedWord<C> {
    unsafe fn lock_shared_within(&self, node: &(), _limit: &Limit<'_, Loom>) -> Result<(), GaveUp> {
        // SAFETY: the condition of the caller.
        unsafe { self.lock_shared(node) };
        Ok(())
    }
}
