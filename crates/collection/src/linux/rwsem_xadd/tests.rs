use std::boxed::Box;
use std::vec::Vec;

use super::*;
use crate::schedule::{OwnerState, ThreadId};
use crate::testing::{OneThread, SPINS, UNPARKED, events_of, meanwhile, others_are_done, set_owner_state};

type Lock<T> = RwsemXadd<OneThread, T>;

crate::tuning! {
    /// The pre-reads alone.
    struct PreRead: XaddTuning {
        writer_spin: WriterSpin = WriterSpin::Never;
        single_waker: bool = false;
    }
}

crate::tuning! {
    /// Without the single waker, and with writers that spin in the queue.
    struct PreReadSpinQueued: XaddTuning {
        writer_spin: WriterSpin = WriterSpin::Queued;
        single_waker: bool = false;
    }
}

crate::tuning! {
    /// Writers spin only for a writer.
    struct OwnerKnown: XaddTuning {
        spins_without_owner: bool = false;
    }
}

// 48 bytes, or 32 where pointers have four.
const _: () = assert!(size_of::<Lock<Standard>>() == 16 + 4 * size_of::<usize>());

const FREE: u64 = 0;

fn leaked<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn count<T: XaddTuning>(lock: &Lock<T>) -> u64 {
    lock.count.load(Relaxed)
}

/// Waiters that other threads have queued: they sleep.
fn queued<T: XaddTuning>(lock: &Lock<T>, notes: &[u32]) -> Vec<&'static Waiter<OneThread>> {
    if lock.list.is_empty() {
        lock.count.fetch_add(WAITING, Relaxed);
    }
    let queue = |note: &u32| {
        let waiter: &Waiter<OneThread> = leaked(Waiter::default());
        waiter.note.store(*note, Relaxed);
        // SAFETY: one thread; the waiter stays.
        unsafe { lock.list.push(waiter) };
        waiter
    };
    notes.iter().map(queue).collect()
}

/// Whether the waiter has been let in, or told to try.
fn is_signalled(waiter: &Waiter<OneThread>, signal: Signal) -> bool {
    waiter.park_within(&crate::parking::Limit::until(0)) == Ok(signal)
}

#[test]
fn the_count_says_who_holds_it() {
    fn of<T: XaddTuning>() {
        let lock = Lock::<T>::new();
        // SAFETY: one thread, and what is taken is released.
        unsafe {
            lock.lock(&());
            assert!(lock.is_locked() && !lock.try_lock(&()) && !lock.try_lock_shared(&()));
            assert_eq!(count(&lock), WRITER);
            lock.unlock(&());
            assert!(lock.try_lock(&()));
            lock.downgrade(&());
            assert!(lock.try_lock_shared(&()) && !lock.try_lock(&()));
            lock.lock_shared(&());
            assert_eq!(count(&lock), 3 * ACTIVE);
            (0..3).for_each(|_| lock.unlock_shared(&()));
        }
        assert!(count(&lock) == FREE && !lock.is_locked() && lock.owner.load(Relaxed) == 0);
    }
    of::<Standard>();
    of::<Base>();
    of::<PreReadSpinQueued>();
}

#[test]
fn a_reader_waits_for_the_writer_and_is_let_in_by_its_release() {
    let lock = leaked(Lock::<Standard>::new());
    // SAFETY: the other thread writes, and releases it while the only thread waits.
    unsafe {
        lock.lock(&());
        meanwhile(|| {
            assert_eq!(lock.count.load(Relaxed), WAITING.wrapping_add(WRITER));
            lock.unlock(&());
        });
        lock.lock_shared(&());
        assert_eq!((count(lock), events_of(LockEvent::RwsemRlock)), (ACTIVE, 1));
        lock.unlock_shared(&());
    }
    assert!(count(lock) == FREE && others_are_done());
}

#[test]
fn a_reader_that_finds_no_other_thread_any_more_lets_itself_in() {
    let lock = Lock::<Base>::new();
    // SAFETY: one thread.
    unsafe {
        // As if there had been a writer at the time of its attempt.
        lock.count.fetch_add(ACTIVE, Relaxed);
        lock.lock_shared_slow();
        assert_eq!(count(&lock), ACTIVE);
        // The same with sleepers. A writer that has been woken, but does not run yet, keeps its
        // place, and the reader comes after it.
        lock.unlock_shared(&());
    }
    assert_eq!(count(&lock), FREE);
}

#[test]
fn readers_come_in_together_up_to_a_writer() {
    let lock = Lock::<Standard>::new();
    // SAFETY: one thread; the waiters stay.
    unsafe {
        lock.lock(&());
        let waiters = queued(&lock, &[READER, READER, WRITES, READER]);
        lock.unlock(&());
        assert_eq!(count(&lock), WAITING + 2 * ACTIVE);
        let granted = waiters.iter().map(|waiter| is_signalled(waiter, Signal::Granted));
        assert_eq!(granted.collect::<Vec<_>>(), [true, true, false, false]);
        assert!(lock.list.is_first(waiters[2]));
        lock.unlock_shared(&());
        assert!(!is_signalled(waiters[2], Signal::Woken), "a reader is left");
        lock.unlock_shared(&());
        assert!(is_signalled(waiters[2], Signal::Woken) && !lock.list.is_empty(), "told to try, no more");
        assert_eq!(count(&lock), WAITING);
    }
}

#[test]
fn a_writer_that_becomes_a_reader_lets_readers_in_and_no_writer() {
    for (first, counted) in [(READER, 2 * ACTIVE), (WRITES, WAITING + ACTIVE)] {
        let lock = Lock::<Standard>::new();
        // SAFETY: as above.
        let waiter = unsafe {
            lock.lock(&());
            let waiters = queued(&lock, &[first]);
            lock.downgrade(&());
            waiters[0]
        };
        assert_eq!((count(&lock), lock.list.is_empty()), (counted, first == READER));
        assert_eq!(is_signalled(waiter, Signal::Granted), first == READER);
    }
}

#[test]
fn a_writer_waits_for_readers_and_takes_the_lock_itself() {
    let lock = leaked(Lock::<PreRead>::new());
    // SAFETY: the other thread reads, and releases it while the only thread waits.
    unsafe {
        lock.lock_shared(&());
        meanwhile(|| {
            assert_eq!(lock.count.load(Relaxed), WAITING + ACTIVE);
            lock.unlock_shared(&());
            assert_eq!(lock.count.load(Relaxed), WAITING, "it is only told to try");
        });
        lock.lock(&());
        assert_eq!((count(lock), events_of(LockEvent::RwsemWlock)), (WRITER, 1));
        lock.unlock(&());
    }
    assert!(UNPARKED.get().is_some() && count(lock) == FREE);
}

#[test]
fn a_writer_behind_others_leaves_them_their_sleepers() {
    let lock = leaked(Lock::<Base>::new());
    let waiters = queued(lock, &[WRITES]);
    // SAFETY: one thread.
    unsafe { lock.lock(&()) };
    assert_eq!(count(lock), WAITING.wrapping_add(WRITER), "it has overtaken the first");
    assert!(lock.list.is_first(waiters[0]));
    // SAFETY: taken above.
    unsafe { lock.unlock(&()) };
    assert!(is_signalled(waiters[0], Signal::Woken));
}

#[test]
fn a_blocked_writer_lets_readers_in_that_are_first() {
    let lock = leaked(Lock::<Base>::new());
    // SAFETY: one thread; the tests make up the others.
    unsafe {
        lock.lock_shared(&());
        let waiters = queued(lock, &[READER]);
        meanwhile(move || {
            assert!(is_signalled(waiters[0], Signal::Granted));
            assert_eq!(lock.count.load(Relaxed), WAITING + 2 * ACTIVE);
            lock.unlock_shared(&());
            lock.unlock_shared(&());
        });
        lock.lock(&());
        lock.unlock(&());
    }
    assert_eq!(count(lock), FREE);
}

/// A writer comes while another thread writes, which unlocks after so many turns. Returns how many
/// times a writer spun with success, spun without success, and did not spin.
fn writer_against_writer<T: XaddTuning>(turns: u32) -> [u64; 3] {
    let lock = leaked(Lock::<T>::new());
    // SAFETY: the other thread releases what it holds.
    unsafe {
        lock.lock(&());
        (0..turns).for_each(|_| meanwhile(|| ()));
        meanwhile(|| lock.unlock(&()));
        lock.lock(&());
        assert_eq!(count(lock), WRITER);
        lock.unlock(&());
    }
    assert!(others_are_done() && count(lock) == FREE);
    use LockEvent::{RwsemOptFail, RwsemOptLock, RwsemOptNospin};
    [RwsemOptLock, RwsemOptFail, RwsemOptNospin].map(events_of)
}

#[test]
fn a_writer_spins_while_the_owner_runs() {
    assert_eq!(writer_against_writer::<Standard>(0), [1, 0, 0]);
}

#[test]
fn a_writer_spins_in_the_queue() {
    assert_eq!(writer_against_writer::<PreReadSpinQueued>(0), [1, 0, 0]);
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
fn a_writer_that_may_not_spin_sleeps() {
    assert_eq!(writer_against_writer::<Base>(0), [0; 3]);
}

/// As above, while another thread reads.
fn writer_against_reader<T: XaddTuning>() -> [u64; 3] {
    let lock = leaked(Lock::<T>::new());
    // SAFETY: the other thread releases what it holds.
    unsafe {
        lock.lock_shared(&());
        meanwhile(|| lock.unlock_shared(&()));
        lock.lock(&());
        lock.unlock(&());
    }
    use LockEvent::{RwsemOptFail, RwsemOptLock, RwsemOptNospin};
    [RwsemOptLock, RwsemOptFail, RwsemOptNospin].map(events_of)
}

#[test]
fn a_writer_of_the_series_spins_for_readers_too() {
    assert_eq!(writer_against_reader::<Standard>(), [1, 0, 0]);
}

#[test]
fn a_writer_of_2014_does_not_spin_for_readers() {
    assert_eq!(writer_against_reader::<OwnerKnown>(), [0, 0, 1]);
}

#[test]
fn an_urgent_writer_does_not_spin_for_unknown_holders() {
    OneThread::set_priority(true);
    assert_eq!(writer_against_reader::<Standard>(), [0, 1, 0]);
}

#[test]
fn a_spinning_writer_overtakes_the_queue_and_leaves_it_its_sleepers() {
    let lock = Lock::<Standard>::new();
    let waiters = queued(&lock, &[WRITES]);
    // SAFETY: one thread.
    unsafe {
        lock.lock(&());
        assert_eq!(count(&lock), WAITING.wrapping_add(WRITER));
        assert_eq!(lock.owner.load(Relaxed), 1);
        lock.unlock(&());
    }
    assert!(is_signalled(waiters[0], Signal::Woken) && count(&lock) == WAITING);
}

#[test]
fn a_waker_that_comes_while_another_is_about_it_leaves_it_to_that_one() {
    let lock = Lock::<Standard>::new();
    let wakes = std::cell::Cell::new(0);
    lock.wake_alone(|| {
        wakes.set(wakes.get() + 1);
        if wakes.get() < 3 {
            lock.wake_alone(|| unreachable!("two wake"));
        }
    });
    assert_eq!((wakes.get(), lock.waking.load(Relaxed)), (3, 0));
    assert_eq!(events_of(LockEvent::RwsemWakeSkipped), 2);
}

#[test]
fn a_reader_is_not_counted_in_while_a_writer_is_active() {
    fn of<T: XaddTuning>() {
        let lock = Lock::<T>::new();
        lock.count.store(WAITING.wrapping_add(WRITER), Relaxed);
        assert!(!lock.admit());
        assert_eq!(count(&lock), WAITING.wrapping_add(WRITER));
    }
    of::<Standard>();
    of::<Base>();
}

/// Leaves `is_locked_exclusive` to the trait.
#[test]
fn a_lock_that_cannot_tell_readers_from_a_writer_tries_to_read() {
    let lock = RwsemXadd::<OneThread>::default();
    assert!(!lock.is_locked_exclusive());
    // SAFETY: one thread, and what is taken is released.
    unsafe {
        assert!(lock.try_lock(&()), "the look has not left it locked");
        assert!(lock.is_locked_exclusive());
        lock.downgrade(&());
        assert!(!lock.is_locked_exclusive() && lock.is_locked(), "read by one");
        lock.unlock_shared(&());
        assert!(!lock.is_locked_exclusive() && !lock.is_locked());
    }
}
