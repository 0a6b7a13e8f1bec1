//! Mutexes that a panic poisons, in comparison with `std`'s.

use std::any::type_name;
use std::cell::Cell;
use std::marker::{PhantomData, PhantomPinned};
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::TryLockError;
use std::thread;
use std::time::Duration;

use nearlock::poison::{self, Condvar, Mutex};

/// Whether a type implements a trait, known when the test is compiled. An associated constant of
/// the type itself goes before that of a trait, and the first exists only where the bound holds.
macro_rules! implements {
    ($type:ty: $bound:path) => {{
        struct Ask<T: ?Sized>(PhantomData<T>);
        #[allow(dead_code, reason = "one of the two answers is used")]
        trait Otherwise {
            const ANSWER: bool = false;
        }
        impl<T: ?Sized> Otherwise for Ask<T> {}
        #[allow(dead_code, reason = "as above")]
        impl<T: ?Sized + $bound> Ask<T> {
            const ANSWER: bool = true;
        }
        <Ask<$type>>::ANSWER
    }};
}

/// Which of the automatic traits a type implements.
macro_rules! auto_traits {
    ($type:ty) => {
        [
            ("Send", implements!($type: Send)),
            ("Sync", implements!($type: Sync)),
            ("Unpin", implements!($type: Unpin)),
            ("UnwindSafe", implements!($type: UnwindSafe)),
            ("RefUnwindSafe", implements!($type: RefUnwindSafe)),
        ]
    };
}

macro_rules! same_auto_traits {
    ($ours:ty, $stds:ty) => {
        assert_eq!(auto_traits!($ours), auto_traits!($stds), "{}", type_name::<$ours>());
    };
}

/// The same for data that lack some of the traits, each in a different way.
macro_rules! same_auto_traits_around {
    ($($data:ty),* $(,)?) => {
        $(same_auto_traits!(Mutex<$data>, std::sync::Mutex<$data>);
        same_auto_traits!(poison::MutexGuard<'static, $data>, std::sync::MutexGuard<'static, $data>);
        same_auto_traits!(
            poison::PoisonError<poison::MutexGuard<'static, $data>>,
            std::sync::PoisonError<std::sync::MutexGuard<'static, $data>>
        );
        same_auto_traits!(
            poison::TryLockError<poison::MutexGuard<'static, $data>>,
            std::sync::TryLockError<std::sync::MutexGuard<'static, $data>>
        );)*
    };
}

#[test]
fn every_type_has_the_auto_traits_of_its_counterpart_in_std() {
    type Guard = std::sync::MutexGuard<'static, u8>;
    same_auto_traits_around!(u8, Cell<u8>, Guard, Rc<Cell<u8>>, *mut u8, &'static mut u8, PhantomPinned);
    same_auto_traits_around!([u8], str, dyn Send, dyn Fn());
    same_auto_traits!(Condvar, std::sync::Condvar);
    same_auto_traits!(poison::WaitTimeoutResult, std::sync::WaitTimeoutResult);

    // Some are implemented and some are not, so the macro can give both answers.
    let guard = auto_traits!(poison::MutexGuard<'static, Cell<u8>>).map(|(_, is_implemented)| is_implemented);
    assert_eq!(guard, [false, false, true, true, true]);
}

#[test]
fn a_guard_may_cross_catch_unwind() {
    let mutex = Mutex::new(1);
    let guard = mutex.lock().unwrap();
    assert_eq!(catch_unwind(|| *guard).ok(), Some(1));
    let panicked = catch_unwind(move || {
        let _guard = guard;
        panic!("in the section");
    });
    assert!(panicked.is_err() && mutex.is_poisoned());
}

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
fn a_lock_during_a_panic_does_not_poison() {
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
fn a_waiter_learns_that_a_panic_has_released_the_mutex() {
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
