//! Models of FreeBSD's reader-writer locks: operations that other such locks do not have, and
//! waiters that reach the chain.

use std::sync::Arc;

use nearlock_collection::freebsd::rwsx::{Kind, RwSx};
use nearlock_collection::freebsd::sx::{Sx, SxKind};
use nearlock_core::events::LockEvent::{ChainCancel, ChainSleep, ChainWake, Slowpath};
use nearlock_core::raw::{RawLock, RawRwLock};
use nearlock_core::tuning::Switched;

use crate::engine::{Counter, Others};
use crate::exclusion::{Guarded, in_slot};
use crate::loom::Loom;
use crate::model::Model;
use crate::readers::{Act, Patience, acting, impatient_writer, read_at_first, written_at_first};

/// A lock that is switched as the model says.
type Lock<K> = RwSx<Loom, Switched<Loom>, K>;
type RwSxState<K> = Guarded<Loom, Lock<K>>;

/// The first thread calls `first`, while each of the other threads has one section according to
/// `acts`.
fn against<K: Kind>(
    name: &str,
    what: &str,
    acts: &'static [Act],
    preemptions: usize,
    first: fn(&RwSxState<K>) -> u32,
) -> Model {
    let title = format!("{name}: {what} | {acts:?}");
    Model::new(title, acts.len() as u32 + 1, Some(preemptions), move || {
        let shared = Arc::new(RwSxState::<K>::default());
        let mut others = Others::<Loom>::default();
        for (slot, act) in (1..).zip(acts) {
            let shared = shared.clone();
            others.spawn(in_slot(slot), move || match act {
                Act::Read => _ = shared.shared_section(),
                _ => shared.section(),
            });
        }
        let written = first(&shared);
        others.join();
        let writes = acts.iter().filter(|act| **act != Act::Read).count() as u32;
        assert_eq!(shared.count.get(), written + writes);
        assert!(shared.try_section(), "the lock is free at last");
    })
}

/// Reads, and then writes if no other thread reads.
fn upgrade<K: Kind>(shared: &RwSxState<K>) -> u32 {
    let lock = &shared.lock;
    // SAFETY: what is locked is unlocked; also below.
    unsafe { lock.lock_shared(&()) };
    let count = shared.count.look();
    // SAFETY: shared, once.
    if !unsafe { lock.try_upgrade() } {
        assert_eq!(shared.count.look(), count, "it has kept its share");
        // SAFETY: as above.
        unsafe { lock.unlock_shared(&()) };
        return 0;
    }
    assert_eq!(shared.count.look(), count, "a writer came in between");
    shared.count.add_one();
    // SAFETY: as above.
    unsafe { lock.unlock(&()) };
    1
}

/// Reads twice. A writer that waits in between does not keep the thread out.
fn read_twice<K: Kind>(shared: &RwSxState<K>) -> u32 {
    // SAFETY: what is locked is unlocked; also below.
    unsafe { shared.lock.lock_shared(&()) };
    let count = shared.count.look();
    assert_eq!(shared.shared_section(), count, "a writer came in between");
    // SAFETY: as above.
    unsafe { shared.lock.unlock_shared(&()) };
    0
}

/// Writes in a nested section.
fn write_twice<K: Kind>(shared: &RwSxState<K>) -> u32 {
    // SAFETY: as many unlocks as locks.
    unsafe {
        shared.lock.lock(&());
        shared.lock.lock_recursive();
    }
    shared.count.add_one();
    // SAFETY: as above.
    unsafe { shared.lock.unlock(&()) };
    shared.count.add_one();
    // SAFETY: as above.
    unsafe { shared.lock.unlock(&()) };
    2
}

/// The models of either lock, whatever its switches.
pub fn of<K: Kind>(name: &str) -> Vec<Model> {
    use Act::{Downgrade, Read, TryRead, Write};
    let contended = &[Slowpath, ChainSleep, ChainWake];
    // Waiters that do not spin, so that they reach the chain.
    let sleepy = |model: Model| model.of_lock_with(name, "adaptive", "off");
    let models = [
        against::<K>(name, "an upgrade", &[Read], 3, upgrade),
        against::<K>(name, "an upgrade", &[Read, Write], 1, upgrade),
        against::<K>(name, "a share in a share", &[Write], 2, read_twice),
        against::<K>(name, "a section in a section", &[Write], 2, write_twice),
        acting::<Loom, Lock<K>>(name, &[&[Downgrade], &[Read]], Some(2)),
        acting::<Loom, Lock<K>>(name, &[&[Downgrade], &[Write]], Some(2)),
    ];
    let sleepers = [
        acting::<Loom, Lock<K>>(name, &[&[Downgrade], &[Read], &[TryRead]], Some(2)),
        written_at_first::<Loom, Lock<K>>(name, &[&[Write]], Some(3)).reaching(contended),
        written_at_first::<Loom, Lock<K>>(name, &[&[Read]], Some(3)).reaching(&[ChainCancel, ChainSleep]),
        read_at_first::<Loom, Lock<K>>(name, &[&[Write]], Some(3)).reaching(contended),
    ];
    models.map(|model| model.of_lock(name)).into_iter().chain(sleepers.map(sleepy)).collect()
}

/// The models of sx, whose writers may give up. No thread that waits behind such a writer sleeps
/// forever.
pub fn giving_up(name: &str) -> Vec<Model> {
    let model = |patience, acts, preemptions| {
        impatient_writer::<Loom, Sx<Loom, Switched<Loom>>>(name, patience, acts, Some(preemptions))
            .of_lock(name)
    };
    let mut models = of::<SxKind>(name);
    models.extend([
        model(Patience::Time, &[], 2),
        model(Patience::Cancellation, &[], 1),
        model(Patience::Time, &[&[Act::Read]], 1),
    ]);
    models
}
