//! The locks of the FreeBSD kernel, as user-space algorithms.

#[cfg(test)]
#[macro_use]
mod forms;

mod exchange;
mod freeable;
pub mod holds;
pub mod lock_delay;
pub mod lockmgr;
pub mod mtx;
pub mod recursion;
pub mod rw;
pub mod rwsx;
pub mod spin_mtx;
mod spinning;
pub mod sx;
pub mod thread_lock;
pub mod tuning;

use crate::parking::chain::Chains;
use crate::platform::{ParkTimeout, Random, Settings};
use crate::schedule::{Schedule, Sections};

/// What these locks ask of a platform.
pub trait Host: Chains + holds::SharedHolds + ParkTimeout + Schedule + Sections + Settings + Random {}

impl<P: Chains + holds::SharedHolds + ParkTimeout + Schedule + Sections + Settings + Random> Host for P {}
