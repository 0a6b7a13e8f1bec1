//! This project's own locks: those that programs should use.

pub mod condvar;
pub mod mutex;

use crate::parking::chain::{Chains, Family};
use crate::platform::{AsymFence, ParkTimeout, Platform, Random, Topology};
use crate::schedule::{Schedule, Sections};

use mutex::beside::Beside;

/// The family of these locks.
#[derive(Debug)]
pub struct Near;

// SAFETY: two groups of words, for each of which all zero is valid and means that no thread waits;
// no other family has this table.
unsafe impl Family for Near {
    type Beside<P: Platform> = Beside<P>;
    const TABLE: usize = 0;
}

/// What these locks ask of a platform.
pub trait NearPlatform:
    Chains<Near> + AsymFence + ParkTimeout + Random + Schedule + Sections + Topology
{
}

impl<P: Chains<Near> + AsymFence + ParkTimeout + Random + Schedule + Sections + Topology> NearPlatform for P {}
