//! What the features add. The command for all of it: `cargo test -p nearlock --all-features`.

#![cfg(all(feature = "lock_api_04", feature = "arc_lock", feature = "serde"))]

use std::sync::Arc;
use std::time::{Duration, Instant};

use nearlock::classic::{McsLock, RawTtasLock};
use nearlock::freebsd::{RawMtx, RawRw};
use nearlock::linux::{RawCnaLock, RawCounterMutex, RawMutex, RawRwSem, RawSpinLock, RwSem, SpinLock};
use nearlock::lock_api_04;
use nearlock::raw::Nodeless;

/// Generic code as it was written for `lock_api` 0.4.
struct Counter<R: lock_api_04::RawMutex> {
    count: lock_api_04::Mutex<R, u32>,
}

impl<R: lock_api_04::RawMutex> Counter<R> {
    const fn new() -> Self {
        Self { count: lock_api_04::Mutex::const_new(R::INIT, 0) }
    }

    fn add(&self) -> lock_api_04::MappedMutexGuard<'_, R, u32> {
        let mut count = self.count.lock();
        assert!(self.count.is_locked() && self.count.try_lock().is_none());
        *count += 1;
        lock_api_04::MutexGuard::map(count, |count| count)
    }
}

#[test]
fn code_for_lock_api_04_takes_our_raw_locks() {
    fn check<R: lock_api_04::RawMutex + Sync>(counter: &Counter<R>) {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| drop(counter.add()));
            }
        });
        assert_eq!(*counter.count.try_lock().expect("is free"), 4);
        assert!(!counter.count.is_locked());
    }
    static SPIN: Counter<RawSpinLock> = Counter::new();
    static CNA: Counter<RawCnaLock> = Counter::new();
    static MUTEX: Counter<RawMutex> = Counter::new();
    static COUNTER: Counter<RawCounterMutex> = Counter::new();
    static TTAS: Counter<Nodeless<RawTtasLock>> = Counter::new();
    static MTX: Counter<RawMtx> = Counter::new();
    static NEAR: Counter<nearlock::RawMutex> = Counter::new();
    check(&SPIN);
    check(&NEAR);
    check(&CNA);
    check(&MUTEX);
    check(&COUNTER);
    check(&TTAS);
    check(&MTX);
}

#[test]
fn timed_code_for_lock_api_04_takes_our_raw_locks() {
    let mutex = lock_api_04::Mutex::<RawMutex, _>::new(1);
    let guard = mutex.try_lock_for(Duration::ZERO).expect("is free");
    assert!(
        mutex.try_lock_for(Duration::from_millis(1)).is_none()
            && mutex.try_lock_until(Instant::now()).is_none()
    );
    drop(guard);
    let table = lock_api_04::RwLock::<RawRwSem, _>::new(1);
    let (first, second) =
        (table.try_read_for(Duration::ZERO).unwrap(), table.try_read_until(Instant::now()).unwrap());
    assert!(table.is_locked() && !table.is_locked_exclusive() && table.try_write().is_none());
    assert!(table.try_write_for(Duration::from_millis(1)).is_none());
    drop((first, second));
    let mut write = table.try_write_until(Instant::now()).expect("is free");
    *write += 1;
    assert!(table.is_locked_exclusive() && table.try_read().is_none());
    assert_eq!(*lock_api_04::RwLockWriteGuard::downgrade(write), 2);
    assert!(!table.is_locked());
}

#[test]
fn fair_code_for_lock_api_04_takes_our_mutex() {
    let mutex = lock_api_04::Mutex::<nearlock::RawMutex, _>::new(1);
    let mut guard = mutex.try_lock_for(Duration::ZERO).expect("is free");
    lock_api_04::MutexGuard::bump(&mut guard);
    lock_api_04::MutexGuard::unlock_fair(guard);
    assert!(!mutex.is_locked());
}

#[test]
fn readers_of_freebsds_locks_may_read_again() {
    let table = lock_api_04::RwLock::<RawRw, _>::new(1);
    let (first, second) = (table.read_recursive(), table.try_read_recursive().expect("the same thread"));
    assert_eq!(*first + *second, 2);
}

#[test]
fn a_guard_may_keep_its_lock_alive() {
    let spin = Arc::new(SpinLock::new(1));
    let guard = spin.lock_arc();
    assert!(spin.is_locked());
    drop(spin);
    assert_eq!(*guard, 1);
    let mcs = Arc::new(McsLock::new(2));
    let table = Arc::new(RwSem::new(3));
    let (first, second) = (table.read_arc(), table.try_read_arc().expect("readers are there together"));
    assert!(table.try_write_arc().is_none());
    drop(table);
    assert_eq!((*first, *second), (3, 3));
    let guard = mcs.try_lock_arc().expect("is free");
    assert!(mcs.try_lock_arc().is_none());
    drop(mcs);
    assert_eq!(*guard, 2);
}

#[test]
fn a_lock_is_serialized_as_its_data() {
    let lock = SpinLock::new(vec![1, 2]);
    let text = serde_json::to_string(&lock).unwrap();
    assert_eq!(text, "[1,2]");
    let back: McsLock<Vec<u32>> = serde_json::from_str(&text).unwrap();
    assert_eq!(back.into_inner(), [1, 2]);
}

#[test]
fn the_main_types_are_serialized_as_their_data() {
    assert_eq!(serde_json::to_string(&nearlock::Mutex::new(1)).unwrap(), "1");
    assert_eq!(serde_json::to_string(&nearlock::FairMutex::new(1)).unwrap(), "1");
    assert_eq!(serde_json::to_string(&nearlock::RwLock::new(1)).unwrap(), "1");
    assert_eq!(serde_json::to_string(&nearlock::RecursiveRwLock::new(1)).unwrap(), "1");
    let text = serde_json::to_string(&nearlock::ReentrantMutex::new("a")).unwrap();
    let back: nearlock::ReentrantMutex<String> = serde_json::from_str(&text).unwrap();
    assert_eq!(back.into_inner(), "a");
}

/// The names of `parking_lot` 0.13 at the root.
#[test]
fn guards_of_the_main_types_may_keep_their_lock_alive() {
    use nearlock::{ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard};
    use nearlock::{ArcRwLockWriteGuard, RawMutex, RawRwLock, RawThreadId, ReentrantMutex, RwLock};
    let (mutex, again) = (Arc::new(nearlock::Mutex::new(1)), Arc::new(ReentrantMutex::new(2)));
    let lock = Arc::new(RwLock::new(3));
    let guard: ArcMutexGuard<RawMutex, u32> = mutex.lock_arc();
    let holder: ArcReentrantMutexGuard<RawMutex, RawThreadId, u32> = again.lock_arc();
    let read: ArcRwLockReadGuard<RawRwLock, u32> = lock.read_arc();
    let upgradable: ArcRwLockUpgradableReadGuard<RawRwLock, u32> = lock.upgradable_read_arc();
    assert!(lock.try_write_arc().is_none());
    drop(read);
    let write: ArcRwLockWriteGuard<RawRwLock, u32> = ArcRwLockUpgradableReadGuard::upgrade(upgradable);
    drop((mutex, again, lock));
    assert_eq!((*guard, *holder, *write), (1, 2, 3));
}
