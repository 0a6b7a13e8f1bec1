//! Locks from the literature, and that of the C library: what the kernels' locks are compared with.

pub mod clh;
pub mod cohort;
pub mod glibc_mutex;
pub mod hmcs;
pub mod mcs;
mod per_node;
pub mod tas;
pub mod ticket;
pub mod ttas;
