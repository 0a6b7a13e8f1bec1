use std::boxed::Box;

use super::*;
use crate::freebsd::rwsx::tests::leaked;
use crate::freebsd::rwsx::{READ_WAITERS, SPINNER, WRITE_WAITERS};
use crate::freebsd::sleepers::{is_awake, sleeper_at};
use crate::freebsd::tuning::Era2014;
use crate::parking::Cancellation;
use crate::parking::chain::Queue;
use crate::raw::{RawLock, RawRwLock};
use crate::schedule::OwnerState;
use crate::testing::{NOW_NS, OTHER, OneThread, acting, meanwhile, others_are_done, set_owner_state};

crate::tuning! {
    /// The kernel's last reader, which does not notice stale bits.
    struct Kernel: Tuning {
        sx_stale_bits: StaleBits = StaleBits::SeenByWriters;
    }
}

/// A reader waits behind a writer which has given up, and the holder unlocks. Returns whether the
/// reader sleeps on, and the bits that are left.
fn forgets_the_reader<T: Tuning>(
    release: fn(&Sx<OneThread, T>),
    holder: fn(&Sx<OneThread, T>),
) -> (bool, u64) {
    let lock = leaked::<T, SxKind>();
    holder(lock);
    let reader = sleeper_at(lock, Queue::Shared);
    // SAFETY: a writer and a reader wait, and the writer gives up.
    let word = unsafe { lock.word() };
    word.fetch_or(WRITE_WAITERS | READ_WAITERS, core::sync::atomic::Ordering::Relaxed);
    release(lock);
    (!is_awake(reader), lock.now())
}

#[test]
fn the_last_reader_looks_for_writers_that_have_given_up() {
    fn read<T: Tuning>(lock: &Sx<OneThread, T>) {
        lock.read_as(OTHER);
    }
    fn unread<T: Tuning>(lock: &Sx<OneThread, T>) {
        lock.unread_as(OTHER);
    }
    assert_eq!(forgets_the_reader::<Standard>(unread, read), (false, 0));
    assert_eq!(forgets_the_reader::<Kernel>(unread, read), (true, READ_WAITERS));
    assert_eq!(forgets_the_reader::<Era2014>(unread, read), (false, WRITE_WAITERS), "readers first");
}

#[test]
fn a_writer_looks_for_writers_that_have_given_up() {
    fn write<T: Tuning>(lock: &Sx<OneThread, T>) {
        lock.write_as(OTHER);
    }
    fn unwrite<T: Tuning>(lock: &Sx<OneThread, T>) {
        lock.unwrite_as(OTHER);
    }
    assert_eq!(forgets_the_reader::<Standard>(unwrite, write), (false, 0));
    assert_eq!(forgets_the_reader::<Kernel>(unwrite, write), (false, 0));
}

fn waits_without_success<T: Tuning>() {
    let lock = leaked::<T, SxKind>();
    let until = |ns| Limit::until(NOW_NS.get() + ns);
    set_owner_state(OTHER, OwnerState::Asleep);
    lock.write_as(OTHER);
    // SAFETY: only what is locked is unlocked.
    unsafe {
        assert_eq!(lock.lock_within(&(), &until(5)), Err(GaveUp::TimedOut));
        assert_eq!(lock.lock_shared_within(&(), &until(5)), Err(GaveUp::TimedOut));
        assert!(lock.has(WRITE_WAITERS | READ_WAITERS), "the bits stay");
        lock.unwrite_as(OTHER);
        assert_eq!(lock.now(), 0);
        assert_eq!(lock.lock_within(&(), &Limit::until(0)), Ok(()), "it is free");
        lock.unlock(&());
        assert_eq!(lock.lock_shared_within(&(), &Limit::until(0)), Ok(()));
        assert_eq!(acting(OTHER, || lock.lock_within(&(), &until(5))), Err(GaveUp::TimedOut));
        assert!(lock.has(WRITE_WAITERS) && !lock.has(SPINNER));
        lock.unlock_shared(&());
        assert_eq!(lock.now(), 0);
    }
    set_owner_state(OTHER, OwnerState::Running);
}

#[test]
fn a_waiter_that_gives_up_does_not_have_the_lock() {
    waits_without_success::<Standard>();
    waits_without_success::<Kernel>();
    waits_without_success::<Era2014>();
}

#[test]
fn a_wait_is_cancelled() {
    let lock = leaked::<Standard, SxKind>();
    let cancellation: &'static Cancellation<OneThread> = Box::leak(Box::default());
    let limit = Limit { until_ns: None, cancellation: Some(cancellation) };
    set_owner_state(OTHER, OwnerState::Asleep);
    lock.write_as(OTHER);
    meanwhile(|| cancellation.cancel());
    // SAFETY: only what is locked is unlocked.
    unsafe {
        assert_eq!(lock.lock_shared_within(&(), &limit), Err(GaveUp::Cancelled));
        assert_eq!(lock.lock_within(&(), &limit), Err(GaveUp::Cancelled));
        meanwhile(|| lock.unwrite_as(OTHER));
        lock.lock(&());
        lock.unlock(&());
    }
    assert!(others_are_done());
    set_owner_state(OTHER, OwnerState::Running);
}
