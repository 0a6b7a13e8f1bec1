//! The record of a thread that sleeps in the queue of a lock.
//!
//! ```text
//! signal  bit 0 WOKEN | 1 GRANTED | 2 ASLEEP | 3 BY_CLOCK
//!
//!  0 -> ASLEEP            `park`: there is no signal yet
//!  0 -> ASLEEP|BY_CLOCK   `park_until`: the same
//!  * -> *|WOKEN           `wake`: look again
//!  * -> *|GRANTED         `grant`: the lock is yours, or whatever else the lock has noted
//!  * -> *&GRANTED         `park` takes the signal; GRANTED stays
//!  * -> *&!(ASLEEP|BY_CLOCK)   `park_until` ends
//!  * -> *&!GRANTED        `forget_grant`: for another wait
//! ```
//! A waiter lies in the stack frame of its thread, in a queue that the lock's `wait_lock` protects.
//!
//! 1. Only its own thread frees a waiter, and only when the waiter is in no queue and no
//!    [`WakeList`](super::wait_list::WakeList). The thread knows that when it has removed the
//!    waiter under `wait_lock`, or has learnt that others have taken it out, or has seen the grant.
//! 2. So a thread that holds `wait_lock` may signal the waiters in the queue. A grant is the last
//!    access of its giver to the waiter, whose thread may free it at once.
//! 3. The thread sleeps only while the word is ASLEEP, and comparing and falling asleep are one
//!    step. A signal before that prevents the sleep. A signal after that finds ASLEEP, and its
//!    giver owes the thread a [`Call`]. A call needs the address only, and may be made later.
//!
//! A waiter may wake up for no reason: by a canceller, or by a late call to a waiter that was at
//! the same address before.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::platform::{Atomic, AtomicInt, Park, ParkTimeout, Platform};

const WOKEN: u32 = 1;
const GRANTED: u32 = 1 << 1;
pub(super) const ASLEEP: u32 = 1 << 2;
const BY_CLOCK: u32 = 1 << 3;

/// The reason why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The waiter has to look again.
    Woken,
    /// The lock has been handed over, or whatever else the lock has noted on the waiter.
    Granted,
}

/// Whether the thread of a waiter is awake, as its record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SleepState {
    /// The thread is awake.
    Awake,
    /// The thread sleeps until a signal or the end of its caller's limit, or is about to.
    Asleep,
    /// The same, but it also wakes up by itself, at a time that the lock has chosen.
    AsleepUntil,
}

/// See the [module](self). Zero bytes: there is no signal.
#[repr(C)]
pub struct Waiter<P: Platform> {
    pub(super) signal: P::U32,
    /// The kind of the waiter, and the notes of the lock on it. Each lock defines them. Protected
    /// by `wait_lock`.
    pub note: P::U32,
    /// Until when the waiter lets others overtake it, in ns. Or, in a list with the waiters of
    /// several locks, the lock for which it waits. Each lock defines that. Protected by
    /// `wait_lock`.
    pub mark: P::U64,
    pub(super) next: P::Ptr<Waiter<P>>,
    pub(super) previous: P::Ptr<Waiter<P>>,
}

impl<P: Platform> Default for Waiter<P> {
    fn default() -> Self {
        Self {
            signal: Atomic::new(0),
            note: Atomic::new(0),
            mark: Atomic::new(0),
            next: Atomic::new(ptr::null_mut()),
            previous: Atomic::new(ptr::null_mut()),
        }
    }
}

/// A wake-up that is still to be made, by the address at which the waiter sleeps. If the call is
/// dropped, the waiter sleeps on.
#[must_use = "the waiter sleeps on"]
#[derive(Debug)]
pub struct Call<P: Park> {
    word: *const P::U32,
    by_clock: bool,
}

impl<P: Park> Call<P> {
    /// Wakes the waiter. The waiter may have been freed. Then a waiter that is now at its address
    /// wakes up for no reason.
    #[inline(always)]
    pub fn make(self) {
        P::unpark(self.word, 1);
    }

    /// Whether the waiter sleeps with a time limit, in [`Waiter::park_until`].
    pub fn is_by_clock(&self) -> bool {
        self.by_clock
    }
}

impl<P: Park> Waiter<P> {
    /// Tells the waiter to look again. It must be in a queue, whose `wait_lock` the caller holds.
    pub fn wake(&self) -> Option<Call<P>> {
        // SAFETY: `self` is a reference, and so alive.
        unsafe { Self::signal_at(self, WOKEN) }
    }

    /// Hands the lock over to a waiter that has been taken out of its queue, or whatever else the
    /// lock has noted on the waiter.
    ///
    /// # Safety
    ///
    /// The waiter is alive: its thread waits for this grant.
    pub unsafe fn grant(waiter: *const Self) -> Option<Call<P>> {
        // SAFETY: the caller's.
        unsafe { Self::signal_at(waiter, GRANTED) }
    }

    /// Safety: the waiter is alive until the bit is set.
    unsafe fn signal_at(waiter: *const Self, bit: u32) -> Option<Call<P>> {
        // SAFETY: a field of the waiter. Only its address is used afterwards.
        let word = unsafe { &raw const (*waiter).signal };
        // Ordering: Release, pairs with the Acquire in `take`: everything before the signal is
        // visible to the waiter. This matters most for the grant of the lock.
        // SAFETY: the waiter is alive until this step.
        let old = unsafe { &*word }.fetch_or(bit, Release);
        (old & ASLEEP != 0).then_some(Call { word, by_clock: old & BY_CLOCK != 0 })
    }

    /// Whether the thread sleeps, or is about to, as far as is known. Orders nothing.
    pub fn is_asleep(&self) -> bool {
        self.signal.load(Relaxed) & ASLEEP != 0
    }

    /// Whether there is a signal, which ends the next sleep, as far as is known. Orders nothing.
    pub fn is_signalled(&self) -> bool {
        self.signal.load(Relaxed) & (WOKEN | GRANTED) != 0
    }

    /// Whether the thread sleeps, and the signal that it has not taken yet. For a report about the
    /// waiter of another thread, which may change at any time. Orders nothing.
    pub fn state(&self) -> (SleepState, Option<Signal>) {
        let word = self.signal.load(Relaxed);
        let sleep = match word & (ASLEEP | BY_CLOCK) {
            0 => SleepState::Awake,
            ASLEEP => SleepState::Asleep,
            _ => SleepState::AsleepUntil,
        };
        let signal = match word & (WOKEN | GRANTED) {
            0 => None,
            WOKEN => Some(Signal::Woken),
            _ => Some(Signal::Granted),
        };
        (sleep, signal)
    }

    /// Forgets a grant, for another wait. Other signals stay: a canceller may wake the waiter at
    /// any time.
    pub(crate) fn forget_grant(&self) {
        self.signal.fetch_and(!GRANTED, Relaxed);
    }

    /// Takes the signal, if there is one.
    pub(super) fn take(&self) -> Option<Signal> {
        // Ordering: Acquire, pairs with the Release in `signal_at`.
        let word = self.signal.fetch_and(!(WOKEN | ASLEEP | BY_CLOCK), Acquire);
        match word {
            granted if granted & GRANTED != 0 => Some(Signal::Granted),
            woken if woken & WOKEN != 0 => Some(Signal::Woken),
            _ => None,
        }
    }

    /// Sleeps until there is a signal. Returns at once if there is one already.
    pub fn park(&self) -> Signal {
        loop {
            if let Some(signal) = self.take() {
                return signal;
            }
            if self.falls_asleep() {
                P::park(&self.signal, ASLEEP);
            }
        }
    }

    /// Marks the waiter as asleep. Returns false if there is a signal. Relaxed: `take` orders.
    pub(crate) fn falls_asleep(&self) -> bool {
        self.becomes(ASLEEP)
    }

    fn becomes(&self, sleep: u32) -> bool {
        self.signal.compare_exchange(0, sleep, Relaxed, Relaxed).is_ok()
    }
}

impl<P: ParkTimeout> Waiter<P> {
    /// Sleeps until there is a signal, or until this moment. The signal is left for the next call
    /// of [`park`](Self::park).
    pub fn park_until(&self, until_ns: u64) {
        while !self.is_signalled() && P::now_ns() < until_ns && self.becomes(ASLEEP | BY_CLOCK) {
            P::park_until(&self.signal, ASLEEP | BY_CLOCK, until_ns);
            // Relaxed: a signalling thread uses these bits only to know whether it owes a call.
            self.signal.fetch_and(!(ASLEEP | BY_CLOCK), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
