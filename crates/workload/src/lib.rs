//! Workloads for any lock: what a thread does between and inside its acquisitions. They do not
//! cover how threads are made, timed or reported. The same source runs natively and in the
//! simulator.

pub mod context1;
pub mod futex;
pub mod gate;
pub mod jobs;
mod lines;
pub mod lockref;
pub mod locktorture;
pub mod mutex_section;
mod observer;
pub mod readrandom;
pub mod rw_section;
pub mod sections;
pub mod will_it_scale;

pub use gate::{Exclusive, Gate};
pub use lines::{LINES_MAX, LockedLines};
pub use observer::Observer;
