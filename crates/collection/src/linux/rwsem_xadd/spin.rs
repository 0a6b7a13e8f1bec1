//! Spinning writers: one of them looks at the lock, and the others queue behind it, each at its own
//! node.

use core::sync::atomic::Ordering::Relaxed;

use super::{RwsemXadd, XaddTuning};
use crate::events::LockEvent;
use crate::parking::WaitLock;
use crate::platform::{Atomic, Park, Priority};
use crate::schedule::{OwnerState, Schedule, Spin, ThreadId};

impl<P: Park + Schedule + Priority, T: XaddTuning, W: WaitLock> RwsemXadd<P, T, W> {
    /// Spins until `attempt` succeeds. False if there is a reason to stop.
    pub(super) fn spin(&self, attempt: impl Fn() -> bool) -> bool {
        let mut spin = Spin::default();
        if P::should_give_way(&mut spin) || !self.may_spin() {
            P::count(LockEvent::RwsemOptNospin);
            return false;
        }
        // SAFETY: `spin_as_head` does not unwind.
        let succeeded = unsafe { self.spinners.as_head(|| self.spin_as_head(&mut spin, attempt)) };
        P::count(if succeeded { LockEvent::RwsemOptLock } else { LockEvent::RwsemOptFail });
        succeeded
    }

    /// The writing thread, if it has said so.
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
            // No thread is known to write: readers hold the lock, or a writer that has not said so
            // yet, and may not run. An urgent thread does not wait to see.
            if self.owner().is_none() && (P::should_give_way(spin) || P::is_priority()) {
                return false;
            }
            P::cpu_relax(spin.turns);
        }
    }
}
