//! Locks that a panic poisons, in comparison with `std`'s.

use std::any::type_name;
use std::cell::Cell;
use std::marker::{PhantomData, PhantomPinned};
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::TryLockError;
use std::thread;
use std::time::Duration;

use nearlock::poison::{self, Condvar, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

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
        );
        same_auto_traits!(RwLock<$data>, std::sync::RwLock<$data>);
        same_auto_traits!(RwLockReadGuard<'static, $data>, std::sync::RwLockReadGuard<'static, $data>);
        same_auto_traits!(RwLockWriteGuard<'static, $data>, std::sync::RwLockWriteGuard<'static, $data>);
        same_auto_traits!(
            poison::PoisonError<RwLockReadGuard<'static, $data>>,
            std::sync::PoisonError<std::sync::RwLockReadGuard<'static, $data>>
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

/// It does, if one is over when it begins.
#[test]
#[allow(deprecated)]
fn a_wait_in_milliseconds_says_whether_there_was_a_notification() {
    let (mutex, changed) = (Mutex::new(false), Condvar::new());
    let (guard, is_notified) = changed.wait_timeout_ms(mutex.lock().unwrap(), 0).unwrap();
    assert!(!is_notified);
    thread::scope(|scope| {
        scope.spawn(|| {
            *mutex.lock().unwrap() = true;
            changed.notify_one();
        });
        let (guard, is_notified) = changed.wait_timeout_ms(guard, u32::MAX).unwrap();
        assert!(is_notified && *guard);
    });
    assert_eq!(format!("{changed:?}"), format!("{:?}", std::sync::Condvar::new()));
}

/// Panics in a section of the guard that `lock` returns.
fn panic_in<G>(lock: impl FnOnce() -> G) {
    let section = || {
        let _guard = lock();
        panic!("in the section");
    };
    assert!(catch_unwind(AssertUnwindSafe(section)).is_err());
}

#[test]
fn a_panic_of_a_writer_poisons_and_that_of_a_reader_does_not() {
    let mut lock = RwLock::new(1);
    panic_in(|| lock.read().unwrap());
    panic_in(|| lock.try_read().unwrap());
    panic_in(|| RwLockWriteGuard::downgrade(lock.write().unwrap()));
    assert!(!lock.is_poisoned() && lock.try_write().is_ok());
    panic_in(|| lock.write().unwrap());
    assert!(lock.is_poisoned());
    assert_eq!(*lock.read().unwrap_err().into_inner(), 1);
    *lock.write().unwrap_err().into_inner() = 2;
    assert!(matches!(lock.try_read(), Err(TryLockError::Poisoned(_))));
    assert!(matches!(lock.try_write(), Err(TryLockError::Poisoned(_))));
    assert!(lock.get_mut().is_err());
    lock.clear_poison();
    assert_eq!(*lock.read().unwrap(), 2);
    panic_in(|| lock.try_write().unwrap());
    assert_eq!(lock.into_inner().unwrap_err().into_inner(), 2);
}

/// In `std` it is not poisoned then.
#[test]
fn a_downgrade_during_a_panic_poisons() {
    struct Downgrades<'a>(Option<RwLockWriteGuard<'a, u32>>);
    impl Drop for Downgrades<'_> {
        fn drop(&mut self) {
            drop(self.0.take().map(RwLockWriteGuard::downgrade));
        }
    }
    let lock = RwLock::new(1);
    panic_in(|| Downgrades(lock.write().ok()));
    assert!(lock.is_poisoned() && lock.try_write().is_err());
}

#[test]
fn a_reader_writer_lock_that_is_held_would_block() {
    static LOCK: RwLock<u32> = RwLock::new(0);
    let (first, second) = (LOCK.read().unwrap(), LOCK.read().unwrap());
    assert!(matches!(LOCK.try_write(), Err(TryLockError::WouldBlock)));
    assert_eq!(format!("{first:?} {second} {LOCK:?}"), format!("0 0 {:?}", std::sync::RwLock::new(0)));
    drop((first, second));
    let mut write = LOCK.write().unwrap();
    assert!(matches!(LOCK.try_read(), Err(TryLockError::WouldBlock)));
    assert!(matches!(LOCK.try_write(), Err(TryLockError::WouldBlock)));
    assert_eq!(format!("{write:?} {write} {LOCK:?}"), "0 0 RwLock { data: <locked>, poisoned: false, .. }");
    *write += 1;
    let read = RwLockWriteGuard::downgrade(write);
    assert_eq!(*read + *LOCK.read().unwrap(), 2);
    assert_eq!(RwLock::from(1).into_inner().unwrap(), RwLock::<u32>::default().into_inner().unwrap() + 1);
}

/// As with `std`'s, a guard of long-lived data is also one of data that live shorter.
#[test]
fn guards_of_readers_are_covariant() {
    fn shorter<'a>(guard: RwLockReadGuard<'a, &'static str>, _with: &'a str) -> RwLockReadGuard<'a, &'a str> {
        guard
    }
    let (lock, with) = (RwLock::new("long"), String::from("short"));
    assert_eq!(*shorter(lock.read().unwrap(), &with), "long");
    let slices: RwLock<[u32; 2]> = RwLock::new([1, 2]);
    let unsized_lock: &RwLock<[u32]> = &slices;
    assert_eq!(unsized_lock.read().unwrap().len(), 2);
}

#[test]
fn initialization_has_the_types_of_std() {
    static ONCE: poison::Once = poison::Once::new();
    static CELL: poison::OnceLock<u32> = poison::OnceLock::new();
    static LAZY: poison::LazyLock<u32> = poison::LazyLock::new(|| 2);
    panic_in(|| ONCE.call_once(|| panic!("in the initialization")));
    ONCE.call_once_force(|state: &poison::OnceState| assert!(state.is_poisoned()));
    assert!(ONCE.is_completed());
    assert_eq!(*CELL.get_or_init(|| 1) + *LAZY, 3);
}
