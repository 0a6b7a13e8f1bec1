//! This project's own locks: those that programs should use.

pub mod condvar;
pub mod mutex;

use crate::parking::chain;
use crate::platform::{AsymFence, ParkTimeout, Random, Topology};
use crate::schedule::{Schedule, Sections};

/// What these locks ask of a platform.
pub trait Host: chain::Chains + AsymFence + ParkTimeout + Random + Schedule + Sections + Topology {}

impl<P: chain::Chains + AsymFence + ParkTimeout + Random + Schedule + Sections + Topology> Host for P {}
