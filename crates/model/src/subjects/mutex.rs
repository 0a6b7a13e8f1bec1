//! Models of the owner mutex: sleepers, threads that barge in ahead of them, and hand-overs.

use nearlock_collection::linux::mutex::{LinuxMutex, MutexTuning, NoSpinning};
use nearlock_core::events::LockEvent::{MutexAfterSleep, MutexHandOver, MutexOptLock, MutexWake};

use crate::loom::Loom;
use crate::model::Model;
use crate::timed::Act::{InTime, Lock};
use crate::timed::First::Releases;
use crate::timed::{Act, held_at_first};

fn held<T: MutexTuning>(name: &str, acts: &'static [&'static [Act]], preemptions: usize) -> Model {
    held_at_first::<Loom, LinuxMutex<Loom, T>>(name, Releases, acts, Some(preemptions))
}

/// The models with spinners, which give way after two looks.
pub fn spinning<T: MutexTuning>(name: &str) -> Vec<Model> {
    vec![
        held::<T>(name, &[&[Lock], &[Lock]], 3).reaching(&[MutexOptLock, MutexAfterSleep, MutexWake]),
        held::<T>(name, &[&[], &[Lock], &[Lock]], 1).reaching(&[MutexOptLock]),
    ]
}

/// The models without spinners: waiters enter the queue at once.
pub fn sleeping(name: &str) -> Vec<Model> {
    let reaches = &[MutexAfterSleep, MutexHandOver, MutexWake];
    vec![
        held::<NoSpinning>(name, &[&[Lock], &[Lock]], 2).reaching(reaches),
        held::<NoSpinning>(name, &[&[Lock], &[InTime]], 2).reaching(&[MutexHandOver]),
        // A waiter that has asked for a hand-over gives up, and comes back.
        held::<NoSpinning>(name, &[&[Lock], &[InTime, Lock]], 3).reaching(&[MutexHandOver]),
        held::<NoSpinning>(name, &[&[], &[Lock], &[Lock]], 1).reaching(&[MutexAfterSleep, MutexWake]),
    ]
}
