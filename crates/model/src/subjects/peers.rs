//! Models of the protocols of other libraries' mutexes, whose waiters sleep. Fresh threads that
//! only lock and unlock hardly ever sleep.

use nearlock_collection::classic::parking_lot_mutex::{BucketLock, ParkingLotMutex, ParkingLotTuning};
use nearlock_collection::classic::std_mutex::StdMutex;
use nearlock_core::events::LockEvent::{
    ChainCancel, MutexAfterSleep, MutexHandOver, MutexOptLock, MutexSleep, MutexWake,
};
use nearlock_core::tuning::Switched;

use crate::exclusion::held_at_first;
use crate::loom::Loom;
use crate::model::Model;
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
