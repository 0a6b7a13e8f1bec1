//! Any sequence of operations by a few threads on a few locks gives what a small reference says,
//! with every lock of the list.
//!
//! There is one operation at a time: the next begins when the last one is done, or its thread
//! waits. No result depends on time, since a thread that begins to wait says so through its waiting
//! policy. Operations at the same time are tested by the models of `nearlock-model`.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nearlock_collection::subjects::{Fairness, LockVisitor, Subject};
use nearlock_core::lockstat::Unwatched;
use nearlock_core::native::Wait;
use nearlock_core::raw::RawTryLock;
use nearlock_core::settings::Setting;
use nearlock_os::{Os, set_numa_node, set_setting};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{RngSeed, TestCaseResult, TestError, TestRunner};

#[path = "helpers/switched.rs"]
mod switched;

use switched::switched;

const LOCKS: usize = 3;
const THREADS: usize = 4;
const STEPS_MAX: usize = 50;

/// How long to wait for an event that must happen, however loaded the machine is.
const PATIENCE: Duration = Duration::from_secs(300);

/// An operation that a thread is told to do with a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// Lock. Try, if waiting would be a deadlock.
    Lock,
    Try,
    /// Unlock, if the thread holds any.
    Unlock,
    Look,
}

/// A report of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// It waits.
    Waits,
    /// It holds the lock now.
    Locked,
    Refused,
    Unlocked,
    Held,
    Free,
}

/// The state that the locks should have.
#[derive(Default)]
struct Reference {
    holders: [Option<usize>; LOCKS],
    /// The waiters, in the order in which they came.
    waiters: [VecDeque<usize>; LOCKS],
}

impl Reference {
    /// The lock that a thread waits for.
    fn awaited_by(&self, thread: usize) -> Option<usize> {
        self.waiters.iter().position(|waiters| waiters.contains(&thread))
    }

    /// Whether a thread that waits for the lock would wait for itself: the holder of the lock waits
    /// for another lock, whose holder waits, and so on.
    fn would_deadlock(&self, thread: usize, lock: usize) -> bool {
        let holder = self.holders[lock];
        let next = holder.and_then(|holder| self.awaited_by(holder));
        holder == Some(thread) || next.is_some_and(|next| self.would_deadlock(thread, next))
    }

    /// The report that the thread should make.
    fn apply(&mut self, thread: usize, lock: usize, action: Action) -> Seen {
        match (action, self.holders[lock]) {
            (Action::Lock | Action::Try, None) => {
                self.holders[lock] = Some(thread);
                Seen::Locked
            }
            (Action::Lock, Some(_)) => {
                self.waiters[lock].push_back(thread);
                Seen::Waits
            }
            (Action::Try, Some(_)) => Seen::Refused,
            (Action::Unlock, _) => {
                self.holders[lock] = None;
                Seen::Unlocked
            }
            (Action::Look, holder) => holder.map_or(Seen::Free, |_| Seen::Held),
        }
    }
}

/// A lock, and what to do with it.
type Order = (usize, Action);
/// A thread, and its report.
type Said = (usize, Seen);

thread_local! {
    /// The receiver of the report, made once, that this thread waits.
    static WAITS: RefCell<Option<(usize, Sender<Said>)>> = const { RefCell::new(None) };
}

/// Reports that the thread waits, when its first look is unsuccessful or before it sleeps. By then
/// it is in the queue of a lock that is first come, first served.
struct SaySo;

impl SaySo {
    fn say() {
        if let Some((thread, told)) = WAITS.take() {
            // There is no receiver any more when the other threads have failed.
            let _ = told.send((thread, Seen::Waits));
        }
    }
}

impl Wait for SaySo {
    type Hooks = Unwatched;

    fn before_sleep() {
        Self::say();
    }

    fn turn(turn: u32) {
        Self::say();
        // There may be many such threads, and one CPU.
        if turn < 16 { thread::yield_now() } else { thread::sleep(Duration::from_micros(20)) }
    }
}

/// A thread: does what it is told, and reports what it sees. In the end it unlocks what it holds.
fn work<L: RawTryLock>(thread: usize, locks: &[L; LOCKS], orders: &Receiver<Order>, told: &Sender<Said>) {
    // Two NUMA nodes, for NUMA-aware locks.
    set_numa_node(Some(thread as u32 % 2));
    let nodes: [L::Node; LOCKS] = Default::default();
    let mut held = [false; LOCKS];
    for (number, action) in orders {
        let (lock, node, held) = (&locks[number], &nodes[number], &mut held[number]);
        // SAFETY: the node is for this lock, and is unlocked only if held. If it is held, the try
        // uses another node.
        let seen = unsafe {
            match action {
                Action::Lock => {
                    WAITS.set(Some((thread, told.clone())));
                    lock.lock(node);
                    WAITS.take();
                    *held = true;
                    Seen::Locked
                }
                Action::Try if *held && lock.try_lock(&L::Node::default()) => Seen::Locked,
                Action::Try if !*held && lock.try_lock(node) => {
                    *held = true;
                    Seen::Locked
                }
                Action::Try => Seen::Refused,
                Action::Unlock => {
                    lock.unlock(node);
                    *held = false;
                    Seen::Unlocked
                }
                Action::Look if lock.is_locked() => Seen::Held,
                Action::Look => Seen::Free,
            }
        };
        let _ = told.send((thread, seen));
    }
    for number in (0..LOCKS).filter(|number| held[*number]) {
        // SAFETY: held, with this node.
        unsafe { locks[number].unlock(&nodes[number]) };
    }
}

/// The locks, the threads that use them, and the state that should be.
struct Trial<L> {
    locks: Arc<[L; LOCKS]>,
    threads: Vec<(Sender<Order>, JoinHandle<()>)>,
    seen: Receiver<Said>,
    reference: Reference,
    /// Whether waiters get the lock in the order in which they came.
    is_fifo: bool,
}

impl<L: RawTryLock> Trial<L> {
    fn new(is_fifo: bool) -> Self {
        let locks = Arc::<[L; LOCKS]>::default();
        let (told, seen) = channel();
        let threads = (0..THREADS).map(|thread| {
            let (order, orders) = channel();
            let (locks, told) = (locks.clone(), told.clone());
            (order, thread::spawn(move || work(thread, &locks, &orders, &told)))
        });
        Self { threads: threads.collect(), locks, seen, reference: Reference::default(), is_fifo }
    }

    fn next_seen(&self) -> Result<Said, TestCaseError> {
        let seen = self.seen.recv_timeout(PATIENCE);
        seen.map_err(|_| TestCaseError::fail("no thread gets on, though one should"))
    }

    /// A waiter becomes the holder.
    fn let_in(&mut self, lock: usize, thread: usize) -> TestCaseResult {
        let waiters = &mut self.reference.waiters[lock];
        let place = waiters.iter().position(|waiter| *waiter == thread);
        prop_assert!(place.is_some(), "thread {} gets lock {}, for which it does not wait", thread, lock);
        prop_assert!(
            place == Some(0) || !self.is_fifo,
            "thread {} overtakes others to lock {}",
            thread,
            lock
        );
        waiters.retain(|waiter| *waiter != thread);
        self.reference.holders[lock] = Some(thread);
        Ok(())
    }

    fn step(&mut self, (thread, lock, action): (Index, Index, Action)) -> TestCaseResult {
        let reference = &mut self.reference;
        // A circle of waiters is never allowed, so some thread does not wait.
        let ready: Vec<_> = (0..THREADS).filter(|thread| reference.awaited_by(*thread).is_none()).collect();
        let thread = *thread.get(&ready);
        let held: Vec<_> = (0..LOCKS).filter(|lock| reference.holders[*lock] == Some(thread)).collect();
        let (lock, action) = match action {
            Action::Unlock if held.is_empty() => return Ok(()),
            Action::Unlock => (*lock.get(&held), action),
            Action::Lock if reference.would_deadlock(thread, lock.index(LOCKS)) => {
                (lock.index(LOCKS), Action::Try)
            }
            _ => (lock.index(LOCKS), action),
        };
        let expected = reference.apply(thread, lock, action);
        let waiters = !reference.waiters[lock].is_empty();
        self.threads[thread].0.send((lock, action)).expect("the thread lives");
        let mut expected = VecDeque::from([Some((thread, expected))]);
        if action == Action::Unlock && waiters {
            // Either may come first.
            expected.push_back(None);
        }
        while !expected.is_empty() {
            let seen = self.next_seen()?;
            if let Some(place) = expected.iter().position(|expected| *expected == Some(seen)) {
                expected.remove(place);
            } else if seen.1 == Seen::Locked && expected.contains(&None) {
                self.let_in(lock, seen.0)?;
                expected.retain(Option::is_some);
            } else {
                let text =
                    format!("thread {thread} lock {lock} {action:?}: expected {expected:?}, not {seen:?}");
                return Err(TestCaseError::fail(text));
            }
        }
        Ok(())
    }

    /// All threads unlock what they hold, and end.
    fn end(self) -> TestCaseResult {
        let (orders, threads): (Vec<_>, Vec<_>) = self.threads.into_iter().unzip();
        drop(orders);
        for thread in threads {
            prop_assert!(thread.join().is_ok(), "a thread panicked");
        }
        for lock in &*self.locks {
            prop_assert!(!lock.is_locked(), "a lock is held, though no thread is left to hold it");
        }
        Ok(())
    }
}

type Step = (Index, Index, Action);

/// Tries these steps. Threads of a trial that fails may be left behind.
struct Try<'a>(&'a [Step], Fairness);

impl LockVisitor<Os<SaySo>> for Try<'_> {
    type Output = TestCaseResult;
    fn visit<L: RawTryLock>(self) -> TestCaseResult {
        let mut trial = Trial::<L>::new(self.1 == Fairness::Fifo);
        for step in self.0 {
            trial.step(*step)?;
        }
        trial.end()
    }
}

/// The shortest sequence found for which the lock differs from the reference, if there is one. The
/// sequences are drawn from `seed`.
fn counterexample(lock: &Subject, seed: RngSeed) -> Result<(), TestError<Vec<Step>>> {
    for (setting, value) in [
        // NUMA-aware locks sort whenever they can, and change the NUMA node often.
        (Setting::CnaShuffleReduction, 0),
        (Setting::CnaV13ShuffleReduction, 0),
        (Setting::CnaThresholdNs, 100_000),
        (Setting::CnaV13ThresholdNs, 1_000_000),
        (Setting::HmcsLocalPassLimit, 1),
        (Setting::CohortLocalPassLimit, 1),
    ] {
        set_setting(setting, value).expect("is within its limits");
    }
    let action = prop_oneof![
        5 => Just(Action::Lock),
        2 => Just(Action::Try),
        4 => Just(Action::Unlock),
        1 => Just(Action::Look),
    ];
    let steps = prop::collection::vec((any::<Index>(), any::<Index>(), action), 1..STEPS_MAX);
    // Failures are shown in full, and not stored.
    let config =
        ProptestConfig { cases: 64, failure_persistence: None, rng_seed: seed, ..ProptestConfig::default() };
    let run = || TestRunner::new(config).run(&steps, |steps| lock.visit(Try(&steps, lock.fairness())));
    switched(lock, run)
}

#[test]
fn every_lock_does_as_the_reference() {
    for lock in Subject::working() {
        if let Err(error) = counterexample(lock, RngSeed::Random) {
            panic!("{}: {error}", lock.name);
        }
    }
}

/// The negative controls: a lock that does not exclude, and a lock that serves the first waiter
/// last.
#[test]
fn broken_locks_are_detected_by_short_sequences() {
    // Which thread a step is for depends on the steps before it. So proptest cannot shorten one
    // sequence in twenty to the shortest, though a shorter one exists.
    const SEED: u64 = 1;
    for (name, what) in [("lock-busted", "expected"), ("lock-lifo", "overtakes")] {
        let lock = Subject::named(name).expect("is in the list");
        match counterexample(lock, RngSeed::Fixed(SEED)) {
            Err(TestError::Fail(reason, steps)) => {
                assert!(reason.message().contains(what), "{name}: {reason}");
                assert!(steps.len() <= 8, "{name}: {steps:?}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}
