//! Models of the protocols of other libraries' locks, whose waiters sleep. Fresh threads that only
//! lock and unlock hardly ever sleep.

use nearlock_collection::classic::parking_lot_mutex::{BucketLock, ParkingLotMutex, ParkingLotTuning};
use nearlock_collection::classic::parking_lot_rwlock::ParkingLotRwLock;
use nearlock_collection::classic::std_mutex::StdMutex;
use nearlock_collection::classic::std_rwlock::StdRwLock;
use nearlock_core::events::LockEvent::{
    self, ChainCancel, MutexAfterSleep, MutexHandOver, MutexOptLock, MutexSleep, MutexWake, RwsemSleepReader,
    RwsemSleepWriter, RwsemWakeWriter,
};
use nearlock_core::raw::RawRwLock;
use nearlock_core::tuning::Switched;

use crate::exclusion::held_at_first;
use crate::loom::Loom;
use crate::model::Model;
use crate::readers::{Act, read_at_first, written_at_first};
use crate::released::Overdue;

/// The models of std's mutex. Waiters do not look before they sleep: loom runs other threads while
/// a thread yields, so no thread would sleep.
pub fn std(name: &str) -> Vec<Model> {
    let reaches = &[MutexOptLock, MutexSleep, MutexWake];
    let held = |threads, preemptions| {
        let model = held_at_first::<Loom, StdMutex<Loom, Switched<Loom>>>(name, threads, preemptions);
        model.of_lock_with(name, "looks", "0").reaching(reaches)
    };
    vec![held(2, None), held(3, Some(2))]
}

/// The mutex of parking_lot, switched as the model says.
type ParkingLot = ParkingLotMutex<Loom, Switched<Loom>>;

/// The models of parking_lot's mutex. Waiters look once more before they sleep, for the same
/// reason.
fn parking_lot(name: &str) -> Vec<Model> {
    let reaches = &[MutexOptLock, MutexSleep, MutexWake, MutexAfterSleep, ChainCancel];
    let held = |threads, preemptions| {
        let model = held_at_first::<Loom, ParkingLot>(name, threads, preemptions);
        model.of_lock_with(name, "rounds", "1").reaching(reaches)
    };
    vec![held(2, None), held(3, Some(2))]
}

/// The models of version 0.12.
pub fn parking_lot_fair(name: &str) -> Vec<Model> {
    let overdue = held_at_first::<Loom, Overdue<ParkingLot>>(&format!("{name}: when it is time"), 2, None);
    let overdue = overdue.of_lock_with(name, "rounds", "1").reaching(&[MutexHandOver]);
    parking_lot(name).into_iter().chain([overdue]).collect()
}

nearlock_core::tuning! {
    /// As [`OfBucket`](nearlock_collection::classic::parking_lot_mutex::OfBucket), except that
    /// waiters look once before they sleep.
    struct HastyBucket: ParkingLotTuning {
        bucket: BucketLock = BucketLock::Spinning;
        rounds: u32 = 1;
    }
}

/// The models of version 0.13.
pub fn parking_lot_unfair(name: &str) -> Vec<Model> {
    let reaches = &[MutexOptLock, MutexSleep, MutexWake, MutexAfterSleep, ChainCancel];
    let of_bucket = |threads, preemptions| {
        let name = format!("{name}: the lock of a bucket");
        held_at_first::<Loom, ParkingLotMutex<Loom, HastyBucket>>(&name, threads, preemptions)
            .reaching(reaches)
    };
    parking_lot(name).into_iter().chain([of_bucket(2, None), of_bucket(3, Some(2))]).collect()
}

/// A model of readers and writers, some of whom sleep.
type Sleeping = fn(&str, &'static [&'static [Act]], Option<usize>) -> Model;

/// A model, what its threads do, its preemptions, and the events that must happen.
type Row = (Sleeping, &'static [&'static [Act]], usize, &'static [LockEvent]);

/// The models in which a writer or a reader has the lock at first, and readers and writers sleep.
/// All of them have this switch in this position, so that waiters sleep soon.
fn sleeping<L: RawRwLock>(name: &str, key: &str, to: &str) -> Vec<Model> {
    use Act::{Downgrade, Read, Write};
    let written: Sleeping = written_at_first::<Loom, L>;
    let read: Sleeping = read_at_first::<Loom, L>;
    let all: [Row; 7] = [
        (written, &[&[Read]], 3, &[RwsemSleepReader]),
        (written, &[&[Write]], 3, &[RwsemSleepWriter]),
        (read, &[&[Write]], 3, &[RwsemSleepWriter, RwsemWakeWriter]),
        (written, &[&[Read], &[Read]], 2, &[RwsemSleepReader]),
        (written, &[&[Read], &[Write]], 2, &[RwsemSleepReader, RwsemSleepWriter]),
        (read, &[&[Write], &[Read]], 2, &[RwsemSleepReader, RwsemSleepWriter]),
        (written, &[&[Downgrade], &[Read]], 1, &[RwsemSleepReader, RwsemSleepWriter]),
    ];
    let model = |(model, acts, preemptions, reaches): Row| {
        let model = model(&format!("{name}: {key} {to}"), acts, Some(preemptions));
        model.of_lock_with(name, key, to).reaching(reaches)
    };
    all.map(model).into()
}

/// The models of std's reader-writer lock. Waiters do not look before they sleep, as in [`std`].
pub fn std_rwlock(name: &str) -> Vec<Model> {
    sleeping::<StdRwLock<Loom, Switched<Loom>>>(name, "looks", "0")
}

/// The models of parking_lot's reader-writer lock. Waiters park at once.
pub fn parking_lot_rwlock(name: &str) -> Vec<Model> {
    sleeping::<ParkingLotRwLock<Loom, Switched<Loom>>>(name, "rounds", "0")
}
