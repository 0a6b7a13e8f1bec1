use std::boxed::Box;

use super::*;
use crate::native::Native;
use crate::testing::{OneThread, UNPARKED, events_of, meanwhile, others_are_done};

const _: () = assert!(size_of::<StdRwLock<Native>>() == 8);

type Lock = StdRwLock<OneThread>;

fn lock_in(state: u32) -> &'static Lock {
    let lock: &'static Lock = Box::leak(Box::default());
    lock.state.store(state, Relaxed);
    lock
}

fn state(lock: &Lock) -> u32 {
    lock.state.load(Relaxed)
}

#[test]
fn alone_it_makes_no_call() {
    let lock = Lock::new();
    // SAFETY: one thread, which unlocks what it has locked.
    unsafe {
        lock.lock(&());
        assert!(lock.is_locked() && lock.is_locked_exclusive());
        assert!(!lock.try_lock(&()) && !lock.try_lock_shared(&()));
        lock.downgrade(&());
        assert!(lock.is_locked() && !lock.is_locked_exclusive() && lock.try_lock_shared(&()));
        assert_eq!(state(&lock), 2);
        lock.unlock_shared(&());
        lock.unlock_shared(&());
        lock.lock_shared(&());
        assert!(!lock.try_lock(&()));
        lock.unlock_shared(&());
        assert!(lock.try_lock(&()));
        lock.unlock(&());
    }
    assert_eq!((state(&lock), UNPARKED.get(), events_of(LockEvent::Slowpath)), (0, None, 0));
}

#[test]
fn no_reader_overtakes_a_sleeper() {
    for mark in [READERS_SLEEP, WRITERS_SLEEP] {
        let lock = lock_in(mark | 1);
        // SAFETY: not acquired.
        assert!(!unsafe { lock.try_lock_shared(&()) });
    }
}

#[test]
fn a_reader_sleeps_while_there_is_a_writer() {
    let lock = lock_in(WRITER);
    meanwhile(|| {
        assert_eq!(state(lock), WRITER | READERS_SLEEP);
        // SAFETY: held since the beginning.
        unsafe { lock.unlock(&()) };
        assert_eq!((state(lock), UNPARKED.take()), (0, Some((&raw const lock.state, u32::MAX))));
    });
    // SAFETY: unlocked below.
    unsafe { lock.lock_shared(&()) };
    assert!(others_are_done() && state(lock) == 1 && events_of(LockEvent::RwsemSleepReader) == 1);
    // SAFETY: locked above.
    unsafe { lock.unlock_shared(&()) };
    assert_eq!(state(lock), 0);
}

/// It leaves the mark, since others may sleep.
#[test]
fn a_writer_sleeps_until_the_last_reader_has_left() {
    let lock = lock_in(1);
    meanwhile(|| {
        assert_eq!(state(lock), WRITERS_SLEEP | 1);
        // SAFETY: held since the beginning.
        unsafe { lock.unlock_shared(&()) };
        assert_eq!((state(lock), UNPARKED.take()), (0, Some((&raw const lock.notify, 1))));
    });
    // SAFETY: unlocked below.
    unsafe { lock.lock(&()) };
    assert!(others_are_done() && state(lock) == WRITERS_SLEEP | WRITER);
    // SAFETY: locked above.
    unsafe { lock.unlock(&()) };
    assert_eq!((state(lock), lock.notify.load(Relaxed)), (0, 2));
}

/// This platform does not tell whether a writer slept, so readers are woken, too.
#[test]
fn a_writer_is_woken_before_readers() {
    let lock = lock_in(WRITER | READERS_SLEEP | WRITERS_SLEEP);
    // SAFETY: held since the beginning.
    unsafe { lock.unlock(&()) };
    assert_eq!((events_of(LockEvent::RwsemWakeWriter), events_of(LockEvent::RwsemWakeReader)), (1, 1));
    assert_eq!((state(lock), UNPARKED.take()), (0, Some((&raw const lock.state, u32::MAX))));
}

/// A writer that becomes a reader lets sleeping readers in, though writers sleep.
#[test]
fn a_downgrade_lets_sleeping_readers_in() {
    let lock = lock_in(WRITER | WRITERS_SLEEP);
    meanwhile(|| {
        assert_eq!(state(lock), WRITER | READERS_SLEEP | WRITERS_SLEEP);
        // SAFETY: held since the beginning.
        unsafe { lock.downgrade(&()) };
    });
    // SAFETY: shared with the thread above.
    unsafe { lock.lock_shared(&()) };
    assert!(others_are_done() && state(lock) == WRITERS_SLEEP | 2);
}
