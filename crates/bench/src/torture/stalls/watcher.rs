//! The thread that watches a run.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use nearlock_core::schedule::{OwnerState, Schedule, ThreadId};

use super::conclusion::{Cause, Conclusion, Facts, is_stuck};
use super::tasks::{Task, stolen};
use super::{Event, Policy, Stall, StallEnd, Stalls, now_ns};
use crate::torture::account::Doing;
use crate::torture::book::Book;
use crate::watched::OsWatched;

/// The watcher looks so many times in the time after which it reports a stall.
const LOOKS: u32 = 8;
/// The longest time between two looks.
const LOOK_MAX: Duration = Duration::from_millis(10);
/// Time between two readings of the threads that tell a lost wake-up from one that is late.
const CHECK: Duration = Duration::from_millis(100);

/// A run under observation.
pub struct Watcher {
    events: Receiver<Event>,
    is_over: Arc<AtomicBool>,
    handle: JoinHandle<Stalls>,
}

impl Watcher {
    /// Starts the thread, which reports a stall when no thread has acquired the lock for this time.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn start(book: &Arc<Book>, patience: Duration) -> io::Result<Self> {
        let (sender, events) = channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let (book, over) = (Arc::clone(book), Arc::clone(&is_over));
        let watch = move || {
            let mut watch = Watch::new(&book, patience, priority::raise(), sender);
            let interval = (patience / LOOKS).min(LOOK_MAX);
            while !over.load(Relaxed) {
                let due = Instant::now() + interval;
                std::thread::sleep(interval);
                watch.look(due);
            }
            watch.stalls()
        };
        let handle = Builder::new().name("watcher".to_owned()).spawn(watch)?;
        Ok(Self { events, is_over, handle })
    }

    /// The stalls and their ends since the last call.
    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        self.events.try_iter()
    }

    /// Ends the thread. Returns the events since the last call of [`events`](Self::events), and all
    /// stalls, or `None` if the thread panicked.
    pub fn end(self) -> (Vec<Event>, Option<Stalls>) {
        self.is_over.store(true, Relaxed);
        let stalls = self.handle.join().ok();
        (self.events.try_iter().collect(), stalls)
    }
}

/// The threads of a run at one moment.
struct Reading {
    at: Instant,
    tasks: Vec<Option<Task>>,
    stolen: Duration,
}

impl Reading {
    fn of(book: &Book) -> Self {
        let threads = book.watches.iter().map(|watch| watch.0.account.task());
        let tasks = threads.chain(book.canceller()).map(|task| Task::read(task?)).collect();
        Self { at: Instant::now(), tasks, stolen: stolen() }
    }
}

/// A stall that has been reported.
struct Reported {
    /// The last reading since the report.
    last: Reading,
    /// Acquisitions of each thread at the time of the report.
    acquired: Vec<u64>,
    is_lost: bool,
}

/// What the watcher knows.
struct Watch<'a> {
    book: &'a Book,
    patience: Duration,
    events: Sender<Event>,
    stalls: Stalls,
    began: Instant,
    acquired: u64,
    /// When the watcher last saw that a thread had acquired the lock.
    progress: Instant,
    /// A reading with which later ones are compared.
    base: Reading,
    /// Whether the base was read after the last progress.
    is_base_new: bool,
    reported: Option<Reported>,
}

impl<'a> Watch<'a> {
    fn new(book: &'a Book, patience: Duration, policy: Policy, events: Sender<Event>) -> Self {
        Self {
            book,
            patience,
            events,
            stalls: Stalls::new(policy),
            began: Instant::now(),
            acquired: 0,
            progress: Instant::now(),
            base: Reading::of(book),
            is_base_new: true,
            reported: None,
        }
    }

    /// Looks at the run. It was to look at the time `due`.
    fn look(&mut self, due: Instant) {
        let now = Instant::now();
        let late = now.saturating_duration_since(due);
        if late >= self.patience / 2 {
            self.stalls.late += 1;
        }
        let totals = self.book.totals();
        let acquired = totals.writes.total + totals.reads.total;
        if acquired != self.acquired {
            self.end_stall();
            self.acquired = acquired;
            self.progress = now;
            self.is_base_new = false;
            return;
        }
        let idle = now - self.progress;
        let has_new_base = self.is_base_new;
        if !has_new_base && idle >= self.patience / 4 {
            // A watcher that is late has no newer reading to compare with.
            if idle < self.patience {
                self.base = Reading::of(self.book);
            }
            self.is_base_new = true;
        }
        match &self.reported {
            None if idle >= self.patience => self.begin_stall(idle, late),
            Some(reported) if !reported.is_lost && reported.last.at.elapsed() >= CHECK => {
                self.check(idle, late)
            }
            _ => {}
        }
    }

    /// The facts about all threads, compared with an earlier reading.
    fn facts(&self, before: &Reading, now: &Reading) -> Vec<Facts> {
        let task = |at: usize| Some(now.tasks[at].as_ref()?.since(before.tasks.get(at)?.as_ref()));
        let is_parked = |task: u32| {
            let state = ThreadId::new(task).map(OsWatched::owner_state);
            state == Some(OwnerState::Asleep)
        };
        let accounts = self.book.watches.iter().map(|watch| &watch.0.account);
        let threads = accounts.map(|account| (Some(account.doing()), account.task().is_some_and(is_parked)));
        let all = threads.chain(self.book.canceller().map(|_| (None, false))).enumerate();
        all.map(|(at, (doing, is_parked))| Facts { doing, task: task(at), is_parked, place: None }).collect()
    }

    /// Whether a thread has wanted the lock, or had it, for as long as a stall takes. The lock is
    /// not to blame if no thread does.
    fn is_wanted(&self, facts: &[Facts]) -> bool {
        let now_ns = now_ns();
        facts.iter().any(|thread| match thread.doing {
            None | Some(Doing::Thinking) => thread.is_without_processor(),
            Some(
                Doing::Waiting { since_ns } | Doing::InSection { since_ns } | Doing::Releasing { since_ns },
            ) => now_ns.saturating_sub(since_ns) >= self.patience.as_nanos() as u64,
        })
    }

    fn begin_stall(&mut self, idle: Duration, late: Duration) {
        let now = Reading::of(self.book);
        let facts = self.facts(&self.base, &now);
        if !self.is_wanted(&facts) {
            return;
        }
        let over = now.at - self.base.at;
        let stall = self.stall(idle, late, facts, over, now.stolen.saturating_sub(self.base.stolen));
        self.stalls.add(&stall.conclusion);
        // The receiver is gone only when the run is over.
        _ = self.events.send(Event::Stall(Box::new(stall)));
        self.reported = Some(Reported { last: now, acquired: self.book.acquired(), is_lost: false });
    }

    fn stall(
        &self,
        idle: Duration,
        late: Duration,
        mut facts: Vec<Facts>,
        over: Duration,
        stolen: Duration,
    ) -> Stall {
        let lock = self.book.diagnose();
        if let Some(queue) = lock.as_ref().and_then(|lock| lock.queue.as_ref()) {
            for (place, waiter) in queue.waiters().enumerate() {
                let mut threads = self.book.watches.iter();
                let thread = threads.position(|watch| watch.0.account.has_on_stack(waiter.address));
                if let Some(facts) = thread.and_then(|thread| facts.get_mut(thread)) {
                    facts.place = Some(place);
                }
            }
        }
        let conclusion = Conclusion::of(&facts, lock.as_ref().map(|lock| lock.is_held), over);
        Stall {
            number: self.stalls.count + u64::from(self.reported.is_none()),
            elapsed: self.began.elapsed(),
            idle,
            over,
            names: self.book.names(),
            facts,
            lock,
            late,
            stolen,
            now_ns: now_ns(),
            conclusion,
        }
    }

    /// Whether the stall that was reported is a lost wake-up.
    fn check(&mut self, idle: Duration, late: Duration) {
        let now = Reading::of(self.book);
        let Some(reported) = self.reported.take() else { return };
        let facts = self.facts(&reported.last, &now);
        let is_lost = is_stuck(&facts) && self.book.acquired() == reported.acquired;
        if is_lost {
            let stolen = now.stolen.saturating_sub(reported.last.stolen);
            let over = now.at - reported.last.at;
            self.reported = Some(Reported { is_lost, ..reported });
            let mut stall = self.stall(idle, late, facts, over, stolen);
            stall.conclusion = Conclusion { cause: Cause::LostWakeUp, thread: None, nothing_ran: false };
            self.stalls.turns_out_as(Cause::LostWakeUp);
            _ = self.events.send(Event::Stall(Box::new(stall)));
            return;
        }
        self.reported = Some(Reported { last: now, ..reported });
    }

    /// Reports the end of the stall, if there is one.
    fn end_stall(&mut self) {
        let Some(reported) = self.reported.take() else { return };
        let (now, idle) = (Reading::of(self.book), self.progress.elapsed());
        self.note_length(idle);
        let acquired =
            self.book.acquired().iter().zip(&reported.acquired).map(|(now, then)| now - then).collect();
        _ = self.events.send(Event::End(StallEnd {
            number: self.stalls.count,
            idle,
            over: now.at - self.base.at,
            names: self.book.names(),
            facts: self.facts(&self.base, &now),
            acquired,
        }));
    }

    fn note_length(&mut self, idle: Duration) {
        self.stalls.longest_ns = self.stalls.longest_ns.max(idle.as_nanos() as u64);
    }

    /// All stalls, including one that has not ended.
    fn stalls(mut self) -> Stalls {
        if self.reported.is_some() {
            self.note_length(self.progress.elapsed());
        }
        self.stalls
    }
}

#[cfg(target_os = "linux")]
mod priority {
    use super::Policy;

    /// Gives the calling thread the lowest real-time priority, if the system permits it.
    pub fn raise() -> Policy {
        let parameters = libc::sched_param { sched_priority: 1 };
        // SAFETY: the parameters are readable, and 0 is the calling thread.
        match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) } {
            0 => Policy::Fifo,
            _ => Policy::Ordinary,
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod priority {
    use super::Policy;

    pub fn raise() -> Policy {
        Policy::Ordinary
    }
}

/// A report of the present state, as if no thread had acquired the lock for a while.
#[cfg(test)]
pub fn report(book: &Book) -> Stall {
    let (sender, _events) = channel();
    let watch = Watch::new(book, Duration::from_millis(1), Policy::Ordinary, sender);
    let now = Reading::of(book);
    let (facts, over) = (watch.facts(&watch.base, &now), now.at - watch.base.at);
    watch.stall(Duration::ZERO, Duration::ZERO, facts, over, Duration::ZERO)
}
