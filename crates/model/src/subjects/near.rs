//! Models of the mutex that is unlocked by a plain store. The first in the queue looks, requests a
//! release and sleeps; unlocks see the request or not.

use std::sync::Arc;

use nearlock_core::events::LockEvent::{
    MutexAfterSleep, MutexAtOnce, MutexHandOver, MutexOptLock, MutexSleep, MutexWake,
};
use nearlock_core::near::mutex::NearMutex;
use nearlock_core::parking::{GaveUp, Limit, RawTimedLock};
use nearlock_core::raw::RawLock;

use crate::engine::{Counter, Others};
use crate::exclusion::{Guarded, held_at_first, in_slot};
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

/// Longer than a waiter parks with an alarm.
const LONG_NS: u64 = 10_000_000;

/// As [`held_at_first`], with one waiter. A waiter that has given up has made the chain strong.
fn in_strong_chain(name: &str, preemptions: usize) -> Model {
    let title = format!("{name}: held at first in a strong chain, 1 waiters");
    Model::new(title, 2, Some(preemptions), || {
        let shared = Arc::new(Guarded::<Loom, Mutex>::default());
        // SAFETY: unlocked below.
        unsafe { shared.lock.lock(&()) };
        // SAFETY: it is not locked a second time.
        let end = unsafe { shared.lock.lock_within(&(), &Limit::until(LONG_NS)) };
        assert_eq!(end, Err(GaveUp::TimedOut));
        let mut others = Others::<Loom>::default();
        let waiter = shared.clone();
        others.spawn(in_slot(1), move || waiter.section());
        shared.count.add_one();
        // SAFETY: locked above.
        unsafe { shared.lock.unlock(&()) };
        others.join();
        assert_eq!(shared.count.get(), 2);
    })
}

/// The models of the special states of this mutex.
pub fn mutex(name: &str) -> Vec<Model> {
    let reaches = &[MutexOptLock, MutexAtOnce, MutexSleep, MutexAfterSleep, MutexHandOver, MutexWake];
    let unknown = format!("{name}: the light side not known");
    vec![
        held_at_first::<Loom, Mutex>(name, 2, Some(4)).reaching(reaches),
        held_at_first::<Loom, Mutex>(&unknown, 2, Some(3)).with_unknown_light().reaching(&[MutexAfterSleep]),
        held_at_first::<Loom, Mutex>(name, 3, Some(2)).reaching(&[MutexAfterSleep, MutexHandOver]),
        held_at_first::<Loom, Fair<Mutex>>(&format!("{name}: released fairly"), 2, Some(2))
            .reaching(&[MutexHandOver]),
        held_at_first::<Loom, Overdue<Mutex>>(&format!("{name}: released late"), 2, Some(2))
            .reaching(&[MutexHandOver]),
        in_strong_chain(name, 3).reaching(&[MutexAtOnce, MutexAfterSleep, MutexWake]),
    ]
}
