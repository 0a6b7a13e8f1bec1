//! Threads and locks that come and go, so that anything that they leave behind accumulates.
//!
//! A fixed number of threads run at the same time, each for some ms to some 100 ms. They use shared
//! locks, and sometimes replace one of these by a new one. The last user of a lock frees it. They
//! also use locks of their own, and locks with guards of a pool. The memory of the process and the
//! pools of the library are observed all the time. They must [not grow](super::memory).

use std::mem;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use nearlock::classic::McsLock;
use nearlock_collection::subjects::Subject;
use nearlock_core::parking::{GaveUp, Limit};
use nearlock_core::platform::{Clock, Random, Work};
use nearlock_core::raw::RawTryLock;
use serde::Serialize;

use super::account::STACK_BYTES;
use super::memory::{self, Kind, Look, Memory};
use super::ways::{self, ByWays, Ways};
use super::{Counts, Crew, GivenUp, News, Plan, Problem, TortureError, Tortured, Totals};
use crate::switched;
use crate::watched::OsWatched;

/// Default number of threads at the same time.
pub const THREADS: usize = 64;
/// Number of shared locks at the same time.
const PLACES: usize = 24;
/// Longest wait for the end of a thread between two other checks.
const LOOK: Duration = Duration::from_millis(5);
/// Number of memory readings in a run.
const LOOKS: u32 = 400;
/// A thread lives for 1 ms plus at most 2^n ns, where n is drawn uniformly from this range.
const LIFE_SHIFTS: std::ops::Range<u32> = 20..29;
/// One turn of a thread in this many replaces a lock by a new one.
const RENEWED_ONE_IN: u32 = 8;
/// One turn in this many uses a new lock of the thread's own, and a lock with guards.
const OWN_ONE_IN: u32 = 8;
/// One acquisition in this many only tries, one in this many is shared, and one in this many has a
/// limit, if the lock has the operation.
const OTHER_WAY_ONE_IN: u32 = 4;
/// Longest limit, in ns: as long as some sleeps.
const LIMIT_NS_MAX: u32 = 1 << 20;
/// The holder sleeps in one section of this many, for at most [`SLEEP_NS_MAX`].
const SLEEPING_ONE_IN: u32 = 8;
/// Longest sleep of a holder, in ns.
const SLEEP_NS_MAX: u32 = 1 << 18;
/// Longest pause after a turn, in ns. With such pauses 64 threads use only a part of one CPU.
const PAUSE_NS_MAX: u32 = 1 << 22;

fn below(n: u32) -> u32 {
    OsWatched::random_u32() % n
}

/// Counts of all threads.
#[derive(Default)]
struct Tally {
    lives: AtomicU64,
    locks: AtomicU64,
    failures: AtomicU64,
    refused: AtomicU64,
    timed_out: AtomicU64,
    wait_ns_max: AtomicU64,
    /// Number of sections, by seat.
    sections: Vec<AtomicU64>,
}

impl Tally {
    fn totals(&self) -> Totals {
        let sections = || self.sections.iter().map(|sections| sections.load(Relaxed));
        let failures = self.failures.load(Relaxed);
        let (max, min) = (sections().max().unwrap_or(0), sections().min().unwrap_or(0));
        Totals { writes: Counts { total: sections().sum(), max, min, failures }, reads: Counts::default() }
    }
}

/// A lock and the data that it protects: a count whose increment is not atomic, and whether a
/// thread is in its section.
struct Thing<L> {
    lock: L,
    is_held: AtomicU64,
    count: AtomicU64,
    writes: AtomicU64,
    tally: Arc<Tally>,
}

impl<L: RawTryLock> Thing<L> {
    fn new(tally: &Arc<Tally>) -> Arc<Self> {
        tally.locks.fetch_add(1, Relaxed);
        let (is_held, count, writes) = Default::default();
        Arc::new(Self { lock: L::default(), is_held, count, writes, tally: Arc::clone(tally) })
    }

    /// To be called with the lock, exclusive or shared. Returns whether there was no writer at the
    /// same time.
    fn read(&self) -> bool {
        let before = self.count.load(Relaxed);
        dwell();
        self.is_held.load(Relaxed) == 0 && self.count.load(Relaxed) == before
    }

    /// To be called with the exclusive lock. Returns whether there was no other holder.
    fn write(&self) -> bool {
        let was_held = self.is_held.swap(1, Relaxed);
        let count = self.count.load(Relaxed);
        dwell();
        self.count.store(count + 1, Relaxed);
        self.writes.fetch_add(1, Relaxed);
        self.is_held.store(0, Relaxed);
        was_held == 0
    }

    /// One acquisition by a random operation, and its section. Returns whether it acquired the
    /// lock.
    fn section<O: Ways<OsWatched, L>>(&self) -> bool {
        let node = L::Node::default();
        let asked_ns = OsWatched::now_ns();
        let [tries, shares, limited] = [(); 3].map(|()| below(OTHER_WAY_ONE_IN) == 0);
        let shares = shares && O::SHARED;
        let limit = match limited && O::TIMED {
            true => Limit::until(asked_ns + u64::from(below(LIMIT_NS_MAX))),
            false => Limit::NONE,
        };
        // SAFETY: the node is new, and stays in place until the acquisition has ended below.
        let acquired = unsafe {
            match (tries, shares) {
                (true, true) => O::try_lock_shared(&self.lock, &node).then_some(()).ok_or(None),
                (true, false) => self.lock.try_lock(&node).then_some(()).ok_or(None),
                (false, true) => O::lock_shared_within(&self.lock, &node, &limit).map_err(Some),
                (false, false) => O::lock_within(&self.lock, &node, &limit).map_err(Some),
            }
        };
        let wait_ns = OsWatched::now_ns().saturating_sub(asked_ns);
        match acquired {
            Err(None) => _ = self.tally.refused.fetch_add(1, Relaxed),
            Err(Some(GaveUp::TimedOut | GaveUp::Cancelled)) => _ = self.tally.timed_out.fetch_add(1, Relaxed),
            Ok(()) => {
                let alone = if shares { self.read() } else { self.write() };
                // SAFETY: locked above in the same mode.
                unsafe {
                    if shares {
                        O::unlock_shared(&self.lock, &node);
                    } else {
                        self.lock.unlock(&node);
                    }
                }
                self.tally.failures.fetch_add(u64::from(!alone), Relaxed);
                self.tally.wait_ns_max.fetch_max(wait_ns, Relaxed);
            }
        }
        acquired.is_ok()
    }
}

impl<L> Drop for Thing<L> {
    fn drop(&mut self) {
        let lost = *self.writes.get_mut() - *self.count.get_mut();
        self.tally.failures.fetch_add(lost, Relaxed);
    }
}

fn dwell() {
    if below(SLEEPING_ONE_IN) == 0 {
        OsWatched::sleep_ns(below(SLEEP_NS_MAX).into());
    }
}

/// The body of a thread, which gets its seat.
type Life = Arc<dyn Fn(usize) + Send + Sync>;

/// Makes thread bodies with locks of the given type.
struct Yard {
    tally: Arc<Tally>,
    /// Called by each thread at its end.
    beside: fn(),
}

impl ByWays for Yard {
    type Output = Life;
    fn by<L: RawTryLock, O: Ways<OsWatched, L>>(self) -> Life {
        let Self { tally, beside } = self;
        let places: Vec<_> = (0..PLACES).map(|_| Mutex::new(Thing::<L>::new(&tally))).collect();
        Arc::new(move |seat| {
            live::<L, O>(&tally, &places, seat);
            beside();
        })
    }
}

fn live<L: RawTryLock, O: Ways<OsWatched, L>>(
    tally: &Arc<Tally>,
    places: &[Mutex<Arc<Thing<L>>>],
    seat: usize,
) {
    let shift = LIFE_SHIFTS.start + below(LIFE_SHIFTS.len() as u32);
    let end_ns = OsWatched::now_ns() + 1_000_000 + u64::from(below(1 << shift));
    let mut own = Thing::<L>::new(tally);
    while OsWatched::now_ns() < end_ns {
        let place = &places[below(PLACES as u32) as usize];
        let mut at_place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if below(RENEWED_ONE_IN) == 0 {
            let old = mem::replace(&mut *at_place, Thing::new(tally));
            drop(at_place);
            drop(old);
            continue;
        }
        let mut thing = Arc::clone(&at_place);
        drop(at_place);
        if below(OWN_ONE_IN) == 0 {
            own = Thing::new(tally);
            thing = Arc::clone(&own);
            let (outer, inner) = (McsLock::new(()), McsLock::new(()));
            let _held = (outer.lock(), inner.lock());
        }
        let sections = u64::from(thing.section::<O>());
        tally.sections[seat].fetch_add(sections, Relaxed);
        OsWatched::sleep_ns(below(PAUSE_NS_MAX).into());
    }
    drop(own);
    tally.lives.fetch_add(1, Relaxed);
}

/// Sends the seat at the end of its thread, including after a panic.
struct Ended(usize, Sender<usize>);

impl Drop for Ended {
    fn drop(&mut self) {
        // After a hang there is no receiver.
        _ = self.1.send(self.0);
    }
}

/// The threads that run at present.
struct Crowd {
    life: Life,
    /// The threads, by seat.
    seats: Vec<Option<JoinHandle<()>>>,
    sender: Sender<usize>,
    panicked: usize,
}

impl Crowd {
    fn come(&mut self, seat: usize) -> Result<(), TortureError> {
        let (life, ended) = (Arc::clone(&self.life), Ended(seat, self.sender.clone()));
        let live = move || {
            let ended = ended;
            life(ended.0);
        };
        let threads = self.seats.len();
        let started = Builder::new().name(format!("seat {seat}")).stack_size(STACK_BYTES).spawn(live);
        self.seats[seat] =
            Some(started.map_err(|source| TortureError::Spawn { thread: seat, threads, source })?);
        Ok(())
    }

    /// Joins the thread of this seat, which is about to end.
    fn go(&mut self, seat: usize) {
        let gone = self.seats[seat].take().map(JoinHandle::join);
        self.panicked += usize::from(gone.is_some_and(|gone| gone.is_err()));
    }

    fn living(&self) -> usize {
        self.seats.iter().flatten().count()
    }
}

/// Observes a run from outside.
struct Watcher<'a> {
    plan: &'a Plan,
    tally: &'a Tally,
    began: Instant,
    /// Memory readings. The memory for them is allocated from the beginning.
    looks: Vec<Look>,
    looked: usize,
    reported: u32,
}

impl Watcher<'_> {
    /// Reads the memory use, and reports, if it is time for that. Returns whether the run is over.
    fn look(&mut self, interim: &mut dyn FnMut(News<'_>)) -> bool {
        let (elapsed, interval) = (self.began.elapsed(), self.plan.stat_interval);
        let is_over = elapsed >= self.plan.duration || (self.plan.is_interrupted)();
        if !is_over
            && elapsed >= self.plan.duration / LOOKS * self.looked as u32
            && self.looked < self.looks.len()
        {
            self.looks[self.looked] = memory::look();
            self.looked += 1;
        }
        if !interval.is_zero() && elapsed >= interval * (self.reported + 1) {
            interim(News::Totals(&self.tally.totals()));
            self.reported += 1;
        }
        is_over
    }

    /// Replaces threads that have ended, until the run is over and all threads have ended.
    fn run(
        &mut self,
        crowd: &mut Crowd,
        ends: &Receiver<usize>,
        interim: &mut dyn FnMut(News<'_>),
    ) -> Result<Option<Problem>, TortureError> {
        let mut idle_since = self.began;
        while crowd.living() > 0 {
            let is_over = self.look(interim);
            if let Ok(seat) = ends.recv_timeout(LOOK) {
                idle_since = Instant::now();
                crowd.go(seat);
                if !is_over && crowd.panicked == 0 {
                    crowd.come(seat)?;
                }
            }
            let idle = idle_since.elapsed();
            if idle >= self.plan.hang {
                let (waiting, threads) = (crowd.living(), crowd.seats.len());
                return Ok(Some(Problem::Hang { idle, waiting, threads }));
            }
        }
        Ok(None)
    }

    fn memory(&self) -> Option<Memory> {
        Memory::of(&self.looks[..self.looked])
    }
}

/// Runs the plan with locks of this kind. Each thread calls `beside` at its end, which does nothing
/// except in a control experiment.
pub fn run(
    lock: &'static Subject,
    plan: &Plan,
    interim: &mut dyn FnMut(News<'_>),
    beside: fn(),
) -> Result<Tortured, TortureError> {
    super::in_its_way(lock, plan, || run_crowd(lock, plan, interim, beside))
}

fn run_crowd(
    lock: &'static Subject,
    plan: &Plan,
    interim: &mut dyn FnMut(News<'_>),
    beside: fn(),
) -> Result<Tortured, TortureError> {
    let threads = plan.writers.unwrap_or(THREADS);
    let sections = (0..threads).map(|_| AtomicU64::new(0)).collect();
    let tally = Arc::new(Tally { sections, ..Tally::default() });
    let life = ways::visit(lock, Yard { tally: Arc::clone(&tally), beside });
    let events_before = nearlock_os::events();
    let (sender, ends) = channel();
    let mut crowd = Crowd { life, seats: (0..threads).map(|_| None).collect(), sender, panicked: 0 };
    (0..threads).try_for_each(|seat| crowd.come(seat))?;
    let (began, looks) = (Instant::now(), vec![[1; Kind::ALL.len()]; LOOKS as usize]);
    let mut watcher = Watcher { plan, tally: &tally, began, looks, looked: 0, reported: 0 };
    let hang = watcher.run(&mut crowd, &ends, interim)?;
    if hang.is_some() {
        switched::leave_behind(lock);
    }
    let (memory, seconds) = (watcher.memory(), began.elapsed().as_secs_f64());
    let panicked = crowd.panicked;
    // This also drops the locks that the threads have shared.
    drop(crowd);
    let problems = hang.into_iter().chain(verdict(&tally, panicked, memory.as_ref())).collect();
    let mut events = nearlock_os::events();
    events.iter_mut().zip(events_before).for_each(|(count, before)| *count -= before);
    let of = |count: &AtomicU64| count.load(Relaxed);
    Ok(Tortured {
        lock,
        crew: Crew { writers: threads, readers: 0 },
        totals: tally.totals(),
        given_up: GivenUp { refused: of(&tally.refused), timed_out: of(&tally.timed_out), cancelled: 0 },
        downgraded: 0,
        seconds,
        wait_ns_max: of(&tally.wait_ns_max),
        events,
        lockstat: None,
        stalls: None,
        churn: Some(Churn { lives: of(&tally.lives), locks: of(&tally.locks), memory }),
        problems,
    })
}

/// The problems, except a hang.
fn verdict(tally: &Tally, panicked: usize, memory: Option<&Memory>) -> Vec<Problem> {
    let failures = tally.failures.load(Relaxed);
    let exclusion = (failures > 0).then_some(Problem::Exclusion { failures });
    let panicked = (panicked > 0).then_some(Problem::Panicked { threads: panicked });
    exclusion.into_iter().chain(panicked).chain(memory.into_iter().flat_map(Memory::problems)).collect()
}

/// Counts of threads and locks that came and went.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Churn {
    /// Number of threads.
    pub lives: u64,
    /// Number of locks that were made.
    pub locks: u64,
    /// `None` if the run was too short for enough memory readings.
    pub memory: Option<Memory>,
}
