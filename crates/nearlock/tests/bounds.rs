//! Which of the types may go to, and be seen by, other threads. It compiles, or it fails.

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
    Condvar, MappedMutexGuard as MappedNearMutexGuard, Mutex as NearMutex, MutexGuard as NearMutexGuard,
    WaitTimeoutResult,
};
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
locks! { SpinLock FifoSpinLock CnaLock Mutex CounterMutex McsLock ClhLock TtasLock Mtx SpinMtx }
locks! { RecursiveMtx RecursiveSpinMtx NearMutex }

// Readers see the data together, so it must be one that several threads may see.
macro_rules! rw_locks {
    ($($lock:ident)*) => {
        $(assert_impl_all!($lock<u32>: Send, Sync);
        assert_impl_all!($lock<SendOnly>: Send);
        assert_not_impl_any!($lock<SendOnly>: Sync);
        assert_not_impl_any!($lock<SyncOnly>: Send, Sync);
        assert_not_impl_any!($lock<Neither>: Send, Sync);)*
    };
}
rw_locks! { RwSem Rw Sx RecursiveRw RecursiveSx }
assert_impl_all!(Cancellation: Send, Sync, Default);
assert_impl_all!(Condvar: Send, Sync, Default, Debug, UnwindSafe, RefUnwindSafe);
assert_impl_all!(WaitTimeoutResult: Send, Sync, Copy, Debug, Eq);

macro_rules! guards {
    ($($guard:ident)*) => {
        $(assert_impl_all!($guard<'static, u32>: Sync);
        assert_not_impl_any!($guard<'static, u32>: Send);
        assert_not_impl_any!($guard<'static, SendOnly>: Send, Sync);
        assert_not_impl_any!($guard<'static, Neither>: Send, Sync);)*
    };
}
guards! { SpinLockGuard MappedSpinLockGuard CnaLockGuard MutexGuard McsLockGuard MappedMcsLockGuard TtasLockGuard }
guards! { NearMutexGuard MappedNearMutexGuard }
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
// It shows the cell.
assert_not_impl_any!(RecursiveWriteGuard<'static, Current, RwKind, u32>: Send, Sync);

assert_impl_all!(RawSpinLock: Send, Sync, Default);
assert_impl_all!(nearlock::classic::RawMcsLock: Unlocked);
// Guards can be forgotten, and then locks be moved while they are held: nodes in the lock would be
// left behind.
assert_not_impl_any!(nearlock::classic::RawHmcsLock: Unlocked);
// With a ticket lock for its queue a mutex would exclude 2^16 threads at most.
assert_not_impl_any!(nearlock_collection::linux::counter_mutex::CounterMutex<nearlock_os::Os>: Unlocked);
// Broken on purpose, and a monitor whose conditions a program brings.
assert_not_impl_any!(nearlock_collection::controls::Busted<nearlock_os::Os>: Unlocked);
assert_not_impl_any!(nearlock_core::near::condvar::monitor::Monitor<nearlock_os::Os>: Unlocked);
assert_not_impl_any!(PooledNode<nearlock::classic::RawMcsLock>: Send, Clone, Default);
