//! What measures this machine.
//!
//! | module | what |
//! |---|---|
//! | [`torture`] | a lock under stress |
//! | [`bench`](mod@bench) | locks against each other |
//! | [`measure`] | this machine as a machine file of the simulator |
//! | [`validate`] | native against simulated |
//! | [`watched`] | how the calling thread waits |

pub mod bench;
pub mod measure;
mod switched;
pub mod torture;
pub mod validate;
pub mod watched;
