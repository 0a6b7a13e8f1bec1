//! Models of FreeBSD's lockmgr: its operations against each other, and waiters that reach the
//! chain.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use nearlock_collection::freebsd::lockmgr::{
    Bypass, Failure, LockMgr, NoInterlock, Operation, Options, SHARED_WAITERS,
};
use nearlock_collection::freebsd::tuning::Tuning;
use nearlock_core::events::LockEvent::{ChainCancel, ChainSleep, ChainWake, Slowpath};
use nearlock_core::platform::AtomicInt;
use nearlock_core::raw::RawLock;
use nearlock_core::shared_holds::SharedLock;
use nearlock_core::tuning::Switched;

use crate::engine::{Counter, Engine, Handle, Others, Thread};
use crate::exclusion::{Guarded, in_slot};
use crate::loom::Loom;
use crate::model::Model;
use crate::readers::{Act, acting, read_at_first, written_at_first};
use crate::shuttle::Shuttle;

type LockMgrState<E, T> = Guarded<E, LockMgr<E, T>>;

/// What a thread of a model does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Writes.
    Write,
    /// Reads.
    Read,
    /// Reads, even if writers wait.
    ReadPast,
    /// Reads, and then writes, perhaps after others.
    Upgrade,
    /// Reads, and then writes if no other thread reads.
    TryUpgrade,
    /// Writes in a nested section.
    WriteTwice,
    /// Writes when no other thread is there.
    Drain,
    /// Writes if it need not sleep.
    WriteUnlessSleeping,
    /// Reads if it need not sleep.
    ReadUnlessSleeping,
    /// Writes, and lets another thread unlock the lock.
    Disown,
}

impl Deed {
    /// Does it, and returns how many of its sections wrote.
    fn on<E: Engine, T: Tuning>(self, shared: &Arc<LockMgrState<E, T>>) -> u32 {
        let options = Options::new().adaptive();
        let does = |operation, options: &Options<'_, E>| {
            // SAFETY: a lock that is locked is unlocked; only a held lock is converted or unlocked.
            unsafe { shared.lock.perform(operation, options, NoInterlock) }
        };
        let done = |operation| assert_eq!(does(operation, &options), Ok(()), "{operation:?}");
        let wrote = || {
            shared.count.add_one();
            done(Operation::Unlock);
            1
        };
        let read = || {
            shared.count.look();
            done(Operation::Unlock);
            0
        };
        let refused = |why| {
            assert_eq!(why, Failure::SleepFail);
            0
        };
        match self {
            Self::Write => {
                done(Operation::Exclusive);
                wrote()
            }
            Self::Read => {
                done(Operation::Shared);
                read()
            }
            Self::ReadPast => {
                assert_eq!(does(Operation::Shared, &options.bypass(Bypass::Caller)), Ok(()));
                read()
            }
            Self::Upgrade => {
                done(Operation::Shared);
                shared.count.look();
                done(Operation::Upgrade);
                wrote()
            }
            Self::TryUpgrade => {
                done(Operation::Shared);
                let count = shared.count.look();
                let upgraded = does(Operation::TryUpgrade, &options);
                assert_eq!(shared.count.look(), count, "another thread has written in between");
                if upgraded.is_ok() { wrote() } else { read() }
            }
            Self::WriteTwice => {
                done(Operation::Exclusive);
                assert_eq!(does(Operation::Exclusive, &options.can_recurse()), Ok(()));
                wrote() + wrote()
            }
            Self::Drain => {
                done(Operation::Drain);
                wrote()
            }
            Self::WriteUnlessSleeping => {
                does(Operation::Exclusive, &options.sleep_fail()).map_or_else(refused, |()| wrote())
            }
            Self::ReadUnlessSleeping => {
                does(Operation::Shared, &options.sleep_fail()).map_or_else(refused, |()| read())
            }
            Self::Disown => disown(shared),
        }
    }
}

/// Writes, and lets another thread unlock the lock.
fn disown<E: Engine, T: Tuning>(shared: &Arc<LockMgrState<E, T>>) -> u32 {
    // SAFETY: unlocked by the other thread, which is started by this one.
    unsafe { shared.lock.lock(&()) };
    shared.count.add_one();
    // SAFETY: locked above.
    unsafe { shared.lock.disown() };
    let release = {
        let shared = shared.clone();
        // SAFETY: disowned.
        move || unsafe { shared.lock.unlock(&()) }
    };
    E::spawn(Thread::default(), release).join().unwrap();
    1
}

/// A thread for each deed. The first deed is that of the first thread of the model.
pub fn deeds<E: Engine, T: Tuning>(
    name: &str,
    deeds: &'static [Deed],
    preemptions: Option<usize>,
) -> Model<E> {
    let titles: Vec<_> = deeds.iter().map(|deed| format!("{deed:?}")).collect();
    of_deeds::<E, T>(format!("{name}: {}", titles.join(" | ")), None, 0, deeds, preemptions)
}

/// The first thread already holds the lock when the others come, to read or to write.
pub fn held_at_first<E: Engine, T: Tuning>(
    name: &str,
    how: Operation,
    deeds: &'static [Deed],
    preemptions: Option<usize>,
) -> Model<E> {
    let titles: Vec<_> = deeds.iter().map(|deed| format!("{deed:?}")).collect();
    let title = format!("{name}: {how:?} at first; {}", titles.join(" | "));
    of_deeds::<E, T>(title, Some(how), 0, deeds, preemptions)
}

/// The first thread reads, and another reader has waited and given up before the others come.
fn given_up_at_first<T: Tuning>(name: &str, deeds: &'static [Deed], preemptions: usize) -> Model {
    let titles: Vec<_> = deeds.iter().map(|deed| format!("{deed:?}")).collect();
    let title = format!("{name}: Shared at first, a waiter gave up; {}", titles.join(" | "));
    of_deeds::<Loom, T>(title, Some(Operation::Shared), SHARED_WAITERS, deeds, Some(preemptions))
}

/// Two threads share the lock, and another reader has waited and given up. One sharer leaves, and
/// then the other, while a writer comes. What the first one has read happens before the writer's
/// section, though only the second one reaches the chain.
fn left_by_two<T: Tuning>(name: &str, preemptions: usize) -> Model {
    let title = format!("{name}: two sharers at first, a waiter gave up; Write");
    Model::new(title, 3, Some(preemptions), move || {
        let shared = Arc::new(LockMgrState::<Loom, T>::default());
        // SAFETY: both shares are unlocked below, one by a thread that this one starts.
        let does = |operation| unsafe { shared.lock.perform(operation, &Options::new(), NoInterlock) };
        assert_eq!([does(Operation::Shared), does(Operation::Shared)], [Ok(()); 2]);
        // SAFETY: this is the state after a waiter that has given up.
        unsafe { shared.lock.word() }.fetch_or(SHARED_WAITERS, Relaxed);
        let mut sharer = in_slot(1);
        sharer.shared_holds[SharedLock::LockMgr as usize] = 1;
        let leaving = {
            let shared = shared.clone();
            Loom::spawn(sharer, move || {
                shared.count.look();
                assert_eq!(
                    // SAFETY: the share is that of the first thread, which leaves it to this one.
                    unsafe { shared.lock.perform(Operation::Unlock, &Options::new(), NoInterlock) },
                    Ok(())
                );
            })
        };
        let writing = {
            let shared = shared.clone();
            Loom::spawn(in_slot(2), move || _ = Deed::Write.on(&shared))
        };
        assert_eq!(does(Operation::Unlock), Ok(()));
        leaving.join().unwrap();
        writing.join().unwrap();
        finish(&shared, 1);
    })
}

/// `bits`: the bits that waiters have left in the word.
fn of_deeds<E: Engine, T: Tuning>(
    title: String,
    first: Option<Operation>,
    bits: u64,
    deeds: &'static [Deed],
    preemptions: Option<usize>,
) -> Model<E> {
    Model::new(title, deeds.len() as u32 + 1, preemptions, move || {
        let shared = Arc::new(LockMgrState::<E, T>::default());
        let written = Arc::new(AtomicU32::new(0));
        let does = |operation| {
            // SAFETY: unlocked below.
            assert_eq!(unsafe { shared.lock.perform(operation, &Options::new(), NoInterlock) }, Ok(()));
        };
        let (own, deeds) = match first {
            Some(operation) => {
                does(operation);
                // SAFETY: this is the state after waiters that have given up.
                unsafe { shared.lock.word() }.fetch_or(bits, Relaxed);
                (None, deeds)
            }
            None => (Some(deeds[0]), &deeds[1..]),
        };
        let mut others = Others::<E>::default();
        for (slot, deed) in (1..).zip(deeds) {
            let (shared, written) = (shared.clone(), written.clone());
            others.spawn(in_slot(slot), move || _ = written.fetch_add(deed.on(&shared), Relaxed));
        }
        match own {
            Some(deed) => _ = written.fetch_add(deed.on(&shared), Relaxed),
            None => does(Operation::Unlock),
        }
        others.join();
        finish(&shared, written.load(Relaxed));
    })
}

fn finish<E: Engine, T: Tuning>(shared: &LockMgrState<E, T>, written: u32) {
    assert_eq!(shared.count.get(), written);
    assert!(!shared.lock.has_waiters(), "no thread waits at last");
    assert!(shared.try_section(), "the lock is free at last");
}

/// The deeds of threads of a crowd.
const DEEDS: [Deed; 12] = [
    Deed::Read,
    Deed::Read,
    Deed::ReadPast,
    Deed::Write,
    Deed::Write,
    Deed::Upgrade,
    Deed::TryUpgrade,
    Deed::WriteTwice,
    Deed::Drain,
    Deed::WriteUnlessSleeping,
    Deed::WriteUnlessSleeping,
    Deed::ReadUnlessSleeping,
];

/// `threads` threads that use the lock, `rounds` times each.
pub fn crowd<T: Tuning>(name: &str, threads: u32, rounds: u32) -> Model<Shuttle> {
    let title = format!("{name}: {threads} threads with all operations, {rounds} rounds each");
    Model::new(title, threads, None, move || {
        let shared = Arc::new(LockMgrState::<Shuttle, T>::default());
        let written = Arc::new(AtomicU32::new(0));
        let work = || {
            let (shared, written) = (shared.clone(), written.clone());
            move || {
                for _ in 0..rounds {
                    let deed = DEEDS[Shuttle::below(DEEDS.len() as u32) as usize];
                    written.fetch_add(deed.on(&shared), Relaxed);
                }
            }
        };
        let mut others = Others::<Shuttle>::default();
        for slot in 1..threads {
            others.spawn(in_slot(slot), work());
        }
        work()();
        others.join();
        finish(&shared, written.load(Relaxed));
    })
}

/// The models of the lock, whatever its switches.
pub fn of(name: &str) -> Vec<Model> {
    use Deed::{
        Disown, Drain, Read, ReadPast, ReadUnlessSleeping, TryUpgrade, Upgrade, Write, WriteTwice,
        WriteUnlessSleeping,
    };
    use Operation::{Exclusive, Shared};
    type T = Switched<Loom>;
    let contended = &[Slowpath, ChainSleep, ChainWake];
    let models = [
        deeds::<Loom, T>(name, &[Upgrade, Read], Some(3)),
        deeds::<Loom, T>(name, &[Upgrade, Upgrade], Some(2)),
        deeds::<Loom, T>(name, &[Upgrade, Read, Write], Some(1)),
        deeds::<Loom, T>(name, &[TryUpgrade, Read], Some(3)),
        deeds::<Loom, T>(name, &[TryUpgrade, Write], Some(2)),
        deeds::<Loom, T>(name, &[WriteTwice, Write], Some(2)),
        deeds::<Loom, T>(name, &[Drain, Write], Some(3)),
        deeds::<Loom, T>(name, &[Drain, Read], Some(3)),
        deeds::<Loom, T>(name, &[Drain, Read, Write], Some(1)),
        deeds::<Loom, T>(name, &[Disown, Write], Some(2)),
        deeds::<Loom, T>(name, &[WriteUnlessSleeping, ReadUnlessSleeping, Write], Some(1)),
        acting::<Loom, LockMgr<Loom, T>>(name, &[&[Act::Downgrade], &[Act::Read]], Some(2)),
        acting::<Loom, LockMgr<Loom, T>>(name, &[&[Act::Downgrade], &[Act::Write]], Some(2)),
    ];
    // Waiters that do not spin, so that they reach the chain.
    let sleepers = [
        held_at_first::<Loom, T>(name, Shared, &[WriteUnlessSleeping, Read], Some(1)),
        held_at_first::<Loom, T>(name, Exclusive, &[WriteUnlessSleeping, Read], Some(1)),
        held_at_first::<Loom, T>(name, Shared, &[Write, ReadPast], Some(1)),
        held_at_first::<Loom, T>(name, Exclusive, &[Drain, Read], Some(1)),
        given_up_at_first::<T>(name, &[Drain, Read], 1),
        left_by_two::<T>(name, 2),
        written_at_first::<Loom, LockMgr<Loom, T>>(name, &[&[Act::Write]], Some(3)).reaching(contended),
        written_at_first::<Loom, LockMgr<Loom, T>>(name, &[&[Act::Read]], Some(3))
            .reaching(&[ChainCancel, ChainSleep]),
        read_at_first::<Loom, LockMgr<Loom, T>>(name, &[&[Act::Write]], Some(3)).reaching(contended),
    ];
    let sleepers = sleepers.map(|model| model.of_lock_with(name, "adaptive", "off"));
    models.map(|model| model.of_lock(name)).into_iter().chain(sleepers).collect()
}
