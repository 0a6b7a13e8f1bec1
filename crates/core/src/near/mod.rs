//! This project's own locks: those that programs should use.

pub mod attention;
pub mod condvar;
pub mod mutex;
pub mod rwlock;
mod transfer;

use crate::parking::chain::{Chains, Family};
use crate::platform::{AsymFence, ParkTimeout, Platform, Random, Topology};
use crate::schedule::{Schedule, Sections};

use attention::AttentionTable;
use mutex::beside::Beside;

/// The family of these locks.
#[derive(Debug)]
pub struct Near;

// SAFETY: `Beside` has two groups of words. All zero is valid for each, and means that no thread
// waits. No other family has this table.
unsafe impl Family for Near {
    type Beside<P: Platform> = Beside<P>;
    const TABLE: usize = 0;
}

/// The capabilities that these locks need of a platform.
pub trait NearPlatform:
    Chains<Near> + AttentionTable + AsymFence + ParkTimeout + Random + Schedule + Sections + Topology
{
}

impl<P> NearPlatform for P where
    P: Chains<Near> + AttentionTable + AsymFence + ParkTimeout + Random + Schedule + Sections + Topology
{
}
