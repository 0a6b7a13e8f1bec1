//! A report on the state of a mutex, for a person who wants to know why threads wait.
//!
//! The report takes the chain's lock, but never sleeps for it. So it may be made while a thread has
//! the chain locked and has no processor, and from a thread of any priority. It changes nothing
//! about the mutex. It delays a release that visits the chain meanwhile.
//!
//! A waiter that a release has taken out of the queue is not in the report. Such a waiter has been
//! handed the mutex, or has been woken to compete with newcomers.

use core::fmt;
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use super::hints::Visits;
use super::queue::WaitQueue;
use super::{FREE, NearMutex, NearPlatform};
use crate::parking::{Signal, SleepState, Waiter};
use crate::platform::Atomic;

/// The greatest number of waiters that a [`Diagnosis`] describes. It counts the others. With more,
/// it takes more stack than some threads have: each waiter takes 48 bytes. With fewer, the waiters
/// of a test with 64 threads are not all described.
pub const SHOWN: usize = 64;

/// The state of a mutex when [`NearMutex::diagnose`] read it.
///
/// Its [`Display`](fmt::Display) form is a few lines of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// Whether a thread holds the mutex.
    pub is_held: bool,
    /// The number of waiters that releases see, modulo 1024. Waiters of another mutex may be among
    /// them.
    pub counted_waiters: u32,
    /// The number of wake requests that releases see. Those of another mutex may be among them.
    pub counted_requests: u32,
    /// The visits of releases to the queue.
    pub visits: Visits,
    /// The queue, or `None` if another thread had it locked for as long as a waiter would spin.
    pub queue: Option<QueueState>,
}

/// The queue of a mutex in a [`Diagnosis`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueState {
    /// The number of waiters.
    pub len: usize,
    described: [Option<WaiterState>; SHOWN],
}

/// One waiter in the queue of a mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaiterState {
    /// The address of its record, which is on the stack of its thread.
    pub address: usize,
    /// Whether its thread sleeps.
    pub sleep: SleepState,
    /// A signal that its thread has not seen yet.
    pub signal: Option<Signal>,
    /// What the mutex has noted about it.
    pub note: Note,
}

/// What the mutex has noted about a waiter in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// Whether the waiter has asked the next release to visit the chain.
    pub has_requested: bool,
    /// Whether the waiter rests: it sleeps until its turn, and releases do not look after it.
    pub is_resting: bool,
    /// Whether a release has taken the waiter out of the queue before, to compete with newcomers.
    pub was_dequeued: bool,
    /// The NUMA node of its thread, modulo 127, if it is noted.
    pub numa_node: Option<u32>,
    /// For how long the waiter has been first, or others have been preferred to it, in ns. After
    /// 1.07 s it begins again at 0. `None`: neither, or it is first since the last visit, and the
    /// next one notes the time.
    pub since_ns: Option<u64>,
}

impl QueueState {
    fn of<P: NearPlatform>(queue: &WaitQueue<'_, P>) -> Self {
        let mut all = Self { len: 0, described: [None; SHOWN] };
        for waiter in queue.waiters() {
            if let Some(place) = all.described.get_mut(all.len) {
                *place = Some(WaiterState::of(waiter));
            }
            all.len += 1;
        }
        all
    }

    /// The waiters, beginning with the first. At most [`SHOWN`].
    pub fn waiters(&self) -> impl Iterator<Item = &WaiterState> {
        self.described.iter().flatten()
    }
}

impl WaiterState {
    fn of<P: NearPlatform>(waiter: &Waiter<P>) -> Self {
        let (sleep, signal) = waiter.state();
        Self { address: ptr::from_ref(waiter).addr(), sleep, signal, note: WaitQueue::note_of(waiter) }
    }

    /// Whether the thread sleeps until a signal or the end of its caller's limit, and there is no
    /// signal.
    fn sleeps_on(&self) -> bool {
        self.sleep == SleepState::Asleep && self.signal.is_none()
    }
}

impl Diagnosis {
    /// The first waiter, if it does not wake up before a signal or the end of its caller's limit.
    fn first_asleep(&self) -> Option<&WaiterState> {
        let first = self.queue.as_ref()?.waiters().next()?;
        first.sleeps_on().then_some(first)
    }

    /// Whether the mutex is free, and the first waiter sleeps until a release wakes it. The thread
    /// that has released the mutex may be about to wake the waiter. If the state stays, and no
    /// thread locks the mutex, then the waiter sleeps for ever, or until its caller's limit.
    pub fn is_free_but_awaited(&self) -> bool {
        !self.is_held && self.first_asleep().is_some()
    }

    /// Whether the first waiter sleeps, and has not asked any release to wake it. This is a fault
    /// of the mutex, whose releases need not notice the waiter.
    pub fn has_forgotten_first(&self) -> bool {
        self.first_asleep().is_some_and(|first| !first.note.has_requested)
    }
}

impl<P: NearPlatform> NearMutex<P> {
    /// Reads the state of the mutex, for debugging. It never waits for the mutex. If another thread
    /// has its queue locked, this spins for less than a millisecond, and does not sleep.
    ///
    /// The state may be another one when this returns. Even while the queue is locked, threads lock
    /// a free mutex, wake up and fall asleep. Everything else in the report is of one moment, if
    /// the queue could be locked.
    pub fn diagnose(&self) -> Diagnosis {
        let queue = WaitQueue::try_of(self);
        let counted = Self::count(self).read();
        Diagnosis {
            is_held: self.word.load(Relaxed) != FREE,
            counted_waiters: counted.waiters(),
            counted_requests: counted.requests(),
            visits: Self::hints(self).read(),
            queue: queue.as_ref().map(QueueState::of),
        }
    }
}

/// A time in ms.
struct Ms(u64);

impl fmt::Display for Ms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:01} ms", self.0 / 1_000_000, self.0 / 100_000 % 10)
    }
}

/// What the mutex has noted, as a clause that follows others.
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.has_requested { ", has made a wake request" } else { ", no wake request" })?;
        if self.is_resting {
            f.write_str(", rests until its turn")?;
        }
        if self.was_dequeued {
            f.write_str(", was dequeued before")?;
        }
        match self.numa_node {
            Some(node) => write!(f, ", NUMA node {node}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for WaiterState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.sleep {
            SleepState::Awake => "awake",
            SleepState::Asleep => "asleep",
            SleepState::AsleepUntil => "asleep with an alarm",
        })?;
        f.write_str(match self.signal {
            None => "",
            Some(Signal::Woken) => ", has been woken",
            Some(Signal::Granted) => ", has been handed the mutex",
        })?;
        self.note.fmt(f)
    }
}

impl fmt::Display for Visits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { is_monopolised, releases_left, releases_between, last_ago_ns } = *self;
        f.write_str(if is_monopolised { "monopolised" } else { "shared" })?;
        if let Some(last_ago_ns) = last_ago_ns {
            write!(f, "; a release last visited the chain {} ago", Ms(last_ago_ns))?;
        }
        write!(f, ", and {releases_left} of {releases_between} releases are left until the next visit")
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (waiters, requests) = (self.counted_waiters, self.counted_requests);
        f.write_str(if self.is_held { "held" } else { "free" })?;
        writeln!(f, "; counted for releases: {waiters} waiters, {requests} wake requests")?;
        write!(f, "{}", self.visits)?;
        let Some(queue) = &self.queue else {
            return write!(f, "\nthe chain is locked by another thread, so the queue is not known");
        };
        write!(f, "\n{} waiters in the queue", queue.len)?;
        for (place, waiter) in queue.waiters().enumerate() {
            write!(f, "\n  {}. {waiter}", place + 1)?;
            match waiter.note.since_ns {
                Some(ns) if place == 0 => write!(f, ", first for {} (modulo 1.07 s)", Ms(ns))?,
                Some(ns) => write!(f, ", passed over for {} (modulo 1.07 s)", Ms(ns))?,
                None => {}
            }
        }
        match queue.len.checked_sub(SHOWN) {
            None | Some(0) => Ok(()),
            Some(more) => write!(f, "\n  and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;
    use std::vec::Vec;

    use super::*;
    use crate::raw::{RawLock, RawTryLock};
    use crate::testing::{NOW_NS, OneThread};

    type Mutex = NearMutex<OneThread>;

    fn held() -> Mutex {
        let mutex = Mutex::new();
        // SAFETY: free.
        assert!(unsafe { mutex.try_lock(&()) });
        mutex
    }

    fn queued(mutex: &Mutex, waiters: &[Waiter<OneThread>]) {
        for (waiter, node) in waiters.iter().zip(0..) {
            // SAFETY: they stay until they are out of the queue.
            unsafe { WaitQueue::of(mutex).join(waiter, node) };
        }
    }

    /// Takes all waiters out of the queue, and frees the mutex.
    fn empty(mutex: &Mutex) {
        while WaitQueue::of(mutex).first().is_some() {
            // SAFETY: for the thread that holds it.
            unsafe { mutex.unlock_fair() };
        }
        // SAFETY: as above.
        unsafe { mutex.unlock(&()) };
    }

    fn first(mutex: &Mutex) -> WaiterState {
        *mutex.diagnose().queue.unwrap().waiters().next().unwrap()
    }

    #[test]
    fn without_waiters_it_is_free_or_held() {
        let (free, held) = (Mutex::new(), held());
        let state = |mutex: &Mutex| {
            let state = mutex.diagnose();
            assert!(!state.is_free_but_awaited() && !state.has_forgotten_first());
            let counted = (state.counted_waiters, state.counted_requests);
            (state.is_held, counted, state.queue.map(|queue| queue.len))
        };
        assert_eq!(state(&free), (false, (0, 0), Some(0)));
        assert_eq!(state(&held), (true, (0, 0), Some(0)));
        assert!(
            free.diagnose()
                .to_string()
                .starts_with("free; counted for releases: 0 waiters, 0 wake requests\n")
        );
        empty(&held);
    }

    #[test]
    fn waiters_are_described_in_their_order() {
        NOW_NS.set(5 << 20);
        let (mutex, waiters) = (held(), [(); 3].map(|()| Waiter::default()));
        queued(&mutex, &waiters);
        WaitQueue::of(&mutex).request(&waiters[0]);
        assert!(waiters[0].falls_asleep());
        NOW_NS.set(7 << 20);
        let state = mutex.diagnose();
        let queue = state.queue.clone().unwrap();
        let counted = (state.counted_waiters, state.counted_requests);
        assert_eq!((state.is_held, counted, queue.len), (true, (3, 1), 3));
        let seen: Vec<_> = queue.waiters().copied().collect();
        let note = Note {
            has_requested: true,
            is_resting: false,
            was_dequeued: false,
            numa_node: Some(0),
            since_ns: Some(2 << 20),
        };
        let address = |at: usize| (&raw const waiters[at]).addr();
        assert_eq!(
            seen[0],
            WaiterState { address: address(0), sleep: SleepState::Asleep, signal: None, note }
        );
        for at in [1, 2] {
            let note = Note { has_requested: false, numa_node: Some(at as u32), since_ns: None, ..note };
            assert_eq!(
                seen[at],
                WaiterState { address: address(at), sleep: SleepState::Awake, signal: None, note }
            );
        }
        let text = state.to_string();
        let first = "\n  1. asleep, has made a wake request, NUMA node 0, first for 2.0 ms (modulo 1.07 s)\n";
        assert!(
            text.contains(first) && text.ends_with("\n  3. awake, no wake request, NUMA node 2"),
            "{text}"
        );
        empty(&mutex);
    }

    #[test]
    fn a_first_that_sleeps_at_a_free_mutex_is_told_from_one_that_was_woken() {
        let (mutex, waiters) = (held(), [Waiter::default()]);
        queued(&mutex, &waiters);
        assert!(waiters[0].falls_asleep());
        let state = mutex.diagnose();
        assert!(state.has_forgotten_first() && !state.is_free_but_awaited(), "{state}");
        WaitQueue::of(&mutex).request(&waiters[0]);
        assert!(!mutex.diagnose().has_forgotten_first());
        // As between the store of a release and its visit to the chain.
        mutex.free();
        assert!(mutex.diagnose().is_free_but_awaited());
        let call = WaitQueue::of(&mutex).first().and_then(Waiter::wake);
        assert!(call.is_some() && !mutex.diagnose().is_free_but_awaited());
        assert_eq!(first(&mutex).signal, Some(Signal::Woken));
        assert!(mutex.take());
        empty(&mutex);
    }

    #[test]
    fn a_waiter_that_is_not_described_is_counted() {
        let waiters: Vec<Waiter<OneThread>> = (0..SHOWN + 2).map(|_| Waiter::default()).collect();
        let mutex = held();
        queued(&mutex, &waiters);
        let state = mutex.diagnose();
        let queue = state.queue.as_ref().unwrap();
        assert_eq!((queue.len, queue.waiters().count()), (SHOWN + 2, SHOWN));
        assert!(state.to_string().ends_with("\n  and 2 more"), "{state}");
        empty(&mutex);
    }

    #[test]
    fn a_chain_that_stays_locked_is_reported_and_not_waited_for() {
        let mutex = held();
        let other = WaitQueue::of(&mutex);
        let state = mutex.diagnose();
        assert!(state.is_held && state.queue.is_none() && !state.has_forgotten_first());
        assert!(state.to_string().contains("the chain is locked by another thread"), "{state}");
        drop(other);
        empty(&mutex);
        assert!(mutex.diagnose().queue.is_some());
    }

    #[test]
    fn notes_and_signals_have_their_words() {
        let note = Note {
            has_requested: false,
            is_resting: true,
            was_dequeued: true,
            numa_node: None,
            since_ns: None,
        };
        let state = |sleep, signal| WaiterState { address: 0, sleep, signal, note }.to_string();
        assert_eq!(
            state(SleepState::AsleepUntil, Some(Signal::Woken)),
            "asleep with an alarm, has been woken, no wake request, rests until its turn, was dequeued before"
        );
        assert_eq!(
            state(SleepState::Awake, Some(Signal::Granted)),
            "awake, has been handed the mutex, no wake request, rests until its turn, was dequeued before"
        );
    }
}
