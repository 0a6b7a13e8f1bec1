use std::boxed::Box;
use std::ptr;

use super::*;
use crate::native::Native;
use crate::parking::Cancellation;
use crate::schedule::OwnerState;
use crate::testing::{
    NOW_NS, OneThread, UNPARKED, events_of, left_by_others, meanwhile, others_are_done, set_owner_state,
};

/// Three words of four bytes and the two pointers of a queue: 32 bytes, or 20 where pointers have
/// four.
const SIZE: usize = (12 + 2 * size_of::<usize>()).next_multiple_of(size_of::<usize>());
const _: () = assert!(size_of::<CounterMutex<Native>>() == SIZE);
const _: () = assert!(size_of::<CounterMutex<Native, InTurns<Native>>>() == SIZE + size_of::<usize>());
const _: () = assert!(size_of::<CounterMutex<Native, OneSpins<Native>>>() == SIZE + size_of::<usize>());

type Mutex<T = Standard, S = Crowd> = CounterMutex<OneThread, S, T>;

/// The thread of another waiter.
const OTHER: ThreadId = ThreadId::new(7).unwrap();

fn leaked<T: Default>() -> &'static T {
    Box::leak(Box::default())
}

impl<S: Spinners<OneThread>, T: CounterMutexTuning> Mutex<T, S> {
    fn count(&self) -> i32 {
        count_of(self.word.load(Relaxed))
    }

    fn owner(&self) -> u32 {
        self.owner.load(Relaxed)
    }

    /// Locks as another thread would: with its name.
    fn lock_as_other(&self) {
        // SAFETY: the tests unlock it.
        unsafe { self.lock(&()) };
        self.owner.store(OTHER.get(), Relaxed);
    }

    fn release_as_other(&self) {
        assert_eq!(self.owner(), OTHER.get());
        // SAFETY: locked as above.
        unsafe { self.unlock(&()) };
    }

    /// A sleeping waiter of another thread.
    fn sleeper(&self) -> &'static Waiter<OneThread> {
        let waiter = leaked();
        // SAFETY: one thread; it stays where it is.
        locked(&self.wait_lock, || unsafe { self.waiters.push(waiter) });
        waiter
    }
}

fn locks_and_unlocks<T: CounterMutexTuning, S: Spinners<OneThread>>() {
    let mutex = Mutex::<T, S>::new();
    let me = OneThread::thread_id().get();
    // SAFETY: one thread, and unlock follows lock.
    unsafe {
        for _ in 0..2 {
            assert!(!mutex.is_locked() && (mutex.count(), mutex.owner()) == (1, 0));
            mutex.lock(&());
            assert!(mutex.is_locked() && (mutex.count(), mutex.owner()) == (0, me));
            assert!(!mutex.try_lock(&()));
            mutex.unlock(&());
            assert!(mutex.try_lock(&()) && mutex.owner() == me);
            mutex.unlock(&());
            assert_eq!(mutex.lock_within(&(), &Limit::until(0)), Ok(()), "a free mutex whatever the limit");
            mutex.unlock(&());
        }
    }
}

#[test]
fn locks_and_unlocks_in_all_forms() {
    locks_and_unlocks::<Standard, Crowd>();
    locks_and_unlocks::<NoPreRead, Nobody>();
    locks_and_unlocks::<Exchange, InTurns<OneThread>>();
    locks_and_unlocks::<UnlockFirst, OneSpins<OneThread>>();
}

fn spinning<S: Spinners<OneThread>>(opt_locks: u64) {
    let mutex = leaked::<Mutex<Standard, S>>();
    let before = events_of(LockEvent::MutexOptLock);
    mutex.lock_as_other();
    meanwhile(|| mutex.release_as_other());
    // SAFETY: one thread, and unlock follows lock.
    unsafe { mutex.lock(&()) };
    assert!(others_are_done());
    assert_eq!(mutex.owner(), OneThread::thread_id().get());
    assert_eq!(events_of(LockEvent::MutexOptLock) - before, opt_locks);
    // SAFETY: as above.
    unsafe { mutex.unlock(&()) };
    assert!(!mutex.is_locked());
}

#[test]
fn a_spinner_takes_the_mutex_when_its_owner_leaves() {
    spinning::<Crowd>(1);
    spinning::<InTurns<OneThread>>(1);
    spinning::<OneSpins<OneThread>>(1);
    spinning::<Nobody>(0);
}

/// Locks a held mutex, so that the thread sleeps. Checks how it gets the mutex then. Returns the
/// count from the time of the sleep.
fn sleeping<T: CounterMutexTuning>() -> i32 {
    let mutex = leaked::<Mutex<T>>();
    mutex.lock_as_other();
    set_owner_state(OTHER, OwnerState::Asleep);
    let seen: &'static std::cell::Cell<i32> = leaked();
    meanwhile(|| {
        seen.set(mutex.count());
        mutex.release_as_other();
    });
    let before = [LockEvent::MutexSleep, LockEvent::MutexAfterSleep, LockEvent::MutexWake].map(events_of);
    // SAFETY: one thread, and unlock follows lock.
    unsafe { mutex.lock(&()) };
    let after = [LockEvent::MutexSleep, LockEvent::MutexAfterSleep, LockEvent::MutexWake].map(events_of);
    assert_eq!(after, before.map(|n| n + 1));
    assert!(UNPARKED.get().is_some() && others_are_done());
    assert_eq!((mutex.count(), mutex.owner()), (0, OneThread::thread_id().get()), "no thread is left");
    // SAFETY: as above.
    unsafe { mutex.unlock(&()) };
    seen.get()
}

#[test]
fn a_sleeper_has_left_a_mark_and_is_woken() {
    assert_eq!(sleeping::<Standard>(), -1);
    assert_eq!(sleeping::<NoPreRead>(), -1);
    assert_eq!(sleeping::<Exchange>(), -1);
    assert_eq!(sleeping::<UnlockFirst>(), -1);
}

#[test]
fn a_spinner_sleeps_if_another_owner_comes_or_it_is_urgent() {
    let third = ThreadId::new(9).unwrap();
    let mutex = leaked::<Mutex>();
    let turn = || mutex.turn(&mut Spin::default(), &Limit::NONE);
    mutex.lock_as_other();
    meanwhile(move || mutex.owner.store(third.get(), Relaxed));
    assert_eq!(turn(), Turn::Stop);
    // Held, but no thread has said that it is the owner.
    mutex.owner.store(0, Relaxed);
    assert_eq!(turn(), Turn::Again);
    OneThread::set_priority(true);
    assert_eq!(turn(), Turn::Stop);
    OneThread::set_priority(false);
    mutex.owner.store(OTHER.get(), Relaxed);
    mutex.release_as_other();
    assert_eq!(turn(), Turn::Taken);
}

#[test]
fn there_is_no_point_in_queueing_to_spin_for_an_owner_that_sleeps() {
    fn asks<S: Spinners<OneThread>>() -> (bool, u32) {
        let mut turns = 0;
        let turn = || {
            turns += 1;
            Turn::Taken
        };
        // SAFETY: neither closure unwinds.
        let spins = unsafe { S::NONE.spin(|| false, turn) };
        (spins, turns)
    }
    assert_eq!(asks::<InTurns<OneThread>>(), (false, 0));
    assert_eq!(asks::<OneSpins<OneThread>>(), (false, 0));
    assert_eq!(asks::<Crowd>(), (true, 1));
}

/// The count that a look under `wait_lock` leaves, for a held mutex with this count.
fn marked<T: CounterMutexTuning>(count: i32) -> i32 {
    let mutex = Mutex::<T>::new();
    mutex.word.store(word_of(count), Relaxed);
    assert!(!mutex.take_marking());
    mutex.count()
}

#[test]
fn a_waiter_swaps_where_its_pre_read_does_not_spare_it() {
    for count in [0, -1, -2, -3] {
        assert_eq!(marked::<NoPreRead>(count), -1);
        assert_eq!(marked::<Exchange>(count), -1);
    }
    assert_eq!([0, -1, -2, -3].map(marked::<Standard>), [-1, -1, -2, -3]);
    assert_eq!([LEAST_COUNT, LEAST_COUNT - 1].map(marked::<Standard>), [LEAST_COUNT, -1]);
}

#[test]
fn a_failed_fast_path_leaves_a_mark() {
    for count in [0, -1] {
        let mutex = Mutex::<Exchange>::new();
        mutex.word.store(word_of(count), Relaxed);
        assert!(!mutex.take_fast());
        assert_eq!(mutex.count(), -1);
        mutex.word.store(word_of(count), Relaxed);
        assert_eq!((mutex.release_fast(), mutex.count()), (count == 0, 1));
        let mutex = Mutex::<Standard>::new();
        mutex.word.store(word_of(count), Relaxed);
        assert!(!mutex.take_fast());
        assert_eq!(mutex.count(), count - 1);
        mutex.word.store(word_of(count), Relaxed);
        assert_eq!((mutex.release_fast(), mutex.count()), (count == 0, count + 1));
    }
}

#[test]
fn the_first_of_the_queue_is_woken_and_stays_in_it() {
    let mutex = leaked::<Mutex>();
    mutex.lock_as_other();
    let (first, second) = (mutex.sleeper(), mutex.sleeper());
    mutex.word.store(MARKED, Relaxed);
    mutex.release_as_other();
    assert_eq!((mutex.count(), mutex.waiters.first().cast_const()), (1, ptr::from_ref(first)));
    let is_woken = |waiter: &Waiter<OneThread>| waiter.park_within(&Limit::until(0)).is_ok();
    assert!(is_woken(first) && !is_woken(second));
    // A waiter that takes the mutex with others behind it leaves the mark.
    assert!(mutex.look(first, &Limit::NONE) == Some(Ok(())) && mutex.count() == -1);
}

#[test]
fn a_waiter_that_gives_up_leaves_the_count_as_it_is_and_the_queue_empty() {
    let mutex = leaked::<Mutex>();
    mutex.lock_as_other();
    set_owner_state(OTHER, OwnerState::Asleep);
    NOW_NS.set(10);
    // SAFETY: it fails, here and below.
    assert_eq!(unsafe { mutex.lock_within(&(), &Limit::until(30)) }, Err(GaveUp::TimedOut));
    assert_eq!((NOW_NS.get(), mutex.count()), (30, -1));
    let cancellation: &'static Cancellation<OneThread> = leaked();
    let limit = Limit { until_ns: None, cancellation: Some(cancellation) };
    meanwhile(|| cancellation.cancel());
    // SAFETY: as above.
    assert_eq!(unsafe { mutex.lock_within(&(), &limit) }, Err(GaveUp::Cancelled));
    assert!(mutex.waiters.is_empty() && mutex.count() < 0);
    mutex.release_as_other();
    assert!(!mutex.is_locked());
}

#[test]
fn a_waiter_that_gives_up_takes_a_mutex_that_has_become_free() {
    let mutex = leaked::<Mutex>();
    mutex.lock_as_other();
    set_owner_state(OTHER, OwnerState::Asleep);
    meanwhile(|| {
        NOW_NS.set(40);
        mutex.release_as_other();
    });
    // SAFETY: unlocked below.
    assert_eq!(unsafe { mutex.lock_within(&(), &Limit::until(30)) }, Ok(()));
    // SAFETY: as above.
    unsafe { mutex.unlock(&()) };
}

#[test]
fn a_spinner_obeys_its_limit() {
    fn gives_up<S: Spinners<OneThread>>() {
        let mutex = leaked::<Mutex<Standard, S>>();
        mutex.lock_as_other();
        // The owner runs, then it is unknown to the mutex, as an owner that has not said yet that
        // it holds it.
        for owner in [OTHER.get(), 0] {
            mutex.owner.store(owner, Relaxed);
            NOW_NS.set(10);
            meanwhile(|| NOW_NS.set(30));
            meanwhile(|| ()); // not done: it does not spin on
            // SAFETY: it fails.
            assert_eq!(unsafe { mutex.lock_within(&(), &Limit::until(30)) }, Err(GaveUp::TimedOut));
            assert_eq!(left_by_others(), 1);
        }
    }
    gives_up::<Crowd>();
    gives_up::<InTurns<OneThread>>();
    gives_up::<OneSpins<OneThread>>();
}
