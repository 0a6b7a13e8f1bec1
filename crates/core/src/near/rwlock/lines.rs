//! The lines of readers: for each thread a cache line that says which locks it holds shared.
//!
//! ```text
//! line    7 slots of 64 bits | want, 32 bits | own, 32 bits
//!
//! slot    0  free
//!         bits 0-47  the id of the lock
//!              48-61 how often the thread holds it: 0 while it enters, or releases the mutex
//!              62    alone: the thread holds the lock's mutex, open; or it is counted, since
//!                    another thread has taken the mutex over
//!              63    counted: the lock's count of readers has this reader, the slot is only a note
//! want    bits 0-6   a writer sleeps until this slot is left
//!              8-14  the mutex that this slot stands for is being taken over, or was
//!              15    the mutex of one of these slots is being taken over
//!              16-31 the number of the line; 0: it has none, so its thread is never alone
//! own     bits 0-7   reads of the thread that are not yet noted in a lock
//!         bits 8-31  how many counted holds of the thread are not noted in a slot
//!
//!  slot   0 -> id              `publish`: the thread enters, and then looks whether it is in
//!         id -> id|1           it is in
//!         0 -> id|1|counted    it is in, and counted
//!         id -> id|1|alone     it is in, and has the mutex
//!         id|n -> id|n+1       it holds the lock again; n is not 0
//!         id|n -> id|n-1       it has released it once
//!         id|1|alone -> id|alone
//!                              it is about to release the mutex, or is counted no more
//!         * -> 0               `leave`: it has released the lock, or a writer has it
//!  want   s -> s|bit           a writer is about to sleep
//!         s|bit -> s           `leave`, by the thread of the line
//!         bits 8-15            `begin_taking`, `end_taking`: by a thread that takes a mutex over.
//!                              `forget_taken`, `forget_abandoned`: by the thread of the line
//! ```
//! Only the thread of a line writes to its slots, and signal handlers that interrupt it. A handler
//! releases what it has locked before it returns. It never takes the slot of a lock that the thread
//! enters or leaves for a hold, since that has the count 0. Nor does it use that slot for others.
//!
//! A line is for ever: it belongs to a later thread when its thread has ended. A lock whose guard
//! was forgotten stays in its slot, and is held for ever. The later thread may hold it again.

use core::ops::Range;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::platform::{AsymFence, Atomic, AtomicInt, Park, Platform};

/// The number of slots that fit into a cache line of 64 bytes. A thread that holds more locks
/// shared at a time is counted in them.
pub const SLOTS: usize = 7;

/// How many slots can be the first choice of a lock. A power of two, so that the choice takes one
/// instruction.
const FIRST: u64 = 4;

pub(super) const FREE: u64 = 0;
/// A slot of a line that belongs to no thread.
const FULL: u64 = u64::MAX;
const COUNT_SHIFT: u32 = 48;
/// A lock that the thread holds once.
pub(super) const IN: u64 = 1 << COUNT_SHIFT;
const COUNT: u64 = ((1 << 14) - 1) << COUNT_SHIFT;
pub(super) const ALONE: u64 = 1 << 62;
pub(super) const COUNTED: u64 = 1 << 63;
const TAKEN_SHIFT: usize = 8;
const TAKING: u32 = 1 << 15;
const WAKES: u32 = (1 << SLOTS) - 1;
const NUMBER_SHIFT: u32 = 16;
const NUMBER: u32 = !0 << NUMBER_SHIFT;
/// The number of bits of `own` that count reads.
const SPARE_BITS: u32 = 8;
/// Ids are below this.
pub const IDS: u64 = 1 << COUNT_SHIFT;
const ID: u64 = IDS - 1;

/// How it ended that a thread took a mutex over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taking {
    Done,
    Failed,
}

/// See the [module](self). All zero: the thread holds no lock shared.
#[repr(C, align(64))]
pub struct ReaderLine<P: ReaderLines> {
    slots: P::Slots,
    want: P::U32,
    own: P::U32,
}

/// The table of lines.
///
/// # Safety
///
/// - [`line`](Self::line) is a line that no other thread gets as long as the caller lives, or one
///   that is [full](ReaderLine::full). It is valid as long as the platform instance.
/// - A line that a thread has got before it passed a fence is among the [`lines`](Self::lines) of a
///   thread that has passed its side of the fence after that.
/// - [`new_id`](Self::new_id) returns a value once, not 0 and below [`IDS`].
pub unsafe trait ReaderLines: Platform {
    /// The slots of a line: an array of [`SLOTS`] words, or of fewer in a model.
    type Slots: AsRef<[Self::U64]>;

    /// Slots with this value.
    fn slots_of(value: u64) -> Self::Slots;
    /// The line of the caller, or a full one.
    fn line<'a>() -> &'a ReaderLine<Self>;
    /// Gives the caller a line, if it has none and can have one.
    fn register_line();
    /// All lines that threads have ever had. The lower bound of the iterator's size hint is their
    /// number.
    fn lines<'a>() -> impl Iterator<Item = &'a ReaderLine<Self>>;
    /// The id of a lock.
    fn new_id() -> u64;
    /// The number of readers that wait for locks with this id. Other locks may have the same word.
    /// In a child made by `fork` it is 0.
    fn waiting_readers<'a>(id: u64) -> &'a Self::U32;
}

/// How many lines a thread requests before it reads the first. Processors have 10 buffers for such
/// requests or more. No comparison with other values is kept.
const AHEAD: usize = 8;

/// All lines, for a thread that reads them. While it reads one, the next ones are on their way.
/// Each was written by another processor, so without that a thread waits for one after the other.
pub(super) fn all<'a, P: ReaderLines>() -> impl Iterator<Item = &'a ReaderLine<P>> {
    let mut ahead = P::lines().inspect(|line| P::prefetch_read::<ReaderLine<P>>(*line));
    ahead.by_ref().take(AHEAD).for_each(|_| {});
    P::lines().inspect(move |_| _ = ahead.next())
}

impl<P: ReaderLines> ReaderLine<P> {
    /// A line of a thread that holds no lock, with a number that no other line has. Numbers are 1
    /// to 65535. A thread with a number above that has a line without a number.
    pub fn numbered(number: u32) -> Self {
        let number = if number >> (32 - NUMBER_SHIFT) == 0 { number } else { 0 };
        Self { slots: P::slots_of(FREE), want: Atomic::new(number << NUMBER_SHIFT), own: Atomic::new(0) }
    }

    /// The number of the line; 0 if it has none.
    #[inline(always)]
    pub(super) fn number(&self) -> u32 {
        self.want.load(Relaxed) >> NUMBER_SHIFT
    }

    /// A line without a free slot, for threads that have none.
    pub fn full() -> Self {
        Self { slots: P::slots_of(FULL), want: Atomic::new(0), own: Atomic::new(0) }
    }

    /// Forgets all holds, which are those of a thread that a child made by `fork` does not have.
    pub fn forget(&self) {
        self.slots.as_ref().iter().for_each(|slot| slot.store(FREE, Relaxed));
        self.want.fetch_and(NUMBER, Relaxed);
        self.own.store(0, Relaxed);
    }

    /// In a child made by `fork`, no other thread takes a mutex over any more. For the line of the
    /// thread that the child has.
    pub fn forget_others(&self) {
        self.want.fetch_and(!TAKING, Relaxed);
    }

    /// Whether the thread holds no lock, as far as the line says.
    pub fn is_empty(&self) -> bool {
        self.unnoted() == 0 && self.slots.as_ref().iter().all(|slot| slot.load(Relaxed) == FREE)
    }

    /// Whether the line is a full one that belongs to no thread.
    pub fn is_full(&self) -> bool {
        self.slot(0).load(Relaxed) == FULL
    }

    #[inline(always)]
    pub(super) fn slot(&self, index: usize) -> &P::U64 {
        &self.slots.as_ref()[index]
    }

    fn indices(&self) -> Range<usize> {
        0..self.slots.as_ref().len()
    }

    /// The slot that a lock takes if it is free.
    #[inline(always)]
    pub(super) fn first(&self, id: u64) -> usize {
        (id % FIRST.min(self.indices().len() as u64)) as usize
    }

    /// The slot that says that the thread holds this lock.
    pub(super) fn held(&self, id: u64) -> Option<usize> {
        self.indices().find(|index| {
            let value = self.slot(*index).load(Relaxed);
            value & ID == id && value & COUNT != 0 && value != FULL
        })
    }

    /// A free slot for this lock.
    pub(super) fn free_slot(&self, id: u64) -> Option<usize> {
        let is_free = |index: &usize| self.slot(*index).load(Relaxed) == FREE;
        Some(self.first(id)).filter(is_free).or_else(|| self.indices().find(is_free))
    }

    /// The slot in which a reader of this lock is in, or enters, and is not counted.
    pub(super) fn published(&self, id: u64) -> Option<usize> {
        self.indices().find(|index| self.has_published(*index, id))
    }

    /// Whether it is this slot.
    pub(super) fn has_published(&self, index: usize, id: u64) -> bool {
        // Ordering: Acquire, pairs with the Release in `leave`: the reader's section happens before
        // the writer's.
        self.slot(index).load(Acquire) & (COUNTED | ALONE | ID) == id
    }

    /// How many counted holds of the thread are not noted in a slot.
    fn unnoted(&self) -> u32 {
        self.own.load(Relaxed) >> SPARE_BITS
    }

    /// Whether the thread may hold a lock that is in no slot of the line.
    pub(super) fn may_hold_others(&self) -> bool {
        self.is_full() || self.unnoted() != 0
    }

    /// A counted hold of the thread has no slot.
    pub(super) fn begin_unnoted(&self) {
        if !self.is_full() {
            self.own.store(self.own.load(Relaxed) + (1 << SPARE_BITS), Relaxed);
        }
    }

    /// Such a hold has ended.
    pub(super) fn end_unnoted(&self) {
        if !self.is_full() && self.unnoted() != 0 {
            self.own.store(self.own.load(Relaxed) - (1 << SPARE_BITS), Relaxed);
        }
    }

    /// Adds a read that is to be noted in a lock. If there are `batch` of them, returns their
    /// number, and begins again at 0.
    pub(super) fn spare_read(&self, batch: u32) -> Option<u32> {
        if self.is_full() {
            return None;
        }
        let own = self.own.load(Relaxed);
        let spare = own % (1 << SPARE_BITS) + 1;
        let is_batch = spare >= batch;
        self.own.store(if is_batch { own + 1 - spare } else { own + 1 }, Relaxed);
        is_batch.then_some(spare)
    }

    /// Adds to the count of a lock that the thread holds. Returns false if the count is complete.
    pub(super) fn hold_again(&self, index: usize) -> bool {
        let value = self.slot(index).load(Relaxed);
        let can = value & COUNT != COUNT;
        if can {
            self.slot(index).store(value + IN, Relaxed);
        }
        can
    }
}

impl<P: ReaderLines + AsymFence + Park> ReaderLine<P> {
    /// id|n -> 0.
    #[inline(always)]
    pub(super) fn leave(&self, index: usize) {
        // Ordering: Release, pairs with the Acquire in `has_published`: our section happens before
        // the writer's.
        self.slot(index).store(FREE, Release);
        // Dekker's pattern, with `sleep_until_left`: the store is before the light side, and the
        // read of the mark after it.
        P::light();
        if self.want.load(Relaxed) & WAKES != 0 {
            self.wake_writer(index);
        }
    }

    /// s|bit -> s, and wakes the writer that has set the bit.
    #[cold]
    #[inline(never)]
    fn wake_writer(&self, index: usize) {
        if self.want.fetch_and(!(1 << index), Relaxed) & 1 << index != 0 {
            P::unpark(&self.want, u32::MAX);
        }
    }

    /// Whether this slot says that the reader has the mutex of this lock.
    pub(super) fn is_alone(&self, index: usize, id: u64) -> bool {
        let value = self.slot(index).load(Relaxed);
        value & (COUNTED | ALONE | ID) == ALONE | id && value & COUNT != 0
    }

    /// Begins to take over the mutex of the reader in this slot. Returns false if another thread
    /// does so for a slot of the line, or has done so for this one.
    pub(super) fn begin_taking(&self, index: usize) -> bool {
        let taken = 1 << (TAKEN_SHIFT + index);
        let want = self.want.load(Relaxed);
        want & (TAKING | taken) == 0
            && self.want.compare_exchange(want, want | TAKING | taken, Relaxed, Relaxed).is_ok()
    }

    /// Ends that.
    pub(super) fn end_taking(&self, index: usize, taking: Taking) {
        let taken = match taking {
            Taking::Done => 0,
            Taking::Failed => 1 << (TAKEN_SHIFT + index),
        };
        self.want.fetch_and(!(TAKING | taken), Relaxed);
    }

    /// Whether the mutex of this slot may have been taken over.
    #[inline(always)]
    pub(super) fn may_be_taken(&self, index: usize) -> bool {
        self.want.load(Relaxed) & 1 << (TAKEN_SHIFT + index) != 0
    }

    /// The thread of the line has the mutex of this slot. If no thread takes over any more, one has
    /// begun to before the process was forked, and is not in this process.
    pub(super) fn forget_abandoned(&self, index: usize) {
        let taken = 1 << (TAKEN_SHIFT + index);
        let want = self.want.load(Relaxed);
        if want & (TAKING | taken) == taken {
            // If it fails, another thread has begun to take over.
            _ = self.want.compare_exchange(want, want & !taken, Relaxed, Relaxed);
        }
    }

    /// The thread of the line has found that the mutex of this slot was taken over.
    pub(super) fn forget_taken(&self, index: usize) {
        self.want.fetch_and(!(1 << (TAKEN_SHIFT + index)), Relaxed);
    }

    /// s -> s|bit. Returns the new value.
    pub(super) fn mark(&self, index: usize) -> u32 {
        self.want.fetch_or(1 << index, Relaxed) | 1 << index
    }

    pub(super) fn want(&self) -> &P::U32 {
        &self.want
    }
}
