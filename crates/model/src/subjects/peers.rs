//! Models of the protocols of other libraries' mutexes, whose waiters sleep: fresh threads that merely lock hardly ever do.

use std::marker::PhantomData;

use nearlock_core::classic::parking_lot_mutex::{
    BucketLock, EventuallyFair, OfBucket, ParkingLotMutex, ParkingLotTuning, Unlock,
};
use nearlock_core::classic::std_mutex::{StdMutex, StdMutexTuning};
use nearlock_core::events::LockEvent::{
    ChainCancel, MutexAfterSleep, MutexHandOver, MutexOptLock, MutexSleep, MutexWake,
};
use nearlock_core::tuning::Standard;

use crate::exclusion::held_at_first;
use crate::loom::Loom;
use crate::model::Model;
use crate::released::Overdue;

/// As `T`, but that waiters look once more before they sleep. loom runs others while a thread yields, and would come to no sleep.
struct Hasty<T>(PhantomData<T>);

impl StdMutexTuning for Hasty<Standard> {
    const LOOKS: u32 = 0;
}

impl<T: ParkingLotTuning> ParkingLotTuning for Hasty<T> {
    const UNLOCK: Unlock = T::UNLOCK;
    const BUCKET: BucketLock = T::BUCKET;
    const ROUNDS: u32 = 1;
}

/// Of std's.
pub fn std(name: &str) -> Vec<Model> {
    let reaches = &[MutexOptLock, MutexSleep, MutexWake];
    vec![
        held_at_first::<Loom, StdMutex<Loom, Hasty<Standard>>>(name, 2, None).reaching(reaches),
        held_at_first::<Loom, StdMutex<Loom, Hasty<Standard>>>(name, 3, Some(2)).reaching(reaches),
    ]
}

/// Of parking_lot's.
fn parking_lot<T: ParkingLotTuning>(name: &str) -> Vec<Model> {
    let reaches = &[MutexOptLock, MutexSleep, MutexWake, MutexAfterSleep, ChainCancel];
    vec![
        held_at_first::<Loom, ParkingLotMutex<Loom, Hasty<T>>>(name, 2, None).reaching(reaches),
        held_at_first::<Loom, ParkingLotMutex<Loom, Hasty<T>>>(name, 3, Some(2)).reaching(reaches),
    ]
}

/// Of 0.12.
pub fn parking_lot_fair(name: &str) -> Vec<Model> {
    let mut models = parking_lot::<EventuallyFair>(name);
    models.push(
        held_at_first::<Loom, Overdue<ParkingLotMutex<Loom, Hasty<EventuallyFair>>>>(
            &format!("{name}: when it is time"),
            2,
            None,
        )
        .reaching(&[MutexHandOver]),
    );
    models
}

/// Of 0.13.
pub fn parking_lot_unfair(name: &str) -> Vec<Model> {
    let mut models = parking_lot::<Standard>(name);
    models.extend(parking_lot::<OfBucket>(&format!("{name}: the lock of a bucket")));
    models
}
