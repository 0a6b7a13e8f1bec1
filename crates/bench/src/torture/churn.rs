//! Threads that come and go, with locks that come and go: what each of them leaves behind adds up.
//!
//! So many threads at a time live for some ms to some 100 ms. They use locks that they share, and
//! now and then put a new one in the place of one of these; the last that uses a lock frees it.
//! They also have locks of their own, and those with guards of a pool. The process's memory and the
//! library's pools are looked at all the time, and must be [flat](super::memory).

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

use super::memory::{self, Kind, Look, Memory};
use super::run::STACK_BYTES;
use super::ways::{self, ByWays, Ways};
use super::{Counts, Crew, GivenUp, Plan, Problem, TortureError, Tortured, Totals};
use crate::switched;
use crate::watched::OsWatched;

/// How many threads there are at a time unless told otherwise.
pub const THREADS: usize = 64;
/// How many locks they share at a time.
const PLACES: usize = 24;
/// How long to wait for the end of a thread before looking at anything else.
const LOOK: Duration = Duration::from_millis(5);
/// How many looks at the memory there are in a run.
const LOOKS: u32 = 400;
/// A life is 1 ms long, and at most 2^n ns longer, where n is one of these, each as often.
const LIFE_SHIFTS: std::ops::Range<u32> = 20..29;
/// One turn of a life in so many puts a new lock in the place of another.
const RENEWED_ONE_IN: u32 = 8;
/// One in so many uses a lock of its own, and one with guards.
const OWN_ONE_IN: u32 = 8;
/// One acquisition in so many is tried only, one shared, and one limited, where the lock has such
/// ways.
const OTHER_WAY_ONE_IN: u32 = 4;
/// A limit is at most so many ns away: some sleeps.
const LIMIT_NS_MAX: u32 = 1 << 20;
/// One section in so many sleeps, for at most [`SLEEP_NS_MAX`].
const SLEEPING_ONE_IN: u32 = 8;
/// See above.
const SLEEP_NS_MAX: u32 = 1 << 18;
/// A turn is followed by a pause of at most so many ns: so that 64 threads take a part of a
/// processor, and not all of them.
const PAUSE_NS_MAX: u32 = 1 << 22;

fn below(n: u32) -> u32 {
    OsWatched::random_u32() % n
}

/// What lives have come to.
#[derive(Default)]
struct Tally {
    lives: AtomicU64,
    locks: AtomicU64,
    failures: AtomicU64,
    refused: AtomicU64,
    timed_out: AtomicU64,
    wait_ns_max: AtomicU64,
    /// Sections, by seat.
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

/// A lock, and what it protects: a count that is not atomic in effect, and whether somebody is
/// inside.
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

    /// With the lock, exclusively or not: whether nobody has written meanwhile.
    fn read(&self) -> bool {
        let before = self.count.load(Relaxed);
        dwell();
        self.is_held.load(Relaxed) == 0 && self.count.load(Relaxed) == before
    }

    /// With the lock: whether it was alone.
    fn write(&self) -> bool {
        let was_held = self.is_held.swap(1, Relaxed);
        let count = self.count.load(Relaxed);
        dwell();
        self.count.store(count + 1, Relaxed);
        self.writes.fetch_add(1, Relaxed);
        self.is_held.store(0, Relaxed);
        was_held == 0
    }

    /// A section, if there is one. How it was asked for is drawn.
    fn section<O: Ways<OsWatched, L>>(&self) -> bool {
        let node = L::Node::default();
        let asked_ns = OsWatched::now_ns();
        let [tries, shares, limited] = [(); 3].map(|()| below(OTHER_WAY_ONE_IN) == 0);
        let shares = shares && O::SHARED;
        let limit = match limited && O::TIMED {
            true => Limit::until(asked_ns + u64::from(below(LIMIT_NS_MAX))),
            false => Limit::NONE,
        };
        // SAFETY: the node is fresh, and stays until the acquisition has ended below.
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
                // SAFETY: acquired above, in this way.
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

/// What a thread does from its beginning to its end, told its seat.
type Life = Arc<dyn Fn(usize) + Send + Sync>;

/// Makes lives with locks of the type that it is given.
struct Yard {
    tally: Arc<Tally>,
    /// What each thread does beside.
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

/// Tells that a thread is at its end, whatever it ends by.
struct Ended(usize, Sender<usize>);

impl Drop for Ended {
    fn drop(&mut self) {
        // Nobody listens any more after a hang.
        _ = self.1.send(self.0);
    }
}

/// The threads that live at present.
struct Crowd {
    life: Life,
    /// By seat.
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

    /// Waits until the thread in this seat, which is at its end, has gone.
    fn go(&mut self, seat: usize) {
        let gone = self.seats[seat].take().map(JoinHandle::join);
        self.panicked += usize::from(gone.is_some_and(|gone| gone.is_err()));
    }

    fn living(&self) -> usize {
        self.seats.iter().flatten().count()
    }
}

/// Who looks at a run from outside.
struct Watcher<'a> {
    plan: &'a Plan,
    tally: &'a Tally,
    began: Instant,
    /// Their memory is there from the beginning.
    looks: Vec<Look>,
    looked: usize,
    reported: u32,
}

impl Watcher<'_> {
    /// Looks at the memory, and reports, when it is time for that. Whether the run is over.
    fn look(&mut self, interim: &mut dyn FnMut(&Totals)) -> bool {
        let (elapsed, interval) = (self.began.elapsed(), self.plan.stat_interval);
        let is_over = elapsed >= self.plan.duration;
        if !is_over
            && elapsed >= self.plan.duration / LOOKS * self.looked as u32
            && self.looked < self.looks.len()
        {
            self.looks[self.looked] = memory::look();
            self.looked += 1;
        }
        if !interval.is_zero() && elapsed >= interval * (self.reported + 1) {
            interim(&self.tally.totals());
            self.reported += 1;
        }
        is_over
    }

    /// Has threads come for those that have gone until it is over, and all have gone.
    fn run(
        &mut self,
        crowd: &mut Crowd,
        ends: &Receiver<usize>,
        interim: &mut dyn FnMut(&Totals),
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

/// Runs the plan over locks of this kind. `beside` is what each thread does beside, at its end:
/// nothing, but in a control.
pub fn run(
    lock: &'static Subject,
    plan: &Plan,
    interim: &mut dyn FnMut(&Totals),
    beside: fn(),
) -> Result<Tortured, TortureError> {
    super::in_its_way(lock, plan, || run_crowd(lock, plan, interim, beside))
}

fn run_crowd(
    lock: &'static Subject,
    plan: &Plan,
    interim: &mut dyn FnMut(&Totals),
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
    // With what the threads have shared.
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
        churn: Some(Churn { lives: of(&tally.lives), locks: of(&tally.locks), memory }),
        problems,
    })
}

/// What went wrong, but for a standstill.
fn verdict(tally: &Tally, panicked: usize, memory: Option<&Memory>) -> Vec<Problem> {
    let failures = tally.failures.load(Relaxed);
    let exclusion = (failures > 0).then_some(Problem::Exclusion { failures });
    let panicked = (panicked > 0).then_some(Problem::Panicked { threads: panicked });
    exclusion.into_iter().chain(panicked).chain(memory.into_iter().flat_map(Memory::problems)).collect()
}

/// What came and went.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Churn {
    /// Threads.
    pub lives: u64,
    /// Locks that were made.
    pub locks: u64,
    /// `None` if there was no time to look often enough.
    pub memory: Option<Memory>,
}
