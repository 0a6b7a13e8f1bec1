//! Spin locks from the literature: the family that the Linux locks are compared with.

pub mod mcs;
pub mod ttas;
