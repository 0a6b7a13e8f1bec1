//! Which of the types are `Send` and `Sync`. The test is that this compiles.

use std::cell::Cell;
use std::fmt::Debug;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;
use std::sync::MutexGuard as StdGuard;

use nearlock::Cancellation;
use nearlock::classic::{ClhLock, MappedMcsLockGuard, McsLock, McsLockGuard, TtasLock, TtasLockGuard};
use nearlock::freebsd::{
    MappedMtxGuard, Mtx, MtxGuard, RecursiveGuard, RecursiveMtx, RecursiveReadGuard, RecursiveRw,
    RecursiveSpinMtx, RecursiveSx, RecursiveWriteGuard, Rw, RwReadGuard, RwWriteGuard, SpinMtx, SpinMtxGuard,
    Sx, SxReadGuard, SxWriteGuard,
};
use nearlock::linux::{
    CnaLock, CnaLockGuard, CounterMutex, FifoSpinLock, MappedRwSemReadGuard, MappedRwSemWriteGuard,
    MappedSpinLockGuard, Mutex, MutexGuard, RawSpinLock, RwSem, RwSemReadGuard, RwSemWriteGuard, SpinLock,
    SpinLockGuard,
};
use nearlock::raw::{PooledNode, Unlocked};
use nearlock::{
    Barrier, BarrierWaitResult, Condvar, FairMutex, FairMutexGuard, MappedMutexGuard as MappedNearMutexGuard,
    MappedReentrantMutexGuard, MappedRwLockReadGuard, MappedRwLockWriteGuard, Mutex as NearMutex,
    MutexGuard as NearMutexGuard, Once, OnceState, RecursiveRwLock, RecursiveRwLockReadGuard, ReentrantMutex,
    ReentrantMutexGuard, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard, Semaphore,
    SemaphoreGuard, WaitTimeoutResult,
};
use static_assertions::{assert_impl_all, assert_not_impl_any};

/// `Send`, but not `Sync`.
type SendOnly = Cell<u32>;
/// `Sync`, but not `Send`.
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
locks! { SpinLock FifoSpinLock CnaLock Mutex CounterMutex McsLock ClhLock TtasLock Mtx SpinMtx }
locks! { RecursiveMtx RecursiveSpinMtx NearMutex FairMutex ReentrantMutex }

// Readers see the data at the same time, so the data must be `Sync`.
macro_rules! rw_locks {
    ($($lock:ident)*) => {
        $(assert_impl_all!($lock<u32>: Send, Sync);
        assert_impl_all!($lock<SendOnly>: Send);
        assert_not_impl_any!($lock<SendOnly>: Sync);
        assert_not_impl_any!($lock<SyncOnly>: Send, Sync);
        assert_not_impl_any!($lock<Neither>: Send, Sync);)*
    };
}
rw_locks! { RwLock RecursiveRwLock RwSem Rw Sx RecursiveRw RecursiveSx }
assert_impl_all!(Cancellation: Send, Sync, Default);
assert_impl_all!(Condvar: Send, Sync, Default, Debug, UnwindSafe, RefUnwindSafe);
assert_impl_all!(WaitTimeoutResult: Send, Sync, Copy, Debug, Eq);
assert_impl_all!(Once: Send, Sync, Default, Debug, UnwindSafe, RefUnwindSafe);
assert_impl_all!(OnceState: Send, Sync, Copy, Debug, Eq);
assert_impl_all!(Barrier: Send, Sync, Debug);
assert_impl_all!(BarrierWaitResult: Send, Sync, Debug);
assert_impl_all!(Semaphore: Send, Sync, Debug);
assert_impl_all!(SemaphoreGuard<'static>: Send, Sync, Debug);
// Several guards give shared access, on one thread.
assert_not_impl_any!(ReentrantMutexGuard<'static, u32>: Send);
assert_not_impl_any!(MappedReentrantMutexGuard<'static, u32>: Send);

macro_rules! guards {
    ($($guard:ident)*) => {
        $(assert_impl_all!($guard<'static, u32>: Sync);
        assert_not_impl_any!($guard<'static, u32>: Send);
        assert_not_impl_any!($guard<'static, SendOnly>: Send, Sync);
        assert_not_impl_any!($guard<'static, Neither>: Send, Sync);)*
    };
}
guards! { SpinLockGuard MappedSpinLockGuard CnaLockGuard MutexGuard McsLockGuard MappedMcsLockGuard TtasLockGuard }
guards! { NearMutexGuard MappedNearMutexGuard FairMutexGuard RecursiveRwLockReadGuard }
guards! { RwLockReadGuard RwLockWriteGuard RwLockUpgradableReadGuard MappedRwLockReadGuard MappedRwLockWriteGuard }
guards! { RwSemReadGuard RwSemWriteGuard MappedRwSemReadGuard MappedRwSemWriteGuard }
guards! { MtxGuard MappedMtxGuard SpinMtxGuard RwReadGuard RwWriteGuard SxReadGuard SxWriteGuard }

type RawMtx = nearlock_collection::freebsd::mtx::Mtx<nearlock_os::Os>;
type Current = nearlock::freebsd::tuning::Current;
type RwKind = nearlock_collection::freebsd::rw::RwKind;
assert_impl_all!(RecursiveGuard<'static, RawMtx, u32>: Sync);
assert_not_impl_any!(RecursiveGuard<'static, RawMtx, u32>: Send);
assert_not_impl_any!(RecursiveGuard<'static, RawMtx, SendOnly>: Send, Sync);
assert_impl_all!(RecursiveReadGuard<'static, Current, RwKind, u32>: Sync);
assert_not_impl_any!(RecursiveReadGuard<'static, Current, RwKind, u32>: Send);
// It gives access to the cell.
assert_not_impl_any!(RecursiveWriteGuard<'static, Current, RwKind, u32>: Send, Sync);

assert_impl_all!(RawSpinLock: Send, Sync, Default);
assert_impl_all!(nearlock::classic::RawMcsLock: Unlocked);
// A guard can be forgotten, and then the lock can be moved while it is held. Nodes in the lock
// would be left behind.
assert_not_impl_any!(nearlock::classic::RawHmcsLock: Unlocked);
// A mutex whose queue is under a ticket lock excludes 2^16 threads at most.
assert_not_impl_any!(nearlock_collection::linux::counter_mutex::CounterMutex<nearlock_os::Os>: Unlocked);
// A lock that is broken on purpose, and a monitor whose conditions come from the program.
assert_not_impl_any!(nearlock_collection::controls::Busted<nearlock_os::Os>: Unlocked);
assert_not_impl_any!(nearlock_core::near::condvar::monitor::Monitor<nearlock_os::Os>: Unlocked);
assert_not_impl_any!(PooledNode<nearlock::classic::RawMcsLock>: Send, Clone, Default);
