//! The events counted by threads without a slot.
//!
//! A thread that uses only the [near](nearlock_core::near) locks has no slot. For most events of
//! these locks, those that only they have, it has a cache line of its own. Its number selects the
//! line, and the first thread for which a line is selected has it:
//!
//! ```text
//! line    owner, counts of the events of near locks, modulo 2^32
//!
//! owner   0 -> n   by the thread with the number n, at its first such event. It stays after the
//!                  end of the thread. Another thread may have the number then
//! ```
//! All other events, and those of other threads, are counted by read-modify-writes, as are the
//! multiples of 2^32. So in a program that starts new threads all the time, most of the later ones
//! have no line. With read-modify-writes for all events, a notification and the wait that it ends took about
//! 1 % longer (`nearlock bench --mode condvar --case ping-pong-under-one-cpu`, AMD EPYC, Zen 5).

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};

use nearlock_core::events::LockEvent;

/// The number of lines. More threads than that, or threads whose numbers select the same line,
/// share the other counters.
const LINES: usize = 64;

/// The events that only near locks have: two ranges.
const MUTEX: usize = LockEvent::MutexOptLock as usize;
const MUTEX_EVENTS: usize = LockEvent::MutexHandOver as usize + 1 - MUTEX;
const CONDVAR: usize = LockEvent::CondvarWake as usize;
const CONDVAR_EVENTS: usize = LockEvent::CondvarReturn as usize + 1 - CONDVAR;
const EVENTS: usize = MUTEX_EVENTS + CONDVAR_EVENTS;

#[repr(align(64))]
struct Line {
    owner: AtomicU32,
    counts: [AtomicU32; EVENTS],
}

const _: () = assert!(size_of::<Line>() == 64);

static OWN: [Line; LINES] =
    [const { Line { owner: AtomicU32::new(0), counts: [const { AtomicU32::new(0) }; EVENTS] } }; LINES];

/// The number of counters that threads share; the thread's number selects them. With one, all these
/// threads would write to the same cache lines.
const SHARED: usize = 16;

#[repr(align(64))]
struct Counters([AtomicU64; LockEvent::COUNT]);

static SHARED_COUNTS: [Counters; SHARED] =
    [const { Counters([const { AtomicU64::new(0) }; LockEvent::COUNT]) }; SHARED];

/// The index of an event in a line.
#[inline(always)]
const fn index(event: LockEvent) -> Option<usize> {
    match event as usize {
        event if event >= MUTEX && event < MUTEX + MUTEX_EVENTS => Some(event - MUTEX),
        event if event >= CONDVAR && event < CONDVAR + CONDVAR_EVENTS => Some(MUTEX_EVENTS + event - CONDVAR),
        _ => None,
    }
}

/// Counts an event of the thread with this number; 0: not known.
#[inline]
pub fn count(thread: u32, event: LockEvent) {
    if let Some(index) = index(event) {
        let line = &OWN[thread as usize % LINES];
        if line.is_of(thread) {
            // Two steps, since the thread is alone. (What a signal handler counts of the same event
            // in between is lost, as in a slot.)
            let count = line.counts[index].load(Relaxed);
            line.counts[index].store(count.wrapping_add(1), Relaxed);
            if count == u32::MAX {
                add(thread, event, 1 << u32::BITS);
            }
            return;
        }
    }
    add(thread, event, 1);
}

fn add(thread: u32, event: LockEvent, times: u64) {
    SHARED_COUNTS[thread as usize % SHARED].0[event as usize].fetch_add(times, Relaxed);
}

impl Line {
    /// Whether the line is that of this thread, from now on. To be called by the thread.
    #[inline(always)]
    fn is_of(&self, thread: u32) -> bool {
        // Relaxed: a thread with the same number finds the counts of an ended thread. The kernel
        // gives the number out again after the last store of that thread.
        match self.owner.load(Relaxed) {
            0 => thread != 0 && self.owner.compare_exchange(0, thread, Relaxed, Relaxed).is_ok(),
            owner => owner == thread,
        }
    }
}

/// Adds all counts to `sums`.
pub fn add_events(sums: &mut [u64; LockEvent::COUNT]) {
    for counters in &SHARED_COUNTS {
        sums.iter_mut().zip(&counters.0).for_each(|(sum, count)| *sum += count.load(Relaxed));
    }
    for (sum, event) in sums.iter_mut().zip(LockEvent::ALL) {
        if let Some(index) = index(*event) {
            *sum += OWN.iter().map(|line| u64::from(line.counts[index].load(Relaxed))).sum::<u64>();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(event: LockEvent) -> u64 {
        let mut sums = [0; LockEvent::COUNT];
        add_events(&mut sums);
        sums[event as usize]
    }

    /// The numbers of the threads are not those of any thread.
    const THREAD: u32 = 1 << 30;

    #[test]
    fn each_event_of_each_thread_is_counted() {
        // Events that no lock of another test counts on threads without a slot.
        for event in [LockEvent::CondvarReturn, LockEvent::UseNode4] {
            let before = counted(event);
            for thread in [0, THREAD, THREAD + LINES as u32] {
                (0..3).for_each(|_| count(thread, event));
            }
            assert_eq!(counted(event) - before, 9, "{event:?}");
        }
    }

    #[test]
    fn a_count_of_more_than_32_bits_is_complete() {
        let event = LockEvent::CondvarSent;
        let mut threads = (0..LINES as u32).map(|index| THREAD + index);
        let thread =
            threads.find(|thread| OWN[*thread as usize % LINES].is_of(*thread)).expect("a line is free");
        count(thread, event);
        let count_of_line = &OWN[thread as usize % LINES].counts[index(event).expect("of a near lock")];
        let before = counted(event);
        let left = u32::MAX - count_of_line.swap(u32::MAX, Relaxed);
        (0..2).for_each(|_| count(thread, event));
        assert_eq!(counted(event) - before, u64::from(left) + 2);
        assert_eq!(count_of_line.load(Relaxed), 1);
    }

    #[test]
    fn each_event_of_near_locks_has_a_place_of_its_own() {
        let mut places: std::vec::Vec<_> = LockEvent::ALL.iter().filter_map(|event| index(*event)).collect();
        places.sort_unstable();
        assert_eq!(places, (0..EVENTS).collect::<std::vec::Vec<_>>());
    }
}
