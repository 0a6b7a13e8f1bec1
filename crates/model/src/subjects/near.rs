//! Models of the mutex that is released by a plain store: the first in line, which looks, summons a release and sleeps, and
//! releases that see it or not.

use nearlock_core::events::LockEvent::{
    MutexAfterSleep, MutexAtOnce, MutexHandOver, MutexOptLock, MutexSleep, MutexWake,
};
use nearlock_core::near::mutex::NearMutex;
use nearlock_core::raw::RawLock;

use crate::exclusion::held_at_first;
use crate::loom::Loom;
use crate::model::Model;

type Mutex = NearMutex<Loom>;

/// A mutex that can be released for whoever is first in line.
pub trait UnlockFair: RawLock<Node = ()> {
    /// Safety: as [`RawLock::unlock`].
    unsafe fn unlock_fair(&self);
}

impl UnlockFair for Mutex {
    unsafe fn unlock_fair(&self) {
        // SAFETY: the caller's.
        unsafe { self.unlock_fair() };
    }
}

/// Always released so.
#[derive(Default)]
pub struct Fair<L>(L);

// SAFETY: is the lock inside.
unsafe impl<L: UnlockFair> RawLock for Fair<L> {
    type Node = ();
    unsafe fn lock(&self, node: &()) {
        // SAFETY: the caller's; so below.
        unsafe { self.0.lock(node) };
    }
    unsafe fn unlock(&self, _node: &()) {
        // SAFETY: as above.
        unsafe { self.0.unlock_fair() };
    }
}

/// Released when whoever is first in line has waited for long.
#[derive(Default)]
struct Overdue(Mutex);

/// Longer than the first in line waits until it is its turn.
const LONG_NS: u64 = 10_000_000;

// SAFETY: is the lock inside.
unsafe impl RawLock for Overdue {
    type Node = ();
    unsafe fn lock(&self, node: &()) {
        // SAFETY: the caller's; so below.
        unsafe { self.0.lock(node) };
    }
    unsafe fn unlock(&self, node: &()) {
        Loom::set_now_ns(LONG_NS);
        // SAFETY: as above.
        unsafe { self.0.unlock(node) };
    }
}

/// Those of its own states.
pub fn mutex(name: &str) -> Vec<Model> {
    let reaches = &[MutexOptLock, MutexAtOnce, MutexSleep, MutexAfterSleep, MutexWake];
    vec![
        held_at_first::<Loom, Mutex>(name, 2, Some(4)).reaching(reaches),
        held_at_first::<Loom, Mutex>(name, 3, Some(2)).reaching(&[MutexAfterSleep, MutexHandOver]),
        held_at_first::<Loom, Fair<Mutex>>(&format!("{name}: released fairly"), 2, Some(2))
            .reaching(&[MutexHandOver]),
        held_at_first::<Loom, Overdue>(&format!("{name}: released late"), 3, Some(2))
            .reaching(&[MutexHandOver]),
    ]
}
