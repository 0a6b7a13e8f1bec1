//! Any sequence of operations by two threads on a few locks has the results of a short reference.
//!
//! There is one operation at a time. The models of `nearlock-model` check concurrent operations.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use nearlock::classic::{ClhLock, LockWith, McsLock, TtasLock};
use nearlock::linux::{CnaLock, CounterMutex, Mutex as LinuxMutex, SpinLock};
use nearlock::lock_api::{Mutex, MutexGuard, RawMutex};
use nearlock::{Cancellation, LockCancellable};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestCaseResult;

const LOCKS: usize = 3;
const THREADS: usize = 2;
const STEPS_MAX: usize = if cfg!(miri) { 20 } else { 60 };

/// An operation of a thread on a lock.
#[derive(Clone, Copy, Debug)]
enum Action {
    /// Lock, or try to lock if a thread holds it.
    Lock,
    Try,
    /// Unlock, if the thread holds it.
    Unlock,
    /// Add to the data, if the thread holds the lock.
    Add(u32),
    /// Add to the data in a separate critical section, if the lock is free.
    AddWith(u32),
    Look,
}

/// The result of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Data(u32),
    Refused,
    Held,
    Free,
    Nothing,
}

/// The reference for the locks.
#[derive(Default)]
struct Reference {
    holders: [Option<usize>; LOCKS],
    data: [u32; LOCKS],
}

impl Reference {
    fn apply(&mut self, thread: usize, lock: usize, action: Action) -> Seen {
        let (holder, data) = (&mut self.holders[lock], &mut self.data[lock]);
        match action {
            Action::Lock | Action::Try if holder.is_none() => {
                *holder = Some(thread);
                Seen::Data(*data)
            }
            Action::Unlock if *holder == Some(thread) => {
                *holder = None;
                Seen::Nothing
            }
            Action::Add(amount) if *holder == Some(thread) => {
                *data = data.wrapping_add(amount);
                Seen::Data(*data)
            }
            Action::AddWith(amount) if holder.is_none() => {
                *data = data.wrapping_add(amount);
                Seen::Data(*data)
            }
            Action::Look if holder.is_some() => Seen::Held,
            Action::Look => Seen::Free,
            Action::Lock | Action::Try | Action::AddWith(_) => Seen::Refused,
            Action::Unlock | Action::Add(_) => Seen::Nothing,
        }
    }
}

/// A critical section of one operation, if the lock is free. Returns the data after it.
type Section<R> = fn(&Mutex<R, u32>, u32) -> Option<u32>;

fn add(data: &mut u32, amount: u32) -> u32 {
    *data = data.wrapping_add(amount);
    *data
}

/// The body of a thread: executes operations, and sends their results. Guards live until an
/// operation drops them, or until the end.
fn work<R: RawMutex>(
    locks: &[Mutex<R, u32>; LOCKS],
    section: Section<R>,
    orders: &Receiver<(usize, Action)>,
    see: &Sender<Seen>,
) {
    let mut guards: [Option<MutexGuard<'_, R, u32>>; LOCKS] = Default::default();
    for (number, action) in orders {
        let (lock, held) = (&locks[number], &mut guards[number]);
        let seen = match action {
            Action::Lock => Seen::Data(**held.insert(lock.lock())),
            Action::Try => match lock.try_lock() {
                Some(guard) => Seen::Data(**held.insert(guard)),
                None => Seen::Refused,
            },
            Action::Unlock => {
                *held = None;
                Seen::Nothing
            }
            Action::Add(amount) => held.as_mut().map_or(Seen::Nothing, |data| Seen::Data(add(data, amount))),
            Action::AddWith(amount) => section(lock, amount).map_or(Seen::Refused, Seen::Data),
            Action::Look if lock.is_locked() => Seen::Held,
            Action::Look => Seen::Free,
        };
        if see.send(seen).is_err() {
            return;
        }
    }
}

fn check<R: RawMutex + Sync>(steps: &[(Index, Index, Action)], section: Section<R>) -> TestCaseResult {
    let locks: [Mutex<R, u32>; LOCKS] = Default::default();
    let mut reference = Reference::default();
    std::thread::scope(|scope| {
        let locks = &locks;
        let threads: [_; THREADS] = std::array::from_fn(|_| {
            let (order, orders) = channel();
            let (see, seen) = channel();
            scope.spawn(move || work(locks, section, &orders, &see));
            (order, seen)
        });
        for (thread, lock, action) in steps {
            let (thread, lock) = (thread.index(THREADS), lock.index(LOCKS));
            // A wait for a held lock would never end, since the other thread gets no operation
            // meanwhile.
            let action = match action {
                Action::Lock if reference.holders[lock].is_some() => Action::Try,
                action => *action,
            };
            let (order, seen) = &threads[thread];
            order.send((lock, action)).expect("the thread lives");
            let expected = reference.apply(thread, lock, action);
            prop_assert_eq!(seen.recv(), Ok(expected), "thread {} lock {} {:?}", thread, lock, action);
        }
        Ok(())
    })?;
    for (lock, data) in locks.into_iter().zip(reference.data) {
        prop_assert!(!lock.is_locked(), "a guard was not released");
        prop_assert_eq!(lock.into_inner(), data);
    }
    Ok(())
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        3 => Just(Action::Lock),
        2 => Just(Action::Try),
        4 => Just(Action::Unlock),
        2 => any::<u32>().prop_map(Action::Add),
        1 => any::<u32>().prop_map(Action::AddWith),
        1 => Just(Action::Look),
    ]
}

fn steps() -> impl Strategy<Value = Vec<(Index, Index, Action)>> {
    prop::collection::vec((any::<Index>(), any::<Index>(), action()), 1..STEPS_MAX)
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(miri) { 1 } else { 64 },
        // Failures are printed in full, and are not stored.
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn spin_lock_does_as_the_reference(steps in steps()) {
        check(&steps, |lock: &SpinLock<u32>, amount| Some(add(&mut *lock.try_lock()?, amount)))?;
    }

    #[test]
    fn cna_lock_does_as_the_reference(steps in steps()) {
        check(&steps, |lock: &CnaLock<u32>, amount| Some(add(&mut *lock.try_lock()?, amount)))?;
    }

    #[test]
    fn mutex_does_as_the_reference(steps in steps()) {
        check(&steps, |lock: &LinuxMutex<u32>, amount| {
            Some(add(&mut *lock.try_lock_for(Duration::ZERO)?, amount))
        })?;
    }

    #[test]
    fn near_mutex_does_as_the_reference(steps in steps()) {
        check(&steps, |lock: &nearlock::Mutex<u32>, amount| {
            Some(add(&mut *lock.try_lock_for(Duration::ZERO)?, amount))
        })?;
    }

    #[test]
    fn counter_mutex_does_as_the_reference(steps in steps()) {
        check(&steps, |lock: &CounterMutex<u32>, amount| {
            let cancelled = Cancellation::new();
            cancelled.cancel();
            Some(add(&mut *lock.lock_cancellable(&cancelled).ok()?, amount))
        })?;
    }

    #[test]
    fn ttas_lock_does_as_the_reference(steps in steps()) {
        check(&steps, |lock: &TtasLock<u32>, amount| Some(add(&mut *lock.try_lock()?, amount)))?;
    }

    #[test]
    fn clh_lock_does_as_the_reference(steps in steps()) {
        check(&steps, |lock: &ClhLock<u32>, amount| lock.try_lock_with(|data| add(data, amount)))?;
    }

    #[test]
    fn mcs_lock_does_as_the_reference(steps in steps()) {
        check(&steps, |lock: &McsLock<u32>, amount| lock.try_lock_with(|data| add(data, amount)))?;
    }
}
