//! Any sequence of operations has the results of a short reference.

use std::collections::VecDeque;
use std::iter;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope};

use proptest::prelude::*;
use proptest::sample::Index;

use crate::cancellation::{Cancellation, Cancelled};
use crate::semaphore::{Semaphore, SemaphoreGuard};

const STEPS_MAX: usize = if cfg!(miri) { 10 } else { 40 };
/// More than any sequence needs.
const WAITERS: usize = STEPS_MAX;

#[derive(Clone, Debug)]
enum Step {
    Acquire(usize),
    Try(usize),
    Return(Index),
    Forget(Index),
    GiveUp(Index),
    Add(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (0..5_usize).prop_map(Step::Acquire),
        1 => (0..5_usize).prop_map(Step::Try),
        4 => any::<Index>().prop_map(Step::Return),
        1 => any::<Index>().prop_map(Step::Forget),
        2 => any::<Index>().prop_map(Step::GiveUp),
        1 => (0..3_usize).prop_map(Step::Add),
    ];
    prop::collection::vec(step, 0..STEPS_MAX)
}

/// The reference: the first of the queue gets permits first.
#[derive(Default)]
struct Reference {
    available: usize,
    /// The numbers of the waiters, and the permits that they need.
    queue: VecDeque<(usize, usize)>,
}

impl Reference {
    /// Returns whether a request gets its permits at once.
    fn takes(&mut self, permits: usize) -> bool {
        let takes = permits == 0 || self.queue.is_empty() && permits <= self.available;
        self.available -= if takes { permits } else { 0 };
        takes
    }

    /// Adds permits. Returns the waiters that get theirs.
    fn adds(&mut self, permits: usize) -> Vec<usize> {
        self.available += permits;
        iter::from_fn(|| {
            let (waiter, permits) = *self.queue.front().filter(|first| first.1 <= self.available)?;
            self.available -= permits;
            self.queue.pop_front();
            Some(waiter)
        })
        .collect()
    }
}

/// What a waiter's thread tells: its number, and the result.
type Result<'a> = (usize, std::result::Result<SemaphoreGuard<'a>, Cancelled>);

/// A semaphore, threads that wait for it, and the guards that they got.
struct Case<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    semaphore: &'env Semaphore,
    cancellations: &'env [Cancellation],
    waiters: usize,
    tell: Sender<Result<'env>>,
    told: Receiver<Result<'env>>,
    guards: Vec<SemaphoreGuard<'env>>,
    reference: Reference,
}

/// A test that fails ends.
impl Drop for Case<'_, '_> {
    fn drop(&mut self) {
        self.cancellations.iter().for_each(Cancellation::cancel);
    }
}

impl Case<'_, '_> {
    fn acquire(&mut self, permits: usize) {
        let (number, semaphore, tell) = (self.waiters, self.semaphore, self.tell.clone());
        let cancellation = &self.cancellations[number];
        self.waiters += 1;
        self.scope.spawn(move || {
            let result = semaphore.acquire_many_cancellable(permits, cancellation);
            tell.send((number, result)).expect("the other end is there");
        });
        if self.reference.takes(permits) {
            return self.await_grants(vec![number]);
        }
        self.reference.queue.push_back((number, permits));
        while self.waiting().len() < self.reference.queue.len() {
            thread::yield_now();
        }
    }

    /// The permits that the waiters need, in the order of the queue.
    fn waiting(&self) -> Vec<usize> {
        let state = self.semaphore.state.lock();
        let mut next = state.queue.first;
        // SAFETY: waiters in the queue exist.
        iter::from_fn(|| unsafe { next.as_ref() }.inspect(|waiter| next = waiter.next.get()))
            .map(|waiter| waiter.permits)
            .collect()
    }

    /// Waits until all of these have got their permits. They may tell it in any order.
    fn await_grants(&mut self, mut expected: Vec<usize>) {
        while !expected.is_empty() {
            let (number, result) = self.told.recv().expect("this end is there");
            let place = expected.iter().position(|waiter| *waiter == number);
            expected.remove(place.expect("another waiter has got its permits"));
            self.guards.push(result.expect("it is not cancelled"));
        }
    }

    fn adds(&mut self, permits: usize) {
        let granted = self.reference.adds(permits);
        self.await_grants(granted);
    }

    fn taken_guard(&mut self, index: &Index) -> Option<SemaphoreGuard<'_>> {
        let place = (!self.guards.is_empty()).then(|| index.index(self.guards.len()));
        place.map(|place| self.guards.swap_remove(place))
    }

    fn give_up(&mut self, place: usize) {
        let Some((number, _)) = self.reference.queue.remove(place) else { return };
        self.cancellations[number].cancel();
        let (told, result) = self.told.recv().expect("this end is there");
        if told == number {
            assert_eq!(result.err(), Some(Cancelled));
            return self.adds(0);
        }
        // A waiter that was behind it was quicker.
        let mut granted = self.reference.adds(0);
        let place = granted.iter().position(|waiter| *waiter == told).expect("it has not got its permits");
        granted.remove(place);
        self.guards.push(result.expect("it is not cancelled"));
        self.await_grants_and_end(granted, number);
    }

    /// As [`await_grants`](Self::await_grants), and until this waiter has given up.
    fn await_grants_and_end(&mut self, mut expected: Vec<usize>, ended: usize) {
        for _ in 0..=expected.len() {
            let (number, result) = self.told.recv().expect("this end is there");
            if number == ended {
                assert_eq!(result.err(), Some(Cancelled));
                continue;
            }
            expected.retain(|waiter| *waiter != number);
            self.guards.push(result.expect("it is not cancelled"));
        }
        assert!(expected.is_empty());
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Acquire(permits) => self.acquire(*permits),
            Step::Try(permits) => {
                let guard = self.semaphore.try_acquire_many(*permits);
                assert_eq!(guard.is_some(), self.reference.takes(*permits));
                self.guards.extend(guard);
            }
            Step::Return(index) => {
                let permits = self.taken_guard(index).map_or(0, |guard| guard.permits());
                self.adds(permits);
            }
            Step::Forget(index) => {
                if let Some(guard) = self.taken_guard(index) {
                    guard.forget();
                }
            }
            Step::GiveUp(index) => {
                if !self.reference.queue.is_empty() {
                    self.give_up(index.index(self.reference.queue.len()));
                }
            }
            Step::Add(permits) => {
                self.semaphore.add_permits(*permits);
                self.adds(*permits);
            }
        }
        let expected: Vec<_> = self.reference.queue.iter().map(|waiter| waiter.1).collect();
        assert_eq!(self.waiting(), expected);
        assert_eq!(self.semaphore.available_permits(), self.reference.available);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 100 }))]

    #[test]
    fn any_sequence_has_the_results_of_the_reference(permits in 0..6_usize, steps in steps()) {
        let semaphore = Semaphore::new(permits);
        let cancellations: Vec<_> = (0..WAITERS).map(|_| Cancellation::new()).collect();
        thread::scope(|scope| {
            let (tell, told) = channel();
            let mut case = Case {
                scope,
                semaphore: &semaphore,
                cancellations: &cancellations,
                waiters: 0,
                tell,
                told,
                guards: Vec::new(),
                reference: Reference { available: permits, ..Reference::default() },
            };
            steps.iter().for_each(|step| case.apply(step));
            while !case.reference.queue.is_empty() {
                case.give_up(0);
            }
        });
    }
}
