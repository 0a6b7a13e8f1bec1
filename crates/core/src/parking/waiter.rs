//! A thread that sleeps in the queue of a lock, and the queue.
//!
//! ```text
//! signal  bit 0 woken | 1 granted | 2 asleep | 3 asleep by the clock
//!
//!  0 -> asleep          `rest`: nothing has come yet
//!  0 -> asleep|clock    `doze_until`: the same
//!  * -> *|woken         `wake`: look again
//!  * -> *|granted       `grant`: the lock is yours
//!  * -> *&!(woken|asleep|clock)   `rest` takes what has come; granted stays
//!  * -> *&!(asleep|clock)   `doze_until` ends
//! ```
//! A waiter lies in the stack frame of its thread, in a queue that the lock's `wait_lock` protects.
//!
//! 1. Nobody but its thread takes a waiter away, and only when it is in no queue and no list of chosen waiters: after
//!    it has removed itself under `wait_lock`, or has learnt that others have taken it out, or has seen the grant.
//! 2. So whoever holds `wait_lock` may signal what is in the queue. A grant is the last that its giver does to the
//!    waiter, which may be gone at once.
//! 3. The thread sleeps only while the word is `asleep`, and comparing and falling asleep are one step: a signal
//!    that comes before ends the rest, one that comes after finds `asleep`, and owes the thread a [`Call`]. That
//!    needs the address only, and may be made later.
//!
//! A waiter may be woken for no reason: by a canceller, or by a late call to one that lay here before.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::cancellation::Cancellation;
use crate::classic::ticket::TicketLock;
use crate::classic::ttas::TtasLock;
use crate::linux::qspinlock::{self, QSpinLock, QSpinTuning, QueuePolicy};
use crate::platform::{Atomic, AtomicInt, LocalNodes, Park, ParkTimeout, Platform};
use crate::raw::RawTryLock;

const WOKEN: u32 = 1;
const GRANTED: u32 = 1 << 1;
const ASLEEP: u32 = 1 << 2;
const BY_CLOCK: u32 = 1 << 3;

/// What ended a rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Somebody says: look again.
    Woken,
    /// The lock has been handed over.
    Granted,
}

/// Why a wait ended without the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GaveUp {
    /// The time has passed.
    TimedOut,
    /// The wait was cancelled.
    Cancelled,
}

/// See the [module](self). Zero bytes: nothing has come.
#[repr(C)]
pub struct Waiter<P: Platform> {
    signal: P::U32,
    /// What kind of waiter it is, and what the lock has noted on it: the lock's to define. Under `wait_lock`.
    pub note: P::U32,
    /// Until when it does not insist, in ns; or, in a list of several locks' waiters, for which lock it waits: the lock's to
    /// define. Under `wait_lock`.
    pub mark: P::U64,
    next: P::Ptr<Waiter<P>>,
    previous: P::Ptr<Waiter<P>>,
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

/// A sleeper that is still to be called, by the address where it sleeps. Dropping it leaves the sleeper asleep.
#[must_use = "the waiter sleeps on"]
#[derive(Debug)]
pub struct Call<P: Park> {
    word: *const P::U32,
    by_clock: bool,
}

impl<P: Park> Call<P> {
    /// Calls it. It may be gone: then whoever lies there now wakes for no reason.
    pub fn make(self) {
        P::unpark(self.word, 1);
    }

    /// Whether it has been asleep by the clock: in [`Waiter::doze_until`].
    pub fn is_by_clock(&self) -> bool {
        self.by_clock
    }
}

impl<P: Park> Waiter<P> {
    /// Says: look again. The waiter must be in a queue, whose `wait_lock` the caller holds.
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
        // Ordering: Release, pairs with the Acquires in `take`: what happened before the signal, the grant of the lock
        // above all, is visible to the waiter.
        // SAFETY: alive until this very step.
        let old = unsafe { &*word }.fetch_or(bit, Release);
        (old & ASLEEP != 0).then_some(Call { word, by_clock: old & BY_CLOCK != 0 })
    }

    /// Whether its thread sleeps, or is about to, as far as it is known. Orders nothing.
    pub fn is_asleep(&self) -> bool {
        self.signal.load(Relaxed) & ASLEEP != 0
    }

    /// Whether a signal has come that ends the next rest, as far as it is known. Orders nothing.
    pub fn is_signalled(&self) -> bool {
        self.signal.load(Relaxed) & (WOKEN | GRANTED) != 0
    }

    /// Takes the signal that has come.
    fn take(&self) -> Option<Signal> {
        // Ordering: Acquire, pairs with the Release in `signal_at`.
        let word = self.signal.fetch_and(!(WOKEN | ASLEEP | BY_CLOCK), Acquire);
        match word {
            granted if granted & GRANTED != 0 => Some(Signal::Granted),
            woken if woken & WOKEN != 0 => Some(Signal::Woken),
            _ => None,
        }
    }

    /// Sleeps until a signal comes. One that has come already ends it at once.
    pub fn rest(&self) -> Signal {
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
    /// Sleeps until a signal comes, which is left for the next rest, or until this moment.
    pub fn doze_until(&self, until_ns: u64) {
        while !self.is_signalled() && P::now_ns() < until_ns && self.becomes(ASLEEP | BY_CLOCK) {
            P::park_until(&self.signal, ASLEEP | BY_CLOCK, until_ns);
            // Relaxed: whoever signals does not go by it, but for whether a call is owed.
            self.signal.fetch_and(!(ASLEEP | BY_CLOCK), Relaxed);
        }
    }

    /// As [`rest`](Self::rest), within a limit. Whoever gives up is still in the queue, or has been chosen meanwhile.
    pub fn rest_within(&self, limit: &Limit<'_, P>) -> Result<Signal, GaveUp> {
        loop {
            if let Some(signal) = self.take() {
                return Ok(signal);
            }
            if let Some(gave_up) = limit.is_reached() {
                return Err(gave_up);
            }
            if self.falls_asleep() {
                match limit.until_ns {
                    Some(until_ns) => P::park_until(&self.signal, ASLEEP, until_ns),
                    None => P::park(&self.signal, ASLEEP),
                }
            }
        }
    }
}

/// A lock that protects a list of waiters. Its sections are short: a few lines are touched.
///
/// [`QueueLock`] is for programs: its waiters sleep where the holder has lost its processor. The
/// others are the kernel's, for threads that have a processor each.
pub trait WaitLock: RawTryLock<Node = ()> {
    /// The lock, free.
    #[allow(clippy::declare_interior_mutable_const)] // a template to copy from, never borrowed
    const FREE: Self;
}

/// Does `f`, which does not unwind, while holding the lock.
#[inline]
pub fn locked<L: WaitLock, R>(lock: &L, f: impl FnOnce() -> R) -> R {
    // SAFETY: the node is (), and unlock follows lock.
    unsafe {
        lock.lock(&());
        let r = f();
        lock.unlock(&());
        r
    }
}

impl<P: Platform> WaitLock for TtasLock<P> {
    const FREE: Self = Self::new();
}

/// The kernel's `wait_lock` until 2014. For at most 65535 threads.
impl<P: Platform> WaitLock for TicketLock<P> {
    const FREE: Self = Self::new();
}

impl<P: Park + LocalNodes<qspinlock::Node<P, Q::Part>>, Q: QueuePolicy<P>, T: QSpinTuning> WaitLock
    for QSpinLock<P, Q, T>
{
    const FREE: Self = Self::new();
}

/// Waiters in the order of their coming, unless one is put before others. Everything here is done under the lock's `wait_lock`.
#[repr(C)]
pub struct WaitList<P: Platform> {
    first: P::Ptr<Waiter<P>>,
    last: P::Ptr<Waiter<P>>,
}

impl<P: Platform> Default for WaitList<P> {
    fn default() -> Self {
        Self { first: Atomic::new(ptr::null_mut()), last: Atomic::new(ptr::null_mut()) }
    }
}

impl<P: Platform> WaitList<P> {
    /// Without waiters, in `const`.
    pub const fn new() -> Self {
        Self { first: Atomic::ZERO, last: Atomic::ZERO }
    }

    /// Forgets all waiters, who are gone.
    pub(crate) fn forget(&self) {
        self.first.store(ptr::null_mut(), Relaxed);
        self.last.store(ptr::null_mut(), Relaxed);
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.first().is_null()
    }

    /// Who is first; null if nobody waits.
    pub fn first(&self) -> *mut Waiter<P> {
        self.first.load(Relaxed)
    }

    /// Whether this waiter is first.
    pub fn is_first(&self, waiter: &Waiter<P>) -> bool {
        ptr::eq(self.first(), waiter)
    }

    /// Who comes after this waiter; null if nobody does.
    ///
    /// # Safety
    ///
    /// The waiter is in the list, and the caller holds its lock.
    pub unsafe fn after(&self, waiter: *const Waiter<P>) -> *mut Waiter<P> {
        // SAFETY: waiters in the list are alive (invariant 1).
        unsafe { &*waiter }.next.load(Relaxed)
    }

    /// Puts a waiter at the end.
    ///
    /// # Safety
    ///
    /// The caller holds the list's lock; the waiter is in no list, and stays where it is until it is in none again.
    pub unsafe fn push(&self, waiter: &Waiter<P>) {
        let last = self.last.load(Relaxed);
        waiter.previous.store(last, Relaxed);
        waiter.next.store(ptr::null_mut(), Relaxed);
        let waiter = ptr::from_ref(waiter).cast_mut();
        if last.is_null() {
            self.first.store(waiter, Relaxed);
        } else {
            // SAFETY: in the list, so alive.
            unsafe { &*last }.next.store(waiter, Relaxed);
        }
        self.last.store(waiter, Relaxed);
    }

    /// Puts a waiter behind this one, or else at the beginning, before whoever has waited longer.
    ///
    /// # Safety
    ///
    /// As [`push`](Self::push), and the other is in this list.
    pub unsafe fn push_after(&self, previous: Option<&Waiter<P>>, waiter: &Waiter<P>) {
        let link = previous.map_or(&self.first, |previous| &previous.next);
        let next = link.load(Relaxed);
        let previous = previous.map_or(ptr::null_mut(), |previous| ptr::from_ref(previous).cast_mut());
        waiter.previous.store(previous, Relaxed);
        waiter.next.store(next, Relaxed);
        let waiter = ptr::from_ref(waiter).cast_mut();
        link.store(waiter, Relaxed);
        // SAFETY: in the list, so alive.
        let back = unsafe { next.as_ref() }.map_or(&self.last, |next| &next.previous);
        back.store(waiter, Relaxed);
    }

    /// Takes a waiter out.
    ///
    /// # Safety
    ///
    /// The caller holds the list's lock; the waiter is in this list.
    pub unsafe fn remove(&self, waiter: *const Waiter<P>) {
        // SAFETY: in the list, so alive; so are its neighbours.
        unsafe {
            let (previous, next) = ((*waiter).previous.load(Relaxed), (*waiter).next.load(Relaxed));
            match previous.is_null() {
                true => self.first.store(next, Relaxed),
                false => (*previous).next.store(next, Relaxed),
            }
            match next.is_null() {
                true => self.last.store(previous, Relaxed),
                false => (*next).previous.store(previous, Relaxed),
            }
        }
    }
}

/// Waiters that have been taken out of their queue, and are to be granted the lock or put into another, in order of [`push`](Self::push).
///
/// Two passes: what a grant changes in the lock is changed for all of them before the first of them runs, which may
/// release the lock at once.
#[must_use = "they wait for the grant"]
#[derive(Debug)]
pub struct Chosen<P: Platform> {
    first: *mut Waiter<P>,
    last: *mut Waiter<P>,
}

impl<P: Platform> Chosen<P> {
    /// None yet.
    pub const NOBODY: Self = Self { first: ptr::null_mut(), last: ptr::null_mut() };

    /// Adds a waiter.
    ///
    /// # Safety
    ///
    /// The caller has taken the waiter out of its queue, under its lock; the waiter stays until it has been
    /// [taken out](Self::pop), and told what became of it.
    pub unsafe fn push(&mut self, waiter: *mut Waiter<P>) {
        // SAFETY: neither has been granted anything yet, so both are alive.
        unsafe {
            (*waiter).next.store(ptr::null_mut(), Relaxed);
            match self.last.is_null() {
                true => self.first = waiter,
                false => (*self.last).next.store(waiter, Relaxed),
            }
        }
        self.last = waiter;
    }
}

impl<P: Platform> Chosen<P> {
    /// Takes out whoever was added first of those that are left.
    pub fn pop(&mut self) -> Option<*mut Waiter<P>> {
        let waiter = self.first;
        // SAFETY: it stays until it is told what became of it.
        self.first = unsafe { waiter.as_ref()? }.next.load(Relaxed);
        if self.first.is_null() {
            self.last = ptr::null_mut();
        }
        Some(waiter)
    }
}

impl<P: Park> Chosen<P> {
    /// Grants the lock to each of them, and calls those that sleep.
    pub fn grant(mut self) {
        while let Some(waiter) = self.pop() {
            // SAFETY: it stays until it is granted the lock, which is the last that is done to it.
            if let Some(call) = unsafe { Waiter::grant(waiter) } {
                call.make();
            }
        }
    }
}

/// How long a waiter is willing to wait.
pub struct Limit<'a, P: Platform> {
    /// Until this moment of the platform's clock, in ns; `None`: for ever.
    pub until_ns: Option<u64>,
    /// Until this is cancelled, if there is one.
    pub cancellation: Option<&'a Cancellation<P>>,
}

impl<P: Platform> Limit<'_, P> {
    /// For ever.
    pub const NONE: Self = Self { until_ns: None, cancellation: None };

    /// Until this moment of the platform's clock.
    pub const fn until(ns: u64) -> Self {
        Self { until_ns: Some(ns), cancellation: None }
    }
}

impl<P: ParkTimeout> Limit<'_, P> {
    /// Whether it is over, and why. Cancelled comes first.
    pub fn is_reached(&self) -> Option<GaveUp> {
        if self.cancellation.is_some_and(Cancellation::is_cancelled) {
            return Some(GaveUp::Cancelled);
        }
        self.until_ns.filter(|until_ns| P::now_ns() >= *until_ns).map(|_| GaveUp::TimedOut)
    }

    /// Does `f`, during which a cancellation wakes `waiter`.
    pub fn watch<R>(&self, waiter: &Waiter<P>, f: impl FnOnce() -> R) -> R {
        match self.cancellation {
            None => f(),
            Some(cancellation) => cancellation.watch(waiter, f),
        }
    }
}

#[cfg(test)]
mod tests;
