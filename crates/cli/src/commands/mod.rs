//! One module per command.

pub mod bench;
pub mod completions;
pub mod list;
pub mod man;
pub mod measure;
pub mod reproduce;
pub mod simulate;
pub mod topology;
pub mod torture;
pub mod tour;
pub mod validate;
