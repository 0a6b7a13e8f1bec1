//! Locks from the literature, and the mutexes and reader-writer locks of the C library, of Rust's
//! standard library and of parking_lot. The kernels' locks, and ours, are compared with these.

pub mod clh;
pub mod cohort;
pub mod glibc_mutex;
pub mod glibc_rwlock;
pub mod hmcs;
pub mod mcs;
pub mod parking_lot_mutex;
pub mod parking_lot_rwlock;
mod per_node;
pub mod std_mutex;
pub mod std_rwlock;
pub mod tas;
pub mod ticket;
pub mod ttas;
