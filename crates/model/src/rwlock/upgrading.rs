//! Models of upgradable readers beside other readers. In most, one takes the mutex over from the
//! reader that has it.

use std::sync::Arc;

use nearlock_core::parking::{Limit, RawTimedRwLock};
use nearlock_core::raw::RawRwLock;

use super::{Counted, In, State, against};
use crate::engine::{Counter, Others};
use crate::exclusion::in_slot;
use crate::loom::Loom;
use crate::model::Model;
use crate::readers::Act;

type Shared = Arc<State<Loom, Counted>>;

/// Reads as an upgradable reader.
fn read_upgradably(shared: &State<Loom, Counted>) -> u32 {
    let lock: &In<Loom, Counted> = &shared.lock;
    // SAFETY: what is locked is unlocked; also below. Without a limit no call gives up.
    unsafe { _ = lock.0.lock_upgradable_within(&Limit::NONE) };
    let count = shared.count.look();
    // SAFETY: as above.
    unsafe { lock.0.unlock_upgradable() };
    count
}

/// The same, if no call has to wait for long.
fn try_read_upgradably(shared: &State<Loom, Counted>) {
    // SAFETY: as above.
    if unsafe { shared.lock.0.try_lock_upgradable() } {
        shared.count.look();
        // SAFETY: as above.
        unsafe { shared.lock.0.unlock_upgradable() };
    }
}

/// The first thread reads until upgradable readers have read, one in each other thread.
fn read_for_upgradables(name: &str, upgradables: u32, preemptions: usize) -> Model {
    let title = format!("{name}: a read that waits for {upgradables} upgradable ones");
    Model::new(title, upgradables + 1, Some(preemptions), move || {
        let shared = Shared::default();
        // SAFETY: unlocked below.
        unsafe { shared.lock.lock_shared(&()) };
        let mut others = Others::<Loom>::default();
        for slot in 1..=upgradables {
            let shared = shared.clone();
            others.spawn(in_slot(slot), move || assert_eq!(read_upgradably(&shared), 0));
        }
        others.join();
        // SAFETY: locked above.
        unsafe { shared.lock.unlock_shared(&()) };
        assert!(shared.try_section(), "the lock is free at last");
    })
}

/// The first thread reads some times in a row, in the same slot. Meanwhile upgradable readers come,
/// and writers.
fn reads(name: &str, reads: u32, upgradables: u32, writers: u32, preemptions: usize) -> Model {
    let title = format!(
        "{name}: {reads} reads in a row | {upgradables} attempts to read upgradably | {writers} writers"
    );
    Model::new(title, upgradables + writers + 1, Some(preemptions), move || {
        let shared = Shared::default();
        let mut others = Others::<Loom>::default();
        for slot in 1..=upgradables + writers {
            let shared = shared.clone();
            others.spawn(in_slot(slot), move || match slot <= upgradables {
                true => try_read_upgradably(&shared),
                false => shared.section(),
            });
        }
        (0..reads).for_each(|_| _ = shared.shared_section());
        others.join();
        assert_eq!(shared.count.get(), writers);
        assert!(shared.try_section(), "the lock is free at last");
    })
}

/// The first thread reads, writes, and reads again, in the same slot. Meanwhile an upgradable
/// reader comes. It may have found the first read, and take the mutex over from the second one.
fn a_write_between(name: &str, preemptions: usize) -> Model {
    let title = format!("{name}: a read, a write and a read | an attempt to read upgradably");
    Model::new(title, 2, Some(preemptions), move || {
        let shared = Shared::default();
        // SAFETY: what is locked is unlocked; also below.
        unsafe { shared.lock.lock_shared(&()) };
        let mut others = Others::<Loom>::default();
        let upgradable = shared.clone();
        others.spawn(in_slot(1), move || try_read_upgradably(&upgradable));
        // SAFETY: as above.
        unsafe { shared.lock.unlock_shared(&()) };
        let writes = u32::from(shared.try_section());
        // SAFETY: as above.
        unsafe { shared.lock.lock_shared(&()) };
        others.join();
        // SAFETY: as above.
        unsafe { shared.lock.unlock_shared(&()) };
        assert_eq!(shared.count.get(), writes);
        assert!(shared.try_section(), "the lock is free at last");
    })
}

/// Two threads read, one after the other, each in its own line. An upgradable reader comes while
/// the first one reads, and ends while the second one does. It may have found the line of the
/// first, and the word of the second.
fn one_after_the_other(name: &str, preemptions: usize) -> Model {
    let title = format!("{name}: a read, and one by another thread | an attempt to read upgradably");
    Model::new(title, 3, Some(preemptions), move || {
        let shared = Shared::default();
        // SAFETY: what is locked is unlocked; also below.
        unsafe { shared.lock.lock_shared(&()) };
        let mut upgradable = Others::<Loom>::default();
        let upgrader = shared.clone();
        upgradable.spawn(in_slot(1), move || try_read_upgradably(&upgrader));
        // SAFETY: as above.
        unsafe { shared.lock.unlock_shared(&()) };
        let mut second = Others::<Loom>::default();
        let reader = shared.clone();
        second.spawn(in_slot(2), move || {
            // SAFETY: as above.
            unsafe { reader.lock.lock_shared(&()) };
            upgradable.join();
            assert!(!reader.try_section(), "a reader is in");
            // SAFETY: as above.
            unsafe { reader.lock.unlock_shared(&()) };
        });
        second.join();
        assert!(shared.try_section(), "the lock is free at last");
    })
}

/// Reads, and reads upgradably meanwhile. Releases the read first.
fn read_first(shared: &State<Loom, Counted>) -> u32 {
    // SAFETY: what is locked is unlocked; also below.
    unsafe {
        shared.lock.lock_shared(&());
        _ = shared.lock.0.lock_upgradable_within(&Limit::NONE);
        shared.lock.unlock_shared(&());
    }
    let count = shared.count.look();
    // SAFETY: as above.
    unsafe { shared.lock.0.unlock_upgradable() };
    assert!(count <= 1);
    0
}

/// The same. Releases the read last, and reads once more in between.
fn read_last(shared: &State<Loom, Counted>) -> u32 {
    // SAFETY: as above.
    unsafe {
        _ = shared.lock.lock_shared_within(&(), &Limit::NONE);
        _ = shared.lock.0.lock_upgradable_within(&Limit::NONE);
        shared.lock.0.unlock_upgradable();
    }
    let count = shared.shared_section();
    assert_eq!(count, shared.count.look(), "a writer came in between");
    // SAFETY: as above.
    unsafe { shared.lock.unlock_shared(&()) };
    0
}

pub(super) fn models(name: &str) -> Vec<Model> {
    vec![
        read_for_upgradables(name, 1, 3),
        read_for_upgradables(name, 2, 1),
        reads(name, 2, 1, 0, 2),
        reads(name, 1, 2, 0, 1),
        reads(name, 1, 1, 1, 1),
        a_write_between(name, 2),
        one_after_the_other(name, 3),
        against::<Counted>(name, "a read until an upgradable one", &[Act::Write], 2, read_first),
        against::<Counted>(name, "an upgradable read in a read", &[Act::Write], 2, read_last),
    ]
}
