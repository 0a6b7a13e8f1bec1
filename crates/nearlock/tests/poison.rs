//! Mutexes that a panic poisons: each as `std`'s.

use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::sync::TryLockError;
use std::thread;
use std::time::Duration;

use nearlock::poison::{Condvar, Mutex};
use static_assertions::{assert_impl_all, assert_not_impl_any};

assert_impl_all!(Mutex<u8>: Send, Sync, UnwindSafe, RefUnwindSafe);
assert_not_impl_any!(Mutex<std::rc::Rc<u8>>: Send, Sync);
assert_impl_all!(nearlock::poison::MutexGuard<'static, u8>: Sync);
assert_not_impl_any!(nearlock::poison::MutexGuard<'static, u8>: Send);
assert_not_impl_any!(nearlock::poison::MutexGuard<'static, std::cell::Cell<u8>>: Sync);

fn poison<T>(mutex: &Mutex<T>) {
    let section = || {
        let _guard = mutex.lock();
        panic!("in the section");
    };
    assert!(catch_unwind(AssertUnwindSafe(section)).is_err());
}

#[test]
fn a_panic_poisons_and_releases() {
    let mut mutex = Mutex::new(1);
    assert!(!mutex.is_poisoned() && mutex.lock().is_ok());
    poison(&mutex);
    assert!(mutex.is_poisoned());
    assert_eq!(*mutex.lock().unwrap_err().into_inner(), 1);
    assert!(matches!(mutex.try_lock(), Err(TryLockError::Poisoned(_))));
    assert!(mutex.get_mut().is_err());
    mutex.clear_poison();
    assert!(!mutex.is_poisoned() && mutex.lock().is_ok());
    poison(&mutex);
    assert_eq!(mutex.into_inner().unwrap_err().into_inner(), 1);
}

#[test]
fn who_locks_during_a_panic_does_not_poison() {
    struct LocksWhenDropped<'a>(&'a Mutex<u32>);
    impl Drop for LocksWhenDropped<'_> {
        fn drop(&mut self) {
            *self.0.lock().unwrap() += 1;
        }
    }
    let mutex = Mutex::from(0);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _late = LocksWhenDropped(&mutex);
        panic!("without the mutex");
    }));
    assert!(panicked.is_err());
    assert_eq!(*mutex.lock().unwrap(), 1);
}

#[test]
fn a_mutex_that_is_held_would_block() {
    let mutex = Mutex::<u32>::default();
    let guard = mutex.lock().unwrap();
    assert!(matches!(mutex.try_lock(), Err(TryLockError::WouldBlock)));
    assert_eq!(format!("{mutex:?}"), "Mutex { data: <locked>, poisoned: false, .. }");
    assert_eq!(format!("{guard:?} {guard}"), "0 0");
    drop(guard);
    assert_eq!(format!("{mutex:?}"), format!("{:?}", std::sync::Mutex::new(0)));
}

#[test]
fn who_waits_finds_out_that_a_panic_has_let_it_go() {
    let (mutex, changed) = (Mutex::new(false), Condvar::new());
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let result = changed
                .wait_while(mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner()), |done| !*done);
            result.is_err()
        });
        let notifier = scope.spawn(|| {
            let mut done = mutex.lock().unwrap();
            *done = true;
            changed.notify_all();
            panic!("in the section");
        });
        assert!(notifier.join().is_err());
        assert!(waiter.join().unwrap() || mutex.is_poisoned());
    });
}

#[test]
fn waits_have_the_signatures_of_std() {
    let (mutex, never) = (Mutex::new(1), Condvar::default());
    never.notify_one();
    let (guard, waited) = never.wait_timeout(mutex.lock().unwrap(), Duration::ZERO).unwrap();
    assert!(waited.timed_out());
    let (guard, waited) = never.wait_timeout_while(guard, Duration::ZERO, |value| *value == 1).unwrap();
    assert!(waited.timed_out());
    let (guard, waited) = never.wait_timeout_while(guard, Duration::ZERO, |value| *value == 0).unwrap();
    assert!(!waited.timed_out());
    assert_eq!(*never.wait_while(guard, |value| *value == 0).unwrap(), 1);
    poison(&mutex);
    let guard = mutex.lock().unwrap_err().into_inner();
    let (guard, waited) = never.wait_timeout(guard, Duration::ZERO).unwrap_err().into_inner();
    assert!(waited.timed_out() && *guard == 1);
}
