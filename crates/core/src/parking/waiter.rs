//! The record of a thread that sleeps in the queue of a lock.
//!
//! ```text
//! signal  bit 0 WOKEN | 1 GRANTED | 2 ASLEEP | 3 BY_CLOCK
//!
//!  0 -> ASLEEP            `park`: nothing has come yet
//!  0 -> ASLEEP|BY_CLOCK   `park_until`: the same
//!  * -> *|WOKEN           `wake`: look again
//!  * -> *|GRANTED         `grant`: the lock is yours
//!  * -> *&GRANTED         `park` takes what has come; GRANTED stays
//!  * -> *&!(ASLEEP|BY_CLOCK)   `park_until` ends
//! ```
//! A waiter lies in the stack frame of its thread, in a queue that the lock's `wait_lock` protects.
//!
//! 1. Only its own thread takes a waiter away, and only when the waiter is in no queue and no
//!    [`WakeList`](super::wait_list::WakeList): after the thread has removed it under `wait_lock`,
//!    or has learnt that others have taken it out, or has seen the grant.
//! 2. So a thread that holds `wait_lock` may signal what is in the queue. A grant is the last that
//!    its giver does to the waiter, which may be gone at once.
//! 3. The thread sleeps only while the word is ASLEEP, and comparing and falling asleep are one
//!    step. A signal that comes before ends the sleep before it begins. One that comes after finds
//!    ASLEEP, and owes the thread a [`Call`]. That needs the address only, and may be made later.
//!
//! A waiter may be woken for no reason: by a canceller, or by a late call to one that lay at the
//! same address before.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::platform::{Atomic, AtomicInt, Park, ParkTimeout, Platform};

const WOKEN: u32 = 1;
const GRANTED: u32 = 1 << 1;
pub(super) const ASLEEP: u32 = 1 << 2;
const BY_CLOCK: u32 = 1 << 3;

/// What ended a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The waiter has to look again.
    Woken,
    /// The lock has been handed over.
    Granted,
}

/// See the [module](self). Zero bytes: nothing has come.
#[repr(C)]
pub struct Waiter<P: Platform> {
    pub(super) signal: P::U32,
    /// What kind of waiter it is, and what the lock has noted on it. Each lock defines that. Under
    /// `wait_lock`.
    pub note: P::U32,
    /// Until when it does not insist, in ns; or, in a list of several locks' waiters, for which
    /// lock it waits. Each lock defines that. Under `wait_lock`.
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

/// A wake-up that is still to be made, by the address where the waiter sleeps. If it is dropped,
/// the waiter sleeps on.
#[must_use = "the waiter sleeps on"]
#[derive(Debug)]
pub struct Call<P: Park> {
    word: *const P::U32,
    by_clock: bool,
}

impl<P: Park> Call<P> {
    /// Wakes the waiter. It may be gone: then a waiter that lies there now wakes for no reason.
    pub fn make(self) {
        P::unpark(self.word, 1);
    }

    /// Whether the waiter sleeps until some moment: in [`Waiter::park_until`].
    pub fn is_by_clock(&self) -> bool {
        self.by_clock
    }
}

impl<P: Park> Waiter<P> {
    /// Tells the waiter to look again. It must be in a queue, whose `wait_lock` the caller holds.
    pub fn wake(&self) -> Option<Call<P>> {
        // SAFETY: a reference is alive.
        unsafe { Self::signal_at(self, WOKEN) }
    }

    /// Hands the lock over to a waiter that has been taken out of its queue.
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
        // SAFETY: a field of the waiter, of which only the address is used afterwards.
        let word = unsafe { &raw const (*waiter).signal };
        // Ordering: Release, pairs with the Acquires in `take`: what happened before the signal,
        // the grant of the lock above all, is visible to the waiter.
        // SAFETY: alive until this very step.
        let old = unsafe { &*word }.fetch_or(bit, Release);
        (old & ASLEEP != 0).then_some(Call { word, by_clock: old & BY_CLOCK != 0 })
    }

    /// Whether its thread sleeps, or is about to, as far as is known. Orders nothing.
    pub fn is_asleep(&self) -> bool {
        self.signal.load(Relaxed) & ASLEEP != 0
    }

    /// Whether a signal has come that ends the next sleep, as far as is known. Orders nothing.
    pub fn is_signalled(&self) -> bool {
        self.signal.load(Relaxed) & (WOKEN | GRANTED) != 0
    }

    /// Takes the signal that has come.
    pub(super) fn take(&self) -> Option<Signal> {
        // Ordering: Acquire, pairs with the Release in `signal_at`.
        let word = self.signal.fetch_and(!(WOKEN | ASLEEP | BY_CLOCK), Acquire);
        match word {
            granted if granted & GRANTED != 0 => Some(Signal::Granted),
            woken if woken & WOKEN != 0 => Some(Signal::Woken),
            _ => None,
        }
    }

    /// Sleeps until a signal comes. Returns at once if one has come already.
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

    /// Whether nothing has come. Relaxed: `take` orders.
    pub(crate) fn falls_asleep(&self) -> bool {
        self.becomes(ASLEEP)
    }

    fn becomes(&self, sleep: u32) -> bool {
        self.signal.compare_exchange(0, sleep, Relaxed, Relaxed).is_ok()
    }
}

impl<P: ParkTimeout> Waiter<P> {
    /// Sleeps until a signal comes, which is left for the next call of [`park`](Self::park), or
    /// until this moment.
    pub fn park_until(&self, until_ns: u64) {
        while !self.is_signalled() && P::now_ns() < until_ns && self.becomes(ASLEEP | BY_CLOCK) {
            P::park_until(&self.signal, ASLEEP | BY_CLOCK, until_ns);
            // Relaxed: a thread that signals uses these bits only to know whether it owes a call.
            self.signal.fetch_and(!(ASLEEP | BY_CLOCK), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
