mod single;

use std::boxed::Box;
use std::cell::Cell;
use std::vec::Vec;

use super::*;
use crate::events::LockEvent;
use crate::freebsd::lock_chain;
use crate::freebsd::rw::{Rw, RwKind};
use crate::freebsd::sleepers::{is_awake, sleeper_at};
use crate::freebsd::sx::SxKind;
use crate::freebsd::tuning::{Current, Era2014, SpinnerBit};
use crate::native::Native;
use crate::schedule::Sections;
use crate::shared_holds::SharedHolds;
use crate::testing::{
    OTHER, OneThread, SPINS, THIRD, acting, events_of, me, meanwhile, others_are_done, set_owner_state,
};

const _: () = assert!(size_of::<Rw<Native>>() == 16);

pub type Lock<T, K> = RwSx<OneThread, T, K>;

pub fn leaked<T: Tuning, K: Kind>() -> &'static Lock<T, K> {
    Box::leak(Box::default())
}

impl<T: Tuning, K: Kind> Lock<T, K> {
    pub(in crate::freebsd) fn now(&self) -> u64 {
        self.word.load(Relaxed)
    }

    pub(in crate::freebsd) fn has(&self, bits: u64) -> bool {
        self.now() & bits == bits
    }

    pub(in crate::freebsd) fn write_as(&self, thread: ThreadId) {
        // SAFETY: tests unlock what they lock.
        acting(thread, || unsafe { self.lock(&()) });
    }

    pub(in crate::freebsd) fn unwrite_as(&self, thread: ThreadId) {
        // SAFETY: it writes.
        acting(thread, || unsafe { self.unlock(&()) });
    }

    pub(in crate::freebsd) fn read_as(&self, thread: ThreadId) {
        // SAFETY: as above.
        acting(thread, || unsafe { self.lock_shared(&()) });
    }

    pub(in crate::freebsd) fn unread_as(&self, thread: ThreadId) {
        // SAFETY: it reads.
        acting(thread, || unsafe { self.unlock_shared(&()) });
    }
}

fn sleeps() -> u64 {
    events_of(LockEvent::ChainSleep)
}

/// SPINNER as the last reader leaves it.
fn spinner_left<T: Tuning>() -> u64 {
    if T::spinner_bit() == SpinnerBit::Kept { SPINNER } else { 0 }
}

/// Whether writers that spin set SPINNER.
fn show_themselves<T: Tuning, K: Kind>() -> bool {
    K::precedence::<T>() == Precedence::Writers
}

fn is_taken_and_released<T: Tuning, K: Kind>() {
    let lock = Lock::<T, K>::new();
    // SAFETY: one thread, which unlocks what it locks; so below.
    unsafe {
        for _ in 0..2 {
            assert!(!lock.is_locked() && !lock.is_owned());
            lock.lock(&());
            assert_eq!(lock.now(), owned_by(me()));
            assert!(lock.is_locked() && lock.is_locked_exclusive() && lock.is_owned() && !lock.is_recursed());
            assert_eq!((lock.depth(), acting(OTHER, || lock.writer())), (0, Some(me())));
            assert!(!lock.try_lock(&()) && !lock.try_lock_shared(&()), "not recursive unless asked to");
            assert!(!acting(OTHER, || lock.try_lock(&()) || lock.is_owned()));
            lock.unlock(&());
            assert!(lock.try_lock(&()));
            lock.unlock(&());
            lock.lock_shared(&());
            assert!(lock.try_lock_shared(&()) && !lock.try_lock(&()));
            lock.lock_shared(&());
            assert_eq!(lock.now(), 3 * READER);
            assert!(lock.is_locked() && !lock.is_locked_exclusive() && lock.writer().is_none());
            assert_eq!(OneThread::with_shared_holds(K::HOLDS, Cell::get), 3);
            (0..3).for_each(|_| lock.unlock_shared(&()));
            assert_eq!((lock.now(), OneThread::with_shared_holds(K::HOLDS, Cell::get)), (FREE, 0));
        }
    }
}

fn is_downgraded_and_upgraded<T: Tuning, K: Kind>() {
    let lock = Lock::<T, K>::new();
    // SAFETY: as above.
    unsafe {
        lock.lock(&());
        lock.downgrade(&());
        assert_eq!((lock.now(), OneThread::with_shared_holds(K::HOLDS, Cell::get)), (READER, 1));
        lock.read_as(OTHER);
        assert!(!lock.try_upgrade(), "two read");
        assert_eq!((lock.now(), OneThread::with_shared_holds(K::HOLDS, Cell::get)), (2 * READER, 1));
        lock.unread_as(OTHER);
        lock.word.fetch_or(WAITERS | SPINNER, Relaxed);
        assert!(lock.try_upgrade());
        assert_eq!(lock.now(), owned_by(me()) | WAITERS, "waiters stay");
        assert_eq!(OneThread::with_shared_holds(K::HOLDS, Cell::get), 0);
        assert!(!lock.try_upgrade(), "no thread reads");
        lock.word.fetch_and(!WAITERS, Relaxed);
        lock.unlock(&());
    }
    assert_eq!(lock.now(), FREE);
}

fn is_written_recursively<T: Tuning, K: Kind>() {
    let lock = Lock::<T, K>::new();
    // SAFETY: one thread, and as many unlocks as locks.
    unsafe {
        lock.lock_recursive();
        lock.lock_recursive();
        assert!(lock.try_lock_recursive() && lock.is_recursed());
        assert_eq!((lock.now(), lock.depth()), (owned_by(me()) | RECURSED, 2));
        assert_eq!(lock.writer(), Some(me()));
        lock.word.fetch_or(READ_WAITERS, Relaxed);
        lock.unlock(&());
        assert_eq!((lock.now(), lock.depth.get()), (owned_by(me()) | RECURSED | READ_WAITERS, 1));
        lock.unlock(&());
        assert_eq!((lock.now(), lock.depth.get()), (owned_by(me()) | READ_WAITERS, 0));
        lock.unlock(&());
        assert!(lock.now() == FREE && lock.try_lock_recursive());
        lock.unlock(&());
    }
}

/// A running writer unlocks while others spin.
fn is_spun_for<T: Tuning, K: Kind>() {
    let lock = leaked::<T, K>();
    let before = sleeps();
    lock.write_as(OTHER);
    meanwhile(|| lock.unwrite_as(OTHER));
    lock.write_as(THIRD);
    meanwhile(|| lock.unwrite_as(THIRD));
    lock.read_as(OTHER);
    assert_eq!((lock.now(), sleeps()), (READER, before));
    assert!(others_are_done());
    lock.unread_as(OTHER);
}

/// A writer sleeps, and so do the waiters.
fn is_slept_for<T: Tuning, K: Kind>() {
    let lock = leaked::<T, K>();
    let before = sleeps();
    set_owner_state(OTHER, OwnerState::Asleep);
    lock.write_as(OTHER);
    // SAFETY: as many unlocks as locks.
    acting(OTHER, || unsafe { lock.lock_recursive() });
    meanwhile(|| {
        assert_eq!(lock.now(), owned_by(OTHER) | RECURSED | WRITE_WAITERS);
        lock.unwrite_as(OTHER);
        lock.unwrite_as(OTHER);
        assert_eq!(lock.now(), FREE);
    });
    lock.write_as(THIRD);
    assert_eq!((lock.now(), sleeps()), (owned_by(THIRD), before + 1));
    lock.unwrite_as(THIRD);
    lock.write_as(OTHER);
    meanwhile(|| {
        assert_eq!(lock.now(), owned_by(OTHER) | READ_WAITERS);
        lock.unwrite_as(OTHER);
    });
    lock.read_as(THIRD);
    assert_eq!((lock.now(), sleeps()), (READER, before + 2));
    lock.unread_as(THIRD);
    set_owner_state(OTHER, OwnerState::Running);
    assert!(others_are_done());
}

/// A writer spins until the last reader has unlocked.
fn waits_for_readers_awake<T: Tuning, K: Kind>() {
    let lock = leaked::<T, K>();
    let before = sleeps();
    lock.read_as(OTHER);
    lock.read_as(OTHER);
    let (spinner, depth) = if show_themselves::<T, K>() { (SPINNER, 1) } else { (0, 0) };
    meanwhile(move || {
        assert_eq!((lock.now(), OneThread::section_depth()), ((2 * READER) | spinner, depth));
        lock.unread_as(OTHER);
        assert_eq!(lock.now(), READER | spinner);
    });
    meanwhile(move || {
        lock.unread_as(OTHER);
        assert_eq!(lock.now(), spinner & spinner_left::<T>());
    });
    lock.write_as(THIRD);
    assert_eq!((lock.now(), sleeps(), OneThread::section_depth()), (owned_by(THIRD), before, 0));
    assert!(others_are_done());
    lock.unwrite_as(THIRD);
}

/// A writer has spun for readers for long enough, and sleeps.
fn waits_for_readers_asleep<T: Tuning, K: Kind>() {
    let lock = leaked::<T, K>();
    let before = sleeps();
    lock.read_as(OTHER);
    (0..SPINS).for_each(|_| meanwhile(|| ()));
    meanwhile(|| {
        assert_eq!((lock.now(), OneThread::section_depth()), (READER | WRITE_WAITERS, 0));
        lock.unread_as(OTHER);
        assert_eq!(lock.now(), FREE);
    });
    lock.write_as(THIRD);
    assert_eq!((lock.now(), sleeps()), (owned_by(THIRD), before + 1));
    assert!(others_are_done());
    lock.unwrite_as(THIRD);
}

/// The effect of an unlock with these bits and these sleepers ([`sleeper_at`]): which of them are
/// awake, and the word that is left.
fn released<T: Tuning, K: Kind>(
    holder: u64,
    bits: u64,
    queues: &[Queue],
    release: fn(&Lock<T, K>),
) -> (Vec<bool>, u64) {
    let lock = leaked::<T, K>();
    let sleepers: Vec<_> = queues.iter().map(|queue| sleeper_at(lock, *queue)).collect();
    lock.word.store(holder | bits, Relaxed);
    OneThread::with_shared_holds(K::HOLDS, |holds| holds.set(u64::min(readers_of(holder), 1) as u32));
    release(lock);
    OneThread::with_shared_holds(K::HOLDS, |holds| holds.set(0));
    let woken = sleepers.iter().map(|sleeper| is_awake(sleeper)).collect();
    lock_chain::<OneThread, _>(lock).wake_all(Queue::Exclusive);
    lock_chain::<OneThread, _>(lock).wake_all(Queue::Shared);
    (woken, lock.now())
}

fn write_release<T: Tuning, K: Kind>(lock: &Lock<T, K>) {
    // SAFETY: the word says that this thread writes; so below.
    unsafe { lock.unlock(&()) };
}

fn read_release<T: Tuning, K: Kind>(lock: &Lock<T, K>) {
    // SAFETY: as above.
    unsafe { lock.unlock_shared(&()) };
}

const BOTH: &[Queue] = &[Queue::Exclusive, Queue::Shared, Queue::Exclusive];

/// An unlock wakes all of one queue, and leaves the bit of the other.
fn wakes_one_queue<T: Tuning, K: Kind>() {
    let writer = owned_by(me());
    let (woken, left) = match K::precedence::<T>() {
        Precedence::Writers => ([true, false, true], READ_WAITERS),
        Precedence::Readers => ([false, true, false], WRITE_WAITERS),
    };
    let expected = (Vec::from(woken), left);
    assert_eq!(released::<T, K>(writer, WAITERS, BOTH, write_release), expected);
    assert_eq!(released::<T, K>(READER, WAITERS, BOTH, read_release), expected);
    let spinner = spinner_left::<T>();
    assert_eq!(
        released::<T, K>(READER, WAITERS | SPINNER, BOTH, read_release),
        (Vec::from(woken), left | spinner)
    );
    for (bit, queue) in [(WRITE_WAITERS, Queue::Exclusive), (READ_WAITERS, Queue::Shared)] {
        assert_eq!(released::<T, K>(writer, bit, &[queue], write_release), (Vec::from([true]), FREE));
        assert_eq!(released::<T, K>(READER, bit, &[queue], read_release), (Vec::from([true]), FREE));
    }
    assert_eq!(
        released::<T, K>(2 * READER, WAITERS, BOTH, read_release),
        (Vec::from([false; 3]), READER | WAITERS),
        "the last one will"
    );
    assert_eq!(released::<T, K>(READER, SPINNER, &[], read_release), (Vec::new(), spinner));
}

/// A downgrade lets readers in, if no writer waits or the kind of the lock permits that.
fn is_downgraded_with_waiters<T: Tuning, K: Kind>() {
    fn downgrade<T: Tuning, K: Kind>(lock: &Lock<T, K>) {
        // SAFETY: as above.
        unsafe { lock.downgrade(&()) };
    }
    let of = |bits, queues| released::<T, K>(owned_by(me()), bits, queues, downgrade);
    let minds = K::precedence::<T>() == Precedence::Writers && !K::DOWNGRADE_WAKES_READERS;
    let left = READER | if minds { WAITERS } else { WRITE_WAITERS };
    assert_eq!(of(WAITERS, BOTH), (Vec::from([false, !minds, false]), left));
    assert_eq!(of(READ_WAITERS, &[Queue::Shared]), (Vec::from([true]), READER));
    assert_eq!(of(WRITE_WAITERS, &[Queue::Exclusive]), (Vec::from([false]), READER | WRITE_WAITERS));
}

/// Waiter bits on a free word.
fn is_free_with_waiters<T: Tuning, K: Kind>() {
    let lock = leaked::<T, K>();
    let bits = if show_themselves::<T, K>() { READ_WAITERS } else { WRITE_WAITERS };
    lock.word.store(bits, Relaxed);
    assert!(!lock.is_locked());
    // SAFETY: one thread, which unlocks what it locks.
    unsafe {
        assert!(!lock.try_lock(&()), "only under the chain's lock");
        assert!(lock.try_lock_shared(&()));
        lock.lock_shared(&());
        assert_eq!(lock.now(), (2 * READER) | bits);
        lock.unlock_shared(&());
        lock.unlock_shared(&());
        assert_eq!(lock.now(), FREE);
        for left in [bits, bits | SPINNER] {
            lock.word.store(left, Relaxed);
            lock.lock(&());
            assert_eq!(lock.now(), owned_by(me()) | bits);
            lock.unlock(&());
        }
        lock.word.store(SPINNER, Relaxed);
        lock.lock(&());
        assert_eq!(lock.now(), owned_by(me()), "any writer may take it");
        lock.unlock(&());
    }
    assert_eq!(lock.now(), FREE);
}

/// A thread that reads already does not wait behind waiting writers, here or at another lock of the
/// kind.
fn readers_that_read_go_ahead<T: Tuning, K: Kind>() {
    let (lock, another) = (leaked::<T, K>(), leaked::<T, K>());
    let before = sleeps();
    lock.read_as(OTHER);
    another.read_as(THIRD);
    lock.word.fetch_or(WRITE_WAITERS | SPINNER, Relaxed);
    lock.read_as(OTHER);
    lock.read_as(THIRD);
    assert_eq!((lock.now(), sleeps()), ((3 * READER) | WRITE_WAITERS | SPINNER, before));
    if show_themselves::<T, K>() {
        (0..SPINS).for_each(|_| meanwhile(|| ()));
        meanwhile(|| {
            assert!(lock.has(READ_WAITERS), "others do");
            lock.word.fetch_and(!(WAITERS | SPINNER), Relaxed);
            lock_chain::<OneThread, _>(lock).wake_all(Queue::Shared);
        });
    }
    // SAFETY: one thread, which unlocks what it locks.
    unsafe { lock.lock_shared(&()) };
    assert_eq!((lock.now() / READER, others_are_done()), (4, true));
    lock.word.fetch_and(!(WAITERS | SPINNER), Relaxed);
    another.unread_as(THIRD);
    [OTHER, OTHER, THIRD, me()].into_iter().for_each(|reader| lock.unread_as(reader));
    assert_eq!((lock.now(), another.now()), (FREE, FREE));
}

macro_rules! in_all_forms {
    ($($test:ident)*) => {
        mod in_all_forms {
            use super::*;
            $(#[test]
            fn $test() {
                fn of<T: Tuning>() {
                    super::$test::<T, RwKind>();
                    super::$test::<T, SxKind>();
                }
                each_preset!(of);
            })*
        }
    };
}
in_all_forms!(
    is_taken_and_released
    is_downgraded_and_upgraded
    is_written_recursively
    is_spun_for
    is_slept_for
    waits_for_readers_awake
    waits_for_readers_asleep
    wakes_one_queue
    is_downgraded_with_waiters
    is_free_with_waiters
    readers_that_read_go_ahead
);
