//! The data of a chain beside its queues, in a cache line of its own.
//!
//! ```text
//! hints | patience | filter     a cache line of 64 bytes
//! ```
//! A release that finds the [attention](crate::near::attention) of the chain raised reads the
//! filter. If threads wait for its mutex, it reads and writes the hints as well. It does all of
//! that without the chain's lock, except when it visits the chain: it then notes the visit in the
//! hints under the lock.

use super::filter::Filter;
use super::hints::Hints;
use crate::near::condvar::patience::Patience;
use crate::platform::Platform;

/// See the [module](self). All zero: no thread waits, and nothing is known.
#[repr(C, align(64))]
pub struct Beside<P: Platform> {
    pub(super) hints: Hints<P>,
    /// Of the condition variables of the chain.
    pub(in crate::near) patience: Patience<P>,
    /// Written under the chain's lock, and read without it.
    pub(super) filter: Filter<P>,
}

impl<P: Platform> Default for Beside<P> {
    fn default() -> Self {
        Self { hints: Hints::default(), patience: Patience::default(), filter: Filter::default() }
    }
}

#[cfg(test)]
mod tests {
    use core::mem::offset_of;

    use super::*;
    use crate::native::Native;
    use crate::near::Near;
    use crate::parking::chain::Chain;

    /// Its alignment puts it into a cache line of its own.
    const _: () = assert!(size_of::<Chain<Native, Near>>() == 128 && size_of::<Beside<Native>>() == 64);
    const _: () = assert!(offset_of!(Beside<Native>, filter) == size_of::<Hints<Native>>() + 4);
}
