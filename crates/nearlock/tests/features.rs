//! What the features add. All of it: `cargo test -p nearlock --all-features`.

#![cfg(all(feature = "lock_api_04", feature = "arc_lock", feature = "serde"))]

use std::sync::Arc;

use nearlock::classic::{McsLock, RawTtasLock};
use nearlock::linux::{RawCnaLock, RawSpinLock, SpinLock};
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
    static TTAS: Counter<Nodeless<RawTtasLock>> = Counter::new();
    check(&SPIN);
    check(&CNA);
    check(&TTAS);
}

#[test]
fn a_guard_may_keep_its_lock_alive() {
    let spin = Arc::new(SpinLock::new(1));
    let guard = spin.lock_arc();
    assert!(spin.is_locked());
    drop(spin);
    assert_eq!(*guard, 1);
    let mcs = Arc::new(McsLock::new(2));
    let guard = mcs.try_lock_arc().expect("is free");
    assert!(mcs.try_lock_arc().is_none());
    drop(mcs);
    assert_eq!(*guard, 2);
}

#[test]
fn a_lock_is_serialized_as_what_it_protects() {
    let lock = SpinLock::new(vec![1, 2]);
    let text = serde_json::to_string(&lock).unwrap();
    assert_eq!(text, "[1,2]");
    let back: McsLock<Vec<u32>> = serde_json::from_str(&text).unwrap();
    assert_eq!(back.into_inner(), [1, 2]);
}
