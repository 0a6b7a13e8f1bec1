use std::boxed::Box;

use super::*;
use crate::freebsd::lock_delay::Backoff;
use crate::freebsd::sleepers::{is_awake, sleeper_at};
use crate::freebsd::tuning::{
    Current, Era2014, Fcmpset2017, FollowOwner, NotAdaptive, PreReadEverywhere, Preloaded,
};
use crate::native::Native;
use crate::schedule::Sections;
use crate::testing::{
    OTHER, OneThread, THIRD, acting, before_exchange, events_of, exchange_fails, exchanges_are_over, me,
    meanwhile, mistake, others_are_done, set_owner_state,
};

const _: () = assert!(size_of::<Mtx<Native>>() == 8);

type Mutex<T = Standard> = Mtx<OneThread, T>;

fn leaked<T: Tuning>() -> &'static Mutex<T> {
    Box::leak(Box::default())
}

impl<T: Tuning> Mutex<T> {
    fn now(&self) -> (u32, u32) {
        (self.word.load(Relaxed), self.depth.get())
    }

    fn lock_as(&self, thread: ThreadId) {
        // SAFETY: tests unlock what they lock.
        acting(thread, || unsafe { self.lock(&()) });
    }

    fn unlock_as(&self, thread: ThreadId) {
        // SAFETY: locked by it.
        acting(thread, || unsafe { self.unlock(&()) });
    }

    fn is_contested(&self) -> bool {
        self.now().0 & CONTESTED != 0
    }
}

fn locks_and_unlocks<T: Tuning>() {
    let mutex = Mutex::<T>::new();
    // SAFETY: one thread, and unlock follows lock.
    unsafe {
        for _ in 0..2 {
            assert!(!mutex.is_locked() && !mutex.is_owned());
            assert_eq!(mutex.owner(), None);
            mutex.lock(&());
            assert_eq!(mutex.now(), (owned_by(me()), 0));
            assert!(mutex.is_locked() && mutex.is_owned() && !mutex.is_recursed());
            assert_eq!((mutex.depth(), acting(OTHER, || mutex.owner())), (0, Some(me())));
            assert!(!mutex.try_lock(&()), "not recursive unless asked to");
            assert!(!acting(OTHER, || mutex.try_lock(&()) || mutex.try_lock_recursive() || mutex.is_owned()));
            mutex.unlock(&());
            assert!(mutex.try_lock(&()));
            mutex.unlock(&());
            assert_eq!(mutex.now(), (FREE, 0));
        }
    }
}

fn recurses<T: Tuning>() {
    let mutex = Mutex::<T>::new();
    // SAFETY: one thread, and as many unlocks as locks.
    unsafe {
        mutex.lock_recursive();
        assert_eq!(mutex.now(), (owned_by(me()), 0));
        mutex.lock_recursive();
        assert!(mutex.try_lock_recursive() && mutex.is_recursed());
        assert_eq!(mutex.now(), (owned_by(me()) | RECURSED, 2));
        assert_eq!((mutex.owner(), mutex.depth()), (Some(me()), 2));
        mutex.unlock(&());
        assert_eq!(mutex.now(), (owned_by(me()) | RECURSED, 1));
        mutex.unlock(&());
        assert_eq!(mutex.now(), (owned_by(me()), 0));
        mutex.unlock(&());
        assert!(!mutex.is_locked() && mutex.try_lock_recursive());
        mutex.unlock(&());
    }
}

/// The owner unlocks while a thread spins.
fn spins<T: Tuning>() {
    let mutex = leaked::<T>();
    mutex.lock_as(OTHER);
    meanwhile(|| mutex.unlock_as(OTHER));
    let before = [LockEvent::ChainSleep, LockEvent::MutexOptLock].map(events_of);
    // SAFETY: one thread, and unlock follows lock.
    unsafe { mutex.lock(&()) };
    assert!(others_are_done());
    assert_eq!(mutex.now(), (owned_by(me()), 0));
    assert_eq!([LockEvent::ChainSleep, LockEvent::MutexOptLock].map(events_of), [before[0], before[1] + 1]);
    // SAFETY: as above.
    unsafe { mutex.unlock(&()) };
}

/// Without debug assertions nothing else stops a waiter from spinning.
fn gives_way_where_it_is_destroyed<T: Tuning>() {
    let mutex = leaked::<T>();
    assert_eq!(mutex.destroy(), Ok(()));
    meanwhile(|| ());
    assert_eq!(mutex.spin_or_wait(DESTROYED, &mut SpinState::default()), DESTROYED);
    assert!(others_are_done());
}

/// The owner sleeps, and so does the waiter.
fn sleeps<T: Tuning>() {
    const EVENTS: [LockEvent; 3] = [LockEvent::ChainSleep, LockEvent::ChainWake, LockEvent::MutexAfterSleep];
    let mutex = leaked::<T>();
    mutex.lock_as(OTHER);
    // SAFETY: as many unlocks as locks.
    acting(OTHER, || unsafe { mutex.lock_recursive() });
    set_owner_state(OTHER, OwnerState::Asleep);
    meanwhile(|| {
        assert_eq!(mutex.now(), (owned_by(OTHER) | CONTESTED | RECURSED, 1));
        mutex.unlock_as(OTHER);
        assert_eq!(mutex.now(), (owned_by(OTHER) | CONTESTED, 0), "survives the recursion");
        mutex.unlock_as(OTHER);
        assert_eq!(mutex.now(), (FREE, 0));
    });
    let before = EVENTS.map(events_of);
    // SAFETY: one thread, and unlock follows lock.
    unsafe { mutex.lock(&()) };
    assert!(others_are_done());
    assert_eq!(mutex.now(), (owned_by(me()), 0), "no thread is left");
    assert_eq!(EVENTS.map(events_of), before.map(|n| n + 1));
    // SAFETY: as above.
    unsafe { mutex.unlock(&()) };
    set_owner_state(OTHER, OwnerState::Running);
}

/// The mutex has another owner when the woken waiter looks: the waiter sleeps again.
fn is_overtaken<T: Tuning>() {
    let mutex = leaked::<T>();
    mutex.lock_as(OTHER);
    set_owner_state(OTHER, OwnerState::Asleep);
    set_owner_state(THIRD, OwnerState::Asleep);
    meanwhile(|| {
        mutex.unlock_as(OTHER);
        mutex.lock_as(THIRD);
        assert!(!mutex.is_contested(), "all have been woken");
    });
    meanwhile(|| {
        assert!(mutex.is_contested(), "it has come back");
        mutex.unlock_as(THIRD);
    });
    // SAFETY: one thread, and unlock follows lock.
    unsafe {
        mutex.lock(&());
        mutex.unlock(&());
    }
    assert!(others_are_done());
    set_owner_state(OTHER, OwnerState::Running);
    set_owner_state(THIRD, OwnerState::Running);
}

/// An unlock wakes all sleepers, and does not hand the mutex over.
fn wakes_all<T: Tuning>() {
    let mutex = leaked::<T>();
    mutex.lock_as(OTHER);
    let sleepers = [(); 3].map(|()| sleeper_at(mutex, Queue::Exclusive));
    mutex.word.fetch_or(CONTESTED, Relaxed);
    mutex.unlock_as(OTHER);
    assert_eq!((sleepers.map(is_awake), mutex.now()), ([true; 3], (FREE, 0)));
}

/// The waiter's round of spinning ends before the owner unlocks.
fn sleeps_after_spinning_enough<T: Tuning>() {
    let mutex = leaked::<T>();
    mutex.lock_as(OTHER);
    // Other threads act during the delays; at first they do nothing.
    (0..8).for_each(|_| meanwhile(|| ()));
    meanwhile(|| mutex.unlock_as(OTHER));
    let before = events_of(LockEvent::ChainSleep);
    // SAFETY: one thread, and unlock follows lock.
    unsafe {
        mutex.lock(&());
        mutex.unlock(&());
    }
    assert!(others_are_done());
    assert_eq!(events_of(LockEvent::ChainSleep), before + 1);
}

in_all_forms!(
    locks_and_unlocks
    recurses
    spins
    gives_way_where_it_is_destroyed
    sleeps
    is_overtaken
    wakes_all
    sleeps_after_spinning_enough
);

/// Whether a thread sleeps that has seen the mutex free, and has lost the race to a running thread.
fn sleeps_after_a_lost_race<T: Tuning>() -> bool {
    let mutex = leaked::<T>();
    mutex.lock_as(OTHER);
    meanwhile(|| mutex.unlock_as(OTHER));
    let mut state = SpinState::default();
    let seen = mutex.spin_or_wait(FREE, &mut state);
    assert_eq!(seen == FREE, state.has_slept);
    if !state.has_slept {
        assert_eq!(seen, owned_by(OTHER));
        // SAFETY: one thread, and unlock follows lock. (The other thread acts meanwhile.)
        unsafe {
            mutex.lock(&());
            mutex.unlock(&());
        }
    }
    assert!(others_are_done());
    state.has_slept
}

#[test]
fn a_lost_race_is_slept_on_only_where_the_value_read_is_kept() {
    let cancelled = events_of(LockEvent::ChainCancel);
    assert!(sleeps_after_a_lost_race::<Preloaded>());
    assert!(!sleeps_after_a_lost_race::<Current>() && !sleeps_after_a_lost_race::<Fcmpset2017>());
    assert_eq!(events_of(LockEvent::ChainCancel), cancelled);
    assert!(!sleeps_after_a_lost_race::<PreReadEverywhere>() && !sleeps_after_a_lost_race::<Era2014>());
    assert_eq!(events_of(LockEvent::ChainCancel), cancelled + 2, "two locked the chain without need");
}

#[test]
fn an_attempt_goes_by_what_the_switches_say() {
    fn attempt<T: Tuning>(is_held: bool, seen: u32) -> Result<(), u32> {
        let mutex = Mutex::<T>::new();
        if is_held {
            mutex.lock_as(OTHER);
        }
        mutex.attempt(me(), seen)
    }
    let other = owned_by(OTHER);
    assert_eq!(attempt::<Current>(false, other), Err(other), "it does not look");
    assert_eq!(attempt::<Current>(true, FREE), Err(other), "what the exchange has found");
    assert_eq!(attempt::<Current>(false, FREE), Ok(()));
    assert_eq!(attempt::<Era2014>(false, other), Ok(()));
    assert_eq!(attempt::<Era2014>(true, FREE), Err(other));
    assert_eq!(attempt::<Preloaded>(false, other), Ok(()));
    assert_eq!(attempt::<Preloaded>(true, FREE), Err(other));
}

#[test]
fn a_mutex_in_use_is_not_destroyed() {
    let mutex = Mutex::<Current>::new();
    mutex.lock_as(OTHER);
    assert_eq!(mutex.destroy(), Err(InUse::Held));
    mutex.word.fetch_or(CONTESTED, Relaxed);
    assert_eq!(mutex.destroy(), Err(InUse::Contested));
    mutex.unlock_as(OTHER);
    // SAFETY: one thread, and as many unlocks as locks.
    unsafe {
        mutex.lock_recursive();
        mutex.lock_recursive();
        assert_eq!(mutex.destroy(), Err(InUse::Recursed));
        mutex.unlock(&());
        assert_eq!(mutex.destroy(), Ok(()), "held once, by the caller");
    }
    assert_eq!((mutex.destroy(), mutex.now()), (Err(InUse::Destroyed), (DESTROYED, 0)));
    let unused = Mutex::<Current>::new();
    assert_eq!((unused.destroy(), unused.is_locked()), (Ok(()), false));
}

#[test]
fn an_exchange_that_fails_for_no_reason_is_tried_again() {
    let mutex = Mutex::<Current>::new();
    exchange_fails();
    // SAFETY: one thread; so below.
    assert!(unsafe { mutex.try_lock(&()) });
    exchange_fails();
    // SAFETY: just locked.
    unsafe { mutex.unlock(&()) };
    assert_eq!((mutex.now(), exchanges_are_over()), ((FREE, 0), true));
}

#[test]
fn a_release_that_fails_for_no_reason_wakes_a_waiter_that_comes_then() {
    let mutex = leaked::<Current>();
    mutex.lock_as(OTHER);
    let sleeper = sleeper_at(mutex, Queue::Exclusive);
    exchange_fails();
    before_exchange(|| {
        mutex.word.fetch_or(CONTESTED, Relaxed);
    });
    mutex.unlock_as(OTHER);
    assert_eq!((mutex.now(), is_awake(sleeper)), ((FREE, 0), true));
    assert!(exchanges_are_over());
}

#[test]
fn a_waiter_that_fails_to_set_its_bit_goes_on_as_the_switch_says() {
    /// Whether it sleeps.
    fn sleeps<T: Tuning>() -> bool {
        let mutex = leaked::<T>();
        mutex.lock_as(OTHER);
        set_owner_state(OTHER, OwnerState::Asleep);
        // The exchange of the chain's lock.
        before_exchange(|| ());
        // SAFETY: as many unlocks as locks.
        before_exchange(|| acting(OTHER, || unsafe { mutex.lock_recursive() }));
        meanwhile(|| (0..2).for_each(|_| mutex.unlock_as(OTHER)));
        let mut state = SpinState::default();
        assert_eq!(mutex.wait(owned_by(OTHER), &mut state), FREE);
        set_owner_state(OTHER, OwnerState::Running);
        assert!(exchanges_are_over() && others_are_done());
        state.has_slept
    }
    let cancelled = events_of(LockEvent::ChainCancel);
    assert!(sleeps::<Current>());
    assert_eq!(events_of(LockEvent::ChainCancel), cancelled, "it looks again, and keeps the chain");
    assert!(!sleeps::<Fcmpset2017>());
    assert_eq!(events_of(LockEvent::ChainCancel), cancelled + 1, "it starts again");
}

#[test]
fn a_mutex_that_another_thread_locks_first_is_not_destroyed() {
    let mutex = leaked::<Current>();
    before_exchange(|| mutex.lock_as(OTHER));
    assert_eq!((mutex.destroy(), mutex.owner()), (Err(InUse::Held), Some(OTHER)));
    mutex.unlock_as(OTHER);
}

#[test]
fn mistakes_are_found() {
    mistake("has been destroyed", || {
        let mutex = Mutex::<Current>::new();
        assert_eq!(mutex.destroy(), Ok(()));
        // SAFETY: one thread; this is the mistake.
        unsafe { mutex.lock(&()) };
    });
    mistake("locks a mutex that it holds", || {
        let mutex = Mutex::<Current>::new();
        // SAFETY: one thread; the second is the mistake.
        unsafe {
            mutex.lock(&());
            mutex.lock(&());
        }
    });
    mistake("unlocks a mutex that it does not hold", || {
        let mutex = Mutex::<Current>::new();
        mutex.lock_as(OTHER);
        // SAFETY: one thread; this is the mistake.
        unsafe { mutex.unlock(&()) };
    });
    mistake("sleeps in the section of a spin lock", || {
        let mutex = Mutex::<NotAdaptive>::new();
        mutex.lock_as(OTHER);
        OneThread::enter_section();
        // SAFETY: one thread; it does not return.
        unsafe { mutex.lock(&()) };
    });
}

#[test]
fn a_wait_for_an_unlock_does_not_take_the_mutex_unless_the_owner_sleeps() {
    let mutex = leaked::<Current>();
    mutex.wait_unlocked();
    mutex.lock_as(OTHER);
    meanwhile(|| {
        mutex.unlock_as(OTHER);
        mutex.lock_as(THIRD);
    });
    meanwhile(|| mutex.unlock_as(THIRD));
    let slow = events_of(LockEvent::Slowpath);
    mutex.wait_unlocked();
    assert!(others_are_done());
    assert_eq!(events_of(LockEvent::Slowpath), slow);
    mutex.lock_as(OTHER);
    set_owner_state(OTHER, OwnerState::Asleep);
    meanwhile(|| mutex.unlock_as(OTHER));
    mutex.wait_unlocked();
    set_owner_state(OTHER, OwnerState::Running);
    assert_eq!((events_of(LockEvent::Slowpath), mutex.now()), (slow + 1, (FREE, 0)));
}

crate::tuning! {
    /// FreeBSD 10.1, except that waiters sleep at once.
    struct NotAdaptive2014: Tuning {
        hard_pre_read: bool = false;
        cas_value: CasValue = CasValue::Reread;
        adaptive: bool = false;
        backoff: Backoff = Backoff::None;
        follow_owner: FollowOwner = FollowOwner::Same;
        waiter_cas_fail: WaiterCasFail = WaiterCasFail::Restart;
        release_order: ReleaseOrder = ReleaseOrder::CollectFirst;
    }
}

#[test]
fn a_waiter_that_does_not_spin_sleeps_though_the_owner_runs() {
    fn sleeps<T: Tuning>() -> u64 {
        let mutex = leaked::<T>();
        mutex.lock_as(OTHER);
        meanwhile(|| mutex.unlock_as(OTHER));
        let before = events_of(LockEvent::ChainSleep);
        // SAFETY: one thread, and unlock follows lock.
        unsafe {
            mutex.lock(&());
            mutex.unlock(&());
        }
        assert!(others_are_done());
        events_of(LockEvent::ChainSleep) - before
    }
    assert_eq!((sleeps::<NotAdaptive>(), sleeps::<NotAdaptive2014>(), sleeps::<Current>()), (1, 1, 0));
}
