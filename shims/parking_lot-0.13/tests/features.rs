//! The tests of the features, which both versions have in common.

#[path = "../../features.rs"]
mod features;

mod recursive {
    use parking_lot::{
        MappedRecursiveRwLockReadGuard, RecursiveRwLock, RecursiveRwLockReadGuard, RecursiveRwLockWriteGuard,
    };
    #[cfg(feature = "send_guard")]
    use static_assertions::assert_impl_all as assert_sent;
    #[cfg(not(feature = "send_guard"))]
    use static_assertions::assert_not_impl_any as assert_sent;

    assert_sent!(RecursiveRwLockReadGuard<'static, u32>: Send);
    assert_sent!(RecursiveRwLockWriteGuard<'static, u32>: Send);
    assert_sent!(MappedRecursiveRwLockReadGuard<'static, u32>: Send);

    #[test]
    fn it_works() {
        let lock = RecursiveRwLock::new(1);
        assert_eq!(*lock.read() + *lock.read(), 2);
        let read = RecursiveRwLockWriteGuard::downgrade(lock.write());
        assert!(lock.try_write().is_none() && lock.try_upgradable_read().is_some());
        drop(read);
        assert!(!lock.is_locked());
    }
}
