//! Spin locks from the literature: the family that the Linux locks are compared with.

pub mod clh;
pub mod mcs;
pub mod tas;
pub mod ticket;
pub mod ttas;
