//! Tests of the present lock alone, or of one switch.

use super::*;
use crate::freebsd::lock_chain;
use crate::freebsd::mtx::InUse;
use crate::freebsd::tuning::Fcmpset2017;
use crate::settings::Setting;
use crate::testing::{PAUSES, before_exchange, exchange_fails, exchanges_are_over, mistake, set};

#[test]
fn a_reader_does_not_wait_for_a_spinner_for_ever() {
    let lock = leaked::<Current, RwKind>();
    let before = sleeps();
    // The bit of a writer that has lost its processor.
    lock.word.store(SPINNER, Relaxed);
    PAUSES.take();
    // Other threads act while the reader spins, and when it yields its processor.
    (0..=SPINS).for_each(|_| meanwhile(|| ()));
    meanwhile(|| {
        assert_eq!(lock.now(), SPINNER | READ_WAITERS);
        lock.write_as(OTHER);
        assert_eq!(lock.now(), owned_by(OTHER) | READ_WAITERS);
        lock.unwrite_as(OTHER);
    });
    lock.read_as(THIRD);
    assert_eq!((lock.now(), sleeps()), (READER, before + 1));
    assert!(others_are_done());
    assert_eq!(PAUSES.take(), [2; SPINS as usize]);
    lock.unread_as(THIRD);
}

/// The pauses of a writer for three readers, which stay until it would sleep, and then unlock.
fn pauses_for_readers<T: Tuning>(loops: u64, retries: u64) -> Vec<u32> {
    let lock = leaked::<T, RwKind>();
    set(Setting::FreebsdDelayLoops, loops);
    set(Setting::FreebsdDelayRetries, retries);
    PAUSES.take();
    (0..3).for_each(|_| lock.read_as(OTHER));
    let mut state = SpinState::fresh::<T>();
    while state.tries < retries as u32 && !state.is_tired {
        assert_eq!(lock.spin_for_readers(lock.now(), &mut state, is_free), None);
    }
    (0..3).for_each(|_| lock.unread_as(OTHER));
    PAUSES.take()
}

#[test]
fn spinning_for_readers_is_as_long_as_the_switches_and_settings_say() {
    assert_eq!(pauses_for_readers::<Current>(6, 1), [3, 3]);
    assert_eq!(pauses_for_readers::<Current>(7, 1), [3, 3, 3]);
    assert_eq!(pauses_for_readers::<Current>(3, 2), [3, 3]);
    assert_eq!(pauses_for_readers::<Current>(2, 1), [2], "no longer than that");
    assert_eq!(pauses_for_readers::<Current>(0, 10), [3; SPINS as usize], "it has spun long enough");
    assert_eq!(pauses_for_readers::<Era2014>(3, 1), [1, 1, 1]);
}

#[test]
fn without_retries_readers_are_not_spun_for() {
    let lock = leaked::<Current, RwKind>();
    set(Setting::FreebsdDelayRetries, 0);
    PAUSES.take();
    lock.read_as(OTHER);
    meanwhile(|| {
        assert_eq!(lock.now(), READER | WRITE_WAITERS);
        lock.unread_as(OTHER);
    });
    lock.write_as(THIRD);
    assert_eq!(PAUSES.take(), []);
    lock.unwrite_as(THIRD);
}

/// The pauses of a writer that has slept once, while readers come again and again.
fn tries_after_sleep<K: Kind>() -> Vec<u32> {
    let lock = leaked::<Current, K>();
    set(Setting::FreebsdDelayLoops, 1);
    set(Setting::FreebsdDelayRetries, 1);
    PAUSES.take();
    lock.read_as(OTHER);
    meanwhile(|| assert!(lock.has(SPINNER), "spins once"));
    meanwhile(|| {
        lock.unread_as(OTHER);
        lock.read_as(OTHER);
    });
    if K::SLEEP_REFRESHES_WRITERS {
        meanwhile(|| assert!(lock.has(SPINNER), "and once again"));
    }
    meanwhile(|| {
        assert!(lock.has(WRITE_WAITERS));
        lock.unread_as(OTHER);
    });
    lock.write_as(THIRD);
    lock.unwrite_as(THIRD);
    assert!(others_are_done());
    PAUSES.take()
}

#[test]
fn a_writer_that_has_slept_spins_for_readers_as_its_kind_does() {
    assert_eq!(tries_after_sleep::<RwKind>(), [1, 1]);
    assert_eq!(tries_after_sleep::<SxKind>(), [1]);
}

#[test]
fn a_writer_whose_spinner_bit_is_gone_sets_it_again() {
    let lock = leaked::<Current, RwKind>();
    lock.read_as(OTHER);
    meanwhile(|| {
        lock.unread_as(OTHER);
        lock.write_as(OTHER);
        // SAFETY: it writes.
        acting(OTHER, || unsafe { lock.downgrade(&()) });
        assert_eq!((lock.now(), OneThread::section_depth()), (READER, 1), "taken by another writer");
    });
    meanwhile(|| {
        assert_eq!((lock.now(), OneThread::section_depth()), (READER | SPINNER, 1));
        lock.unread_as(OTHER);
    });
    lock.write_as(THIRD);
    assert_eq!((lock.now(), OneThread::section_depth()), (owned_by(THIRD), 0));
    lock.unwrite_as(THIRD);
}

/// A reader that a writer's bit keeps out: how long it pauses, and how often it sleeps.
fn reader_behind_a_writer<K: Kind>(meanwhile: impl FnOnce(&'static Lock<Current, K>)) -> (Vec<u32>, u64) {
    let (lock, before) = (leaked::<Current, K>(), sleeps());
    set(Setting::FreebsdDelayLoops, 1);
    set(Setting::FreebsdDelayRetries, 1);
    PAUSES.take();
    lock.read_as(OTHER);
    lock.word.fetch_or(WRITE_WAITERS, Relaxed);
    meanwhile(lock);
    lock.read_as(THIRD);
    assert_eq!((lock.now(), others_are_done()), (2 * READER, true));
    [OTHER, THIRD].into_iter().for_each(|reader| lock.unread_as(reader));
    (PAUSES.take(), sleeps() - before)
}

/// Clears the bit that keeps readers out, and wakes them.
fn admit<K: Kind>(lock: &Lock<Current, K>) {
    lock.word.fetch_and(!WAITERS, Relaxed);
    lock_chain::<OneThread, _>(lock).wake_all(Queue::Shared);
}

#[test]
fn a_reader_goes_in_as_soon_as_it_may() {
    fn of<K: Kind>() {
        assert_eq!(reader_behind_a_writer::<K>(|lock| meanwhile(|| admit(lock))), (Vec::from([1]), 0));
    }
    of::<RwKind>();
    of::<SxKind>();
}

/// The kernel's sx does not count a reader's rounds, so its reader would go on.
#[test]
fn a_reader_spins_for_readers_as_often_as_it_is_told() {
    fn of<K: Kind>() {
        let spent = reader_behind_a_writer::<K>(|lock| {
            // The reader unlocks, and another one locks.
            meanwhile(|| lock.word.store(SPINNER, Relaxed));
            meanwhile(|| lock.word.store(READER | WRITE_WAITERS, Relaxed));
            meanwhile(|| {
                assert_eq!(lock.now(), READER | WAITERS);
                admit(lock);
            });
        });
        assert_eq!(spent, (Vec::from([1, 2]), 1));
    }
    of::<RwKind>();
    of::<SxKind>();
}

#[test]
fn a_writer_leaves_its_section_when_another_takes_the_lock() {
    let lock = leaked::<Current, RwKind>();
    lock.read_as(OTHER);
    meanwhile(|| {
        assert_eq!((lock.now(), OneThread::section_depth()), (READER | SPINNER, 1));
        lock.unread_as(OTHER);
        lock.write_as(OTHER);
        assert_eq!(lock.now(), owned_by(OTHER), "any writer may");
    });
    meanwhile(|| {
        assert_eq!(OneThread::section_depth(), 0);
        lock.unwrite_as(OTHER);
    });
    lock.write_as(THIRD);
    assert_eq!((lock.now(), OneThread::section_depth()), (owned_by(THIRD), 0));
    assert!(others_are_done());
    lock.unwrite_as(THIRD);
}

/// A writer that sleeps becomes a reader while another writer is at the chain. Returns how often
/// the latter leaves the chain without a sleep, and how often it sleeps.
fn readers_instead_of_a_writer<K: Kind>(retries: u64) -> [u64; 2] {
    const EVENTS: [LockEvent; 2] = [LockEvent::ChainCancel, LockEvent::ChainSleep];
    let (lock, before) = (leaked::<Current, K>(), EVENTS.map(events_of));
    set(Setting::FreebsdDelayRetries, retries);
    set_owner_state(OTHER, OwnerState::Asleep);
    lock.write_as(OTHER);
    let chain = lock_chain::<OneThread, _>(lock);
    meanwhile(move || {
        // SAFETY: it writes.
        acting(OTHER, || unsafe { lock.downgrade(&()) });
        drop(chain);
    });
    let bit = if retries > 0 { SPINNER } else { WRITE_WAITERS };
    meanwhile(move || {
        assert_eq!(lock.now(), READER | bit);
        lock.unread_as(OTHER);
    });
    lock.write_as(THIRD);
    set_owner_state(OTHER, OwnerState::Running);
    assert_eq!((lock.now(), others_are_done()), (owned_by(THIRD), true));
    lock.unwrite_as(THIRD);
    let after = EVENTS.map(events_of);
    [after[0] - before[0], after[1] - before[1]]
}

/// FreeBSD's r330414. Before, a writer whose tries were spent at that moment believed that it
/// waited for a writer, and went to the chain again and again.
#[test]
fn a_writer_knows_which_holders_it_has_not_spun_for_yet() {
    fn of<K: Kind>() {
        assert_eq!(readers_instead_of_a_writer::<K>(10), [1, 0], "it spins for readers");
        assert_eq!(readers_instead_of_a_writer::<K>(0), [1, 1], "it must not, and sleeps");
    }
    of::<RwKind>();
    of::<SxKind>();
}

#[test]
fn a_lock_in_use_is_not_destroyed() {
    in_use_is_not_destroyed::<RwKind>();
    in_use_is_not_destroyed::<SxKind>();
}

fn in_use_is_not_destroyed<K: Kind>() {
    let lock = leaked::<Current, K>();
    lock.read_as(OTHER);
    assert_eq!(lock.destroy(), Err(InUse::Held));
    lock.word.fetch_or(WRITE_WAITERS, Relaxed);
    assert_eq!(lock.destroy(), Err(InUse::Contested));
    lock.unread_as(OTHER);
    lock.word.store(READ_WAITERS, Relaxed);
    assert_eq!(lock.destroy(), Err(InUse::Contested));
    lock.word.store(FREE, Relaxed);
    // SAFETY: one thread, and as many unlocks as locks.
    unsafe {
        lock.lock(&());
        assert_eq!(lock.destroy(), Err(InUse::Held));
        lock.lock_recursive();
        assert_eq!(lock.destroy(), Err(InUse::Recursed));
        lock.unlock(&());
        lock.unlock(&());
    }
    assert_eq!((lock.destroy(), lock.now()), (Ok(()), DESTROYED));
    assert_eq!((lock.destroy(), lock.is_locked()), (Err(InUse::Destroyed), false));
}

#[test]
fn an_exchange_that_fails_for_no_reason_is_tried_again() {
    fn of<K: Kind>() {
        let lock = leaked::<Current, K>();
        // SAFETY: one thread, which unlocks what it locks.
        unsafe {
            exchange_fails();
            assert!(lock.try_lock(&()));
            exchange_fails();
            lock.downgrade(&());
            assert_eq!(lock.now(), READER);
            exchange_fails();
            assert!(lock.try_upgrade());
            assert_eq!(lock.now(), owned_by(me()));
            exchange_fails();
            lock.unlock(&());
        }
        assert_eq!((lock.now(), exchanges_are_over()), (FREE, true));
    }
    of::<RwKind>();
    of::<SxKind>();
}

#[test]
fn a_release_that_fails_for_no_reason_wakes_a_waiter_that_comes_then() {
    fn of<K: Kind>(release: fn(&Lock<Current, K>), left: u64) {
        let lock = leaked::<Current, K>();
        lock.write_as(me());
        let sleeper = sleeper_at(lock, Queue::Shared);
        exchange_fails();
        before_exchange(|| {
            lock.word.fetch_or(READ_WAITERS, Relaxed);
        });
        release(lock);
        assert_eq!((lock.now(), is_awake(sleeper), exchanges_are_over()), (left, true, true));
    }
    fn downgrade<K: Kind>(lock: &Lock<Current, K>) {
        // SAFETY: the thread writes.
        unsafe { lock.downgrade(&()) };
        lock.read_as(OTHER);
        lock.unread_as(me());
    }
    of::<RwKind>(write_release, FREE);
    of::<SxKind>(write_release, FREE);
    of::<RwKind>(downgrade, READER);
    of::<SxKind>(downgrade, READER);
}

#[test]
fn a_writer_that_fails_to_set_its_bit_goes_on_as_the_switch_says() {
    /// Whether the writer leaves the chain, and how often it sleeps.
    fn of<T: Tuning>() -> (bool, u64) {
        const EVENTS: [LockEvent; 2] = [LockEvent::ChainCancel, LockEvent::ChainSleep];
        let (lock, before) = (leaked::<T, RwKind>(), EVENTS.map(events_of));
        set_owner_state(OTHER, OwnerState::Asleep);
        lock.write_as(OTHER);
        // The exchanges of its first attempt, and of the chain's lock.
        (0..2).for_each(|_| before_exchange(|| ()));
        // SAFETY: as many unlocks as locks.
        before_exchange(|| acting(OTHER, || unsafe { lock.lock_recursive() }));
        meanwhile(|| (0..2).for_each(|_| lock.unwrite_as(OTHER)));
        lock.write_as(THIRD);
        set_owner_state(OTHER, OwnerState::Running);
        assert_eq!((lock.now(), exchanges_are_over(), others_are_done()), (owned_by(THIRD), true, true));
        lock.unwrite_as(THIRD);
        let after = EVENTS.map(events_of);
        (after[0] > before[0], after[1] - before[1])
    }
    assert_eq!(of::<Current>(), (false, 1), "it looks again, and keeps the chain");
    assert_eq!(of::<Fcmpset2017>(), (true, 0), "it starts again");
}

#[test]
fn a_writer_spins_for_a_reader_that_comes_before_it() {
    fn of<K: Kind>(bits: u64, exchanges: usize) {
        let (lock, before) = (leaked::<Current, K>(), sleeps());
        lock.word.store(bits, Relaxed);
        (0..exchanges).for_each(|_| before_exchange(|| ()));
        before_exchange(|| {
            lock.word.fetch_add(READER, Relaxed);
        });
        meanwhile(move || {
            assert_eq!((lock.now(), OneThread::section_depth()), ((bits + READER) | SPINNER, 1));
            lock.word.store(FREE, Relaxed);
        });
        lock.write_as(THIRD);
        assert_eq!((lock.now(), OneThread::section_depth(), sleeps()), (owned_by(THIRD), 0, before));
        assert!(exchanges_are_over() && others_are_done());
        lock.unwrite_as(THIRD);
    }
    // After its first attempt, the writer is about to set SPINNER.
    of::<RwKind>(READER, 1);
    of::<SxKind>(READER, 1);
    // After its first attempt, the writer has locked the chain, and is about to take the lock.
    of::<RwKind>(READ_WAITERS, 2);
    of::<SxKind>(READ_WAITERS, 2);
}

#[test]
fn readers_that_come_at_the_same_time_are_both_counted() {
    fn of<T: Tuning>() {
        let lock = leaked::<T, RwKind>();
        before_exchange(|| lock.read_as(OTHER));
        lock.read_as(THIRD);
        assert_eq!(lock.now(), 2 * READER);
        [OTHER, THIRD].into_iter().for_each(|reader| lock.unread_as(reader));
        assert_eq!(lock.now(), FREE);
    }
    of::<Current>();
    of::<Era2014>();
}

#[test]
fn a_thread_that_has_spun_for_a_writer_for_long_enough_sleeps_though_it_runs() {
    fn of(wait: fn(&Lock<Current, RwKind>)) {
        let (lock, before) = (leaked::<Current, RwKind>(), sleeps());
        lock.write_as(OTHER);
        // The looks of the waiter.
        (0..=SPINS).for_each(|_| meanwhile(|| ()));
        meanwhile(|| {
            assert!(lock.now() & WAITERS != 0);
            lock.unwrite_as(OTHER);
        });
        wait(lock);
        assert_eq!((sleeps(), others_are_done()), (before + 1, true));
    }
    of(|lock| lock.write_as(THIRD));
    of(|lock| lock.read_as(THIRD));
}

#[test]
fn a_reader_that_another_one_joins_first_is_not_upgraded() {
    fn of<K: Kind>() {
        let lock = leaked::<Current, K>();
        lock.read_as(me());
        before_exchange(|| lock.read_as(OTHER));
        // SAFETY: the thread reads, once.
        assert!(!unsafe { lock.try_upgrade() });
        assert_eq!((lock.now(), OneThread::with_shared_holds(K::HOLDS, Cell::get)), (2 * READER, 1));
        [OTHER, me()].into_iter().for_each(|reader| lock.unread_as(reader));
        assert_eq!(lock.now(), FREE);
    }
    of::<RwKind>();
    of::<SxKind>();
}

#[test]
fn mistakes_are_found() {
    mistakes_of::<RwKind>();
    mistakes_of::<SxKind>();
}

fn mistakes_of<K: Kind>() {
    let done = |says: &str, act: fn(&Lock<Current, K>)| mistake(says, || act(leaked()));
    done("writes a lock that it writes already", |lock| {
        lock.write_as(OTHER);
        lock.write_as(OTHER);
    });
    done("reads a lock that it writes", |lock| {
        lock.write_as(OTHER);
        lock.read_as(OTHER);
    });
    done("unlocks a lock that it does not write", |lock| {
        lock.write_as(OTHER);
        lock.unwrite_as(THIRD);
    });
    done("releases a share that it does not hold", |lock| {
        lock.read_as(OTHER);
        lock.unread_as(THIRD);
    });
    // SAFETY: it is the mistake that is tested.
    done("downgrades a lock that it has locked more than once", |lock| unsafe {
        lock.lock(&());
        lock.lock_recursive();
        lock.downgrade(&());
    });
    done("downgrades a lock that it does not write", |lock| {
        lock.write_as(OTHER);
        // SAFETY: as above.
        acting(THIRD, || unsafe { lock.downgrade(&()) });
    });
    done("has been destroyed", |lock| {
        assert_eq!(lock.destroy(), Ok(()));
        lock.write_as(OTHER);
    });
}
