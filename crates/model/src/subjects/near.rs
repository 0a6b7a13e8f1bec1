//! Models of the mutex that is unlocked by a plain store. The first in the queue looks, requests a
//! release and sleeps; unlocks see the request or not.

use nearlock_core::events::LockEvent::{
    MutexAfterSleep, MutexAtOnce, MutexHandOver, MutexOptLock, MutexSleep, MutexWake,
};
use nearlock_core::near::mutex::NearMutex;

use crate::exclusion::held_at_first;
use crate::loom::Loom;
use crate::model::Model;
use crate::released::{Fair, Overdue, UnlockFair};

type Mutex = NearMutex<Loom>;

impl UnlockFair for Mutex {
    unsafe fn unlock_fair(&self) {
        // SAFETY: the condition of the caller.
        unsafe { self.unlock_fair() };
    }
}

/// The models of the special states of this mutex.
pub fn mutex(name: &str) -> Vec<Model> {
    let reaches = &[MutexOptLock, MutexAtOnce, MutexSleep, MutexAfterSleep, MutexHandOver, MutexWake];
    vec![
        held_at_first::<Loom, Mutex>(name, 2, Some(4)).reaching(reaches),
        held_at_first::<Loom, Mutex>(name, 3, Some(2)).reaching(&[MutexAfterSleep, MutexHandOver]),
        held_at_first::<Loom, Fair<Mutex>>(&format!("{name}: released fairly"), 2, Some(2))
            .reaching(&[MutexHandOver]),
        held_at_first::<Loom, Overdue<Mutex>>(&format!("{name}: released late"), 2, Some(2))
            .reaching(&[MutexHandOver]),
    ]
}
