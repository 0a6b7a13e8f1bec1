//! Locks from the literature, and the mutexes of the C library, of Rust's standard library and of
//! parking_lot. The kernels' locks, and ours, are compared with these.

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
