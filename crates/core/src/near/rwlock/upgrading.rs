//! Upgradable reads, and downgrades. The terms are those of the [lock](super).
//!
//! An upgradable reader has the mutex, and opens the lock for other readers. So there is one at a
//! time, and no writer beside it. It is not counted. To upgrade, it closes the lock, and waits for
//! the readers that are in.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use super::lines::Taking;
use super::reading::{Releaser, Slices};
use super::writing::YIELDS;
use super::{NearRwLock, RwLockPlatform};
use crate::near::mutex::NearMutex;
use crate::parking::{GaveUp, Limit, RawTimedLock};
use crate::platform::Atomic;
use crate::raw::{RawLock, RawTryLock};
use crate::schedule::Spin;

/// In how many looks in a row a reader must have the mutex for it to be taken over: 30 ns. There
/// are more looks where a cache line takes longer. The value was chosen; no comparison with others
/// is kept. At 1 a reader that is about to release the mutex is interrupted. At a great value an
/// upgradable reader waits although it could enter.
const LONG_LOOKS: u32 = 4;
const STRIDE_NS: u32 = 10;

impl<P: RwLockPlatform> NearRwLock<P> {
    /// Acquires the lock as an upgradable reader, within the limit.
    ///
    /// # Errors
    ///
    /// Why it was not acquired.
    ///
    /// # Safety
    ///
    /// As [`RawLock::lock`], up to [`unlock_upgradable`](Self::unlock_upgradable), an upgrade or a
    /// downgrade.
    pub unsafe fn lock_upgradable_within(&self, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        let mut slices = Slices::default();
        // SAFETY: the caller's.
        while !unsafe { self.try_lock_upgradable() } {
            if self.waits_behind_writers() {
                self.park_behind_writers(limit);
            } else {
                // SAFETY: the caller's.
                match unsafe { self.mutex.lock_within(&(), &slices.next(limit)) } {
                    Ok(()) => {
                        self.let_readers_in();
                        return Ok(());
                    }
                    Err(GaveUp::Cancelled) => return Err(GaveUp::Cancelled),
                    Err(GaveUp::TimedOut) => {}
                }
            }
            if let Some(why) = limit.is_reached() {
                return Err(why);
            }
        }
        Ok(())
    }

    /// The same, if there is neither a writer nor another upgradable reader. A writer counts too
    /// that waits for a reader with the mutex, unless the caller is that reader.
    ///
    /// # Safety
    ///
    /// As there, if it returns true.
    pub unsafe fn try_lock_upgradable(&self) -> bool {
        let mut spin = Spin::default();
        // One heavy side of the fence per call is enough.
        let mut taking = None;
        for turn in 0.. {
            // SAFETY: the caller's.
            let mut has_mutex = unsafe { self.mutex.try_lock(&()) };
            if !has_mutex && self.waits_behind_writers() {
                return false;
            }
            if !has_mutex && taking.is_none() && self.stays_open() {
                taking = self.take_over();
                has_mutex = taking == Some(Taking::Done);
            }
            if has_mutex {
                self.let_readers_in();
                return true;
            }
            // A reader that has the mutex may be about to note that, or to release it. Or another
            // thread takes the mutex over from it.
            if self.mutex.is_closed() || turn > 0 && P::should_give_way(&mut spin) || turn == YIELDS {
                return false;
            }
            P::sched_yield();
        }
        false
    }

    /// Whether writers wait for a reader that has the mutex, and the caller does not hold the lock
    /// already.
    fn waits_behind_writers(&self) -> bool {
        if !self.is_closed_by_waiters() {
            return false;
        }
        let line = Self::own_line();
        !line.may_hold_others() && line.held(self.id.load(Relaxed)).is_none()
    }

    /// Whether a reader has the mutex, and reads for longer than it takes to get the cache line.
    fn stays_open(&self) -> bool {
        let mut spin = Spin::default();
        // A reader that releases the mutex notes a read before.
        let reads = self.reads.load_hint();
        let is_open = (0..LONG_LOOKS.max(NearMutex::<P>::looks_of_transfer())).all(|look| {
            if look != 0 {
                NearMutex::<P>::pause(STRIDE_NS, &mut spin);
            }
            self.mutex.is_open()
        });
        is_open && self.reads.load_hint() == reads
    }

    /// Releases an upgradable acquisition.
    ///
    /// # Safety
    ///
    /// The caller has one.
    pub unsafe fn unlock_upgradable(&self) {
        self.close();
        // SAFETY: the caller's.
        unsafe { self.release() };
    }

    /// Turns an upgradable acquisition into an exclusive one, within the limit. On an error it is
    /// still upgradable.
    ///
    /// # Errors
    ///
    /// Why it was not upgraded.
    ///
    /// # Safety
    ///
    /// The caller has an upgradable acquisition.
    pub unsafe fn upgrade_within(&self, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        self.close_behind_fence();
        self.wait_for_readers(limit).inspect_err(|_| self.let_readers_in())
    }

    /// The same, if no reader is in.
    ///
    /// # Safety
    ///
    /// The caller has an upgradable acquisition.
    pub unsafe fn try_upgrade(&self) -> bool {
        if self.has_readers() {
            return false;
        }
        self.close_behind_fence();
        let enters = self.becomes_empty();
        if !enters {
            self.let_readers_in();
        }
        enters
    }

    /// Turns an exclusive acquisition into an upgradable one.
    ///
    /// # Safety
    ///
    /// The caller holds the lock exclusively.
    pub unsafe fn downgrade_to_upgradable(&self) {
        self.let_readers_in();
    }

    /// Turns an upgradable acquisition into a shared one.
    ///
    /// # Safety
    ///
    /// The caller has an upgradable acquisition.
    pub unsafe fn downgrade_upgradable(&self) {
        self.close_for(Releaser::Reader);
    }

    /// Turns an upgradable acquisition into one that this thread, or any, releases.
    pub(super) fn close_for(&self, by: Releaser) {
        self.enter_with_mutex(by);
        self.close();
        // SAFETY: the caller has the mutex.
        unsafe { self.release() };
    }

    /// Turns the caller's exclusive acquisition into a shared one.
    pub(super) fn downgrade_to_shared(&self, by: Releaser) {
        self.enter_with_mutex(by);
        // SAFETY: the caller has the mutex.
        unsafe { self.release() };
    }

    /// As [`unlock_upgradable`](Self::unlock_upgradable), but hands the lock over to a thread that
    /// waits to be a writer or an upgradable reader.
    ///
    /// # Safety
    ///
    /// The caller has an upgradable acquisition.
    pub unsafe fn unlock_upgradable_fair(&self) {
        self.close();
        // SAFETY: the caller's.
        unsafe { self.release_fair() };
    }

    /// Releases an exclusive acquisition, and lets those enter that wait for it.
    ///
    /// # Safety
    ///
    /// The caller holds the lock exclusively.
    pub unsafe fn unlock_fair(&self) {
        self.let_waiting_readers_in();
        self.close();
        // SAFETY: the caller's.
        unsafe { self.release_fair() };
    }

    /// Lets those enter that wait for an exclusive acquisition, and acquires the lock exclusively
    /// again.
    ///
    /// # Safety
    ///
    /// The caller holds the lock exclusively.
    pub unsafe fn bump(&self) {
        // SAFETY: the caller's.
        unsafe {
            self.unlock_fair();
            self.lock(&());
        }
    }

    /// Lets readers in until none waits, or for some time.
    fn let_waiting_readers_in(&self) {
        let waiting = P::waiting_readers(self.id.load(Relaxed));
        if waiting.load(Relaxed) == 0 {
            return;
        }
        self.let_readers_in();
        let mut spin = Spin::default();
        for _ in 0..YIELDS {
            if waiting.load(Relaxed) == 0 || P::should_give_way(&mut spin) {
                return;
            }
            P::sched_yield();
        }
    }

    /// Lets no more readers in. Readers that are in can be seen afterwards.
    fn close_behind_fence(&self) {
        self.close();
        // Ordering: SeqCst, for Dekker's pattern, with `enters_by_count`: the lock is closed before
        // it, and the count is read after it.
        P::fence(SeqCst);
    }

    fn let_readers_in(&self) {
        self.open();
        self.wake_parked();
    }
}
