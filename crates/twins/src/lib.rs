//! The fast paths of the locks, and a twin of each: the same written by hand on
//! `core::sync::atomic`, for one lock and without a platform. `cargo xtask asm` compiles both into
//! one unit and compares the machine code. A lock that is generic over its platform must not cost
//! an instruction more.
//!
//! [`ours`] and [`hand`] have the same functions. None is inlined, so each has separate code in
//! this unit. If two of them have the same code, the compiler may keep it once, under both names.
//! The module [`sizes`] has the sizes of the locks. Names that begin with `control_` are the
//! negative control. Our code is longer there on purpose, and the comparison must find this.
//!
//! To compare another lock: write its twin in `locks.rs`, and add a line below.

mod locks;

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Release;

use locks::{ByteRelease, WakingRelease};
use nearlock::linux::{CnaLock, FifoSpinLock, SpinLock};
use nearlock::raw::{RawLock, RawTryLock};
use nearlock::{classic, linux};
use nearlock_collection::freebsd::lockmgr::LockMgr;
use nearlock_collection::freebsd::mtx::Mtx;
use nearlock_collection::freebsd::rw::Rw;
use nearlock_collection::freebsd::spin_mtx::SpinMtx;
use nearlock_collection::freebsd::sx::Sx;
use nearlock_collection::linux::qspinlock::{Fifo, QSpinLock, WholeWord};
use nearlock_core::lockstat::Unwatched;
use nearlock_core::native::{Spin, Wait};
use nearlock_core::near::mutex::NearMutex;
use nearlock_core::platform::SplitWord;
use nearlock_os::{Os, SpinThenYield};

type RawTtasNoPreReadLock =
    nearlock_collection::classic::ttas::TtasLock<Os, nearlock_collection::classic::ttas::NoPreRead>;
type RawWholeWordLock = QSpinLock<Os, Fifo, WholeWord>;

/// The compared locks are those of programs: no hooks watch how their threads wait.
const _: () = {
    const fn is_unwatched<W: Wait<Hooks = Unwatched>>() {}
    is_unwatched::<Spin>();
    is_unwatched::<SpinThenYield>();
};

/// Lock, try_lock and unlock of each lock, once for ours and once for the twin.
macro_rules! operations {
    ($($lock:ident $try_lock:ident $unlock:ident: $ours:ty, $hand:ty;)*) => {
        /// The locks of this repository.
        pub mod ours {
            use super::*;
            $(operations! { @one $lock $try_lock $unlock $ours })*
        }

        /// The twins.
        pub mod hand {
            use super::*;
            $(operations! { @one $lock $try_lock $unlock $hand })*
        }
    };
    (@one $lock:ident $try_lock:ident $unlock:ident $type:ty) => {
        /// # Safety
        ///
        /// As [`RawLock::lock`].
        #[inline(never)]
        pub unsafe fn $lock(lock: &$type, node: &<$type as RawLock>::Node) {
            // SAFETY: upheld by the caller.
            unsafe { lock.lock(node) }
        }
        /// # Safety
        ///
        /// As [`RawTryLock::try_lock`].
        #[inline(never)]
        pub unsafe fn $try_lock(lock: &$type, node: &<$type as RawLock>::Node) -> bool {
            // SAFETY: upheld by the caller.
            unsafe { lock.try_lock(node) }
        }
        /// # Safety
        ///
        /// As [`RawLock::unlock`].
        #[inline(never)]
        pub unsafe fn $unlock(lock: &$type, node: &<$type as RawLock>::Node) {
            // SAFETY: upheld by the caller.
            unsafe { lock.unlock(node) }
        }
    };
}

operations! {
    tas_lock tas_try_lock tas_unlock: classic::RawTasLock, locks::Tas;
    ttas_lock ttas_try_lock ttas_unlock: classic::RawTtasLock, locks::Ttas;
    ttas_no_preread_lock ttas_no_preread_try_lock ttas_no_preread_unlock: RawTtasNoPreReadLock, locks::Tas;
    ticket_lock ticket_try_lock ticket_unlock: classic::RawTicketLock, locks::Ticket;
    mcs_lock mcs_try_lock mcs_unlock: classic::RawMcsLock, locks::Mcs;
    clh_lock clh_try_lock clh_unlock: classic::RawClhLock, locks::Clh;
    qspinlock_lock qspinlock_try_lock qspinlock_unlock: linux::RawQSpinLock, ByteRelease;
    qspinlock_whole_word_lock qspinlock_whole_word_try_lock qspinlock_whole_word_unlock:
        RawWholeWordLock, locks::WholeRelease;
    qspinlock_preemptible_lock qspinlock_preemptible_try_lock qspinlock_preemptible_unlock:
        linux::RawPreemptibleQSpinLock, WakingRelease;
    cna_lock cna_try_lock cna_unlock: linux::RawCnaV15Lock, ByteRelease;
    cna_v13_lock cna_v13_try_lock cna_v13_unlock: linux::RawCnaV13Lock, ByteRelease;
    freebsd_mtx_lock freebsd_mtx_try_lock freebsd_mtx_unlock: Mtx<Os>, locks::Owned;
    freebsd_spin_mtx_lock freebsd_spin_mtx_try_lock freebsd_spin_mtx_unlock: SpinMtx<Os>, locks::SpinOwned;
    freebsd_rw_lock freebsd_rw_try_lock freebsd_rw_unlock: Rw<Os>, locks::Written;
    freebsd_sx_lock freebsd_sx_try_lock freebsd_sx_unlock: Sx<Os>, locks::Written;
    freebsd_lockmgr_lock freebsd_lockmgr_try_lock freebsd_lockmgr_unlock: LockMgr<Os>, locks::Managed;
    near_mutex_lock near_mutex_try_lock near_mutex_unlock: NearMutex<Os>, locks::PlainRelease;
    control_lock control_try_lock control_unlock: locks::Control, locks::Tas;
}

/// A critical section under a lock that protects data: lock, add, and unlock when the guard is
/// dropped.
macro_rules! sections {
    ($($section:ident $try_section:ident: $ours:ty, $hand:ty;)*) => {
        /// The [operations](self) of guards.
        pub mod ours_guards {
            use super::*;
            $(
                /// Waits for the lock.
                #[inline(never)]
                pub fn $section(lock: &$ours) {
                    *lock.lock() += 1;
                }
                /// Adds only if the lock is free.
                #[inline(never)]
                pub fn $try_section(lock: &$ours) -> bool {
                    let guard = lock.try_lock();
                    guard.map(|mut guard| *guard += 1).is_some()
                }
            )*
        }

        /// The same by hand.
        pub mod hand_guards {
            use super::*;
            $(
                /// Waits for the lock.
                #[inline(never)]
                pub fn $section(lock: &locks::Guarded<$hand>) {
                    lock.add();
                }
                /// Adds only if the lock is free.
                #[inline(never)]
                pub fn $try_section(lock: &locks::Guarded<$hand>) -> bool {
                    lock.try_add()
                }
            )*
        }
    };
}

sections! {
    fifo_spin_lock_guard fifo_spin_lock_try_guard: FifoSpinLock<u32>, ByteRelease;
    spin_lock_guard spin_lock_try_guard: SpinLock<u32>, WakingRelease;
    cna_lock_guard cna_lock_try_guard: CnaLock<u32>, WakingRelease;
}

/// Narrow stores with Release, of a value that is not 0. No lock here uses them today, but a
/// platform must have them.
pub mod ours_words {
    use super::*;

    /// Stores bits 0 to 7.
    #[inline(never)]
    pub fn release_low_byte(word: &AtomicU32) {
        word.store_low_byte(locks::RELEASED as u8, Release);
    }
    /// Stores bits 0 to 15.
    #[inline(never)]
    pub fn release_low_half(word: &AtomicU32) {
        word.store_low_half(locks::RELEASED, Release);
    }
}

/// The same by hand.
pub mod hand_words {
    use super::*;

    /// Stores bits 0 to 7.
    #[inline(never)]
    pub fn release_low_byte(word: &AtomicU32) {
        locks::release_low_byte(word);
    }
    /// Stores bits 0 to 15.
    #[inline(never)]
    pub fn release_low_half(word: &AtomicU32) {
        locks::release_low_half(word);
    }
}

/// Sizes in bytes. They are functions, because a listing does not show the value of a static.
pub mod sizes {
    use super::*;

    macro_rules! sizes {
        ($($name:ident: $type:ty;)*) => {
            $(
                /// The size of this lock or node.
                #[inline(never)]
                pub fn $name() -> usize {
                    size_of::<$type>()
                }
            )*
        };
    }

    sizes! {
        tas: classic::RawTasLock;
        ttas: classic::RawTtasLock;
        ticket: classic::RawTicketLock;
        mcs: classic::RawMcsLock;
        mcs_node: classic::RawMcsNode;
        clh: classic::RawClhLock;
        clh_node: classic::RawClhNode;
        qspinlock: linux::RawQSpinLock;
        qspinlock_whole_word: RawWholeWordLock;
        qspinlock_preemptible: linux::RawPreemptibleQSpinLock;
        cna: linux::RawCnaV15Lock;
        cna_v13: linux::RawCnaV13Lock;
        freebsd_mtx: Mtx<Os>;
        freebsd_spin_mtx: SpinMtx<Os>;
        freebsd_rw: Rw<Os>;
        freebsd_sx: Sx<Os>;
        freebsd_lockmgr: LockMgr<Os>;
        near_mutex: NearMutex<Os>;
        fifo_spin_lock: FifoSpinLock<()>;
        spin_lock: SpinLock<()>;
        cna_lock: CnaLock<()>;
    }
}
