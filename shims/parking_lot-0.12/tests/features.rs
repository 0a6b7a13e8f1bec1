//! The tests of the features, which both versions have in common.

#[path = "../../features.rs"]
mod features;

#[test]
fn a_lock_is_read_recursively() {
    let lock = parking_lot::RwLock::new(1);
    let (first, second) = (lock.read_recursive(), lock.try_read_recursive().expect("is free"));
    assert!(lock.try_write().is_none());
    assert_eq!(*first + *second, 2);
    drop((first, second));
    let timed = lock.try_read_recursive_for(std::time::Duration::ZERO);
    assert!(timed.is_some() && lock.try_write().is_none());
    drop(timed);
    assert!(!lock.is_locked());
}
