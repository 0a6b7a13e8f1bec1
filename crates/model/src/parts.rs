//! Models of the parts of core that are no locks: the parking token, waiters, fences, the
//! optimistic spin queue, and the condition variable.

pub mod condvar;
pub mod osq;
mod waiters;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use nearlock_core::parking::Parker;
use nearlock_core::platform::Atomic;
use nearlock_core::strong_fences;

use crate::engine::{Counter, Engine, Handle, Thread};
use crate::loom::Loom;
use crate::model::Model;

pub use waiters::waiters;

/// The name of a part, and its models.
type Part = (&'static str, fn() -> Vec<Model>);

/// All parts.
pub const PARTS: &[Part] = &[
    ("parker", parker),
    ("waiters", waiters),
    ("strong-fences", fences),
    ("osq", osq::models),
    ("condvar", condvar::models),
];

/// The models of all parts.
pub fn models() -> Vec<Model> {
    PARTS.iter().flat_map(|(_, models)| models()).collect()
}

/// Two parking places, and data that only tokens hand over.
struct PartState<E: Engine> {
    data: E::Counter,
    first: Parker<E>,
    second: Parker<E>,
}

fn model<E: Engine>(name: &str, first: fn(&PartState<E>), second: fn(&PartState<E>)) -> Model<E> {
    Model::new(name, 2, None, move || {
        let shared = Arc::new(PartState::<E> {
            data: E::Counter::default(),
            first: Parker::default(),
            second: Parker::default(),
        });
        let other = {
            let shared = shared.clone();
            E::spawn(Thread::default(), move || second(&shared))
        };
        first(&shared);
        other.join().unwrap();
    })
}

/// Gives up after one look.
fn park_shortly<E: Engine>(place: &Parker<E>) -> bool {
    place.park_while(|_, _| false)
}

/// The models of the parking token, which is never lost.
pub fn parker<E: Engine>() -> Vec<Model<E>> {
    let write_and_unpark = |shared: &PartState<E>| {
        shared.data.add_one();
        shared.first.unpark();
    };
    let park_and_write = |shared: &PartState<E>| {
        shared.first.park();
        shared.data.add_one();
    };
    let to = |shared: &PartState<E>| {
        shared.data.add_one();
        shared.second.unpark();
        shared.first.park();
        shared.data.add_one();
    };
    let fro = |shared: &PartState<E>| {
        shared.second.park();
        shared.data.add_one();
        shared.first.unpark();
    };
    let perhaps = |shared: &PartState<E>| {
        if park_shortly(&shared.first) {
            shared.data.add_one();
        }
    };
    let at_last = |shared: &PartState<E>| {
        if !park_shortly(&shared.first) {
            shared.first.park();
        }
        shared.data.add_one();
    };
    vec![
        model("parker: one token", park_and_write, write_and_unpark),
        model("parker: to and fro", to, fro),
        model("parker: the owner gives up", perhaps, write_and_unpark),
        model("parker: the owner gives up, and parks again", at_last, write_and_unpark),
    ]
}

/// The models of fences with two ordinary sides. (loom takes SeqCst operations for AcqRel, but
/// fences for what they are.)
fn fences() -> Vec<Model> {
    const LIGHT: fn() = strong_fences::light::<Loom>;
    const HEAVY: fn() = strong_fences::heavy::<Loom>;
    vec![
        dekker("strong fences: light and heavy", LIGHT, &[HEAVY]),
        dekker("strong fences: two heavy", HEAVY, &[HEAVY]),
    ]
}

/// Dekker's pattern between the first thread and each of the others: each thread writes its own
/// word, fences, and reads the other's. Of each pair one must see the other.
pub fn dekker<E: Engine>(name: &str, first: fn(), others: &'static [fn()]) -> Model<E> {
    let threads = others.len() as u32 + 1;
    Model::<E>::new(name, threads, Some(3), move || {
        let words: Arc<[E::U32]> = (0..threads).map(|_| Atomic::new(0)).collect();
        let spawned: Vec<_> = (1..threads)
            .zip(others)
            .map(|(slot, fence)| {
                let words = words.clone();
                let seen = Arc::new(std::sync::atomic::AtomicU32::new(0));
                let note = seen.clone();
                let thread = Thread { slot: Some(slot), ..Thread::default() };
                let handle = E::spawn(thread, move || {
                    words[slot as usize].store(1, Relaxed);
                    fence();
                    note.store(words[0].load(Relaxed), Relaxed);
                });
                (handle, seen)
            })
            .collect();
        words[0].store(1, Relaxed);
        first();
        let seen: Vec<_> = words[1..].iter().map(|word| word.load(Relaxed)).collect();
        for ((handle, other), own) in spawned.into_iter().zip(seen) {
            handle.join().unwrap();
            assert!(own == 1 || other.load(Relaxed) == 1, "neither sees the other");
        }
    })
}
