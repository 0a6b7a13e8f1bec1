//! Models of FreeBSD's mutexes: waiters that reach the chain, and threads that only wait until a
//! mutex is unlocked.

use std::sync::Arc;

use nearlock_collection::freebsd::mtx::Mtx;
use nearlock_collection::freebsd::spin_mtx::SpinMtx;
use nearlock_core::events::LockEvent::{
    ChainCancel, ChainSleep, ChainWake, MutexAfterSleep, MutexOptLock, Slowpath,
};
use nearlock_core::raw::RawLock;
use nearlock_core::tuning::Switched;

use crate::engine::{Counter, Engine};
use crate::exclusion::{Guarded, held_at_first, in_slot};
use crate::loom::Loom;
use crate::model::Model;

/// The first thread holds the mutex. The other waits until it is unlocked, and looks at what the
/// first has done.
fn waited_for<L: RawLock>(name: &str, wait: fn(&L)) -> Model {
    Model::new(format!("{name}: waited for until it is unlocked"), 2, Some(3), move || {
        let shared = Arc::new(Guarded::<Loom, L>::default());
        let node = L::Node::default();
        // SAFETY: the node is ours and outlives the section.
        unsafe { shared.lock.lock(&node) };
        let other = {
            let shared = shared.clone();
            Loom::spawn(in_slot(1), move || {
                wait(&shared.lock);
                assert_eq!(shared.count.look(), 1);
            })
        };
        shared.count.add_one();
        // SAFETY: locked above with this node.
        unsafe { shared.lock.unlock(&node) };
        other.join().unwrap();
    })
}

/// A mutex that is switched as the model says.
type Switchable = Mtx<Loom, Switched<Loom>>;

/// Waiters that do not spin, whatever the other switches are, so that they reach the chain.
pub fn sleeping(name: &str) -> Vec<Model> {
    let held = |threads, preemptions| {
        held_at_first::<Loom, Switchable>(name, threads, Some(preemptions))
            .of_lock_with(name, "adaptive", "off")
    };
    vec![
        held(2, 4).reaching(&[MutexAfterSleep, ChainCancel, ChainSleep, ChainWake]),
        held(3, 1).reaching(&[MutexAfterSleep]),
    ]
}

/// The models of the current mutex: waiters that spin, and then sleep.
pub fn current(name: &str) -> Vec<Model> {
    vec![
        held_at_first::<Loom, Mtx<Loom>>(name, 2, Some(4)).reaching(&[
            Slowpath,
            MutexOptLock,
            MutexAfterSleep,
            ChainCancel,
            ChainSleep,
            ChainWake,
        ]),
        held_at_first::<Loom, Mtx<Loom>>(name, 3, Some(1)).reaching(&[MutexAfterSleep]),
        waited_for::<Mtx<Loom>>(name, Mtx::wait_unlocked),
    ]
}

/// The models of the spin mutex.
pub fn spinning(name: &str) -> Vec<Model> {
    type Switchable = SpinMtx<Loom, Switched<Loom>>;
    vec![
        held_at_first::<Loom, Switchable>(name, 3, Some(2)).of_lock(name).reaching(&[Slowpath]),
        waited_for::<Switchable>(name, SpinMtx::wait_unlocked).of_lock(name),
    ]
}
