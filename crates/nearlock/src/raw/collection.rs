//! The locks of the collection that can be a `static`.

use nearlock_collection::classic::{clh, cohort, glibc_mutex, mcs, tas, ttas};
use nearlock_collection::freebsd::mtx::Mtx;
use nearlock_collection::freebsd::rwsx::{Kind, RwSx};
use nearlock_collection::freebsd::spin_mtx::{LongSpin, SpinMtx};
use nearlock_collection::freebsd::tuning::Tuning;
use nearlock_collection::linux::counter_mutex::{CounterMutex, CounterMutexTuning, Spinners};
use nearlock_collection::linux::mutex::{LinuxMutex, MutexTuning};
use nearlock_collection::linux::qspinlock::{QSpinLock, QSpinTuning, QueuePolicy};
use nearlock_collection::linux::rwsem::{Rwsem, RwsemTuning};
use nearlock_core::parking::QueueLock;
use nearlock_core::platform::{Park, Platform};
use nearlock_core::raw::RawLock;

use super::Unlocked;

// Without the ticket lock: it does not exclude with more than 2^16 threads, nor does a lock whose
// queue is under it. Without HMCS: its global queue points to nodes in the lock itself.
unlocked! {
    [P: Platform] clh::ClhLock<P>;
    [P: Platform] cohort::CohortLock<P>;
    [P: Platform] glibc_mutex::GlibcMutex<P>;
    [P: Platform] mcs::McsLock<P>;
    [P: Platform] tas::TasLock<P>;
    [P: Platform, T: ttas::TtasTuning] ttas::TtasLock<P, T>;
    [P: Platform, Q: QueuePolicy<P>, T: QSpinTuning] QSpinLock<P, Q, T>;
    [P: Park, T: MutexTuning] LinuxMutex<P, T, QueueLock<P>>;
    [P: Park, S: Spinners<P>, T: CounterMutexTuning] CounterMutex<P, S, T, QueueLock<P>>;
    [P: Park, T: RwsemTuning] Rwsem<P, T, QueueLock<P>>;
    [P: Platform, T: Tuning] Mtx<P, T>;
    [P: Platform, T: Tuning, D: LongSpin] SpinMtx<P, T, D>;
    [P: Platform, T: Tuning, K: Kind] RwSx<P, T, K>;
}
