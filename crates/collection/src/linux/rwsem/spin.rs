//! Threads that spin instead of queueing, one at a time.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use super::{
    HANDOFF, HELD, NOT_FOR_SPINNERS, OWNED_BY_READERS, OWNER_SHIFT, READER, Rwsem, RwsemPlatform,
    RwsemTuning, WRITER,
};
use crate::events::LockEvent;
use crate::parking::{Limit, WaitLock};
use crate::platform::{Atomic, AtomicInt};
use crate::schedule::{OwnerState, Spin, ThreadId};

/// How many looks a spinner takes for each look at the clock, while readers hold the lock. Source:
/// Linux 5.3. With more, it spins for longer than it should. With fewer, it spends more time on the
/// clock.
const LOOKS_PER_CLOCK: u32 = 1 << 4;

/// The holder of the lock, according to the owner word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    NoThread,
    Writer(ThreadId),
    Readers,
    /// Spinning is useless.
    NotForSpinners,
}

impl Owner {
    fn of(word: u32) -> Self {
        if word & NOT_FOR_SPINNERS != 0 {
            return Self::NotForSpinners;
        }
        if word & OWNED_BY_READERS != 0 {
            return Self::Readers;
        }
        ThreadId::new(word >> OWNER_SHIFT).map_or(Self::NoThread, Self::Writer)
    }

    fn is_writer(self) -> bool {
        matches!(self, Self::Writer(_))
    }
}

impl<P: RwsemPlatform, T: RwsemTuning, W: WaitLock> Rwsem<P, T, W> {
    pub(super) fn owner(&self) -> Owner {
        Owner::of(self.owner.load(Relaxed) & !NOT_FOR_SPINNERS)
    }

    pub(super) fn may_spin(&self, spin: &mut Spin) -> bool {
        !P::should_give_way(spin)
            && match Owner::of(self.owner.load(Relaxed)) {
                Owner::Writer(owner) => P::owner_state(owner) != OwnerState::Asleep,
                Owner::NotForSpinners => false,
                Owner::Readers => T::reader_owned_spin(),
                Owner::NoThread => true,
            }
    }

    /// Spins until `attempt` succeeds. False if there is a reason to stop, such as a limit that is
    /// reached.
    pub(super) fn spin(
        &self,
        me: ThreadId,
        mut spin: Spin,
        limit: &Limit<'_, P>,
        attempt: impl Fn() -> bool,
    ) -> bool {
        let is_over = || limit.is_reached().is_some();
        let turn = |spin: &mut Spin| self.spin_in_turn(spin, limit, attempt);
        // SAFETY: `is_over` and `turn` do not unwind.
        let taken = unsafe { self.spinners.with_turn(me, &mut spin, is_over, turn) };
        let succeeded = taken == Some(true);
        P::count(if succeeded { LockEvent::RwsemOptLock } else { LockEvent::RwsemOptFail });
        succeeded
    }

    fn spin_in_turn(&self, spin: &mut Spin, limit: &Limit<'_, P>, attempt: impl Fn() -> bool) -> bool {
        let (mut before, mut until_ns, mut looks) = (Owner::NoThread, 0, 0_u32);
        loop {
            let owner = self.owner_after_spin(spin, limit);
            if owner == Owner::NotForSpinners {
                return false;
            }
            if attempt() {
                return true;
            }
            if limit.is_reached().is_some() {
                return false;
            }
            if owner == Owner::Readers {
                if before != Owner::Readers {
                    let Some(until) = self.reader_spin_until_ns() else { return false };
                    (until_ns, looks) = (until, 0);
                }
                looks += 1;
                if looks.is_multiple_of(LOOKS_PER_CLOCK) && P::now_ns() > until_ns {
                    self.readers_stay();
                    return false;
                }
            }
            // An urgent thread does not spin for a holder that may not run.
            let may_not_run = !owner.is_writer() && !before.is_writer();
            if P::should_give_way(spin) || may_not_run && P::is_priority() {
                return false;
            }
            before = owner;
            P::cpu_relax(spin.turns);
        }
    }

    /// Spins while the same writer holds the lock and runs, and the limit is not reached. Returns
    /// the holder after that.
    pub(super) fn owner_after_spin(&self, spin: &mut Spin, limit: &Limit<'_, P>) -> Owner {
        let word = self.owner.load(Relaxed);
        let Owner::Writer(owner) = Owner::of(word) else { return Owner::of(word) };
        let done = |now| now != word || limit.is_reached().is_some();
        match P::spin_on_owner(spin, &self.owner, Relaxed, owner, done) {
            Ok(now) => Owner::of(now),
            Err(_) => Owner::NotForSpinners,
        }
    }

    /// The time until which to spin for readers, if at all.
    pub(super) fn reader_spin_until_ns(&self) -> Option<u64> {
        if !T::reader_owned_spin() {
            return None;
        }
        let readers = (self.count.load(Relaxed) / READER).min(T::reader_spin_readers());
        let spin_ns =
            readers.saturating_mul(T::reader_spin_each_ns()).saturating_add(T::reader_spin_base_ns());
        Some(P::now_ns().saturating_add(spin_ns))
    }

    /// Says that readers hold the lock for too long to spin for them, if they still hold it.
    pub(super) fn readers_stay(&self) {
        let mut owner = self.owner.load(Relaxed);
        while owner & OWNED_BY_READERS != 0 && owner & NOT_FOR_SPINNERS == 0 {
            match self.owner.compare_exchange(owner, owner | NOT_FOR_SPINNERS, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(now) => owner = now,
            }
        }
    }

    /// Takes back what `readers_stay` has said.
    pub(super) fn readers_have_gone(&self) {
        if self.owner.load(Relaxed) & NOT_FOR_SPINNERS != 0 {
            self.owner.fetch_and(!NOT_FOR_SPINNERS, Relaxed);
        }
    }

    /// An attempt of a writer that is in no queue.
    pub(super) fn try_ahead_of_queue(&self, me: ThreadId) -> bool {
        let mut count = self.count.load(Relaxed);
        while count & (HELD | HANDOFF) == 0 {
            // 0,0,*,0 -> 0,0,*,1
            // Ordering: Acquire, pairs with the Releases of the previous holders.
            match self.count.compare_exchange(count, count | WRITER, Acquire, Relaxed) {
                Ok(_) => {
                    self.note_writer(me);
                    return true;
                }
                Err(now) => count = now,
            }
        }
        false
    }

    /// An attempt of a reader that is in no queue.
    pub(super) fn try_shared_ahead_of_queue(&self) -> bool {
        let mut count = self.count.load(Relaxed);
        while count & (WRITER | HANDOFF) == 0 {
            // Ordering: Acquire, pairs with the Releases in `unlock` and `downgrade`.
            match self.count.compare_exchange(count, count + READER, Acquire, Relaxed) {
                Ok(_) => {
                    self.note_readers();
                    P::count(LockEvent::RwsemRlockSteal);
                    return true;
                }
                Err(now) => count = now,
            }
        }
        false
    }
}
