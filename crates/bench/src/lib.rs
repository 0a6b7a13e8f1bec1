//! Measurements on this machine.
//!
//! | module | contents |
//! |---|---|
//! | [`torture`] | stress test of a lock |
//! | [`bench`](mod@bench) | benchmark that compares locks |
//! | [`measure`] | this machine as a machine file of the simulator |
//! | [`validate`] | native results against simulated ones |
//! | [`watched`] | how the calling thread waits |

pub mod bench;
pub mod measure;
mod switched;
pub mod torture;
pub mod validate;
pub mod watched;
