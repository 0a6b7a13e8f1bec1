use std::boxed::Box;

use super::*;
use crate::native::Native;
use crate::testing::{OneThread, UNPARKED, events_of, meanwhile, others_are_done};

const _: () = assert!(size_of::<GlibcRwLock<Native>>() == 12);

type Lock = GlibcRwLock<OneThread>;

fn words(lock: &Lock) -> [u32; 3] {
    [&lock.readers, &lock.phase, &lock.writers].map(|word| word.load(Relaxed))
}

fn lock_in([readers, phase, writers]: [u32; 3]) -> &'static Lock {
    let lock: &'static Lock = Box::leak(Box::default());
    lock.readers.store(readers, Relaxed);
    lock.phase.store(phase, Relaxed);
    lock.writers.store(writers, Relaxed);
    lock
}

/// The values are those of glibc 2.36, as a program sees them.
#[test]
fn alone_the_words_are_those_of_the_library() {
    let lock = Lock::new();
    // SAFETY: one thread, which unlocks what it has locked.
    unsafe {
        lock.lock_shared(&());
        assert_eq!(words(&lock), [8, 0, 0]);
        lock.lock_shared(&());
        assert_eq!(words(&lock), [0x10, 0, 0]);
        lock.unlock_shared(&());
        lock.unlock_shared(&());
        assert_eq!(words(&lock), [0, 0, 0]);
        for _ in 0..2 {
            lock.lock(&());
            assert_eq!(words(&lock), [3, 1, 1]);
            assert!(lock.is_locked() && lock.is_locked_exclusive());
            assert!(!lock.try_lock(&()) && !lock.try_lock_shared(&()));
            lock.unlock(&());
            assert!(words(&lock) == [1, 1, 0] && !lock.is_locked());
        }
        lock.lock_shared(&());
        assert!(words(&lock) == [8, 0, 0] && !lock.try_lock(&()) && lock.try_lock_shared(&()));
        lock.unlock_shared(&());
        lock.unlock_shared(&());
        assert!(lock.try_lock(&()));
        lock.downgrade(&());
        assert!(words(&lock) == [8, 0, 0] && !lock.is_locked_exclusive());
        lock.unlock_shared(&());
    }
    assert_eq!(UNPARKED.get(), None);
}

#[test]
fn readers_that_wait_go_before_a_writer_that_waits() {
    let lock = lock_in([3, 1, 3]);
    meanwhile(|| {
        assert_eq!(words(lock), [0xb, 3, 3]);
        // SAFETY: held since the beginning.
        unsafe { lock.unlock(&()) };
        assert_eq!((words(lock), UNPARKED.take()), ([8, 0, 0], Some((&raw const lock.writers, 1))));
    });
    // SAFETY: unlocked below.
    unsafe { lock.lock_shared(&()) };
    assert!(others_are_done() && events_of(LockEvent::RwsemSleepReader) == 1);
    // SAFETY: locked above.
    unsafe { lock.unlock_shared(&()) };
    assert_eq!(words(lock), [0, 0, 0]);
}

#[test]
fn the_last_reader_lets_the_writer_in() {
    let lock = lock_in([8, 0, 0]);
    meanwhile(|| {
        assert_eq!(words(lock), [0xa, 2, 1]);
        // SAFETY: one thread, which unlocks what it has locked; one share is held since the
        // beginning.
        unsafe {
            lock.lock_shared(&());
            assert_eq!(words(lock), [0x12, 2, 1]);
            lock.unlock_shared(&());
            lock.unlock_shared(&());
        }
        assert_eq!((words(lock), UNPARKED.take()), ([3, 1, 1], Some((&raw const lock.phase, u32::MAX))));
    });
    // SAFETY: unlocked below.
    unsafe { lock.lock(&()) };
    assert!(others_are_done() && events_of(LockEvent::RwsemSleepWriter) == 1);
    // SAFETY: locked above.
    unsafe { lock.unlock(&()) };
    assert_eq!(words(lock), [1, 1, 0]);
}

#[test]
fn a_reader_ends_the_write_phase_of_no_writer() {
    // Another reader has come, and has not done it yet.
    let lock = lock_in([9, 1, 0]);
    // SAFETY: unlocked below.
    unsafe { lock.lock_shared(&()) };
    assert_eq!(words(lock), [0x10, 0, 0]);
    lock.wait_as_reader();
    // SAFETY: locked above.
    unsafe { lock.unlock_shared(&()) };
    assert_eq!(words(lock), [8, 0, 0]);
}

/// The write phase is on, so no reader is in.
#[test]
fn a_writer_may_go_before_a_reader_that_has_not_ended_the_write_phase() {
    let lock = lock_in([9, 1, 0]);
    // SAFETY: unlocked below.
    unsafe {
        lock.lock(&());
        assert_eq!(words(lock), [0xb, 1, 1]);
        lock.unlock(&());
    }
    assert_eq!(words(lock), [8, 0, 0]);
}

/// The phase has changed, and the word of the phase has not yet.
#[test]
fn a_phase_is_written_after_the_one_before() {
    let lock = lock_in([0xa, 1, 1]);
    meanwhile(|| {
        assert_eq!(words(lock), [3, 1, 1]);
        lock.phase.store(READS, Relaxed);
    });
    // SAFETY: held since the beginning.
    unsafe { lock.unlock_shared(&()) };
    assert!(others_are_done() && words(lock) == [3, 1, 1]);
}

#[test]
fn a_writer_that_has_slept_wakes_another() {
    let lock = lock_in([3, 1, 1]);
    meanwhile(|| {
        assert_eq!(words(lock), [3, 1, 3]);
        // SAFETY: held since the beginning.
        unsafe { lock.unlock(&()) };
    });
    // SAFETY: unlocked below.
    unsafe {
        lock.lock(&());
        assert!(others_are_done() && words(lock) == [3, 1, 3]);
        lock.unlock(&());
    }
    assert_eq!((words(lock), UNPARKED.take()), ([1, 1, 0], Some((&raw const lock.writers, 1))));
}
