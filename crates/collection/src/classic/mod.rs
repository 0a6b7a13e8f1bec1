//! Locks from the literature, and those of the C library, of Rust's, and of parking_lot: what the
//! kernels' locks, and ours, are compared with.

pub mod clh;
pub mod cohort;
pub mod glibc_mutex;
pub mod hmcs;
pub mod mcs;
pub mod parking_lot_mutex;
mod per_node;
pub mod std_mutex;
pub mod tas;
pub mod ticket;
pub mod ttas;
