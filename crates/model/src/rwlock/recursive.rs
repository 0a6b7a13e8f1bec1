//! Models of recursive readers. Some are noted in the lines of their threads, some may be released
//! by any thread.

use std::sync::Arc;

use nearlock_core::parking::Limit;
use nearlock_core::raw::RawRwLock;

use super::{Mode, State, against};
use crate::engine::{Counter, Engine, Others};
use crate::exclusion::in_slot;
use crate::loom::Loom;
use crate::model::Model;
use crate::readers::Act;

/// Reads recursively, and returns how many writes there have been.
fn read_recursively<E: Engine, M: Mode>(shared: &State<E, M>) -> u32 {
    // SAFETY: unlocked below. Without a limit it does not give up.
    unsafe { _ = shared.lock.0.lock_shared_recursive_within(&Limit::NONE) };
    let count = shared.count.look();
    // SAFETY: locked above.
    unsafe { shared.lock.unlock_shared(&()) };
    count
}

/// The same. Any thread might release the lock.
fn read_recursively_counted<E: Engine, M: Mode>(shared: &State<E, M>) -> u32 {
    // SAFETY: unlocked below. Without a limit it does not give up.
    unsafe { _ = shared.lock.0.lock_shared_recursive_counted_within(&Limit::NONE) };
    let count = shared.count.look();
    // SAFETY: locked above.
    unsafe { shared.lock.0.unlock_shared_counted() };
    count
}

/// The first thread reads until another thread has read recursively. A writer that waits in between
/// keeps neither out.
pub fn read_for_another<E: Engine, M: Mode>(name: &str, preemptions: Option<usize>) -> Model<E> {
    let title = format!("{name}: {}: a read that waits for a recursive one | a writer", M::NAME);
    Model::new(title, 3, preemptions, move || {
        let shared = Arc::new(State::<E, M>::default());
        // SAFETY: unlocked below.
        unsafe { shared.lock.lock_shared(&()) };
        let (mut writers, mut readers) = (Others::<E>::default(), Others::<E>::default());
        let (writer, reader) = (shared.clone(), shared.clone());
        writers.spawn(in_slot(1), move || writer.section());
        readers.spawn(in_slot(2), move || assert_eq!(read_recursively(&reader), 0));
        readers.join();
        assert_eq!(shared.count.look(), 0, "a writer came in");
        // SAFETY: locked above.
        unsafe { shared.lock.unlock_shared(&()) };
        writers.join();
        assert_eq!(shared.count.get(), 1);
        assert!(shared.try_section(), "the lock is free at last");
    })
}

/// The first thread has a shared acquisition that any thread may release, and reads recursively.
/// A writer that waits does not keep it out.
fn read_in_a_counted_read<M: Mode>(name: &str, preemptions: usize) -> Model {
    against::<M>(name, "a recursive read in a read for any thread", &[Act::Write], preemptions, |shared| {
        // SAFETY: unlocked below. Without a limit it does not give up.
        unsafe { _ = shared.lock.0.lock_shared_counted_within(&Limit::NONE) };
        let count = shared.count.look();
        assert_eq!(read_recursively_counted(shared), count, "a writer came in between");
        // SAFETY: locked above.
        unsafe { shared.lock.0.unlock_shared_counted() };
        0
    })
}

/// Recursive readers exclude writers.
fn recursive_reader<M: Mode>(name: &str, preemptions: usize) -> Model {
    against::<M>(name, "a recursive read", &[Act::Write], preemptions, |shared| {
        read_recursively(shared);
        0
    })
}

/// The models in this mode.
pub fn models<M: Mode>(name: &str) -> Vec<Model> {
    vec![
        recursive_reader::<M>(name, 2),
        read_in_a_counted_read::<M>(name, 2),
        read_for_another::<Loom, M>(name, Some(2)),
    ]
}
