use std::boxed::Box;

use super::*;
use crate::native::Native;
use crate::testing::{OneThread, PAUSES, events_of, meanwhile, others_are_done};

const _: () = assert!(size_of::<ParkingLotRwLock<Native>>() == 4);

type Lock = ParkingLotRwLock<OneThread>;

fn lock_in(word: u32) -> &'static Lock {
    let lock: &'static Lock = Box::leak(Box::default());
    lock.word.store(word, Relaxed);
    lock
}

impl Lock {
    fn bits(&self) -> u32 {
        self.word.load(Relaxed)
    }

    /// A waiter that sleeps in a queue of the bucket.
    fn sleeper(&self, queue: Queue, as_what: u32) -> &'static Waiter<OneThread> {
        let waiter: &'static Waiter<OneThread> = Box::leak(Box::default());
        waiter.note.store(as_what, Relaxed);
        // SAFETY: the waiter lives for ever.
        unsafe { Locked::of(self).push(queue, waiter) };
        waiter
    }
}

/// Other threads do nothing in this many rounds of a waiter.
fn nothing_happens(rounds: u32) {
    (0..rounds).for_each(|_| meanwhile(|| ()));
}

#[test]
fn alone_it_knows_no_bucket() {
    let lock = Lock::new();
    // SAFETY: one thread, which unlocks what it has locked.
    unsafe {
        lock.lock(&());
        assert!(lock.is_locked() && lock.is_locked_exclusive());
        assert!(!lock.try_lock(&()) && !lock.try_lock_shared(&()));
        lock.downgrade(&());
        assert!(lock.is_locked() && !lock.is_locked_exclusive() && lock.try_lock_shared(&()));
        assert_eq!(lock.bits(), 2 * READER);
        lock.unlock_shared(&());
        lock.unlock_shared(&());
        lock.lock_shared(&());
        assert!(!lock.try_lock(&()));
        lock.unlock_shared(&());
        assert!(lock.try_lock(&()));
        lock.unlock(&());
    }
    assert_eq!((lock.bits(), events_of(LockEvent::Slowpath)), (0, 0));
}

#[test]
fn a_reader_sleeps_after_ten_rounds() {
    let lock = lock_in(WRITER);
    PAUSES.take();
    nothing_happens(10);
    meanwhile(|| {
        assert_eq!(lock.bits(), WRITER | PARKED);
        // SAFETY: held since the beginning.
        unsafe { lock.unlock(&()) };
        assert_eq!(lock.bits(), 0);
    });
    // SAFETY: shared by this thread alone.
    unsafe { lock.lock_shared(&()) };
    assert!(others_are_done() && lock.bits() == READER && PAUSES.take() == [1, 2, 4]);
    assert_eq!(events_of(LockEvent::RwsemSleepReader), 1);
}

#[test]
fn a_writer_keeps_new_readers_out_and_waits_for_the_others() {
    let lock = lock_in(READER);
    nothing_happens(10);
    meanwhile(|| {
        assert_eq!(lock.bits(), READER | WRITER | WRITER_PARKED);
        // SAFETY: not acquired; one share is held since the beginning.
        unsafe {
            assert!(!lock.try_lock_shared(&()));
            lock.unlock_shared(&());
        }
    });
    // SAFETY: unlocked below.
    unsafe {
        lock.lock(&());
        assert!(others_are_done() && lock.bits() == WRITER && lock.is_locked_exclusive());
        lock.unlock(&());
    }
    assert_eq!((lock.bits(), events_of(LockEvent::RwsemSleepWriter)), (0, 1));
}

#[test]
fn readers_are_woken_up_to_and_including_the_first_writer() {
    let lock = lock_in(WRITER | PARKED);
    let order = [READER, READER, WRITER, READER, WRITER];
    let waiters = order.map(|as_what| lock.sleeper(Queue::Exclusive, as_what));
    let signalled = || waiters.map(Waiter::is_signalled);
    // SAFETY: held since the beginning, and by two threads that were woken.
    unsafe { lock.unlock(&()) };
    assert_eq!((lock.bits(), signalled()), (PARKED, [true, true, true, false, false]));
    lock.word.store(WRITER | PARKED, Relaxed);
    // SAFETY: as above.
    unsafe { lock.downgrade(&()) };
    assert_eq!((lock.bits(), signalled()), (READER, [true; 5]));
}

/// A waiter has set PARKED or WRITER_PARKED, and is not in the bucket yet.
#[test]
fn a_waiter_that_comes_late_to_the_bucket_looks_again() {
    let lock = lock_in(WRITER | PARKED);
    // SAFETY: held since the beginning.
    unsafe { lock.unlock(&()) };
    assert_eq!(lock.bits(), 0);
    lock.park(Queue::Exclusive, READER, |word| word & PARKED != 0);
    lock.word.store(READER | WRITER | WRITER_PARKED, Relaxed);
    // SAFETY: as above.
    unsafe { lock.unlock_shared(&()) };
    assert_eq!(lock.bits(), WRITER);
    lock.park(Queue::Shared, WRITER, |word| word & WRITER_PARKED != 0);
    assert_eq!(events_of(LockEvent::ChainCancel), 2);
}
