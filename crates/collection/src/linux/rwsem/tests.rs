use std::boxed::Box;
use std::cell::Cell;
use std::vec::Vec;

use super::queue::{CHOSEN, MARKED, WRITES};
use super::spin::Owner;
use super::*;
use crate::events::LockEvent;
use crate::parking::{Cancellation, Signal, Waiter, locked};
use crate::schedule::{OwnerState, Spin};
use crate::testing::{
    NOW_NS, OneThread, SPINS, events_of, left_by_others, meanwhile, others_are_done, set_owner_state,
};

type Lock<T> = Rwsem<OneThread, T>;

/// A word of eight bytes, three of four, and the two pointers of a queue: 40 bytes, or 32 where
/// pointers have four.
const SIZE: usize = (20 + 2 * size_of::<usize>()).next_multiple_of(8);
const _: () = assert!(size_of::<Lock<Standard>>() == SIZE);

const READS: u32 = 0;
const HANDOFF_NS: u64 = 4_000_000;

fn leaked<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn count<T: RwsemTuning>(lock: &Lock<T>) -> u64 {
    lock.count.load(Relaxed)
}

/// Waiters that other threads have queued: they sleep.
fn queued<T: RwsemTuning>(lock: &Lock<T>, notes: &[u32]) -> Vec<&'static Waiter<OneThread>> {
    lock.count.fetch_or(WAITERS, Relaxed);
    let queue = |note: &u32| {
        let waiter: &Waiter<OneThread> = leaked(Waiter::default());
        waiter.note.store(*note, Relaxed);
        waiter.mark.store(NOW_NS.get() + HANDOFF_NS, Relaxed);
        // SAFETY: one thread; the waiter stays.
        unsafe { lock.list.push(waiter) };
        waiter
    };
    notes.iter().map(queue).collect()
}

/// Whether the waiter has been let in, or told to try.
fn is_signalled(waiter: &Waiter<OneThread>, signal: Signal) -> bool {
    waiter.park_within(&Limit::until(0)) == Ok(signal)
}

fn granted(waiters: &[&Waiter<OneThread>]) -> Vec<bool> {
    waiters.iter().map(|waiter| is_signalled(waiter, Signal::Granted)).collect()
}

#[test]
fn the_count_says_who_holds_it() {
    fn of<T: RwsemTuning>() {
        let lock = Lock::<T>::new();
        // SAFETY: one thread, and what is taken is released.
        unsafe {
            lock.lock(&());
            assert!(lock.is_locked() && lock.is_locked_exclusive());
            assert!(!lock.try_lock(&()) && !lock.try_lock_shared(&()));
            assert_eq!((count(&lock), lock.owner.load(Relaxed)), (WRITER, 1 << OWNER_SHIFT));
            lock.unlock(&());
            assert!(lock.try_lock(&()));
            lock.downgrade(&());
            assert!(lock.is_locked() && !lock.is_locked_exclusive());
            assert!(lock.try_lock_shared(&()) && !lock.try_lock(&()));
            lock.lock_shared(&());
            assert_eq!((count(&lock), lock.owner()), (3 * READER, Owner::Readers));
            (0..3).for_each(|_| lock.unlock_shared(&()));
        }
        assert!(count(&lock) == 0 && !lock.is_locked());
    }
    of::<Standard>();
    of::<NoSpin>();
    of::<SpinningReaders>();
}

#[test]
fn a_reader_waits_for_the_writer_and_is_let_in_by_its_release() {
    let lock = leaked(Lock::<Standard>::new());
    // SAFETY: the other thread writes, and releases it while the only thread waits.
    unsafe {
        lock.lock(&());
        meanwhile(|| {
            assert_eq!(lock.count.load(Relaxed), WRITER | WAITERS);
            lock.unlock(&());
        });
        lock.lock_shared(&());
        assert_eq!((count(lock), events_of(LockEvent::RwsemRlock)), (READER, 1));
        lock.unlock_shared(&());
    }
    assert!(count(lock) == 0 && others_are_done());
}

#[test]
fn a_reader_that_finds_no_writer_any_more_stays() {
    let lock = Lock::<Standard>::new();
    lock.count.fetch_add(READER, Relaxed);
    assert_eq!(lock.lock_shared_slow(READER | WRITER, &Limit::NONE), Ok(()));
    assert_eq!((count(&lock), events_of(LockEvent::RwsemRlockFast)), (READER, 1));
}

#[test]
fn a_reader_goes_ahead_of_sleepers_and_takes_readers_along() {
    let lock = Lock::<Standard>::new();
    let waiters = queued(&lock, &[READS, WRITES, READS]);
    // SAFETY: one thread; no thread holds the lock.
    unsafe { lock.lock_shared(&()) };
    assert_eq!((granted(&waiters), count(&lock)), (Vec::from([true, false, true]), WAITERS + 3 * READER));
    assert_eq!(events_of(LockEvent::RwsemRlockSteal), 1);
}

#[test]
fn a_reader_does_not_follow_readers_past_a_sleeping_writer() {
    let lock = leaked(Lock::<Standard>::new());
    // SAFETY: the other thread reads.
    unsafe {
        lock.lock_shared(&());
        let writer = queued(lock, &[WRITES])[0];
        meanwhile(move || {
            lock.unlock_shared(&());
            assert!(is_signalled(writer, Signal::Woken), "the first is told to try");
            // It gives up instead.
            locked(&lock.wait_lock, || lock.list.remove(writer));
            lock.wake(Whom::Any);
        });
        lock.lock_shared(&());
    }
    assert_eq!((count(lock), events_of(LockEvent::RwsemRlockSteal)), (READER, 0));
}

#[test]
fn readers_that_may_not_go_ahead_queue() {
    let lock = leaked(Lock::<NoReaderSteal>::new());
    let waiters = queued(lock, &[READS]);
    // SAFETY: one thread. No thread holds the lock, so that its own look lets both in.
    unsafe { lock.lock_shared(&()) };
    assert_eq!((granted(&waiters), count(lock)), (Vec::from([true]), 2 * READER));
    assert_eq!(events_of(LockEvent::RwsemRlock), 1);
}

#[test]
fn readers_come_in_past_writers_or_up_to_the_first() {
    fn of<T: RwsemTuning>() -> (Vec<bool>, u64) {
        let lock = Lock::<T>::new();
        // SAFETY: one thread; the waiters stay.
        let waiters = unsafe {
            lock.lock(&());
            let waiters = queued(&lock, &[READS, WRITES, READS]);
            lock.unlock(&());
            waiters
        };
        (granted(&waiters), count(&lock))
    }
    assert_eq!(of::<Standard>(), (Vec::from([true, false, true]), WAITERS + 2 * READER));
    assert_eq!(of::<LeadingReaders>(), (Vec::from([true, false, false]), WAITERS | READER));
}

#[test]
fn so_many_readers_come_in_at_a_time() {
    let lock = Lock::<Standard>::new();
    let waiters = queued(&lock, &[READS; 300]);
    lock.wake(Whom::Any);
    assert_eq!(granted(&waiters).into_iter().filter(|granted| *granted).count(), 256);
    assert_eq!(count(&lock), WAITERS + 256 * READER);
    lock.wake(Whom::Readers);
    assert_eq!(count(&lock), 300 * READER);
}

#[test]
fn a_writer_that_becomes_a_reader_lets_readers_in_and_no_writer() {
    for (first, counted) in [(READS, 2 * READER), (WRITES, WAITERS | READER)] {
        let lock = Lock::<Standard>::new();
        // SAFETY: as above.
        let waiters = unsafe {
            lock.lock(&());
            let waiters = queued(&lock, &[first]);
            lock.downgrade(&());
            waiters
        };
        assert_eq!((count(&lock), granted(&waiters)), (counted, Vec::from([first == READS])));
    }
}

#[test]
fn a_writer_takes_the_lock_from_the_queue() {
    let lock = leaked(Lock::<NoSpin>::new());
    // SAFETY: the other thread reads, and releases it while the only thread waits.
    unsafe {
        lock.lock_shared(&());
        meanwhile(|| {
            assert_eq!(lock.count.load(Relaxed), WAITERS | READER);
            lock.unlock_shared(&());
        });
        lock.lock(&());
        assert_eq!((count(lock), events_of(LockEvent::RwsemWlock)), (WRITER, 1));
        lock.unlock(&());
    }
    assert_eq!(count(lock), 0);
}

/// A writer comes while another thread writes, which unlocks after so many turns. Returns the
/// counts of the events.
fn writer_against_writer<T: RwsemTuning>(turns: u32) -> [u64; 3] {
    let lock = leaked(Lock::<T>::new());
    // SAFETY: the other thread releases what it has.
    unsafe {
        lock.lock(&());
        (0..turns).for_each(|_| meanwhile(|| ()));
        meanwhile(|| lock.unlock(&()));
        lock.lock(&());
        assert_eq!(count(lock), WRITER);
        lock.unlock(&());
    }
    assert!(others_are_done() && count(lock) == 0);
    use LockEvent::{RwsemOptFail, RwsemOptLock, RwsemOptNospin};
    [RwsemOptLock, RwsemOptFail, RwsemOptNospin].map(events_of)
}

#[test]
fn a_writer_spins_while_the_owner_runs() {
    assert_eq!(writer_against_writer::<Standard>(0), [1, 0, 0]);
}

#[test]
fn a_writer_that_has_spun_for_long_sleeps() {
    assert_eq!(writer_against_writer::<Standard>(SPINS), [0, 1, 0]);
}

#[test]
fn a_writer_does_not_spin_for_one_that_sleeps() {
    set_owner_state(ThreadId::new(1).unwrap(), OwnerState::Asleep);
    assert_eq!(writer_against_writer::<Standard>(0), [0, 0, 1]);
}

#[test]
fn a_writer_overtakes_the_queue_by_spinning_unless_that_is_over() {
    for (handoff, taken) in [(0, true), (HANDOFF, false)] {
        let lock = Lock::<Standard>::new();
        queued(&lock, &[WRITES]);
        lock.count.fetch_or(handoff, Relaxed);
        assert_eq!(lock.try_ahead_of_queue(ThreadId::new(1).unwrap()), taken);
        assert_eq!(lock.try_shared_ahead_of_queue(), !taken && handoff == 0);
    }
}

#[test]
fn no_thread_spins_for_readers_that_stay() {
    let lock = Lock::<Standard>::new();
    // SAFETY: one thread.
    unsafe { lock.lock_shared(&()) };
    assert!(lock.may_spin(&mut Spin::default()));
    lock.readers_stay();
    assert!(!lock.may_spin(&mut Spin::default()) && lock.owner() == Owner::Readers);
    // Other readers keep that. The last reader takes it back, if there are waiters.
    lock.note_readers();
    assert!(!lock.may_spin(&mut Spin::default()));
    queued(&lock, &[WRITES]);
    // SAFETY: taken above.
    unsafe { lock.unlock_shared(&()) };
    assert!(lock.may_spin(&mut Spin::default()));
    // A writer holds it by now: there is nothing to say about readers.
    lock.note_writer(ThreadId::new(3).unwrap());
    lock.readers_stay();
    assert_eq!(lock.owner(), Owner::Writer(ThreadId::new(3).unwrap()));
}

#[test]
fn spinning_for_readers_may_have_no_end() {
    crate::tuning! {
        struct Endless: RwsemTuning {
            reader_spin_base_ns: u64 = u64::MAX;
            reader_spin_each_ns: u64 = u64::MAX;
            reader_spin_readers: u64 = u64::MAX;
        }
    }
    let lock = Lock::<Endless>::new();
    lock.count.store(3 * READER, Relaxed);
    assert_eq!(lock.reader_spin_until_ns(), Some(u64::MAX));
}

#[test]
fn a_writer_that_is_overdue_is_overtaken_no_more() {
    let lock = leaked(Lock::<NoSpin>::new());
    // SAFETY: the other threads release what they hold.
    unsafe {
        lock.lock(&());
        meanwhile(|| {
            NOW_NS.set(HANDOFF_NS);
            lock.unlock(&());
            assert!(lock.try_ahead_of_queue(ThreadId::new(7).unwrap()), "a spinner overtakes it");
        });
        meanwhile(|| {
            assert_eq!(lock.count.load(Relaxed), WRITER | WAITERS | HANDOFF);
            lock.unlock(&());
            assert!(!lock.try_ahead_of_queue(ThreadId::new(7).unwrap()));
        });
        lock.lock(&());
        assert_eq!((count(lock), events_of(LockEvent::RwsemWlockHandoff)), (WRITER, 1));
    }
}

#[test]
fn a_reader_that_is_overdue_is_overtaken_no_more() {
    let lock = Lock::<Standard>::new();
    let waiters = queued(&lock, &[READS, WRITES]);
    NOW_NS.set(HANDOFF_NS);
    assert!(lock.try_ahead_of_queue(ThreadId::new(7).unwrap()), "a spinner overtakes it");
    lock.wake(Whom::Any);
    assert_eq!(count(&lock), WRITER | WAITERS | HANDOFF);
    assert_ne!(waiters[0].note.load(Relaxed) & MARKED, 0);
    lock.wake(Whom::Any);
    assert_eq!((count(&lock), events_of(LockEvent::RwsemRlockHandoff)), (WRITER | WAITERS | HANDOFF, 1));
    // SAFETY: the spinner's.
    unsafe { lock.unlock(&()) };
    assert_eq!((count(&lock), granted(&waiters)), (WAITERS | READER, Vec::from([true, false])));
    assert_ne!(waiters[0].note.load(Relaxed) & CHOSEN, 0);
}

#[test]
fn no_waiter_insists_where_there_is_no_hand_over() {
    let lock = Lock::<NoHandoff>::new();
    queued(&lock, &[READS]);
    NOW_NS.set(u64::MAX);
    assert!(lock.try_ahead_of_queue(ThreadId::new(7).unwrap()));
    lock.wake(Whom::Any);
    assert_eq!(count(&lock), WRITER | WAITERS);
}

#[test]
fn an_urgent_writer_insists_at_once() {
    let lock = leaked(Lock::<Standard>::new());
    OneThread::set_priority(true);
    // SAFETY: the other thread reads.
    unsafe {
        lock.lock_shared(&());
        lock.readers_stay();
        meanwhile(|| {
            assert_eq!(lock.count.load(Relaxed), HANDOFF | WAITERS | READER);
            lock.unlock_shared(&());
        });
        lock.lock(&());
    }
    assert_eq!(count(lock), WRITER);
}

#[test]
fn a_reader_that_gives_up_leaves_nothing() {
    let lock = Lock::<Standard>::new();
    // SAFETY: one thread.
    unsafe {
        lock.lock(&());
        assert_eq!(lock.lock_shared_within(&(), &Limit::until(5)), Err(GaveUp::TimedOut));
        assert_eq!((count(&lock), events_of(LockEvent::RwsemRlockFail)), (WRITER, 1));
        lock.unlock(&());
        assert_eq!(lock.lock_shared_within(&(), &Limit::until(0)), Ok(()), "free: whatever the limit");
    }
}

#[test]
fn a_first_writer_that_gives_up_wakes_the_next() {
    let lock = leaked(Lock::<NoSpin>::new());
    let (cancellation, next) = (leaked(Cancellation::<OneThread>::default()), Cell::default());
    let next: &'static Cell<Option<&Waiter<OneThread>>> = leaked(next);
    // SAFETY: the other thread reads, and goes on.
    unsafe {
        lock.lock_shared(&());
        meanwhile(|| {
            lock.count.fetch_or(HANDOFF, Relaxed);
            next.set(Some(queued(lock, &[READS])[0]));
            cancellation.cancel();
        });
        let limit = Limit { until_ns: None, cancellation: Some(cancellation) };
        assert_eq!(lock.lock_within(&(), &limit), Err(GaveUp::Cancelled));
    }
    assert!(is_signalled(next.get().unwrap(), Signal::Granted));
    assert_eq!((count(lock), events_of(LockEvent::RwsemWlockFail)), (2 * READER, 1));
}

#[test]
fn the_last_waiter_that_gives_up_takes_its_marks_along() {
    let lock = leaked(Lock::<NoSpin>::new());
    // SAFETY: the other thread reads, and goes on.
    unsafe {
        lock.lock_shared(&());
        meanwhile(|| _ = lock.count.fetch_or(HANDOFF, Relaxed));
        meanwhile(|| NOW_NS.set(5));
        assert_eq!(lock.lock_within(&(), &Limit::until(5)), Err(GaveUp::TimedOut));
    }
    assert_eq!(count(lock), READER);
}

#[test]
fn a_reader_spins_for_a_writer_if_it_may() {
    let lock = leaked(Lock::<SpinningReaders>::new());
    // SAFETY: the other thread writes, and releases it while the only thread spins.
    unsafe {
        lock.lock(&());
        meanwhile(|| {
            assert_eq!(lock.count.load(Relaxed), WRITER, "its attempt is taken back");
            lock.unlock(&());
        });
        lock.lock_shared(&());
    }
    assert_eq!((count(lock), events_of(LockEvent::RwsemRlockSteal)), (READER, 1));
}

#[test]
fn a_spinner_obeys_its_limit() {
    let lock = Lock::<SpinningReaders>::new();
    let limit = |ns: u64| {
        NOW_NS.set(10);
        meanwhile(move || NOW_NS.set(ns));
        meanwhile(|| ()); // not done: it does not spin on
        Limit::until(ns)
    };
    // SAFETY: one thread, which gives up while it has the lock.
    unsafe {
        lock.lock(&());
        assert_eq!(lock.lock_within(&(), &limit(20)), Err(GaveUp::TimedOut));
        assert_eq!(left_by_others(), 1);
        assert_eq!(lock.lock_shared_within(&(), &limit(20)), Err(GaveUp::TimedOut));
        assert_eq!(left_by_others(), 1);
        lock.downgrade(&());
        assert_eq!(lock.lock_within(&(), &limit(20)), Err(GaveUp::TimedOut));
        assert_eq!(left_by_others(), 1);
    }
    assert_eq!(count(&lock), READER);
}

/// A writer that no thread may overtake spins, sleeps when it has spun for long, and spins again
/// when it has slept.
#[test]
fn each_period_of_spinning_has_its_own_budget() {
    crate::tuning! {
        struct InsistsAtOnce: RwsemTuning {
            writer_spin: bool = false;
            handoff_ns: Option<u64> = Some(0);
        }
    }
    let lock = leaked(Lock::<InsistsAtOnce>::new());
    // SAFETY: the other thread releases what it has.
    unsafe {
        lock.lock(&());
        (0..SPINS).for_each(|_| meanwhile(|| ()));
        meanwhile(|| lock.wake(Whom::Any));
        meanwhile(|| lock.unlock(&()));
        lock.lock(&());
    }
    assert_eq!((count(lock), events_of(LockEvent::RwsemSleepWriter)), (WRITER, 1));
}

#[test]
fn a_reader_that_has_spun_without_success_queues() {
    let lock = leaked(Lock::<SpinningReaders>::new());
    // SAFETY: as above, while it sleeps.
    unsafe {
        lock.lock(&());
        (0..SPINS).for_each(|_| meanwhile(|| ()));
        meanwhile(|| lock.unlock(&()));
        lock.lock_shared(&());
    }
    assert_eq!((count(lock), events_of(LockEvent::RwsemRlock)), (READER, 1));
}
