use std::boxed::Box;

use super::mode::{BIASED, COUNTED_MODE, FENCED, MODE};
use super::reading::{PARKED, WAITING};
use super::*;
use crate::schedule::ThreadId;
use crate::testing::{
    HEAVIES, LIGHT_IS_FREE, LINES_LEFT, NOW_NS, OneThread, SLEEPS, THREAD_ID, UNPARKED, meanwhile,
    others_are_done,
};

type Lock = NearRwLock<OneThread>;

fn act_as(thread: u32) {
    THREAD_ID.set(ThreadId::new(thread).expect("not 0"));
}

fn read(lock: &Lock) -> bool {
    // SAFETY: the tests release what they have.
    unsafe { lock.try_lock_shared(&()) }
}

fn unread(lock: &Lock) {
    // SAFETY: the tests release what they have.
    unsafe { lock.unlock_shared(&()) };
}

fn write(lock: &Lock) -> bool {
    // SAFETY: the tests release what they have.
    unsafe { lock.try_lock(&()) }
}

fn unwrite(lock: &Lock) {
    // SAFETY: the tests release what they have.
    unsafe { lock.unlock(&()) };
}

fn mode(lock: &Lock) -> u32 {
    lock.mode.load(Relaxed) & MODE
}

/// A lock in this mode.
fn lock_in(wanted: u32) -> Lock {
    let lock = Lock::new();
    NOW_NS.set(1_000_000_000);
    LIGHT_IS_FREE.set(true);
    for _ in 0..10_000 {
        if mode(&lock) == wanted {
            return lock;
        }
        assert!(read(&lock));
        unread(&lock);
    }
    panic!("it stays in the mode {}", mode(&lock));
}

const MODES: [u32; 3] = [COUNTED_MODE, FENCED, BIASED];

const _: () = assert!(size_of::<NearRwLock<crate::native::Native>>() == 32);

/// A thread that holds the lock so waits for a writer that waits for readers.
#[test]
fn any_thread_may_release_a_counted_read_in_each_mode() {
    for wanted in MODES {
        let lock = lock_in(wanted);
        act_as(1);
        // SAFETY: released below; the same holds below.
        assert!(unsafe { lock.try_lock_shared_counted() && lock.try_lock_shared_counted() });
        act_as(2);
        assert!(read(&lock) && !write(&lock));
        // SAFETY: as above.
        unsafe { lock.unlock_shared_counted() };
        unread(&lock);
        assert!(!write(&lock) && lock.is_locked());
        // SAFETY: as above.
        unsafe { lock.unlock_shared_counted() };
        NearMutex::<OneThread>::renew_mark();
        assert!(!lock.is_locked() && write(&lock));
        assert!(lock.is_closed_by(THREAD_ID.get()));
        // SAFETY: as above.
        assert!(!unsafe { lock.try_lock_shared_counted() });
        // SAFETY: as above.
        unsafe { lock.downgrade_counted() };
        assert!(!lock.is_closed_by(THREAD_ID.get()));
        act_as(1);
        // SAFETY: as above.
        unsafe { lock.unlock_shared_counted() };
        assert!(write(&lock));
        unwrite(&lock);
    }
}

#[test]
fn readers_exclude_writers_and_not_each_other_in_each_mode() {
    for wanted in MODES {
        let lock = lock_in(wanted);
        act_as(1);
        assert!(read(&lock) && !write(&lock));
        act_as(2);
        assert!(read(&lock) && !write(&lock) && lock.is_locked() && !lock.is_locked_exclusive());
        unread(&lock);
        act_as(1);
        unread(&lock);
        assert!(!lock.is_locked() && write(&lock) && lock.is_locked_exclusive());
        act_as(2);
        assert!(!read(&lock) && !write(&lock));
        act_as(1);
        unwrite(&lock);
        assert!(read(&lock));
        unread(&lock);
    }
}

#[test]
fn a_failed_write_leaves_readers_visible() {
    for wanted in MODES {
        let lock = lock_in(wanted);
        act_as(1);
        assert!(read(&lock));
        act_as(2);
        // SAFETY: nothing is acquired.
        let outcome = unsafe { lock.lock_within(&(), &Limit::until(0)) };
        assert_eq!(outcome, Err(GaveUp::TimedOut));
        assert!(!write(&lock), "mode {wanted}");
        act_as(1);
        unread(&lock);
        assert!(write(&lock));
        unwrite(&lock);
    }
}

#[test]
fn a_thread_reads_again_while_a_writer_waits() {
    for wanted in MODES {
        let lock = lock_in(wanted);
        act_as(1);
        assert!(read(&lock));
        // A writer that has the mutex, and waits for the reader.
        assert!(lock.mutex.take());
        assert!(read(&lock) && read(&lock));
        (0..3).for_each(|_| unread(&lock));
        assert!(!read(&lock) && !lock.has_readers());
        // SAFETY: taken above.
        unsafe { lock.release() };
    }
}

#[test]
fn a_writer_of_a_lock_without_bias_passes_no_heavy_fence() {
    for (wanted, heavies) in [(COUNTED_MODE, 0), (FENCED, 0), (BIASED, 1)] {
        let lock = lock_in(wanted);
        let before = HEAVIES.get();
        assert!(write(&lock));
        unwrite(&lock);
        assert_eq!(HEAVIES.get() - before, heavies, "mode {wanted}");
    }
}

#[test]
fn a_thread_without_a_line_is_counted() {
    LINES_LEFT.set(false);
    act_as(77);
    let lock = Lock::new();
    assert!(read(&lock) && read(&lock));
    act_as(1);
    assert!(!write(&lock));
    act_as(77);
    unread(&lock);
    assert!(!write(&lock));
    unread(&lock);
    assert!(write(&lock));
    LINES_LEFT.set(true);
}

#[test]
fn more_locks_than_slots_are_held_at_a_time() {
    act_as(3);
    let locks: [Lock; 20] = core::array::from_fn(|index| lock_in(MODES[index % 3]));
    assert!(locks.iter().all(read));
    act_as(4);
    assert!(!locks.iter().any(write));
    act_as(3);
    locks.iter().for_each(unread);
    assert!(locks.iter().all(write));
}

#[test]
fn an_upgradable_reader_lets_readers_in_and_no_writer() {
    for wanted in MODES {
        let lock = lock_in(wanted);
        act_as(1);
        // SAFETY: released below.
        unsafe {
            assert!(lock.try_lock_upgradable() && lock.is_locked() && !lock.is_locked_exclusive());
            act_as(2);
            assert!(!lock.try_lock_upgradable() && !write(&lock) && read(&lock));
            act_as(1);
            assert_eq!(lock.upgrade_within(&Limit::until(0)), Err(GaveUp::TimedOut));
            act_as(2);
            assert!(read(&lock));
            unread(&lock);
            unread(&lock);
            act_as(1);
            assert_eq!(lock.upgrade_within(&Limit::until(0)), Ok(()));
            act_as(2);
            assert!(!read(&lock));
            act_as(1);
            lock.downgrade_to_upgradable();
            act_as(2);
            assert!(read(&lock));
            unread(&lock);
            act_as(1);
            lock.downgrade_upgradable();
            act_as(2);
            assert!(!write(&lock) && read(&lock));
            unread(&lock);
            act_as(1);
            unread(&lock);
        }
        assert!(!lock.is_locked());
    }
}

fn read_recursively(lock: &Lock) -> bool {
    // SAFETY: the tests release what they have.
    unsafe { lock.try_lock_shared_recursive() }
}

/// An upgradable reader does not wait for a reader, also if that one has the mutex.
#[test]
fn an_upgradable_reader_takes_the_mutex_over_from_a_reader() {
    let lock = lock_in(COUNTED_MODE);
    act_as(1);
    assert!(read(&lock), "it gives the lock an id");
    unread(&lock);
    assert!(read(&lock) && lock.mutex.is_open() && lock.is_locked() && !lock.is_locked_exclusive());
    assert!(read(&lock), "a nested read");
    act_as(2);
    let heavies = HEAVIES.get();
    // SAFETY: released below.
    assert!(!write(&lock) && unsafe { lock.try_lock_upgradable() } && !lock.mutex.is_open());
    assert_eq!(HEAVIES.get(), heavies + 1);
    act_as(3);
    // SAFETY: not released if it fails.
    assert!(read(&lock) && !unsafe { lock.try_lock_upgradable() });
    unread(&lock);
    act_as(2);
    // SAFETY: as above.
    assert!(!unsafe { lock.try_upgrade() }, "the first reader is in");
    act_as(1);
    unread(&lock);
    unread(&lock);
    assert!(OneThread::line().is_empty() && lock.is_locked());
    act_as(2);
    // SAFETY: as above.
    assert!(unsafe { lock.try_upgrade() } && lock.is_locked_exclusive());
    unwrite(&lock);
    act_as(1);
    assert!(!lock.is_locked() && read(&lock) && lock.mutex.is_open(), "it is as before");
    unread(&lock);
    assert!(!lock.is_locked());
}

/// A signal handler that interrupts the release reads another lock, for which the slot is the first
/// choice too.
#[test]
fn a_signal_handler_does_not_answer_for_a_reader_that_it_interrupts() {
    let lock = lock_in(COUNTED_MODE);
    act_as(1);
    let touch = |lock: &Lock| {
        assert!(read(lock));
        unread(lock);
    };
    touch(&lock);
    let other: &'static Lock = std::iter::repeat_with(|| &*Box::leak(Box::new(Lock::new())))
        .inspect(|other| touch(other))
        .find(|other| {
            OneThread::line().first(other.id.load(Relaxed)) == OneThread::line().first(lock.id.load(Relaxed))
        })
        .expect("every fourth");
    assert!(read(&lock) && lock.mutex.is_open());
    act_as(2);
    // SAFETY: it releases what it has locked.
    unsafe {
        assert!(lock.try_lock_upgradable());
        lock.unlock_upgradable();
    }
    act_as(1);
    meanwhile(move || {
        assert!(read(other));
        unread(other);
        assert!(!other.is_locked());
    });
    unread(&lock);
    assert!(others_are_done() && !lock.is_locked());
    assert!(write(&lock), "the reader is counted no more");
    unwrite(&lock);
    assert!(OneThread::line().is_empty());
}

/// No thread publishes the lock in this mode, so writers need not read the lines.
#[test]
fn a_writer_that_tries_reads_no_lines_in_the_counted_mode() {
    for (wanted, reads_lines) in [(COUNTED_MODE, false), (FENCED, true), (BIASED, true)] {
        let lock = lock_in(wanted);
        act_as(1);
        assert!(read(&lock), "it has an id, and the thread a line");
        unread(&lock);
        let line = OneThread::line();
        // As of a reader that is about to enter.
        line.slot(0).store(lock.id.load(Relaxed), Relaxed);
        assert_eq!((mode(&lock), lock.has_readers()), (wanted, reads_lines));
        line.slot(0).store(lines::FREE, Relaxed);
    }
}

#[test]
fn a_recursive_reader_that_any_thread_may_release_passes_a_writer_that_waits_for_readers() {
    for wanted in MODES {
        let lock = lock_in(wanted);
        act_as(1);
        // SAFETY: what is acquired is released; also below.
        let waits = || unsafe { lock.try_lock_shared_counted() };
        // SAFETY: as above.
        let recursive = || unsafe { lock.try_lock_shared_recursive_counted() };
        assert!(recursive());
        act_as(2);
        assert!(lock.mutex.take());
        act_as(3);
        assert!(!waits() && !recursive(), "the writer still spins");
        lock.begin_draining();
        assert!(!waits() && recursive());
        // SAFETY: as above.
        unsafe { assert_eq!(lock.lock_shared_recursive_counted_within(&Limit::NONE), Ok(())) };
        act_as(4);
        // SAFETY: as above.
        (0..3).for_each(|_| unsafe { lock.unlock_shared_counted() });
        act_as(2);
        assert!(lock.end_draining() && !lock.has_readers());
        act_as(3);
        assert!(!recursive(), "the writer is in");
        // SAFETY: as above.
        let result = unsafe { lock.lock_shared_recursive_counted_within(&Limit::until(0)) };
        assert_eq!(result, Err(GaveUp::TimedOut));
        act_as(2);
        unwrite(&lock);
    }
}

#[test]
fn a_recursive_reader_passes_a_writer_that_waits_for_readers() {
    for wanted in MODES {
        let lock = lock_in(wanted);
        act_as(1);
        assert!(read_recursively(&lock));
        act_as(2);
        assert!(lock.mutex.take());
        act_as(3);
        assert!(!read(&lock) && !read_recursively(&lock), "the writer still spins");
        lock.begin_draining();
        assert!(!read(&lock) && read_recursively(&lock));
        // SAFETY: released below.
        unsafe { assert_eq!(lock.lock_shared_recursive_within(&Limit::NONE), Ok(())) };
        unread(&lock);
        unread(&lock);
        act_as(1);
        unread(&lock);
        act_as(2);
        assert!(lock.end_draining() && !lock.has_readers());
        act_as(3);
        assert!(!read_recursively(&lock), "the writer is in");
        // SAFETY: not released if it fails.
        let result = unsafe { lock.lock_shared_recursive_within(&Limit::until(0)) };
        assert_eq!(result, Err(GaveUp::TimedOut));
        act_as(2);
        unwrite(&lock);
        act_as(3);
        let line = OneThread::line();
        assert!(!line.may_hold_others() && line.is_empty(), "nothing is left behind");
    }
}

#[test]
fn a_forgotten_read_of_a_dropped_lock_blocks_no_other_lock() {
    let mut lock = lock_in(BIASED);
    act_as(1);
    assert!(read(&lock) && !write(&lock));
    lock = lock_in(BIASED);
    assert!(write(&lock));
}

/// A writer that waits for the mutex.
fn with_waiting_writer(lock: &Lock, act: impl FnOnce()) {
    let before = lock.readers.load(Relaxed);
    assert!(lock.begins_to_wait() && lock.has_waiting_writers());
    act();
    lock.ends_to_wait();
    assert_eq!(lock.readers.load(Relaxed) & !PARKED, before);
}

#[test]
fn no_reader_enters_beside_one_that_has_the_mutex_while_a_writer_waits() {
    let lock = lock_in(COUNTED_MODE);
    act_as(1);
    assert!(read(&lock), "it gives the lock an id");
    unread(&lock);
    with_waiting_writer(&lock, || {
        assert!(read(&lock) && lock.mutex.is_open());
        assert!(read(&lock), "a nested read");
        unread(&lock);
        act_as(2);
        // SAFETY: what is acquired is released; also below.
        assert!(!read(&lock) && !unsafe { lock.try_lock_upgradable() || lock.try_lock_shared_counted() });
        // SAFETY: as above.
        let result = unsafe { lock.lock_shared_within(&(), &Limit::until(0)) };
        assert_eq!(result, Err(GaveUp::TimedOut));
        assert!(read_recursively(&lock));
        unread(&lock);
    });
    // SAFETY: as above.
    assert!(read(&lock) && unsafe { lock.try_lock_shared_counted() });
    unread(&lock);
    // SAFETY: as above.
    unsafe { lock.unlock_shared_counted() };
    act_as(1);
    unread(&lock);
    assert!(!lock.is_locked());
}

/// Otherwise these readers would wait for as long as the reader that has the mutex reads.
#[test]
fn the_last_writer_that_gives_up_wakes_readers_that_wait_behind_it() {
    let lock = lock_in(COUNTED_MODE);
    act_as(1);
    assert!(read(&lock), "it gives the lock an id");
    unread(&lock);
    assert!(read(&lock) && lock.mutex.is_open());
    let waits = |thread, act: &dyn Fn() -> Result<(), GaveUp>| {
        act_as(thread);
        UNPARKED.set(None);
        assert_eq!(act(), Err(GaveUp::TimedOut));
        UNPARKED.get().map(|(word, _)| word)
    };
    // SAFETY: nothing is acquired; also below.
    let writes = || unsafe { lock.lock_within(&(), &Limit::until(0)) };
    // SAFETY: as above.
    let reads = || unsafe { lock.lock_shared_within(&(), &Limit::until(NOW_NS.get() + 1)) };
    // SAFETY: as above.
    let reads_upgradably = || unsafe { lock.lock_upgradable_within(&Limit::until(NOW_NS.get() + 1)) };
    for act in [&reads as &dyn Fn() -> _, &reads_upgradably] {
        with_waiting_writer(&lock, || {
            let sleeps = SLEEPS.get();
            assert_eq!(waits(2, act), None);
            assert_eq!(SLEEPS.get(), sleeps + 1);
            assert_eq!(waits(3, &writes), None, "another writer waits");
        });
        assert_eq!(waits(3, &writes), Some(core::ptr::from_ref(lock.mutex.word())));
        assert_eq!(waits(3, &writes), None, "no reader waits");
    }
    act_as(1);
    unread(&lock);
    assert!(!lock.is_locked());
}

#[test]
fn more_writers_wait_than_can_be_counted() {
    let lock = Lock::new();
    let counted = (0..100).filter(|_| lock.begins_to_wait()).count();
    assert_eq!((counted, lock.readers.load(Relaxed)), (63, WAITING));
    (0..counted).for_each(|_| lock.ends_to_wait());
    assert_eq!(lock.readers.load(Relaxed), 0);
}

/// Otherwise it would wait for a writer that waits for it.
#[test]
fn a_reader_becomes_an_upgradable_reader_too_while_a_writer_waits() {
    let lock = lock_in(COUNTED_MODE);
    act_as(1);
    assert!(read(&lock), "it gives the lock an id");
    unread(&lock);
    with_waiting_writer(&lock, || {
        assert!(read(&lock) && lock.mutex.is_open());
        // SAFETY: released at once.
        assert!(unsafe { lock.try_lock_upgradable() });
        // SAFETY: as above.
        unsafe { lock.unlock_upgradable() };
        unread(&lock);
    });
    assert!(!lock.is_locked());
}
