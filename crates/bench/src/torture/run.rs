//! One run: its threads, their observation, and the verdict.

use std::any::Any;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use nearlock_collection::subjects::Subject;
use nearlock_core::events::LockEvent;
use nearlock_core::near::mutex::NearMutex;
use nearlock_core::raw::RawTryLock;
use nearlock_workload::locktorture::{Reader, TortureState, Writer};

use super::account::STACK_BYTES;
use super::book::{Book, Probe, entropy};
use super::monitor::Monitor;
use super::pace::Next;
use super::stalls::Watcher;
use super::thread::{Role, Torturer, Witness};
use super::ways::{self, ByWays, Ways};
use super::{News, NumaNodes, Plan, Problem, TortureError, Tortured};
use crate::switched;
use crate::watched::OsWatched;

/// The body of a thread, which gets the thread's number and role. It is the only part of a run that
/// knows the type of the lock.
pub type Life = Arc<dyn Fn(usize, Role) + Send + Sync>;

/// Makes thread bodies with a lock of the given type.
pub struct Lives(Arc<Book>);

impl Lives {
    /// A thread body that uses all operations of the lock.
    pub fn with(self, lock: &Subject) -> Life {
        ways::visit(lock, self)
    }
}

impl ByWays for Lives {
    type Output = Life;
    fn by<L: RawTryLock, O: Ways<OsWatched, L>>(self) -> Life {
        let (Self(book), shared) = (self, Arc::new(TortureState::<OsWatched, L>::default()));
        if let Some(probe) = probe(&shared) {
            // The book belongs to one run, which has one lock.
            _ = book.probe.set(probe);
        }
        Arc::new(move |thread, role| live::<L, O>(&book, &shared, thread, role))
    }
}

/// Reads the state of the lock, if it is the mutex that tells it.
fn probe<L: RawTryLock>(shared: &Arc<TortureState<OsWatched, L>>) -> Option<Probe> {
    let mutex = |lock: &L| (lock as &dyn Any).downcast_ref::<NearMutex<OsWatched>>().map(NearMutex::diagnose);
    let shared = Arc::clone(shared);
    mutex(shared.lock())?;
    Some(Box::new(move || mutex(shared.lock()).expect("is one, as above")))
}

/// The body of one thread.
fn live<L: RawTryLock, O: Ways<OsWatched, L>>(
    book: &Book,
    shared: &TortureState<OsWatched, L>,
    thread: usize,
    role: Role,
) {
    if book.pace.next(thread) == Next::Stop {
        return;
    }
    let (mut node, stats) = (L::Node::default(), &book.stats[thread]);
    let mut hand = Torturer::<L, O>::new(Witness::new(book, thread, role), shared);
    match role {
        Role::Writer => Writer::new(shared, stats, &mut node, &book.write_params, entropy())
            .with_readers(&book.read_held)
            .run_by(&mut hand),
        Role::Reader => {
            let (read_held, params) = (&book.read_held, &book.read_params);
            Reader::new(shared, read_held, stats, &mut node, params, entropy()).run_by(&mut hand);
        }
    }
}

/// Runs the plan with this lock. `life` makes the body of its threads.
pub fn run(
    lock: &'static Subject,
    plan: &Plan,
    interim: &mut dyn FnMut(News<'_>),
    life: impl FnOnce(Lives) -> Life,
) -> Result<Tortured, TortureError> {
    let book = Arc::new(Book::new(lock, plan));
    let life = life(Lives(Arc::clone(&book)));
    let events_before = nearlock_os::events();
    let canceller = book.start_canceller()?;
    let handles = start(&book, &life, plan)?;
    let began = Instant::now();
    let watcher = match plan.watch_progress.map(|patience| Watcher::start(&book, patience)).transpose() {
        Ok(watcher) => watcher,
        Err(source) => {
            book.stop();
            _ = join(handles);
            let threads = book.crew.threads();
            return Err(TortureError::Spawn { thread: threads, threads, source });
        }
    };
    let mut monitor = Monitor::new(lock, &book, plan, &handles, watcher.as_ref());
    let mut problems = Vec::new();
    problems.extend(monitor.run(interim));
    book.stop();
    // The threads of a lock that hangs do not end.
    if !problems.iter().any(Problem::leaves_threads_behind) {
        problems.extend(monitor.wait_for_the_end(interim));
    }
    let stalls = watcher.and_then(|watcher| {
        let (events, stalls) = watcher.end();
        events.iter().for_each(|event| interim(News::Progress(event)));
        stalls
    });
    if handles.iter().any(|handle| !handle.is_finished()) {
        switched::leave_behind(lock);
    }
    let seconds = began.elapsed().as_secs_f64();
    let wait_ns_max = book.wait_ns_max();
    if problems.is_empty() {
        problems.extend(join(handles));
    }
    problems.extend(canceller.and_then(|canceller| join(vec![canceller])));
    let all_have_ended = problems.is_empty();
    problems.extend(book.lost_exclusion());
    if all_have_ended {
        problems.extend(book.lost_updates());
        problems.extend(book.lost_notifications());
    }
    let mut events = nearlock_os::events();
    for (count, before) in events.iter_mut().zip(events_before) {
        *count -= before;
    }
    let _: [u64; LockEvent::COUNT] = events;
    let (crew, totals, given_up) = (book.crew, book.totals(), book.given_up());
    let downgraded = book.watches.iter().map(|watch| watch.0.downgraded()).sum();
    let lockstat = book.statistics(lock);
    Ok(Tortured {
        lock,
        crew,
        totals,
        given_up,
        downgraded,
        seconds,
        wait_ns_max,
        events,
        lockstat,
        churn: None,
        stalls,
        problems,
    })
}

/// Starts the threads, which pause until the pace is set.
fn start(book: &Book, life: &Life, plan: &Plan) -> Result<Vec<JoinHandle<()>>, TortureError> {
    let threads = book.crew.threads();
    let mut handles = Vec::with_capacity(threads);
    for thread in 0..threads {
        let numa_node = match plan.numa_nodes {
            NumaNodes::Real(_) | NumaNodes::Slots(_) => None,
            NumaNodes::Synthetic(nodes) => Some((thread % nodes as usize) as u32),
        };
        let role = if thread < book.crew.writers { Role::Writer } else { Role::Reader };
        let life = Arc::clone(life);
        let started = Builder::new().name(book.crew.name(thread)).stack_size(STACK_BYTES).spawn(move || {
            nearlock_os::set_numa_node(numa_node);
            life(thread, role);
        });
        match started {
            Ok(handle) => handles.push(handle),
            Err(source) => {
                book.stop();
                // The threads are still paused, so they end at once.
                let _ = join(handles);
                return Err(TortureError::Spawn { thread, threads, source });
            }
        }
    }
    Ok(handles)
}

/// Joins threads that are known to end.
fn join(handles: Vec<JoinHandle<()>>) -> Option<Problem> {
    let threads = handles.into_iter().filter_map(|handle| handle.join().err()).count();
    (threads > 0).then_some(Problem::Panicked { threads })
}
