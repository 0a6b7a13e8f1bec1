//! Models of the counter mutex.

use nearlock_collection::linux::counter_mutex::{CounterMutex, CounterMutexTuning, Nobody, Spinners};
use nearlock_core::events::LockEvent;
use nearlock_core::tuning::Standard;

use crate::exclusion::held_at_first;
use crate::loom::Loom;
use crate::model::Model;

/// As [`spinning_by`], with both pre-reads.
pub fn spinning<S: Spinners<Loom>>(name: &str) -> Vec<Model> {
    spinning_by::<S, Standard>(name)
}

/// Waiters that spin. A waiter that fails needs two preemptions to go to sleep.
pub fn spinning_by<S: Spinners<Loom>, T: CounterMutexTuning>(name: &str) -> Vec<Model> {
    use LockEvent::{MutexAfterSleep, MutexAtOnce, MutexOptLock, MutexSleep, MutexWake};
    vec![
        held_at_first::<Loom, CounterMutex<Loom, S, T>>(name, 2, Some(4)).reaching(&[
            MutexOptLock,
            MutexAtOnce,
            MutexSleep,
            MutexAfterSleep,
            MutexWake,
        ]),
        held_at_first::<Loom, CounterMutex<Loom, S, T>>(name, 3, Some(1)).reaching(&[MutexOptLock]),
    ]
}

/// Waiters that do not spin, so that there is only the queue.
pub fn sleeping<T: CounterMutexTuning>(name: &str) -> Vec<Model> {
    use LockEvent::{MutexAfterSleep, MutexAtOnce, MutexSleep, MutexWake};
    vec![held_at_first::<Loom, CounterMutex<Loom, Nobody, T>>(name, 3, Some(2)).reaching(&[
        MutexAtOnce,
        MutexSleep,
        MutexAfterSleep,
        MutexWake,
    ])]
}
