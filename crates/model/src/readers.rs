//! Models that every lock with readers can have. Writers count; readers look at the count, and report a writer.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use nearlock_core::raw::RawRwLock;

use crate::engine::{Counter, Engine, Handle};
use crate::exclusion::{Guarded, in_slot};
use crate::model::Model;

impl<E: Engine, L: RawRwLock> Guarded<E, L> {
    /// Takes the lock shared, looks at the count and releases it.
    pub fn shared_section(&self) -> u32 {
        let node = L::Node::default();
        // SAFETY: the node is ours and outlives the section.
        unsafe { self.lock.lock_shared(&node) };
        let count = self.count.look();
        // SAFETY: locked above with this node.
        unsafe { self.lock.unlock_shared(&node) };
        count
    }

    /// As [`shared_section`](Self::shared_section), if there is no writer.
    pub fn try_shared_section(&self) -> Option<u32> {
        let node = L::Node::default();
        // SAFETY: the node is ours and outlives the section.
        if !unsafe { self.lock.try_lock_shared(&node) } {
            return None;
        }
        let count = self.count.look();
        // SAFETY: locked above with this node.
        unsafe { self.lock.unlock_shared(&node) };
        Some(count)
    }

    /// Takes the lock and counts; then, as a reader, looks, with no other writer in between.
    pub fn downgraded_section(&self) {
        let node = L::Node::default();
        // SAFETY: the node is ours and outlives the section.
        unsafe { self.lock.lock(&node) };
        self.count.add_one();
        let count = self.count.look();
        // SAFETY: locked above with this node.
        unsafe { self.lock.downgrade(&node) };
        assert_eq!(self.count.look(), count, "a writer came in between");
        // SAFETY: shared since.
        unsafe { self.lock.unlock_shared(&node) };
    }
}

/// What a thread of a model does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Writes.
    Write,
    /// Reads.
    Read,
    /// Writes, and reads on.
    Downgrade,
    /// Writes if it can at once.
    TryWrite,
    /// Reads if it can at once.
    TryRead,
}

impl Act {
    /// How many sections it was that wrote.
    fn on<E: Engine, L: RawRwLock>(self, guarded: &Guarded<E, L>) -> u32 {
        match self {
            Self::Write => guarded.section(),
            Self::Read => _ = guarded.shared_section(),
            Self::Downgrade => guarded.downgraded_section(),
            Self::TryWrite => return guarded.try_section().into(),
            Self::TryRead => _ = guarded.try_shared_section(),
        }
        u32::from(self == Self::Write || self == Self::Downgrade)
    }
}

/// A thread for each of these lists, which does what it says, the first thread of the model the first of them.
pub fn acting<E: Engine, L: RawRwLock>(
    name: &str,
    acts: &'static [&'static [Act]],
    preemptions: Option<usize>,
) -> Model<E> {
    let title = format!("{name}: {}", titles(acts));
    Model::new(title, acts.len() as u32, preemptions, move || {
        let shared = Arc::new(Guarded::<E, L>::default());
        let written = Arc::new(AtomicU32::new(0));
        let work = |slot: usize| {
            let (shared, written) = (shared.clone(), written.clone());
            move || {
                let count: u32 = acts[slot].iter().map(|act| act.on(&shared)).sum();
                written.fetch_add(count, Relaxed);
            }
        };
        let others: Vec<_> = (1..acts.len()).map(|slot| E::spawn(in_slot(slot as u32), work(slot))).collect();
        work(0)();
        others.into_iter().for_each(|other| other.join().unwrap());
        finish(&shared, written.load(Relaxed));
    })
}

/// The first thread writes already when the others come, who do what these lists say.
pub fn written_at_first<E: Engine, L: RawRwLock>(
    name: &str,
    acts: &'static [&'static [Act]],
    preemptions: Option<usize>,
) -> Model<E> {
    held_at_first::<E, L>(name, "written", Act::Write, acts, preemptions)
}

/// The first thread reads already when the others come, who do what these lists say.
pub fn read_at_first<E: Engine, L: RawRwLock>(
    name: &str,
    acts: &'static [&'static [Act]],
    preemptions: Option<usize>,
) -> Model<E> {
    held_at_first::<E, L>(name, "read", Act::Read, acts, preemptions)
}

fn held_at_first<E: Engine, L: RawRwLock>(
    name: &str,
    how: &str,
    first: Act,
    acts: &'static [&'static [Act]],
    preemptions: Option<usize>,
) -> Model<E> {
    let title = format!("{name}: {how} at first; {}", titles(acts));
    Model::new(title, acts.len() as u32 + 1, preemptions, move || {
        let shared = Arc::new(Guarded::<E, L>::default());
        let writes = acts.iter().flat_map(|acts| acts.iter()).filter(|act| **act != Act::Read).count() as u32;
        let node = L::Node::default();
        // SAFETY: the node is ours and outlives the section.
        unsafe {
            match first {
                Act::Read => shared.lock.lock_shared(&node),
                _ => shared.lock.lock(&node),
            }
        }
        let others: Vec<_> = (1..)
            .zip(acts)
            .map(|(slot, acts)| {
                let shared = shared.clone();
                E::spawn(in_slot(slot), move || acts.iter().for_each(|act| _ = act.on(&shared)))
            })
            .collect();
        let written = match first {
            Act::Read => {
                shared.count.look();
                // SAFETY: taken above.
                unsafe { shared.lock.unlock_shared(&node) };
                0
            }
            _ => {
                shared.count.add_one();
                // SAFETY: taken above.
                unsafe { shared.lock.unlock(&node) };
                1
            }
        };
        others.into_iter().for_each(|other| other.join().unwrap());
        finish(&shared, written + writes);
    })
}

fn titles(acts: &[&[Act]]) -> String {
    let of_thread = |acts: &&[Act]| acts.iter().map(|act| format!("{act:?}")).collect::<Vec<_>>().join(", ");
    acts.iter().map(of_thread).collect::<Vec<_>>().join(" | ")
}

fn finish<E: Engine, L: RawRwLock>(shared: &Guarded<E, L>, written: u32) {
    assert_eq!(shared.count.get(), written);
    assert_eq!(shared.try_shared_section(), Some(written), "no writer is left");
    assert!(shared.try_section(), "the lock is free at last");
}
