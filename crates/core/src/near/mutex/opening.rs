//! How a reader holds the mutex of a [reader-writer lock](crate::near::rwlock). The terms are those
//! of the [mutex](super).
//!
//! The word is *open* then: other readers may enter, although the mutex is held. To the mutex, such
//! a holder is like any other. The word names the line of the reader, and not its thread. So a
//! thread that takes the mutex over from the reader finds the line by the word, and marks it.
//!
//! ```text
//! 0 -> open         `take_open`
//! open -> mark      `close`: by the holder
//! open -> mark'     `take_over`: by another thread. The rules for that are in `rwlock/alone.rs`
//! open -> 0         `free`
//! ```

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use super::hints::Holders;
use super::{FREE, NearMutex};
use crate::near::NearPlatform;
use crate::platform::Atomic;
use crate::schedule::Mark;

impl<P: NearPlatform> NearMutex<P> {
    /// 0 -> open. `line` is the number of the caller's line.
    #[inline(always)]
    pub(in crate::near) fn take_open(&self, line: u32) -> bool {
        let word = P::mark().opened(line).word();
        // Ordering: Acquire, as in `take`.
        self.word.compare_exchange(FREE, word, Acquire, Relaxed).is_ok()
    }

    /// Whether a reader holds the mutex, and so lets readers in. A reader that enters asks
    /// `is_closed`.
    #[inline(always)]
    pub(in crate::near) fn is_open(&self) -> bool {
        Mark::from_word(self.word.load(Relaxed)).is_some_and(Mark::is_open)
    }

    /// Whether the mutex is held, and not open. If not, the sections of writers before happen
    /// before what follows.
    #[inline(always)]
    pub(in crate::near) fn is_closed(&self) -> bool {
        // Ordering: Acquire, pairs with the Release in `free`. `take_open` is a read-modify-write,
        // so its word is in that release sequence too.
        self.word.load(Acquire) & Mark::ANONYMOUS.word() != 0
    }

    /// open -> mark. Returns false, and does nothing, if the mutex was taken over from the caller,
    /// whose line has this number.
    pub(in crate::near) fn close(&self, line: u32) -> bool {
        // Relaxed: the word says who has the mutex, and nothing is read through it.
        let word = self.word.load(Relaxed);
        Mark::from_word(word).is_some_and(|mark| mark.line() == Some(line))
            && self.word.compare_exchange(word, P::mark().word(), Relaxed, Relaxed).is_ok()
    }
    /// open -> mark', if the word is this one.
    pub(in crate::near) fn take_over(&self, word: u32) -> bool {
        let mark = Self::renew_mark().word();
        // Ordering: Acquire, as in `is_closed`.
        self.word.compare_exchange(word, mark, Acquire, Relaxed).is_ok()
    }

    /// The word, if it is open, and the number of the line that it names.
    pub(in crate::near) fn open_word(&self) -> Option<(u32, u32)> {
        let word = self.word.load(Relaxed);
        Mark::from_word(word).and_then(Mark::line).map(|line| (word, line))
    }

    /// Whether one thread uses the mutex again and again, as far as is known.
    pub(in crate::near) fn is_monopolised(&self) -> bool {
        Self::hints(self).holders() == Holders::One
    }

    /// Notes that one thread uses the mutex again and again.
    pub(in crate::near) fn note_monopolised(&self) {
        Self::hints(self).note_retaken();
    }

    /// Whether a waiter has made a wake request, as far as is known.
    #[inline(always)]
    pub(in crate::near) fn may_be_requested(&self) -> bool {
        Self::attention(self).read().is_raised() && Self::count(self).read().is_requested()
    }
}
