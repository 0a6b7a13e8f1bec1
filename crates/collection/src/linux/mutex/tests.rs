use super::*;
use crate::linux::qspinlock::QSpinLock;
use crate::native::Native;
use crate::parking::{Cancellation, Signal, locked};
use crate::testing::{
    NOW_NS, OneThread, SPINS_MAX, THREAD_ID, UNPARKED, events_of, left_by_others, meanwhile, others_are_done,
    set_owner_state,
};
use std::boxed::Box;
use std::cell::Cell;
use std::rc::Rc;

/// Three words of four bytes and the two pointers of a queue: 32 bytes, or 20 where pointers have
/// four.
const SIZE: usize = (12 + 2 * size_of::<usize>()).next_multiple_of(size_of::<usize>());
const _: () = assert!(size_of::<LinuxMutex<Native>>() == SIZE);

type Mutex<T = Standard> = LinuxMutex<OneThread, T>;
type Sleeper = Waiter<OneThread>;

/// The only thread, and two that the tests make up.
const ME: ThreadId = ThreadId::new(1).unwrap();
const OTHER: ThreadId = ThreadId::new(2).unwrap();
const THIRD: ThreadId = ThreadId::new(3).unwrap();

fn word<T: MutexTuning>(mutex: &Mutex<T>) -> u32 {
    mutex.word.load(Relaxed)
}

/// A mutex that another thread has locked.
fn locked_by_other<T: MutexTuning>() -> &'static Mutex<T> {
    let mutex: &Mutex<T> = Box::leak(Box::default());
    assert!(mutex.try_take(OTHER, Wish::Nothing).is_ok());
    mutex
}

/// A waiter of `thread`, in the queue.
fn queued<T: MutexTuning>(mutex: &Mutex<T>, thread: ThreadId) -> &'static Sleeper {
    let waiter: &Sleeper = Box::leak(Box::default());
    assert!(!mutex.enqueue(thread, waiter));
    waiter
}

fn unlock<T: MutexTuning>(mutex: &Mutex<T>) {
    // SAFETY: the caller holds it, or plays the thread that holds it.
    unsafe { mutex.unlock(&()) };
}

fn lock<T: MutexTuning>(mutex: &Mutex<T>) {
    // SAFETY: callers unlock it, or leak it.
    unsafe { mutex.lock(&()) };
}

/// What the waiter does once, after it has been woken.
fn look<T: MutexTuning>(mutex: &Mutex<T>, thread: ThreadId, waiter: &Sleeper) -> bool {
    locked(&mutex.wait_lock, || {
        let is_mine = mutex.try_take(thread, Wish::HandOver).is_ok();
        if is_mine {
            // SAFETY: under `wait_lock`, in the queue.
            unsafe { mutex.leave(waiter) };
        }
        is_mine
    })
}

#[test]
fn the_word_names_the_owner() {
    let mutex = Mutex::<Standard>::default();
    lock(&mutex);
    assert_eq!((word(&mutex), mutex.is_locked()), (owned_by(ME), true));
    // SAFETY: nothing is written to it.
    assert_eq!(unsafe { mutex.word() }.load(Relaxed), owned_by(ME));
    // SAFETY: not acquired.
    assert!(!unsafe { mutex.try_lock(&()) });
    unlock(&mutex);
    assert_eq!((word(&mutex), mutex.is_locked()), (0, false));
    assert_eq!(events_of(LockEvent::Slowpath), 0);
}

#[test]
fn a_mutex_that_becomes_free_while_we_spin_is_taken() {
    let mutex = locked_by_other::<Standard>();
    meanwhile(|| unlock(mutex));
    lock(mutex);
    assert_eq!(word(mutex), owned_by(ME));
    assert_eq!((events_of(LockEvent::MutexOptLock), events_of(LockEvent::MutexSleep)), (1, 0));
    unlock(mutex);
}

#[test]
fn no_thread_spins_for_an_owner_that_sleeps() {
    let mutex = locked_by_other::<Standard>();
    set_owner_state(OTHER, OwnerState::Asleep);
    meanwhile(|| {
        assert_eq!(word(mutex), owned_by(OTHER) | WAITERS);
        unlock(mutex);
    });
    lock(mutex);
    assert_eq!(events_of(LockEvent::MutexAfterSleep), 1);
    assert_eq!(word(mutex), owned_by(ME), "the last to leave the queue takes the flag with it");
    unlock(mutex);
    assert_eq!(word(mutex), 0);
}

#[test]
fn a_heedless_waiter_spins_on() {
    let mutex = locked_by_other::<HeedlessSpinning>();
    set_owner_state(OTHER, OwnerState::Asleep);
    meanwhile(|| unlock(mutex));
    lock(mutex);
    assert_eq!(events_of(LockEvent::MutexOptLock), 1);
}

#[test]
fn a_newcomer_that_has_spun_without_success_yields_before_it_queues_if_the_switch_says_so() {
    /// The word when the owner runs again.
    fn found<T: MutexTuning>() -> u32 {
        let (mutex, found) = (locked_by_other::<T>(), Rc::new(Cell::new(0)));
        let seen = Rc::clone(&found);
        meanwhile(move || {
            seen.set(word(mutex));
            unlock(mutex);
        });
        lock(mutex);
        assert!(others_are_done() && word(mutex) == owned_by(ME));
        found.get()
    }
    SPINS_MAX.set(0);
    assert_eq!(found::<Standard>(), owned_by(OTHER) | WAITERS, "it has queued");
    assert_eq!(events_of(LockEvent::MutexAtOnce), 0);
    assert_eq!(found::<YieldsBeforeQueue>(), owned_by(OTHER), "it is in no queue yet");
    assert_eq!((events_of(LockEvent::MutexAtOnce), events_of(LockEvent::MutexOptLock)), (1, 0));
}

#[test]
fn each_switch_lets_others_in() {
    fn goes_by<T: MutexTuning>() {
        let mutex = locked_by_other::<T>();
        meanwhile(|| unlock(mutex));
        lock(mutex);
        unlock(mutex);
        assert!(others_are_done() && word(mutex) == 0);
    }
    goes_by::<NoSpinning>();
    goes_by::<HeedlessSpinning>();
    goes_by::<NoSpinnerQueue>();
    goes_by::<SleepyWaiter>();
    goes_by::<NoHandOver>();
    goes_by::<YieldsBeforeQueue>();
}

#[test]
fn a_thread_that_takes_a_free_mutex_leaves_the_mark_of_waiters() {
    let mutex = locked_by_other::<Standard>();
    let waiter = queued(mutex, THIRD);
    unlock(mutex);
    assert_eq!(word(mutex), WAITERS);
    lock(mutex);
    assert_eq!(word(mutex), owned_by(ME) | WAITERS);
    unlock(mutex);
    assert!(look(mutex, THIRD, waiter));
    assert_eq!(word(mutex), owned_by(THIRD));
}

#[test]
fn a_waiter_that_was_woken_without_success_is_handed_the_mutex() {
    let mutex = locked_by_other::<Standard>();
    let waiter = queued(mutex, THIRD);
    unlock(mutex);
    lock(mutex);
    assert_eq!(waiter.park(), Signal::Woken);
    assert!(!look(mutex, THIRD, waiter));
    assert_eq!(word(mutex), owned_by(ME) | WAITERS | HANDOFF);
    unlock(mutex);
    assert_eq!(word(mutex), owned_by(THIRD) | WAITERS | PICKUP);
    assert_eq!(events_of(LockEvent::MutexHandOver), 1);
    // SAFETY: not acquired.
    assert!(!unsafe { mutex.try_lock(&()) }, "it is the waiter's");
    assert!(mutex.try_take(THIRD, Wish::Nothing).is_ok());
    assert_eq!(word(mutex), owned_by(THIRD) | WAITERS);
}

#[test]
fn without_hand_over_nothing_is_asked_for() {
    let mutex = locked_by_other::<NoHandOver>();
    // The first wake-up comes while another thread holds it again.
    meanwhile(|| {
        unlock(mutex);
        assert!(mutex.try_take(OTHER, Wish::Nothing).is_ok());
    });
    // The waiter's spinning does not end it either.
    for _ in 0..3 {
        meanwhile(|| assert_eq!(word(mutex), owned_by(OTHER) | WAITERS));
    }
    meanwhile(|| unlock(mutex));
    set_owner_state(OTHER, OwnerState::Asleep);
    lock(mutex);
    assert_eq!(events_of(LockEvent::MutexHandOver), 0);
}

/// Fixed in the kernel in January 2017. There, the name of the new holder was the only trace of a
/// hand-over.
#[test]
fn the_holder_does_not_get_it_again() {
    let mutex = locked_by_other::<Standard>();
    let waiter = queued(mutex, OTHER);
    _ = waiter.wake();
    assert!(!look(mutex, OTHER, waiter), "woken for no reason");
    assert_eq!(word(mutex), owned_by(OTHER) | WAITERS | HANDOFF);
}

#[test]
fn a_waiter_that_gives_up_clears_the_flags_if_it_is_the_last() {
    let mutex = locked_by_other::<Standard>();
    set_owner_state(OTHER, OwnerState::Asleep);
    NOW_NS.set(10);
    // SAFETY: not acquired.
    assert_eq!(unsafe { mutex.lock_within(&(), &Limit::until(30)) }, Err(GaveUp::TimedOut));
    assert_eq!((word(mutex), NOW_NS.get()), (owned_by(OTHER), 30));
    let cancellation: &Cancellation<OneThread> = Box::leak(Box::default());
    // It is woken, fails, and asks for the hand-over. Then it is cancelled.
    meanwhile(|| locked(&mutex.wait_lock, || wake_first(mutex)));
    meanwhile(|| {
        assert_eq!(word(mutex), owned_by(OTHER) | WAITERS | HANDOFF);
        cancellation.cancel();
    });
    let limit = Limit { until_ns: None, cancellation: Some(cancellation) };
    // SAFETY: as above.
    assert_eq!(unsafe { mutex.lock_within(&(), &limit) }, Err(GaveUp::Cancelled));
    assert_eq!(word(mutex), owned_by(OTHER));
    assert!(mutex.waiters.is_empty() && others_are_done());
    unlock(mutex);
    assert_eq!(word(mutex), 0);
}

fn wake_first<T: MutexTuning>(mutex: &Mutex<T>) {
    // SAFETY: under `wait_lock`.
    _ = unsafe { &*mutex.waiters.first() }.wake();
}

#[test]
fn a_spinner_obeys_its_limit() {
    fn gives_up<T: MutexTuning>() {
        let mutex = locked_by_other::<T>();
        NOW_NS.set(10);
        meanwhile(|| NOW_NS.set(30));
        meanwhile(|| ()); // not done: it does not spin on
        // SAFETY: not acquired, here and below.
        assert_eq!(unsafe { mutex.lock_within(&(), &Limit::until(30)) }, Err(GaveUp::TimedOut));
        assert_eq!(left_by_others(), 1);
        let cancellation: &Cancellation<OneThread> = Box::leak(Box::default());
        meanwhile(|| cancellation.cancel());
        meanwhile(|| ());
        let limit = Limit { until_ns: None, cancellation: Some(cancellation) };
        // SAFETY: as above.
        assert_eq!(unsafe { mutex.lock_within(&(), &limit) }, Err(GaveUp::Cancelled));
        assert_eq!((left_by_others(), word(mutex)), (1, owned_by(OTHER)));
    }
    gives_up::<Standard>();
    gives_up::<HeedlessSpinning>();
    gives_up::<NoSpinnerQueue>();
}

#[test]
fn wake_ups_do_not_keep_a_waiter_past_its_limit() {
    let mutex = locked_by_other::<NoHandOver>();
    set_owner_state(OTHER, OwnerState::Asleep);
    meanwhile(|| {
        set_owner_state(OTHER, OwnerState::Running);
        NOW_NS.set(30);
        locked(&mutex.wait_lock, || wake_first(mutex));
    });
    meanwhile(|| ()); // not done, as above
    // SAFETY: not acquired.
    assert_eq!(unsafe { mutex.lock_within(&(), &Limit::until(30)) }, Err(GaveUp::TimedOut));
    assert_eq!((left_by_others(), events_of(LockEvent::MutexSleep)), (1, 1));
}

#[test]
fn a_waiter_that_gives_up_asks_for_no_hand_over() {
    let mutex = locked_by_other::<Standard>();
    set_owner_state(OTHER, OwnerState::Asleep);
    let cancellation: &Cancellation<OneThread> = Box::leak(Box::default());
    meanwhile(|| {
        queued(mutex, THIRD);
        cancellation.cancel();
    });
    let limit = Limit { until_ns: None, cancellation: Some(cancellation) };
    // SAFETY: not acquired.
    assert_eq!(unsafe { mutex.lock_within(&(), &limit) }, Err(GaveUp::Cancelled));
    assert_eq!(word(mutex), owned_by(OTHER) | WAITERS);
}

#[test]
fn a_requested_hand_over_goes_to_the_waiter_that_is_first_by_then() {
    let mutex = locked_by_other::<Standard>();
    let (asks, next) = (queued(mutex, ME), queued(mutex, THIRD));
    assert!(!look(mutex, ME, asks));
    // SAFETY: in the queue.
    locked(&mutex.wait_lock, || unsafe { mutex.leave(asks) });
    assert_eq!(word(mutex), owned_by(OTHER) | WAITERS | HANDOFF);
    unlock(mutex);
    assert_eq!(word(mutex), owned_by(THIRD) | WAITERS | PICKUP);
    assert!(look(mutex, THIRD, next));
    assert_eq!(word(mutex), owned_by(THIRD));
}

#[test]
fn a_hand_over_without_a_waiter_frees_the_mutex() {
    let mutex = locked_by_other::<Standard>();
    let waiter = queued(mutex, THIRD);
    assert!(!look(mutex, THIRD, waiter));
    let seen = word(mutex);
    // It gives up after the holder has looked.
    // SAFETY: in the queue.
    locked(&mutex.wait_lock, || unsafe { mutex.leave(waiter) });
    mutex.unlock_slow(seen);
    assert_eq!(word(mutex), 0);
}

#[test]
fn a_waiter_that_gives_up_and_finds_the_mutex_free_has_it() {
    let mutex = locked_by_other::<Standard>();
    set_owner_state(OTHER, OwnerState::Asleep);
    let cancellation: &Cancellation<OneThread> = Box::leak(Box::default());
    meanwhile(|| {
        cancellation.cancel();
        unlock(mutex);
    });
    let limit = Limit { until_ns: None, cancellation: Some(cancellation) };
    // SAFETY: unlocked below.
    assert_eq!(unsafe { mutex.lock_within(&(), &limit) }, Ok(()));
    unlock(mutex);
    assert_eq!(word(mutex), 0);
}

#[test]
fn the_first_waiter_spins_and_picks_up() {
    let mutex = locked_by_other::<Standard>();
    set_owner_state(OTHER, OwnerState::Asleep);
    // Woken while it is held by a thread that runs.
    meanwhile(|| {
        unlock(mutex);
        assert!(mutex.try_take(THIRD, Wish::Nothing).is_ok());
    });
    meanwhile(|| {
        assert_eq!(word(mutex), owned_by(THIRD) | WAITERS | HANDOFF);
        unlock(mutex);
    });
    lock(mutex);
    assert_eq!((events_of(LockEvent::MutexSleep), events_of(LockEvent::MutexHandOver)), (1, 1));
    assert_eq!(word(mutex), owned_by(ME));
}

#[test]
fn a_sleeper_is_called_after_the_queue_is_free_again() {
    let mutex = locked_by_other::<NoSpinning>();
    meanwhile(|| {
        unlock(mutex);
        assert!(UNPARKED.get().is_some_and(|(_, count)| count == 1));
    });
    lock(mutex);
    assert_eq!(events_of(LockEvent::MutexWake), 1);
}

/// While its local data is being destroyed, a thread may get another name.
#[test]
fn unlock_does_not_ask_for_the_thread_id() {
    let mutex = Mutex::<Standard>::default();
    lock(&mutex);
    THREAD_ID.set(OTHER);
    unlock(&mutex);
    THREAD_ID.set(ME);
    assert_eq!(word(&mutex), 0);
}

#[test]
fn any_spin_lock_may_protect_the_queue() {
    let mutex = LinuxMutex::<OneThread, Standard, QSpinLock<OneThread>>::new();
    lock_and_unlock(&mutex);
    assert!(!mutex.is_locked());
}

fn lock_and_unlock(mutex: &impl RawLock<Node = ()>) {
    // SAFETY: one thread, and unlock follows lock.
    unsafe {
        mutex.lock(&());
        mutex.unlock(&());
    }
}
