//! The tests of the features, which both versions have in common.

#[path = "../../features.rs"]
mod features;

/// Its guards stay on their thread, whichever feature is selected.
mod recursive {
    use parking_lot::{
        MappedRecursiveRwLockReadGuard, RecursiveRwLock, RecursiveRwLockReadGuard, RecursiveRwLockWriteGuard,
    };
    use static_assertions::assert_not_impl_any;

    assert_not_impl_any!(RecursiveRwLockReadGuard<'static, u32>: Send);
    assert_not_impl_any!(RecursiveRwLockWriteGuard<'static, u32>: Send);
    assert_not_impl_any!(MappedRecursiveRwLockReadGuard<'static, u32>: Send);

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
