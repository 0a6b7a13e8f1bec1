use std::boxed::Box;

use super::*;
use crate::freebsd::tuning::Era2014;
use crate::native::Native;
use crate::schedule::{Schedule, Sections};
use crate::testing::{
    OTHER, OneThread, acting, before_exchange, exchanges_are_over, meanwhile, mistake, others_are_done,
};

const _: () = assert!(size_of::<ThreadLock<Native>>() == 8 + size_of::<usize>());

type Lock<T = Standard> = ThreadLock<OneThread, T>;
type Mutex<T = Standard> = SpinMtx<OneThread, T>;

fn leaked<L: Default>() -> &'static L {
    Box::leak(Box::default())
}

#[test]
fn locks_and_unlocks_where_it_is() {
    let (lock, place) = (Lock::<Standard>::new(), Mutex::<Standard>::new());
    let is_locked = || [lock.is_locked(), lock.home.is_locked(), place.is_locked()];
    // SAFETY: one thread, which holds what it moves and unlocks, and the mutex lives longer.
    unsafe {
        lock.lock(&());
        assert_eq!((is_locked(), OneThread::section_depth()), ([true, true, false], 1));
        assert!(!lock.try_lock(&()));
        place.lock(&());
        lock.move_to(&place);
        assert_eq!((is_locked(), OneThread::section_depth()), ([true, false, true], 1));
        lock.unlock(&());
        assert!(lock.try_lock(&()));
        assert_eq!(is_locked(), [true, false, true]);
        lock.begin_move().unlock(&());
        assert_eq!((is_locked(), OneThread::section_depth()), ([true, false, false], 0));
        assert!(!lock.try_lock(&()), "no thread can while it is moved");
        lock.finish_move(None);
        assert_eq!(is_locked(), [false; 3]);
        lock.lock(&());
        assert_eq!(is_locked(), [true, true, false], "its mutex is `home` again");
        lock.unlock(&());
    }
    assert_eq!(OneThread::section_depth(), 0);
}

/// A thread waits for the lock while another moves it.
fn waits<T: Tuning>() {
    let (lock, place) = (leaked::<Lock<T>>(), leaked::<Mutex<T>>());
    // SAFETY: the other thread holds what it moves and unlocks; the mutexes live for ever.
    unsafe {
        acting(OTHER, || lock.lock(&()));
        // The section of the other thread.
        OneThread::leave_section();
        // Neither unlocked nor moved at the waiter's first look.
        meanwhile(|| ());
        meanwhile(|| {
            assert_eq!(OneThread::section_depth(), 0, "a waiter is in no section");
            OneThread::enter_section();
            acting(OTHER, || {
                place.lock(&());
                lock.move_to(place);
            });
            OneThread::leave_section();
        });
        meanwhile(|| {
            OneThread::enter_section();
            acting(OTHER, || lock.begin_move().unlock(&()));
        });
        meanwhile(|| lock.finish_move(None));
        lock.lock(&());
    }
    assert!(others_are_done());
    assert_eq!((lock.home.is_owned(), place.is_locked()), (true, false));
    assert_eq!(OneThread::section_depth(), 1);
    // SAFETY: locked above.
    unsafe { lock.unlock(&()) };
    assert!(!lock.home.is_locked());
    assert_eq!(OneThread::thread_id(), ThreadId::new(1).unwrap());
}

#[test]
fn a_waiter_follows_the_lock() {
    waits::<Standard>();
    waits::<Era2014>();
}

#[test]
fn a_waiter_that_gets_a_mutex_that_the_lock_has_left_unlocks_it_and_tries_the_next() {
    let (lock, place) = (leaked::<Lock>(), leaked::<Mutex>());
    before_exchange(|| {
        // SAFETY: the other thread holds what it moves and unlocks; the mutexes live for ever.
        acting(OTHER, || unsafe {
            lock.lock(&());
            place.lock(&());
            lock.move_to(place);
            lock.unlock(&());
        });
    });
    // SAFETY: one thread, and unlock follows lock.
    assert!(unsafe { lock.try_lock(&()) } && exchanges_are_over());
    assert_eq!((lock.home.is_locked(), place.is_owned(), OneThread::section_depth()), (false, true, 1));
    // SAFETY: as above.
    unsafe { lock.unlock(&()) };
}

#[test]
fn moves_that_are_mistakes_are_found() {
    mistake("finishes a move that has not begun", || {
        let lock = Lock::<Standard>::new();
        // SAFETY: none is needed: it panics at once.
        unsafe { lock.finish_move(None) };
    });
    mistake("a lock that is being moved has no mutex", || {
        let lock = Lock::<Standard>::new();
        // SAFETY: one thread; the last is the mistake.
        unsafe {
            lock.lock(&());
            lock.begin_move().unlock(&());
            lock.unlock(&());
        }
    });
}
