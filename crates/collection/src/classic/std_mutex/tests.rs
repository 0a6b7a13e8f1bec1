use std::boxed::Box;

use super::*;
use crate::native::Native;
use crate::testing::{OneThread, UNPARKED, events_of, meanwhile, others_are_done};

const _: () = assert!(size_of::<StdMutex<Native>>() == 4);

fn word(mutex: &StdMutex<OneThread>) -> u32 {
    mutex.word.load(Relaxed)
}

#[test]
fn alone_it_makes_no_call() {
    let mutex = StdMutex::<OneThread>::new();
    // SAFETY: one thread, and unlock follows lock.
    unsafe {
        for tries in [false, true] {
            assert!(!tries || mutex.try_lock(&()));
            if !tries {
                mutex.lock(&());
            }
            assert!(word(&mutex) == HELD && mutex.is_locked() && !mutex.try_lock(&()));
            mutex.unlock(&());
        }
    }
    assert_eq!((word(&mutex), UNPARKED.get(), events_of(LockEvent::Slowpath)), (FREE, None, 0));
}

/// A mutex that is held, at first without sleepers, then with some. The waiter sleeps. It leaves
/// the word at 2 when it has locked the mutex, since others may sleep.
#[test]
fn a_thread_that_has_slept_wakes_another() {
    for (sleeps, found) in (1..).zip([HELD, CONTENDED]) {
        let mutex: &'static StdMutex<OneThread> = Box::leak(Box::default());
        mutex.word.store(found, Relaxed);
        for left in [HELD, FREE] {
            meanwhile(move || {
                assert_eq!(word(mutex), CONTENDED);
                // At first another thread is faster.
                mutex.word.store(left, Relaxed);
            });
        }
        // SAFETY: one thread; unlock follows lock.
        unsafe {
            mutex.lock(&());
            assert!(others_are_done() && word(mutex) == CONTENDED);
            mutex.unlock(&());
        }
        assert_eq!((word(mutex), UNPARKED.get()), (FREE, Some((&raw const mutex.word, 1))));
        assert_eq!((events_of(LockEvent::MutexSleep), events_of(LockEvent::MutexWake)), (2 * sleeps, sleeps));
    }
}
