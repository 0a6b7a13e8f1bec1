//! Which of the types may go to, and be seen by, other threads. It compiles, or it fails.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::MutexGuard as StdGuard;

use nearlock::Cancellation;
use nearlock::classic::{ClhLock, MappedMcsLockGuard, McsLock, McsLockGuard, TtasLock, TtasLockGuard};
use nearlock::linux::{
    CnaLock, CnaLockGuard, CounterMutex, FifoSpinLock, MappedRwSemReadGuard, MappedRwSemWriteGuard,
    MappedSpinLockGuard, Mutex, MutexGuard, RawSpinLock, RwSem, RwSemReadGuard, RwSemWriteGuard, SpinLock,
    SpinLockGuard,
};
use nearlock::raw::{PooledNode, Unlocked};
use static_assertions::{assert_impl_all, assert_not_impl_any};

/// May go to other threads, and be seen by one at a time.
type SendOnly = Cell<u32>;
/// May be seen by several threads, but stays on its own.
type SyncOnly = StdGuard<'static, u32>;
type Neither = Rc<u32>;

macro_rules! locks {
    ($($lock:ident)*) => {
        $(assert_impl_all!($lock<u32>: Send, Sync);
        assert_impl_all!($lock<SendOnly>: Send, Sync);
        assert_not_impl_any!($lock<SyncOnly>: Send, Sync);
        assert_not_impl_any!($lock<Neither>: Send, Sync);)*
    };
}
locks! { SpinLock FifoSpinLock CnaLock Mutex CounterMutex McsLock ClhLock TtasLock }

// Readers see the data together, so it must be one that several threads may see.
assert_impl_all!(RwSem<u32>: Send, Sync);
assert_impl_all!(RwSem<SendOnly>: Send);
assert_not_impl_any!(RwSem<SendOnly>: Sync);
assert_not_impl_any!(RwSem<SyncOnly>: Send, Sync);
assert_not_impl_any!(RwSem<Neither>: Send, Sync);
assert_impl_all!(Cancellation: Send, Sync, Default);

macro_rules! guards {
    ($($guard:ident)*) => {
        $(assert_impl_all!($guard<'static, u32>: Sync);
        assert_not_impl_any!($guard<'static, u32>: Send);
        assert_not_impl_any!($guard<'static, SendOnly>: Send, Sync);
        assert_not_impl_any!($guard<'static, Neither>: Send, Sync);)*
    };
}
guards! { SpinLockGuard MappedSpinLockGuard CnaLockGuard MutexGuard McsLockGuard MappedMcsLockGuard TtasLockGuard }
guards! { RwSemReadGuard RwSemWriteGuard MappedRwSemReadGuard MappedRwSemWriteGuard }

assert_impl_all!(RawSpinLock: Send, Sync, Default);
assert_impl_all!(nearlock::classic::RawMcsLock: Unlocked);
// Guards can be forgotten, and then locks be moved while they are held: nodes in the lock would be left behind.
assert_not_impl_any!(nearlock::classic::RawHmcsLock: Unlocked);
// With a ticket lock for its queue a mutex would exclude 2^16 threads at most.
assert_not_impl_any!(nearlock_core::linux::counter_mutex::CounterMutex<nearlock_os::Os>: Unlocked);
assert_not_impl_any!(PooledNode<nearlock::classic::RawMcsLock>: Send, Clone, Default);
