use std::boxed::Box;
use std::vec;
use std::vec::Vec;

use super::*;
use crate::native::Native;
use crate::testing::{NOW_NS, OneThread, PAUSES, RANDOM, UNPARKED, events_of, meanwhile, others_are_done};

type Early = ParkingLotMutex<OneThread, EventuallyFair>;
type Late = ParkingLotMutex<OneThread>;

const _: () = assert!(size_of::<ParkingLotMutex<Native>>() == 4);

impl<T: ParkingLotTuning> ParkingLotMutex<OneThread, T> {
    fn bits(&self) -> u32 {
        self.word.load(Relaxed)
    }

    fn held() -> &'static Self {
        let mutex: &'static Self = Box::leak(Box::default());
        mutex.acquire();
        mutex
    }

    fn acquire(&self) {
        // SAFETY: one thread, which acts for several; unlocked by `release`.
        unsafe { self.lock(&()) };
    }

    fn release(&self) {
        // SAFETY: held.
        unsafe { self.unlock(&()) };
    }

    /// A waiter that sleeps in the bucket for this mutex.
    fn sleeper(&self) -> &'static Waiter<OneThread> {
        let waiter: &'static Waiter<OneThread> = Box::leak(Box::default());
        self.word.store(LOCKED | PARKED, Relaxed);
        // SAFETY: the waiter lives for ever.
        unsafe { Locked::of(self).push(Queue::Exclusive, waiter) };
        waiter
    }
}

fn alone<T: ParkingLotTuning>() {
    let mutex = ParkingLotMutex::<OneThread, T>::new();
    // SAFETY: one thread, and unlock follows lock.
    unsafe {
        mutex.lock(&());
        assert!(mutex.bits() == LOCKED && mutex.is_locked() && !mutex.try_lock(&()));
        mutex.unlock(&());
        assert!(!mutex.is_locked() && mutex.try_lock(&()));
        mutex.unlock(&());
    }
    assert_eq!((mutex.bits(), events_of(LockEvent::Slowpath)), (FREE, 0));
}

#[test]
fn alone_it_knows_no_bucket() {
    alone::<Standard>();
    alone::<EventuallyFair>();
}

/// The pauses of three rounds. Other threads run in the seven rounds after these, and unlock the
/// mutex in the last one.
fn looks<T: ParkingLotTuning>() -> Vec<u32> {
    let mutex = ParkingLotMutex::<OneThread, T>::held();
    PAUSES.take();
    for _ in 1..T::rounds() {
        meanwhile(|| assert_eq!(mutex.bits(), LOCKED));
    }
    meanwhile(|| mutex.release());
    mutex.acquire();
    assert!(others_are_done() && events_of(LockEvent::MutexSleep) == 0);
    mutex.release();
    PAUSES.take()
}

#[test]
fn a_waiter_has_ten_rounds_before_it_parks() {
    assert_eq!(looks::<EventuallyFair>(), vec![2, 4, 8]);
    assert_eq!(looks::<Standard>(), vec![1, 2, 4]);
}

/// Lets a waiter use up its rounds and sleep. Meanwhile `sleeping` runs. Returns the word once the
/// waiter has locked the mutex.
fn after_the_rounds<T: ParkingLotTuning>(
    sleeping: impl FnOnce(&'static ParkingLotMutex<OneThread, T>) + 'static,
) -> u32 {
    let mutex = ParkingLotMutex::<OneThread, T>::held();
    for _ in 0..T::rounds() {
        meanwhile(|| assert_eq!(mutex.bits(), LOCKED));
    }
    meanwhile(move || sleeping(mutex));
    mutex.acquire();
    assert!(others_are_done());
    mutex.bits()
}

#[test]
fn a_sleeper_is_woken_to_a_free_mutex() {
    let bits = after_the_rounds::<Standard>(|mutex| {
        assert_eq!(mutex.bits(), LOCKED | PARKED);
        mutex.release();
        assert_eq!(mutex.bits(), FREE);
    });
    assert_eq!((bits, events_of(LockEvent::MutexSleep), events_of(LockEvent::MutexWake)), (LOCKED, 1, 1));
    assert!(UNPARKED.get().is_some());
    assert_eq!(events_of(LockEvent::MutexAfterSleep), 1);
}

#[test]
fn when_it_is_time_a_sleeper_is_handed_the_mutex() {
    NOW_NS.set(1);
    RANDOM.set(3 * FAIR_NS + 70);
    let bits = after_the_rounds::<EventuallyFair>(|mutex| {
        mutex.release();
        assert_eq!(mutex.bits(), LOCKED, "no thread can take it");
    });
    assert_eq!((bits, events_of(LockEvent::MutexHandOver)), (LOCKED, 1));
    // The next hand-over happens after the time that was drawn.
    let mutex = Early::held();
    for (now_ns, hands_over) in [(70, false), (71, false), (72, true)] {
        NOW_NS.set(now_ns);
        let waiter = mutex.sleeper();
        mutex.release();
        assert_eq!(waiter.park(), Signal::Granted);
        assert_eq!((waiter.note.load(Relaxed) == HANDED_OVER, mutex.is_locked()), (hands_over, hands_over));
        if !hands_over {
            mutex.acquire();
        }
    }
}

#[test]
fn parked_stays_as_long_as_a_thread_sleeps() {
    fn of<T: ParkingLotTuning>() {
        let mutex = ParkingLotMutex::<OneThread, T>::held();
        let (first, second) = (mutex.sleeper(), mutex.sleeper());
        mutex.release();
        assert!(first.is_signalled() && !second.is_signalled() && mutex.bits() == PARKED);
        // A newcomer takes the mutex although a thread sleeps.
        // SAFETY: one thread; unlocked below.
        assert!(unsafe { mutex.try_lock(&()) } && mutex.bits() == LOCKED | PARKED);
        mutex.release();
        assert!(second.is_signalled() && mutex.bits() == FREE);
    }
    of::<Standard>();
    of::<EventuallyFair>();
}

/// A waiter has set PARKED, and is not in the bucket yet.
#[test]
fn a_waiter_that_comes_late_to_the_bucket_looks_again() {
    fn of<T: ParkingLotTuning>() {
        let mutex = ParkingLotMutex::<OneThread, T>::held();
        assert_eq!(mutex.mark(LOCKED), Ok(LOCKED));
        assert_eq!(mutex.mark(LOCKED), Err(LOCKED | PARKED), "another thread was faster");
        mutex.release();
        assert_eq!(mutex.bits(), FREE);
        assert_eq!((mutex.park(), events_of(LockEvent::MutexSleep)), (Left::Awake, 0));
    }
    of::<Standard>();
    of::<EventuallyFair>();
}

/// 0.13 unlocks the mutex before it locks the bucket. So another thread may hold the mutex by then.
#[test]
fn a_late_release_leaves_the_next_holder_alone() {
    let mutex = Late::held();
    let waiter = mutex.sleeper();
    mutex.unlock_slow();
    assert!(waiter.is_signalled() && mutex.bits() == LOCKED);
}
