//! FreeBSD's shared-exclusive lock.

use nearlock_core::freebsd::sx::Sx;
use nearlock_core::freebsd::tuning::{StaleBits, Tuning};
use nearlock_core::tuning::Standard;
use nearlock_model::loom::Loom;
use nearlock_model::model::Model;
use nearlock_model::readers::{Act, Patience, impatient_writer};

use crate::{NO_END, caught};

#[test]
fn sx_reader_behind_a_writer_that_gave_up() {
    /// The last reader believes the bit of writers without a look at their queue.
    struct Kernel;
    impl Tuning for Kernel {
        const SX_STALE_BITS: StaleBits = StaleBits::SeenByWriters;
    }
    fn model<T: Tuning>() -> Model {
        impatient_writer::<Loom, Sx<Loom, T>>("freebsd-sx", Patience::Time, &[&[Act::Read]], Some(1))
    }
    caught("sx_reader_behind_a_writer_that_gave_up", &model::<Standard>(), &model::<Kernel>(), NO_END);
}
