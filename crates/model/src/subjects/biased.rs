//! Models of the thread-biased mutex: an owner that takes it without a read-modify-write, and those who end that.
//!
//! The lock is the eager one, which is biased to whoever has taken it last.

use std::sync::Arc;

use nearlock_core::events::LockEvent::{BiasGrant, BiasRevoke, BiasSleep};
use nearlock_core::near::biased::{Eager, NearBiasedMutex};
use nearlock_core::raw::RawLock;

use crate::engine::{Counter, Engine};
use crate::exclusion::{Guarded, held_at_first, in_slot};
use crate::loom::Loom;
use crate::model::Model;
use crate::released::{Fair, UnlockFair};

type Mutex = NearBiasedMutex<Loom, Eager>;

impl UnlockFair for Mutex {
    unsafe fn unlock_fair(&self) {
        // SAFETY: the caller's.
        unsafe { self.unlock_fair() };
    }
}

/// The first thread is the owner. It takes the lock by bias so many times, and others once each.
fn owned_at_first(name: &str, others: u32, rounds: u32, preemptions: Option<usize>) -> Model {
    let title = format!("{name}: owned at first, {rounds} sections of the owner, {others} others");
    Model::new(title, others + 1, preemptions, move || {
        let shared = Arc::new(Guarded::<Loom, Mutex>::default());
        shared.section();
        let others: Vec<_> = (1..=others)
            .map(|slot| {
                let shared = shared.clone();
                Loom::spawn(in_slot(slot), move || shared.section())
            })
            .collect();
        (0..rounds).for_each(|_| shared.section());
        let sections = 1 + rounds + others.len() as u32;
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(shared.count.get(), sections);
    })
    .reaching(&[BiasGrant, BiasRevoke])
}

/// An owner ends; the next thread has its slot, and what is biased to it.
fn inherited(name: &str, preemptions: Option<usize>) -> Model {
    Model::new(format!("{name}: the owner's slot has another thread"), 2, preemptions, move || {
        let shared = Arc::new(Guarded::<Loom, Mutex>::default());
        let in_the_slot = |shared: &Arc<Guarded<Loom, Mutex>>| {
            let shared = shared.clone();
            Loom::spawn(in_slot(1), move || shared.section())
        };
        in_the_slot(&shared).join().unwrap();
        let next = in_the_slot(&shared);
        shared.section();
        next.join().unwrap();
        assert_eq!(shared.count.get(), 3);
    })
    .reaching(&[BiasRevoke])
}

/// The first thread is the owner of two locks that have one place of its line, and holds them one in the other. Others take them.
fn nested(name: &str, preemptions: Option<usize>) -> Model {
    Model::new(format!("{name}: two locks of one owner"), 2, preemptions, move || {
        let shared = Arc::new([Guarded::<Loom, Mutex>::default(), Guarded::default()]);
        let [outer, inner] = &*shared;
        inner.section();
        let hold = |guarded: &Guarded<Loom, Mutex>| {
            // SAFETY: the node is ().
            unsafe { guarded.lock.lock(&()) };
            guarded.count.add_one();
        };
        // SAFETY: locked by `hold` above.
        let release = |guarded: &Guarded<Loom, Mutex>| unsafe { guarded.lock.unlock(&()) };
        hold(outer);
        hold(inner);
        let other = {
            let shared = shared.clone();
            Loom::spawn(in_slot(1), move || shared.iter().for_each(Guarded::section))
        };
        release(outer);
        release(inner);
        inner.section();
        other.join().unwrap();
        assert_eq!((outer.count.get(), inner.count.get()), (2, 4));
    })
    .reaching(&[BiasRevoke])
}

/// Those of its own states.
pub fn mutex(name: &str) -> Vec<Model> {
    vec![
        owned_at_first(name, 1, 1, Some(3)),
        owned_at_first(name, 1, 2, Some(3)),
        owned_at_first(name, 2, 1, Some(1)),
        held_at_first::<Loom, Mutex>(name, 2, Some(4)).reaching(&[BiasRevoke, BiasSleep]),
        held_at_first::<Loom, Mutex>(name, 3, Some(2)).reaching(&[BiasSleep]),
        held_at_first::<Loom, Fair<Mutex>>(&format!("{name}: released fairly"), 2, Some(2))
            .reaching(&[BiasRevoke]),
        inherited(name, Some(3)),
        nested(name, Some(2)),
    ]
}
