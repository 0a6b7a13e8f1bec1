//! Models of the reader-writer lock whose readers have lines of their own. The models that every
//! lock with readers has begin in the counted mode. Here the lock begins in the others.

mod recursive;
mod upgrading;

use std::marker::PhantomData;
use std::sync::Arc;

use nearlock_core::near::rwlock::NearRwLock;
use nearlock_core::parking::{GaveUp, Limit, RawTimedLock, RawTimedRwLock};
use nearlock_core::platform::Clock;
use nearlock_core::raw::{RawLock, RawRwLock, RawTryLock};
use nearlock_core::settings::Setting;

use crate::engine::{Counter, Engine, Others};
use crate::exclusion::{Guarded, in_slot};
use crate::instance::READER_SLOTS;
use crate::loom::Loom;
use crate::model::Model;
use crate::readers::{
    Act, Patience, acting, crowd_of, impatient_reader, impatient_writer, read_at_first, written_at_first,
};
use crate::shuttle::Shuttle;

pub use recursive::read_for_another;

/// The mode in which a lock begins.
pub trait Mode: Send + Sync + 'static {
    /// Its name.
    const NAME: &'static str;
    /// The settings under which a lock gets there after this many reads, and the reads.
    const FENCED_READS: u64;
    /// As `FENCED_READS`, for the biased mode.
    const BIASED_READS: u64;
    /// How many reads a lock needs.
    const READS: u32;
}

/// The counted mode, from which the lock soon gets into the others. It has no id yet.
pub struct Fresh;
/// The counted mode, in which the lock stays. It has an id, so that readers can have the mutex.
pub struct Counted;
/// The fenced mode, from which the lock does not become biased.
pub struct Fenced;
/// The biased mode.
pub struct Biased;

/// A number of reads that no model reaches.
const NEVER: u64 = (1 << 24) - 1;

impl Mode for Fresh {
    const NAME: &'static str = "fresh";
    const FENCED_READS: u64 = 1;
    const BIASED_READS: u64 = 1;
    const READS: u32 = 0;
}

impl Mode for Counted {
    const NAME: &'static str = "counted at first";
    const FENCED_READS: u64 = NEVER;
    const BIASED_READS: u64 = NEVER;
    const READS: u32 = 1;
}

impl Mode for Fenced {
    const NAME: &'static str = "fenced at first";
    const FENCED_READS: u64 = 1;
    const BIASED_READS: u64 = NEVER;
    const READS: u32 = 1;
}

impl Mode for Biased {
    const NAME: &'static str = "biased at first";
    const FENCED_READS: u64 = 1;
    const BIASED_READS: u64 = 1;
    const READS: u32 = 2;
}

/// A lock that begins in this mode. It is made by the first thread.
pub struct In<E: Engine, M>(NearRwLock<E>, PhantomData<M>);

/// Later than any lock was revoked.
const LATE_NS: u64 = 1 << 24;

impl<E: Engine, M: Mode> Default for In<E, M> {
    fn default() -> Self {
        E::set(Setting::NearRwFencedReads, M::FENCED_READS);
        E::set(Setting::NearRwBiasedReads, M::BIASED_READS);
        E::with_instance(|i| i.now_ns.set(i.now_ns.get().max(LATE_NS)));
        let lock = NearRwLock::default();
        for _ in 0..M::READS {
            // SAFETY: unlocked at once.
            unsafe {
                lock.lock_shared(&());
                lock.unlock_shared(&());
            }
        }
        Self(lock, PhantomData)
    }
}

// SAFETY: forwards to the lock inside; also below.
unsafe impl<E: Engine, M: Mode> RawLock for In<E, M> {
    type Node = ();
    unsafe fn lock(&self, node: &()) {
        // SAFETY: the condition of the caller; also below.
        unsafe { self.0.lock(node) };
    }
    unsafe fn unlock(&self, node: &()) {
        // SAFETY: as above.
        unsafe { self.0.unlock(node) };
    }
}

// SAFETY: as above.
unsafe impl<E: Engine, M: Mode> RawTryLock for In<E, M> {
    unsafe fn try_lock(&self, node: &()) -> bool {
        // SAFETY: as above.
        unsafe { self.0.try_lock(node) }
    }
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

// SAFETY: as above.
unsafe impl<E: Engine, M: Mode> RawRwLock for In<E, M> {
    unsafe fn lock_shared(&self, node: &()) {
        // SAFETY: as above.
        unsafe { self.0.lock_shared(node) };
    }
    unsafe fn try_lock_shared(&self, node: &()) -> bool {
        // SAFETY: as above.
        unsafe { self.0.try_lock_shared(node) }
    }
    unsafe fn unlock_shared(&self, node: &()) {
        // SAFETY: as above.
        unsafe { self.0.unlock_shared(node) };
    }
    fn is_locked_exclusive(&self) -> bool {
        self.0.is_locked_exclusive()
    }
    unsafe fn downgrade(&self, node: &()) {
        // SAFETY: as above.
        unsafe { self.0.downgrade(node) };
    }
}

// SAFETY: as above.
unsafe impl<E: Engine, M: Mode> RawTimedLock for In<E, M> {
    type Platform = E;
    unsafe fn lock_within(&self, node: &(), limit: &Limit<'_, E>) -> Result<(), GaveUp> {
        // SAFETY: as above.
        unsafe { self.0.lock_within(node, limit) }
    }
}

// SAFETY: as above.
unsafe impl<E: Engine, M: Mode> RawTimedRwLock for In<E, M> {
    unsafe fn lock_shared_within(&self, node: &(), limit: &Limit<'_, E>) -> Result<(), GaveUp> {
        // SAFETY: as above.
        unsafe { self.0.lock_shared_within(node, limit) }
    }
}

type State<E, M> = Guarded<E, In<E, M>>;

/// The first thread calls `first`, while each of the other threads has one section according to
/// `acts`.
fn against<M: Mode>(
    name: &str,
    what: &str,
    acts: &'static [Act],
    preemptions: usize,
    first: fn(&State<Loom, M>) -> u32,
) -> Model {
    let title = format!("{name}: {}: {what} | {acts:?}", M::NAME);
    Model::new(title, acts.len() as u32 + 1, Some(preemptions), move || {
        let shared = Arc::new(State::<Loom, M>::default());
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

/// Reads twice. A writer that waits in between does not keep the thread out.
fn read_twice<E: Engine, M: Mode>(shared: &State<E, M>) -> u32 {
    // SAFETY: what is locked is unlocked; also below.
    unsafe { shared.lock.lock_shared(&()) };
    let count = shared.count.look();
    assert_eq!(shared.shared_section(), count, "a writer came in between");
    // SAFETY: as above.
    unsafe { shared.lock.unlock_shared(&()) };
    0
}

/// Reads as an upgradable reader, and then writes.
fn upgrade<E: Engine, M: Mode>(shared: &State<E, M>) -> u32 {
    let lock = &shared.lock.0;
    // SAFETY: what is locked is unlocked; also below. Without a limit no call gives up.
    unsafe { _ = lock.lock_upgradable_within(&Limit::NONE) };
    let count = shared.count.look();
    // SAFETY: as above.
    unsafe { _ = lock.upgrade_within(&Limit::NONE) };
    assert_eq!(shared.count.look(), count, "a writer came in between");
    shared.count.add_one();
    // SAFETY: as above.
    unsafe { lock.unlock(&()) };
    1
}

/// Reads as an upgradable reader, gives up the upgrade, and reads on as an ordinary reader.
fn upgrade_in_no_time<E: Engine, M: Mode>(shared: &State<E, M>) -> u32 {
    let lock = &shared.lock.0;
    // SAFETY: as in `upgrade`; also below.
    unsafe { _ = lock.lock_upgradable_within(&Limit::NONE) };
    let count = shared.count.look();
    // SAFETY: as above.
    if unsafe { lock.upgrade_within(&Limit::until(0)) }.is_ok() {
        shared.count.add_one();
        // SAFETY: as above.
        unsafe { lock.downgrade_to_upgradable() };
        assert_eq!(shared.count.look(), count + 1, "a writer came in between");
        // SAFETY: as above.
        unsafe { lock.unlock_upgradable() };
        return 1;
    }
    // SAFETY: as above.
    unsafe { lock.downgrade_upgradable() };
    assert_eq!(shared.count.look(), count, "a writer came in between");
    // SAFETY: as above.
    unsafe { lock.unlock_shared(&()) };
    0
}

fn beginning_in<M: Mode>(name: &str) -> Vec<Model> {
    use Act::{Downgrade, Read, TryRead, TryWrite, Write};
    type Lock<M> = In<Loom, M>;
    let name = &format!("{name}: {}", M::NAME);
    vec![
        acting::<Loom, Lock<M>>(name, &[&[Write], &[Read]], Some(3)),
        acting::<Loom, Lock<M>>(name, &[&[TryWrite, TryRead], &[Read]], Some(2)),
        acting::<Loom, Lock<M>>(name, &[&[TryRead, TryWrite], &[Write]], Some(2)),
        acting::<Loom, Lock<M>>(name, &[&[Write], &[Read, Read]], Some(2)),
        acting::<Loom, Lock<M>>(name, &[&[Downgrade], &[Read]], Some(2)),
        acting::<Loom, Lock<M>>(name, &[&[Downgrade], &[Write]], Some(2)),
        acting::<Loom, Lock<M>>(name, &[&[Write, Read], &[Read, Write]], Some(1)),
        written_at_first::<Loom, Lock<M>>(name, &[&[Read], &[Read]], Some(1)),
        written_at_first::<Loom, Lock<M>>(name, &[&[Read], &[Write]], Some(1)),
        read_at_first::<Loom, Lock<M>>(name, &[&[Write]], Some(3)),
        read_at_first::<Loom, Lock<M>>(name, &[&[Write], &[Read]], Some(1)),
        read_at_first::<Loom, Lock<M>>(name, &[&[Write], &[Write]], Some(1)),
        impatient_reader::<Loom, Lock<M>>(name, Patience::Time, &[&[Write]], Some(1)),
        impatient_writer::<Loom, Lock<M>>(name, Patience::Time, &[], Some(3)),
        impatient_writer::<Loom, Lock<M>>(name, Patience::Time, &[&[Read]], Some(1)),
        impatient_writer::<Loom, Lock<M>>(name, Patience::Cancellation, &[&[Write]], Some(1)),
    ]
}

/// Reads twice, and then once more, while its line has no free slot, and another hold is not noted.
/// A writer that waits does not keep the thread out.
fn read_twice_without_slot<M: Mode>(name: &str, preemptions: usize) -> Model {
    let title = format!("{name}: {}: a read in a read, without a slot | a writer", M::NAME);
    Model::new(title, 2, Some(preemptions), move || {
        let held: [NearRwLock<Loom>; READER_SLOTS + 1] = std::array::from_fn(|_| NearRwLock::default());
        // SAFETY: they are never unlocked.
        held.iter().for_each(|lock| unsafe { lock.lock_shared(&()) });
        let shared = Arc::new(State::<Loom, M>::default());
        let mut others = Others::<Loom>::default();
        let writer = shared.clone();
        others.spawn(in_slot(1), move || writer.section());
        read_twice(&shared);
        shared.shared_section();
        others.join();
        assert_eq!(shared.count.get(), 1);
        assert!(shared.try_section(), "the lock is free at last");
    })
}

/// How a thread gets a shared acquisition that another thread may release.
#[derive(Clone, Copy, Debug)]
enum Sent {
    Read,
    Downgrade,
    DowngradeUpgradable,
}

/// The first thread reads, as any thread may release it. A second thread does that, while a third
/// one writes. Then the first thread reads so again.
fn released_elsewhere<M: Mode>(name: &str, sent: Sent, preemptions: usize) -> Model {
    let title = format!("{name}: {}: {sent:?}, released by another thread | a writer", M::NAME);
    Model::new(title, 3, Some(preemptions), move || {
        let shared = Arc::new(State::<Loom, M>::default());
        let lock = &shared.lock.0;
        // SAFETY: what is locked is unlocked, by this or the second thread; also below. Without a
        // limit no call gives up.
        unsafe {
            match sent {
                Sent::Read => _ = lock.lock_shared_counted_within(&Limit::NONE),
                Sent::Downgrade => {
                    lock.lock(&());
                    lock.downgrade_counted();
                }
                Sent::DowngradeUpgradable => {
                    _ = lock.lock_upgradable_within(&Limit::NONE);
                    lock.downgrade_upgradable_counted();
                }
            }
        }
        let mut others = Others::<Loom>::default();
        let (releaser, writer) = (shared.clone(), shared.clone());
        others.spawn(in_slot(1), move || {
            assert_eq!(releaser.count.look(), 0, "a writer came in between");
            // SAFETY: as above.
            unsafe { releaser.lock.0.unlock_shared_counted() };
        });
        others.spawn(in_slot(2), move || writer.section());
        // SAFETY: as above.
        if unsafe { lock.try_lock_shared_counted() } {
            shared.count.look();
            // SAFETY: as above.
            unsafe { lock.unlock_shared_counted() };
        }
        others.join();
        assert_eq!(shared.count.get(), 1);
        assert!(shared.try_section(), "the lock is free at last");
    })
}

/// The first thread writes, and goes on as an upgradable reader. Another thread reads meanwhile, so
/// that any thread may release it.
fn written_upgradably<M: Mode>(name: &str, preemptions: usize) -> Model {
    let title =
        format!("{name}: {}: a write that becomes an upgradable read | a read for any thread", M::NAME);
    Model::new(title, 2, Some(preemptions), move || {
        let shared = Arc::new(State::<Loom, M>::default());
        let mut others = Others::<Loom>::default();
        let reader = shared.clone();
        others.spawn(in_slot(1), move || {
            // SAFETY: what is locked is unlocked; also below. Without a limit no call gives up.
            unsafe { _ = reader.lock.0.lock_shared_counted_within(&Limit::NONE) };
            reader.count.look();
            // SAFETY: as above.
            unsafe { reader.lock.0.unlock_shared_counted() };
        });
        // SAFETY: as above.
        unsafe { shared.lock.lock(&()) };
        shared.count.add_one();
        // SAFETY: as above.
        unsafe {
            shared.lock.0.downgrade_to_upgradable();
            shared.lock.0.unlock_upgradable();
        }
        others.join();
        assert!(shared.try_section(), "the lock is free at last");
    })
}

/// The models of what only this lock has.
fn own<M: Mode>(name: &str) -> Vec<Model> {
    use Act::{Read, Write};
    vec![
        against::<M>(name, "a read in a read", &[Write], 2, read_twice),
        against::<M>(name, "an upgrade", &[Read], 1, upgrade),
        against::<M>(name, "an upgrade", &[Write], 2, upgrade),
        against::<M>(name, "an upgrade in no time", &[Read], 1, upgrade_in_no_time),
        against::<M>(name, "an upgrade in no time", &[Write], 2, upgrade_in_no_time),
        read_twice_without_slot::<M>(name, 3),
        released_elsewhere::<M>(name, Sent::Read, 2),
    ]
    .into_iter()
    .chain(recursive::models::<M>(name))
    .collect()
}

/// The first reads of a lock, in which it gets its id, and changes its mode.
fn fresh(name: &str) -> Vec<Model> {
    use Act::{Read, Write};
    type Lock = In<Loom, Fresh>;
    let lock = name;
    let name = &format!("{name}: {}", Fresh::NAME);
    vec![
        acting::<Loom, Lock>(name, &[&[Read], &[Read, Write]], Some(2)),
        acting::<Loom, Lock>(name, &[&[Read, Read, Write], &[Read]], Some(1)),
        acting::<Loom, Lock>(name, &[&[Write, Read], &[Read]], Some(1)),
        acting::<Loom, Lock>(name, &[&[Write, Read, Read], &[Read]], Some(1)),
        read_at_first::<Loom, Lock>(name, &[&[Write]], Some(3)),
        released_elsewhere::<Fresh>(lock, Sent::Read, 3),
        written_upgradably::<Fresh>(lock, 2),
        released_elsewhere::<Fresh>(lock, Sent::Downgrade, 2),
        released_elsewhere::<Fresh>(lock, Sent::DowngradeUpgradable, 2),
    ]
}

/// `threads` threads that go `rounds` times to the lock, with all its operations.
pub fn crowd<M: Mode>(name: &str, threads: u32, rounds: u32) -> Model<Shuttle> {
    let title = format!("{name}: {}: {threads} threads with all operations, {rounds} rounds each", M::NAME);
    crowd_of::<In<Shuttle, M>>(title, threads, rounds, |shared, cancellation| {
        let limit_ns = u64::from(Shuttle::below(LIMIT_NS));
        let limit = Limit { until_ns: Some(Shuttle::now_ns() + limit_ns), cancellation: Some(cancellation) };
        match Shuttle::below(13) {
            0 => upgrade(shared),
            1 => upgrade_in_no_time(shared),
            2 => shared.section_within(&limit).is_ok().into(),
            3 => {
                let _ = shared.shared_section_within(&limit);
                0
            }
            4 => shared.try_section().into(),
            5 => {
                shared.section();
                1
            }
            6 => {
                shared.downgraded_section();
                1
            }
            7 => {
                let _ = shared.try_shared_section();
                0
            }
            8 => read_twice(shared),
            9 => {
                // SAFETY: unlocked if it was locked.
                if unsafe { shared.lock.0.lock_shared_recursive_within(&limit) }.is_ok() {
                    shared.count.look();
                    // SAFETY: as above.
                    unsafe { shared.lock.unlock_shared(&()) };
                }
                0
            }
            _ => {
                shared.shared_section();
                0
            }
        }
    })
}

/// The longest limit of a wait in a crowd, in ns.
const LIMIT_NS: u32 = 50_000;

/// The models of the special states of this lock.
pub fn models(name: &str) -> Vec<Model> {
    let mut models = fresh(name);
    models.extend(upgrading::models(name));
    models.extend(beginning_in::<Counted>(name));
    models.extend(beginning_in::<Fenced>(name));
    models.extend(beginning_in::<Biased>(name));
    models.extend(own::<Counted>(name));
    models.extend(own::<Fenced>(name));
    models.extend(own::<Biased>(name));
    models
}
