//! The locks of the Linux kernel, as user-space algorithms.

pub mod cna;
pub mod cna_v13;
pub mod counter_mutex;
pub mod mcs_spinlock;
pub mod mutex;
pub mod osq;
pub mod qspinlock;
pub mod rwsem;
pub mod rwsem_xadd;
