//! Writers that spin, one of them at a time: the others queue behind it, each at a word of its own.

use core::sync::atomic::Ordering::Relaxed;

use super::{RwsemXadd, XaddTuning};
use crate::events::LockEvent;
use crate::parking::WaitLock;
use crate::platform::{Atomic, Park, Priority};
use crate::schedule::{OwnerState, Schedule, Spin, ThreadId};

impl<P: Park + Schedule + Priority, T: XaddTuning, W: WaitLock> RwsemXadd<P, T, W> {
    /// Spins until `attempt` succeeds, or there is reason to stop: then false.
    pub(super) fn spin(&self, attempt: impl Fn() -> bool) -> bool {
        let mut spin = Spin::default();
        if P::should_give_way(&mut spin) || !self.may_spin() {
            P::count(LockEvent::RwsemOptNospin);
            return false;
        }
        // SAFETY: looks and attempts do not unwind.
        let succeeded = unsafe { self.spinners.as_head(|| self.spin_as_head(&mut spin, attempt)) };
        P::count(if succeeded { LockEvent::RwsemOptLock } else { LockEvent::RwsemOptFail });
        succeeded
    }

    /// Who writes, if somebody has said so.
    fn owner(&self) -> Option<ThreadId> {
        ThreadId::new(self.owner.load(Relaxed))
    }

    fn may_spin(&self) -> bool {
        match self.owner() {
            Some(owner) => P::owner_state(owner) != OwnerState::Asleep,
            None => T::spins_without_owner(),
        }
    }

    fn spin_as_head(&self, spin: &mut Spin, attempt: impl Fn() -> bool) -> bool {
        loop {
            if let Some(owner) = self.owner() {
                let gone = P::spin_on_owner(spin, &self.owner, Relaxed, owner, |now| now != owner.get());
                if gone.is_err() {
                    return false;
                }
            }
            if attempt() {
                return true;
            }
            // Nobody writes: readers hold it, or a writer that has not said so yet, and may not run. Whoever
            // is urgent does not wait to see.
            if self.owner().is_none() && (P::should_give_way(spin) || P::is_priority()) {
                return false;
            }
            P::cpu_relax(spin.turns);
        }
    }
}
