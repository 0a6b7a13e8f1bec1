use std::boxed::Box;
use std::collections::VecDeque;
use std::vec::Vec;

use super::*;
use crate::events::LockEvent::{CondvarGiveUp, CondvarLate, CondvarMove, CondvarWake};
use crate::parking::{Cancellation, Signal};
use crate::raw::RawTryLock;
use crate::schedule::Sections;
use crate::testing::{
    HAPPENINGS_MAX, NOW_NS, NUMA_NODE, OTHER, OneThread, PAUSES, PROCESSOR, RANDOM, SPINS_MAX, acting,
    before_exchange, events_of, exchanges_are_over, forget_chains, me, meanwhile, mistake, others_are_done,
};

type Condvar = NearCondvar<OneThread>;
type Mutex = NearMutex<OneThread>;

const _: () = assert!(size_of::<NearCondvar<crate::native::Native>>() == size_of::<usize>());

fn leaked<T: Default>() -> &'static T {
    Box::leak(Box::default())
}

fn lock(mutex: &Mutex) {
    // SAFETY: free.
    assert!(unsafe { mutex.try_lock(&()) });
}

fn unlock(mutex: &Mutex) {
    // SAFETY: callers hold the mutex, or act for its holder.
    unsafe { mutex.unlock(&()) };
}

/// The chain of the mutex, to look at its queue.
fn queue_of(mutex: &Mutex) -> Locked<'_, OneThread> {
    // SAFETY: nothing is changed.
    unsafe { Locked::of(mutex) }
}

fn wait(condvar: &Condvar, mutex: &Mutex, limit: &Limit<'_, OneThread>) -> Result<(), Unnotified> {
    lock(mutex);
    // SAFETY: held.
    let result = unsafe { condvar.wait(mutex, limit) };
    assert!(mutex.is_locked(), "whatever has ended the wait");
    unlock(mutex);
    assert!(!mutex.is_locked(), "no thread is in the queue");
    assert!(!condvar.has_waiters());
    result
}

#[test]
fn a_notification_without_waiters_says_so() {
    let condvar = Condvar::new();
    assert!(!condvar.notify_one());
    assert_eq!(condvar.notify_all(), 0);
}

#[test]
fn a_wait_in_the_section_of_a_spin_lock_is_found_before_the_mutex_is_released() {
    let (condvar, mutex) = (leaked::<Condvar>(), leaked::<Mutex>());
    lock(mutex);
    OneThread::enter_section();
    let limit = Limit::until(0);
    mistake("sleeps in the section of a spin lock", || {
        // SAFETY: held.
        _ = unsafe { condvar.wait(mutex, &limit) };
    });
    OneThread::leave_section();
    assert!(mutex.is_locked() && !condvar.has_waiters());
}

/// No mutex is left then, so only the chain of the condition variable may be locked.
#[test]
fn a_broadcast_whose_last_waiter_has_just_given_up_moves_no_waiter() {
    let (condvar, mutex) = (leaked::<Condvar>(), leaked::<Mutex>());
    let waiter: &'static Waiter<OneThread> = leaked();
    // SAFETY: it stays for ever.
    assert_eq!(unsafe { condvar.join(waiter, mutex) }, Ok(()));
    before_exchange(|| assert!(condvar.gives_up(waiter)));
    before_exchange(|| ());
    assert_eq!(condvar.notify_all(), 0);
    assert!(!exchanges_are_over(), "a second chain was locked");
    drop(condvar.lock_queue());
    assert!(exchanges_are_over());
}

/// In the child of a `fork` the chain is empty, and the waiters are threads of the parent.
#[test]
fn waiters_that_a_fork_leaves_behind_do_not_choose_the_mutex() {
    let (condvar, of_parent, mutex) = (leaked::<Condvar>(), leaked::<Mutex>(), leaked::<Mutex>());
    let gone: &'static Waiter<OneThread> = leaked();
    // SAFETY: it stays for ever.
    assert_eq!(unsafe { condvar.join(gone, of_parent) }, Ok(()));
    // SAFETY: the waiter is not used any more.
    unsafe { forget_chains() };
    after(SLEEPS_AT, move || assert!(condvar.notify_one()));
    assert_eq!(wait(condvar, mutex, &Limit::NONE), Ok(()));
    assert!(others_are_done());
}

/// When other threads may act during a wait: when it has released the mutex and passes the light
/// side of the fence, and when it parks.
const RELEASED_AT: u32 = 0;
const SLEEPS_AT: u32 = 1;

/// Other threads do this at their next chance after so many chances.
fn after(chances: u32, what: impl FnOnce() + 'static) {
    (0..chances).for_each(|_| meanwhile(|| ()));
    meanwhile(what);
}

/// In the mutex's queue, the waiters of the NUMA node that has the mutex are preferred. Their NUMA
/// nodes are those on which they waited.
#[test]
fn a_broadcast_brings_along_where_its_waiters_were() {
    let (condvar, mutex) = (leaked::<Condvar>(), leaked::<Mutex>());
    let waiters: [Waiter<OneThread>; 3] = std::array::from_fn(|_| Waiter::default());
    lock(mutex);
    for (waiter, node) in waiters.iter().zip([1, 0, 1]) {
        NUMA_NODE.set(node);
        // SAFETY: the waiter stays until it is in no queue.
        assert_eq!(unsafe { condvar.join(waiter, mutex) }, Ok(()));
    }
    assert_eq!(condvar.notify_all(), 3);
    for granted in [0, 2, 1] {
        // SAFETY: for the thread that holds it.
        unsafe { mutex.unlock_fair() };
        assert_eq!(waiters[granted].park(), Signal::Granted);
    }
    unlock(mutex);
}

/// A waiter that becomes first in the mutex's queue by its notification is woken.
#[test]
fn a_notified_waiter_has_the_mutex() {
    type Notify = fn(&Condvar) -> usize;
    let one: Notify = |condvar| usize::from(condvar.notify_one());
    let all: Notify = Condvar::notify_all;
    for (step, notify) in [(RELEASED_AT, one), (SLEEPS_AT, one), (SLEEPS_AT, all)] {
        let (condvar, mutex) = (leaked::<Condvar>(), leaked::<Mutex>());
        let before = [CondvarWake, CondvarMove, CondvarGiveUp].map(events_of);
        after(step, move || {
            assert!(!mutex.is_locked(), "a waiter releases it");
            assert_eq!(notify(condvar), 1);
            assert_eq!(notify(condvar), 0, "once");
        });
        assert_eq!(wait(condvar, mutex, &Limit::NONE), Ok(()));
        assert!(others_are_done());
        assert_eq!(
            [CondvarWake, CondvarMove, CondvarGiveUp].map(events_of),
            [before[0] + 1, before[1], before[2]]
        );
    }
}

/// It would find the mutex held. On the notifier's processor, it would delay the release.
#[test]
fn a_waiter_that_is_notified_by_the_holder_of_its_mutex_is_woken_by_the_release() {
    type Notify = fn(&Condvar) -> bool;
    let one: Notify = Condvar::notify_one;
    let all: Notify = |condvar| condvar.notify_all() == 1;
    for (notify, holds) in [(one, true), (all, true), (one, false), (all, false)] {
        let (condvar, mutex, waiter) =
            (leaked::<Condvar>(), leaked::<Mutex>(), leaked::<Waiter<OneThread>>());
        // SAFETY: it stays until it is in no queue.
        assert_eq!(unsafe { condvar.join(waiter, mutex) }, Ok(()));
        let holder = if holds { me() } else { OTHER };
        acting(holder, || lock(mutex));
        assert!(notify(condvar));
        assert_eq!(waiter.is_signalled(), !holds);
        acting(holder, || unlock(mutex));
        assert!(waiter.is_signalled(), "by the release at the latest");
    }
}

/// The notifier holds the mutex. The waiter gets it when the notifier releases it.
#[test]
fn a_waiter_that_is_notified_under_the_mutex_waits_for_its_release() {
    let (condvar, mutex) = (leaked::<Condvar>(), leaked::<Mutex>());
    meanwhile(|| {
        lock(mutex);
        assert!(condvar.notify_one());
        meanwhile(|| unlock(mutex));
    });
    assert_eq!(wait(condvar, mutex, &Limit::NONE), Ok(()));
    assert!(others_are_done());
}

#[test]
fn a_wait_ends_with_its_time_or_its_cancellation_and_leaves_nothing_behind() {
    let (condvar, mutex) = (Condvar::new(), Mutex::new());
    let before = events_of(CondvarGiveUp);
    let timed_out = Err(Unnotified::GaveUp(GaveUp::TimedOut));
    assert_eq!(wait(&condvar, &mutex, &Limit::until(NOW_NS.get() + 5)), timed_out);
    assert_eq!(wait(&condvar, &mutex, &Limit::until(0)), timed_out);
    let cancellation: &Cancellation<OneThread> = leaked();
    let limit = Limit { until_ns: None, cancellation: Some(cancellation) };
    meanwhile(|| cancellation.cancel());
    assert_eq!(wait(&condvar, &mutex, &limit), Err(Unnotified::GaveUp(GaveUp::Cancelled)));
    assert_eq!(events_of(CondvarGiveUp) - before, 3);
}

/// If a waiter is notified and cancelled at the same time, it is notified. No other waiter gets the
/// notification.
#[test]
fn a_waiter_that_has_been_notified_does_not_give_up() {
    let (condvar, mutex) = (leaked::<Condvar>(), leaked::<Mutex>());
    let cancellation: &Cancellation<OneThread> = leaked();
    let limit = Limit { until_ns: None, cancellation: Some(cancellation) };
    after(SLEEPS_AT, || {
        lock(mutex);
        cancellation.cancel();
        assert!(condvar.notify_one());
        meanwhile(|| unlock(mutex));
    });
    assert_eq!(wait(condvar, mutex, &limit), Ok(()));
    assert!(others_are_done());
}

/// The waiter wakes for no reason while it is in neither queue. It waits until it is put into the
/// mutex's queue.
#[test]
fn a_waiter_on_the_way_to_the_mutexs_queue_has_not_given_up() {
    let (condvar, mutex) = (leaked::<Condvar>(), leaked::<Mutex>());
    let before = events_of(CondvarLate);
    after(SLEEPS_AT, move || {
        let mut waiters = WakeList::EMPTY;
        let queue = condvar.lock_queue();
        assert_eq!(queue.take(Queue::Shared, 1, &mut waiters), 1);
        condvar.update(&queue);
        drop(queue);
        let waiter = waiters.pop().expect("one waits");
        // SAFETY: it stays until it has the mutex.
        let is_woken = unsafe { &*waiter }.is_signalled();
        assert!(!is_woken);
        NOW_NS.set(NOW_NS.get() + 100);
        meanwhile(move || {
            let mut waiters = WakeList::EMPTY;
            // SAFETY: as above; it is in no queue.
            unsafe {
                waiters.push(waiter);
                NearMutex::requeue(mutex, waiters, Notifier::Other);
            }
        });
    });
    assert_eq!(wait(condvar, mutex, &Limit::until(NOW_NS.get() + 50)), Ok(()));
    assert!(others_are_done());
    assert_eq!(events_of(CondvarLate) - before, 1);
}

#[test]
fn waiters_have_one_mutex_at_a_time() {
    let (condvar, mutex, other) = (leaked::<Condvar>(), leaked::<Mutex>(), Mutex::new());
    meanwhile(|| {
        let other = Mutex::new();
        lock(&other);
        // SAFETY: held.
        let refused = unsafe { condvar.wait(&other, &Limit::until(0)) };
        assert_eq!(refused, Err(Unnotified::OtherMutex));
        assert!(other.is_locked(), "it has not been released");
        assert!(condvar.notify_one(), "no waiter has left");
    });
    assert_eq!(wait(condvar, mutex, &Limit::NONE), Ok(()));
    let timed_out = Err(Unnotified::GaveUp(GaveUp::TimedOut));
    assert_eq!(wait(condvar, &other, &Limit::until(0)), timed_out, "then it may be another one");
}

/// A condition variable, its mutex, and waiters without threads.
struct Crowd {
    condvar: Condvar,
    mutex: Mutex,
    waiters: Vec<Waiter<OneThread>>,
}

/// What may happen to the waiters.
#[derive(Clone, Copy, Debug)]
enum Happening {
    /// The next one begins to wait.
    Waits,
    /// The last of those that wait gives up.
    GivesUp,
    NotifyOne,
    NotifyAll,
    /// The first in the mutex's queue has it, and releases it.
    Runs,
}

const HAPPENINGS: [Happening; 5] =
    [Happening::Waits, Happening::GivesUp, Happening::NotifyOne, Happening::NotifyAll, Happening::Runs];

/// The reference of a condition variable: two queues of waiters, by number.
#[derive(Default)]
struct Reference {
    waiting: VecDeque<usize>,
    queued: VecDeque<usize>,
    /// Notified one by one.
    woken: Vec<usize>,
}

impl Reference {
    fn notify_one(&mut self) -> bool {
        let first = self.waiting.pop_front();
        self.woken.extend(first);
        first.is_some()
    }

    fn notify_all(&mut self) -> usize {
        let count = self.waiting.len();
        if !self.queued.is_empty() {
            self.woken.extend(self.waiting.pop_front());
        }
        self.queued.append(&mut self.waiting);
        count
    }
}

impl Crowd {
    /// Checks that both queues are as in the reference, and that only the first waiter of the
    /// mutex's queue is awake.
    fn check(&self, reference: &Reference) {
        let number = |waiter: Option<&Waiter<OneThread>>| {
            waiter
                .map(|waiter| self.waiters.iter().position(|one| ptr::eq(one, waiter)).expect("one of them"))
        };
        assert_eq!(
            number(self.condvar.lock_queue().first(Queue::Shared)),
            reference.waiting.front().copied()
        );
        assert_eq!(self.condvar.lock_queue().count(Queue::Shared), reference.waiting.len());
        assert_eq!(self.condvar.has_waiters(), !reference.waiting.is_empty());
        assert_eq!(number(queue_of(&self.mutex).first(Queue::Exclusive)), reference.queued.front().copied());
        assert_eq!(queue_of(&self.mutex).count(Queue::Exclusive), reference.queued.len());
        for waiter in &reference.woken {
            let waiter = &self.waiters[*waiter];
            assert_eq!((waiter.park(), waiter.mark.load(Relaxed)), (Signal::Granted, TAKEN_OUT));
        }
        for (place, waiter) in reference.queued.iter().enumerate() {
            assert_eq!(self.waiters[*waiter].is_signalled(), place == 0, "one wakes at a time");
        }
    }

    fn happens(&mut self, happening: Happening, reference: &mut Reference, next: &mut usize) {
        match happening {
            Happening::Waits => {
                // SAFETY: it stays until the end, when it is in no queue.
                let joined = unsafe { self.condvar.join(&self.waiters[*next], &self.mutex) };
                assert_eq!(joined, Ok(()));
                reference.waiting.push_back(*next);
                *next += 1;
            }
            Happening::GivesUp => {
                if let Some(last) = reference.waiting.pop_back() {
                    assert!(self.condvar.gives_up(&self.waiters[last]));
                } else if let Some(first) = reference.queued.front() {
                    assert!(!self.condvar.gives_up(&self.waiters[*first]), "it has been notified");
                }
            }
            Happening::NotifyOne => assert_eq!(self.condvar.notify_one(), reference.notify_one()),
            Happening::NotifyAll => assert_eq!(self.condvar.notify_all(), reference.notify_all()),
            Happening::Runs => {
                if let Some(first) = reference.queued.pop_front() {
                    // By then the next waiter in the queue has been told to look.
                    self.mutex.lock_when_requeued(&self.waiters[first], None);
                    unlock(&self.mutex);
                    if let Some(next) = reference.queued.front() {
                        assert!(self.waiters[*next].is_signalled());
                    }
                }
            }
        }
    }
}

/// Tries all short sequences. At the end of each, all waiters are granted the mutex.
#[test]
fn every_short_sequence_is_as_in_the_reference() {
    let length = HAPPENINGS_MAX as u32 - 2;
    for sequence in 0..HAPPENINGS.len().pow(length) {
        let waiters = (0..length).map(|_| Waiter::default()).collect();
        let mut crowd = Crowd { condvar: Condvar::new(), mutex: Mutex::new(), waiters };
        let (mut reference, mut next) = (Reference::default(), 0);
        for step in 0..length {
            let happening = HAPPENINGS[sequence / HAPPENINGS.len().pow(step) % HAPPENINGS.len()];
            crowd.happens(happening, &mut reference, &mut next);
            crowd.check(&reference);
        }
        crowd.happens(Happening::NotifyAll, &mut reference, &mut next);
        while !reference.queued.is_empty() {
            crowd.happens(Happening::Runs, &mut reference, &mut next);
        }
        crowd.check(&reference);
        assert!(!crowd.mutex.is_locked());
    }
}

/// A waiter that probes would delay a notifier that has its processor.
#[test]
fn a_waiter_knows_on_which_processor_the_last_notifier_was() {
    let (condvar, mutex) = (leaked::<Condvar>(), leaked::<Mutex>());
    RANDOM.set(1);
    SPINS_MAX.set(1000);
    PROCESSOR.set(Some(1));
    for (notifier, probes) in [(1, false), (2, true), (1, false)] {
        meanwhile(move || {
            PROCESSOR.set(Some(notifier));
            assert!(condvar.notify_one());
            PROCESSOR.set(Some(1));
        });
        assert_eq!(wait(condvar, mutex, &Limit::NONE), Ok(()));
        assert!(others_are_done());
        // The next waiter acts by the last notification.
        PAUSES.take();
        let waiter = Waiter::default();
        condvar.look_for_signal(&waiter);
        assert_eq!(!PAUSES.take().is_empty(), probes, "notified on {notifier}");
    }
}
