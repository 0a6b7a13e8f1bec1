//! Hints about which threads sleep in a lock, found by the number of the thread.
//!
//! ```text
//! place  0: no thread with this place sleeps | n: the thread with the number n sleeps
//!
//!  * -> n   a thread goes to sleep
//!  n -> 0   it has woken
//! ```
//! Several thread numbers share one place. A thread that goes to sleep overwrites the number in its
//! place. From then on the thread with the other number is not known to sleep. This costs a spinner
//! that asks about that thread some turns, and has no other effect.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use nearlock_core::schedule::ThreadId;

use crate::slots::LINE;

/// The number of places, which take 16 KiB of zero bytes. The threads of a process have consecutive
/// numbers, because the kernel counts them up. So threads share a place only if there are thousands
/// of them. With fewer places they share earlier.
const PLACES: usize = 4096;
/// Places per cache line.
const PER_LINE: usize = LINE / size_of::<AtomicU32>();

static SLEEPERS: [AtomicU32; PLACES] = [const { AtomicU32::new(0) }; PLACES];

/// The place of this number. Adjacent numbers have places on different cache lines.
#[inline]
fn place_of(number: u32) -> &'static AtomicU32 {
    const LINES: usize = PLACES / PER_LINE;
    let number = number as usize;
    &SLEEPERS[number % LINES * PER_LINE + number / LINES % PER_LINE]
}

/// Calls `sleep`. Meanwhile the calling thread counts as asleep. Relaxed: this is a hint.
#[inline]
pub fn while_asleep<R>(me: ThreadId, sleep: impl FnOnce() -> R) -> R {
    let place = place_of(me.get());
    place.store(me.get(), Relaxed);
    let r = sleep();
    if place.load(Relaxed) == me.get() {
        place.store(0, Relaxed);
    }
    r
}

/// Whether this thread is known to sleep.
#[inline]
pub fn is_asleep(thread: ThreadId) -> bool {
    place_of(thread.get()).load(Relaxed) == thread.get()
}

/// Clears all places in a child made by `fork`: the sleepers are threads of the parent.
pub fn forget_all() {
    SLEEPERS.iter().for_each(|place| place.store(0, Relaxed));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Numbers that threads of this test process do not have.
    fn unused(n: u32) -> ThreadId {
        ThreadId::new((1 << 25) + n).expect("not 0")
    }

    #[test]
    fn a_thread_counts_as_asleep_while_it_sleeps() {
        let (me, other) = (unused(1), unused(2));
        assert!(!is_asleep(me));
        while_asleep(me, || {
            assert!(is_asleep(me) && !is_asleep(other));
            while_asleep(other, || assert!(is_asleep(me) && is_asleep(other)));
        });
        assert!(!is_asleep(me) && !is_asleep(other));
    }

    #[test]
    fn a_thread_that_takes_over_a_place_leaves_the_other_unknown() {
        let (me, other) = (unused(3), unused(3 + PLACES as u32));
        while_asleep(me, || {
            while_asleep(other, || assert!(is_asleep(other) && !is_asleep(me)));
            assert!(!is_asleep(other) && !is_asleep(me));
        });
    }

    #[test]
    fn neighbours_have_lines_of_their_own() {
        let line = |n: u32| (std::ptr::from_ref(place_of(n)).addr()) / LINE;
        let lines: HashSet<_> = (7000..7000 + (PLACES / PER_LINE) as u32).map(line).collect();
        assert!(lines.len() >= PLACES / PER_LINE - 1);
    }
}
