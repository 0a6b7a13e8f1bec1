//! A reader that holds the mutex: the only one to read in the counted mode, or the first. The terms
//! are those of the [lock](super).
//!
//! While a lock is written often, a reader takes the mutex as a writer does, but *opens* it
//! (`mutex/opening.rs`). That takes one read-modify-write, and none to release it. To count the
//! reader would take two. Readers that come meanwhile are counted. Writers wait for the mutex. So a
//! mutex that is *monopolised* (see the [mutex](crate::near::mutex)) serves one thread again and
//! again, whether it reads or writes, and threads have turns.
//!
//! **Taking over.** An upgradable reader needs the mutex, and must not wait for a reader. It takes
//! the mutex over from the reader that has it, and counts that reader instead:
//!
//! 1. It finds the reader's line by the open word, which has the number of the line. The slot is
//!    the first choice of the lock in that line. It sets two bits of the line: *taken* for the
//!    slot, and *taking*, so that no other thread does the same in this line. It counts the reader,
//!    and passes the heavy side of the fence. If the slot still says that the reader has the mutex,
//!    it exchanges the open word for its own mark. If that fails, it counts the reader no more, and
//!    clears both bits. Otherwise it clears only *taking*.
//! 2. The reader releases the lock: it sets the count in the slot to 0, passes the light side of
//!    the fence, and reads the bit *taken*. If it is set, the reader exchanges its own open word
//!    for a closed one. If it succeeds, it has the mutex, and releases it. If not, the mutex was
//!    taken over: it clears the bit, and is counted no more. Only then it clears the slot, so that
//!    a signal handler that reads another lock does not find the bit.
//!
//! By the fence, the reader sees the bit, or the other thread sees the count 0. In the
//! second case that thread does not touch the word. In the first case the exchange decides. The
//! word names the line, so it is the word of that reader and not of one that came later. The bit
//! stays set until the other thread is done. So the exchange also decides if the reader has
//! released the lock, and has the same slot and the same word again. The word tells the reader
//! whether the mutex is still its own. It has not taken the mutex over from itself and opened it
//! again, since a nested read does not take the mutex.
//!
//! Source: own.

use core::sync::atomic::Ordering::Relaxed;

use super::lines::{ALONE, FREE, IN, ReaderLine, Taking};
use super::{NearRwLock, RwLockPlatform};
use crate::platform::Atomic;
use crate::raw::{RawLock, RawRwLock};

/// What a reader that had the mutex has to do when it has left its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// It releases the mutex.
    Open,
    /// The same. Readers that have found the mutex closed may be parked.
    Closed,
    /// Nothing: the mutex was taken over.
    TakenOver,
}

impl<P: RwLockPlatform> NearRwLock<P> {
    /// The caller, whose line this is, has published the lock in this slot. It takes the mutex as a
    /// reader, and notes that in the slot. It does not do so while a thread waits for a release of
    /// the mutex: the mutex would be held for as long as the reader reads. Nor does it while a
    /// writer waits for which enough reads pay.
    #[inline(always)]
    pub(super) fn enters_alone(&self, line: &ReaderLine<P>, index: usize, id: u64) -> bool {
        let number = line.number();
        let is_in = number != 0
            && !self.gives_way()
            && !self.mutex.may_be_requested()
            && self.mutex.take_open(number);
        if is_in {
            // id -> id|1|alone
            line.slot(index).store(id | IN | ALONE, Relaxed);
        }
        is_in
    }

    /// Whether writers wait for the mutex, and there are enough reads to pay for a write. A reader
    /// that reads again and again leaves a writer little time to take the mutex. If the writer
    /// loses its processor meanwhile, others use that for long. With fewer reads, the threads would
    /// exchange the mutex more often: eight threads with 50 % reads and sections of 100 ns then do
    /// 15 % less.
    #[inline(always)]
    fn gives_way(&self) -> bool {
        self.has_waiting_writers() && !self.has_few_reads()
    }

    /// Releases the lock, for which this slot says that the caller has the mutex.
    #[inline(always)]
    pub(super) fn unlock_alone(&self, line: &ReaderLine<P>, index: usize) {
        match self.end_alone(line, index) {
            // SAFETY: the caller has the mutex; also below.
            Ended::Open => unsafe { self.mutex.unlock(&()) },
            // SAFETY: as above.
            Ended::Closed => unsafe { self.release() },
            Ended::TakenOver => {}
        }
    }

    /// Releases a shared acquisition. If the caller has the mutex, it hands that over to the first
    /// in its queue.
    ///
    /// # Safety
    ///
    /// As [`unlock_shared`](crate::raw::RawRwLock::unlock_shared).
    pub unsafe fn unlock_shared_fair(&self) {
        let id = self.id.load(Relaxed);
        let line = P::line();
        let index = line.first(id);
        if line.slot(index).load(Relaxed) != id | IN | ALONE {
            // SAFETY: the caller's.
            return unsafe { self.unlock_shared(&()) };
        }
        match self.end_alone(line, index) {
            Ended::TakenOver => {}
            // SAFETY: the caller has the mutex.
            _ => unsafe { self.release_fair() },
        }
    }

    /// id|1|alone -> id|alone -> 0.
    #[inline(always)]
    fn end_alone(&self, line: &ReaderLine<P>, index: usize) -> Ended {
        let slot = line.slot(index);
        // Not free yet: a signal handler may read another lock, and must not answer this bit.
        slot.store(slot.load(Relaxed) - IN, Relaxed);
        // Dekker's pattern, with `take_over`: the store is before the light side, and the read of
        // the bit after it.
        P::light();
        let ended = if line.may_be_taken(index) { self.close_mutex(line, index) } else { Ended::Open };
        slot.store(FREE, Relaxed);
        // If the caller has the mutex, no thread takes it over from here on.
        if ended != Ended::TakenOver {
            self.note_read_alone();
        }
        ended
    }

    /// Closes the mutex, unless it was taken over. Then the caller has released the lock.
    #[cold]
    #[inline(never)]
    fn close_mutex(&self, line: &ReaderLine<P>, index: usize) -> Ended {
        if self.mutex.close(line.number()) {
            line.forget_abandoned(index);
            Ended::Closed
        } else {
            line.forget_taken(index);
            Self::discount_reader(self);
            Ended::TakenOver
        }
    }

    /// Takes the mutex over from the reader that has it. Returns `None` if there is none, or if it
    /// has only begun to read. Otherwise this has passed the heavy side of the fence.
    pub(super) fn take_over(&self) -> Option<Taking> {
        let (word, number) = self.mutex.open_word()?;
        let id = self.id.load(Relaxed);
        let line = P::lines().find(|line| line.number() == number)?;
        let index = line.first(id);
        if !line.is_alone(index, id) || !line.begin_taking(index) {
            return None;
        }
        // Before the fence, so that the reader finds itself counted if it is.
        self.count_reader();
        // Dekker's pattern, with `end_alone`: the bit was set before it, and the slot is read after
        // it.
        P::heavy();
        let taking = match line.is_alone(index, id) && self.mutex.take_over(word) {
            true => Taking::Done,
            false => Taking::Failed,
        };
        if taking == Taking::Failed {
            Self::discount_reader(self);
        }
        line.end_taking(index, taking);
        Some(taking)
    }
}
