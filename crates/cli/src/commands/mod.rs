//! One module per command.

pub mod bench;
pub mod list;
pub mod reproduce;
pub mod simulate;
pub mod topology;
pub mod torture;
pub mod tour;
