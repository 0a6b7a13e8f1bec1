//! One thread of a run: its operations on the lock, and its observations.

use std::marker::PhantomData;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};

use nearlock_core::lockstat::Waited;
use nearlock_core::parking::{Cancellation, GaveUp, Limit};
use nearlock_core::platform::{Clock, Random, Work};
use nearlock_core::raw::RawTryLock;
use nearlock_core::schedule::Schedule;
use nearlock_workload::Observer;
use nearlock_workload::locktorture::{Hand, TortureState};

use super::GivenUp;
use super::account::{Account, Doing};
use super::book::{Book, Notifications};
use super::pace::{Next, SLEEP_ONE_IN, Think};
use super::storm::UNLIMITED_ONE_IN;
use super::ways::Ways;
use crate::watched::{OsWatched, waited};
use nearlock_lab::lockstat::{Mode, Record};

/// For locks with other operations than `lock`: one acquisition in this many only calls `try_lock`.
const TRIED_ONE_IN: u64 = 16;
/// One acquisition in this many has a limit, if waiters can give up.
const LIMITED_ONE_IN: u64 = 8;
/// A limit is at most 2^n ns away, where n is drawn uniformly from this range: from less than a
/// section to many sleeps.
const LIMIT_SHIFTS: std::ops::Range<u64> = 8..21;
/// One exclusive section in this many is downgraded.
const DOWNGRADED_ONE_IN: u64 = 8;
/// In a storm, one cancellable waiter in this many has a time limit too.
const STORM_TIMED_ONE_IN: u64 = 4;

/// State of a thread that other threads read. Only the thread itself writes it.
#[derive(Default)]
pub struct Watch {
    /// What the thread does.
    pub account: Account,
    /// The longest wait of an acquisition, in ns.
    pub wait_ns_max: AtomicU64,
    /// Whether the thread waits with a cancellation: 1 or 0.
    pub cancellable: AtomicU64,
    /// Number of times that a reader saw protected data change, or that a downgraded writer saw
    /// another writer.
    pub failures: AtomicU64,
    refused: AtomicU64,
    timed_out: AtomicU64,
    cancelled: AtomicU64,
    downgraded: AtomicU64,
}

impl Watch {
    /// Number of acquisitions without success, by reason.
    pub fn given_up(&self) -> GivenUp {
        let of = |count: &AtomicU64| count.load(Relaxed);
        GivenUp { refused: of(&self.refused), timed_out: of(&self.timed_out), cancelled: of(&self.cancelled) }
    }

    /// Number of sections that were downgraded.
    pub fn downgraded(&self) -> u64 {
        self.downgraded.load(Relaxed)
    }
}

fn count(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}

fn below<P: Random>(n: u64) -> u64 {
    u64::from(P::random_u32()) % n
}

/// The thread's use of the lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Writer,
    Reader,
}

/// The parts of a wait's limit.
struct Patience {
    until_ns: Option<u64>,
    cancellation: Option<Arc<Cancellation<OsWatched>>>,
}

/// A thread's own state, independent of the type of the lock.
pub struct Witness<'a> {
    book: &'a Book,
    thread: usize,
    role: Role,
    waiting_since_ns: u64,
    acquired_ns: u64,
    wait_ns_max: u64,
    canary: u64,
    notifications_before: Notifications,
    /// `None` without recording.
    stopwatch: Option<Stopwatch>,
}

/// Records one thread's acquisitions.
#[derive(Default)]
struct Stopwatch {
    /// The thread's waiting so far, before the acquisition began.
    before: Waited,
    record: Record,
}

impl<'a> Witness<'a> {
    pub fn new(book: &'a Book, thread: usize, role: Role) -> Self {
        let stopwatch = book.lockstat.as_ref().map(|_| Stopwatch::default());
        let notifications_before = Notifications::of_slot();
        let account = &book.watches[thread].0.account;
        account.begin(OsWatched::thread_id().get(), (&raw const notifications_before).cast());
        Self {
            book,
            thread,
            role,
            waiting_since_ns: 0,
            acquired_ns: 0,
            wait_ns_max: 0,
            canary: 0,
            notifications_before,
            stopwatch,
        }
    }

    fn watch(&self) -> &'a Watch {
        &self.book.watches[self.thread].0
    }

    /// The limit of the next wait, if waiters can give up; `None`: no limit.
    fn patience(&self) -> Option<Patience> {
        let within = || {
            let shift = LIMIT_SHIFTS.start + below::<OsWatched>(LIMIT_SHIFTS.end - LIMIT_SHIFTS.start);
            self.waiting_since_ns + below::<OsWatched>(1 << shift)
        };
        match &self.book.storm {
            None if below::<OsWatched>(LIMITED_ONE_IN) == 0 => {
                Some(Patience { until_ns: Some(within()), cancellation: None })
            }
            Some(storm) if below::<OsWatched>(UNLIMITED_ONE_IN) != 0 => {
                let timed = below::<OsWatched>(STORM_TIMED_ONE_IN) == 0;
                Some(Patience {
                    until_ns: timed.then(within),
                    cancellation: Some(storm.cancellation(self.thread)),
                })
            }
            _ => None,
        }
    }

    /// Records the end of a wait. Returns whether the thread has the lock.
    fn waited(&self, outcome: Result<(), GaveUp>) -> bool {
        let watch = self.watch();
        watch.cancellable.store(0, Relaxed);
        match outcome {
            Ok(()) => {}
            Err(GaveUp::TimedOut) => count(&watch.timed_out),
            Err(GaveUp::Cancelled) => count(&watch.cancelled),
        }
        outcome.is_ok()
    }
}

/// Adds the thread's records to the book when the thread ends.
impl Drop for Witness<'_> {
    fn drop(&mut self) {
        let mut notifications = self.book.notifications.lock().unwrap_or_else(PoisonError::into_inner);
        notifications.add(self.notifications_before, Notifications::of_slot());
        drop(notifications);
        if let Some(stopwatch) = &self.stopwatch {
            let mode = match self.role {
                Role::Writer => Mode::Writer,
                Role::Reader => Mode::Reader,
            };
            self.book.record(mode, &stopwatch.record);
        }
    }
}

impl Observer for Witness<'_> {
    fn waiting(&mut self) {
        if let Some(stopwatch) = &mut self.stopwatch {
            stopwatch.before = waited();
        }
        self.waiting_since_ns = OsWatched::now_ns();
        self.watch().account.set(Doing::Waiting { since_ns: self.waiting_since_ns });
    }

    fn acquired(&mut self) {
        let now_ns = OsWatched::now_ns();
        let wait_ns = now_ns.saturating_sub(self.waiting_since_ns);
        if let Some(stopwatch) = &mut self.stopwatch {
            stopwatch.record.acquired(wait_ns, waited().since(stopwatch.before));
        }
        self.watch().account.set(Doing::InSection { since_ns: now_ns });
        self.acquired_ns = now_ns;
        if wait_ns > self.wait_ns_max {
            self.wait_ns_max = wait_ns;
            self.watch().wait_ns_max.store(wait_ns, Relaxed);
        }
        // Read at the beginning of the section and written at its end, so that any overlap shows.
        // SAFETY: this thread holds the lock.
        self.canary = unsafe { self.book.canary.0.read() };
        if let Some(storm) = &self.book.storm {
            storm.hold(|thread| self.book.waits_by_cancellation(thread));
        }
    }

    fn releasing(&mut self) {
        if let Some(stopwatch) = &mut self.stopwatch {
            stopwatch.record.released(OsWatched::now_ns().saturating_sub(self.acquired_ns));
        }
        // SAFETY: the lock is held, exclusively in the case of a writer.
        unsafe {
            match self.role {
                Role::Writer => self.book.canary.0.write(self.canary + 1),
                Role::Reader if self.book.canary.0.read() != self.canary => count(&self.watch().failures),
                Role::Reader => {}
            }
        }
        self.watch().account.set(Doing::Releasing { since_ns: self.acquired_ns });
    }

    fn goes_on(&mut self) -> bool {
        self.watch().account.set(Doing::Thinking);
        let waits = |thread| self.book.waits_by_cancellation(thread);
        if self.book.storm.as_ref().is_some_and(|storm| !storm.goes_on(waits)) {
            return false;
        }
        match self.book.pace.next(self.thread) {
            Next::Stop => false,
            Next::Go(think) => {
                match think {
                    Think::Not => {}
                    Think::Busy { shift } => OsWatched::busy_ns(below::<OsWatched>(1 << shift)),
                    Think::Sleep { shift } => {
                        if below::<OsWatched>(SLEEP_ONE_IN.into()) == 0 {
                            OsWatched::sleep_ns(below::<OsWatched>(1 << shift));
                        }
                    }
                }
                true
            }
        }
    }
}

/// A thread with its lock.
pub struct Torturer<'a, L, O> {
    witness: Witness<'a>,
    shared: &'a TortureState<OsWatched, L>,
    ways: PhantomData<O>,
}

impl<'a, L: RawTryLock, O: Ways<OsWatched, L>> Torturer<'a, L, O> {
    pub fn new(witness: Witness<'a>, shared: &'a TortureState<OsWatched, L>) -> Self {
        Self { witness, shared, ways: PhantomData }
    }

    /// Safety: see `RawTryLock::try_lock`.
    unsafe fn try_lock(&self, lock: &L, node: &L::Node) -> bool {
        // SAFETY: by the caller's promise.
        let acquired = unsafe {
            match self.witness.role {
                Role::Writer => lock.try_lock(node),
                Role::Reader => O::try_lock_shared(lock, node),
            }
        };
        if !acquired {
            count(&self.witness.watch().refused);
        }
        acquired
    }

    /// Safety: see `RawTimedLock::lock_within`.
    unsafe fn lock_within(&self, lock: &L, node: &L::Node, limit: &Limit<'_, OsWatched>) -> bool {
        let cancellable = &self.witness.watch().cancellable;
        cancellable.store(u64::from(limit.cancellation.is_some()), Relaxed);
        // SAFETY: by the caller's promise.
        let outcome = unsafe {
            match self.witness.role {
                Role::Writer => O::lock_within(lock, node, limit),
                Role::Reader => O::lock_shared_within(lock, node, limit),
            }
        };
        self.witness.waited(outcome)
    }
}

impl<L: RawTryLock, O: Ways<OsWatched, L>> Hand<L> for Torturer<'_, L, O> {
    unsafe fn acquire(&mut self, lock: &L, node: &L::Node) -> bool {
        // SAFETY: by the caller's promise, also below.
        let acquired = unsafe {
            if (O::TIMED || O::SHARED) && below::<OsWatched>(TRIED_ONE_IN) == 0 {
                self.try_lock(lock, node)
            } else if let Some(Patience { until_ns, cancellation }) =
                O::TIMED.then(|| self.witness.patience()).flatten()
            {
                self.lock_within(lock, node, &Limit { until_ns, cancellation: cancellation.as_deref() })
            } else {
                match self.witness.role {
                    Role::Writer => lock.lock(node),
                    Role::Reader => O::lock_shared(lock, node),
                }
                true
            }
        };
        // Before the clock is read, so that a thread that has the lock hardly ever says that it
        // waits.
        self.witness.watch().account.set(match acquired {
            true => Doing::InSection { since_ns: self.witness.waiting_since_ns },
            false => Doing::Thinking,
        });
        acquired
    }

    unsafe fn release(&mut self, lock: &L, node: &L::Node) {
        // SAFETY: by the caller's promise, also below.
        unsafe {
            if self.witness.role == Role::Writer && !(O::SHARED && below::<OsWatched>(DOWNGRADED_ONE_IN) == 0)
            {
                return lock.unlock(node);
            }
            if self.witness.role == Role::Writer {
                O::downgrade(lock, node);
                count(&self.witness.watch().downgraded);
                // SAFETY: the lock is held shared.
                let before = self.witness.book.canary.0.read();
                // SAFETY: as above.
                let after = || self.witness.book.canary.0.read();
                let mut unchanged = true;
                let alone = self.shared.read(&self.witness.book.read_held, || unchanged = after() == before);
                if !(alone && unchanged) {
                    count(&self.witness.watch().failures);
                }
            }
            O::unlock_shared(lock, node);
        }
    }
}

impl<L, O> Observer for Torturer<'_, L, O> {
    fn waiting(&mut self) {
        self.witness.waiting();
    }

    fn acquired(&mut self) {
        self.witness.acquired();
    }

    fn releasing(&mut self) {
        self.witness.releasing();
    }

    fn goes_on(&mut self) -> bool {
        self.witness.goes_on()
    }
}
