//! FreeBSD's shared-exclusive lock.

use std::sync::Arc;

use nearlock_collection::freebsd::sx::Sx;
use nearlock_collection::freebsd::tuning::{StaleBits, Tuning};
use nearlock_core::events::LockEvent;
use nearlock_core::raw::RawLock;
use nearlock_core::tuning::Standard;
use nearlock_model::engine::{Counter, Engine, Thread};
use nearlock_model::exclusion::Guarded;
use nearlock_model::loom::Loom;
use nearlock_model::model::Model;
use nearlock_model::readers::{Act, Patience, impatient_writer};

use crate::{NO_END, caught};

#[test]
fn sx_reader_behind_a_writer_that_gave_up() {
    nearlock_core::tuning! {
        /// The last reader trusts the bit of writers without a look at their queue.
        struct Kernel: Tuning {
            sx_stale_bits: StaleBits = StaleBits::SeenByWriters;
        }
    }
    fn model<T: Tuning>() -> Model {
        impatient_writer::<Loom, Sx<Loom, T>>("freebsd-sx", Patience::Time, &[&[Act::Read]], Some(2))
    }
    caught("sx_reader_behind_a_writer_that_gave_up", &model::<Standard>(), &model::<Kernel>(), NO_END);
}

/// The first thread already writes when another writer comes, which spins for as long as it may.
fn may_spin<T: Tuning>() -> Model {
    Model::new("freebsd-sx: written at first; a writer that may spin", 2, Some(3), || {
        let sleeps = || Loom::events()[LockEvent::ChainSleep as usize];
        let (shared, before) = (Arc::new(Guarded::<Loom, Sx<Loom, T>>::default()), sleeps());
        // SAFETY: released below.
        unsafe { shared.lock.lock(&()) };
        let spinning = Thread { slot: Some(1), is_patient: true, ..Thread::default() };
        let other = {
            let shared = shared.clone();
            Loom::spawn(spinning, move || shared.section())
        };
        shared.count.add_one();
        // SAFETY: locked above.
        unsafe { shared.lock.unlock(&()) };
        other.join().unwrap();
        assert_eq!((shared.count.get(), sleeps()), (2, before), "it sleeps though the holder runs");
    })
}

#[test]
fn sx_spinning_the_wrong_way_round() {
    nearlock_core::tuning! {
        /// Waiters spin when they should not.
        struct Inverted: Tuning {
            adaptive: bool = false;
        }
    }
    let how = "it sleeps though the holder runs";
    caught("sx_spinning_the_wrong_way_round", &may_spin::<Standard>(), &may_spin::<Inverted>(), how);
}
